//! The result cache: invalidation.

use axum::response::Response;
use terrane_wire::cache::{CacheInvalidated, CacheInvalidation, invalidation_from_wire};
use terrane_wire::{Code, ErrorBody, schema};

use crate::app::{App, Scope};
use crate::edge::{ApiError, Call, RouteAccess, Routes, json_answer};
use crate::openapi::{Compression, Content, Doc, RequestBody, ResponseDoc};

pub(super) fn register(routes: Routes) -> Routes {
    routes.post("/api/v1/cache/invalidate", RouteAccess::Scoped(Scope::Write), &INVALIDATE, invalidate)
}

async fn invalidate(app: App, call: Call) -> Result<Response, ApiError> {
    let context = call.context.clone();
    let cubes = invalidation_from_wire(&call.json_body_or_none(&app).await?)?;
    let invalidated = app.services.invalidations.invalidate(cubes.as_deref(), &context).await;
    invalidated.map_err(|error| ErrorBody::from(&error))?;
    Ok(json_answer(&CacheInvalidated { cubes, tenant: context.tenant.as_deref().map(str::to_owned) }))
}

static INVALIDATE: Doc = Doc {
    id: "invalidate_cache",
    tag: "query",
    summary: "Report that the data of cubes changed",
    parameters: &[],
    body: Some(RequestBody::optional(schema::of::<CacheInvalidation>())),
    answers: &[ResponseDoc {
        status: 200,
        description: "cached results of these cubes are invalid, on all servers within a second",
        content: &[Content::Json(schema::of::<CacheInvalidated>())],
        compression: Compression::Accepted,
    }],
    errors: &[Code::InvalidQuery, Code::NotFound, Code::UnsupportedMediaType],
    detail_errors: &[],
};
