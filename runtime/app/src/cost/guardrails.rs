//! Limits of single queries, and the reasons why a query exceeds one.
//!
//! In: the limits that apply to a caller, and the facts of a compiled query. Out: the first limit that is exceeded.
//! Everything is in memory, so the checks add no measurable time to a query. Not here: the path of a query (`query`),
//! and the words of hints (`wire`).

use std::sync::Arc;
use std::time::Duration;

use crate::ports::audit::Details;
use crate::ports::budgets::BudgetPeriod;
use crate::ports::guardrails::Guardrails;

/// The way in which a limit is enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuardrailClass {
    /// The query is ended when it reaches the limit.
    Enforced,
    /// The query is refused because of its plan, before it runs.
    Planned,
    /// The query is refused because of its predicted cost or bytes.
    Predicted,
}

/// A limit that a query exceeds, and by how much.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GuardrailExceeded {
    #[error("the query ran longer than {} seconds, the limit of guardrail `max_execution_seconds`", limit.as_secs_f64())]
    ExecutionTime { limit: Duration },
    #[error("the query asks for {} rows; guardrail `max_rows_returned` allows {limit}", rows_text(*requested))]
    Rows {
        limit: u64,
        /// The requested number of rows; `None` for all rows.
        requested: Option<u64>,
    },
    #[error("the result has more than {limit} rows, the limit of guardrail `max_rows_returned`")]
    ResultRows { limit: u64 },
    #[error("guardrail `require_time_filter` needs a lower bound on time for `{}`", cubes.join("`, `"))]
    TimeFilter {
        cubes: Vec<Arc<str>>,
        /// The cubes that have no time dimension that the caller may filter by.
        without_time: Vec<Arc<str>>,
    },
    #[error("guardrail `require_partition_filter` needs a filter on `{}`", partitions.join("` or `"))]
    PartitionFilter {
        /// The partition dimensions as `cube.dimension`.
        partitions: Vec<Arc<str>>,
    },
    #[error(
        "the query is predicted to cost {}; guardrail `max_cost_per_query` allows {}",
        amount(*predicted_micros), amount(*limit_micros)
    )]
    Cost { limit_micros: u64, predicted_micros: u64 },
    #[error("the query is predicted to scan {predicted} bytes; guardrail `max_bytes_scanned` allows {limit}")]
    ScanBytes {
        limit: u64,
        /// The bytes, rounded up to two digits, because exact sizes disclose hidden rows.
        predicted: u64,
    },
    #[error("guardrail `{}` allows {}; the remaining budget is too small for the query", budget_name(*period), amount(*limit_micros))]
    Budget {
        period: BudgetPeriod,
        limit_micros: u64,
        /// The amount that the caller's own queries have neither spent nor reserved.
        remaining_micros: u64,
        /// The predicted cost of the query; `None` if it is unknown.
        predicted_micros: Option<u64>,
    },
}

impl Guardrails {
    /// Returns limits that satisfy both `self` and `other`: of each kind, the narrower one.
    #[must_use]
    pub fn narrowed_by(self, other: Guardrails) -> Guardrails {
        Guardrails {
            max_execution: narrower(self.max_execution, other.max_execution),
            max_rows_returned: narrower(self.max_rows_returned, other.max_rows_returned),
            require_time_filter: self.require_time_filter || other.require_time_filter,
            require_partition_filter: self.require_partition_filter || other.require_partition_filter,
            max_cost_micros: narrower(self.max_cost_micros, other.max_cost_micros),
            max_scan_bytes: narrower(self.max_scan_bytes, other.max_scan_bytes),
            daily_budget_micros: narrower(self.daily_budget_micros, other.daily_budget_micros),
            monthly_budget_micros: narrower(self.monthly_budget_micros, other.monthly_budget_micros),
            alert_at_percent: narrower(self.alert_at_percent, other.alert_at_percent),
        }
    }

    /// Returns the name of the first limit that needs a price.
    pub(super) fn limit_of_costs(&self) -> Option<&'static str> {
        let named = [
            ("max_cost_per_query", self.max_cost_micros),
            ("daily_budget", self.daily_budget_micros),
            ("monthly_budget", self.monthly_budget_micros),
        ];
        named.into_iter().find_map(|(name, limit)| limit.map(|_| name))
    }

    /// Checks the number of rows that an answer can have. `requested` is `None` for all rows.
    ///
    /// # Errors
    /// [`GuardrailExceeded::Rows`]
    pub fn check_rows(&self, requested: Option<u64>) -> Result<(), GuardrailExceeded> {
        match self.max_rows_returned {
            Some(limit) if requested.is_none_or(|requested| requested > limit) => {
                Err(GuardrailExceeded::Rows { limit, requested })
            }
            _ => Ok(()),
        }
    }

    /// Checks the number of rows of a finished result.
    ///
    /// # Errors
    /// [`GuardrailExceeded::ResultRows`]
    pub fn check_result(&self, rows: u64) -> Result<(), GuardrailExceeded> {
        match self.max_rows_returned {
            Some(limit) if rows > limit => Err(GuardrailExceeded::ResultRows { limit }),
            _ => Ok(()),
        }
    }

    /// Checks a predicted cost in millionths; an unknown cost (`None`) passes.
    ///
    /// # Errors
    /// [`GuardrailExceeded::Cost`]
    pub fn check_cost(&self, predicted_micros: Option<u64>) -> Result<(), GuardrailExceeded> {
        match self.max_cost_micros.zip(predicted_micros) {
            Some((limit_micros, predicted_micros)) if predicted_micros > limit_micros => {
                Err(GuardrailExceeded::Cost { limit_micros, predicted_micros })
            }
            _ => Ok(()),
        }
    }

    /// Checks the bytes that a query is predicted to scan; an unknown number (`None`) passes.
    ///
    /// # Errors
    /// [`GuardrailExceeded::ScanBytes`]
    pub fn check_bytes(&self, predicted: Option<u64>) -> Result<(), GuardrailExceeded> {
        match self.max_scan_bytes.zip(predicted) {
            Some((limit, predicted)) if predicted > limit => {
                Err(GuardrailExceeded::ScanBytes { limit, predicted: two_digits_up(predicted) })
            }
            _ => Ok(()),
        }
    }

    /// Checks that every cube has a lower bound on time. `without_bound` has the cubes that are read without one.
    /// `has_time` returns whether a cube has a time dimension that the caller may filter by.
    ///
    /// # Errors
    /// [`GuardrailExceeded::TimeFilter`]
    pub fn check_time_filter(
        &self,
        without_bound: &[Arc<str>],
        has_time: impl Fn(&str) -> bool,
    ) -> Result<(), GuardrailExceeded> {
        if !self.require_time_filter || without_bound.is_empty() {
            return Ok(());
        }
        let without_time = without_bound.iter().filter(|cube| !has_time(cube)).cloned().collect();
        Err(GuardrailExceeded::TimeFilter { cubes: without_bound.to_vec(), without_time })
    }

    /// Checks that partitioned cubes are filtered. `without_filter` has the partition dimensions of cubes that are read
    /// without a filter on any of them.
    ///
    /// # Errors
    /// [`GuardrailExceeded::PartitionFilter`]
    pub fn check_partition_filter(&self, without_filter: &[Arc<str>]) -> Result<(), GuardrailExceeded> {
        if !self.require_partition_filter || without_filter.is_empty() {
            return Ok(());
        }
        Err(GuardrailExceeded::PartitionFilter { partitions: without_filter.to_vec() })
    }
}

impl GuardrailExceeded {
    /// Returns the name of the limit in the configuration.
    pub fn guardrail(&self) -> &'static str {
        match self {
            GuardrailExceeded::ExecutionTime { .. } => "max_execution_seconds",
            GuardrailExceeded::Rows { .. } | GuardrailExceeded::ResultRows { .. } => "max_rows_returned",
            GuardrailExceeded::TimeFilter { .. } => "require_time_filter",
            GuardrailExceeded::PartitionFilter { .. } => "require_partition_filter",
            GuardrailExceeded::Cost { .. } => "max_cost_per_query",
            GuardrailExceeded::ScanBytes { .. } => "max_bytes_scanned",
            GuardrailExceeded::Budget { period, .. } => budget_name(*period),
        }
    }

    pub fn class(&self) -> GuardrailClass {
        match self {
            GuardrailExceeded::ExecutionTime { .. } | GuardrailExceeded::ResultRows { .. } => GuardrailClass::Enforced,
            GuardrailExceeded::Rows { .. }
            | GuardrailExceeded::TimeFilter { .. }
            | GuardrailExceeded::PartitionFilter { .. } => GuardrailClass::Planned,
            GuardrailExceeded::Cost { .. } | GuardrailExceeded::ScanBytes { .. } | GuardrailExceeded::Budget { .. } => {
                GuardrailClass::Predicted
            }
        }
    }
}

impl GuardrailClass {
    pub fn as_str(self) -> &'static str {
        match self {
            GuardrailClass::Enforced => "enforced",
            GuardrailClass::Planned => "planned",
            GuardrailClass::Predicted => "predicted",
        }
    }
}

/// Returns the limits for audit records.
pub(super) fn guardrail_details(guardrails: &Guardrails) -> Details {
    let rows = guardrails.max_rows_returned.map(|rows| usize::try_from(rows).unwrap_or(usize::MAX));
    Details::fields([
        ("max_execution_seconds", guardrails.max_execution.map(|limit| limit.as_secs_f64().to_string()).into()),
        ("max_rows_returned", rows.into()),
        ("require_time_filter", guardrails.require_time_filter.into()),
        ("require_partition_filter", guardrails.require_partition_filter.into()),
        ("max_cost_per_query", guardrails.max_cost_micros.map(amount).into()),
        ("max_bytes_scanned", guardrails.max_scan_bytes.map(|bytes| bytes.to_string()).into()),
        ("daily_budget", guardrails.daily_budget_micros.map(amount).into()),
        ("monthly_budget", guardrails.monthly_budget_micros.map(amount).into()),
        ("alert_at_percent", guardrails.alert_at_percent.map(usize::from).into()),
    ])
}

/// Rounds up to two significant digits.
fn two_digits_up(number: u64) -> u64 {
    let mut unit = 1_u64;
    while number / unit >= 100 {
        unit *= 10;
    }
    number.div_ceil(unit).saturating_mul(unit)
}

fn narrower<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// Returns the name of a budget in the configuration.
fn budget_name(period: BudgetPeriod) -> &'static str {
    match period {
        BudgetPeriod::Day => "daily_budget",
        BudgetPeriod::Month => "monthly_budget",
    }
}

/// Formats an amount in the currency of the prices.
fn amount(micros: u64) -> String {
    (micros as f64 / 1_000_000.0).to_string()
}

fn rows_text(requested: Option<u64>) -> String {
    requested.map_or_else(|| "all".to_owned(), |requested| requested.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(seconds: Option<u64>, rows: Option<u64>, require_time_filter: bool) -> Guardrails {
        let max_execution = seconds.map(Duration::from_secs);
        Guardrails { max_execution, max_rows_returned: rows, require_time_filter, ..Guardrails::default() }
    }

    #[test]
    fn narrower_limit_applies_in_either_order() {
        let (one, other) = (limits(Some(10), None, false), limits(Some(5), Some(100), true));
        assert_eq!(one.narrowed_by(other), limits(Some(5), Some(100), true));
        assert_eq!(other.narrowed_by(one), one.narrowed_by(other));
        assert_eq!(one.narrowed_by(Guardrails::default()), one);
    }

    #[test]
    fn rows_are_allowed_up_to_the_limit() {
        let guardrails = limits(None, Some(100), false);
        assert_eq!(guardrails.check_rows(Some(100)), Ok(()));
        let exceeded = guardrails.check_rows(Some(101));
        assert_eq!(exceeded, Err(GuardrailExceeded::Rows { limit: 100, requested: Some(101) }));
        assert_eq!(guardrails.check_rows(None), Err(GuardrailExceeded::Rows { limit: 100, requested: None }));
        assert_eq!(Guardrails::default().check_rows(None), Ok(()));
        assert_eq!(guardrails.check_result(100), Ok(()));
        assert_eq!(guardrails.check_result(101), Err(GuardrailExceeded::ResultRows { limit: 100 }));
        assert_eq!(Guardrails::default().check_result(u64::MAX), Ok(()));
    }

    #[test]
    fn predicted_bytes_are_allowed_up_to_the_limit() {
        let guardrails = Guardrails { max_scan_bytes: Some(1_000), ..Guardrails::default() };
        assert_eq!(guardrails.check_bytes(Some(1_000)), Ok(()));
        assert_eq!(guardrails.check_bytes(None), Ok(()));
        let exceeded = GuardrailExceeded::ScanBytes { limit: 1_000, predicted: 1_100 };
        assert_eq!((exceeded.guardrail(), exceeded.class().as_str()), ("max_bytes_scanned", "predicted"));
        assert_eq!(guardrails.check_bytes(Some(1_001)), Err(exceeded));
        assert_eq!(Guardrails::default().check_bytes(Some(u64::MAX)), Ok(()));
    }

    #[test]
    fn cubes_without_a_bound_are_named() {
        let cubes: [Arc<str>; 2] = ["orders".into(), "visits".into()];
        let has_time = |cube: &str| cube == "orders";
        let exceeded = limits(None, None, true).check_time_filter(&cubes, has_time);
        let expected = GuardrailExceeded::TimeFilter { cubes: cubes.to_vec(), without_time: vec!["visits".into()] };
        assert_eq!(exceeded, Err(expected));
        assert_eq!(limits(None, None, true).check_time_filter(&[], has_time), Ok(()));
        assert_eq!(limits(None, None, false).check_time_filter(&cubes, has_time), Ok(()));
    }
}
