//! DAX: rows and checks of queries, completions, functions, tables and sessions.

mod sessions;

use axum::body::Bytes;
use axum::response::Response;
use terrane_app::blocking::over_rows;
use terrane_app::dax as queries;
use terrane_app::query::log_unreadable;
use terrane_compiler::Access as Visible;
use terrane_wire::{Code, dax, schema};

use crate::app::{App, Scope};
use crate::dax::body_limit;
use crate::edge::{ApiError, Call, RouteAccess, Routes, json_answer, json_response};
use crate::openapi::{Compression, Content, Doc, Parameter, ParameterKind, RequestBody, ResponseDoc};

const READ: RouteAccess = RouteAccess::Scoped(Scope::Read);

pub(super) fn register(routes: Routes) -> Routes {
    sessions::register(routes)
        .post("/api/v1/dax/execute", READ, &EXECUTE, execute)
        .post("/api/v1/dax/validate", READ, &VALIDATE, validate)
        .get("/api/v1/dax/functions", READ, &FUNCTIONS, functions)
        .post("/api/v1/dax/completions", READ, &COMPLETIONS, completions)
        .get("/api/v1/dax/cubes", READ, &CUBES, cubes)
}

/// Reads the body of a request with a query.
async fn body(call: Call, app: &App) -> Result<Bytes, ApiError> {
    call.json_body_up_to(body_limit(app), app).await
}

async fn execute(app: App, call: Call) -> Result<Response, ApiError> {
    let context = call.context.clone();
    let session = sessions::resume(&app, &call)?;
    let (query, parameters) = dax::execution_from_wire(&body(call, &app).await?)?;
    match queries::execute_with(&app.services.queries, &context, &query, &parameters).await {
        Ok(answer) => {
            let body = over_rows(answer.rows, move || dax::result(&answer)).await;
            let mut response = json_response(body);
            response.headers_mut().extend(session.map(|id| (sessions::SESSION_HEADER, id)));
            Ok(response)
        }
        Err(error) => {
            let is_unreadable = matches!(error, queries::DaxError::Problems(_));
            let refusal = dax::refusal(&query, error, context.scopes);
            if is_unreadable {
                log_unreadable(&refusal.message);
            }
            Err(refusal.into())
        }
    }
}

async fn validate(app: App, call: Call) -> Result<Response, ApiError> {
    let context = call.context.clone();
    let query = dax::query_from_wire(&body(call, &app).await?)?;
    let problems = queries::check(&app.services.queries, &context, &query).await;
    let problems = problems.map_err(|error| dax::refusal(&query, error, context.scopes))?;
    Ok(json_answer(&dax::validation(&query, &problems)))
}

async fn functions(_: App, _: Call) -> Result<Response, ApiError> {
    Ok(json_answer(&dax::functions()))
}

async fn completions(app: App, call: Call) -> Result<Response, ApiError> {
    let caller = call.context.caller.clone();
    let (query, offset) = dax::position_from_wire(&body(call, &app).await?)?;
    let snapshot = app.services.catalog.snapshot();
    let items = terrane_dax::complete(&query, offset, &Visible::of(&snapshot.model, &caller));
    Ok(json_answer(&dax::completions(&query, items)))
}

async fn cubes(app: App, call: Call) -> Result<Response, ApiError> {
    let snapshot = app.services.catalog.snapshot();
    let notes = app.services.notes(&snapshot, &call.context).await;
    Ok(json_answer(&dax::cubes(&Visible::of(&snapshot.model, &call.context.caller), &notes)))
}

const TAG: &str = "dax";

static EXECUTE: Doc = Doc {
    id: "execute_dax",
    tag: TAG,
    summary: "Answer a DAX query",
    parameters: &[Parameter::header(
        "X-Session-ID",
        ParameterKind::String,
        "the id of a session of the caller, in which the query runs",
    )],
    body: Some(RequestBody::required(schema::of::<dax::DaxExecution>())),
    answers: &[ResponseDoc {
        status: 200,
        description: "the rows of the first `EVALUATE`",
        content: &[Content::Json(schema::of::<dax::DaxResult>())],
        compression: Compression::Accepted,
    }],
    errors: &[
        Code::NotFound,
        Code::InvalidQuery,
        Code::DaxSyntaxError,
        Code::InvalidMeasure,
        Code::InvalidDimension,
        Code::InvalidFilter,
        Code::NoJoinPath,
        Code::GuardrailExceeded,
        Code::QueryTimeout,
        Code::WarehouseError,
        Code::WarehouseUnavailable,
    ],
    detail_errors: &[],
};

static VALIDATE: Doc = Doc {
    id: "validate_dax",
    tag: TAG,
    summary: "Check a DAX query without running it",
    parameters: &[],
    body: Some(RequestBody::required(schema::of::<dax::DaxQuery>())),
    answers: &[ResponseDoc {
        status: 200,
        description: "all problems of the query; the status is 200 also if the query is invalid",
        content: &[Content::Json(schema::of::<dax::DaxValidation>())],
        compression: Compression::Accepted,
    }],
    errors: &[Code::InvalidQuery],
    detail_errors: &[],
};

static FUNCTIONS: Doc = Doc::simple(
    "dax_functions",
    TAG,
    "List the functions of DAX",
    &[ResponseDoc {
        status: 200,
        description: "the functions by name, each with its signature",
        content: &[Content::Json(schema::of::<dax::DaxFunctions>())],
        compression: Compression::Accepted,
    }],
);

static COMPLETIONS: Doc = Doc {
    id: "complete_dax",
    tag: TAG,
    summary: "Complete a DAX query at a position",
    parameters: &[],
    body: Some(RequestBody::required(schema::of::<dax::DaxPosition>())),
    answers: &[ResponseDoc {
        status: 200,
        description: "keywords, functions, tables, columns, measures and variables that match, at most 200",
        content: &[Content::Json(schema::of::<dax::DaxCompletions>())],
        compression: Compression::Accepted,
    }],
    errors: &[Code::InvalidQuery],
    detail_errors: &[],
};

static CUBES: Doc = Doc::simple(
    "dax_cubes",
    TAG,
    "List the tables of DAX queries with their columns and measures",
    &[ResponseDoc {
        status: 200,
        description: "the cubes that the caller may see",
        content: &[Content::Json(schema::of::<dax::DaxCubes<'static>>())],
        compression: Compression::Accepted,
    }],
);
