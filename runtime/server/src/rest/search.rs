//! Search of cubes, members, metrics and values, suggestions while a user types, and questions in words.

use std::sync::Arc;

use axum::response::Response;
use terrane_app::search::SearchService;
use terrane_wire::questions::{NaturalLanguageAnswer, NaturalLanguageQuery, question_from_wire};
use terrane_wire::search::{
    Autocompletion, Search, SearchResults, Suggestions, autocompletion_from_wire, search_from_wire,
};
use terrane_wire::{Code, ErrorBody, schema};

use crate::app::{App, Scope};
use crate::edge::{ApiError, Call, RouteAccess, Routes, json_answer};
use crate::openapi::{Compression, Content, Doc, RequestBody, ResponseDoc};

const READ: RouteAccess = RouteAccess::Scoped(Scope::Read);

pub(super) fn register(routes: Routes) -> Routes {
    routes
        .post("/api/v1/search", READ, &SEARCH, search)
        .post("/api/v1/search/autocomplete", READ, &AUTOCOMPLETE, autocomplete)
        .post("/api/v1/search/nl-query", READ, &ASK, ask)
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

async fn ask(app: App, call: Call) -> Result<Response, ApiError> {
    let Some(questions) = app.services.questions.clone() else { return Err(ApiError::not_found(call.path())) };
    let context = call.context.clone();
    let question = question_from_wire(&call.json_body(&app).await?)?;
    let answer = questions.ask(&question, &context).await;
    let answer = answer.map_err(|error| ErrorBody::from_question(error, context.scopes))?;
    Ok(json_answer(&NaturalLanguageAnswer::from(&answer)))
}

const TAG: &str = "search";

static ASK: Doc = Doc {
    id: "nl_query",
    tag: TAG,
    summary: "Convert a question in words to a query, and run it on request",
    parameters: &[],
    body: Some(RequestBody::required(schema::of::<NaturalLanguageQuery>())),
    answers: &[ResponseDoc {
        status: 200,
        description: "the query with the meaning of each word, or choices if the question is ambiguous",
        content: &[Content::Json(schema::of::<NaturalLanguageAnswer>())],
        compression: Compression::Accepted,
    }],
    errors: &[
        Code::InvalidQuery,
        Code::Forbidden,
        Code::GuardrailExceeded,
        Code::QueryTimeout,
        Code::Overloaded,
        Code::WarehouseError,
        Code::WarehouseUnavailable,
    ],
    detail_errors: &[],
};

static SEARCH: Doc = Doc {
    id: "search",
    tag: TAG,
    summary: "Find cubes, members, metrics and values of dimensions by words",
    parameters: &[],
    body: Some(RequestBody::required(schema::of::<Search>())),
    answers: &[ResponseDoc {
        status: 200,
        description: "artifacts and values that match, best first",
        content: &[Content::Json(schema::of::<SearchResults>())],
        compression: Compression::Accepted,
    }],
    errors: &[Code::InvalidQuery, Code::NotFound],
    detail_errors: &[],
};

static AUTOCOMPLETE: Doc = Doc {
    id: "autocomplete",
    tag: TAG,
    summary: "Suggest cubes, members, metrics and values while a user types",
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
