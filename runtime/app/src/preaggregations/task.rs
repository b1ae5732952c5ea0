//! The worker's task: enqueues rollups that are due, runs builds, and keeps tables and state in order.
//!
//! In: the worker's lease. Out: builds that ended, tables that were dropped. Not here: one build (`build`).

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use terrane_compiler::rollup::RollupOf;

use super::{BUILDING, PreaggregationBackend, Preaggregations, after, before};
use crate::catalog::Snapshot;
use crate::ports::leases::Lease;
use crate::ports::preaggregations::{BuildOrigin, BuildState, Publication, RollupBuild, RollupName};
use crate::ports::store::StoreError;
use crate::worker::{Progress, Schedule, Task, TaskError};

/// The time between two checks for due rollups and builds.
const POLL: Duration = Duration::from_secs(1);
/// The time between two runs of maintenance.
const MAINTENANCE: Duration = Duration::from_secs(60);
/// The number of builds that are read to find the rollups that are due.
const RECENT_BUILDS: u32 = 5_000;

#[async_trait]
impl Task for Preaggregations {
    fn name(&self) -> &'static str {
        BUILDING
    }

    fn schedule(&self) -> Schedule {
        Schedule::DueTime { poll: POLL }
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        let Some(backend) = &self.ports.backend else { return Ok(None) };
        let now = self.ports.clock.now();
        let check = {
            let progress = self.progress();
            let is_maintained =
                progress.maintained.is_some_and(|at| self.ports.clock.elapsed().saturating_sub(at) < MAINTENANCE);
            let snapshot = self.ports.catalog.snapshot();
            let is_planned = progress.snapshot.as_ref().is_some_and(|planned| Arc::ptr_eq(planned, &snapshot));
            match is_maintained && is_planned {
                true => progress.next_check,
                false => Some(now),
            }
        };
        if check.is_some_and(|check| check <= now) {
            return Ok(check);
        }
        let pending = backend.state.next_due(backend.target()).await?;
        Ok(check.into_iter().chain(pending).min())
    }

    async fn run(&self, lease: &Lease) -> Result<Progress, TaskError> {
        self.work(lease).await
    }
}

impl Preaggregations {
    /// Runs all builds that are due, under the lease of [`BUILDING`].
    ///
    /// # Errors
    /// [`TaskError`]; generations that were published before stay.
    pub async fn work(&self, lease: &Lease) -> Result<Progress, TaskError> {
        let Some(backend) = &self.ports.backend else { return Ok(Progress::Complete) };
        self.reload_all().await?;
        self.take_over(lease, backend).await?;
        self.maintain(lease, backend).await?;
        self.enqueue_due(backend).await?;
        while let Some(build) = backend.state.claim(lease, backend.target(), self.ports.clock.now()).await? {
            self.run_build(lease, backend, &build).await?;
            // A run of many builds may take hours. Maintenance in between drops tables that were retired in the
            // meantime.
            self.maintain(lease, backend).await?;
        }
        self.reload_all().await?;
        self.set_next_check();
        Ok(Progress::Complete)
    }

    /// Sets builds to pending that another process started and did not end.
    async fn take_over(&self, lease: &Lease, backend: &PreaggregationBackend) -> Result<(), TaskError> {
        if self.progress().fence == Some(lease.fence) {
            return Ok(());
        }
        let requeued = backend.state.requeue(lease, backend.target(), self.ports.clock.now()).await?;
        if requeued > 0 {
            tracing::warn!(event = "preagg_builds_taken_over", builds = requeued);
        }
        let mut progress = self.progress();
        (progress.fence, progress.maintained) = (Some(lease.fence), None);
        Ok(())
    }

    /// Withdraws generations that lack a table, and drops retired tables and orphans. If the warehouse does not answer,
    /// this is repeated later.
    async fn maintain(&self, lease: &Lease, backend: &PreaggregationBackend) -> Result<(), TaskError> {
        let elapsed = self.ports.clock.elapsed();
        if self.progress().maintained.is_some_and(|at| elapsed.saturating_sub(at) < MAINTENANCE) {
            return Ok(());
        }
        self.progress().maintained = Some(elapsed);
        let has_rollups = RollupOf::all(&self.ports.catalog.snapshot().model).next().is_some();
        if !has_rollups && self.published().is_empty() {
            return Ok(());
        }
        let (tables, target) = (&backend.tables, backend.target());
        let listed = async {
            tables.prepare().await?;
            tables.tables().await
        };
        let there: HashSet<Arc<str>> = match listed.await {
            Ok(there) => there.into_iter().collect(),
            Err(error) => {
                tracing::warn!(event = "preagg_tables_unknown", error_message = %error);
                return Ok(());
            }
        };
        self.withdraw_unusable(lease, backend, &there).await?;
        let now = self.ports.clock.now();
        let retired = backend.state.retired(target, before(now, self.settings.drop_after)).await?;
        let known: HashSet<Arc<str>> = backend.state.tables(target).await?.into_iter().collect();
        let orphans = there.iter().filter(|table| !known.contains(*table)).cloned();
        let unwanted: Vec<Arc<str>> = retired.iter().cloned().chain(orphans).collect();
        if !unwanted.is_empty() {
            match tables.drop_tables(&unwanted).await {
                Ok(()) if !backend.state.forget(lease, &retired).await? => return Err(TaskError::LeaseLost),
                Ok(()) => tracing::info!(event = "preagg_tables_dropped", tables = unwanted.len()),
                Err(error) => {
                    tracing::warn!(event = "preagg_tables_not_dropped", tables = unwanted.len(), error_message = %error);
                }
            }
        }
        backend.state.prune_builds(lease, target, before(now, self.settings.history)).await?;
        Ok(())
    }

    /// Withdraws two kinds of generations: generations with a table that the warehouse no longer has, for example after
    /// a backup was restored; and generations of rollups that the project has not had for a long time.
    async fn withdraw_unusable(
        &self,
        lease: &Lease,
        backend: &PreaggregationBackend,
        there: &HashSet<Arc<str>>,
    ) -> Result<(), TaskError> {
        let now = self.ports.clock.now();
        let snapshot = self.ports.catalog.snapshot();
        let published = self.published();
        let is_complete =
            |publication: &Publication| publication.tables.iter().all(|table| there.contains(&table.name));
        let is_abandoned = |publication: &Publication| {
            let RollupName { cube, name } = &publication.rollup;
            let is_old = publication.checked_at < before(now, self.settings.history);
            is_old && RollupOf::named(&snapshot.model, cube, name).is_none()
        };
        let mut unwanted: Vec<RollupName> = Vec::new();
        for publication in published.iter() {
            if !is_complete(publication) {
                let RollupName { cube, name } = &publication.rollup;
                tracing::error!(event = "preagg_tables_missing", cube = &**cube, preagg = &**name);
                unwanted.push(publication.rollup.clone());
            } else if is_abandoned(publication) {
                unwanted.push(publication.rollup.clone());
            }
        }
        if unwanted.is_empty() {
            return Ok(());
        }
        if !backend.state.withdraw(lease, backend.target(), &unwanted, now).await? {
            return Err(TaskError::LeaseLost);
        }
        Ok(self.reload().await?)
    }

    /// Adds pending builds of the rollups that are due.
    async fn enqueue_due(&self, backend: &PreaggregationBackend) -> Result<(), TaskError> {
        let snapshot = self.ports.catalog.snapshot();
        let now = self.ports.clock.now();
        let builds = backend.state.builds(backend.target(), RECENT_BUILDS).await?;
        for rollup in RollupOf::all(&snapshot.model) {
            let name = name_of(&rollup);
            let newest = builds.iter().find(|build| build.rollup == name);
            if newest.is_some_and(|build| !build.state.is_ended()) {
                continue;
            }
            if self.due_at(&rollup, &snapshot, newest).is_some_and(|due| due <= now) {
                let build = self.new_build(backend.target(), name, BuildOrigin::Schedule);
                backend.state.enqueue(&build, None).await?;
            }
        }
        self.progress().snapshot = Some(snapshot);
        Ok(())
    }

    /// Returns the time at which a rollup is next compared with its rows; `None` if no comparison is due at any time.
    pub(super) fn due_at(
        &self,
        rollup: &RollupOf<'_>,
        snapshot: &Snapshot,
        newest: Option<&RollupBuild>,
    ) -> Option<Timestamp> {
        let refresh = rollup.rollup.refresh.as_ref().or(rollup.cube.refresh.as_ref());
        let every = refresh.and_then(|refresh| refresh.every).unwrap_or(self.settings.refresh_every);
        // A build that failed or was cancelled is repeated only after the interval.
        let ended = newest.filter(|build| matches!(build.state, BuildState::Failed | BuildState::Cancelled));
        let ended = ended.and_then(|build| build.ended_at).map(|ended| after(ended, every));
        // If the fingerprint cannot be computed, the rollup is due, and its build reports the problem.
        let fingerprint = rollup.fingerprint(&snapshot.profile).ok().map(|fingerprint| fingerprint.to_string());
        let current = self.publication(&name_of(rollup));
        let current = current.filter(|current| Some(&*current.fingerprint) == fingerprint.as_deref());
        let checked = match current {
            Some(current) => after(current.checked_at, every),
            None => Timestamp::MIN,
        };
        Some(ended.map_or(checked, |ended| ended.max(checked)))
    }

    fn set_next_check(&self) {
        let Some(snapshot) = self.progress().snapshot.clone() else { return };
        let now = self.ports.clock.now();
        let due = RollupOf::all(&snapshot.model).filter_map(|rollup| self.due_at(&rollup, &snapshot, None));
        // This function does not read the builds, so a rollup whose build failed counts as due. A later run corrects
        // the time.
        let next = due.map(|due| if due <= now { after(now, MAINTENANCE / 4) } else { due }).min();
        self.progress().next_check = next;
    }

    pub(super) fn new_build(&self, target: &str, rollup: RollupName, origin: BuildOrigin) -> RollupBuild {
        RollupBuild::pending(self.random::<16>(), target, rollup, origin, self.ports.clock.now())
    }
}

pub(super) fn name_of(rollup: &RollupOf<'_>) -> RollupName {
    RollupName { cube: Arc::clone(&rollup.cube.name), name: Arc::clone(&rollup.rollup.name) }
}
