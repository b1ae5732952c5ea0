//! The state of each rollup, as a caller may see it.
//!
//! In: the served project, publications and builds. Out: a [`RollupStatus`] for each rollup of the cubes that the
//! caller may see. Tables are left out for callers from whom rows are hidden. Not here: formats, and the selection of
//! values that only administrators see.

use std::collections::HashMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use terrane_compiler::Access;
use terrane_compiler::model::{Cube, Member};
use terrane_compiler::rollup::RollupOf;

use super::Preaggregations;
use super::task::name_of;
use crate::catalog::Snapshot;
use crate::domain::{RequestContext, Surface};
use crate::ports::preaggregations::{Publication, RollupBuild, RollupName};
use crate::ports::store::StoreError;

pub(super) type NewestBuilds = HashMap<RollupName, RollupBuild>;

/// The number of builds that are read to find the newest one of each rollup.
const RECENT_BUILDS: u32 = 5_000;

/// The state of the generation that a rollup has, compared with its definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServedState {
    /// No generation has been published.
    NotBuilt,
    Ready,
    /// The generation was built from other definitions, so queries do not read it.
    Outdated,
}

/// The state of one rollup.
#[derive(Debug, Clone)]
pub struct RollupStatus {
    pub rollup: RollupName,
    pub state: ServedState,
    pub publication: Option<Publication>,
    /// The newest build; `None` if no build is recorded.
    pub build: Option<RollupBuild>,
    /// The time of the next comparison of the tables with the rows.
    pub next_refresh_at: Option<Timestamp>,
    /// True if the tables and the progress of the build are left out, because they describe rows that policies or hooks
    /// hide from the caller.
    pub is_limited: bool,
}

impl ServedState {
    pub fn as_str(self) -> &'static str {
        match self {
            ServedState::NotBuilt => "not_built",
            ServedState::Ready => "ready",
            ServedState::Outdated => "outdated",
        }
    }
}

impl Preaggregations {
    /// Returns the state of the rollups of all cubes that the caller may see, in the order of the project.
    ///
    /// # Errors
    /// The state database cannot be read.
    pub async fn status(&self, request: &RequestContext) -> Result<Vec<RollupStatus>, StoreError> {
        let snapshot = self.ports.catalog.snapshot();
        let access = Access::of(&snapshot.model, &request.caller);
        let builds = self.newest_builds().await?;
        let visible = RollupOf::all(&snapshot.model).filter(|rollup| is_visible(rollup, &access, request));
        Ok(visible.map(|rollup| self.status_of(&rollup, &snapshot, &builds, request)).collect())
    }

    /// Reads the published generations, and returns the newest build of each rollup.
    pub(super) async fn newest_builds(&self) -> Result<NewestBuilds, StoreError> {
        self.reload_all().await?;
        let Some(backend) = &self.ports.backend else { return Ok(NewestBuilds::new()) };
        let mut newest = NewestBuilds::new();
        for build in backend.state.builds(backend.target(), RECENT_BUILDS).await? {
            newest.entry(build.rollup.clone()).or_insert(build);
        }
        Ok(newest)
    }

    /// Returns the state of one rollup of a snapshot, without details that the caller may not see.
    pub(super) fn status_of(
        &self,
        rollup: &RollupOf<'_>,
        snapshot: &Snapshot,
        builds: &NewestBuilds,
        request: &RequestContext,
    ) -> RollupStatus {
        let is_limited = !self.sees_tables(rollup, request);
        let status = self.whole_status_of(rollup, snapshot, builds);
        if !is_limited {
            return status;
        }
        RollupStatus {
            publication: status.publication.map(|published| Publication {
                extent: None,
                tables: Vec::new(),
                ..published
            }),
            build: status.build.map(without_progress),
            is_limited,
            ..status
        }
    }

    /// Returns whether a caller may see the tables of a rollup. Their number and ranges describe all rows of the cube,
    /// so the result is true only if neither policies nor hooks hide rows or times of the cube from the caller.
    pub(super) fn sees_tables(&self, rollup: &RollupOf<'_>, request: &RequestContext) -> bool {
        if request.surface == Surface::Internal {
            return true;
        }
        let access = Access::of(rollup.model, &request.caller);
        let time = rollup.rollup.time.as_ref().map(|time| time.dimension);
        let mut cubes = std::iter::once(rollup.cube.id).chain(time.map(|time| time.cube));
        !self.ports.queries.iter().any(|queries| queries.has_hooks())
            && cubes.all(|cube| access.row_filters(cube).next().is_none())
            && time.is_none_or(|time| access.mask(time).is_none() && access.offers(Member::Dimension(time)))
    }

    fn whole_status_of(&self, rollup: &RollupOf<'_>, snapshot: &Snapshot, builds: &NewestBuilds) -> RollupStatus {
        let name = name_of(rollup);
        let build = builds.get(&name).cloned();
        let publication = self.publication(&name);
        let fingerprint = rollup.fingerprint(&snapshot.profile).ok().map(|fingerprint| fingerprint.to_string());
        let state = match &publication {
            None => ServedState::NotBuilt,
            Some(published) if Some(&*published.fingerprint) == fingerprint.as_deref() => ServedState::Ready,
            Some(_) => ServedState::Outdated,
        };
        let next_refresh_at = match self.is_enabled() {
            true => self.due_at(rollup, snapshot, build.as_ref()).filter(|due| *due > Timestamp::MIN),
            false => None,
        };
        RollupStatus { rollup: name, state, publication, build, next_refresh_at, is_limited: false }
    }
}

/// Returns a build without the numbers of its tables and rows.
pub(super) fn without_progress(build: RollupBuild) -> RollupBuild {
    RollupBuild { tables_done: 0, tables_total: None, rows: None, ..build }
}

/// Returns whether a caller may see a rollup, which requires its cube and all members that it stores.
pub(super) fn is_visible(rollup: &RollupOf<'_>, access: &Access<'_>, request: &RequestContext) -> bool {
    // The operator of this machine can read all definitions.
    request.surface == Surface::Internal
        || is_cube_visible(rollup.cube, access, request) && access.sees_rollup(rollup.rollup)
}

pub(super) fn is_cube_visible(cube: &Cube, access: &Access<'_>, request: &RequestContext) -> bool {
    request.surface == Surface::Internal || (cube.public && !access.is_closed(cube))
}

/// Formats the start or end of a range of buckets as a day, or as a time without a zone.
pub fn bucket_text(micros: i64) -> String {
    let Ok(time) = Timestamp::from_microsecond(micros) else { return micros.to_string() };
    let time = time.to_zoned(TimeZone::UTC).datetime();
    if time.time() == jiff::civil::Time::midnight() { time.date().to_string() } else { time.to_string() }
}
