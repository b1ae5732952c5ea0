//! Reads, refuses and explains queries in the same way as the REST interface.
//!
//! In: JSON. Out: a query for the app, an answer, or a refusal as the server would send it.

use serde_json::{Map, Value as Json};
use terrane_app::query::{Answer, QueryRunError, RequestContext};
use terrane_app::services::Services;
use terrane_compiler::query::SemanticQuery;
use terrane_wire::explanation::{Explanation, WarehousePlan};
use terrane_wire::{ErrorBody, FieldError, query};

/// Reads a query.
///
/// # Errors
/// The refusal that the server would send.
pub fn parse(query: &str) -> Result<SemanticQuery, FieldError> {
    Ok(query::from_wire(query.as_bytes())?.query)
}

/// Runs a query.
///
/// # Errors
/// The query is refused, or the warehouse failed.
pub async fn run(engine: &Services, caller: &RequestContext, query: &SemanticQuery) -> Result<Answer, QueryRunError> {
    let session = engine.queries.session(caller);
    session.prepare(query).await?.run().await
}

/// Returns the statement with its values as literals.
///
/// # Errors
/// The query is refused.
pub async fn inline_sql(
    engine: &Services,
    caller: &RequestContext,
    query: &SemanticQuery,
) -> Result<String, QueryRunError> {
    let session = engine.queries.session(caller);
    session.prepare(query).await?.inline_sql().await
}

/// Returns the body that `POST /api/v1/query/explain` sends to an operator. The warehouse's plan is optional, because
/// it needs one more statement.
///
/// # Errors
/// The query is refused, or the warehouse failed.
pub async fn explain(
    engine: &Services,
    caller: &RequestContext,
    query: &SemanticQuery,
    has_warehouse_plan: bool,
) -> Result<Map<String, Json>, QueryRunError> {
    let session = engine.queries.session(caller);
    let prepared = session.prepare(query).await?;
    let explanation = prepared.explain().await?;
    let plan = match has_warehouse_plan {
        true => session.warehouse_plan(query, &explanation).await?,
        false => None,
    };
    let body = serde_json::to_value(Explanation::new(&explanation, WarehousePlan::of(plan), true));
    Ok(body.ok().and_then(|body| body.as_object().cloned()).unwrap_or_default())
}

/// Returns true if a required hook did not answer. Its fault is on standard error (`plugin_lines`).
pub(crate) fn is_policy_unavailable(refusal: &ErrorBody) -> bool {
    refusal.field("reason").is_some_and(|reason| reason == "policy_unavailable")
}
