//! The REST surface: one file per family of resources.

mod accounts;
mod audit;
mod auth;
mod docs;
mod health;
mod lineage;
mod metadata;
mod metrics;
mod oauth;
mod plugins;
mod project;
mod query;

use axum::extract::Request;
use axum::response::Response;
use axum::routing::Router;

use crate::app::{App, MetricsRoute};
use crate::call::Call;
use crate::error::ApiError;
use crate::routes::{Route, Routes};

fn all() -> Routes {
    let routes = lineage::register(project::register(query::register(Routes::default())));
    let routes = health::register(metadata::register(routes));
    docs::register(plugins::register(audit::register(accounts::register(oauth::register(auth::register(routes))))))
}

/// Every route and who may call it. The one of metrics is where the operator wants it, and is not here.
pub fn routes() -> Vec<Route> {
    all().into_parts().1
}

pub(crate) fn router(metrics: Option<MetricsRoute>) -> Router<App> {
    with(metrics).into_parts().0.fallback(no_route)
}

/// Those of one server.
pub(crate) fn routes_with(metrics: Option<MetricsRoute>) -> Vec<Route> {
    with(metrics).into_parts().1
}

fn with(metrics: Option<MetricsRoute>) -> Routes {
    match metrics {
        Some(route) => metrics::register(all(), route),
        None => all(),
    }
}

/// The metrics alone, on an address of their own.
pub(crate) fn metrics_router(metrics: Option<MetricsRoute>) -> Router<App> {
    let routes = match metrics {
        Some(route) => metrics::register(Routes::default(), MetricsRoute { is_public: true, ..route }),
        None => Routes::default(),
    };
    routes.into_parts().0.fallback(no_route)
}

async fn no_route(request: Request) -> Response {
    ApiError::not_found(request.uri().path()).into_response(&Call::correlation_id(&request))
}
