//! The audit log, for administrators.

use axum::response::Response;
use terrane_wire::Code;
use terrane_wire::audit::{AuditPage, filter_from_parameters};
use terrane_wire::schema;

use crate::app::{App, Scope};
use crate::edge::{ApiError, Call, RouteAccess, Routes, json_answer};
use crate::openapi::{Compression, Content, Doc, Parameter, ParameterKind, ResponseDoc};

pub(super) fn register(routes: Routes) -> Routes {
    routes.get("/api/v1/audit", RouteAccess::Scoped(Scope::Admin), &RECORDS, records)
}

/// Returns records, newest first. `next` is the value of `before` for the next page.
async fn records(app: App, call: Call) -> Result<Response, ApiError> {
    let filter = filter_from_parameters(call.query_string())?;
    // Buffered records are written first, so that the answer contains all events up to now.
    app.services.audit_buffer.flush().await.map_err(|error| ApiError::from_store(&error))?;
    let records = app.services.audit.records(&filter).await.map_err(|error| ApiError::from_store(&error))?;
    Ok(json_answer(&AuditPage::new(&records, filter.limit)))
}

static RECORDS: Doc = Doc {
    id: "audit_records",
    tag: "audit",
    summary: "List audit records of authentications, denials and changes, newest first",
    parameters: &[
        Parameter::query("event", ParameterKind::String, "such as `access_denied`"),
        Parameter::query("actor", ParameterKind::String, "a user id"),
        Parameter::query("resource", ParameterKind::String, "such as `key:0123456789abcdef`"),
        Parameter::query("since", ParameterKind::Timestamp, "records at or after this time"),
        Parameter::query("until", ParameterKind::Timestamp, "records before this time"),
        Parameter::query(
            "before",
            ParameterKind::Integer(1),
            "a sequence number: the value of `next` in the previous page",
        ),
        Parameter::query("limit", ParameterKind::Within(1, 1_000), "the maximum number of records; default 100"),
    ],
    body: None,
    answers: &[ResponseDoc {
        status: 200,
        description: "a page",
        content: &[Content::Json(schema::of::<AuditPage>())],
        compression: Compression::Accepted,
    }],
    errors: &[Code::InvalidQuery],
    detail_errors: &[],
};
