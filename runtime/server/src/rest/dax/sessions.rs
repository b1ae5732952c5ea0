//! Sessions of DAX clients: begun, listed, read and ended by their caller.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::Response;
use terrane_wire::{Code, dax, schema};

use super::{READ, TAG};
use crate::app::App;
use crate::edge::{ApiError, Call, Routes, json_answer};
use crate::openapi::{Compression, Content, Doc, Parameter, ResponseDoc};

/// The header with the id of a session.
pub(super) const SESSION_HEADER: HeaderName = HeaderName::from_static("x-session-id");

const PATH: &str = "/api/v1/dax/sessions";
const ONE: &str = "/api/v1/dax/sessions/{id}";

pub(super) fn register(routes: Routes) -> Routes {
    routes.post(PATH, READ, &BEGIN, begin).get(PATH, READ, &LIST, list).get(ONE, READ, &READ_ONE, read).on(
        Method::DELETE,
        ONE,
        READ,
        &END,
        end,
    )
}

async fn begin(app: App, call: Call) -> Result<Response, ApiError> {
    let session = app.services.dax_sessions.begin(&call.context);
    let session = session.map_err(|error| ApiError::overloaded(error.to_string()))?;
    let mut response = json_answer(&dax::session(&session));
    *response.status_mut() = StatusCode::CREATED;
    add_to(&mut response, &session.id);
    Ok(response)
}

async fn list(app: App, call: Call) -> Result<Response, ApiError> {
    Ok(json_answer(&dax::sessions(&app.services.dax_sessions.list(&call.context))))
}

async fn read(app: App, mut call: Call) -> Result<Response, ApiError> {
    let id = call.path_parameter().await?;
    let session = app.services.dax_sessions.find(&call.context, &id).ok_or_else(unknown)?;
    Ok(json_answer(&dax::session(&session)))
}

async fn end(app: App, mut call: Call) -> Result<Response, ApiError> {
    let id = call.path_parameter().await?;
    if !app.services.dax_sessions.end(&call.context, &id) {
        return Err(unknown());
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}

/// Resumes the session that the header names, if it names one.
pub(super) fn resume(app: &App, call: &Call) -> Result<Option<HeaderValue>, ApiError> {
    let Some(id) = only(call.headers())? else { return Ok(None) };
    let text = id.to_str().map_err(|_| unknown())?;
    app.services.dax_sessions.resume(&call.context, text).ok_or_else(unknown)?;
    Ok(Some(id.clone()))
}

fn only(headers: &HeaderMap) -> Result<Option<&HeaderValue>, ApiError> {
    let mut ids = headers.get_all(SESSION_HEADER).iter();
    match (ids.next(), ids.next()) {
        (id, None) => Ok(id),
        (_, Some(_)) => Err(ApiError::new(Code::InvalidQuery, "more than one `X-Session-ID`")),
    }
}

fn add_to(response: &mut Response, id: &str) {
    if let Ok(value) = HeaderValue::from_str(id) {
        response.headers_mut().insert(SESSION_HEADER, value);
    }
}

fn unknown() -> ApiError {
    let message = "the session is unknown or has ended; start one with `POST /api/v1/dax/sessions`";
    ApiError::new(Code::NotFound, message)
}

const ID: Parameter = Parameter::path("id", "the id of a session");
const SESSION: Content = Content::Json(schema::of::<dax::DaxSession>());

const fn answer(status: u16, description: &'static str, content: &'static [Content]) -> ResponseDoc {
    ResponseDoc { status, description, content, compression: Compression::Accepted }
}

static BEGIN: Doc = Doc {
    id: "begin_dax_session",
    tag: TAG,
    summary: "Begin a session",
    parameters: &[],
    body: None,
    answers: &[answer(201, "the session; its id is also in `X-Session-ID`", &[SESSION])],
    errors: &[],
    detail_errors: &[],
};

static LIST: Doc = Doc::simple(
    "dax_sessions",
    TAG,
    "List the caller's sessions",
    &[answer(200, "the sessions that have not ended", &[Content::Json(schema::of::<dax::DaxSessions>())])],
);

static READ_ONE: Doc = Doc {
    id: "read_dax_session",
    tag: TAG,
    summary: "Read a session of the caller",
    parameters: &[ID],
    body: None,
    answers: &[answer(200, "the session", &[SESSION])],
    errors: &[Code::NotFound],
    detail_errors: &[],
};

static END: Doc = Doc {
    id: "end_dax_session",
    tag: TAG,
    summary: "End a session of the caller",
    parameters: &[ID],
    body: None,
    answers: &[answer(204, "the session has ended", &[])],
    errors: &[Code::NotFound],
    detail_errors: &[],
};
