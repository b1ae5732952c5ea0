//! Predictions of the costs of queries.
//!
//! In: predictions of the use case. Out: the fields that REST sends, under names in GraphQL's convention.

use async_graphql::SimpleObject;
use terrane_wire::ErrorBody;
use terrane_wire::cost as wire;

use super::cost::switched_off;
use super::inputs::Question;
use super::request::RequestState;
use crate::failure::Failure;

/// The predicted cost of a query. Unknown numbers are null.
#[derive(SimpleObject)]
pub(crate) struct CostPrediction {
    /// Names the statement with placeholders, as `sql_hash` does in the log.
    query_hash: String,
    /// The source of `estimatedSeconds`, as in `bases`.
    basis: String,
    /// The source of each number.
    bases: PredictionBases,
    /// The number of queries that the seconds are predicted from.
    samples: u32,
    /// The stored bytes of the columns that the query reads. Null if the warehouse does not report them.
    scan_bytes: Option<f64>,
    scan_bytes_formatted: Option<String>,
    /// The median of the seconds on the warehouse.
    estimated_seconds: Option<f64>,
    /// The sum of the known parts in `costBreakdown`. Null without prices, or if no part with a price is known.
    estimated_cost: Option<f64>,
    /// The tenth percentile. A number is null if it is unknown.
    low: PredictedNumbers,
    /// The ninetieth percentile.
    high: PredictedNumbers,
    cost_breakdown: CostBreakdown,
    /// Null if `includePreaggAnalysis` is false.
    preagg_match: Option<PreaggMatch>,
    guardrail_status: GuardrailStatus,
    optimization_hints: Vec<String>,
    warnings: Vec<String>,
}

/// The sources of the predicted numbers: `exact`; `upper_bound` if the number can only be smaller; `history` if the
/// statement ran before; `statistics` if the number comes from other queries or from statistics of the warehouse;
/// `none` if the number is null.
#[derive(SimpleObject)]
pub(crate) struct PredictionBases {
    scan_bytes: String,
    estimated_seconds: String,
    estimated_cost: String,
}

/// One end of a predicted range.
#[derive(SimpleObject)]
pub(crate) struct PredictedNumbers {
    scan_bytes: Option<f64>,
    estimated_seconds: Option<f64>,
    estimated_cost: Option<f64>,
}

/// The parts of `estimatedCost`. A part without a price is 0; a part is null if it has a price and its quantity is
/// unknown. Without any price, all parts are null.
#[derive(SimpleObject)]
pub(crate) struct CostBreakdown {
    scan_cost: Option<f64>,
    compute_cost: Option<f64>,
    egress_cost: Option<f64>,
}

/// The effect of pre-aggregations on a query.
#[derive(SimpleObject)]
pub(crate) struct PreaggMatch {
    matched: bool,
    /// The first pre-aggregation that is read, `cube.name`.
    preagg_name: Option<String>,
    scan_bytes_with_preagg: Option<f64>,
    scan_bytes_without_preagg: Option<f64>,
    estimated_seconds_with_preagg: Option<f64>,
    estimated_seconds_without_preagg: Option<f64>,
    /// The share of the seconds that the pre-aggregation saves.
    savings_percent: Option<f64>,
    recommendation: Option<String>,
}

/// The limits of the caller, and whether the query is within them.
#[derive(SimpleObject)]
pub(crate) struct GuardrailStatus {
    /// False if the query would be refused.
    within_limits: bool,
    cost_limit: Option<f64>,
    /// The limit in seconds.
    time_limit: Option<f64>,
    warnings: Vec<String>,
}

/// Predicts the cost of a query. Nothing is executed.
///
/// # Errors
/// Costs are switched off, the query does not compile for the caller, or the state database is unavailable.
pub(crate) async fn predict(
    state: &RequestState,
    question: Question,
    include_preagg_analysis: Option<bool>,
) -> Result<CostPrediction, Failure> {
    let (parts, request) = (&state.parts, &state.parts.context.request);
    let predictor = parts.server()?.predictor.as_ref().ok_or_else(switched_off)?;
    let predicted = predictor.predict(request, &question.into_query()?).await;
    let predicted = predicted.map_err(|error| ErrorBody::from_prediction(error, request.scopes))?;
    Ok(CostPrediction::from(wire::CostPrediction::new(&predicted, include_preagg_analysis.unwrap_or(true))))
}

impl From<wire::CostPrediction<'_>> for CostPrediction {
    fn from(prediction: wire::CostPrediction<'_>) -> Self {
        let wire::CostBreakdown { scan_cost, compute_cost, egress_cost } = prediction.cost_breakdown;
        let wire::PredictionBases { scan_bytes, estimated_seconds, estimated_cost } = prediction.bases;
        let bases = PredictionBases {
            scan_bytes: scan_bytes.to_owned(),
            estimated_seconds: estimated_seconds.to_owned(),
            estimated_cost: estimated_cost.to_owned(),
        };
        let wire::GuardrailStatus { within_limits, cost_limit, time_limit, warnings } = prediction.guardrail_status;
        CostPrediction {
            query_hash: prediction.query_hash.to_owned(),
            basis: prediction.basis.to_owned(),
            bases,
            samples: u32::try_from(prediction.samples).unwrap_or(u32::MAX),
            scan_bytes: prediction.scan_bytes,
            scan_bytes_formatted: prediction.scan_bytes_formatted,
            estimated_seconds: prediction.estimated_seconds,
            estimated_cost: prediction.estimated_cost,
            low: prediction.low.into(),
            high: prediction.high.into(),
            cost_breakdown: CostBreakdown { scan_cost, compute_cost, egress_cost },
            preagg_match: prediction.preagg_match.map(PreaggMatch::from),
            guardrail_status: GuardrailStatus { within_limits, cost_limit, time_limit, warnings },
            optimization_hints: prediction.optimization_hints,
            warnings: prediction.warnings,
        }
    }
}

impl From<wire::PredictedNumbers> for PredictedNumbers {
    fn from(numbers: wire::PredictedNumbers) -> Self {
        let wire::PredictedNumbers { scan_bytes, estimated_seconds, estimated_cost } = numbers;
        PredictedNumbers { scan_bytes, estimated_seconds, estimated_cost }
    }
}

impl From<wire::PreaggregationMatch<'_>> for PreaggMatch {
    fn from(found: wire::PreaggregationMatch<'_>) -> Self {
        PreaggMatch {
            matched: found.matched,
            preagg_name: found.preagg_name.map(str::to_owned),
            scan_bytes_with_preagg: found.scan_bytes_with_preagg,
            scan_bytes_without_preagg: found.scan_bytes_without_preagg,
            estimated_seconds_with_preagg: found.estimated_seconds_with_preagg,
            estimated_seconds_without_preagg: found.estimated_seconds_without_preagg,
            savings_percent: found.savings_percent,
            recommendation: found.recommendation,
        }
    }
}
