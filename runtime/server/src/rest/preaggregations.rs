//! Pre-aggregations: their state, and their builds.

use axum::http::{Method, StatusCode};
use axum::response::Response;
use terrane_wire::preaggregations::{
    PreaggregationBuild, PreaggregationBuilds, PreaggregationRefresh, PreaggregationsStatus, refresh_from_wire,
};
use terrane_wire::{Audience, Code, ErrorBody, schema};

use crate::app::{App, Scope};
use crate::edge::{ApiError, Call, RouteAccess, Routes, json_answer};
use crate::openapi::{Compression, Content, Doc, Parameter, RequestBody, ResponseDoc};

const TAG: &str = "preaggregations";
const WRITE: RouteAccess = RouteAccess::Scoped(Scope::Write);

pub(super) fn register(routes: Routes) -> Routes {
    routes
        .get("/api/v1/preaggregations/status", RouteAccess::Scoped(Scope::Read), &STATUS, status)
        .post("/api/v1/preaggregations/refresh", WRITE, &REFRESH, refresh)
        .on(Method::DELETE, "/api/v1/preaggregations/builds/{id}", WRITE, &CANCEL, cancel)
}

async fn status(app: App, call: Call) -> Result<Response, ApiError> {
    let service = &app.services.preaggregations;
    let found = service.status(&call.context).await.map_err(|error| ApiError::from_store(&error))?;
    Ok(json_answer(&PreaggregationsStatus::new(service.is_enabled(), &found, Audience::of(call.context.scopes))))
}

async fn refresh(app: App, call: Call) -> Result<Response, ApiError> {
    let context = call.context.clone();
    let wanted = refresh_from_wire(&call.json_body_or_none(&app).await?)?;
    let builds =
        app.services.preaggregations.refresh(&wanted, &context).await.map_err(|error| ErrorBody::from(&error))?;
    let audience = Audience::of(context.scopes);
    let builds = builds.iter().map(|build| PreaggregationBuild::new(build, audience)).collect();
    let mut response = json_answer(&PreaggregationBuilds { builds });
    *response.status_mut() = StatusCode::ACCEPTED;
    Ok(response)
}

async fn cancel(app: App, mut call: Call) -> Result<Response, ApiError> {
    let id = call.path_parameter().await?;
    let build =
        app.services.preaggregations.cancel(&id, &call.context).await.map_err(|error| ErrorBody::from(&error))?;
    Ok(json_answer(&PreaggregationBuild::new(&build, Audience::of(call.context.scopes))))
}

static STATUS: Doc = Doc {
    id: "preaggregations_status",
    tag: TAG,
    summary: "List pre-aggregations with their states and newest builds",
    parameters: &[],
    body: None,
    answers: &[ResponseDoc {
        status: 200,
        description: "all pre-aggregations whose cubes and members the caller may see",
        content: &[Content::Json(schema::of::<PreaggregationsStatus>())],
        compression: Compression::Accepted,
    }],
    errors: &[],
    detail_errors: &[],
};

static REFRESH: Doc = Doc {
    id: "refresh_preaggregations",
    tag: TAG,
    summary: "Build pre-aggregations now, even if their rows have not changed",
    parameters: &[],
    body: Some(RequestBody::optional(schema::of::<PreaggregationRefresh>())),
    answers: &[ResponseDoc {
        status: 202,
        description: "the waiting builds; a pre-aggregation that is already waiting keeps its build",
        content: &[Content::Json(schema::of::<PreaggregationBuilds>())],
        compression: Compression::Accepted,
    }],
    errors: &[Code::InvalidQuery, Code::NotFound, Code::Conflict, Code::UnsupportedMediaType],
    detail_errors: &[],
};

static CANCEL: Doc = Doc {
    id: "cancel_preaggregation_build",
    tag: TAG,
    summary: "Cancel a waiting or running build",
    parameters: &[Parameter::path("id", "the id of a build")],
    body: None,
    answers: &[ResponseDoc {
        status: 200,
        description: "the build; a build that has ended is unchanged, and a running build stops within a second",
        content: &[Content::Json(schema::of::<PreaggregationBuild>())],
        compression: Compression::Accepted,
    }],
    errors: &[Code::NotFound, Code::Conflict],
    detail_errors: &[],
};
