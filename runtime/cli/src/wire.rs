//! A query as people write it on the command line and in `tests/`: what REST accepts, and refuses, by
//! REST's own code.
//!
//! In: JSON. Out: a query for the app, an answer, or a refusal in the words that REST would use.

use serde_json::{Map, Value as Json};
use terrane_app::query::{Answer, RequestContext};
use terrane_compiler::query::SemanticQuery;
use terrane_wire::explanation::{Explanation, WarehousePlan};
use terrane_wire::{ErrorBody, query};

use crate::wiring::Engine;

/// Reads a query.
///
/// # Errors
/// As the server would refuse the body.
pub fn parse(query: &str) -> Result<SemanticQuery, ErrorBody> {
    Ok(query::from_wire(query.as_bytes())?.query)
}

/// Runs a query.
///
/// # Errors
/// As the server would refuse it, with the warehouse's own words.
pub async fn run(engine: &Engine, caller: &RequestContext, query: &SemanticQuery) -> Result<Answer, ErrorBody> {
    engine.queries.run(caller, query).await.map_err(ErrorBody::for_operator)
}

/// The statement with its values written in.
///
/// # Errors
/// As the server would refuse it.
pub async fn inline_sql(engine: &Engine, caller: &RequestContext, query: &SemanticQuery) -> Result<String, ErrorBody> {
    engine.queries.inline_sql(caller, query).await.map_err(ErrorBody::for_operator)
}

/// What `POST /api/v1/query/explain` would answer the operator.
///
/// # Errors
/// As the server would refuse it.
pub async fn explain(
    engine: &Engine,
    caller: &RequestContext,
    query: &SemanticQuery,
) -> Result<Map<String, Json>, ErrorBody> {
    let explanation = engine.queries.explain(caller, query).await.map_err(ErrorBody::for_operator)?;
    let plan = engine.queries.warehouse_plan(caller, query, &explanation).await.map_err(ErrorBody::for_operator)?;
    let body = serde_json::to_value(Explanation::new(&explanation, WarehousePlan::of(plan)));
    Ok(body.ok().and_then(|body| body.as_object().cloned()).unwrap_or_default())
}

/// What a refusal says besides its message: the names that could have been meant, what the warehouse
/// said.
pub fn hint(refusal: &ErrorBody) -> Option<String> {
    let hints = refusal.fields().filter_map(|(key, value)| {
        let text = match value {
            serde_json::Value::Array(names) => {
                names.iter().filter_map(serde_json::Value::as_str).take(8).collect::<Vec<_>>().join(", ")
            }
            serde_json::Value::String(text) => text.clone(),
            serde_json::Value::Number(number) => number.to_string(),
            _ => return None,
        };
        (!text.is_empty()).then(|| format!("{}: {text}", key.replace('_', " ")))
    });
    let text = hints.collect::<Vec<_>>().join("; ");
    (!text.is_empty()).then_some(text)
}

/// Whether a hook that is required could not answer. Why stands on standard error (`plugin_lines`).
pub fn is_hook_away(refusal: &ErrorBody) -> bool {
    refusal.field("reason").is_some_and(|reason| reason == "policy_unavailable")
}
