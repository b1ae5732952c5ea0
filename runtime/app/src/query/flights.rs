//! Shared execution: equal queries that arrive at the same time run once.
//!
//! In: a job with its key and the version of its data. Out: its result, for all callers who wait. The execution is a
//! future that the waiting callers share: it runs in the task of one of them, so a single caller needs no second task.
//! If a caller stops waiting, the execution continues in the task of another caller. When the last caller stops
//! waiting, the execution ends, and its statement is interrupted. Waiting callers hold no permit, and each has its own
//! time limit. All waiting callers get a failure, and it is not stored. Not here: lookups (`cache`).

use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use tracing::Instrument as _;

use super::QueryRunError;
use super::job::QueryJob;
use super::recorder::StatementOrigin;
use super::runner::StatementRunner;
use crate::data_versions::VersionReading;
use crate::domain::DataVersion;
use crate::ports::result_cache::{CacheKey, ResultCache, StoredResult};

type FlightKey = (CacheKey, DataVersion);
/// An execution. The task of any waiting caller can continue it.
type SharedOutcome = Shared<BoxFuture<'static, FlightOutcome>>;

/// The largest number of concurrent refreshes of outdated results. Once it is reached, further refreshes are left to
/// later queries.
const MAX_REFRESHES: usize = 64;

/// The shared executions that are running.
#[derive(Default)]
pub(super) struct Flights {
    running: Mutex<HashMap<FlightKey, Flight>>,
    next_id: AtomicU64,
    /// The number of executions that ended. It changes while `running` is locked.
    ended: AtomicU64,
    /// The results that are being refreshed.
    refreshing: Mutex<HashSet<CacheKey>>,
}

/// The right to refresh one result. Dropping it lets another refresh begin.
struct RefreshPermit {
    flights: Arc<Flights>,
    key: CacheKey,
}

struct Flight {
    outcome: SharedOutcome,
    waiters: usize,
    /// A number that distinguishes this execution from a later one with the same key.
    id: u64,
}

#[derive(Clone)]
enum FlightOutcome {
    Result(Result<Arc<StoredResult>, QueryRunError>),
    /// The execution panicked. The panic was reported where it happened.
    Panicked,
}

/// A caller that waits for a shared execution. Dropping the waiter ends the wait.
pub(super) struct Waiter {
    flights: Arc<Flights>,
    key: FlightKey,
    id: u64,
    outcome: SharedOutcome,
}

/// Executes jobs and stores their results. Clones share the executions.
#[derive(Clone)]
pub(super) struct Executor {
    pub(super) runner: Arc<StatementRunner>,
    /// The tiers of the result cache, fastest first.
    pub(super) tiers: Arc<[Arc<dyn ResultCache>]>,
    /// The largest size of a stored result, in bytes.
    pub(super) max_entry: u64,
    pub(super) flights: Arc<Flights>,
}

impl Executor {
    /// Stores a result in these tiers, unless it is too large.
    pub(super) async fn store(
        &self,
        tiers: &[Arc<dyn ResultCache>],
        key: CacheKey,
        result: &Arc<StoredResult>,
        reading: &VersionReading,
    ) {
        if result.size() <= self.max_entry {
            for tier in tiers {
                tier.put(key, Arc::clone(result), reading.max_age).await;
            }
        }
    }

    /// Returns the number of executions that have ended, for [`join_after`](Self::join_after).
    pub(super) fn ended(&self) -> u64 {
        self.flights.ended.load(Ordering::SeqCst)
    }

    /// Joins the execution of a job, or begins it. `ended` is the number of ended executions before the caller looked
    /// the result up. Returns `None` if none is running and others have ended since: one of them may have stored the
    /// result after the lookup, so the caller must look it up again.
    pub(super) fn join_after(
        &self,
        ended: u64,
        key: CacheKey,
        job: &Arc<QueryJob>,
        reading: VersionReading,
        tenant: Option<&Arc<str>>,
        origin: &StatementOrigin,
    ) -> Option<Waiter> {
        let flights = self.flights.lock();
        if !flights.contains_key(&(key, reading.version)) && self.ended() != ended {
            return None;
        }
        Some(self.join_locked(flights, key, Arc::clone(job), reading, tenant, origin))
    }

    /// Joins the execution of a job. If none is running, begins it.
    pub(super) fn join(
        &self,
        key: CacheKey,
        job: Arc<QueryJob>,
        reading: VersionReading,
        tenant: Option<&Arc<str>>,
        origin: &StatementOrigin,
    ) -> Waiter {
        self.join_locked(self.flights.lock(), key, job, reading, tenant, origin)
    }

    fn join_locked(
        &self,
        mut flights: MutexGuard<'_, HashMap<FlightKey, Flight>>,
        key: CacheKey,
        job: Arc<QueryJob>,
        reading: VersionReading,
        tenant: Option<&Arc<str>>,
        origin: &StatementOrigin,
    ) -> Waiter {
        let flight_key = (key, reading.version);
        if let Some(flight) = flights.get_mut(&flight_key) {
            flight.waiters += 1;
            return Waiter {
                flights: Arc::clone(&self.flights),
                key: flight_key,
                id: flight.id,
                outcome: flight.outcome.clone(),
            };
        }
        let id = self.flights.next_id.fetch_add(1, Ordering::Relaxed);
        let execution = self.clone().execute(flight_key, id, job, reading, tenant.cloned(), origin.clone());
        let outcome = execution.instrument(tracing::Span::current()).boxed().shared();
        flights.insert(flight_key, Flight { outcome: outcome.clone(), waiters: 1, id });
        Waiter { flights: Arc::clone(&self.flights), key: flight_key, id, outcome }
    }

    /// Computes the result of a job for later callers, unless a refresh of this result or [`MAX_REFRESHES`] other
    /// refreshes are running.
    pub(super) fn refresh(
        &self,
        key: CacheKey,
        job: QueryJob,
        reading: VersionReading,
        tenant: Option<&Arc<str>>,
        origin: &StatementOrigin,
    ) {
        let Some(permit) = self.flights.begin_refresh(key) else { return };
        // The query that found the outdated result does not use the warehouse, so its time of admission is not set.
        let origin = StatementOrigin { admitted: Arc::default(), ..origin.clone() };
        let waiter = self.join(key, Arc::new(job), reading, tenant, &origin);
        let runner = Arc::clone(&self.runner);
        tokio::spawn(async move {
            let _permit = permit;
            if let Err(error) = runner.in_time(waiter.outcome()).await {
                tracing::warn!(event = "cache_refresh_failed", cube = &*origin.cube, error_message = %error);
            }
        });
    }

    /// Runs a job, and stores its result in all tiers.
    async fn execute(
        self,
        key: FlightKey,
        id: u64,
        job: Arc<QueryJob>,
        reading: VersionReading,
        tenant: Option<Arc<str>>,
        origin: StatementOrigin,
    ) -> FlightOutcome {
        let run = AssertUnwindSafe(job.run(&self.runner, tenant.as_ref(), &origin)).catch_unwind();
        let outcome = match run.await {
            Ok(done) => FlightOutcome::Result(done.map(|done| Arc::new(done.stored(reading.version, reading.as_of)))),
            Err(_) => FlightOutcome::Panicked,
        };
        // Stored in the first tier before the execution is removed, so that the next caller finds one or the other.
        if let FlightOutcome::Result(Ok(result)) = &outcome {
            let (first, others) = self.tiers.split_at(1.min(self.tiers.len()));
            self.store(first, key.0, result, &reading).await;
            if !others.is_empty() {
                self.clone().store_in_background(key.0, Arc::clone(result), reading);
            }
        }
        self.flights.remove(&key, id);
        outcome
    }

    /// Stores a result in all tiers but the first, for which no caller waits.
    fn store_in_background(self, key: CacheKey, result: Arc<StoredResult>, reading: VersionReading) {
        let store = async move { self.store(&self.tiers[1..], key, &result, &reading).await };
        tokio::spawn(store.instrument(tracing::Span::current()));
    }
}

impl Flights {
    fn lock(&self) -> MutexGuard<'_, HashMap<FlightKey, Flight>> {
        // No method panics between two changes that must be made together.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Permits a refresh of a result: one per result at a time, and at most [`MAX_REFRESHES`] together.
    fn begin_refresh(self: &Arc<Self>, key: CacheKey) -> Option<RefreshPermit> {
        let mut refreshing = self.refreshing.lock().unwrap_or_else(PoisonError::into_inner);
        let is_permitted = refreshing.len() < MAX_REFRESHES && refreshing.insert(key);
        is_permitted.then(|| RefreshPermit { flights: Arc::clone(self), key })
    }

    fn remove(&self, key: &FlightKey, id: u64) {
        let mut flights = self.lock();
        if flights.get(key).is_some_and(|flight| flight.id == id) {
            flights.remove(key);
            self.ended.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl Drop for RefreshPermit {
    fn drop(&mut self) {
        let mut refreshing = self.flights.refreshing.lock().unwrap_or_else(PoisonError::into_inner);
        refreshing.remove(&self.key);
    }
}

impl Waiter {
    /// Waits for the result of the execution.
    pub(super) async fn outcome(self) -> Result<Arc<StoredResult>, QueryRunError> {
        match self.outcome.clone().await {
            FlightOutcome::Result(result) => result,
            // The panic was reported where it happened. It is resumed here, and the server turns it into a response.
            FlightOutcome::Panicked => std::panic::resume_unwind(Box::new("a shared execution panicked")),
        }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut flights = self.flights.lock();
        let Some(flight) = flights.get_mut(&self.key).filter(|flight| flight.id == self.id) else { return };
        flight.waiters -= 1;
        if flight.waiters == 0 {
            // The execution ends with the waiter's own copy, after the lock is released.
            flights.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8) -> CacheKey {
        CacheKey([number; 32])
    }

    #[test]
    fn ended_executions_are_counted_once() {
        let flights = Flights::default();
        let (own, other) = ((key(1), DataVersion::UNKNOWN), (key(2), DataVersion::UNKNOWN));
        let outcome = std::future::ready(FlightOutcome::Panicked).boxed().shared();
        flights.lock().insert(own, Flight { outcome, waiters: 1, id: 7 });
        let ended = || flights.ended.load(Ordering::SeqCst);
        flights.remove(&other, 7);
        flights.remove(&own, 8);
        assert_eq!(ended(), 0, "no such execution is running");
        flights.remove(&own, 7);
        flights.remove(&own, 7);
        assert_eq!(ended(), 1);
    }

    #[test]
    fn result_is_refreshed_once_at_a_time() {
        let flights = Arc::new(Flights::default());
        let permit = flights.begin_refresh(key(1));
        assert!(permit.is_some());
        assert!(flights.begin_refresh(key(1)).is_none());
        assert!(flights.begin_refresh(key(2)).is_some());
        drop(permit);
        assert!(flights.begin_refresh(key(1)).is_some());
    }

    #[test]
    fn refreshes_are_limited() {
        let flights = Arc::new(Flights::default());
        let permits: Vec<_> = (0..=u8::MAX).filter_map(|number| flights.begin_refresh(key(number))).collect();
        assert_eq!(permits.len(), MAX_REFRESHES);
        drop(permits);
        assert!(flights.begin_refresh(key(200)).is_some());
    }
}
