//! The REST protocol: one file per family of resources.
//!
//! In: the use cases. Out: routes with their descriptions, and errors in the interface's JSON form. Handlers translate
//! and decide nothing. Not here: authentication, limits and bodies (`edge`), readers and writers (`wire`).

mod accounts;
mod anomaly;
mod answer;
mod audit;
mod auth;
mod cache;
mod conditional;
mod cost;
mod data_tests;
mod dax;
mod docs;
mod format;
mod governance;
mod health;
mod jobs;
mod lineage;
mod metadata;
mod metrics;
mod oauth;
mod plugins;
mod preaggregations;
mod probe;
mod profiling;
mod project;
mod query;
mod search;
mod stored_profile;

use axum::extract::Request;
use axum::http::header::{CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use axum::routing::Router;
use serde_json::Value as Json;
use terrane_app::ports::governance::Surface;

pub(crate) use probe::is_probe;

use crate::app::{App, MetricsRoute, ServedRoutes};
use crate::edge::{ApiError, Credentials, Parts, Protocol, Route, Routes, correlation_id, protocol_of};

/// The REST protocol, which answers every request that no other protocol answers.
pub(crate) struct Rest;

impl Protocol for Rest {
    fn surface(&self) -> Surface {
        Surface::Rest
    }

    fn answers(&self, _: &Request) -> bool {
        true
    }

    fn is_probe(&self, path: &str) -> bool {
        is_probe(path)
    }

    fn accepts(&self, credentials: &Credentials) -> bool {
        !matches!(credentials, Credentials::Basic { .. })
    }

    fn render(&self, error: ApiError, correlation_id: &str) -> Response {
        let Parts { body, mut beside, headers } = error.into_parts();
        let status = StatusCode::from_u16(body.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        beside.extend(body.into_json(correlation_id));
        let mut response = Response::new(Json::Object(beside).to_string().into());
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response.headers_mut().extend(headers);
        response
    }
}

fn all() -> Routes {
    let routes = lineage::register(project::register(jobs::register(query::register(Routes::default()))));
    let routes = health::register(metadata::register(cache::register(preaggregations::register(routes))));
    let routes = data_tests::register(dax::register(routes));
    docs::register(plugins::register(audit::register(accounts::register(oauth::register(auth::register(routes))))))
}

pub(crate) fn router(served: ServedRoutes) -> Router<App> {
    with(served).into_parts().0.fallback(no_route)
}

/// Returns the routes of REST on one server.
pub(crate) fn routes_with(served: ServedRoutes) -> Vec<Route> {
    with(served).into_parts().1
}

fn with(served: ServedRoutes) -> Routes {
    let routes = if served.has_costs { cost::register(all()) } else { all() };
    let routes = if served.has_governance { governance::register(routes) } else { routes };
    let routes = if served.has_search { search::register(routes) } else { routes };
    let routes = if served.has_profiling { profiling::register(routes) } else { routes };
    let routes = if served.has_monitors { anomaly::register(routes) } else { routes };
    match served.metrics {
        Some(route) => metrics::register(routes, route),
        None => routes,
    }
}

/// Returns a router with only the route of metrics, for a separate address.
pub(crate) fn metrics_router(metrics: Option<MetricsRoute>) -> Router<App> {
    let routes = match metrics {
        Some(route) => metrics::register(Routes::default(), MetricsRoute { is_public: true, ..route }),
        None => Routes::default(),
    };
    routes.into_parts().0.fallback(no_route)
}

async fn no_route(request: Request) -> Response {
    let error = ApiError::not_found(request.uri().path());
    protocol_of(&request).render(error, &correlation_id(&request))
}
