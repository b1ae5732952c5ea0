//! Operations over HTTP: `POST` with a body in JSON, and `GET` for queries.

use axum::http::{HeaderValue, Method};
use axum::response::Response;
use terrane_graphql::OperationKind;
use terrane_wire::Code;
use terrane_wire::graphql::{self, GraphQlRequest};

use super::answer::BodyType;
use super::negotiation::{self, AnswerForm};
use super::operation::{self, Transport};
use super::{answer, check_enabled, events, page, socket};
use crate::app::App;
use crate::edge::{ApiError, BodyFormat, Call, ConnectedCaller};

/// The only accepted body format. With other content types, pages of other sites could send requests without a
/// preflight.
const JSON: BodyFormat = BodyFormat { name: "JSON", media_type: "application/json", suffix: None };

pub(super) async fn post(app: App, call: Call) -> Result<Response, ApiError> {
    check_enabled(&app, call.path())?;
    let form = negotiation::of_post(call.headers())?;
    let caller = call.connected();
    let body = call.body(&app, &JSON).await?;
    let request = graphql::from_wire(&body)?;
    run(app, caller, form, request, Method::POST).await
}

/// Answers a query, shows the page, or opens a socket.
pub(super) async fn get(app: App, call: Call) -> Result<Response, ApiError> {
    check_enabled(&app, call.path())?;
    if socket::is_handshake(call.headers()) {
        return socket::open(app, call).await;
    }
    let form = negotiation::of_get(call.headers())?;
    if form == AnswerForm::Page {
        return page::page(&app, call.path());
    }
    let request = graphql::from_parameters(call.query_string())?;
    run(app, call.connected(), form, request, Method::GET).await
}

async fn run(
    app: App,
    caller: ConnectedCaller,
    form: AnswerForm,
    request: GraphQlRequest,
    method: Method,
) -> Result<Response, ApiError> {
    let body_type = match form {
        AnswerForm::Body(body_type) => body_type,
        // An error before the first event is a response with its own status.
        AnswerForm::Events | AnswerForm::Page => BodyType::GraphQlResponse,
    };
    let operation = match operation::read(&app, request) {
        Ok(operation) => operation,
        Err(refusal) => return Ok(answer::of_operation(body_type, operation::refused(&refusal, &caller))),
    };
    if method == Method::GET && operation.kind() == OperationKind::Mutation {
        let message = "mutations are not allowed by GET; send them by POST";
        let error = ApiError::new(Code::MethodNotAllowed, message).detail("allowed_methods", vec!["POST"]);
        return Err(error.header(axum::http::header::ALLOW, HeaderValue::from_static("POST")));
    }
    if form == AnswerForm::Events {
        return events::stream(app, caller, operation);
    }
    if operation.kind() == OperationKind::Subscription {
        let message = "subscriptions need a WebSocket with the subprotocol `graphql-transport-ws`, or \
                       `Accept: text/event-stream`";
        return Err(ApiError::new(Code::InvalidQuery, message));
    }
    let response = operation::execute(&app, &caller, operation, Transport::Http).await;
    Ok(answer::of_operation(body_type, response))
}
