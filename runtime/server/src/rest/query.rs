//! Queries: run one, or show its SQL.

use axum::response::Response;

use crate::app::{App, Scope};
use crate::call::Call;
use crate::edge::json_response;
use crate::error::ApiError;
use crate::routes::{Access, Routes};
use crate::wire::answer;
use crate::wire::query::{self, QueryRequest};

const READ: Access = Access::Scoped(Scope::Read);

pub(super) fn register(routes: Routes) -> Routes {
    routes.post("/api/v1/query", READ, run_body).get("/api/v1/query", READ, run_parameters).post(
        "/api/v1/query/sql",
        READ,
        show_sql,
    )
}

async fn run_body(app: App, call: Call) -> Result<Response, ApiError> {
    let (context, scopes) = (call.context.clone(), call.scopes);
    let body = call.json_body(&app).await?;
    run(&app, &context, scopes, &query::from_wire(&body)?).await
}

async fn run_parameters(app: App, call: Call) -> Result<Response, ApiError> {
    let request = query::from_parameters(call.query_string())?;
    run(&app, &call.context, call.scopes, &request).await
}

async fn run(
    app: &App,
    context: &terrane_app::query::RequestContext,
    scopes: crate::app::Scopes,
    request: &QueryRequest,
) -> Result<Response, ApiError> {
    let outcome = app.ports.queries.run(context, &request.query).await;
    let answer = outcome.map_err(|error| ApiError::from_run(error, scopes))?;
    Ok(json_response(answer::to_wire(answer, request).await))
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
