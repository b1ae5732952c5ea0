//! The measures behind the values of a series, and the weight of their slices.
//!
//! In: a measure or a metric, and the access of its reader. Out: the cube whose dimensions are examined, and the
//! measure or metric that weighs slices. A metric must be one measure, or a ratio of two measures of one cube whose
//! values add up. Not here: queries.

use std::sync::Arc;

use terrane_compiler::Access;
use terrane_compiler::model::{
    AggregateFunction, Cube, Measure, MeasureId, MeasureKind, MetricFilter, MetricId, Model, Snippet, SqlPart,
};
use terrane_compiler::query::Filter;

use super::super::error::{MonitorError, NotExplained};
use crate::anomaly::visible_metric;
use crate::dimension_values::counts_rows;
use crate::domain::{SeriesValue, qualified};
use crate::metadata;
use crate::query::QuerySession;

/// The measures behind the values of a series.
pub(super) struct Parts<'m> {
    pub(super) cube: &'m Cube,
    /// True if the values of slices add up to the value.
    pub(super) is_exact: bool,
    /// True if the value is the number of rows.
    pub(super) is_row_count: bool,
    /// The name of the measure or metric that weighs slices; `None` if the reader may see none.
    pub(super) weight: Option<Arc<str>>,
    /// The filters of a metric, which apply to the weight as well.
    pub(super) filters: Vec<Filter>,
}

/// Returns the measures behind the values of a series.
///
/// # Errors
/// The reader may not see the measures, or they are not measures of one cube.
pub(super) fn of<'m>(
    access: &Access<'m>,
    session: &QuerySession<'_>,
    value: &SeriesValue,
) -> Result<Parts<'m>, MonitorError> {
    match value {
        SeriesValue::Measure { cube, measure } => {
            let cube = metadata::cube(access, cube).ok_or(MonitorError::UnknownDetection)?;
            let measure = metadata::measures(access, cube).find(|known| *known.name == *own_name(measure));
            Ok(of_measure(access, cube, measure.ok_or(MonitorError::UnknownDetection)?))
        }
        SeriesValue::Metric(name) => {
            let id = visible_metric(session, name).map_err(|_| MonitorError::UnknownDetection)?;
            of_metric(access, id).map_err(|reason| not_explained(access, id, reason))
        }
    }
}

fn of_measure<'m>(access: &Access<'m>, cube: &'m Cube, measure: &'m Measure) -> Parts<'m> {
    let offered = |wanted: &Measure| metadata::measures(access, cube).find(|measure| measure.name == wanted.name);
    let weight = denominator(access.model(), cube, measure).and_then(offered);
    let rows = weight.or_else(|| metadata::measures(access, cube).find(|measure| counts_rows(measure)));
    let rows = rows.filter(|rows| rows.name != measure.name);
    Parts {
        cube,
        is_exact: adds_up(measure),
        is_row_count: counts_rows(measure),
        weight: rows.map(|rows| qualified(&cube.name, &rows.name)),
        filters: Vec::new(),
    }
}

fn of_metric<'m>(access: &Access<'m>, id: MetricId) -> Result<Parts<'m>, NotExplained> {
    let model = access.model();
    let mut conditions = Vec::new();
    let (parts, outer) = match part_of_metric(model, id, &mut conditions).ok_or(NotExplained::Calculation)? {
        SqlPart::Divide(numerator, denominator) => (of_ratio(access, numerator, denominator)?, conditions),
        SqlPart::Measure(measure) => {
            let cube = shown_cube(access, *measure)?;
            let measure = model.measure(*measure);
            let is_ratio = denominator(model, cube, measure).is_some();
            if !is_ratio && !matches!(measure.kind, MeasureKind::Aggregate(_)) {
                return Err(NotExplained::Calculation);
            }
            (of_measure(access, cube, measure), conditions)
        }
        _ => return Err(NotExplained::Calculation),
    };
    // The metric applies its own filters in any case. The weight needs the same filters. If the reader may not filter
    // by one of their members, slices are not weighed.
    match filters(access, &outer) {
        Some(filters) => Ok(Parts { filters, ..parts }),
        None => Ok(Parts { weight: None, ..parts }),
    }
}

fn of_ratio<'m>(access: &Access<'m>, numerator: &Snippet, divisor: &Snippet) -> Result<Parts<'m>, NotExplained> {
    let model = access.model();
    let (above, below) = (bare(&numerator.parts), bare(&divisor.parts));
    let (Some(above), Some(below)) = (above, below) else { return Err(NotExplained::Calculation) };
    let measure_of = |part: &SqlPart| {
        let id = match part {
            SqlPart::Measure(id) => Some(*id),
            SqlPart::Metric(id) => match part_of_metric(model, *id, &mut Vec::new()) {
                Some(SqlPart::Measure(id)) => Some(*id),
                _ => None,
            },
            _ => None,
        };
        id.filter(|id| adds_up(model.measure(*id))).ok_or(NotExplained::Calculation)
    };
    let (above, divisor) = (measure_of(above)?, measure_of(below)?);
    if above.cube != divisor.cube {
        return Err(NotExplained::SeveralCubes);
    }
    let cube = shown_cube(access, divisor)?;
    let weight = match below {
        // If the weight is a metric, it applies its own filters.
        SqlPart::Metric(id) => Some(Arc::clone(&model.metric(*id).name)),
        _ => {
            let name = &model.measure(divisor).name;
            let is_offered = metadata::measures(access, cube).any(|measure| measure.name == *name);
            is_offered.then(|| qualified(&cube.name, name))
        }
    };
    Ok(Parts { cube, is_exact: false, is_row_count: false, weight, filters: Vec::new() })
}

/// Returns the only part of a metric. If the metric only renames or filters another metric, returns the only part of
/// that other metric. Adds the filters of all these metrics to `conditions`.
fn part_of_metric<'m>(model: &'m Model, id: MetricId, conditions: &mut Vec<&'m MetricFilter>) -> Option<&'m SqlPart> {
    let metric = model.metric(id);
    conditions.extend(&metric.filters);
    match &metric.body.parts[..] {
        [SqlPart::Metric(inner)] => part_of_metric(model, *inner, conditions),
        [part] => Some(part),
        _ => None,
    }
}

/// Returns the cube of a measure, if the reader may see it.
fn shown_cube<'m>(access: &Access<'m>, id: MeasureId) -> Result<&'m Cube, NotExplained> {
    let cube = access.model().cube(id.cube);
    if metadata::is_shown(access, cube) { Ok(cube) } else { Err(NotExplained::PrivateCube) }
}

/// Returns filters of metrics as filters of a query; `None` if the reader may not filter by one of their members.
fn filters(access: &Access<'_>, conditions: &[&MetricFilter]) -> Option<Vec<Filter>> {
    let filter = |condition: &&MetricFilter| {
        let member = metadata::has_dimension(access, &condition.member).then_some(&condition.member)?;
        let operator = condition.operator.parse().ok()?;
        Some(Filter::Condition { member: member.parse().ok()?, operator, values: condition.values.clone() })
    };
    conditions.iter().map(filter).collect()
}

/// Returns the error, with the measures of the metric that the reader can monitor instead.
fn not_explained(access: &Access<'_>, id: MetricId, reason: NotExplained) -> MonitorError {
    let model = access.model();
    let cubes = model.facts_of_metric(id).into_iter().map(|cube| model.cube(cube));
    let shown = cubes.filter(|cube| metadata::is_shown(access, cube));
    let of_cube = |cube| metadata::measures(access, cube).map(|measure: &Measure| qualified(&cube.name, &measure.name));
    let used = measures_of_metric(model, id);
    let measures = shown.flat_map(of_cube).filter(|name| used.contains(name)).collect();
    MonitorError::NotExplained { metric: Arc::clone(&model.metric(id).name), reason, measures }
}

/// Returns the names of the measures that a metric refers to.
fn measures_of_metric(model: &Model, id: MetricId) -> Vec<Arc<str>> {
    let (mut open, mut visited, mut found) = (vec![id], vec![id], Vec::new());
    while let Some(id) = open.pop() {
        model.metric(id).body.for_each(&mut |part| match part {
            SqlPart::Measure(id) => found.push(qualified(&model.cube(id.cube).name, &model.measure(*id).name)),
            SqlPart::Metric(id) if !visited.contains(id) => {
                visited.push(*id);
                open.push(*id);
            }
            _ => {}
        });
    }
    found
}

fn own_name(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(_, name)| name)
}

/// Returns the denominator of a ratio, if it is a measure of the same cube whose values add up.
fn denominator<'m>(model: &'m Model, cube: &Cube, measure: &Measure) -> Option<&'m Measure> {
    let MeasureKind::Number(snippet) = &measure.kind else { return None };
    let [SqlPart::Divide(_, divisor)] = &snippet.parts[..] else { return None };
    let Some(SqlPart::Measure(id)) = bare(&divisor.parts) else { return None };
    let divisor = model.measure(*id);
    (model.cube(id.cube).name == cube.name && adds_up(divisor)).then_some(divisor)
}

/// Returns the measure or metric that is the only part of a snippet. It may be within `NULLIF(…, 0)`.
fn bare(parts: &[SqlPart]) -> Option<&SqlPart> {
    match parts {
        [part] => Some(part),
        [SqlPart::Text(before), part, SqlPart::Text(after)] if is_nullif(before, after) => Some(part),
        _ => None,
    }
}

/// Returns whether the SQL before and after a member is that of `NULLIF(…, 0)`.
fn is_nullif(before: &str, after: &str) -> bool {
    let bare = |text: &str| text.replace(char::is_whitespace, "");
    bare(before).eq_ignore_ascii_case("NULLIF(") && bare(after) == ",0)"
}

/// Returns whether the values of a measure's groups add up to its value.
fn adds_up(measure: &Measure) -> bool {
    matches!(&measure.kind, MeasureKind::Aggregate(aggregate)
        if matches!(aggregate.function, AggregateFunction::Count | AggregateFunction::Sum))
}
