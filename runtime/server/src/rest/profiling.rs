//! Profiles of cubes: computed on request, stored, and compared with earlier ones.

use std::sync::Arc;

use axum::response::Response;
use terrane_app::jobs::ProfileSubmission;
use terrane_app::profiling::ProfileArchive;
use terrane_wire::profile::{
    DimensionProfile, ProfileRequest, QualityScore, StoredCubeProfile, profile_job_text, profile_of_job,
    profile_parts_from_parameters, profile_request_from_wire,
};
use terrane_wire::{Code, ErrorBody, schema};

use super::jobs;
use super::stored_profile::{answer, damaged};
use crate::app::{App, Scope};
use crate::edge::{ApiError, Call, RouteAccess, Routes, json_answer};
use crate::openapi::{Compression, Content, Doc, Parameter, ParameterKind, RequestBody, ResponseDoc};

const READ: RouteAccess = RouteAccess::Scoped(Scope::Read);
const OF_CUBE: &str = "/api/v1/profiling/cubes/{cube_name}/profile";

pub(super) fn register(routes: Routes) -> Routes {
    routes
        .post(OF_CUBE, READ, &PROFILE, profile)
        .get(OF_CUBE, READ, &NEWEST, newest)
        .post("/api/v1/profiling/dimensions/{cube}/{dimension}/profile", READ, &DIMENSION, dimension)
        .get("/api/v1/profiling/cubes/{cube_name}/quality-score", READ, &SCORE, score)
}

fn archive(app: &App, call: &Call) -> Result<Arc<ProfileArchive>, ApiError> {
    app.services.profiles.clone().ok_or_else(|| ApiError::not_found(call.path()))
}

async fn profile(app: App, mut call: Call) -> Result<Response, ApiError> {
    let (archive, context) = (archive(&app, &call)?, call.context.clone());
    let cube = call.path_parameter().await?;
    jobs::idempotency_key(call.headers())?;
    if jobs::prefers_async(call.headers()) {
        return submit(app, call, &cube, None).await;
    }
    let (config, range) = profile_request_from_wire(&call.json_body_or_none(&app).await?)?;
    let text = archive.profile(&context, &cube, range.as_ref(), &config).await;
    answer(&text.map_err(|error| ErrorBody::from_profile(error, context.scopes))?)
}

/// Stores the request as a job.
async fn submit(app: App, call: Call, cube: &str, dimension: Option<&str>) -> Result<Response, ApiError> {
    let (identity, context) = (call.identity(), call.context.clone());
    let idempotency_key = jobs::idempotency_key(call.headers())?;
    let text = profile_job_text(cube, dimension, &call.json_body_or_none(&app).await?)?;
    let requested = profile_of_job(&text)?;
    let submission = ProfileSubmission { text: text.into(), requested: &requested, idempotency_key };
    let job = app.services.jobs.submit_profile(&identity, &context, submission).await;
    Ok(jobs::accepted(&job.map_err(|error| jobs::error(error, &context.scopes))?))
}

async fn newest(app: App, mut call: Call) -> Result<Response, ApiError> {
    let (archive, context) = (archive(&app, &call)?, call.context.clone());
    let parts = profile_parts_from_parameters(call.query_string())?;
    let cube = call.path_parameter().await?;
    let text = archive.newest(&context, &cube).await;
    let text = text.map_err(|error| ErrorBody::from_profile(error, context.scopes))?;
    Ok(json_answer(&parts.of(&text).ok_or_else(damaged)?))
}

async fn dimension(app: App, mut call: Call) -> Result<Response, ApiError> {
    let (archive, context) = (archive(&app, &call)?, call.context.clone());
    let (cube, dimension) = call.path_parameters().await?;
    jobs::idempotency_key(call.headers())?;
    if jobs::prefers_async(call.headers()) {
        return submit(app, call, &cube, Some(&dimension)).await;
    }
    let (config, range) = profile_request_from_wire(&call.json_body_or_none(&app).await?)?;
    let profile = archive.dimension(&context, &cube, &dimension, range.as_ref(), &config).await;
    let profile = profile.map_err(|error| ErrorBody::from_profile(error, context.scopes))?;
    Ok(json_answer(&DimensionProfile::of(&profile).ok_or_else(damaged)?))
}

async fn score(app: App, mut call: Call) -> Result<Response, ApiError> {
    let (archive, context) = (archive(&app, &call)?, call.context.clone());
    let cube = call.path_parameter().await?;
    let text = archive.newest(&context, &cube).await;
    let text = text.map_err(|error| ErrorBody::from_profile(error, context.scopes))?;
    Ok(json_answer(&QualityScore::of(&text).ok_or_else(damaged)?))
}

const TAG: &str = "profiling";
const CUBE: Parameter = Parameter::path("cube_name", "the cube");
const PREFER: Parameter = Parameter::header(
    "Prefer",
    ParameterKind::String,
    "`respond-async` computes the profile as a job, whose result is the profile",
);
const PROMISE: ResponseDoc = jobs::answer(202, "the job is stored; `Location` contains its address", jobs::JOB);
const OF_STATEMENTS: &[Code] = &[
    Code::InvalidQuery,
    Code::InvalidFilter,
    Code::Forbidden,
    Code::GuardrailExceeded,
    Code::NotFound,
    Code::QueryTimeout,
    Code::Overloaded,
    Code::WarehouseError,
    Code::WarehouseUnavailable,
    Code::StateUnavailable,
    Code::ValidationError,
];
const OF_STORED: &[Code] = &[Code::InvalidQuery, Code::Forbidden, Code::NotFound, Code::StateUnavailable];
const STORED: &[ResponseDoc] = &[described("the profile", &[Content::Json(schema::of::<StoredCubeProfile>())])];

const fn described(description: &'static str, content: &'static [Content]) -> ResponseDoc {
    ResponseDoc { status: 200, description, content, compression: Compression::Accepted }
}

static PROFILE: Doc = Doc {
    id: "profile_cube",
    tag: TAG,
    summary: "Profile a cube, compare the profile with the previous one, and store it",
    parameters: &[CUBE, jobs::KEY_OF_JOB, PREFER],
    body: Some(RequestBody::optional(schema::of::<ProfileRequest>())),
    answers: &[described("the profile", &[Content::Json(schema::of::<StoredCubeProfile>())]), PROMISE],
    errors: OF_STATEMENTS,
    detail_errors: &[],
};

static NEWEST: Doc = Doc {
    id: "cube_profile",
    tag: TAG,
    summary: "Read the newest profile of a cube that was computed with the caller's view of the cube",
    parameters: &[
        CUBE,
        Parameter::query("include_histograms", ParameterKind::Boolean, "false to leave histograms empty"),
        Parameter::query("include_insights", ParameterKind::Boolean, "false to leave insights empty"),
    ],
    body: None,
    answers: STORED,
    errors: OF_STORED,
    detail_errors: &[],
};

static DIMENSION: Doc = Doc {
    id: "profile_dimension",
    tag: TAG,
    summary: "Profile one dimension; the profile is not stored",
    parameters: &[
        Parameter::path("cube", "the cube"),
        Parameter::path("dimension", "the name of the dimension"),
        jobs::KEY_OF_JOB,
        PREFER,
    ],
    body: Some(RequestBody::optional(schema::of::<ProfileRequest>())),
    answers: &[described("the profile", &[Content::Json(schema::of::<DimensionProfile>())]), PROMISE],
    errors: OF_STATEMENTS,
    detail_errors: &[],
};

static SCORE: Doc = Doc {
    id: "quality_score",
    tag: TAG,
    summary: "Read the quality score of the newest profile of a cube",
    parameters: &[CUBE],
    body: None,
    answers: &[described("the score", &[Content::Json(schema::of::<QualityScore>())])],
    errors: OF_STORED,
    detail_errors: &[],
};
