//! Governance: certification, glossary, owners, metadata of artifacts, history and the compliance report.
//!
//! In: the use cases. Out: records with their versions as entity tags. In `If-Match`, a change may name the version
//! that it replaces. The module's routes exist only if `governance.enabled` is on.

mod bulk;
mod docs;
mod transfer;

use std::sync::Arc;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, VARY};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::Response;
use serde::Serialize;
use terrane_app::governance::{GovernanceError, GovernanceService, TermView};
use terrane_app::ports::governance::Transition;
use terrane_wire::governance::report::GovernanceReport;
use terrane_wire::governance::{self as wire, ArtifactOwners, GlossaryTerm, GovernedArtifact, OwnerAssignment};
use terrane_wire::{Code, ErrorBody};

use self::docs::*;
use super::conditional::{precondition, with_version};
use crate::app::{App, Scope};
use crate::edge::{ApiError, Call, RouteAccess, Routes, json_answer, preferred};

const READ: RouteAccess = RouteAccess::Scoped(Scope::Read);
const WRITE: RouteAccess = RouteAccess::Scoped(Scope::Write);

/// The content security policy of the report's page: its own styles, and nothing else.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

pub(super) fn register(routes: Routes) -> Routes {
    let routes = routes
        .post("/api/v1/governance/certification/submit", WRITE, &SUBMIT, submit)
        .post("/api/v1/governance/certification/certify", WRITE, &CERTIFY, certify)
        .post("/api/v1/governance/certification/reject", WRITE, &REJECT, reject)
        .post("/api/v1/governance/certification/deprecate", WRITE, &DEPRECATE, deprecate)
        .post("/api/v1/governance/certification/archive", WRITE, &ARCHIVE, archive)
        .post("/api/v1/governance/certification/restore", WRITE, &RESTORE, restore)
        .get("/api/v1/governance/certification/status", READ, &STATUS, status)
        .get("/api/v1/governance/certification/list", READ, &LIST, list);
    let routes = routes
        .post("/api/v1/governance/glossary/terms", WRITE, &CREATE_TERM, create_term)
        .get("/api/v1/governance/glossary/terms", READ, &TERMS, terms)
        .get("/api/v1/governance/glossary/terms/{term_id}", READ, &TERM, term)
        .on(Method::PATCH, "/api/v1/governance/glossary/terms/{term_id}", WRITE, &CHANGE_TERM, change_term)
        .on(Method::DELETE, "/api/v1/governance/glossary/terms/{term_id}", WRITE, &ARCHIVE_TERM, archive_term)
        .post("/api/v1/governance/glossary/terms/{term_id}/links", WRITE, &LINK, link)
        .on(Method::DELETE, "/api/v1/governance/glossary/terms/{term_id}/links", WRITE, &UNLINK, unlink)
        .get("/api/v1/governance/glossary/search", READ, &SEARCH_TERMS, search_terms);
    let routes = routes
        .post("/api/v1/governance/ownership/assign", WRITE, &ASSIGN, assign)
        .get("/api/v1/governance/ownership", READ, &OWNERS, owners)
        .on(Method::DELETE, "/api/v1/governance/ownership", WRITE, &REMOVE_OWNER, remove_owner)
        .get("/api/v1/governance/ownership/by-owner", READ, &BY_OWNER, by_owner);
    let routes = bulk::register(transfer::register(routes));
    routes
        .get("/api/v1/governance/catalog", READ, &CATALOG, catalog)
        .get("/api/v1/governance/artifacts/search", READ, &SEARCH_ARTIFACTS, search_artifacts)
        .get("/api/v1/governance/artifacts/{type}/{id}", READ, &ARTIFACT, artifact)
        .on(Method::PATCH, "/api/v1/governance/artifacts/{type}/{id}/metadata", WRITE, &METADATA, metadata)
        .get("/api/v1/governance/history", READ, &HISTORY, history)
        .get("/api/v1/governance/report", READ, &REPORT, report)
}

/// Returns the use cases. If the server has none, the routes do not exist.
fn service(app: &App) -> Result<&Arc<GovernanceService>, ApiError> {
    app.services.governance.as_ref().ok_or_else(|| ApiError::new(Code::NotFound, "governance is switched off"))
}

fn refused(error: GovernanceError) -> ApiError {
    ErrorBody::from(&error).into()
}

async fn submit(app: App, call: Call) -> Result<Response, ApiError> {
    step(app, call, Transition::Submit).await
}

async fn certify(app: App, call: Call) -> Result<Response, ApiError> {
    step(app, call, Transition::Certify).await
}

async fn reject(app: App, call: Call) -> Result<Response, ApiError> {
    step(app, call, Transition::Reject).await
}

async fn deprecate(app: App, call: Call) -> Result<Response, ApiError> {
    step(app, call, Transition::Deprecate).await
}

async fn archive(app: App, call: Call) -> Result<Response, ApiError> {
    step(app, call, Transition::Archive).await
}

async fn restore(app: App, call: Call) -> Result<Response, ApiError> {
    step(app, call, Transition::Restore).await
}

async fn step(app: App, call: Call, transition: Transition) -> Result<Response, ApiError> {
    let (context, precondition) = (call.context.clone(), precondition(call.headers())?);
    let wanted = wire::move_from_wire(transition, &call.json_body(&app).await?, precondition)?;
    let view = service(&app)?.certify(&wanted, &context).await.map_err(refused)?;
    Ok(with_version(json_answer(&wire::Certification::from(&view)), view.version))
}

async fn status(app: App, call: Call) -> Result<Response, ApiError> {
    let artifact = wire::artifact_from_parameters(call.query_string())?;
    let view = service(&app)?.certification(&artifact, &call.context).await.map_err(refused)?;
    Ok(with_version(json_answer(&wire::Certification::from(&view)), view.version))
}

async fn list(app: App, call: Call) -> Result<Response, ApiError> {
    let (filter, page) = wire::certification_filter_from_parameters(call.query_string())?;
    let found = service(&app)?.certifications(&filter, &page, &call.context).await.map_err(refused)?;
    Ok(fresh(json_answer(&wire::Certifications::from(&found))))
}

async fn create_term(app: App, call: Call) -> Result<Response, ApiError> {
    let (context, precondition) = (call.context.clone(), precondition(call.headers())?);
    let wanted = wire::new_term_from_wire(&call.json_body(&app).await?, precondition)?;
    let view = service(&app)?.create_term(&wanted, &context).await.map_err(refused)?;
    Ok(term_answer(StatusCode::CREATED, &view))
}

async fn terms(app: App, call: Call) -> Result<Response, ApiError> {
    let (filter, page) = wire::term_filter_from_parameters(call.query_string())?;
    let found = service(&app)?.terms(&filter, &page, &call.context).await.map_err(refused)?;
    Ok(fresh(json_answer(&wire::GlossaryTermPage::from(&found))))
}

async fn term(app: App, mut call: Call) -> Result<Response, ApiError> {
    let id = call.path_parameter().await?;
    let view = service(&app)?.term(&id, &call.context).await.map_err(refused)?;
    Ok(term_answer(StatusCode::OK, &view))
}

async fn change_term(app: App, mut call: Call) -> Result<Response, ApiError> {
    let (context, precondition) = (call.context.clone(), precondition(call.headers())?);
    let id = call.path_parameter().await?;
    let wanted = wire::term_change_from_wire(&call.json_body(&app).await?, precondition)?;
    let view = service(&app)?.change_term(&id, &wanted, &context).await.map_err(refused)?;
    Ok(term_answer(StatusCode::OK, &view))
}

async fn archive_term(app: App, mut call: Call) -> Result<Response, ApiError> {
    let id = call.path_parameter().await?;
    let precondition = precondition(call.headers())?;
    service(&app)?.archive_term(&id, &precondition, &call.context).await.map_err(refused)?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}

async fn link(app: App, mut call: Call) -> Result<Response, ApiError> {
    let (context, precondition) = (call.context.clone(), precondition(call.headers())?);
    let id = call.path_parameter().await?;
    let wanted = wire::link_from_wire(&call.json_body(&app).await?, precondition)?;
    let view = service(&app)?.link_term(&id, &wanted, &context).await.map_err(refused)?;
    Ok(term_answer(StatusCode::CREATED, &view))
}

async fn unlink(app: App, mut call: Call) -> Result<Response, ApiError> {
    let id = call.path_parameter().await?;
    let wanted = wire::link_from_parameters(call.query_string(), precondition(call.headers())?)?;
    let view = service(&app)?.unlink_term(&id, &wanted, &call.context).await.map_err(refused)?;
    Ok(term_answer(StatusCode::OK, &view))
}

async fn search_terms(app: App, call: Call) -> Result<Response, ApiError> {
    let (query, filter, limit) = wire::term_search_from_parameters(call.query_string())?;
    let views = service(&app)?.search_terms(&query, &filter, limit, &call.context).await.map_err(refused)?;
    Ok(fresh(json_answer(&wire::GlossaryTerms::from(views.as_slice()))))
}

async fn assign(app: App, call: Call) -> Result<Response, ApiError> {
    let (context, precondition) = (call.context.clone(), precondition(call.headers())?);
    let wanted = wire::owner_from_wire(&call.json_body(&app).await?, precondition)?;
    let view = service(&app)?.assign_owner(&wanted, &context).await.map_err(refused)?;
    let assigned = view.owners.iter().rfind(|owner| *owner.owner_id == *wanted.owner_id.trim());
    match assigned {
        Some(owner) => {
            let answer = created(&OwnerAssignment::new(&wanted.artifact, owner));
            Ok(with_version(answer, view.version))
        }
        // Another caller removed the owner in the meantime.
        None => Ok(with_version(created(&ArtifactOwners::new(&wanted.artifact, &view)), view.version)),
    }
}

async fn owners(app: App, call: Call) -> Result<Response, ApiError> {
    let artifact = wire::artifact_from_parameters(call.query_string())?;
    let view = service(&app)?.owners(&artifact, &call.context).await.map_err(refused)?;
    Ok(with_version(json_answer(&ArtifactOwners::new(&artifact, &view)), view.version))
}

async fn remove_owner(app: App, call: Call) -> Result<Response, ApiError> {
    let wanted = wire::owner_from_parameters(call.query_string(), precondition(call.headers())?)?;
    let view = service(&app)?.remove_owner(&wanted, &call.context).await.map_err(refused)?;
    Ok(with_version(json_answer(&ArtifactOwners::new(&wanted.artifact, &view)), view.version))
}

async fn by_owner(app: App, call: Call) -> Result<Response, ApiError> {
    let (owner_id, owner_type) = wire::owner_of_parameters(call.query_string())?;
    let owned = service(&app)?.owned_by(&owner_id, owner_type, &call.context).await.map_err(refused)?;
    Ok(fresh(json_answer(&wire::OwnedArtifacts::new(&owner_id, &owned))))
}

async fn search_artifacts(app: App, call: Call) -> Result<Response, ApiError> {
    let query = wire::artifact_query_from_parameters(call.query_string())?;
    let found = service(&app)?.search_artifacts(&query, &call.context).await.map_err(refused)?;
    Ok(fresh(json_answer(&wire::GovernedArtifacts::from(&found))))
}

async fn catalog(app: App, call: Call) -> Result<Response, ApiError> {
    let query = wire::catalog_query_from_parameters(call.query_string())?;
    let found = service(&app)?.search_artifacts(&query, &call.context).await.map_err(refused)?;
    Ok(fresh(json_answer(&wire::GovernedArtifacts::from(&found))))
}

async fn artifact(app: App, mut call: Call) -> Result<Response, ApiError> {
    let (kind, id) = call.path_parameters().await?;
    let artifact = wire::artifact_of_path(&kind, &id)?;
    let view = service(&app)?.artifact(&artifact, &call.context).await.map_err(refused)?;
    Ok(with_version(json_answer(&GovernedArtifact::from(&view)), view.version))
}

async fn metadata(app: App, mut call: Call) -> Result<Response, ApiError> {
    let (context, precondition) = (call.context.clone(), precondition(call.headers())?);
    let (kind, id) = call.path_parameters().await?;
    let wanted = wire::metadata_from_wire(&call.json_body(&app).await?, precondition)?;
    let artifact = wire::artifact_of_path(&kind, &id)?;
    let view = service(&app)?.set_metadata(&artifact, &wanted, &context).await.map_err(refused)?;
    Ok(with_version(json_answer(&GovernedArtifact::from(&view)), view.version))
}

async fn history(app: App, call: Call) -> Result<Response, ApiError> {
    let filter = wire::history_from_parameters(call.query_string())?;
    let page = service(&app)?.history(&filter, &call.context).await.map_err(refused)?;
    Ok(fresh(json_answer(&wire::GovernanceHistory::from(&page))))
}

/// The formats of the report, by media type.
#[derive(Debug, Clone, Copy)]
enum ReportFormat {
    Json,
    Csv,
    Html,
}

async fn report(app: App, call: Call) -> Result<Response, ApiError> {
    let formats = [
        (ReportFormat::Json, ("application", "json")),
        (ReportFormat::Csv, ("text", "csv")),
        (ReportFormat::Html, ("text", "html")),
    ];
    let format = preferred(call.headers(), formats.into_iter()).ok_or_else(|| {
        let available = formats.map(|(_, (kind, name))| format!("{kind}/{name}"));
        let message = format!("no media type in `Accept` is supported; supported: {}", available.join(", "));
        ApiError::new(Code::UnsupportedMediaType, message).detail("available_types", available.to_vec())
    })?;
    let report = service(&app)?.report(&call.context).await.map_err(refused)?;
    let report = GovernanceReport::from(&report);
    let mut response = match format {
        ReportFormat::Json => json_answer(&report),
        ReportFormat::Csv => text(report.to_csv(), "text/csv; charset=utf-8; header=present"),
        ReportFormat::Html => text(report.to_html(), "text/html; charset=utf-8"),
    };
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, POLICY);
    response.headers_mut().insert(VARY, HeaderValue::from_static("authorization, accept, accept-encoding"));
    Ok(fresh(response))
}

fn text(body: String, content_type: &'static str) -> Response {
    let mut response = Response::new(Body::from(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn created(body: &impl Serialize) -> Response {
    let mut response = json_answer(body);
    *response.status_mut() = StatusCode::CREATED;
    response
}

fn term_answer(status: StatusCode, view: &TermView) -> Response {
    let mut response = json_answer(&GlossaryTerm::from(view));
    *response.status_mut() = status;
    with_version(response, view.term.version)
}

/// Marks an answer that caches must revalidate before each use, since records change at any time.
fn fresh(mut response: Response) -> Response {
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    response
}
