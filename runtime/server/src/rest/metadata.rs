//! The metadata of queries: cubes, measures, metrics and dimensions.

use std::hash::{DefaultHasher, Hasher as _};

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, ETAG, VARY};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::Response;
use serde::Serialize;
use terrane_app::projects::RegisterError;
use terrane_compiler::Access as Visible;
use terrane_compiler::snippet::allowed::{NotAllowed, allowed_functions};
use terrane_wire::project::problems;
use terrane_wire::registration::{CubeRegistration, cube_from_wire};
use terrane_wire::{Audience, Code, ErrorBody, metadata, schema};

use super::conditional::{UNCHANGED, has_entity};
use crate::app::{App, Scope};
use crate::edge::{ApiError, Call, RouteAccess, Routes, json_response, to_json};
use crate::openapi::{Compression, Content, Doc, Parameter, RequestBody, ResponseDoc};

const READ: RouteAccess = RouteAccess::Scoped(Scope::Read);
const WRITE: RouteAccess = RouteAccess::Scoped(Scope::Write);

pub(super) fn register(routes: Routes) -> Routes {
    routes
        .get("/api/v1/query/meta/cubes", READ, &CUBES, cubes)
        .get("/api/v1/query/meta/cubes/{cube_name}", READ, &CUBE, cube)
        .post("/api/v1/query/meta/cubes", WRITE, &REGISTER, register_cube)
        .on(Method::DELETE, "/api/v1/query/meta/cubes/{cube_name}", WRITE, &DELETE, delete_cube)
        .get("/api/v1/query/meta/metrics", READ, &METRICS, metrics)
        .get("/api/v1/query/meta/dimensions", READ, &DIMENSIONS, dimensions)
}

async fn cubes(app: App, call: Call) -> Result<Response, ApiError> {
    let snapshot = app.services.catalog.snapshot();
    let badges = app.services.badges(&snapshot, &call.context).await;
    Ok(answer(call.headers(), &metadata::cubes(&Visible::of(&snapshot.model, &call.context.caller), &badges)))
}

async fn cube(app: App, mut call: Call) -> Result<Response, ApiError> {
    let name = call.path_parameter().await?;
    let snapshot = app.services.catalog.snapshot();
    let badges = app.services.badges(&snapshot, &call.context).await;
    match metadata::cube(&Visible::of(&snapshot.model, &call.context.caller), &badges, &name) {
        Some(cube) => Ok(answer(call.headers(), &cube)),
        None => Err(ApiError::cube_not_found(&name)),
    }
}

async fn metrics(app: App, call: Call) -> Result<Response, ApiError> {
    let snapshot = app.services.catalog.snapshot();
    let badges = app.services.badges(&snapshot, &call.context).await;
    Ok(answer(call.headers(), &metadata::metrics(&Visible::of(&snapshot.model, &call.context.caller), &badges)))
}

async fn dimensions(app: App, call: Call) -> Result<Response, ApiError> {
    let snapshot = app.services.catalog.snapshot();
    let badges = app.services.badges(&snapshot, &call.context).await;
    Ok(answer(call.headers(), &metadata::dimensions(&Visible::of(&snapshot.model, &call.context.caller), &badges)))
}

async fn register_cube(app: App, call: Call) -> Result<Response, ApiError> {
    let context = call.context.clone();
    let cube = cube_from_wire(&call.json_body(&app).await?)?;
    let registered = app.services.projects.register(&cube, &context).await;
    registered.map_err(|error| refusal(error, Audience::of(context.scopes)))?;
    let snapshot = app.services.catalog.snapshot();
    // A policy of the cube's table may hide the cube from its author. The answer shows the definition nevertheless,
    // since the author has just sent it.
    let body = match snapshot.model.cube_named(&cube.name) {
        Some(built) => serde_json::to_vec(&metadata::registered(built)).unwrap_or_default(),
        None => return Err(ApiError::cube_not_found(&cube.name)),
    };
    let mut response = json_response(body);
    *response.status_mut() = StatusCode::CREATED;
    Ok(response)
}

async fn delete_cube(app: App, mut call: Call) -> Result<Response, ApiError> {
    let name = call.path_parameter().await?;
    let deleted = app.services.projects.unregister(&name, &call.context).await;
    deleted.map_err(|error| refusal(error, Audience::of(call.context.scopes)))?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}

fn refusal(error: RegisterError, audience: Audience) -> ApiError {
    let message = error.to_string();
    match error {
        RegisterError::Exists { name } => ApiError::cube_exists(&name),
        RegisterError::Unknown { name, .. } => ApiError::cube_not_found(&name),
        RegisterError::OfProject { .. } | RegisterError::TooMany => ApiError::new(Code::Conflict, message),
        // An operator has all scopes, so the error does not name a missing scope.
        RegisterError::NotAllowed { field, .. } if audience == Audience::Operator => {
            ApiError::new(Code::ValidationError, message).detail("field", field)
        }
        RegisterError::NotAllowed { field, why } => {
            let refusal =
                ApiError::missing_scope(Scope::Admin).detail("field", field).detail("reason", why.to_string());
            match why {
                NotAllowed::Function { .. } => refusal.detail("allowed_functions", allowed_functions().to_vec()),
                _ => refusal,
            }
        }
        RegisterError::Invalid { diagnostics } => {
            let errors = match diagnostics.as_slice() {
                [one] => format!("the cube cannot be registered: {}", one.message),
                many => format!("the cube has {} errors", many.len()),
            };
            let message = match audience {
                Audience::Operator => errors,
                Audience::Caller => "the cube cannot be registered".to_owned(),
            };
            ApiError::new(Code::ValidationError, message).detail("problems", to_json(&problems(&diagnostics, audience)))
        }
        RegisterError::Refused { approval } => ErrorBody::from_approval(message, &approval).into(),
        RegisterError::Plugin(error) => ApiError::from_plugin(&error),
        RegisterError::Store(error) => ApiError::from_store(&error),
    }
}

/// Returns the body, or 304 if the client already has it. Clients must revalidate it before each use, since a project
/// can be reloaded at any moment.
fn answer(headers: &HeaderMap, body: &impl Serialize) -> Response {
    // Names, words and lists always serialise.
    let body = serde_json::to_vec(body).unwrap_or_default();
    let tag = entity_tag(&body);
    let is_known = has_entity(headers, &tag);
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
    // A 304 has this header too, although it has no body to compress.
    headers.insert(VARY, HeaderValue::from_static("authorization, accept-encoding"));
    response
}

/// Returns the entity tag of a body. It is weak, because the same body may be sent compressed. The hash has fixed keys,
/// so replicas have equal tags.
fn entity_tag(body: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    hasher.write(body);
    format!("W/\"{:016x}-{:x}\"", hasher.finish(), body.len())
}

const TAG: &str = "metadata";

static CUBES: Doc = Doc::simple(
    "cubes",
    TAG,
    "List all cubes that the caller may see",
    &[
        ResponseDoc {
            status: 200,
            description: "cubes",
            content: &[Content::Json(schema::of::<metadata::Cubes>())],
            compression: Compression::Accepted,
        },
        UNCHANGED,
    ],
);

static CUBE: Doc = Doc {
    id: "cube",
    tag: TAG,
    summary: "One cube",
    parameters: &[Parameter::path("cube_name", "a cube's name")],
    body: None,
    answers: &[
        ResponseDoc {
            status: 200,
            description: "the cube",
            content: &[Content::Json(schema::of::<metadata::Cube>())],
            compression: Compression::Accepted,
        },
        UNCHANGED,
    ],
    errors: &[],
    detail_errors: &[Code::NotFound],
};

static REGISTER: Doc = Doc {
    id: "register_cube",
    tag: TAG,
    summary: "Register a cube, which survives restarts",
    parameters: &[],
    body: Some(RequestBody::required(schema::of::<CubeRegistration>())),
    answers: &[ResponseDoc {
        status: 201,
        description: "the registered cube",
        content: &[Content::Json(schema::of::<metadata::Cube>())],
        compression: Compression::Accepted,
    }],
    errors: &[Code::Conflict, Code::ValidationError, Code::PluginFault, Code::StateUnavailable],
    detail_errors: &[Code::InvalidQuery],
};

static DELETE: Doc = Doc {
    id: "delete_cube",
    tag: TAG,
    summary: "Delete a registered cube",
    parameters: &[Parameter::path("cube_name", "a cube's name")],
    body: None,
    answers: &[ResponseDoc {
        status: 204,
        description: "the cube is deleted",
        content: &[],
        compression: Compression::Accepted,
    }],
    errors: &[Code::Conflict, Code::PluginFault, Code::StateUnavailable],
    detail_errors: &[Code::NotFound],
};

static METRICS: Doc = Doc::simple(
    "metrics",
    TAG,
    "List all measures and metrics",
    &[
        ResponseDoc {
            status: 200,
            description: "measures of all cubes, and metrics",
            content: &[Content::Json(schema::of::<metadata::Metrics>())],
            compression: Compression::Accepted,
        },
        UNCHANGED,
    ],
);

static DIMENSIONS: Doc = Doc::simple(
    "dimensions",
    TAG,
    "All dimensions",
    &[
        ResponseDoc {
            status: 200,
            description: "dimensions of all cubes",
            content: &[Content::Json(schema::of::<metadata::Dimensions>())],
            compression: Compression::Accepted,
        },
        UNCHANGED,
    ],
);
