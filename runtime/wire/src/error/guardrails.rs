//! Changes that make a query pass its guardrails, in the words of the form of the query.
//!
//! In: a limit that a query exceeds, and the form in which the query was written. Out: a sentence. Not here: the check
//! of the limits (`app`).

use terrane_app::cost::GuardrailExceeded;

use crate::size;

/// The form in which a client writes its queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryForm {
    /// The JSON of the REST interface, and the command line.
    Json,
    Graphql,
    Dax,
}

/// Returns a change that makes the query pass.
pub(crate) fn guardrail_suggestion(error: &GuardrailExceeded, form: QueryForm) -> String {
    match error {
        GuardrailExceeded::ExecutionTime { .. } | GuardrailExceeded::Cost { .. } => match form {
            QueryForm::Dax => "Filter a column of dates, or group by fewer columns.",
            QueryForm::Json | QueryForm::Graphql => "Use a shorter time range or fewer dimensions.",
        }
        .to_owned(),
        GuardrailExceeded::ScanBytes { limit, .. } => format!(
            "Use fewer {}, or those that a pre-aggregation stores, so that the columns that are read have at most {}.",
            if form == QueryForm::Dax { "columns and measures" } else { "members" },
            size::text(*limit)
        ),
        GuardrailExceeded::Budget { .. } => {
            "Wait for the next period, or ask an administrator for a larger budget.".to_owned()
        }
        GuardrailExceeded::Rows { limit, .. } | GuardrailExceeded::ResultRows { limit } if form == QueryForm::Dax => {
            format!("Return at most {limit} rows with TOPN, select rows with FILTER, or group by fewer columns.")
        }
        GuardrailExceeded::Rows { limit, .. } => format!("Set `limit` to {limit} or less."),
        GuardrailExceeded::ResultRows { .. } => "Add filters, or use a shorter time range.".to_owned(),
        GuardrailExceeded::TimeFilter { without_time, .. } if !without_time.is_empty() => format!(
            "Ask an administrator to remove the guardrail. `{}` has no time dimension to filter by.",
            without_time.join("` or `")
        ),
        GuardrailExceeded::TimeFilter { .. } => match form {
            QueryForm::Json => "Add a `time_range` or a filter on a time dimension, with a start.".to_owned(),
            QueryForm::Graphql => "Add a `timeRange` or a filter on a time dimension, with a start.".to_owned(),
            QueryForm::Dax => DAX_TIME.to_owned(),
        },
        GuardrailExceeded::PartitionFilter { partitions } if form == QueryForm::Dax => format!(
            "Compare `{}` with values or with a start, in CALCULATE, CALCULATETABLE or FILTER.",
            partitions.iter().map(|member| column(member)).collect::<Vec<_>>().join("` or `")
        ),
        GuardrailExceeded::PartitionFilter { partitions } => {
            format!("Add a filter with values or with a start on `{}`.", partitions.join("` or `"))
        }
    }
}

/// The suggestion of a bound on time in DAX.
const DAX_TIME: &str = "Add a condition on a column of dates with a start, such as \
                        `CALCULATETABLE(…, DATESBETWEEN(Table[Date], DATE(2024, 1, 1), BLANK()))`.";

/// Returns a member `cube.dimension` as a column of DAX.
fn column(member: &str) -> String {
    match member.split_once('.') {
        Some((cube, dimension)) => format!("'{cube}'[{dimension}]"),
        None => member.to_owned(),
    }
}
