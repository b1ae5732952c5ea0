//! The description of the interface: OpenAPI 3.1, made from the routes as they are registered.
//!
//! In: every [`Route`] with its [`Doc`], and whether callers without credentials may read. Out: one JSON
//! document. What all operations share is added here (who may call, what a body or a busy server can be
//! refused with), so that a route says only what is its own. Nothing of a project is in it.

mod doc;
mod schemas;

pub(crate) use doc::{Answer, Doc, Parameter, ParameterKind};

use axum::http::{Method, StatusCode};
use serde_json::{Map, Value as Json, json};

use crate::content_coding::SUPPORTED;
use crate::edge::is_probe;
use crate::error::Code;
use crate::routes::{Access, Route};

const DESCRIPTION: &str = "A semantic layer: measures grouped by dimensions, answered by your warehouse. A member is \
                           `cube.member`, a time dimension may carry a granularity: `cube.member.month`. Query \
                           parameters and fields that are not described here are refused.";
const COMPRESSED_BODY: &str = "May be compressed, with `Content-Encoding: gzip` or `zstd`.";
/// Answers with these schemas hold secrets, and are never compressed.
const NEVER_COMPRESSED: [&str; 3] = ["Tokens", "Revoked", "IssuedKey"];

/// What a request with a body can be refused with before its handler looks at it.
const OF_BODIES: &[Code] =
    &[Code::InvalidQuery, Code::RequestTimeout, Code::PayloadTooLarge, Code::UnsupportedMediaType];
/// What a request with credentials can be refused with.
const OF_CALLERS: &[Code] = &[
    Code::Unauthorized,
    Code::TokenExpired,
    Code::InvalidToken,
    Code::Forbidden,
    Code::MisdirectedRequest,
    Code::StateUnavailable,
];
/// What a request that is counted can be refused with: any but a probe.
const OF_COUNTED: &[Code] = &[Code::RateLimited];
/// What any request can be refused with.
const OF_ALL: &[Code] = &[Code::InvalidQuery, Code::InternalError, Code::Overloaded];

/// The document, for a server that reports `version`.
pub(crate) fn document(routes: &[Route], version: &str, is_anonymous_reader_let_in: bool) -> Json {
    let mut paths = Map::new();
    for route in routes {
        let operations = paths.entry(route.path).or_insert_with(|| json!({}));
        operations[route.method.as_str().to_ascii_lowercase()] = operation(route, is_anonymous_reader_let_in);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Terrane",
            "version": version,
            "description": DESCRIPTION,
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "paths": paths,
        "components": {
            "schemas": schemas::all(),
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "an API key (`trn_…`) or an access token",
                },
                "api_key": {
                    "type": "apiKey",
                    "in": "query",
                    "name": "api_key",
                    "description": "an API key; the header is better, because addresses are written down in many places",
                },
            },
        },
    })
}

fn operation(route: &Route, is_anonymous_reader_let_in: bool) -> Json {
    let Doc { id, tag, summary, parameters, body, answers, refusals } = route.doc;
    let mut operation = json!({
        "operationId": id,
        "tags": [tag],
        "summary": summary,
        "responses": responses(route, answers, refusals),
    });
    if !parameters.is_empty() {
        operation["parameters"] = parameters.iter().map(Parameter::to_json).collect();
    }
    if let Some(schema) = body {
        operation["requestBody"] = json!({
            "description": COMPRESSED_BODY,
            "required": !MAY_BE_LEFT_OUT.contains(schema),
            "content": { "application/json": { "schema": reference(schema) } },
        });
    }
    operation["security"] = match route.access {
        Access::Public => json!([]),
        Access::Identified => credentials(route).into(),
        Access::Scoped(scope) => {
            operation["description"] = format!("Needs the scope `{}`.", scope.as_str()).into();
            let is_open = is_anonymous_reader_let_in && scope == crate::app::Scope::Read;
            let nobody = is_open.then(|| json!({}));
            credentials(route).into_iter().chain(nobody).collect()
        }
    };
    operation
}

/// Either of them is enough. Addresses hold a key where there is no other place for it: a call with a body
/// has headers of its own anyway.
fn credentials(route: &Route) -> Vec<Json> {
    let in_address = (route.method == Method::GET).then(|| json!({ "api_key": [] }));
    [json!({ "bearer": [] })].into_iter().chain(in_address).collect()
}

/// One entry for each status, whose description names the codes.
fn responses(route: &Route, answers: &[Answer], refusals: &[Code]) -> Json {
    let mut responses = Map::new();
    for answer in answers {
        let mut described = answer.to_json();
        if is_compressible(answer) {
            described["headers"] = json!({
                "Content-Encoding": {
                    "description": "the coding that `Accept-Encoding` prefers, of answers that are worth it",
                    "schema": { "type": "string", "enum": SUPPORTED },
                },
            });
        }
        responses.insert(answer.status.to_string(), described);
    }
    let shared = [
        (true, OF_ALL),
        (route.doc.body.is_some(), OF_BODIES),
        (!matches!(route.access, Access::Public), OF_CALLERS),
        (!is_probe(route.path), OF_COUNTED),
        (true, refusals),
    ];
    let codes: Vec<Code> =
        shared.into_iter().filter(|(is_here, _)| *is_here).flat_map(|(_, codes)| codes).copied().collect();
    for status in codes.iter().map(|code| code.status()) {
        let mut names: Vec<&str> =
            codes.iter().filter(|code| code.status() == status).map(|code| code.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        responses.insert(status.as_u16().to_string(), refusal(route, status, &names));
    }
    responses.into()
}

fn is_compressible(answer: &Answer) -> bool {
    let is_secret = |schema: &Option<&str>| schema.is_some_and(|schema| NEVER_COMPRESSED.contains(&schema));
    !answer.content.is_empty() && !answer.content.iter().any(|(_, schema)| is_secret(schema))
}

/// Bodies whose every field has a default, and that may be missing altogether.
const MAY_BE_LEFT_OUT: [&str; 2] = ["ProjectLoad", "ProjectCompile"];

fn refusal(route: &Route, status: StatusCode, names: &[&str]) -> Json {
    // The specification's `{detail}`, which only these routes answer.
    let is_detail = status == StatusCode::NOT_FOUND && route.path.starts_with("/api/v1/query/meta/cubes/");
    // A name that exists is told so, a body that isn't one like everywhere.
    let is_either = status == StatusCode::BAD_REQUEST && route.path == "/api/v1/query/meta/cubes";
    let schema = match (is_detail, is_either) {
        (true, _) => reference("Detail"),
        (_, true) => json!({ "oneOf": [reference("Error"), reference("Detail")] }),
        _ => reference("Error"),
    };
    let mut refusal = json!({
        "description": names.join(", "),
        "content": { "application/json": { "schema": schema } },
    });
    match status {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            let schema = json!({ "type": "integer", "minimum": 0 });
            refusal["headers"] = json!({ "Retry-After": { "description": "seconds", "schema": schema } });
        }
        StatusCode::UNAUTHORIZED => {
            refusal["headers"] = json!({ "WWW-Authenticate": { "schema": { "type": "string" } } });
        }
        _ => {}
    }
    refusal
}

fn reference(schema: &str) -> Json {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn references(json: &Json, found: &mut BTreeSet<String>) {
        match json {
            Json::Object(fields) => {
                for (name, value) in fields {
                    if let ("$ref", Json::String(target)) = (name.as_str(), value) {
                        found.insert(target.trim_start_matches("#/components/schemas/").to_owned());
                    }
                    references(value, found);
                }
            }
            Json::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }

    #[test]
    fn what_is_referred_to_is_there_and_everything_is_referred_to() {
        let document = document(&crate::routes(), "1", true);
        let mut used = BTreeSet::new();
        references(&document, &mut used);
        let there = document["components"]["schemas"].as_object().unwrap().keys().cloned().collect();
        assert_eq!(used, there);
    }

    #[test]
    fn operations_have_names_of_their_own_and_their_paths_parameters() {
        let mut ids = BTreeSet::new();
        for route in crate::routes() {
            assert!(ids.insert(route.doc.id), "two operations are called {}", route.doc.id);
            assert!(!route.doc.answers.is_empty(), "{} has no answer", route.path);
            let named = route.path.split('/').filter_map(|step| step.strip_prefix('{')?.strip_suffix('}'));
            let declared = route.doc.parameters.iter().filter(|p| p.is_in_path).map(|p| p.name);
            assert_eq!(named.collect::<Vec<_>>(), declared.collect::<Vec<_>>(), "{}", route.path);
        }
    }

    #[test]
    fn only_readers_may_be_nobody() {
        let document = document(&crate::routes(), "1", true);
        let open = |path: &str, method: &str| {
            let security = &document["paths"][path][method]["security"];
            security.as_array().unwrap().contains(&json!({}))
        };
        assert!(open("/api/v1/query", "post"));
        assert!(!open("/api/v1/audit", "get"));
    }
}
