//! Keys that a provider publishes, refreshed periodically.
//!
//! In: an endpoint of the configuration. Out: the key that a token names, from the set that was fetched last. A token
//! never causes a request to another address. A set is fresh for a while, and is then refreshed in the background.
//! While the provider is down, the set stays valid for [`RefreshSettings::stale`]. Providers rotate their keys, so an
//! unknown key refreshes the set. All requests together refresh it at most once in [`PAUSE`], and at most
//! [`MAX_WAITING`] requests wait for that.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use jsonwebtoken::{Algorithm, DecodingKey};
use terrane_app::ports::clock::Clock;
use terrane_outgoing::{Endpoint, OutgoingClient};
use tokio::sync::{Semaphore, watch};

use super::set::{KeyMatch, KeySet};

/// The shortest time between two requests for the keys.
const PAUSE: Duration = Duration::from_secs(5);
const MAX_WAITING: usize = 64;

/// The lifetimes of a set of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefreshSettings {
    /// The age after which the set is refreshed.
    pub fresh: Duration,
    /// The age after which a set that cannot be refreshed is invalid.
    pub stale: Duration,
}

impl Default for RefreshSettings {
    fn default() -> Self {
        RefreshSettings { fresh: Duration::from_secs(300), stale: Duration::from_secs(86_400) }
    }
}

/// The reason why no key is returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyFault {
    /// The provider has no key with this id, or the key may not be used with the token's algorithm.
    Unknown,
    /// The keys could not be fetched.
    Unavailable,
}

/// The keys of one provider. Clones share the same keys.
#[derive(Clone)]
pub struct RemoteKeys(Arc<Inner>);

struct Inner {
    outgoing: OutgoingClient,
    endpoint: Endpoint,
    clock: Arc<dyn Clock>,
    settings: RefreshSettings,
    known: RwLock<Known>,
    /// The running request for the keys, or the last one.
    reading: Mutex<RefreshState>,
    waiting: Semaphore,
}

/// The last set that could be read.
#[derive(Default)]
struct Known {
    keys: Arc<KeySet>,
    read_at: Option<Duration>,
}

#[derive(Default)]
struct RefreshState {
    began_at: Option<Duration>,
    /// The channel that receives the outcome of the request and is then closed.
    outcome: Option<watch::Receiver<FetchState>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FetchState {
    Open,
    Read,
    Failed,
}

impl RemoteKeys {
    pub fn new(outgoing: OutgoingClient, endpoint: Endpoint, clock: Arc<dyn Clock>, settings: RefreshSettings) -> Self {
        RemoteKeys(Arc::new(Inner {
            outgoing,
            endpoint,
            clock,
            settings,
            known: RwLock::default(),
            reading: Mutex::default(),
            waiting: Semaphore::new(MAX_WAITING),
        }))
    }

    /// Starts fetching the keys in the background, so that the first token need not wait. Needs an async runtime.
    pub fn prefetch(&self) {
        self.begin();
    }

    pub(crate) async fn key(&self, kid: Option<&str>, algorithm: Algorithm) -> Result<Arc<DecodingKey>, KeyFault> {
        match self.find(kid, algorithm) {
            KeyMatch::Key(key) => {
                if self.is_aged() {
                    self.begin();
                }
                return Ok(key);
            }
            KeyMatch::Unfit => return Err(KeyFault::Unknown),
            KeyMatch::Missing => {}
        }
        let outcome = self.read_once_more().await;
        match self.find(kid, algorithm) {
            KeyMatch::Key(key) => Ok(key),
            KeyMatch::Unfit => Err(KeyFault::Unknown),
            KeyMatch::Missing if outcome == FetchState::Read => Err(KeyFault::Unknown),
            KeyMatch::Missing => Err(KeyFault::Unavailable),
        }
    }

    fn find(&self, kid: Option<&str>, algorithm: Algorithm) -> KeyMatch {
        let known = self.0.known.read().unwrap_or_else(PoisonError::into_inner);
        let age = known.read_at.map(|at| self.0.clock.elapsed().saturating_sub(at));
        if age.is_some_and(|age| age <= self.0.settings.fresh.max(self.0.settings.stale)) {
            known.keys.find(kid, algorithm)
        } else {
            KeyMatch::Missing
        }
    }

    fn is_aged(&self) -> bool {
        let read_at = self.0.known.read().unwrap_or_else(PoisonError::into_inner).read_at;
        read_at.is_none_or(|at| self.0.clock.elapsed().saturating_sub(at) > self.0.settings.fresh)
    }

    /// Waits for the running or a recent request, or starts a new one. Fails if too many callers wait.
    async fn read_once_more(&self) -> FetchState {
        let Some(mut outcome) = self.begin() else { return FetchState::Failed };
        let Ok(_place) = self.0.waiting.try_acquire() else { return FetchState::Failed };
        match outcome.wait_for(|outcome| *outcome != FetchState::Open).await {
            Ok(outcome) => *outcome,
            Err(_) => FetchState::Failed,
        }
    }

    /// Returns the outcome of the running request, or of one that began within [`PAUSE`]. Otherwise starts a request,
    /// which continues even if no caller waits for it.
    fn begin(&self) -> Option<watch::Receiver<FetchState>> {
        let now = self.0.clock.elapsed();
        let mut reading: MutexGuard<'_, RefreshState> = self.0.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let is_recent = reading.began_at.is_some_and(|at| now.saturating_sub(at) < PAUSE);
        let is_open = reading
            .outcome
            .as_ref()
            .is_some_and(|outcome| *outcome.borrow() == FetchState::Open && outcome.has_changed().is_ok());
        if is_recent || is_open {
            return reading.outcome.clone();
        }
        let (done, outcome) = watch::channel(FetchState::Open);
        *reading = RefreshState { began_at: Some(now), outcome: Some(outcome.clone()) };
        drop(reading);
        let inner = self.0.clone();
        tokio::spawn(async move {
            let outcome = inner.read().await;
            // Sending fails if no caller waits, which is fine.
            let _ = done.send(outcome);
        });
        Some(outcome)
    }
}

impl Inner {
    async fn read(&self) -> FetchState {
        let host = self.endpoint.host();
        let failed = |error: &dyn std::fmt::Display| {
            tracing::warn!(event = "provider_keys_unavailable", host, error_message = %error);
            FetchState::Failed
        };
        let document = match self.outgoing.get(&self.endpoint, None).await {
            Ok(document) => document,
            Err(error) => return failed(&error),
        };
        let keys = match KeySet::read(&document) {
            Ok(keys) => keys,
            Err(error) => return failed(&error),
        };
        tracing::debug!(event = "provider_keys_read", host, keys = keys.len());
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        *known = Known { keys: Arc::new(keys), read_at: Some(self.clock.elapsed()) };
        FetchState::Read
    }
}
