//! Data tests: their schedule and results, for administrators.

use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, HeaderValue};
use axum::response::Response;
use terrane_wire::anomaly::no_fields_from_wire;
use terrane_wire::data_tests::{DataTestRun, DataTests};
use terrane_wire::{Code, ErrorBody, schema};

use crate::app::{App, Scope};
use crate::edge::{ApiError, Call, RouteAccess, Routes, json_answer};
use crate::openapi::{Compression, Content, Doc, Parameter, ResponseDoc};

const TAG: &str = "data-tests";
const ADMIN: RouteAccess = RouteAccess::Scoped(Scope::Admin);
const RUN: Content = Content::Json(schema::of::<DataTestRun<'static>>());

pub(super) fn register(routes: Routes) -> Routes {
    routes
        .get("/api/v1/data-tests", ADMIN, &STATUS, status)
        .post("/api/v1/data-tests/run", ADMIN, &REQUEST, request)
        .get("/api/v1/data-tests/runs/{run_id}", ADMIN, &ONE, one)
}

async fn status(app: App, call: Call) -> Result<Response, ApiError> {
    let status = app.services.data_tests.status(&call.context).await;
    let status = status.map_err(|error| ApiError::from_store(&error))?;
    Ok(fresh(json_answer(&DataTests::from(&status))))
}

async fn request(app: App, call: Call) -> Result<Response, ApiError> {
    let context = call.context.clone();
    no_fields_from_wire(&call.json_body_or_none(&app).await?)?;
    let run = app.services.data_tests.request(&context).await.map_err(|error| ApiError::from_store(&error))?;
    let mut response = fresh(json_answer(&DataTestRun::from(&run)));
    *response.status_mut() = StatusCode::ACCEPTED;
    Ok(response)
}

async fn one(app: App, mut call: Call) -> Result<Response, ApiError> {
    let id = call.path_parameter().await?;
    let run = app.services.data_tests.run(&call.context, &id).await.map_err(|error| ApiError::from_store(&error))?;
    let run = run.ok_or_else(|| ErrorBody::new(Code::NotFound, "unknown run of data tests"))?;
    Ok(fresh(json_answer(&DataTestRun::from(&run))))
}

fn fresh(mut response: Response) -> Response {
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    response
}

static STATUS: Doc = Doc {
    id: "data_tests",
    tag: TAG,
    summary: "Read the schedule of data tests, the last results and the previous runs",
    parameters: &[],
    body: None,
    answers: &[ResponseDoc {
        status: 200,
        description: "the schedule and at most 100 runs",
        content: &[Content::Json(schema::of::<DataTests<'static>>())],
        compression: Compression::Accepted,
    }],
    errors: &[Code::StateUnavailable],
    detail_errors: &[],
};

static REQUEST: Doc = Doc {
    id: "run_data_tests",
    tag: TAG,
    summary: "Request a run of all data tests; one server starts it within seconds",
    parameters: &[],
    body: None,
    answers: &[ResponseDoc {
        status: 202,
        description: "the run, which is waiting",
        content: &[RUN],
        compression: Compression::Accepted,
    }],
    errors: &[Code::InvalidQuery, Code::StateUnavailable],
    detail_errors: &[],
};

static ONE: Doc = Doc {
    id: "data_test_run",
    tag: TAG,
    summary: "Read a run of data tests with its results",
    parameters: &[Parameter::path("run_id", "the id of a run")],
    body: None,
    answers: &[ResponseDoc {
        status: 200,
        description: "the run",
        content: &[RUN],
        compression: Compression::Accepted,
    }],
    errors: &[Code::NotFound, Code::StateUnavailable],
    detail_errors: &[],
};
