//! What can be asked: cubes, measures, metrics and dimensions.

use std::hash::{DefaultHasher, Hasher as _};

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, ETAG, IF_NONE_MATCH, VARY};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use serde::Serialize;
use terrane_compiler::Access as Visible;

use crate::app::{App, Scope};
use crate::call::Call;
use crate::edge::json_response;
use crate::error::{ApiError, Code};
use crate::openapi::{Answer, Doc, Parameter};
use crate::routes::{Access, Routes};
use crate::wire::metadata;

const READ: Access = Access::Scoped(Scope::Read);

pub(super) fn register(routes: Routes) -> Routes {
    routes
        .get("/api/v1/query/meta/cubes", READ, &CUBES, cubes)
        .get("/api/v1/query/meta/cubes/{cube_name}", READ, &CUBE, cube)
        .get("/api/v1/query/meta/metrics", READ, &METRICS, metrics)
        .get("/api/v1/query/meta/dimensions", READ, &DIMENSIONS, dimensions)
}

async fn cubes(app: App, call: Call) -> Result<Response, ApiError> {
    let snapshot = app.ports.catalog.snapshot();
    Ok(answer(call.headers(), &metadata::cubes(&Visible::of(&snapshot.model, &call.context.caller))))
}

async fn cube(app: App, mut call: Call) -> Result<Response, ApiError> {
    let name = call.path_parameter().await?;
    let snapshot = app.ports.catalog.snapshot();
    match metadata::cube(&Visible::of(&snapshot.model, &call.context.caller), &name) {
        Some(cube) => Ok(answer(call.headers(), &cube)),
        None => Err(ApiError::cube_not_found(&name)),
    }
}

async fn metrics(app: App, call: Call) -> Result<Response, ApiError> {
    let snapshot = app.ports.catalog.snapshot();
    Ok(answer(call.headers(), &metadata::metrics(&Visible::of(&snapshot.model, &call.context.caller))))
}

async fn dimensions(app: App, call: Call) -> Result<Response, ApiError> {
    let snapshot = app.ports.catalog.snapshot();
    Ok(answer(call.headers(), &metadata::dimensions(&Visible::of(&snapshot.model, &call.context.caller))))
}

/// The body, or 304 where the client has it already. Clients ask each time: a project can be loaded
/// anew at any moment.
fn answer(headers: &HeaderMap, body: &impl Serialize) -> Response {
    // Names, words and lists always serialise.
    let body = serde_json::to_vec(body).unwrap_or_default();
    let tag = entity_tag(&body);
    let is_known = headers.get_all(IF_NONE_MATCH).iter().any(|sent| matches(sent, &tag));
    let mut response = if is_known {
        let mut unchanged = Response::new(Body::empty());
        *unchanged.status_mut() = StatusCode::NOT_MODIFIED;
        unchanged
    } else {
        json_response(body)
    };
    let headers = response.headers_mut();
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(ETAG, tag);
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    headers.insert(VARY, HeaderValue::from_static("authorization"));
    response
}

/// Weak, since the same body may travel compressed. The hasher's keys are fixed, so replicas agree.
fn entity_tag(body: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    hasher.write(body);
    format!("W/\"{:016x}-{:x}\"", hasher.finish(), body.len())
}

/// Weak comparison (RFC 9110, section 8.8.3.2).
fn matches(sent: &HeaderValue, tag: &str) -> bool {
    let opaque = tag.trim_start_matches("W/");
    let sent = sent.to_str().unwrap_or_default();
    sent.split(',').map(str::trim).any(|one| one == "*" || one.trim_start_matches("W/") == opaque)
}

const TAG: &str = "metadata";
const UNCHANGED: Answer = Answer { status: 304, description: "as the `If-None-Match` names it", content: &[] };

static CUBES: Doc = Doc::simple(
    "cubes",
    TAG,
    "All cubes that the caller may see",
    &[Answer { status: 200, description: "cubes", content: &[("application/json", Some("Cubes"))] }, UNCHANGED],
);

static CUBE: Doc = Doc {
    id: "cube",
    tag: TAG,
    summary: "One cube",
    parameters: &[Parameter::path("cube_name", "a cube's name")],
    body: None,
    answers: &[
        Answer { status: 200, description: "the cube", content: &[("application/json", Some("Cube"))] },
        UNCHANGED,
    ],
    refusals: &[Code::NotFound],
};

static METRICS: Doc = Doc::simple(
    "metrics",
    TAG,
    "All measures and metrics",
    &[
        Answer {
            status: 200,
            description: "measures of all cubes, and metrics",
            content: &[("application/json", Some("Metrics"))],
        },
        UNCHANGED,
    ],
);

static DIMENSIONS: Doc = Doc::simple(
    "dimensions",
    TAG,
    "All dimensions",
    &[
        Answer {
            status: 200,
            description: "dimensions of all cubes",
            content: &[("application/json", Some("Dimensions"))],
        },
        UNCHANGED,
    ],
);
