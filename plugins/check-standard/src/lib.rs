//! The first-party checks: completeness, validity, uniqueness, consistency, accuracy, outliers, skewness, cardinality
//! and booleans.
//!
//! In: a cube's columns, then the aggregates that the warehouse computed for them. Out: a score for each quality
//! dimension that applies to a column, even if the score is 1, and observations without a score. Each module documents
//! its rules. The default thresholds (`quality_thresholds`) are listed in
//! `runtime/docs/reference/detectors-and-checks.md`.

mod boolean;
mod cardinality;
mod completeness;
mod consistency;
mod distribution;
mod settings;
mod uniqueness;
mod validity;

use terrane_sdk::check::{
    Aggregate, Answer, Answers, Check, Column, Finding, Plan, Planner, QualityDimension, Severity,
};
use terrane_sdk::filter::Filter;
use terrane_sdk::{CallContext, LogicalType, PluginError, PluginInfo};

use settings::Thresholds;

/// The component.
pub struct Standard;

impl Check for Standard {
    const INFO: PluginInfo = PluginInfo::new("check-standard", "0.1.0", "Standard checks");

    fn make_plan(context: &CallContext, columns: &[Column]) -> Result<Plan, PluginError> {
        Thresholds::of(context)?;
        let mut planner = Planner::default();
        for (index, column) in columns.iter().enumerate() {
            // The number of rows is the same for all columns.
            if index == 0 {
                planner.ask(0, Aggregate::RowCount);
            }
            completeness::ask(&mut planner, index);
            cardinality::ask(&mut planner, index, column);
            uniqueness::ask(&mut planner, index, column);
            distribution::ask(&mut planner, index, column);
        }
        for (index, _, condition) in conditions(context, columns) {
            planner.count_where(index, condition);
        }
        Ok(planner.plan())
    }

    fn evaluate(context: &CallContext, columns: &[Column], answers: &[Answer]) -> Result<Vec<Finding>, PluginError> {
        let thresholds = Thresholds::of(context)?;
        let plan = Self::make_plan(context, columns)?;
        let answers = Answers::new(&plan, answers);
        let rows = answers.number(0, &Aggregate::RowCount).unwrap_or(0.0);
        if rows == 0.0 {
            return Ok(vec![empty()]);
        }
        let conditions = conditions(context, columns);
        let has_key = columns.iter().any(|column| column.is_primary_key);
        let has_one_key = columns.iter().filter(|column| column.is_primary_key).count() == 1;
        let looks = columns.iter().enumerate().map(|(index, column)| Look {
            index,
            column,
            rows,
            is_key: has_one_key && column.is_primary_key,
            has_key,
            answers,
            thresholds: &thresholds,
            conditions: &conditions,
        });
        let judged = |look: Look<'_>| {
            let mut found = Vec::new();
            found.extend(completeness::assess(&look));
            found.extend(validity::assess(&look));
            found.extend(uniqueness::assess(&look));
            found.extend(uniqueness::possible_key(&look));
            found.extend(consistency::assess(&look));
            found.extend(distribution::assess(&look));
            found.extend(cardinality::assess(&look));
            found.extend(boolean::assess(&look));
            found
        };
        Ok(looks.flat_map(judged).collect())
    }
}

/// The values that a condition counts in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counted {
    /// Placeholders for missing values, and implausible values.
    Invalid,
    /// Values in a different notation than the rest of the column.
    Inconsistent,
    /// The value true, in a boolean column.
    True,
}

/// Returns all conditions as (index of the column, counted values, filter), in the order of the requests.
fn conditions(context: &CallContext, columns: &[Column]) -> Vec<(usize, Counted, Filter)> {
    let of_column = |(index, column): (usize, &Column)| {
        let invalid = validity::condition(context, column).map(|condition| (index, Counted::Invalid, condition));
        let other = consistency::condition(column).map(|condition| (index, Counted::Inconsistent, condition));
        let yes = boolean::condition(column).map(|condition| (index, Counted::True, condition));
        [invalid, other, yes]
    };
    columns.iter().enumerate().flat_map(of_column).flatten().collect()
}

/// One column, with the aggregates that the warehouse computed for it.
struct Look<'a> {
    index: usize,
    column: &'a Column,
    /// The number of rows, which is never 0.
    rows: f64,
    /// True if the column is the whole key of the cube.
    is_key: bool,
    /// True if the cube has a key.
    has_key: bool,
    answers: Answers<'a>,
    thresholds: &'a Thresholds,
    conditions: &'a [(usize, Counted, Filter)],
}

impl Look<'_> {
    fn number(&self, aggregate: &Aggregate) -> Option<f64> {
        self.answers.number(self.index, aggregate)
    }

    /// Returns the number of rows with a value.
    fn values(&self) -> Option<f64> {
        Some(self.rows - self.number(&Aggregate::NullCount)?)
    }

    fn counted(&self, what: Counted) -> Option<f64> {
        let is_it = |(index, counted, _): &(usize, Counted, Filter)| *index == self.index && *counted == what;
        let at = self.conditions.iter().position(is_it)?;
        self.number(&Aggregate::CountWhere(at as u32))
    }

    /// Creates a finding with a score: the share of correct values.
    fn scored(&self, dimension: QualityDimension, code: &str, wrong: f64, of: f64, what: &str) -> Option<Finding> {
        if of <= 0.0 {
            return None;
        }
        let score = (1.0 - wrong / of).clamp(0.0, 1.0);
        let severity = self.thresholds.severity(dimension, score);
        let name = &self.column.member;
        let message = format!("`{name}`: {} of {} {what}", shown(wrong), shown(of));
        let finding = Finding::new(self.index, dimension, severity, code, &message).with_score(score);
        Some(finding.with_evidence("count", &shown(wrong)).with_evidence("of", &shown(of)))
    }
}

fn empty() -> Finding {
    let message = "the cube has no rows, so nothing was checked";
    let finding = Finding::new(0, QualityDimension::Other, Severity::Medium, "no_rows", message);
    Finding { column: None, ..finding }
}

fn is_number(ty: LogicalType) -> bool {
    matches!(ty, LogicalType::Integer | LogicalType::Decimal | LogicalType::Float)
}

/// Formats a number for display: without a fraction if it is an integer, else with three digits.
fn shown(value: f64) -> String {
    if value == value.trunc() { format!("{value:.0}") } else { format!("{value:.3}") }
}

terrane_sdk::export_check!(Standard);

#[cfg(test)]
mod tests;
