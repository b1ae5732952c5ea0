//! The GraphQL protocol on `/graphql`: HTTP, server-sent events, WebSockets, and a page to try it.
//!
//! In: requests, whose operations the executor of `terrane-graphql` reads and runs. Out: responses by the specification
//! of GraphQL over HTTP, streams of events, and sessions of `graphql-transport-ws`. Errors of the edge, such as 401 and
//! 429, are GraphQL errors too. Not here: the schema, and limits of documents (`terrane-graphql`).

mod answer;
mod docs;
mod events;
mod http;
mod negotiation;
mod operation;
mod page;
mod places;
mod settings;
mod socket;

use axum::extract::Request;
use axum::http::header::WWW_AUTHENTICATE;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::Response;
use axum::routing::Router;
use serde_json::{Value as Json, json};
use terrane_app::ports::governance::Surface;
use terrane_wire::graphql::GraphQlAnswer;
use terrane_wire::schema::{self, Components};

use crate::app::{App, Scope};
use crate::edge::{ApiError, Call, Credentials, Parts, Protocol, Route, RouteAccess, Routes, UnknownParameters};
use answer::BodyType;
pub(crate) use places::Places;
pub use settings::GraphQlHttpSettings;

const PATH: &str = "/graphql";
const READ: RouteAccess = RouteAccess::Scoped(Scope::Read);

/// GraphQL, with errors in one of its media types.
pub(crate) struct GraphQlProtocol {
    body_type: BodyType,
}

/// The protocols for clients that accept `application/graphql-response+json`, and for all other clients.
pub(crate) static PROTOCOLS: [&dyn Protocol; 2] =
    [&GraphQlProtocol { body_type: BodyType::GraphQlResponse }, &GraphQlProtocol { body_type: BodyType::Json }];

impl Protocol for GraphQlProtocol {
    fn surface(&self) -> Surface {
        Surface::Graphql
    }

    fn answers(&self, request: &Request) -> bool {
        let is_chosen = || self.body_type == BodyType::Json || negotiation::names_graphql_response(request.headers());
        is_path(request.uri().path()) && is_chosen()
    }

    fn is_probe(&self, _: &str) -> bool {
        false
    }

    fn accepts(&self, credentials: &Credentials) -> bool {
        !matches!(credentials, Credentials::Basic { .. })
    }

    fn render(&self, error: ApiError, correlation_id: &str) -> Response {
        let Parts { body, headers, .. } = error.into_parts();
        let status = StatusCode::from_u16(body.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = answer::refused(self.body_type, status, body, correlation_id);
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response.headers_mut().extend(headers);
        response
    }
}

/// Returns whether a path belongs to GraphQL.
pub(crate) fn is_path(path: &str) -> bool {
    path.strip_prefix(PATH).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Describes the content of errors in `/openapi.json`.
pub(crate) fn error_content(components: &mut Components) -> Json {
    let schema = components.answer(schema::of::<GraphQlAnswer>());
    json!({
        "application/json": { "schema": schema },
        "application/graphql-response+json": { "schema": schema },
    })
}

fn all() -> Routes {
    let get = |path, access, doc| Route { method: Method::GET, path, access, doc };
    Routes::default()
        .post(PATH, READ, &docs::POST, http::post)
        .add_exempting(get(PATH, READ, &docs::GET), is_public, UnknownParameters::Rejected, http::get)
        .get("/graphql/schema.graphql", READ, &docs::SCHEMA, schema_text)
        .get("/graphql/page/{file}", RouteAccess::Public, &docs::FILE, page::file)
}

/// Returns whether a GET needs no credential: it asks for the page, or it opens a socket, whose first message can have
/// the credential.
fn is_public(request: &Request) -> bool {
    if socket::is_handshake(request.headers()) {
        return matches!(Credentials::read(request), Ok(Credentials::None));
    }
    negotiation::prefers_page(request.headers())
}

pub(crate) fn routes() -> Vec<Route> {
    all().into_parts().1
}

pub(crate) fn router() -> Router<App> {
    all().into_parts().0
}

/// Rejects requests of a server without GraphQL.
fn check_enabled(app: &App, path: &str) -> Result<(), ApiError> {
    if app.settings.graphql.is_enabled { Ok(()) } else { Err(ApiError::not_found(path)) }
}

/// Returns the schema in its definition language.
async fn schema_text(app: App, call: Call) -> Result<Response, ApiError> {
    check_enabled(&app, call.path())?;
    if !app.settings.graphql.schema.introspection {
        return Err(ApiError::not_found(call.path()));
    }
    Ok(answer::text(app.graphql.schema_text(), "text/plain; charset=utf-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_the_protocol_begin_with_its_name() {
        for path in ["/graphql", "/graphql/", "/graphql/schema.graphql", "/graphql/page/a.js"] {
            assert!(is_path(path), "{path}");
        }
        for path in ["/", "/graphqlx", "/api/v1/graphql", "/GraphQL"] {
            assert!(!is_path(path), "{path}");
        }
    }
}
