//! REST's reader of queries, its refusals and its explanations without HTTP, so that the command line
//! accepts, refuses and explains as a client would see it.

use serde_json::{Map, Value as Json};
use terrane_app::ports::audit::AuditRecord;
use terrane_app::query::QueryRunError;
use terrane_compiler::explanation::Explanation;
use terrane_compiler::query::SemanticQuery;

use crate::app::Scopes;
use crate::error::ApiError;
use crate::wire;
use crate::wire::explanation::WarehousePlan;

/// A refusal as the body of an answer would tell it.
#[derive(Debug, Clone, PartialEq)]
pub struct Refused {
    pub code: &'static str,
    pub message: String,
    /// `details` and the extra fields of the code, in one.
    pub details: Map<String, Json>,
}

/// Reads the body of `POST /api/v1/query`.
///
/// # Errors
/// As the route would refuse it.
pub fn read_query(body: &[u8]) -> Result<SemanticQuery, Refused> {
    wire::query::from_wire(body).map(|request| request.query).map_err(|misfit| ApiError::from(misfit).into_local())
}

/// What the route would answer in place of rows, told to the operator: the warehouse's words included.
pub fn refuse(error: QueryRunError) -> Refused {
    ApiError::from_run(error, Scopes { read: true, write: true, admin: true }).into_local()
}

/// The body of `POST /api/v1/query/explain` for the operator, who sees the warehouse's plan. `None`:
/// the warehouse has none.
pub fn explanation(explanation: &Explanation, warehouse_plan: Option<String>) -> Map<String, Json> {
    wire::explanation::to_wire(explanation, WarehousePlan::of(warehouse_plan))
}

/// An audit record, as the route of the audit log tells it.
pub fn audit_record(record: &AuditRecord) -> Json {
    crate::wire::audit::record_to_wire(record)
}
