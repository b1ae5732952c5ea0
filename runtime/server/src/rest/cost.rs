//! The costs of queries: the history of executed queries, predictions, and guardrails.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use terrane_app::cost::{GuardrailError, GuardrailService};
use terrane_app::ports::guardrails::GuardrailSubject;
use terrane_wire::cost::{
    BudgetUsage, CostPrediction, EffectiveGuardrails, GuardrailAnswer, GuardrailChange, GuardrailQuestion,
    PredictionRequest, QueryHistory, Recommendations, SubjectGuardrails, history_from_parameters, limits_from_wire,
    prediction_from_wire, question_from_wire, recommendations_from_parameters, usage_from_parameters,
    user_from_parameters,
};
use terrane_wire::{Code, ErrorBody, QueryForm, schema};

use super::conditional::{IF_MATCH_HEADER, precondition, with_version};
use crate::app::{App, Scope};
use crate::edge::{ApiError, Call, RouteAccess, Routes, json_answer};
use crate::openapi::{Compression, Content, Doc, Parameter, ParameterKind, RequestBody, ResponseDoc};

const READ: RouteAccess = RouteAccess::Scoped(Scope::Read);
const ADMIN: RouteAccess = RouteAccess::Scoped(Scope::Admin);
const OF_USER: &str = "/api/v1/optimization/guardrails/users/{user_id}";
const OF_GROUP: &str = "/api/v1/optimization/guardrails/groups/{role}";

pub(super) fn register(routes: Routes) -> Routes {
    routes
        .get("/api/v1/optimization/history", READ, &HISTORY, history)
        .get("/api/v1/optimization/guardrails", READ, &EFFECTIVE, effective)
        .post("/api/v1/optimization/check-guardrails", READ, &CHECK, check)
        .post("/api/v1/optimization/predict-cost", READ, &PREDICT, predict)
        .get("/api/v1/optimization/budget/usage", READ, &USAGE, usage)
        .get("/api/v1/optimization/recommendations", READ, &RECOMMENDATIONS, recommendations)
        .get(OF_USER, READ, &USER, |app, call| shown(app, call, GuardrailSubject::User))
        .on(Method::PUT, OF_USER, ADMIN, &SET_USER, |app, call| set(app, call, GuardrailSubject::User))
        .on(Method::DELETE, OF_USER, ADMIN, &REMOVE_USER, |app, call| remove(app, call, GuardrailSubject::User))
        .get(OF_GROUP, READ, &GROUP, |app, call| shown(app, call, GuardrailSubject::Group))
        .on(Method::PUT, OF_GROUP, ADMIN, &SET_GROUP, |app, call| set(app, call, GuardrailSubject::Group))
        .on(Method::DELETE, OF_GROUP, ADMIN, &REMOVE_GROUP, |app, call| remove(app, call, GuardrailSubject::Group))
}

/// Converts a name to a subject of guardrails: a user or a group.
type SubjectOf = fn(Arc<str>) -> GuardrailSubject;

/// Returns the use cases. If the server has none, the routes do not exist.
fn guardrails<'a>(app: &'a App, path: &str) -> Result<&'a Arc<GuardrailService>, ApiError> {
    app.services.guardrails.as_ref().ok_or_else(|| ApiError::not_found(path))
}

fn refused(error: GuardrailError) -> ApiError {
    ErrorBody::from(&error).into()
}

async fn effective(app: App, call: Call) -> Result<Response, ApiError> {
    let service = guardrails(&app, call.path())?;
    let user_id = user_from_parameters(call.query_string())?;
    let sources = service.sources(&call.context, user_id.as_ref()).await.map_err(refused)?;
    Ok(json_answer(&EffectiveGuardrails::from(sources.as_slice())))
}

async fn check(app: App, call: Call) -> Result<Response, ApiError> {
    let (service, context) = (guardrails(&app, call.path())?.clone(), call.context.clone());
    let (query, user_id) = question_from_wire(&call.json_body(&app).await?)?;
    let checked = service.check(&context, &query, user_id.as_ref()).await;
    let checked = checked.map_err(|error| ErrorBody::from_guardrail_check(error, context.scopes))?;
    Ok(json_answer(&GuardrailAnswer::new(&checked, QueryForm::Json)))
}

async fn usage(app: App, call: Call) -> Result<Response, ApiError> {
    let service = guardrails(&app, call.path())?;
    let (user_id, period) = usage_from_parameters(call.query_string())?;
    let usage = service.budget_usage(&call.context, user_id.as_ref(), period).await.map_err(refused)?;
    Ok(json_answer(&BudgetUsage::from(&usage)))
}

async fn recommendations(app: App, call: Call) -> Result<Response, ApiError> {
    let Some(cost) = &app.services.cost else { return Err(ApiError::not_found(call.path())) };
    let (user_id, days) = recommendations_from_parameters(call.query_string())?;
    let days = days.unwrap_or(cost.recommendation_days());
    let found = cost.recommendations(&call.context, user_id, days).await.map_err(ErrorBody::from)?;
    Ok(json_answer(&Recommendations::new(days, &found)))
}

async fn predict(app: App, call: Call) -> Result<Response, ApiError> {
    let Some(predictor) = app.services.predictor.clone() else { return Err(ApiError::not_found(call.path())) };
    let context = call.context.clone();
    let (query, includes_preaggregations) = prediction_from_wire(&call.json_body(&app).await?)?;
    let predicted = predictor.predict(&context, &query).await;
    let predicted = predicted.map_err(|error| ErrorBody::from_prediction(error, context.scopes))?;
    Ok(json_answer(&CostPrediction::new(&predicted, includes_preaggregations)))
}

async fn shown(app: App, mut call: Call, subject_of: SubjectOf) -> Result<Response, ApiError> {
    let service = guardrails(&app, call.path())?;
    let subject = subject_of(call.path_parameter().await?.into());
    let record = service.guardrails(&call.context, &subject).await.map_err(refused)?;
    Ok(with_version(json_answer(&SubjectGuardrails::from(&*record)), record.version))
}

async fn set(app: App, mut call: Call, subject_of: SubjectOf) -> Result<Response, ApiError> {
    let (service, context) = (guardrails(&app, call.path())?.clone(), call.context.clone());
    let precondition = precondition(call.headers())?;
    let subject = subject_of(call.path_parameter().await?.into());
    let limits = limits_from_wire(&call.json_body(&app).await?)?;
    let record = service.change(&context, &subject, Some(limits), &precondition).await.map_err(refused)?;
    Ok(with_version(json_answer(&SubjectGuardrails::from(&record)), record.version))
}

async fn remove(app: App, mut call: Call, subject_of: SubjectOf) -> Result<Response, ApiError> {
    let service = guardrails(&app, call.path())?;
    let precondition = precondition(call.headers())?;
    let subject = subject_of(call.path_parameter().await?.into());
    service.change(&call.context, &subject, None, &precondition).await.map_err(refused)?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}

async fn history(app: App, call: Call) -> Result<Response, ApiError> {
    let Some(cost) = &app.services.cost else { return Err(ApiError::not_found(call.path())) };
    let filter = history_from_parameters(call.query_string())?;
    let limit = filter.limit;
    let queries = cost.history(&call.context, filter).await.map_err(ErrorBody::from)?;
    Ok(json_answer(&QueryHistory::new(&queries, limit)))
}

const TAG: &str = "optimization";
const USER_ID: Parameter = Parameter::path("user_id", "the id of a user");
const ROLE: Parameter = Parameter::path("role", "the name of a role or a group of callers");
const OF_SUBJECTS: &[Code] = &[Code::NotFound, Code::StateUnavailable];
const OF_CHANGES: &[Code] = &[Code::NotFound, Code::Conflict, Code::PreconditionFailed, Code::StateUnavailable];
/// The errors of a query that is compiled and not run.
const OF_QUERIES: &[Code] = &[
    Code::InvalidQuery,
    Code::InvalidMeasure,
    Code::InvalidDimension,
    Code::InvalidFilter,
    Code::NoJoinPath,
    Code::StateUnavailable,
];
const SUBJECT: &[ResponseDoc] = &[described("the guardrails", &[Content::Json(schema::of::<SubjectGuardrails>())])];
const REMOVED: &[ResponseDoc] = &[ResponseDoc {
    status: 204,
    description: "the guardrails are removed",
    content: &[],
    compression: Compression::Accepted,
}];

const fn described(description: &'static str, content: &'static [Content]) -> ResponseDoc {
    ResponseDoc { status: 200, description, content, compression: Compression::Accepted }
}

const fn of_subject(id: &'static str, summary: &'static str, parameters: &'static [Parameter]) -> Doc {
    let (answers, errors) = (SUBJECT, OF_SUBJECTS);
    Doc { id, tag: TAG, summary, parameters, body: None, answers, errors, detail_errors: &[] }
}

const fn of_change(id: &'static str, summary: &'static str, parameters: &'static [Parameter]) -> Doc {
    let body = Some(RequestBody::required(schema::of::<GuardrailChange>()));
    let (answers, errors) = (SUBJECT, OF_CHANGES);
    Doc { id, tag: TAG, summary, parameters, body, answers, errors, detail_errors: &[] }
}

const fn of_removal(id: &'static str, summary: &'static str, parameters: &'static [Parameter]) -> Doc {
    let (answers, errors) = (REMOVED, OF_CHANGES);
    Doc { id, tag: TAG, summary, parameters, body: None, answers, errors, detail_errors: &[] }
}

static USER: Doc =
    of_subject("guardrails_of_user", "Read the guardrails of a user; those of other users need `admin`", &[USER_ID]);
static SET_USER: Doc =
    of_change("set_guardrails_of_user", "Replace the guardrails of a user", &[USER_ID, IF_MATCH_HEADER]);
static REMOVE_USER: Doc =
    of_removal("remove_guardrails_of_user", "Remove the guardrails of a user", &[USER_ID, IF_MATCH_HEADER]);
static GROUP: Doc = of_subject(
    "guardrails_of_group",
    "Read the guardrails of a role or a group; without `admin` only those of the caller's roles and groups",
    &[ROLE],
);
static SET_GROUP: Doc =
    of_change("set_guardrails_of_group", "Replace the guardrails of a role or a group", &[ROLE, IF_MATCH_HEADER]);
static REMOVE_GROUP: Doc =
    of_removal("remove_guardrails_of_group", "Remove the guardrails of a role or a group", &[ROLE, IF_MATCH_HEADER]);

static EFFECTIVE: Doc = Doc {
    id: "effective_guardrails",
    tag: TAG,
    summary: "Read the effective guardrails of the caller: the settings, restricted by the guardrails of its groups and its own",
    parameters: &[Parameter::query(
        "user_id",
        ParameterKind::String,
        "the id of another user, which needs `admin`; the groups of that user are not known",
    )],
    body: None,
    answers: &[described("guardrails with their sources", &[Content::Json(schema::of::<EffectiveGuardrails>())])],
    errors: &[Code::InvalidQuery, Code::StateUnavailable],
    detail_errors: &[],
};

static CHECK: Doc = Doc {
    id: "check_guardrails",
    tag: TAG,
    summary: "Check a query against guardrails without running it; those of other users need `admin`",
    parameters: &[],
    body: Some(RequestBody::required(schema::of::<GuardrailQuestion>())),
    answers: &[described("the result", &[Content::Json(schema::of::<GuardrailAnswer>())])],
    errors: OF_QUERIES,
    detail_errors: &[],
};

static USAGE: Doc = Doc {
    id: "budget_usage",
    tag: TAG,
    summary: "Read the costs of the caller in the current day or month, and the budget; those of other users need `admin`",
    parameters: &[
        Parameter::query("user_id", ParameterKind::String, "the id of another user, which needs `admin`"),
        Parameter::query("period", ParameterKind::String, "`current_day` or `current_month`; default `current_month`"),
    ],
    body: None,
    answers: &[described("the costs and the budget", &[Content::Json(schema::of::<BudgetUsage>())])],
    errors: &[Code::InvalidQuery, Code::StateUnavailable],
    detail_errors: &[],
};

static RECOMMENDATIONS: Doc = Doc {
    id: "cost_recommendations",
    tag: TAG,
    summary: "Recommend changes that make the caller's queries cheaper; with `admin`, all queries or those of another user",
    parameters: &[
        Parameter::query("user_id", ParameterKind::String, "the id of another user, which needs `admin`"),
        Parameter::query(
            "period",
            ParameterKind::String,
            "`last_N_days`; default: the setting `recommendation_window_days`",
        ),
    ],
    body: None,
    answers: &[described("recommendations", &[Content::Json(schema::of::<Recommendations>())])],
    errors: &[Code::InvalidQuery, Code::StateUnavailable],
    detail_errors: &[],
};

static PREDICT: Doc = Doc {
    id: "predict_cost",
    tag: TAG,
    summary: "Predict the time and the cost of a query from the history, without running it",
    parameters: &[],
    body: Some(RequestBody::required(schema::of::<PredictionRequest>())),
    answers: &[described("the prediction", &[Content::Json(schema::of::<CostPrediction>())])],
    errors: OF_QUERIES,
    detail_errors: &[],
};

static HISTORY: Doc = Doc {
    id: "query_history",
    tag: "optimization",
    summary: "List the executed queries of the caller, newest first; with `admin`, those of all callers",
    parameters: &[
        Parameter::query("user_id", ParameterKind::String, "queries of this user; another user needs `admin`"),
        Parameter::query("query_hash", ParameterKind::String, "queries with this statement"),
        Parameter::query("since", ParameterKind::Timestamp, "queries at or after this time"),
        Parameter::query("until", ParameterKind::Timestamp, "queries before this time"),
        Parameter::query("before", ParameterKind::String, "the value of `next` in the previous page"),
        Parameter::query("limit", ParameterKind::Within(1, 1_000), "the maximum number of queries; default 100"),
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
