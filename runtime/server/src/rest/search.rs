//! Search of cubes, members and metrics, and suggestions while a user types.

use std::sync::Arc;

use axum::response::Response;
use terrane_app::search::SearchService;
use terrane_wire::search::{
    Autocompletion, Search, SearchResults, Suggestions, autocompletion_from_wire, search_from_wire,
};
use terrane_wire::{Code, ErrorBody, schema};

use crate::app::{App, Scope};
use crate::edge::{ApiError, Call, RouteAccess, Routes, json_answer};
use crate::openapi::{Compression, Content, Doc, RequestBody, ResponseDoc};

const READ: RouteAccess = RouteAccess::Scoped(Scope::Read);

pub(super) fn register(routes: Routes) -> Routes {
    routes.post("/api/v1/search", READ, &SEARCH, search).post(
        "/api/v1/search/autocomplete",
        READ,
        &AUTOCOMPLETE,
        autocomplete,
    )
}

fn service(app: &App, call: &Call) -> Result<Arc<SearchService>, ApiError> {
    app.services.search.clone().ok_or_else(|| ApiError::not_found(call.path()))
}

async fn search(app: App, call: Call) -> Result<Response, ApiError> {
    let (service, context) = (service(&app, &call)?, call.context.clone());
    let request = search_from_wire(&call.json_body(&app).await?)?;
    let found = service.search(&request, &context).await.map_err(ErrorBody::from)?;
    Ok(json_answer(&SearchResults::from(&found)))
}

async fn autocomplete(app: App, call: Call) -> Result<Response, ApiError> {
    let (service, context) = (service(&app, &call)?, call.context.clone());
    let request = autocompletion_from_wire(&call.json_body(&app).await?)?;
    let found = service.suggest(&request, &context).await.map_err(ErrorBody::from)?;
    Ok(json_answer(&Suggestions::from(&found)))
}

const TAG: &str = "search";

static SEARCH: Doc = Doc {
    id: "search",
    tag: TAG,
    summary: "Find cubes, members and metrics by words",
    parameters: &[],
    body: Some(RequestBody::required(schema::of::<Search>())),
    answers: &[ResponseDoc {
        status: 200,
        description: "artifacts that match, best first",
        content: &[Content::Json(schema::of::<SearchResults>())],
        compression: Compression::Accepted,
    }],
    errors: &[Code::InvalidQuery, Code::NotFound],
    detail_errors: &[],
};

static AUTOCOMPLETE: Doc = Doc {
    id: "autocomplete",
    tag: TAG,
    summary: "Suggest cubes, members and metrics while a user types",
    parameters: &[],
    body: Some(RequestBody::required(schema::of::<Autocompletion>())),
    answers: &[ResponseDoc {
        status: 200,
        description: "suggestions, best first",
        content: &[Content::Json(schema::of::<Suggestions>())],
        compression: Compression::Accepted,
    }],
    errors: &[Code::InvalidQuery, Code::NotFound],
    detail_errors: &[],
};
