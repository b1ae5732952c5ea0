//! Cardinality: the number of distinct values divided by the number of rows. A cardinality above 0.9 is high, and one
//! below 0.001 is very low.
//!
//! Three kinds of columns are not checked: keys, whose cardinality should be high; booleans, whose cardinality cannot
//! be high; and columns of measures.

use terrane_sdk::LogicalType;
use terrane_sdk::check::{Aggregate, Column, Finding, Planner, QualityDimension, Severity};

use crate::Look;

const HIGH: f64 = 0.9;
const VERY_LOW: f64 = 0.001;

fn is_judged(column: &Column) -> bool {
    use LogicalType::{Binary, Boolean, Geo, Unknown};
    !column.is_measure && !matches!(column.ty, Boolean | Geo | Binary | Unknown)
}

pub(crate) fn ask(planner: &mut Planner, index: usize, column: &Column) {
    if is_judged(column) {
        planner.ask(index, Aggregate::DistinctCount);
    }
}

fn counted(count: f64, noun: &str) -> String {
    let ending = if count == 1.0 { "" } else { "s" };
    format!("{count:.0} {noun}{ending}")
}

pub(crate) fn assess(look: &Look<'_>) -> Option<Finding> {
    if !is_judged(look.column) || look.is_key {
        return None;
    }
    let distinct = look.number(&Aggregate::DistinctCount)?;
    let ratio = distinct / look.rows;
    let (code, words) = match ratio {
        ratio if ratio > HIGH => ("high_cardinality", "high"),
        ratio if ratio < VERY_LOW => ("very_low_cardinality", "very low"),
        _ => return None,
    };
    let name = &look.column.member;
    let (values, rows) = (counted(distinct, "distinct value"), counted(look.rows, "row"));
    let message = format!("`{name}` has {words} cardinality: {values} in {rows}");
    let finding = Finding::new(look.index, QualityDimension::Other, Severity::Info, code, &message);
    let finding = finding.with_evidence("distinct", &format!("{distinct:.0}"));
    Some(finding.with_evidence("ratio", &format!("{ratio:.6}")))
}
