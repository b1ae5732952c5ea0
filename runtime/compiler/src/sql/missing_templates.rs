//! Measures whose aggregate the warehouse's dialect cannot write.
//!
//! In: a model with its column types, and the dialect's profile. Out: a warning for each such measure, since other
//! members can be served. Not here: operators of queries, which are known only when a query arrives.

use super::aggregate_call::{approximates_percentiles, missing_template};
use super::dialect_profile::DialectProfile;
use crate::diagnostic::{Code, Diagnostic};
use crate::model::{Aggregate, AggregateFunction, Cube, Measure, MeasureKind, Model, SqlPart};

/// Returns a warning for every measure that queries of this warehouse cannot use. Each place is reported once,
/// although cubes that extend another cube share its measures.
pub fn missing_templates(model: &Model, profile: &DialectProfile) -> Vec<Diagnostic> {
    let mut missing: Vec<Diagnostic> = Vec::new();
    for cube in model.cubes.iter().filter(|cube| cube.alias_of.is_none()) {
        for diagnostic in cube.measures.iter().filter_map(|measure| of_measure(cube, measure, profile)) {
            if diagnostic.span.is_none() || missing.iter().all(|other| other.span != diagnostic.span) {
                missing.push(diagnostic);
            }
        }
    }
    missing
}

fn of_measure(cube: &Cube, measure: &Measure, profile: &DialectProfile) -> Option<Diagnostic> {
    let mut aggregates = aggregates(&measure.kind).into_iter();
    let (aggregate, op) = aggregates.find_map(|aggregate| Some((aggregate, missing_template(aggregate, profile)?)))?;
    let name = &profile.name;
    let message =
        format!("measure `{}.{}` needs `{op}`, which the dialect `{name}` does not have", cube.name, measure.name);
    let hint = match aggregate.function {
        AggregateFunction::CountDistinctApprox => "Write `type: count_distinct`.",
        AggregateFunction::Percentile(..) if approximates_percentiles(profile) => {
            "Write `approximate: true` if an approximate value is good enough."
        }
        _ => "Remove it, or choose another type. Queries of the measure are refused.",
    };
    let warning = Diagnostic::warning(Code::UnsupportedAggregate, message).hint(hint);
    Some(match measure.sql_span.as_ref().or(measure.span.as_ref()) {
        Some(span) => warning.at(span.clone()),
        None => warning,
    })
}

/// Returns the aggregates that a measure itself computes over rows. Measures that it names are reported separately.
fn aggregates(kind: &MeasureKind) -> Vec<&Aggregate> {
    match kind {
        MeasureKind::Aggregate(aggregate)
        | MeasureKind::RunningTotal { aggregate, .. }
        | MeasureKind::Rolling { aggregate, .. } => vec![aggregate],
        MeasureKind::Number(snippet) => {
            let mut found: Vec<&Aggregate> = Vec::new();
            snippet.for_each(&mut |part| {
                if let SqlPart::Aggregate(aggregate) = part {
                    found.push(aggregate);
                }
            });
            found
        }
    }
}
