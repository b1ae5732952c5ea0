//! A query as people write it on the command line and in `tests/`: what REST accepts, and refuses, by
//! REST's own code.
//!
//! In: JSON. Out: a query for the app, an answer, or a refusal in the words that REST would use.

use serde_json::{Map, Value as Json};
use terrane_app::query::{Answer, RequestContext};
use terrane_app::services::Services;
use terrane_compiler::query::SemanticQuery;
use terrane_server::{Refused, read_query, refuse};

/// Reads a query.
///
/// # Errors
/// As the server would refuse the body.
pub fn parse(query: &str) -> Result<SemanticQuery, Refused> {
    read_query(query.as_bytes())
}

/// Runs a query.
///
/// # Errors
/// As the server would refuse it, with the warehouse's own words.
pub async fn run(engine: &Services, caller: &RequestContext, query: &SemanticQuery) -> Result<Answer, Refused> {
    let session = engine.queries.session(caller);
    async { session.prepare(query).await?.run().await }.await.map_err(refuse)
}

/// The statement with its values written in.
///
/// # Errors
/// As the server would refuse it.
pub async fn inline_sql(engine: &Services, caller: &RequestContext, query: &SemanticQuery) -> Result<String, Refused> {
    let session = engine.queries.session(caller);
    async { session.prepare(query).await?.inline_sql().await }.await.map_err(refuse)
}

/// What `POST /api/v1/query/explain` would answer the operator.
///
/// # Errors
/// As the server would refuse it.
pub async fn explain(
    engine: &Services,
    caller: &RequestContext,
    query: &SemanticQuery,
) -> Result<Map<String, Json>, Refused> {
    let session = engine.queries.session(caller);
    let prepared = session.prepare(query).await.map_err(refuse)?;
    let explanation = prepared.explain().await.map_err(refuse)?;
    let plan = session.warehouse_plan(query, &explanation).await.map_err(refuse)?;
    Ok(terrane_server::explanation(&explanation, plan))
}

/// What a refusal says besides its message: the names that could have been meant, what the warehouse
/// said.
pub fn hint(refusal: &Refused) -> Option<String> {
    let hints = refusal.details.iter().filter_map(|(key, value)| {
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
pub fn is_hook_away(refusal: &Refused) -> bool {
    refusal.details.get("reason").is_some_and(|reason| reason == "policy_unavailable")
}
