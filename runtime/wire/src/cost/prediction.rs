//! Predictions of costs.
//!
//! In: bodies, and the use case's predictions. Out: JSON. Unknown numbers are null.

use schemars::JsonSchema;
use serde::Serialize;
use terrane_app::cost::{CostPrediction as Predicted, Estimate, PredictionBasis, StatementPrediction};
use terrane_compiler::query::{MissReason, SemanticQuery};

use crate::body;
use crate::fields::{FieldError, Fields, Path};
use crate::query::{self, ModuleQuery};

const PREDICTION: &[&str] = &["query", "include_preagg_analysis"];

/// A query whose cost is predicted.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PredictionRequest {
    pub query: ModuleQuery,
    /// True to analyze pre-aggregations; if false, `preagg_match` is null.
    pub include_preagg_analysis: Option<bool>,
}

/// The predicted cost of a query. Unknown numbers are null.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CostPrediction<'a> {
    /// Names the statement with placeholders, as `sql_hash` does in the log.
    pub query_hash: &'a str,
    /// The source of `estimated_seconds`, as in `bases`.
    pub basis: &'static str,
    /// The source of each number.
    pub bases: PredictionBases,
    /// The number of queries that the seconds are predicted from.
    pub samples: usize,
    /// The stored bytes of the columns that the query reads. Null if the warehouse does not report them.
    pub scan_bytes: Option<f64>,
    pub scan_bytes_formatted: Option<String>,
    /// The median of the seconds on the warehouse.
    pub estimated_seconds: Option<f64>,
    /// The sum of the known parts in `cost_breakdown`. Null without prices, or if no part with a price is known.
    pub estimated_cost: Option<f64>,
    /// The tenth percentile. A number is null if it is unknown, such as the smallest number of bytes that an upper
    /// bound allows.
    pub low: PredictedNumbers,
    /// The ninetieth percentile.
    pub high: PredictedNumbers,
    pub cost_breakdown: CostBreakdown,
    /// Null if it was not requested.
    pub preagg_match: Option<PreaggregationMatch<'a>>,
    pub guardrail_status: GuardrailStatus,
    pub optimization_hints: Vec<String>,
    pub warnings: Vec<String>,
}

/// The sources of the predicted numbers: `exact`; `upper_bound` if the number can only be smaller; `history` if the
/// statement ran before; `statistics` if the number comes from other queries or from statistics of the warehouse;
/// `none` if the number is null.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PredictionBases {
    pub scan_bytes: &'static str,
    pub estimated_seconds: &'static str,
    pub estimated_cost: &'static str,
}

/// One end of a predicted range.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct PredictedNumbers {
    pub scan_bytes: Option<f64>,
    pub estimated_seconds: Option<f64>,
    pub estimated_cost: Option<f64>,
}

/// The parts of `estimated_cost`. A part without a price is 0; a part is null if it has a price and its quantity is
/// unknown. Without any price, all parts are null.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CostBreakdown {
    pub scan_cost: Option<f64>,
    pub compute_cost: Option<f64>,
    pub egress_cost: Option<f64>,
}

/// The effect of pre-aggregations on a query.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PreaggregationMatch<'a> {
    pub matched: bool,
    /// The first pre-aggregation that is read, `cube.name`.
    pub preagg_name: Option<&'a str>,
    pub scan_bytes_with_preagg: Option<f64>,
    pub scan_bytes_without_preagg: Option<f64>,
    pub estimated_seconds_with_preagg: Option<f64>,
    pub estimated_seconds_without_preagg: Option<f64>,
    /// The share of the seconds that the pre-aggregation saves.
    pub savings_percent: Option<f64>,
    pub recommendation: Option<String>,
}

/// The limits of the caller, and whether the query is within them.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GuardrailStatus {
    /// False if the query would be refused.
    pub within_limits: bool,
    pub cost_limit: Option<f64>,
    pub time_limit: Option<f64>,
    pub warnings: Vec<String>,
}

/// Reads the body of `POST /api/v1/optimization/predict-cost`: the query, and whether pre-aggregations are analyzed.
///
/// # Errors
/// Names the field that is invalid.
pub fn prediction_from_wire(body: &[u8]) -> Result<(SemanticQuery, bool), FieldError> {
    let value = body::parse(body)?;
    let path = Path::ROOT;
    let fields = Fields::new(&value, &path, "an object like {\"query\": …}", PREDICTION)?;
    let query = fields.get("query").ok_or_else(|| path.missing("query"))?;
    let query = query::of_module(query, &path.field("query"))?;
    Ok((query, fields.boolean("include_preagg_analysis")?.unwrap_or(true)))
}

impl<'a> CostPrediction<'a> {
    pub fn new(predicted: &'a Predicted, includes_preaggregations: bool) -> Self {
        let statement = &predicted.statement;
        let bytes = statement.scan_bytes.median();
        CostPrediction {
            query_hash: &predicted.planned.query_hash,
            basis: statement.seconds.basis.as_str(),
            bases: PredictionBases {
                scan_bytes: statement.scan_bytes.basis.as_str(),
                estimated_seconds: statement.seconds.basis.as_str(),
                estimated_cost: statement.cost.basis.as_str(),
            },
            samples: statement.samples,
            scan_bytes: bytes,
            scan_bytes_formatted: bytes.map(formatted),
            estimated_seconds: statement.seconds.median(),
            estimated_cost: statement.cost.median(),
            low: PredictedNumbers::of(statement, Estimate::low),
            high: PredictedNumbers::of(statement, Estimate::high),
            cost_breakdown: CostBreakdown::from(predicted),
            preagg_match: includes_preaggregations.then(|| PreaggregationMatch::from(predicted)),
            guardrail_status: GuardrailStatus::from(predicted),
            optimization_hints: hints(predicted),
            warnings: warnings(predicted),
        }
    }
}

impl From<&Predicted> for CostBreakdown {
    fn from(predicted: &Predicted) -> Self {
        let parts = predicted.statement.parts;
        let priced = |part: Option<f64>| part.filter(|_| predicted.prices.is_known());
        CostBreakdown {
            scan_cost: priced(parts.scan),
            compute_cost: priced(parts.compute),
            egress_cost: priced(parts.egress),
        }
    }
}

impl PredictedNumbers {
    fn of(statement: &StatementPrediction, end: impl Fn(&Estimate) -> Option<f64>) -> Self {
        PredictedNumbers {
            scan_bytes: end(&statement.scan_bytes),
            estimated_seconds: end(&statement.seconds),
            estimated_cost: end(&statement.cost),
        }
    }
}

impl<'a> From<&'a Predicted> for PreaggregationMatch<'a> {
    fn from(predicted: &'a Predicted) -> Self {
        let name = predicted.planned.pre_aggregation.as_deref();
        let median = |statement: &StatementPrediction| statement.seconds.median();
        let (with, without) = match &predicted.without_tables {
            Some(without) => (median(&predicted.statement), median(without)),
            None => (None, median(&predicted.statement)),
        };
        let saved = |(with, without): (f64, f64)| (without > 0.0).then(|| 100.0 * (1.0 - with / without).max(0.0));
        let bytes = predicted.statement.scan_bytes.median().filter(|_| name.is_some());
        let bytes_without = match &predicted.without_tables {
            Some(without) => without.scan_bytes.median(),
            None => predicted.statement.scan_bytes.median(),
        };
        let has_definitions = !predicted.planned.rollups.is_empty();
        let recommendation = match (name, has_definitions) {
            (Some(_), _) => None,
            (None, true) => Some("Explain the query to see why no pre-aggregation matches.".to_owned()),
            (None, false) => Some(
                "Define a pre-aggregation if the query runs often. `terrane preagg recommend` proposes definitions."
                    .to_owned(),
            ),
        };
        PreaggregationMatch {
            matched: name.is_some(),
            preagg_name: name,
            scan_bytes_with_preagg: bytes,
            scan_bytes_without_preagg: bytes_without,
            estimated_seconds_with_preagg: with,
            estimated_seconds_without_preagg: without,
            savings_percent: with.zip(without).and_then(saved),
            recommendation,
        }
    }
}

impl From<&Predicted> for GuardrailStatus {
    fn from(predicted: &Predicted) -> Self {
        let guardrails = &predicted.guardrails;
        let cost_limit = guardrails.max_cost_micros.map(super::currency);
        let time_limit = guardrails.max_execution.map(|limit| limit.as_secs_f64());
        let mut warnings: Vec<String> = predicted.planned.exceeded.iter().map(ToString::to_string).collect();
        let high = |estimate: Estimate, limit: Option<f64>| {
            estimate.high().zip(limit).is_some_and(|(high, limit)| high > limit)
        };
        if high(predicted.statement.seconds, time_limit) {
            warnings.push("the query may be ended by guardrail `max_execution_seconds`".to_owned());
        }
        if high(predicted.statement.cost, cost_limit) {
            warnings.push("the query may cost more than guardrail `max_cost_per_query` allows".to_owned());
        }
        GuardrailStatus { within_limits: predicted.planned.exceeded.is_empty(), cost_limit, time_limit, warnings }
    }
}

fn hints(predicted: &Predicted) -> Vec<String> {
    let mut hints = Vec::new();
    let unbounded = &predicted.planned.without_time_bound;
    if !unbounded.is_empty() {
        hints.push(format!("Add a `time_range`. The query reads all rows of `{}`.", unbounded.join("`, `")));
    }
    let mut misses = predicted.planned.rollups.iter().flat_map(|fact| &fact.misses);
    let has_rollups = misses.any(|miss| miss.reason != MissReason::Disabled);
    if predicted.planned.pre_aggregation.is_none() && has_rollups {
        hints.push("Change the query so that a pre-aggregation matches.".to_owned());
    }
    hints
}

fn warnings(predicted: &Predicted) -> Vec<String> {
    let StatementPrediction { seconds, scan_bytes, parts, .. } = &predicted.statement;
    let mut warnings = Vec::new();
    if predicted.is_late {
        warnings.push("the history did not respond within a second".to_owned());
    }
    match (seconds.basis, scan_bytes.basis) {
        (PredictionBasis::None, PredictionBasis::None) => warnings.push("nothing is known about the query".to_owned()),
        (PredictionBasis::None, _) => {
            warnings.push("`estimated_seconds` is unknown: too few queries of the cube ran before".to_owned());
        }
        (PredictionBasis::Statistics, _) => {
            warnings.push("the statement did not run before; its seconds come from other queries".to_owned());
        }
        _ => {}
    }
    match scan_bytes.basis {
        PredictionBasis::None if seconds.is_known() => {
            warnings.push("the warehouse does not report the stored bytes of what the query reads".to_owned());
        }
        PredictionBasis::UpperBound => {
            warnings.push("the query can scan less than `scan_bytes`, because it has conditions or joins".to_owned());
        }
        _ => {}
    }
    if !predicted.prices.is_known() {
        warnings.push("costs are unknown without `optimization.prices`".to_owned());
    } else if predicted.statement.cost.is_known() {
        let unknown = [("scan_cost", parts.scan), ("compute_cost", parts.compute), ("egress_cost", parts.egress)];
        for (name, _) in unknown.into_iter().filter(|(_, part)| part.is_none()) {
            warnings.push(format!("`{name}` is unknown, and `estimated_cost` does not include it"));
        }
    }
    if predicted.planned.has_policies {
        warnings.push("policies apply: times are from queries of the caller, and all numbers are rounded".to_owned());
    }
    warnings
}

/// Writes a number of bytes with a decimal unit.
fn formatted(bytes: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KB", "MB", "GB", "TB"];
    let power = (bytes.max(1.0).log10() / 3.0).floor().clamp(0.0, 4.0);
    let number = bytes / 1_000_f64.powf(power);
    if power == 0.0 { format!("{number:.0} B") } else { format!("{number:.1} {}", UNITS[power as usize]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_a_decimal_unit() {
        for (bytes, text) in
            [(0.0, "0 B"), (999.0, "999 B"), (1_500.0, "1.5 KB"), (2.0e12, "2.0 TB"), (5.0e16, "50000.0 TB")]
        {
            assert_eq!(formatted(bytes), text);
        }
    }
}
