//! The REST surface: one file per family of resources.

mod audit;
mod auth;
mod docs;
mod health;
mod metadata;
mod query;

use axum::extract::Request;
use axum::response::Response;
use axum::routing::Router;

use crate::app::App;
use crate::call::Call;
use crate::error::ApiError;
use crate::routes::{Route, Routes};

fn all() -> Routes {
    let routes = query::register(Routes::default());
    let routes = health::register(metadata::register(routes));
    docs::register(audit::register(auth::register(routes)))
}

/// Every route and who may call it.
pub fn routes() -> Vec<Route> {
    all().into_parts().1
}

pub(crate) fn router() -> Router<App> {
    let (router, _) = all().into_parts();
    router.fallback(no_route)
}

async fn no_route(request: Request) -> Response {
    ApiError::not_found(request.uri().path()).into_response(&Call::correlation_id(&request))
}
