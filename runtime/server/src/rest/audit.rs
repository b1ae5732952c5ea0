//! The audit log, for administrators.

use axum::response::Response;
use serde_json::{Value as Json, json};

use crate::app::{App, Scope};
use crate::call::Call;
use crate::edge::json_response;
use crate::error::{ApiError, Code};
use crate::openapi::{Answer, Doc, Parameter, ParameterKind};
use crate::routes::{Access, Routes};
use crate::wire::audit::{filter_from_parameters, record_to_wire};

pub(super) fn register(routes: Routes) -> Routes {
    routes.get("/api/v1/audit", Access::Scoped(Scope::Admin), &RECORDS, records)
}

/// Newest first; `next` is the `before` of the next page.
async fn records(app: App, call: Call) -> Result<Response, ApiError> {
    let filter = filter_from_parameters(call.query_string())?;
    let limit = filter.limit as usize;
    // What happened up to now belongs to the answer.
    app.ports.audit_buffer.flush().await.map_err(|error| ApiError::from_store(&error))?;
    let records = app.ports.audit.records(&filter).await.map_err(|error| ApiError::from_store(&error))?;
    let next = records.last().filter(|last| records.len() == limit && last.sequence > 1);
    let next = next.map_or(Json::Null, |last| last.sequence.into());
    let body = json!({"records": records.iter().map(record_to_wire).collect::<Vec<_>>(), "next": next});
    Ok(json_response(body.to_string().into_bytes()))
}

static RECORDS: Doc = Doc {
    id: "audit_records",
    tag: "audit",
    summary: "What happened: authentications, denials and changes, newest first",
    parameters: &[
        Parameter::query("event", ParameterKind::Text, "such as `access_denied`"),
        Parameter::query("actor", ParameterKind::Text, "a user id"),
        Parameter::query("resource", ParameterKind::Text, "such as `key:0123456789abcdef`"),
        Parameter::query("since", ParameterKind::Timestamp, "not before"),
        Parameter::query("until", ParameterKind::Timestamp, "before"),
        Parameter::query("before", ParameterKind::Integer(1), "a sequence number: the `next` of the page before"),
        Parameter::query("limit", ParameterKind::Within(1, 1_000), "records of the page"),
    ],
    body: None,
    answers: &[Answer { status: 200, description: "a page", content: &[("application/json", Some("AuditPage"))] }],
    refusals: &[Code::InvalidQuery],
};
