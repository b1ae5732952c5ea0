//! One build of one rollup: it determines the tables to build, builds them, and publishes the generation.
//!
//! In: a claimed build. Out: its end. If a build fails, is cancelled or loses its lease, its tables are dropped. Tables
//! that cannot be dropped then are orphans, which maintenance drops. Not here: the time at which a rollup is due
//! (`task`).

use std::sync::Arc;
use std::time::Duration;

use terrane_compiler::rollup::{BucketRange, ReadyPartition, RollupError, RollupOf, TooManyPartitions, TotalColumn};
use terrane_compiler::sql::dialect_profile::DialectProfile;

use super::changes::{Marks, UnexpectedAnswer, extent};
use super::{PreaggregationBackend, Preaggregations, after};
use crate::ports::audit::{AuditEntry, Detail, Details};
use crate::ports::invalidations::InvalidationScope;
use crate::ports::leases::Lease;
use crate::ports::observer::BuiltRollup;
use crate::ports::preaggregations::{
    BuildEnding, BuildOrigin, BuildState, Publication, PublishedTable, RollupBuild, RollupName,
};
use crate::ports::rollup_tables::{NewRollupTable, RollupTableError};
use crate::ports::store::StoreError;
use crate::ports::warehouse::{ResultSet, Statement, WarehouseError};
use crate::worker::TaskError;

/// The number of starts after which a failed build is not started again.
const MAX_ATTEMPTS: u32 = 5;
/// The delay before the second attempt. It doubles with each further attempt.
const FIRST_BACKOFF: Duration = Duration::from_secs(30);
/// The interval of checks whether a running build was cancelled.
const CANCEL_INTERVAL: Duration = Duration::from_secs(1);
/// One day: the margin that is added to the update window, because the range of a partition and the times of the column
/// may be in different zones.
const DAY_MICROS: i64 = 86_400_000_000;

/// The reason why a build publishes nothing.
#[derive(Debug, Clone, thiserror::Error)]
enum BuildFailure {
    #[error("the project no longer contains the pre-aggregation")]
    UnknownRollup,
    #[error(transparent)]
    Definition(#[from] RollupError),
    #[error(transparent)]
    Partitions(#[from] TooManyPartitions),
    #[error(transparent)]
    Answer(#[from] UnexpectedAnswer),
    #[error(transparent)]
    Table(#[from] RollupTableError),
    #[error(transparent)]
    Warehouse(#[from] WarehouseError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the build was cancelled")]
    Cancelled,
    #[error("another process runs the build")]
    LeaseLost,
}

impl BuildFailure {
    fn code(&self) -> &'static str {
        match self {
            BuildFailure::UnknownRollup => "UNKNOWN_PREAGGREGATION",
            BuildFailure::Definition(_) => "INVALID_DEFINITION",
            BuildFailure::Partitions(_) => "TOO_MANY_PARTITIONS",
            BuildFailure::Answer(_) => "UNEXPECTED_ANSWER",
            BuildFailure::Table(error) => error.code(),
            BuildFailure::Warehouse(_) => "WAREHOUSE_ERROR",
            BuildFailure::Store(_) => "STATE_UNAVAILABLE",
            BuildFailure::Cancelled => "CANCELLED",
            BuildFailure::LeaseLost => "LEASE_LOST",
        }
    }

    /// Returns whether another attempt may succeed without a change of the project.
    fn is_transient(&self) -> bool {
        !matches!(
            self,
            BuildFailure::UnknownRollup
                | BuildFailure::Definition(_)
                | BuildFailure::Partitions(_)
                | BuildFailure::Table(RollupTableError::NotAllowed { .. })
        )
    }
}

/// The result of a build that did not fail.
enum Built {
    Unchanged,
    Published { rows: u64, made: usize },
}

/// The tables of the next generation.
struct Plan {
    publication: Publication,
    /// The ranges of the tables to build, each with the change mark of its rows.
    missing: Vec<(Option<BucketRange>, String)>,
}

/// Tables that were built for a generation and are not published yet.
struct NewTables<'a> {
    backend: &'a PreaggregationBackend,
    made: Vec<PublishedTable>,
}

impl NewTables<'_> {
    /// Drops the tables. A table that cannot be dropped now becomes an orphan.
    async fn discard(self) {
        self.backend.tables.settle().await;
        let names: Vec<Arc<str>> = self.made.iter().map(|table| Arc::clone(&table.name)).collect();
        if names.is_empty() {
            return;
        }
        if let Err(error) = self.backend.tables.drop_tables(&names).await {
            tracing::warn!(event = "preagg_tables_not_dropped", tables = names.len(), error_message = %error);
        }
    }
}

impl Preaggregations {
    /// Runs a claimed build to its end and records it.
    pub(super) async fn run_build(
        &self,
        lease: &Lease,
        backend: &PreaggregationBackend,
        build: &RollupBuild,
    ) -> Result<(), TaskError> {
        let started = self.ports.clock.elapsed();
        let RollupName { cube, name } = &build.rollup;
        tracing::info!(event = "preagg_build_started", build_id = &*build.id, cube = &**cube, preagg = &**name);
        let outcome = self.build(lease, backend, build).await;
        let duration = self.ports.clock.elapsed().saturating_sub(started);
        let duration_ms = duration.as_secs_f64() * 1_000.0;
        let ended = |state: BuildState| {
            self.ports.observer.rollup_built(&BuiltRollup { cube, rollup: name, state: state.as_str(), duration });
        };
        let failure = match outcome {
            Ok(Built::Published { rows, made }) => {
                ended(BuildState::Success);
                tracing::info!(
                    event = "preagg_built",
                    build_id = &*build.id,
                    cube = &**cube,
                    preagg = &**name,
                    rows,
                    tables = made,
                    duration_ms,
                );
                return Ok(());
            }
            Ok(Built::Unchanged) => {
                ended(BuildState::Success);
                return self.end(lease, backend, build, &BuildEnding::Unchanged).await;
            }
            Err(failure) => failure,
        };
        let (code, message) = (failure.code().into(), failure.to_string().into());
        match failure {
            BuildFailure::LeaseLost => return Err(TaskError::LeaseLost),
            BuildFailure::Cancelled => {
                ended(BuildState::Cancelled);
                tracing::info!(
                    event = "preagg_build_cancelled",
                    build_id = &*build.id,
                    cube = &**cube,
                    preagg = &**name
                );
                // The state records the cancellation already.
                return Ok(());
            }
            _ => {}
        }
        let is_final = !failure.is_transient() || build.attempts >= MAX_ATTEMPTS;
        tracing::error!(
            event = "preagg_build_failed",
            build_id = &*build.id,
            cube = &**cube,
            preagg = &**name,
            error_type = failure.code(),
            error_message = %failure,
            attempts = build.attempts,
            is_final,
        );
        let ending = match is_final {
            true => BuildEnding::Failed { code, message },
            false => BuildEnding::Retry { due_at: self.retry_at(build.attempts), code, message },
        };
        if is_final {
            ended(BuildState::Failed);
        }
        self.end(lease, backend, build, &ending).await
    }

    async fn end(
        &self,
        lease: &Lease,
        backend: &PreaggregationBackend,
        build: &RollupBuild,
        ending: &BuildEnding,
    ) -> Result<(), TaskError> {
        // If the build was cancelled at the last moment, the state stays `Cancelled`.
        backend.state.end(lease, build, ending, self.ports.clock.now()).await?;
        Ok(())
    }

    fn retry_at(&self, attempts: u32) -> jiff::Timestamp {
        after(self.ports.clock.now(), FIRST_BACKOFF.saturating_mul(1 << attempts.saturating_sub(1).min(8)))
    }

    async fn build(
        &self,
        lease: &Lease,
        backend: &PreaggregationBackend,
        build: &RollupBuild,
    ) -> Result<Built, BuildFailure> {
        let snapshot = self.ports.catalog.snapshot();
        let rollup = RollupOf::named(&snapshot.model, &build.rollup.cube, &build.rollup.name);
        let rollup = rollup.ok_or(BuildFailure::UnknownRollup)?;
        let Some(plan) = self.plan(&rollup, &snapshot.profile, build).await? else { return Ok(Built::Unchanged) };
        backend.tables.prepare().await?;
        let mut new = NewTables { backend, made: Vec::new() };
        match self.make(lease, &rollup, &snapshot.profile, build, &plan, &mut new).await {
            Ok(()) => {}
            Err(failure) => {
                new.discard().await;
                return Err(failure);
            }
        }
        let mut publication = plan.publication;
        publication.tables.extend(new.made.iter().cloned());
        publication.published_at = self.ports.clock.now();
        let rows = publication.tables.iter().map(|table| table.rows).sum();
        let entry = self.built_entry(build, rows, new.made.len());
        match backend.state.publish(lease, build, &publication, entry).await {
            Ok(true) => {}
            Ok(false) => {
                new.discard().await;
                let state = backend.state.build(&build.id).await?.map(|build| build.state);
                let is_cancelled = state == Some(BuildState::Cancelled);
                return Err(if is_cancelled { BuildFailure::Cancelled } else { BuildFailure::LeaseLost });
            }
            // The transaction may have been committed, so the tables stay. If it was not, maintenance drops them.
            Err(error) => return Err(error.into()),
        }
        let made = new.made.len();
        // Other processes read the generation within their interval. If the reload fails, this process does the same.
        if let Err(error) = self.reload().await {
            tracing::warn!(event = "preagg_state_unknown", error_message = %error);
        }
        let scope = InvalidationScope { cube: Some(Arc::clone(&build.rollup.cube)), tenant: None };
        if let Err(error) = self.ports.invalidations.invalidate(&[scope], None).await {
            tracing::warn!(event = "invalidation_failed", error_message = %error);
        }
        Ok(Built::Published { rows, made })
    }

    /// Compares the rows with the published generation. Returns `None` if nothing has changed.
    async fn plan(
        &self,
        rollup: &RollupOf<'_>,
        profile: &DialectProfile,
        build: &RollupBuild,
    ) -> Result<Option<Plan>, BuildFailure> {
        let definition = rollup.rollup;
        let fingerprint: Arc<str> = rollup.fingerprint(profile)?.to_string().into();
        let current = self.publication(&build.rollup).filter(|current| current.fingerprint == fingerprint);
        let is_scheduled = build.origin == BuildOrigin::Schedule;
        let checked_at = self.ports.clock.now();
        let refresh_digest = self.refresh_digest(rollup).await?;
        if let Some(current) = current.as_ref().filter(|_| is_scheduled)
            && refresh_digest.is_some()
            && current.refresh_digest == refresh_digest
        {
            return Ok(None);
        }
        let extent = match rollup.extent(profile)? {
            Some(text) => extent(&self.read(&text).await?)?,
            None => None,
        };
        let marks = match definition.is_incremental {
            true => {
                let statement = rollup.change_marks(profile, None)?;
                Some(Marks::of(&self.read(&statement.text).await?, statement.step.is_some())?)
            }
            false => None,
        };
        let window = definition.update_window.map(|window| i64::try_from(window.as_micros()).unwrap_or(i64::MAX));
        let stays_open = |range: Option<BucketRange>| match (window, range, extent) {
            (Some(window), Some(range), Some([_, last])) => {
                range.end > last.saturating_sub(window).saturating_sub(DAY_MICROS)
            }
            _ => false,
        };
        let mut reused = Vec::new();
        let mut missing = Vec::new();
        for range in rollup.partitions(extent)? {
            let mark = marks.as_ref().map(|marks| marks.digest(range)).unwrap_or_default();
            let table = current.as_ref().and_then(|current| current.tables.iter().find(|table| table.range == range));
            let is_current = |table: &PublishedTable| match is_scheduled {
                true => definition.is_incremental && *table.mark == *mark && !stays_open(range),
                false => !is_requested(&build.partitions, range),
            };
            match table.filter(|table| is_current(table)) {
                Some(table) => reused.push(table.clone()),
                None => missing.push((range, mark)),
            }
        }
        let is_same = current.as_ref().is_some_and(|current| current.tables.len() == reused.len());
        if is_scheduled && missing.is_empty() && is_same {
            return Ok(None);
        }
        let publication = Publication {
            rollup: build.rollup.clone(),
            fingerprint,
            generation: 0,
            extent,
            refresh_digest,
            checked_at,
            published_at: checked_at,
            tables: reused,
        };
        Ok(Some(Plan { publication, missing }))
    }

    async fn make(
        &self,
        lease: &Lease,
        rollup: &RollupOf<'_>,
        profile: &DialectProfile,
        build: &RollupBuild,
        plan: &Plan,
        new: &mut NewTables<'_>,
    ) -> Result<(), BuildFailure> {
        let total = u32::try_from(plan.missing.len()).unwrap_or(u32::MAX);
        for (done, (range, mark)) in (0..).zip(&plan.missing) {
            self.advance(lease, new.backend, build, done, total).await?;
            let name: Arc<str> = format!("{}_{}", new.backend.target(), self.random::<8>()).into();
            let relation = new.backend.tables.relation(&name);
            let relation = ReadyPartition::relation_of(relation.iter().map(String::as_str));
            let statement = rollup.build(profile, *range)?;
            let totals = rollup.totals(profile, *range, &relation)?;
            debug_assert!(totals.columns.first().is_some_and(|rows: &TotalColumn| rows.is_exact));
            let table =
                NewRollupTable { name: Arc::clone(&name), query: statement.text, columns: statement.columns, totals };
            let built_at = self.ports.clock.now();
            let built = tokio::select! {
                built = new.backend.tables.build(&table, self.settings.build_timeout) => built?,
                stopped = self.until_stopped(lease, new.backend, build, done, total) => return Err(stopped),
            };
            let (rows, bytes, mark) = (built.rows, built.bytes, mark.as_str().into());
            new.made.push(PublishedTable { name, range: *range, rows, bytes, built_at, mark });
        }
        self.advance(lease, new.backend, build, total, total).await
    }

    /// Records the progress of a build.
    async fn advance(
        &self,
        lease: &Lease,
        backend: &PreaggregationBackend,
        build: &RollupBuild,
        done: u32,
        total: u32,
    ) -> Result<(), BuildFailure> {
        match backend.state.advance(lease, &build.id, done, total).await? {
            Some(BuildState::Running) => Ok(()),
            Some(_) => Err(BuildFailure::Cancelled),
            None => Err(BuildFailure::LeaseLost),
        }
    }

    /// Waits until the build is cancelled or another process holds its lease.
    async fn until_stopped(
        &self,
        lease: &Lease,
        backend: &PreaggregationBackend,
        build: &RollupBuild,
        done: u32,
        total: u32,
    ) -> BuildFailure {
        loop {
            tokio::time::sleep(CANCEL_INTERVAL).await;
            match self.advance(lease, backend, build, done, total).await {
                Ok(()) => {}
                // If the state database stays unavailable, the lease expires, which ends the build.
                Err(BuildFailure::Store(_)) => {}
                Err(stopped) => return stopped,
            }
        }
    }

    /// Returns the digest of the rows of the rollup's refresh query. A rollup without a refresh query uses the refresh
    /// query of its cube.
    async fn refresh_digest(&self, rollup: &RollupOf<'_>) -> Result<Option<Arc<str>>, BuildFailure> {
        let refresh = rollup.rollup.refresh.as_ref().or(rollup.cube.refresh.as_ref());
        let Some(query) = refresh.and_then(|refresh| refresh.query.as_ref()) else { return Ok(None) };
        let marks = Marks::of(&self.read(&query.text).await?, false)?;
        Ok(Some(marks.digest(None).into()))
    }

    async fn read(&self, text: &str) -> Result<ResultSet, WarehouseError> {
        self.ports.warehouse.execute(Statement::plain(text), self.settings.build_timeout).await
    }

    fn built_entry(&self, build: &RollupBuild, rows: u64, made: usize) -> AuditEntry {
        let RollupName { cube, name } = &build.rollup;
        let rows = usize::try_from(rows).unwrap_or(usize::MAX);
        let after: [(&str, Detail); 3] =
            [("build", (&*build.id).into()), ("rows", rows.into()), ("tables", made.into())];
        AuditEntry {
            at: self.ports.clock.now(),
            event: "preagg_built".into(),
            actor: build.requested_by.clone().unwrap_or_else(|| "server".into()),
            auth_method: "worker".into(),
            resource: format!("preaggregation:{cube}.{name}").into(),
            after: Some(Details::fields(after)),
            count: 1,
            ..AuditEntry::default()
        }
    }
}

/// Returns whether a request names a partition. A request without moments names all partitions.
fn is_requested(moments: &[i64], range: Option<BucketRange>) -> bool {
    match range {
        Some(range) if !moments.is_empty() => {
            moments.iter().any(|moment| range.start <= *moment && *moment < range.end)
        }
        _ => true,
    }
}
