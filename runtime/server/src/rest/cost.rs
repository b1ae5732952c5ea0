//! The costs of queries: the history of executed queries.

use axum::response::Response;
use terrane_wire::cost::{QueryHistory, history_from_parameters};
use terrane_wire::{Code, ErrorBody, schema};

use crate::app::{App, Scope};
use crate::edge::{ApiError, Call, RouteAccess, Routes, json_answer};
use crate::openapi::{Compression, Content, Doc, Parameter, ParameterKind, ResponseDoc};

pub(super) fn register(routes: Routes) -> Routes {
    routes.get("/api/v1/optimization/history", RouteAccess::Scoped(Scope::Read), &HISTORY, history)
}

async fn history(app: App, call: Call) -> Result<Response, ApiError> {
    let Some(cost) = &app.services.cost else { return Err(ApiError::not_found(call.path())) };
    let filter = history_from_parameters(call.query_string())?;
    let limit = filter.limit;
    let queries = cost.history(&call.context, filter).await.map_err(ErrorBody::from)?;
    Ok(json_answer(&QueryHistory::new(&queries, limit)))
}

static HISTORY: Doc = Doc {
    id: "query_history",
    tag: "optimization",
    summary: "The executed queries of the caller, newest first; with `admin` those of all callers",
    parameters: &[
        Parameter::query("user_id", ParameterKind::String, "queries of this user; of another one with `admin` only"),
        Parameter::query("query_hash", ParameterKind::String, "queries with this statement"),
        Parameter::query("since", ParameterKind::Timestamp, "not before"),
        Parameter::query("until", ParameterKind::Timestamp, "before"),
        Parameter::query("before", ParameterKind::String, "the `next` of the page before"),
        Parameter::query("limit", ParameterKind::Within(1, 1_000), "queries of the page"),
    ],
    body: None,
    answers: &[ResponseDoc {
        status: 200,
        description: "a page",
        content: &[Content::Json(schema::of::<QueryHistory>())],
        compression: Compression::Accepted,
    }],
    errors: &[Code::InvalidQuery, Code::StateUnavailable],
    detail_errors: &[],
};
