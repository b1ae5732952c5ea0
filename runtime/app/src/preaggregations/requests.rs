//! Requests of callers: build rollups now, and cancel a build.
//!
//! In: names, partitions, and the caller. Out: builds, with an audit record. A rollup of a cube that the caller may not
//! see does not exist for the caller. Not here: running builds (`task`).

use std::sync::Arc;

use terrane_compiler::Access;
use terrane_compiler::rollup::{RollupOf, moment_in_partition};
use terrane_compiler::text::nearest::nearest;
use terrane_compiler::types::Granularity;

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
    /// The partitions, each as any date, time or period in it, such as `2026-Q1`, `2026-01` or `2026-01-31T08:00`, in
    /// the zone of the rollup. Empty for all partitions.
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
    #[error("expected a date, time or period such as `{example}` at `partitions`, found `{text}`")]
    InvalidPartition { text: String, example: &'static str },
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
        let partitions = partitions(&wanted.partitions, &rollups)?;
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

/// Returns a moment in each named partition, in microseconds since 1970, the unit of ranges.
fn partitions(names: &[String], rollups: &[RollupOf<'_>]) -> Result<Vec<i64>, RefreshError> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let lengths = rollups.iter().map(|of| (of, of.rollup.time.as_ref().and_then(|time| time.partition)));
    if let Some((whole, _)) = lengths.clone().find(|(_, length)| length.is_none()) {
        let RollupName { cube, name } = name_of(whole);
        return Err(RefreshError::NotPartitioned { cube, name });
    }
    let length = lengths.filter_map(|(_, length)| length).next().unwrap_or(Granularity::Month);
    let moment = |text: &String| {
        let invalid = || RefreshError::InvalidPartition { text: text.clone(), example: example(length) };
        moment_in_partition(text).ok_or_else(invalid)
    };
    names.iter().map(moment).collect()
}

/// Returns the name of a partition of a length.
fn example(length: Granularity) -> &'static str {
    match length {
        Granularity::Year => "2026",
        Granularity::Quarter => "2026-Q1",
        Granularity::Month => "2026-01",
        Granularity::Week => "2026-W05",
        Granularity::Day => "2026-01-31",
        Granularity::Hour => "2026-01-31T08",
        Granularity::Minute | Granularity::Second => "2026-01-31T08:00",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_of_every_length_have_an_example() {
        let day = 86_400_000_000;
        for (length, start) in [
            (Granularity::Year, 0),
            (Granularity::Quarter, 0),
            (Granularity::Month, 0),
            (Granularity::Week, 25 * day),
            (Granularity::Day, 30 * day),
            (Granularity::Hour, 30 * day + 8 * 3_600_000_000),
            (Granularity::Minute, 30 * day + 8 * 3_600_000_000),
        ] {
            let since_2026 = moment_in_partition(example(length)).map(|micros| micros - 20_454 * day);
            assert_eq!(since_2026, Some(start), "{length}");
        }
    }
}
