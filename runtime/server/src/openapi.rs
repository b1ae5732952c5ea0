//! The description of the interface: OpenAPI 3.1, made from the routes as they are registered.
//!
//! In: every [`Route`] with its [`Doc`], and whether anonymous callers may read. Out: one JSON document. Schemas are
//! derived from the types of the wire. This module adds the parts that all operations share: credentials, and the
//! errors of bodies, callers and a busy server. Not here: names of the served project.

mod doc;
#[cfg(test)]
mod record_reference;

pub(crate) use doc::{Compression, Content, Doc, Parameter, ParameterKind, ParameterPlace, RequestBody, ResponseDoc};

use axum::http::{Method, StatusCode};
use serde_json::{Map, Value as Json, json};
use terrane_wire::Code;
use terrane_wire::schema::Components;

use crate::dax::accepts_basic;
use crate::edge::{CONTENT_CODINGS, Route, RouteAccess};
use crate::graphql;
use crate::rest::is_probe;
use crate::xmla;

const DESCRIPTION: &str = "A semantic layer, which answers queries for measures, grouped by dimensions, from your \
                           warehouse. A member is written `cube.member`; a time dimension may have a granularity, as \
                           in `cube.member.month`. Query parameters and fields that are not described here are \
                           rejected.";
const COMPRESSED_BODY: &str = "The body may be compressed, with `Content-Encoding: gzip` or `zstd`.";

/// The errors of a request with a body, before its handler reads it.
const OF_BODIES: &[Code] =
    &[Code::InvalidQuery, Code::RequestTimeout, Code::PayloadTooLarge, Code::UnsupportedMediaType];
/// The errors of a request with credentials.
const OF_CALLERS: &[Code] = &[
    Code::Unauthorized,
    Code::TokenExpired,
    Code::InvalidToken,
    Code::Forbidden,
    Code::MisdirectedRequest,
    Code::StateUnavailable,
];
/// The errors of a request that counts against the rate limits: any request except a probe.
const OF_COUNTED: &[Code] = &[Code::RateLimited];
/// The errors of any request.
const OF_ALL: &[Code] = &[Code::InvalidQuery, Code::InternalError, Code::Overloaded];

/// Headers of any request.
const HEADERS_OF_ALL: &[Parameter] = &[Parameter::header(
    "X-Correlation-Id",
    ParameterKind::String,
    "the id of the request in responses and logs: at most 128 visible ASCII characters; other ids are replaced",
)];
/// The headers of a conditional request, whose answer the client may already have.
const HEADERS_OF_CONDITIONAL: &[Parameter] = &[Parameter::header(
    "If-None-Match",
    ParameterKind::String,
    "the `ETag` of the response that the client has stored",
)];

/// Callers without a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnonymousCallers {
    MayRead,
    Rejected,
}

/// Returns the document of a server that reports `version`.
pub(crate) fn document(routes: &[Route], version: &str, anonymous: AnonymousCallers) -> Json {
    let mut components = Components::new();
    let mut paths = Map::new();
    for route in routes {
        let operations = paths.entry(route.path).or_insert_with(|| json!({}));
        let method = route.method.as_str().to_ascii_lowercase();
        operations[method] = operation(route, anonymous, &mut components);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Terrane",
            "version": version,
            "description": DESCRIPTION,
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/", "description": "the server that returned this document" }],
        "paths": paths,
        "components": {
            "schemas": components.finish(),
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "an API key (`trn_…`) or an access token",
                },
                "basic": {
                    "type": "http",
                    "scheme": "basic",
                    "description": "any user name, and an API key as the password; only on the routes of DAX",
                },
                "api_key": {
                    "type": "apiKey",
                    "in": "query",
                    "name": "api_key",
                    "description": "an API key; prefer the header, because many programs log URLs",
                },
            },
        },
    })
}

fn operation(route: &Route, anonymous: AnonymousCallers, components: &mut Components) -> Json {
    let Doc { id, tag, summary, parameters, body, .. } = route.doc;
    let mut operation = json!({
        "operationId": id,
        "tags": [tag],
        "summary": summary,
        "responses": responses(route, components),
    });
    let is_conditional = route.doc.answers.iter().any(|answer| answer.status == StatusCode::NOT_MODIFIED);
    let conditional = if is_conditional { HEADERS_OF_CONDITIONAL } else { &[] };
    let parameters = parameters.iter().chain(conditional).chain(HEADERS_OF_ALL);
    operation["parameters"] = parameters.map(|parameter| parameter.to_json(components)).collect();
    if let Some(body) = body {
        operation["requestBody"] = json!({
            "description": COMPRESSED_BODY,
            "required": body.is_required,
            "content": { "application/json": { "schema": components.request(body.schema) } },
        });
    }
    operation["security"] = match route.access {
        RouteAccess::Public => json!([]),
        RouteAccess::Identified => credentials(route).into(),
        RouteAccess::Scoped(scope) => {
            operation["description"] = format!("Requires the scope `{}`.", scope.as_str()).into();
            let is_open = anonymous == AnonymousCallers::MayRead && scope == crate::app::Scope::Read;
            let none = is_open.then(|| json!({}));
            credentials(route).into_iter().chain(none).collect()
        }
    };
    operation
}

/// Returns the alternative credentials of a route. A key in the address is listed for GET only, because a client that
/// sends a body can send a header too.
fn credentials(route: &Route) -> Vec<Json> {
    let in_address = (route.method == Method::GET).then(|| json!({ "api_key": [] }));
    let basic = accepts_basic(route.path).then(|| json!({ "basic": [] }));
    [json!({ "bearer": [] })].into_iter().chain(basic).chain(in_address).collect()
}

/// Returns one entry for each status. The description of an error names its codes.
fn responses(route: &Route, components: &mut Components) -> Json {
    let mut responses = Map::new();
    for answer in route.doc.answers {
        let mut described = answer.to_json(components);
        if answer.compression == Compression::Accepted && !answer.content.is_empty() {
            described["headers"] = headers_of(answer.status).unwrap_or_else(|| json!({}));
            described["headers"]["Content-Encoding"] = json!({
                "description": "the coding that `Accept-Encoding` prefers, if the response is large enough to be compressed",
                "schema": { "type": "string", "enum": CONTENT_CODINGS },
            });
        }
        responses.insert(answer.status.to_string(), described);
    }
    let shared = [
        (true, OF_ALL),
        (route.doc.body.is_some(), OF_BODIES),
        (!matches!(route.access, RouteAccess::Public), OF_CALLERS),
        (!is_probe(route.path), OF_COUNTED),
        (true, route.doc.errors),
    ];
    let mut codes: Vec<Code> =
        shared.into_iter().filter(|(applies, _)| *applies).flat_map(|(_, codes)| codes).copied().collect();
    // XMLA sends all errors except 401 as faults with status 200.
    codes.retain(|code| route.path != xmla::PATH || code.status() == 401);
    codes.sort_unstable_by_key(|code| code.as_str());
    codes.dedup();
    for status in codes.iter().chain(route.doc.detail_errors).map(|code| code.status()) {
        responses.entry(status.to_string()).or_insert_with(|| error(route, status, &codes, components));
    }
    responses.into()
}

/// Describes the errors of one status.
fn error(route: &Route, status: u16, codes: &[Code], components: &mut Components) -> Json {
    let of_status = |codes: &[Code]| codes.iter().copied().filter(|code| code.status() == status).collect::<Vec<_>>();
    let (codes, details) = (of_status(codes), of_status(route.doc.detail_errors));
    let content = if graphql::is_path(route.path) {
        graphql::error_content(components)
    } else if route.path == xmla::PATH {
        json!({ "text/xml": { "schema": { "type": "string" } } })
    } else {
        json!({ "application/json": { "schema": error_schema(&codes, &details, components) } })
    };
    let mut names: Vec<&str> = codes.iter().chain(&details).map(|code| code.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let mut error = json!({ "description": names.join(", "), "content": content });
    if let Some(headers) = headers_of(status) {
        error["headers"] = headers;
    }
    error
}

fn error_schema(codes: &[Code], details: &[Code], components: &mut Components) -> Json {
    let mut schemas: Vec<Json> = codes.iter().map(|code| components.error(*code)).collect();
    if !details.is_empty() {
        schemas.push(components.detail_error());
    }
    match schemas.as_slice() {
        [only] => only.clone(),
        _ => json!({ "anyOf": schemas }),
    }
}

/// Describes the headers of the answers of one status.
fn headers_of(status: u16) -> Option<Json> {
    match StatusCode::from_u16(status) {
        Ok(StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) => {
            let schema = json!({ "type": "integer", "minimum": 0 });
            Some(json!({ "Retry-After": { "description": "seconds", "schema": schema } }))
        }
        Ok(StatusCode::UNAUTHORIZED) => Some(json!({ "WWW-Authenticate": { "schema": { "type": "string" } } })),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::app::{MetricsRoute, ServedRoutes};
    use crate::protocols::routes_with;

    fn reference(schema: &str) -> Json {
        json!({ "$ref": format!("#/components/schemas/{schema}") })
    }

    fn routes() -> Vec<Route> {
        let metrics = Some(MetricsRoute { path: "/metrics", is_public: false });
        routes_with(ServedRoutes { metrics, ..ServedRoutes::ALL })
    }

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

    /// Collects objects that a generator cannot name: those described inside alternatives and lists.
    fn unnamed(json: &Json, place: &str, found: &mut Vec<String>) {
        match json {
            Json::Object(fields) => {
                for (name, value) in fields {
                    if matches!(name.as_str(), "anyOf" | "oneOf" | "items") {
                        let items = value.as_array().map_or_else(|| vec![value], |items| items.iter().collect());
                        let is_object = |item: &&&Json| item.get("properties").is_some();
                        found.extend(items.iter().filter(is_object).map(|item| format!("{place}.{name}: {item}")));
                    }
                    unnamed(value, &format!("{place}.{name}"), found);
                }
            }
            Json::Array(items) => items.iter().for_each(|item| unnamed(item, place, found)),
            _ => {}
        }
    }

    #[test]
    fn references_and_components_are_the_same() {
        let document = document(&routes(), "1", AnonymousCallers::MayRead);
        let mut used = BTreeSet::new();
        references(&document, &mut used);
        let described = document["components"]["schemas"].as_object().unwrap().keys().cloned().collect();
        assert_eq!(used, described);
    }

    #[test]
    fn bodies_require_only_fields_without_a_default() {
        let document = document(&routes(), "1", AnonymousCallers::MayRead);
        let schemas = &document["components"]["schemas"];
        for (schema, required) in [
            ("DaxExecution", json!(["query"])),
            ("EscalationRequest", json!(["after_minutes"])),
            ("NaturalLanguageQuery", json!(["query"])),
            ("Search", json!(["query"])),
        ] {
            assert_eq!(schemas[schema]["required"], required, "{schema}");
        }
    }

    #[test]
    fn alternatives_and_items_are_named() {
        let document = document(&routes(), "1", AnonymousCallers::MayRead);
        let mut found = Vec::new();
        unnamed(&document["components"]["schemas"], "schemas", &mut found);
        unnamed(&document["paths"], "paths", &mut found);
        assert!(found.is_empty(), "{}", found.join("\n"));
    }

    #[test]
    fn operations_have_unique_names_and_the_parameters_of_their_paths() {
        let mut ids = BTreeSet::new();
        for route in routes() {
            assert!(ids.insert(route.doc.id), "two operations are called {}", route.doc.id);
            assert!(!route.doc.answers.is_empty(), "{} has no answer", route.path);
            let named = route.path.split('/').filter_map(|step| step.strip_prefix('{')?.strip_suffix('}'));
            let declared = route.doc.parameters.iter().filter(|p| p.place == ParameterPlace::Path).map(|p| p.name);
            assert_eq!(named.collect::<Vec<_>>(), declared.collect::<Vec<_>>(), "{}", route.path);
        }
    }

    #[test]
    fn errors_are_typed_by_their_code() {
        let document = document(&routes(), "1", AnonymousCallers::MayRead);
        let responses = |path: &str, method: &str, status: &str| {
            document["paths"][path][method]["responses"][status]["content"]["application/json"]["schema"].clone()
        };
        assert_eq!(responses("/api/v1/query/meta/cubes/{cube_name}", "get", "404"), reference("Detail"));
        assert_eq!(responses("/api/v1/plugins/{id}", "get", "404"), reference("NotFoundError"));
        assert_eq!(responses("/health/ready", "get", "503"), reference("NotReady"));
        assert_eq!(schemas_of(&document, "NotReady"), ["error", "status", "checks"]);
        let schemas = &document["components"]["schemas"];
        assert_eq!(schemas["InvalidMeasureInfo"]["properties"]["available_measures"]["type"], "array");
        assert_eq!(schemas["InvalidMeasureInfo"]["properties"]["code"]["enum"], json!(["INVALID_MEASURE"]));
        assert_eq!(schemas["RateLimitedDetails"]["properties"]["limit"], reference("RateLimit"));
    }

    #[test]
    fn headers_that_routes_read_are_described() {
        let document = document(&routes(), "1", AnonymousCallers::MayRead);
        let headers = |path: &str, method: &str| -> Vec<String> {
            let parameters = document["paths"][path][method]["parameters"].as_array().unwrap();
            let headers = parameters.iter().filter(|parameter| parameter["in"] == "header");
            assert!(headers.clone().all(|header| header["required"] == false));
            headers.map(|header| header["name"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(headers("/api/v1/query", "post"), ["Cache-Control", "If-None-Match", "X-Correlation-Id"]);
        assert_eq!(headers("/api/v1/query", "get"), ["Cache-Control", "If-None-Match", "X-Correlation-Id"]);
        assert_eq!(headers("/api/v1/query/async", "post"), ["Idempotency-Key", "Prefer", "X-Correlation-Id"]);
        assert_eq!(headers("/api/v1/query/meta/cubes", "get"), ["If-None-Match", "X-Correlation-Id"]);
        assert_eq!(headers("/health/live", "get"), ["X-Correlation-Id"]);
        let key = &document["paths"]["/api/v1/query/async"]["post"]["parameters"][0];
        assert_eq!((&key["in"], &key["schema"]["maxLength"]), (&json!("header"), &json!(255)));
    }

    fn schemas_of<'d>(document: &'d Json, schema: &str) -> Vec<&'d str> {
        let properties = document["components"]["schemas"][schema]["properties"].as_object().unwrap();
        properties.keys().map(String::as_str).collect()
    }

    #[test]
    fn only_readers_can_be_anonymous() {
        let document = document(&routes(), "1", AnonymousCallers::MayRead);
        let open = |path: &str, method: &str| {
            let security = &document["paths"][path][method]["security"];
            security.as_array().unwrap().contains(&json!({}))
        };
        assert!(open("/api/v1/query", "post"));
        assert!(!open("/api/v1/audit", "get"));
    }
}
