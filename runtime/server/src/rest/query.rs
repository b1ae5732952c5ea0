//! Queries: run one, show its SQL, or explain it.

use axum::response::Response;
use serde_json::Value as Json;
use terrane_app::query::{Extent, RequestContext};

use crate::app::{App, Scope, Scopes};
use crate::call::Call;
use crate::edge::json_response;
use crate::error::ApiError;
use crate::routes::{Access, Routes};
use crate::wire::answer;
use crate::wire::explanation::{self, WarehousePlan};
use crate::wire::format::Format;
use crate::wire::query::{self, QueryRequest};

const READ: Access = Access::Scoped(Scope::Read);

pub(super) fn register(routes: Routes) -> Routes {
    routes
        .post("/api/v1/query", READ, run_body)
        .get("/api/v1/query", READ, run_parameters)
        .post("/api/v1/query/sql", READ, show_sql)
        .post("/api/v1/query/explain", READ, explain)
}

async fn run_body(app: App, call: Call) -> Result<Response, ApiError> {
    let (context, scopes, format) = (call.context.clone(), call.scopes, Format::accepted(call.headers())?);
    let body = call.json_body(&app).await?;
    run(&app, &context, scopes, &query::from_wire(&body)?, format).await
}

async fn run_parameters(app: App, call: Call) -> Result<Response, ApiError> {
    let format = Format::accepted(call.headers())?;
    let request = query::from_parameters(call.query_string())?;
    run(&app, &call.context, call.scopes, &request, format).await
}

async fn run(
    app: &App,
    context: &RequestContext,
    scopes: Scopes,
    request: &QueryRequest,
    format: Format,
) -> Result<Response, ApiError> {
    let extent = match format {
        Format::Json => Extent::Page,
        Format::Csv | Format::Arrow => Extent::Export,
    };
    let outcome = app.ports.queries.open(context, &request.query, extent).await;
    let opened = outcome.map_err(|error| ApiError::from_run(error, scopes))?;
    answer::to_wire(opened, request, format).await
}

async fn show_sql(app: App, call: Call) -> Result<Response, ApiError> {
    let context = call.context.clone();
    let body = call.json_body(&app).await?;
    let request = query::from_wire_for_sql(&body)?;
    let queries = &app.ports.queries;
    if request.inline {
        let sql = queries.inline_sql(&context, &request.query)?;
        return Ok(json_response(answer::sql_to_wire(&sql, &[])));
    }
    let sql = queries.sql(&context, &request.query)?;
    Ok(json_response(answer::sql_to_wire(&sql.text, &sql.params)))
}

async fn explain(app: App, call: Call) -> Result<Response, ApiError> {
    let (context, scopes) = (call.context.clone(), call.scopes);
    let body = call.json_body(&app).await?;
    let QueryRequest { query, .. } = query::from_wire(&body)?;
    let queries = &app.ports.queries;
    let explanation = queries.explain(&context, &query)?;
    let plan = if scopes.hold(Scope::Admin) {
        let plan = queries.warehouse_plan(&query, &explanation).await;
        WarehousePlan::of(plan.map_err(|error| ApiError::from_run(error, scopes))?)
    } else {
        WarehousePlan::of_admins()
    };
    Ok(json_response(Json::Object(explanation::to_wire(&explanation, plan)).to_string().into_bytes()))
}
