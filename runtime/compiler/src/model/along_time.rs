//! Warns of measures along time that no query can use.
//!
//! In: a model. Out: a warning for each rolling window and running total whose cube reaches no time dimension. Not
//! here: queries without a granularity, which are refused (`resolve`).

use super::join_graph::JoinPaths;
use super::{Cube, DimensionType, Measure, MeasureKind, Model};
use crate::diagnostic::{Code, Diagnostic};

/// Adds a warning for each rolling window and running total whose cube reaches no time dimension. A measure that other
/// cubes inherit is reported once.
pub(super) fn warn_without_time(model: &Model, diagnostics: &mut Vec<Diagnostic>) {
    for cube in model.cubes.iter().filter(|cube| cube.alias_of.is_none()) {
        let along_time: Vec<&Measure> = cube.measures.iter().filter(|measure| key_of(measure).is_some()).collect();
        if along_time.is_empty() || reaches_time(model, cube) {
            continue;
        }
        for measure in along_time {
            let is_reported = |known: &Diagnostic| known.code == Code::MisplacedField && known.span == measure.span;
            if !diagnostics.iter().any(is_reported) {
                diagnostics.push(warning(cube, measure));
            }
        }
    }
}

/// Returns the key in the project that makes the measure depend on a time axis.
fn key_of(measure: &Measure) -> Option<&'static str> {
    match measure.kind {
        MeasureKind::Rolling { .. } => Some("`rolling_window`"),
        MeasureKind::RunningTotal { .. } => Some("`type: running_total`"),
        MeasureKind::Aggregate(_) | MeasureKind::Number(_) => None,
    }
}

fn reaches_time(model: &Model, cube: &Cube) -> bool {
    let has_time = |cube: &Cube| cube.dimensions.iter().any(|dimension| dimension.ty == DimensionType::Time);
    has_time(cube) || JoinPaths::from(model, cube.id).all().any(|id| has_time(model.cube(id)))
}

fn warning(cube: &Cube, measure: &Measure) -> Diagnostic {
    let key = key_of(measure).unwrap_or_default();
    let message = format!("measure `{}.{}` has {key}, and its cube has no time dimension", cube.name, measure.name);
    let hint = "Add a dimension of `type: time`. Queries of the measure need one with a granularity.";
    let warning = Diagnostic::warning(Code::MisplacedField, message).hint(hint);
    match &measure.span {
        Some(span) => warning.at(span.clone()),
        None => warning,
    }
}
