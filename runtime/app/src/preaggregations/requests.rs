//! Requests of callers: build rollups now, and cancel a build.
//!
//! In: names, partitions, and the caller. Out: builds, with an audit record. A rollup of a cube that the caller may not
//! see does not exist for the caller. Not here: running builds (`task`).

use std::sync::Arc;

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use terrane_compiler::Access;
use terrane_compiler::rollup::RollupOf;
use terrane_compiler::text::nearest::nearest;

use super::task::name_of;
use super::{Preaggregations, status};
use crate::catalog::Snapshot;
use crate::domain::{RequestContext, Scope, Surface};
use crate::ports::preaggregations::{BuildOrigin, RollupBuild, RollupName};
use crate::ports::store::StoreError;

/// The largest number of names that an error proposes.
const MAX_NEAREST: usize = 5;
/// The largest number of partitions that a request names.
const MAX_NAMED_PARTITIONS: usize = 1_000;

/// The rollups and partitions to build.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RefreshRequest {
    /// The name of the cube; `None` for all cubes.
    pub cube: Option<String>,
    /// The name of the rollup; `None` for all rollups of the cubes.
    pub name: Option<String>,
    /// The partitions, each as any date or time in it, such as `2026-01` or `2026-01-31T08:00`, in the zone of the
    /// rollup. Empty for all partitions.
    pub partitions: Vec<String>,
}

/// The reason why nothing is built or cancelled.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RefreshError {
    #[error("pre-aggregations are not enabled on this server")]
    Disabled,
    #[error("unknown cube `{name}`")]
    UnknownCube { name: String, nearest: Vec<String> },
    #[error("cube `{cube}` has no pre-aggregation `{name}`")]
    UnknownRollup { cube: String, name: String, nearest: Vec<String> },
    #[error("pre-aggregation `{name}` of an unnamed cube")]
    NoCube { name: String },
    #[error("pre-aggregation `{cube}.{name}` is not partitioned")]
    NotPartitioned { cube: Arc<str>, name: Arc<str> },
    #[error("expected a date or time such as `2026-01` at `partitions`, found `{text}`")]
    InvalidPartition { text: String },
    #[error("at most {MAX_NAMED_PARTITIONS} partitions can be named")]
    TooManyPartitions,
    #[error("build `{id}` does not exist")]
    UnknownBuild { id: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Preaggregations {
    /// Records requests to build rollups now, even if their rows have not changed.
    ///
    /// # Errors
    /// [`RefreshError`]; nothing is recorded if a name is unknown.
    pub async fn refresh(
        &self,
        wanted: &RefreshRequest,
        request: &RequestContext,
    ) -> Result<Vec<RollupBuild>, RefreshError> {
        let Some(backend) = &self.ports.backend else { return Err(RefreshError::Disabled) };
        let snapshot = self.ports.catalog.snapshot();
        let rollups = named(&snapshot, wanted, request)?;
        if wanted.partitions.len() > MAX_NAMED_PARTITIONS {
            return Err(RefreshError::TooManyPartitions);
        }
        let partitions = wanted.partitions.iter().map(|text| moment(text));
        let partitions: Vec<i64> = partitions.collect::<Result<_, _>>()?;
        if !partitions.is_empty() {
            let whole = rollups.iter().find(|rollup| rollup.rollup.time.as_ref().is_none_or(|t| t.partition.is_none()));
            if let Some(rollup) = whole {
                let RollupName { cube, name } = name_of(rollup);
                return Err(RefreshError::NotPartitioned { cube, name });
            }
        }
        let mut builds = Vec::new();
        for rollup in rollups {
            let name = name_of(&rollup);
            let resource = format!("preaggregation:{}.{}", name.cube, name.name);
            let entry = self.ports.access.entry("preagg_refresh_requested", request, resource);
            let build = RollupBuild {
                partitions: partitions.clone(),
                requested_by: Some(Arc::clone(&request.caller.user_id)),
                ..self.new_build(backend.target(), name, BuildOrigin::Request)
            };
            let build = backend.state.enqueue(&build, Some(entry)).await?;
            builds.push(if self.sees_tables(&rollup, request) { build } else { status::without_progress(build) });
        }
        Ok(builds)
    }

    /// Cancels a pending or running build. A build that has ended is unchanged.
    ///
    /// # Errors
    /// [`RefreshError::UnknownBuild`], including for a rollup that the caller may not see.
    pub async fn cancel(&self, id: &str, request: &RequestContext) -> Result<RollupBuild, RefreshError> {
        let unknown = || RefreshError::UnknownBuild { id: id.to_owned() };
        let Some(backend) = &self.ports.backend else { return Err(RefreshError::Disabled) };
        let build = backend.state.build(id).await?.filter(|build| &*build.target == backend.target());
        let build = build.ok_or_else(unknown)?;
        let snapshot = self.ports.catalog.snapshot();
        let access = Access::of(&snapshot.model, &request.caller);
        let rollup = RollupOf::named(&snapshot.model, &build.rollup.cube, &build.rollup.name);
        let is_visible = match rollup {
            Some(rollup) => status::is_visible(&rollup, &access, request),
            // The project no longer has the rollup, so policies do not state who may see it. Only operators may cancel
            // it.
            None => request.surface == Surface::Internal || request.scopes.hold(Scope::Admin),
        };
        if !is_visible {
            return Err(unknown());
        }
        let resource = format!("preaggregation:{}.{}", build.rollup.cube, build.rollup.name);
        let mut entry = self.ports.access.entry("preagg_build_cancelled", request, resource);
        entry.reason = Some(format!("build {id}").into());
        let cancelled = backend.state.cancel(id, self.ports.clock.now(), entry).await?.ok_or_else(unknown)?;
        let sees_tables = rollup.is_none_or(|rollup| self.sees_tables(&rollup, request));
        Ok(if sees_tables { cancelled } else { status::without_progress(cancelled) })
    }
}

/// Returns the rollups that a request names.
pub(super) fn named<'m>(
    snapshot: &'m Snapshot,
    wanted: &RefreshRequest,
    request: &RequestContext,
) -> Result<Vec<RollupOf<'m>>, RefreshError> {
    let access = Access::of(&snapshot.model, &request.caller);
    let visible = || RollupOf::all(&snapshot.model).filter(|rollup| status::is_visible(rollup, &access, request));
    let proposals =
        |name: &str, known: Vec<&str>| nearest(name, known, MAX_NEAREST).into_iter().map(str::to_owned).collect();
    let Some(cube) = &wanted.cube else {
        return match &wanted.name {
            None => Ok(visible().collect()),
            Some(name) => Err(RefreshError::NoCube { name: name.clone() }),
        };
    };
    let of_cube: Vec<RollupOf<'_>> = visible().filter(|rollup| &*rollup.cube.name == cube).collect();
    let is_known = snapshot.model.cube_named(cube).is_some_and(|cube| status::is_cube_visible(cube, &access, request));
    if !is_known {
        let mut known: Vec<&str> = visible().map(|rollup| &*rollup.cube.name).collect();
        known.dedup();
        return Err(RefreshError::UnknownCube { name: cube.clone(), nearest: proposals(cube, known) });
    }
    let Some(name) = &wanted.name else { return Ok(of_cube) };
    match of_cube.iter().find(|rollup| &*rollup.rollup.name == name) {
        Some(rollup) => Ok(vec![*rollup]),
        None => {
            let known = of_cube.iter().map(|rollup| &*rollup.rollup.name).collect();
            let nearest = proposals(name, known);
            Err(RefreshError::UnknownRollup { cube: cube.clone(), name: name.clone(), nearest })
        }
    }
}

/// Parses a year, a month, a day or a time. Returns microseconds since 1970, the unit of ranges.
fn moment(text: &str) -> Result<i64, RefreshError> {
    let invalid = || RefreshError::InvalidPartition { text: text.to_owned() };
    let whole = match text.len() {
        4 => format!("{text}-01-01"),
        7 => format!("{text}-01"),
        _ => text.to_owned(),
    };
    let time =
        whole.parse::<DateTime>().or_else(|_| whole.parse::<Date>().map(|day| day.to_datetime(Time::midnight())));
    let zoned = time.map_err(|_| invalid())?.to_zoned(TimeZone::UTC).map_err(|_| invalid())?;
    Ok(zoned.timestamp().as_microsecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_named_by_a_time_in_them() {
        for (text, micros) in [
            ("1970", 0),
            ("1970-02", 31 * 86_400_000_000),
            ("1970-01-02", 86_400_000_000),
            ("1970-01-01T00:30", 1_800_000_000),
        ] {
            assert_eq!(moment(text).ok(), Some(micros), "{text}");
        }
        for text in ["", "soon", "1970-13", "01.01.1970"] {
            assert!(matches!(moment(text), Err(RefreshError::InvalidPartition { .. })), "{text}");
        }
    }
}
