//! Responses of the GraphQL surface.
//!
//! In: the executor's response, or an error. Out: an HTTP response with the status that its media type demands (GraphQL
//! over HTTP, section 6.4). A response of `application/graphql-response+json` has the status of its errors if nothing
//! was executed. A response of `application/json` always has 200, because clients cannot know whether a response of
//! this type with another status comes from a proxy.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, VARY};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use terrane_graphql::{Refusal, Response as GraphQlResponse};
use terrane_wire::ErrorBody;

/// The media type of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyType {
    GraphQlResponse,
    Json,
}

impl BodyType {
    fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            BodyType::GraphQlResponse => "application/graphql-response+json; charset=utf-8",
            BodyType::Json => "application/json; charset=utf-8",
        })
    }
}

pub(super) fn of_operation(body_type: BodyType, response: GraphQlResponse) -> Response {
    let status = match body_type {
        BodyType::GraphQlResponse if !response.has_data() => {
            let status = response.codes().first().map(|code| code.status());
            status.and_then(|status| StatusCode::from_u16(status).ok()).unwrap_or(StatusCode::BAD_REQUEST)
        }
        BodyType::GraphQlResponse | BodyType::Json => StatusCode::OK,
    };
    respond(body_type, status, response)
}

/// Returns the response to a request that has no operation to execute.
pub(super) fn refused(body_type: BodyType, status: StatusCode, error: ErrorBody, correlation_id: &str) -> Response {
    respond(body_type, status, GraphQlResponse::refused(&Refusal::new(error), correlation_id))
}

fn respond(body_type: BodyType, status: StatusCode, response: GraphQlResponse) -> Response {
    let mut answer = Response::new(Body::from(response.into_body()));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, body_type.content_type());
    answer.headers_mut().insert(VARY, HeaderValue::from_static("accept, accept-encoding"));
    answer
}

/// Returns a string with its media type.
pub(super) fn text(text: &str, content_type: &'static str) -> Response {
    let mut answer = Response::new(Body::from(text.to_owned()));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}
