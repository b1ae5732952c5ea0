//! The description of the interface, and a page to try it.
//!
//! Neither contains data of a project, so they need no credentials; `server.docs: false` disables them. The page is
//! Swagger UI, served from this program; its headers restrict what it may load.

use std::sync::Arc;

use axum::body::Body;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use terrane_wire::operations::{Links, OpenApi};
use terrane_wire::{Code, schema};
use utoipa_swagger_ui::Config;

use crate::app::{App, ServedRoutes};
use crate::edge::{ApiError, Call, RouteAccess, Routes, json_answer, json_response};
use crate::openapi::{self, AnonymousCallers, Compression, Content, Doc, Parameter, ResponseDoc};
use crate::protocols::routes_with;

/// The content security policy: only resources of this server, and no inline scripts.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
     font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);
const REFERRER_POLICY: HeaderName = HeaderName::from_static("referrer-policy");

pub(super) fn register(routes: Routes) -> Routes {
    routes
        .get("/", RouteAccess::Public, &ROOT, root)
        .get("/openapi.json", RouteAccess::Public, &DESCRIPTION, description)
        .get("/docs", RouteAccess::Public, &PAGE, page)
        .get("/docs/{file}", RouteAccess::Public, &FILE, file)
}

/// Redirects a browser to the page, and lists addresses for other clients. The redirect is relative, like the
/// addresses in the page.
async fn root(app: App, call: Call) -> Result<Response, ApiError> {
    offered(&app, call.path())?;
    let links = Links { docs: "/docs", openapi: "/openapi.json", health: "/health/status" };
    let mut response = json_answer(&links);
    *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
    response.headers_mut().insert(LOCATION, HeaderValue::from_static("docs"));
    Ok(response)
}

async fn description(app: App, call: Call) -> Result<Response, ApiError> {
    offered(&app, call.path())?;
    let body = app.description.get_or_init(|| {
        let settings = &app.settings;
        let anonymous =
            if settings.anonymous.is_some() { AnonymousCallers::MayRead } else { AnonymousCallers::Rejected };
        openapi::document(&routes_with(ServedRoutes::of(&app)), &settings.version, anonymous).to_string().into()
    });
    Ok(json_response(body.to_vec()))
}

/// Returns the page. Its files are in a folder beside it, so `docs/` is added to the addresses in the page. The
/// addresses stay relative, so that they also work behind a proxy that serves this server under a path.
async fn page(app: App, call: Call) -> Result<Response, ApiError> {
    offered(&app, call.path())?;
    let (bytes, _) = asset("index.html").ok_or_else(|| ApiError::not_found(call.path()))?;
    let page =
        String::from_utf8_lossy(&bytes).replace("\"./", "\"./docs/").replace("\"index.css", "\"./docs/index.css");
    Ok(respond(page.into_bytes(), "text/html; charset=utf-8"))
}

async fn file(app: App, mut call: Call) -> Result<Response, ApiError> {
    offered(&app, call.path())?;
    let name = call.path_parameter().await?;
    let (bytes, content_type) = asset(&name).ok_or_else(|| ApiError::not_found(call.path()))?;
    Ok(respond(bytes, &content_type))
}

fn offered(app: &App, path: &str) -> Result<(), ApiError> {
    if app.settings.docs { Ok(()) } else { Err(ApiError::not_found(path)) }
}

/// Returns a file of the page, with its media type.
fn asset(name: &str) -> Option<(Vec<u8>, String)> {
    // The address is relative to the page. The description must not be sent to another service for validation.
    let config = Config::new(["openapi.json"]).validator_url("none").try_it_out_enabled(true);
    let file = utoipa_swagger_ui::serve(name, Arc::new(config)).ok().flatten()?;
    Some((file.bytes.into_owned(), file.content_type))
}

fn respond(bytes: Vec<u8>, content_type: &str) -> Response {
    let mut response = Response::new(Body::from(bytes));
    let headers = response.headers_mut();
    if let Ok(content_type) = HeaderValue::from_str(content_type) {
        headers.insert(CONTENT_TYPE, content_type);
    }
    headers.insert(CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

const TAG: &str = "description";

static ROOT: Doc = Doc {
    id: "root",
    tag: TAG,
    summary: "Redirect to the page `/docs`",
    parameters: &[],
    body: None,
    answers: &[ResponseDoc {
        status: 307,
        description: "a redirect to `/docs`; the body lists the most important addresses",
        content: &[Content::Json(schema::of::<Links>())],
        compression: Compression::Accepted,
    }],
    errors: &[Code::NotFound],
    detail_errors: &[],
};

static DESCRIPTION: Doc = Doc {
    id: "openapi",
    tag: TAG,
    summary: "This description",
    parameters: &[],
    body: None,
    answers: &[ResponseDoc {
        status: 200,
        description: "OpenAPI 3.1",
        content: &[Content::Json(schema::of::<OpenApi>())],
        compression: Compression::Accepted,
    }],
    errors: &[Code::NotFound],
    detail_errors: &[],
};

static PAGE: Doc = Doc {
    id: "docs",
    tag: TAG,
    summary: "Show a page for reading the API and trying it",
    parameters: &[],
    body: None,
    answers: &[ResponseDoc {
        status: 200,
        description: "the page",
        content: &[Content::Text("text/html")],
        compression: Compression::Accepted,
    }],
    errors: &[Code::NotFound],
    detail_errors: &[],
};

static FILE: Doc = Doc {
    id: "docs_file",
    tag: TAG,
    summary: "Read a file of the page `/docs`",
    parameters: &[Parameter::path("file", "the name of the file")],
    body: None,
    answers: &[ResponseDoc {
        status: 200,
        description: "the file",
        content: &[
            Content::Text("text/css"),
            Content::Text("text/javascript"),
            Content::Binary("image/png"),
            Content::Text("text/html"),
        ],
        compression: Compression::Accepted,
    }],
    errors: &[Code::NotFound],
    detail_errors: &[],
};
