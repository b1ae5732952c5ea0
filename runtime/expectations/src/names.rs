//! Finds unknown names in the queries of cases, without a warehouse.
//!
//! In: a model, the definitions that it was built from, and cases. Out: a diagnostic for each name of a query that is
//! unknown or of a different kind. A name is not reported if its definition was left out of the model, because the
//! reason for that was already reported. Not here: refusals for other reasons (`check`).

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use serde_json::Value;
use terrane_app::query::QueryRunError;
use terrane_compiler::diagnostic::Diagnostic;
use terrane_compiler::model::Model;
use terrane_compiler::project::{CubeDefinition, Definitions};
use terrane_compiler::query::QueryError;
use terrane_compiler::{Authorized, Environment, resolve};

use crate::check::place;
use crate::expected::Expected;
use crate::read::{Expectation, refused_problem};
use crate::refusal::{Refusal, parse};

/// The largest number of names that are reported for one query.
const MAX_NAMES: usize = 20;

/// Returns a diagnostic for each unknown name in the queries of cases that expect rows.
pub fn check_names(model: &Model, definitions: &Definitions, cases: &[Expectation]) -> Vec<Diagnostic> {
    let omitted = omitted(model, definitions);
    let environment = environment();
    let is_omitted = |name: &str| name.split('.').any(|part| omitted.contains(part));
    let mut problems = Vec::new();
    for case in cases.iter().filter(|case| !matches!(case.expected, Expected::Error { .. })) {
        let authorized = Authorized::without_hooks(model, &case.caller.caller);
        let access = authorized.access();
        let mut query = case.query.clone();
        for _ in 0..MAX_NAMES {
            let Ok(parsed) = parse(&query) else { break };
            let Err(error) = resolve(&access, &parsed, &environment) else { break };
            let Some(name) = unknown_name(&error) else { break };
            let is_removed = remove(&mut query, &name);
            if !is_omitted(&name) {
                let refusal = Refusal::from(QueryRunError::Query(error));
                problems.push(refused_problem(&case.name, &refusal).at(place(case, &refusal)));
            }
            if !is_removed {
                break;
            }
        }
    }
    problems
}

/// Returns an environment for resolving names, which depend neither on the time nor on limits.
fn environment() -> Environment {
    Environment {
        now: Timestamp::UNIX_EPOCH,
        zones: TimeZoneDatabase::bundled(),
        default_timezone: TimeZone::UTC,
        default_limit: 1,
        max_limit: u64::MAX,
        limit_advice: "",
        rollups: Arc::default(),
    }
}

/// Returns the name that an error is about, if the name is unknown or of a different kind than the query needs.
fn unknown_name(error: &QueryError) -> Option<Arc<str>> {
    match error {
        QueryError::UnknownCube { name, .. }
        | QueryError::UnknownMetric { name, .. }
        | QueryError::UnknownMeasure { name, .. }
        | QueryError::UnknownDimension { name, .. }
        | QueryError::UnknownSegment { name, .. }
        | QueryError::WrongKind { name, .. } => Some(Arc::clone(name)),
        _ => None,
    }
}

/// Removes each list item that is this name, or is a mapping with this name as a value. Returns true if it removed any.
fn remove(query: &mut Value, name: &str) -> bool {
    match query {
        Value::Array(items) => {
            let count = items.len();
            items.retain(|item| match item {
                Value::String(text) => text != name,
                Value::Object(map) => !map.values().any(|value| value.as_str() == Some(name)),
                _ => true,
            });
            let is_shorter = items.len() < count;
            items.iter_mut().fold(is_shorter, |is_removed, item| remove(item, name) | is_removed)
        }
        Value::Object(map) => map.values_mut().fold(false, |is_removed, value| remove(value, name) | is_removed),
        _ => false,
    }
}

/// Returns the names that are defined but missing in the model.
fn omitted(model: &Model, definitions: &Definitions) -> BTreeSet<Arc<str>> {
    let mut names = definitions.unread.clone();
    for cube in &definitions.cubes {
        let Some(built) = model.cube_named(&cube.name.value) else {
            names.insert(Arc::clone(&cube.name.value));
            continue;
        };
        names.extend(members(cube).filter(|name| built.member(name).is_none()).cloned());
    }
    let metrics = definitions.metrics.iter().map(|metric| &metric.name.value);
    names.extend(metrics.filter(|name| model.metric_named(name).is_none()).cloned());
    names
}

fn members(cube: &CubeDefinition) -> impl Iterator<Item = &Arc<str>> {
    let measures = cube.measures.iter().map(|measure| &measure.name.value);
    let dimensions = cube.dimensions.iter().map(|dimension| &dimension.name.value);
    measures.chain(dimensions).chain(cube.segments.iter().map(|segment| &segment.name.value))
}
