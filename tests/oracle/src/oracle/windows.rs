//! Rolling windows: the rows around each step (see "Rolling windows" in `runtime/docs/reference/project.md`).
//!
//! In: the rows of a fact before the range of the axis is applied, each with its groups and times. Out: the inputs of
//! each aggregate, for each group whose window contains rows.

use std::collections::{BTreeMap, BTreeSet};

use terrane_compiler::types::Granularity;

use super::calc::Calculation;
use super::facts::{Placed, Windows};
use super::steps::{Along, Span};
use super::{Code, Construct, Evaluation, labels};
use crate::value::Value;
use crate::world::{ColumnType, Expr, Length, Window};

/// Collects the rows in the windows of all steps. `rows` contains the rows of each cube, by the cube's name.
pub(crate) fn windows(
    evaluation: &Evaluation<'_>,
    along: &Along,
    span: Option<Span>,
    calculation: &Calculation<'_, '_>,
    rows: &BTreeMap<String, Vec<Placed>>,
) -> Windows {
    evaluation.uses(Construct::Rolling);
    let mut windows = Windows { inputs: BTreeMap::new(), columns: along.columns() };
    let steps = span.map(|span| along.steps(span)).unwrap_or_default();
    for (index, window) in &calculation.rolling {
        let placed = rows.get(&calculation.wanted[*index].cube).map_or(&[][..], Vec::as_slice);
        let mut groups: BTreeMap<Vec<Value>, Vec<Value>> = BTreeMap::new();
        for (start, end) in &steps {
            let (low, high) = ends(window, *start, *end);
            let is_within = |time: i64| low.is_none_or(|low| low <= time) && high.is_none_or(|high| time < high);
            for row in placed {
                let Some(input) = &row.measured.inputs[*index] else { continue };
                let counted: BTreeSet<&Vec<Value>> =
                    row.places.iter().filter(|(_, time)| time.is_some_and(is_within)).map(|(key, _)| key).collect();
                for others in counted {
                    groups.entry(along.key(others, *start)).or_default().push(input.clone());
                }
            }
            // A group exists if its window contains a row, even if the aggregate does not use the row.
            for (others, time) in placed.iter().flat_map(|row| &row.places) {
                if time.is_some_and(is_within) {
                    groups.entry(along.key(others, *start)).or_default();
                }
            }
        }
        windows.inputs.insert(*index, groups);
    }
    windows
}

/// Refuses windows in hours along a column of dates.
pub(crate) fn check(evaluation: &Evaluation<'_>, along: &Along, calculation: &Calculation<'_, '_>) {
    for (index, window) in &calculation.rolling {
        let lengths = [&window.trailing, &window.leading];
        let has_hours =
            lengths.into_iter().flatten().filter_map(Length::units).any(|(_, unit)| unit < Granularity::Day);
        let axis = along.group().of_fact(evaluation, &calculation.wanted[*index].cube);
        if has_hours && axis.as_ref().is_some_and(|axis| is_date(evaluation, &axis.cube, &axis.dimension)) {
            evaluation.refuse(Code::InvalidQuery);
        }
        if along.columns().len() > 1 && axis_is_masked(evaluation, along, &calculation.wanted[*index].cube) {
            evaluation.leave_open("windows along a masked time with several granularities");
        }
    }
}

fn axis_is_masked(evaluation: &Evaluation<'_>, along: &Along, fact: &str) -> bool {
    let axis = along.group().of_fact(evaluation, fact);
    axis.is_some_and(|axis| evaluation.world.mask(&axis.cube, &axis.dimension).is_some())
}

fn is_date(evaluation: &Evaluation<'_>, cube: &str, dimension: &str) -> bool {
    let Some(of) = evaluation.world.behind(cube) else { return false };
    let Some(Expr::Column { cube: None, column }) = of.dimension(dimension).map(|dimension| &dimension.sql) else {
        return false;
    };
    of.columns.get(*column).is_some_and(|column| column.ty == ColumnType::Date)
}

/// Returns the first moment of a step's window, and the first moment after it; `None` for an unbounded end.
fn ends(window: &Window, start: i64, end: i64) -> (Option<i64>, Option<i64>) {
    let anchor = if window.is_from_start { start } else { end };
    let edge = |length: &Option<Length>, sign: i64| match length {
        None => Some(anchor),
        Some(length) => length.units().map(|(count, unit)| labels::moved(anchor, sign * count, unit)),
    };
    (edge(&window.trailing, -1), edge(&window.leading, 1))
}
