//! The result cache: its tiers and its secret.

use std::sync::Arc;
use std::time::Duration;

use terrane_app::ports::result_cache::ResultCache;
use terrane_app::query::{CacheSecret, CacheSettings};
use terrane_cache::MemoryCache;
use terrane_store::StateStore;

use super::security::server_secret;
use crate::failure::Failure;
use crate::project::Project;

/// Returns the settings of a server's cache.
///
/// # Errors
/// The state database is unavailable.
pub(super) async fn settings(project: &Project, store: &StateStore) -> Result<CacheSettings, Failure> {
    let config = &project.config.cache;
    let secret = server_secret(store, "result_cache").await?;
    let mut tiers: Vec<Arc<dyn ResultCache>> = Vec::new();
    if config.enabled && config.max_size > 0 {
        tiers.push(Arc::new(MemoryCache::new(config.max_size)));
    }
    Ok(CacheSettings {
        tiers,
        secret: CacheSecret::new(&secret),
        warehouse: identity(project).into(),
        ttl: Duration::from_secs(config.ttl_seconds),
        max_entry: config.max_entry,
        stale: Duration::from_secs(config.stale_seconds),
    })
}

/// Returns the text that distinguishes the warehouse from others; it is only ever digested. The statements of `init`
/// decide what a session sees.
fn identity(project: &Project) -> String {
    let warehouse = &project.config.warehouse;
    let url = warehouse.url.as_ref().map(|url| url.expose().to_owned()).unwrap_or_default();
    let path = warehouse.path.as_ref().map(|path| path.value.clone()).unwrap_or_default();
    let init: Vec<&str> = warehouse.init.iter().map(|statement| statement.value.as_str()).collect();
    format!("{:?}", (&warehouse.kind, project.folder.root(), path, url, init))
}
