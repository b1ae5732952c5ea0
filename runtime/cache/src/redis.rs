//! The tier that several servers share: a Redis server. It is not trusted, and may be unavailable at any time.
//!
//! A URL with `rediss://` uses TLS. The server's certificate must be signed by a public authority, or by the operator's
//! authorities if those are configured. Every call ends within [`TIMEOUT`], which includes the time to connect. A
//! server that fails several times in a row is not called for a while. A value that does not verify counts as a
//! failure, and as a miss.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ::redis::aio::{ConnectionManager, ConnectionManagerConfig};
use ::redis::{Client, ConnectionAddr, IntoConnectionInfo as _, RedisError, TlsCertificates, cmd};
use async_trait::async_trait;
use terrane_app::ports::clock::Clock;
use terrane_app::ports::result_cache::{CacheKey, CacheStatistics, ResultCache, StoredResult};
use terrane_app::query::CacheSecret;

use crate::breaker::Breaker;
use crate::value;

/// The time that a call may take.
const TIMEOUT: Duration = Duration::from_millis(50);
/// The time for which a result is stored if its data has a version, and the result therefore has no maximum age.
const LIFETIME: Duration = Duration::from_secs(86_400);
const PREFIX: &str = "terrane:result:";

/// The settings of the shared tier.
#[derive(Debug, Clone)]
pub struct RedisSettings {
    /// The address: `redis://user:password@host:6379/0`, or `rediss://` for TLS.
    pub url: String,
    /// The certificate authorities for servers with TLS, as PEM. If `None`, the public authorities are trusted.
    pub authorities: Option<Vec<u8>>,
    pub secret: CacheSecret,
    /// The largest size of the columns of a result, in bytes.
    pub max_entry: u64,
    /// The time for which a result may still be used after its maximum age.
    pub stale: Duration,
}

/// The error for an address that cannot be used. The message contains no password.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the address of the Redis server is invalid: {reason}")]
pub struct RedisUrlError {
    reason: String,
}

/// Results in a Redis server.
pub struct RedisCache {
    connection: ConnectionManager,
    clock: Arc<dyn Clock>,
    settings: RedisSettings,
    breaker: Breaker,
    hits: AtomicU64,
    misses: AtomicU64,
    failures: AtomicU64,
}

impl RedisCache {
    /// Creates the tier. The connection is opened when it is first needed.
    ///
    /// # Errors
    /// [`RedisUrlError`]
    pub fn new(settings: RedisSettings, clock: Arc<dyn Clock>) -> Result<Self, RedisUrlError> {
        let invalid = |error: RedisError| RedisUrlError { reason: error.category().to_owned() };
        let client = client(&settings).map_err(invalid)??;
        let config = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(TIMEOUT))
            .set_response_timeout(Some(TIMEOUT))
            .set_number_of_retries(1)
            .set_min_delay(Duration::from_millis(100))
            .set_max_delay(Duration::from_millis(100));
        let connection = ConnectionManager::new_lazy_with_config(client, config).map_err(invalid)?;
        Ok(RedisCache {
            connection,
            clock,
            settings,
            breaker: Breaker::default(),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            failures: AtomicU64::new(0),
        })
    }

    /// Makes a call with a timeout. Returns `None` if the call failed, or if the circuit breaker does not allow it.
    async fn call<T>(&self, call: impl Future<Output = Result<T, RedisError>>) -> Option<T> {
        if !self.breaker.allows(self.clock.elapsed()) {
            return None;
        }
        match tokio::time::timeout(TIMEOUT, call).await {
            Ok(Ok(answer)) => {
                self.breaker.succeed();
                return Some(answer);
            }
            // A server that refuses a command, for example because its memory is full, still answers.
            Ok(Err(error)) if is_answer(&error) => {
                self.breaker.succeed();
                self.fail(&error);
            }
            Ok(Err(error)) => self.lose(&error),
            Err(elapsed) => self.lose(&elapsed),
        }
        None
    }

    fn fail(&self, error: &dyn Display) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        tracing::debug!(event = "cache_failed", tier = "redis", error_message = %error);
    }

    fn lose(&self, error: &dyn Display) {
        self.fail(error);
        if self.breaker.fail(self.clock.elapsed()) {
            tracing::warn!(event = "cache_unavailable", tier = "redis", error_message = %error);
        }
    }

    async fn read(&self, key: &CacheKey) -> Option<Arc<StoredResult>> {
        let mut connection = self.connection.clone();
        let get = async move { cmd("GET").arg(name(key)).query_async::<Option<Vec<u8>>>(&mut connection).await };
        let value = self.call(get).await??;
        match value::decode(key, &value, &self.settings.secret, self.settings.max_entry) {
            Ok(result) => Some(Arc::new(result)),
            Err(error) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(event = "cache_value_refused", tier = "redis", error_message = %error);
                None
            }
        }
    }
}

/// Creates the client of a server without connecting to it.
fn client(settings: &RedisSettings) -> Result<Result<Client, RedisUrlError>, RedisError> {
    let address = settings.url.as_str().into_connection_info()?;
    match (address.addr(), &settings.authorities) {
        (ConnectionAddr::TcpTls { insecure: true, .. }, _) => {
            Ok(Err(RedisUrlError { reason: "certificates are always verified; remove `#insecure`".to_owned() }))
        }
        (ConnectionAddr::TcpTls { .. }, Some(authorities)) => {
            let certificates = TlsCertificates { client_tls: None, root_cert: Some(authorities.clone()) };
            Client::build_with_tls(address, certificates).map(Ok)
        }
        _ => Client::open(address).map(Ok),
    }
}

/// Returns whether the server answered with an error.
fn is_answer(error: &RedisError) -> bool {
    !(error.is_io_error() || error.is_connection_dropped() || error.is_timeout() || error.is_connection_refusal())
}

fn name(key: &CacheKey) -> String {
    format!("{PREFIX}{}", hex::encode(key.0))
}

#[async_trait]
impl ResultCache for RedisCache {
    fn name(&self) -> &'static str {
        "redis"
    }

    async fn get(&self, key: &CacheKey) -> Option<Arc<StoredResult>> {
        let found = self.read(key).await;
        let counter = if found.is_some() { &self.hits } else { &self.misses };
        counter.fetch_add(1, Ordering::Relaxed);
        found
    }

    async fn put(&self, key: CacheKey, result: Arc<StoredResult>, max_age: Option<Duration>) {
        let value = match value::encode(&key, &result, &self.settings.secret) {
            Ok(value) => value,
            Err(error) => return self.fail(&error),
        };
        let lifetime = max_age.map_or(LIFETIME, |max_age| max_age.saturating_add(self.settings.stale));
        let milliseconds = u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX).max(1);
        let mut connection = self.connection.clone();
        let set = async move {
            let mut command = cmd("SET");
            command.arg(name(&key)).arg(value).arg("PX").arg(milliseconds);
            command.query_async::<()>(&mut connection).await
        };
        self.call(set).await;
    }

    fn statistics(&self) -> CacheStatistics {
        CacheStatistics {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            evictions: 0,
            failures: self.failures.load(Ordering::Relaxed),
            size_bytes: None,
        }
    }

    async fn ping(&self) -> bool {
        let mut connection = self.connection.clone();
        let ping = async move { cmd("PING").query_async::<String>(&mut connection).await };
        matches!(tokio::time::timeout(TIMEOUT, ping).await, Ok(Ok(_)))
    }
}
