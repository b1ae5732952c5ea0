//! The result cache: its tiers and its secret.

use std::sync::Arc;
use std::time::Duration;

use terrane_app::ports::clock::Clock;
use terrane_app::ports::result_cache::ResultCache;
use terrane_app::ports::tokens::Randomness as _;
use terrane_app::query::{CacheSecret, CacheSettings};
use terrane_cache::{MemoryCache, RedisCache, RedisSettings};
use terrane_identity::OsRandomness;
use terrane_store::StateStore;

use super::providers::authorities;
use super::security::server_secret;
use crate::failure::Failure;
use crate::project::Project;

/// Returns the settings of a server's cache.
///
/// # Errors
/// The state database is unavailable, `cache.url` is invalid, or the file of its authorities cannot be read.
pub(super) async fn settings(
    project: &Project,
    store: &StateStore,
    clock: &Arc<dyn Clock>,
) -> Result<CacheSettings, Failure> {
    let config = &project.config.cache;
    let secret = CacheSecret::new(&server_secret(store, "result_cache").await?);
    let stale = Duration::from_secs(config.stale_seconds);
    let mut tiers: Vec<Arc<dyn ResultCache>> = Vec::new();
    if config.enabled && config.max_size > 0 {
        tiers.push(Arc::new(MemoryCache::new(config.max_size)));
    }
    if let Some(redis) = redis(project, secret.clone(), clock)? {
        tiers.push(Arc::new(redis));
    }
    Ok(CacheSettings {
        tiers,
        secret,
        warehouse: identity(project).into(),
        ttl: Duration::from_secs(config.ttl_seconds),
        max_entry: config.max_entry,
        stale,
    })
}

/// Returns the settings of the cache of a command, which stores results for this process only.
pub(super) fn of_process(project: &Project) -> CacheSettings {
    let config = &project.config.cache;
    if !config.enabled || config.max_size == 0 {
        return CacheSettings::disabled();
    }
    let mut secret = [0; 32];
    OsRandomness.fill(&mut secret);
    CacheSettings {
        tiers: vec![Arc::new(MemoryCache::new(config.max_size))],
        secret: CacheSecret::new(&secret),
        warehouse: identity(project).into(),
        ttl: Duration::from_secs(config.ttl_seconds),
        max_entry: config.max_entry,
        stale: Duration::ZERO,
    }
}

/// Returns the tier in Redis; `None` if the cache is off or has no `cache.url`.
fn redis(project: &Project, secret: CacheSecret, clock: &Arc<dyn Clock>) -> Result<Option<RedisCache>, Failure> {
    let config = &project.config.cache;
    let Some(url) = config.url.as_ref().filter(|_| config.enabled) else { return Ok(None) };
    let settings = RedisSettings {
        url: url.expose().to_owned(),
        authorities: authorities(&project.config, project.folder.root())?.map(|(_, pem)| pem),
        secret,
        max_entry: config.max_entry,
        stale: Duration::from_secs(config.stale_seconds),
    };
    let redis = RedisCache::new(settings, Arc::clone(clock)).map_err(|error| {
        Failure::new(error.to_string())
            .hint("Set `cache.url` to an address such as redis://host:6379/0, or rediss://host:6379/0 for TLS.")
    })?;
    Ok(Some(redis))
}

/// Returns whether Redis answers; `None` if the cache does not use it.
///
/// # Errors
/// `cache.url` is invalid, or the file of its authorities cannot be read.
pub(super) async fn redis_answers(project: &Project, clock: &Arc<dyn Clock>) -> Result<Option<bool>, Failure> {
    // A ping reads no result, so the secret is not needed.
    match redis(project, CacheSecret::new(&[0; 32]), clock)? {
        Some(redis) => Ok(Some(redis.ping().await)),
        None => Ok(None),
    }
}

/// Returns a string that distinguishes the warehouse from others; only its digest is used. It contains the statements
/// of `init`, because they decide what a session can read. An in-memory database belongs to this process only.
fn identity(project: &Project) -> String {
    let warehouse = &project.config.warehouse;
    let url = warehouse.url.as_ref().map(|url| url.expose().to_owned()).unwrap_or_default();
    let adbc = warehouse.adbc.as_ref().map(|adbc| {
        let options: Vec<_> = adbc.options.iter().map(|(name, value)| (name, value.expose())).collect();
        let session: Option<Vec<_>> = adbc.session.as_ref().map(|all| all.iter().map(|one| &one.value).collect());
        format!("{:?}", (&adbc.driver.value, options, session))
    });
    let path = warehouse.path.as_ref().map(|path| path.value.clone()).unwrap_or_default();
    let init: Vec<&str> = warehouse.init.iter().map(|statement| statement.value.as_str()).collect();
    let process = (path.is_empty() && url.is_empty() && adbc.is_none()).then(super::process_id);
    format!("{:?}", (&warehouse.kind, project.folder.root(), path, url, adbc, init, process))
}
