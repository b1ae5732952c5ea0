//! The result cache on the path of all statements: lookup, shared execution, and storing.
//!
//! In: a [`QueryJob`], the caller's [`CacheControl`] and the versions of the data. Out: the result, with its source: a
//! tier of the cache, or the warehouse. Before a lookup, the caller is authorized and the policies are part of the
//! statements. So equal statements of different callers have equal answers.
//!
//! - A result is stored under a keyed digest of its statements ([`CacheSecret`]) with the version of its data. It is
//!   used while this version is the current one. If the data has no version, it is used for a limited time only.
//! - Equal queries share one execution ([`flights`](super::flights)).
//! - These are never stored: failures, streams, results above the largest size, results of functions whose value
//!   changes between two calls, and results over data whose version is unknown.
//!
//! Not here: the storage of results (the port's adapters), and the encoding of rows.

use std::sync::Arc;
use std::time::Duration;

use terrane_compiler::model::Model;
use terrane_compiler::sql::is_deterministic;

use super::QueryRunError;
use super::cache_use::{CacheUse, MissReason};
use super::flights::Executor;
use super::job::QueryJob;
use super::key::CacheSecret;
use super::recorder::StatementOrigin;
use crate::data_versions::{DataVersions, VersionReading};
use crate::domain::DataVersion;
use crate::ports::clock::Clock;
use crate::ports::result_cache::{CacheKey, ResultCache, StoredResult};

/// The operator's settings of the result cache.
#[derive(Clone)]
pub struct CacheSettings {
    /// The tiers, fastest first. Without tiers, nothing is stored.
    pub tiers: Vec<Arc<dyn ResultCache>>,
    /// The secret for digests. All servers on one state database share it.
    pub secret: CacheSecret,
    /// The id of the warehouse, unique among all warehouses that are used with this secret.
    pub warehouse: Arc<str>,
    /// The time for which results over cubes without a data version may be reused; zero for never.
    pub ttl: Duration,
    /// The largest size of a stored result, in bytes.
    pub max_entry: u64,
    /// The time for which an outdated result may be used while a new one is computed.
    pub stale: Duration,
}

impl CacheSettings {
    /// Returns the settings of a process that stores no results.
    pub fn disabled() -> Self {
        CacheSettings {
            tiers: Vec::new(),
            secret: CacheSecret::new(&[0; 32]),
            warehouse: "".into(),
            ttl: Duration::from_secs(10),
            max_entry: 0,
            stale: Duration::ZERO,
        }
    }
}

/// The caller's settings for cached results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheControl {
    /// True to compute the result now instead of reading it from the cache.
    pub bypass: bool,
    /// The longest time since the data of a result was read; `None` for no limit.
    pub max_age: Option<Duration>,
    /// The longest time for which an outdated result may be used; `None` for the operator's setting.
    pub stale: Option<Duration>,
    /// True if the caller needs the version of the data even if the result is not stored.
    pub reads_version: bool,
}

/// A result and its source.
#[derive(Debug, Clone)]
pub(super) struct Fetched {
    pub(super) result: Arc<StoredResult>,
    pub(super) key: CacheKey,
    pub(super) used: CacheUse,
    /// True if the data has changed, or the time for which the result may be reused has passed. A new result is then
    /// being computed.
    pub(super) is_stale: bool,
    /// True if other queries may get this result.
    pub(super) is_shared: bool,
    /// The age of the data.
    pub(super) age: Duration,
    /// True if the statements may have a different result over the same data. Set only if the version of the data was
    /// read.
    pub(super) is_changing: bool,
}

/// The model and the tenant for which a job runs.
#[derive(Clone, Copy)]
pub(super) struct CallerOfJob<'a> {
    pub(super) model: &'a Model,
    pub(super) tenant: Option<&'a Arc<str>>,
}

/// Returns results of queries, from the cache or the warehouse. Clones share the cache.
#[derive(Clone)]
pub(super) struct CachedExecutor {
    pub(super) executor: Executor,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) versions: Arc<DataVersions>,
    pub(super) settings: Arc<CacheSettings>,
}

impl CachedExecutor {
    /// Returns the result of a job, from the cache or the warehouse.
    pub(super) async fn fetch(
        &self,
        job: QueryJob,
        control: CacheControl,
        caller: CallerOfJob<'_>,
        origin: &StatementOrigin,
    ) -> Result<Fetched, QueryRunError> {
        let key = self.key(&job, caller.tenant);
        let is_disabled = self.settings.tiers.is_empty();
        if is_disabled && !control.reads_version {
            return self.run_alone(&job, key, MissReason::Disabled, None, caller, origin).await;
        }
        let reading = match self.versions.read(caller.model, &job.main.cubes, caller.tenant).await {
            Ok(reading) => reading,
            Err(error) => {
                tracing::warn!(event = "data_version_unknown", cube = &*origin.cube, error_message = %error);
                let reason = if is_disabled { MissReason::Disabled } else { MissReason::VersionUnknown };
                return self.run_alone(&job, key, reason, None, caller, origin).await;
            }
        };
        if is_disabled || reading.max_age == Some(Duration::ZERO) {
            let reason = if is_disabled { MissReason::Disabled } else { MissReason::NoVersion };
            return self.run_alone(&job, key, reason, Some(reading), caller, origin).await;
        }
        let mut reason = MissReason::Bypassed;
        let ended = self.executor.ended();
        if !control.bypass {
            match self.look_up(&key, &reading, control).await {
                Lookup::Fresh(found) => return Ok(found),
                Lookup::Stale(found) => {
                    if is_cacheable(&job) {
                        self.executor.refresh(key, job, reading, caller.tenant, origin);
                    }
                    return Ok(found);
                }
                Lookup::Nothing(found) => reason = found,
            }
        }
        if !is_cacheable(&job) {
            return self.run_alone(&job, key, MissReason::Nondeterministic, Some(reading), caller, origin).await;
        }
        if control.bypass {
            // The result must be newer than this request, so it does not come from an execution that is already
            // running.
            let done = job.run(&self.executor.runner, caller.tenant, origin).await?;
            let result = Arc::new(done.stored(reading.version, reading.as_of));
            self.executor.store(&self.settings.tiers, key, &result, &reading).await;
            return Ok(self.fetched(result, key, CacheUse::Miss(reason), true));
        }
        let job = Arc::new(job);
        let waiter = match self.executor.join_after(ended, key, &job, reading, caller.tenant, origin) {
            Some(waiter) => waiter,
            None => match self.look_up(&key, &reading, control).await {
                Lookup::Fresh(found) => return Ok(found),
                Lookup::Stale(_) | Lookup::Nothing(_) => self.executor.join(key, job, reading, caller.tenant, origin),
            },
        };
        let result = waiter.outcome().await?;
        Ok(self.fetched(result, key, CacheUse::Miss(reason), true))
    }

    /// Returns the key of a job's statements. Policies are part of the SQL and its values, so the key needs no further
    /// facts about the caller.
    pub(super) fn key(&self, job: &QueryJob, tenant: Option<&Arc<str>>) -> CacheKey {
        let statements = std::iter::once(&job.main).chain(&job.totals);
        self.settings.secret.key(&self.settings.warehouse, tenant.map(|tenant| &**tenant), statements, job.skip_total)
    }

    /// Runs a job for this caller alone. `reading` is the version of the data, if it was read.
    async fn run_alone(
        &self,
        job: &QueryJob,
        key: CacheKey,
        reason: MissReason,
        reading: Option<VersionReading>,
        caller: CallerOfJob<'_>,
        origin: &StatementOrigin,
    ) -> Result<Fetched, QueryRunError> {
        let unknown = || (DataVersion::UNKNOWN, self.clock.now());
        let (version, as_of) = reading.map_or_else(unknown, |reading| (reading.version, reading.as_of));
        let done = job.run(&self.executor.runner, caller.tenant, origin).await?;
        let result = Arc::new(done.stored(version, as_of));
        let is_changing = reading.is_some() && !is_cacheable(job);
        Ok(Fetched { is_changing, ..self.fetched(result, key, CacheUse::Miss(reason), false) })
    }

    async fn look_up(&self, key: &CacheKey, reading: &VersionReading, control: CacheControl) -> Lookup {
        let mut best = MissReason::Absent;
        let mut stale = None;
        for (index, tier) in self.settings.tiers.iter().enumerate() {
            let Some(result) = tier.get(key).await else { continue };
            match self.check(&result, reading, control) {
                Ok(()) => {
                    for above in &self.settings.tiers[..index] {
                        above.put(*key, Arc::clone(&result), reading.max_age).await;
                    }
                    return Lookup::Fresh(self.fetched(result, *key, CacheUse::Hit(tier.name()), true));
                }
                Err(reason) => {
                    best = reason;
                    if stale.is_none() && self.is_usable_stale(&result, reading, control) {
                        stale = Some(self.fetched(result, *key, CacheUse::Hit(tier.name()), true));
                    }
                }
            }
        }
        match stale {
            Some(found) => Lookup::Stale(Fetched { is_stale: true, ..found }),
            None => Lookup::Nothing(best),
        }
    }

    /// Checks that a stored result can be used. The error is the reason why it cannot be used.
    fn check(&self, result: &StoredResult, reading: &VersionReading, control: CacheControl) -> Result<(), MissReason> {
        let age = self.age(result);
        if result.version != reading.version {
            Err(MissReason::Outdated)
        } else if reading.max_age.is_some_and(|max_age| age >= max_age) {
            Err(MissReason::Expired)
        } else if control.max_age.is_some_and(|max_age| age > max_age) {
            Err(MissReason::TooOld)
        } else {
            Ok(())
        }
    }

    fn is_usable_stale(&self, result: &StoredResult, reading: &VersionReading, control: CacheControl) -> bool {
        let allowed = control.stale.unwrap_or(self.settings.stale);
        let age = self.age(result);
        let limit = reading.max_age.unwrap_or_default().saturating_add(allowed);
        !allowed.is_zero() && age <= limit && control.max_age.is_none_or(|max_age| age <= max_age)
    }

    fn age(&self, result: &StoredResult) -> Duration {
        Duration::try_from(self.clock.now().duration_since(result.as_of)).unwrap_or_default()
    }

    fn fetched(&self, result: Arc<StoredResult>, key: CacheKey, used: CacheUse, is_shared: bool) -> Fetched {
        let age = self.age(&result);
        Fetched { result, key, used, is_stale: false, is_shared, age, is_changing: false }
    }
}

/// The outcome of a lookup.
enum Lookup {
    Fresh(Fetched),
    Stale(Fetched),
    Nothing(MissReason),
}

/// Returns whether all statements of a job have the same result as long as their data is unchanged.
fn is_cacheable(job: &QueryJob) -> bool {
    is_deterministic(&job.main.text) && job.totals.as_ref().is_none_or(|totals| is_deterministic(&totals.text))
}
