//! Measures whose aggregate the warehouse's dialect cannot write.
//!
//! In: a model with its column types, or the plan of a query, and the dialect's profile. Out: a warning for each such
//! measure of the model, since other members can be served; an error for such a value of a query. Not here: other
//! operators of queries, whose error the printer makes.

use std::sync::Arc;

use super::aggregate_call::{approximates_percentiles, missing_template};
use super::dialect_profile::DialectProfile;
use crate::diagnostic::{Code, Diagnostic};
use crate::model::{Aggregate, AggregateFunction, Cube, Measure, MeasureKind, Model, SqlPart};
use crate::plan::LogicalPlan;
use crate::query::QueryError;

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

/// Returns the error of a statement that the dialect has no template for. If the template is that of an aggregate, the
/// error names the value of the query that needs it.
pub(crate) fn refusal(error: QueryError, plan: &LogicalPlan<'_>, profile: &DialectProfile) -> QueryError {
    let QueryError::DialectLacks { dialect, .. } = &error else { return error };
    let lacking = plan.values.iter().find_map(|value| {
        let of_value = value.expression.aggregates();
        let aggregates = of_value.into_iter().filter_map(|index| plan.aggregates.get(index));
        let mut found =
            aggregates.filter_map(|planned| Some((planned.aggregate, missing_template(planned.aggregate, profile)?)));
        found.next().map(|(aggregate, op)| (Arc::clone(&value.key), aggregate, op))
    });
    let Some((member, aggregate, op)) = lacking else { return error };
    let hint = match aggregate.function {
        AggregateFunction::CountDistinctApprox => "Change the measure to `type: count_distinct`.",
        AggregateFunction::Percentile(..) if approximates_percentiles(profile) => {
            "Add `approximate: true` to the measure if an approximate value is good enough."
        }
        _ => "Query other measures, or change the type of the measure.",
    };
    QueryError::AggregateUnsupported { member, dialect: Arc::clone(dialect), op, hint }
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
