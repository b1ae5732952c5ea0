//! Anomalies: monitors, their detections with root causes, alerts with their channels and deliveries, and the list of
//! detectors.

mod docs;

use std::sync::Arc;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, REFERRER_POLICY};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use terrane_app::domain::RequestContext;
use terrane_app::monitors::{AlertMove, MonitorError, MonitorService};
use terrane_wire::anomaly as wire;
use terrane_wire::{Audience, ErrorBody};

use self::docs::*;
use super::conditional::{precondition, with_version};
use crate::app::{App, Scope};
use crate::edge::{ApiError, Call, RouteAccess, Routes, json_answer};

const READ: RouteAccess = RouteAccess::Scoped(Scope::Read);
const WRITE: RouteAccess = RouteAccess::Scoped(Scope::Write);
const MONITORS: &str = "/api/v1/anomaly/monitors";
const ACKNOWLEDGE_PAGE: &str = "/api/v1/anomaly/acknowledge";
/// The content security policy of the page that acknowledges an alert: its own styles and its form.
const PAGE_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
);
const ONE_MONITOR: &str = "/api/v1/anomaly/monitors/{monitor_id}";

pub(super) fn register(routes: Routes) -> Routes {
    let routes = routes
        .post(MONITORS, WRITE, &CREATE, create)
        .get(MONITORS, READ, &LIST, list)
        .get(ONE_MONITOR, READ, &ONE, one)
        .on(Method::PUT, ONE_MONITOR, WRITE, &REPLACE, replace)
        .on(Method::DELETE, ONE_MONITOR, WRITE, &REMOVE, remove)
        .post("/api/v1/anomaly/monitors/{monitor_id}/run", WRITE, &RUN, run);
    routes
        .get("/api/v1/anomaly/detections", READ, &DETECTIONS, detections)
        .get("/api/v1/anomaly/detections/{detection_id}/root-cause", READ, &ROOT_CAUSE, root_cause)
        .get("/api/v1/anomaly/alerts", READ, &ALERTS, alerts)
        .get("/api/v1/anomaly/alerts/{alert_id}", READ, &ALERT, alert)
        .post("/api/v1/anomaly/alerts/{alert_id}/acknowledge", WRITE, &ACKNOWLEDGE, acknowledge)
        .post("/api/v1/anomaly/alerts/{alert_id}/investigate", WRITE, &INVESTIGATE, investigate)
        .post("/api/v1/anomaly/alerts/{alert_id}/resolve", WRITE, &RESOLVE, resolve)
        .get(ACKNOWLEDGE_PAGE, RouteAccess::Public, &SHOW_LINK, show_link)
        .post(ACKNOWLEDGE_PAGE, RouteAccess::Public, &FOLLOW_LINK, follow_link)
        .get("/api/v1/anomaly/channels", READ, &CHANNELS, channels)
        .post("/api/v1/anomaly/channels/test", WRITE, &TEST_CHANNEL, test_channel)
        .get("/api/v1/anomaly/deliveries", READ, &DELIVERIES, deliveries)
        .post("/api/v1/anomaly/deliveries/{delivery_id}/replay", WRITE, &REPLAY, replay)
        .get("/api/v1/anomaly/detectors", READ, &DETECTORS, detectors)
}

/// Returns the use cases. If the server has none, the routes do not exist.
fn service(app: &App, call: &Call) -> Result<Arc<MonitorService>, ApiError> {
    app.services.monitors.clone().ok_or_else(|| ApiError::not_found(call.path()))
}

fn refused(error: MonitorError, context: &RequestContext) -> ApiError {
    ErrorBody::from_monitor(error, context.scopes).into()
}

/// Marks an answer that caches must revalidate before each use, since rounds change it at any time.
fn fresh(mut response: Response) -> Response {
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    response
}

async fn create(app: App, call: Call) -> Result<Response, ApiError> {
    let (service, identity, context) = (service(&app, &call)?, call.identity(), call.context.clone());
    let definition = wire::monitor_from_wire(&call.json_body(&app).await?)?;
    let monitor = service.create(&identity, &context, definition).await.map_err(|error| refused(error, &context))?;
    let mut response = json_answer(&wire::Monitor::from(&monitor));
    *response.status_mut() = StatusCode::CREATED;
    Ok(with_version(response, monitor.version))
}

async fn list(app: App, call: Call) -> Result<Response, ApiError> {
    let monitors = service(&app, &call)?.monitors(&call.identity(), &call.context).await;
    let monitors = monitors.map_err(|error| refused(error, &call.context))?;
    Ok(fresh(json_answer(&wire::Monitors::new(&monitors))))
}

async fn one(app: App, mut call: Call) -> Result<Response, ApiError> {
    let (service, id) = (service(&app, &call)?, call.path_parameter().await?);
    let monitor = service.monitor(&call.identity(), &call.context, &id).await;
    let monitor = monitor.map_err(|error| refused(error, &call.context))?;
    Ok(with_version(json_answer(&wire::Monitor::from(&monitor)), monitor.version))
}

async fn replace(app: App, mut call: Call) -> Result<Response, ApiError> {
    let (service, identity, context) = (service(&app, &call)?, call.identity(), call.context.clone());
    let (precondition, id) = (precondition(call.headers())?, call.path_parameter().await?);
    let definition = wire::monitor_from_wire(&call.json_body(&app).await?)?;
    let monitor = service.replace(&identity, &context, &id, definition, &precondition).await;
    let monitor = monitor.map_err(|error| refused(error, &context))?;
    Ok(with_version(json_answer(&wire::Monitor::from(&monitor)), monitor.version))
}

async fn remove(app: App, mut call: Call) -> Result<Response, ApiError> {
    let (service, precondition) = (service(&app, &call)?, precondition(call.headers())?);
    let id = call.path_parameter().await?;
    let removed = service.remove(&call.identity(), &call.context, &id, &precondition).await;
    removed.map_err(|error| refused(error, &call.context))?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}

async fn run(app: App, mut call: Call) -> Result<Response, ApiError> {
    let (service, identity, context) = (service(&app, &call)?, call.identity(), call.context.clone());
    let id = call.path_parameter().await?;
    let range = wire::run_from_wire(&call.json_body_or_none(&app).await?)?;
    let run = service.run_now(&identity, &context, &id, range).await.map_err(|error| refused(error, &context))?;
    Ok(fresh(json_answer(&wire::MonitorRun::from(&run))))
}

async fn detections(app: App, call: Call) -> Result<Response, ApiError> {
    let service = service(&app, &call)?;
    let (monitor_id, filter) = wire::detections_from_parameters(call.query_string())?;
    let seen = service.detections(&call.identity(), &call.context, monitor_id.as_deref(), &filter).await;
    let seen = seen.map_err(|error| refused(error, &call.context))?;
    Ok(fresh(json_answer(&wire::Detections::from(seen.as_slice()))))
}

async fn root_cause(app: App, mut call: Call) -> Result<Response, ApiError> {
    let (service, id) = (service(&app, &call)?, call.path_parameter().await?);
    let (seen, cause) = service.root_cause(&call.context, &id).await.map_err(|error| refused(error, &call.context))?;
    Ok(fresh(json_answer(&wire::RootCause::new(&seen, &cause))))
}

async fn alerts(app: App, call: Call) -> Result<Response, ApiError> {
    let service = service(&app, &call)?;
    let (monitor_id, filter) = wire::alerts_from_parameters(call.query_string())?;
    let seen = service.alerts(&call.identity(), &call.context, monitor_id.as_deref(), &filter).await;
    let seen = seen.map_err(|error| refused(error, &call.context))?;
    Ok(fresh(json_answer(&wire::Alerts::from(seen.as_slice()))))
}

async fn alert(app: App, mut call: Call) -> Result<Response, ApiError> {
    let (service, id) = (service(&app, &call)?, call.path_parameter().await?);
    let seen = service.alert(&call.context, &id).await.map_err(|error| refused(error, &call.context))?;
    Ok(with_version(json_answer(&wire::Alert::from(&seen)), seen.alert.version))
}

async fn acknowledge(app: App, call: Call) -> Result<Response, ApiError> {
    moved(app, call, AlertMove::Acknowledge).await
}

async fn investigate(app: App, call: Call) -> Result<Response, ApiError> {
    moved(app, call, AlertMove::Investigate).await
}

async fn resolve(app: App, call: Call) -> Result<Response, ApiError> {
    moved(app, call, AlertMove::Resolve).await
}

async fn moved(app: App, mut call: Call, step: AlertMove) -> Result<Response, ApiError> {
    let (service, precondition) = (service(&app, &call)?, precondition(call.headers())?);
    let (id, context) = (call.path_parameter().await?, call.context.clone());
    wire::no_fields_from_wire(&call.json_body_or_none(&app).await?)?;
    let seen = service.move_alert(&context, &id, step, &precondition).await;
    let seen = seen.map_err(|error| refused(error, &context))?;
    Ok(with_version(json_answer(&wire::Alert::from(&seen)), seen.alert.version))
}

async fn show_link(app: App, call: Call) -> Result<Response, ApiError> {
    let (service, token) = (service(&app, &call)?, link_token(&app, &call)?);
    let seen = service.alert_of_link(&call.context, &token).await;
    let seen = seen.map_err(|error| link_refused(error, &app, &call.context))?;
    Ok(page(wire::acknowledge_page(&seen)))
}

async fn follow_link(app: App, call: Call) -> Result<Response, ApiError> {
    let (service, token) = (service(&app, &call)?, link_token(&app, &call)?);
    let seen = service.acknowledge_by_link(&call.context, &token).await;
    let seen = seen.map_err(|error| link_refused(error, &app, &call.context))?;
    Ok(page(wire::acknowledge_page(&seen)))
}

/// Reads the token of a link. An address that has sent too many wrong tokens or credentials is refused.
fn link_token(app: &App, call: &Call) -> Result<String, ApiError> {
    let token = wire::link_token_from_parameters(call.query_string())?;
    app.rates.may_fail(call.context.client).map_err(ApiError::from_rate)?;
    Ok(token)
}

/// Counts a wrong token like an invalid credential.
fn link_refused(error: MonitorError, app: &App, context: &RequestContext) -> ApiError {
    if let MonitorError::WrongLink = error {
        app.rates.failed(context.client);
    }
    refused(error, context)
}

/// Returns a page whose URL contains a token. Its headers forbid caching and referrers, so that the URL stays secret.
fn page(html: String) -> Response {
    let mut response = Response::new(Body::from(html));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(CONTENT_SECURITY_POLICY, PAGE_POLICY);
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

async fn channels(app: App, call: Call) -> Result<Response, ApiError> {
    let channels = service(&app, &call)?.channels().await.map_err(|error| refused(error, &call.context))?;
    Ok(fresh(json_answer(&wire::Channels::from(channels.as_slice()))))
}

async fn test_channel(app: App, call: Call) -> Result<Response, ApiError> {
    let (service, context) = (service(&app, &call)?, call.context.clone());
    let channel = wire::channel_from_wire(&call.json_body(&app).await?)?;
    let message = service.test_channel(&context, &channel).await.map_err(|error| refused(error, &context))?;
    Ok(fresh(json_answer(&wire::ChannelTest { delivered: message.is_none(), message })))
}

async fn deliveries(app: App, call: Call) -> Result<Response, ApiError> {
    let service = service(&app, &call)?;
    let (monitor_id, filter) = wire::deliveries_from_parameters(call.query_string())?;
    let found = service.deliveries(&call.identity(), &call.context, monitor_id.as_deref(), &filter).await;
    let found = found.map_err(|error| refused(error, &call.context))?;
    Ok(fresh(json_answer(&wire::Deliveries::from(found.as_slice()))))
}

async fn replay(app: App, mut call: Call) -> Result<Response, ApiError> {
    let (service, id) = (service(&app, &call)?, call.path_parameter().await?);
    let delivery = service.replay(&call.identity(), &call.context, &id).await;
    let delivery = delivery.map_err(|error| refused(error, &call.context))?;
    Ok(fresh(json_answer(&wire::Delivery::from(&delivery))))
}

async fn detectors(app: App, call: Call) -> Result<Response, ApiError> {
    let list = service(&app, &call)?.detectors().await;
    Ok(json_answer(&wire::Detectors::for_audience(&list, Audience::of(call.context.scopes))))
}
