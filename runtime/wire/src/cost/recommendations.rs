//! Recommendations that make queries cheaper.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use terrane_app::cost::{CostRecommendation, RecommendationKind, Saving};

use crate::fields::{FieldError, Path};
use crate::preaggregations::definition_yaml;

const KNOWN: &[&str] = &["user_id", "period"];
const PERIODS: &str = "`last_N_days` with N from 1 to 366";
/// The longest period.
pub const MAX_RECOMMENDATION_DAYS: u16 = 366;

/// Recommendations for the queries of a period.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Recommendations<'a> {
    /// The period, such as `last_7_days`.
    pub period: String,
    /// Pre-aggregations first, then filters, then indexes; within each kind the most time first.
    pub recommendations: Vec<Recommendation<'a>>,
}

/// A change that would make queries cheaper.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Recommendation<'a> {
    /// `pre_aggregation`, `filter` or `index`.
    pub kind: &'static str,
    pub cube: &'a str,
    /// The dimensions to filter by, or the one to index.
    pub members: &'a [Arc<str>],
    pub message: String,
    /// The definition of a pre-aggregation: an entry of `pre_aggregations` of the cube, as YAML.
    pub definition: Option<String>,
    pub evidence: RecommendationEvidence,
    /// Null if it is unknown.
    pub expected_saving: Option<ExpectedSaving>,
}

/// The queries that a recommendation is made from. Cached answers do not count.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RecommendationEvidence {
    pub queries: u64,
    /// The time that these queries took in the warehouse.
    pub warehouse_seconds: f64,
    /// The cost in the currency of `optimization.prices`; null without prices.
    pub cost: Option<f64>,
}

/// The time on the warehouse that the change would have saved.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ExpectedSaving {
    pub warehouse_seconds: f64,
    /// `history`: compared with queries that ran the other way; `upper_bound`: all time of the queries.
    pub basis: &'static str,
}

/// Reads `user_id`, and `period` in days. A missing `period` is `None`, which means the period of the settings.
///
/// # Errors
/// Names the parameter that is invalid.
pub fn recommendations_from_parameters(query: &str) -> Result<(Option<Arc<str>>, Option<u16>), FieldError> {
    let (mut user_id, mut days) = (None, None);
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "user_id" => user_id = Some(value.into()),
            "period" => {
                let number = value.strip_prefix("last_").and_then(|rest| rest.strip_suffix("_days"));
                let number = number
                    .and_then(|number| number.parse().ok())
                    .filter(|days| (1..=MAX_RECOMMENDATION_DAYS).contains(days));
                days = Some(number.ok_or_else(|| Path::ROOT.field("period").invalid_value(&value, PERIODS))?);
            }
            // The caller's credential, which every route accepts.
            "api_key" => {}
            other => return Err(Path::ROOT.unknown_field(other, KNOWN)),
        }
    }
    Ok((user_id, days))
}

impl<'a> Recommendations<'a> {
    pub fn new(days: u16, recommendations: &'a [CostRecommendation]) -> Self {
        let recommendations = recommendations.iter().map(Recommendation::from).collect();
        Recommendations { period: format!("last_{days}_days"), recommendations }
    }
}

impl<'a> From<&'a CostRecommendation> for Recommendation<'a> {
    fn from(found: &'a CostRecommendation) -> Self {
        Recommendation {
            kind: found.kind.as_str(),
            cube: &found.cube,
            members: &found.members,
            message: message(found),
            definition: found.definition.as_ref().map(definition_yaml),
            evidence: RecommendationEvidence {
                queries: found.queries,
                warehouse_seconds: found.warehouse.as_secs_f64(),
                cost: found.cost_micros.map(super::currency),
            },
            expected_saving: found.saving.map(ExpectedSaving::from),
        }
    }
}

impl From<Saving> for ExpectedSaving {
    fn from(saving: Saving) -> Self {
        let basis = if saving.is_upper_bound { "upper_bound" } else { "history" };
        ExpectedSaving { warehouse_seconds: saving.warehouse.as_secs_f64(), basis }
    }
}

fn message(found: &CostRecommendation) -> String {
    let CostRecommendation { cube, members, queries, .. } = found;
    let first = members.first().map_or("", |member| &**member);
    match found.kind {
        RecommendationKind::PreAggregation => {
            format!("a pre-aggregation of cube `{cube}` would have answered {queries} queries")
        }
        RecommendationKind::Filter => format!(
            "{queries} queries of cube `{cube}` read its rows without a bound of time; filter by `{first}`, or set the \
             guardrail `require_time_filter`"
        ),
        RecommendationKind::Index => format!(
            "{queries} queries filter by `{first}`; index its column, or order or partition the table of cube `{cube}` by \
             it"
        ),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

    use super::*;

    #[test]
    fn periods_are_days() {
        assert_eq!(recommendations_from_parameters("period=last_30_days").unwrap(), (None, Some(30)));
        assert_eq!(recommendations_from_parameters("user_id=ada").unwrap(), (Some("ada".into()), None));
        for (query, field) in [
            ("period=last_0_days", "period"),
            ("period=last_367_days", "period"),
            ("period=last_week", "period"),
            ("days=7", "days"),
        ] {
            let error = crate::ErrorBody::from(recommendations_from_parameters(query).unwrap_err()).into_json("");
            assert_eq!(error["error"]["details"]["field"], field, "{query}");
        }
    }
}
