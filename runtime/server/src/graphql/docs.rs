//! The descriptions of the GraphQL routes in `/openapi.json`.

use terrane_wire::graphql::{GraphQlAnswer, GraphQlBody};
use terrane_wire::{Code, schema};

use crate::openapi::{Compression, Content, Doc, Parameter, ParameterKind, RequestBody, ResponseDoc};

const TAG: &str = "graphql";

static RESPONSES: [Content; 3] = [
    Content::Json(schema::of::<GraphQlAnswer>()),
    Content::JsonAs("application/graphql-response+json", schema::of::<GraphQlAnswer>()),
    Content::Text("text/event-stream"),
];

/// The errors of documents.
const OF_DOCUMENTS: &[Code] = &[
    Code::NotFound,
    Code::MethodNotAllowed,
    Code::UnsupportedMediaType,
    Code::GraphqlSyntaxError,
    Code::GraphqlValidationFailed,
    Code::GraphqlLimitExceeded,
];

pub(super) static POST: Doc = Doc {
    id: "graphql",
    tag: TAG,
    summary: "Execute a GraphQL operation",
    parameters: &[],
    body: Some(RequestBody::required(schema::of::<GraphQlBody>())),
    answers: &[ResponseDoc {
        status: 200,
        description: "data and errors of the operation; with `text/event-stream`, one event for each response, also for \
                      subscriptions",
        content: &RESPONSES,
        compression: Compression::Accepted,
    }],
    errors: OF_DOCUMENTS,
    detail_errors: &[],
};

pub(super) static GET: Doc = Doc {
    id: "graphql_query",
    tag: TAG,
    summary: "Execute a GraphQL query, open a WebSocket, or show the page for trying operations",
    parameters: &[
        Parameter::query("query", ParameterKind::String, "the document"),
        Parameter::query("operationName", ParameterKind::String, "the operation to execute"),
        Parameter::query("variables", ParameterKind::String, "a JSON object"),
        Parameter::query("extensions", ParameterKind::String, "a JSON object; it is ignored"),
    ],
    body: None,
    answers: &[
        ResponseDoc {
            status: 101,
            description: "a WebSocket with the subprotocol `graphql-transport-ws`, if the request has `Upgrade: websocket`",
            content: &[],
            compression: Compression::Never,
        },
        ResponseDoc {
            status: 200,
            description: "data and errors of the query, its events, or for `text/html` the page",
            content: &[RESPONSES[0], RESPONSES[1], RESPONSES[2], Content::Text("text/html")],
            compression: Compression::Accepted,
        },
    ],
    errors: OF_DOCUMENTS,
    detail_errors: &[],
};

pub(super) static SCHEMA: Doc = Doc {
    id: "graphql_schema",
    tag: TAG,
    summary: "Read the GraphQL schema in the schema definition language",
    parameters: &[],
    body: None,
    answers: &[ResponseDoc {
        status: 200,
        description: "the schema",
        content: &[Content::Text("text/plain")],
        compression: Compression::Accepted,
    }],
    errors: &[Code::NotFound],
    detail_errors: &[],
};

pub(super) static FILE: Doc = Doc {
    id: "graphql_page_file",
    tag: TAG,
    summary: "Read a file of the page at `/graphql`",
    parameters: &[Parameter::path("file", "the name of the file")],
    body: None,
    answers: &[ResponseDoc {
        status: 200,
        description: "the file",
        content: &[Content::Text("text/javascript"), Content::Text("text/css")],
        compression: Compression::Accepted,
    }],
    errors: &[Code::NotFound],
    detail_errors: &[],
};
