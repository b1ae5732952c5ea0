//! Signing in through an identity provider.
//!
//! In: a browser. Out: a redirect with a cookie that binds the sign-in to this browser, then the same answer as for
//! other sign-ins. No parameter of a request decides where a browser is redirected.

use axum::http::header::{CACHE_CONTROL, COOKIE, LOCATION, REFERRER_POLICY, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::Response;
use terrane_app::security::oauth::{BINDING_SECONDS, Transport};
use terrane_wire::Code;
use terrane_wire::auth::Tokens;
use terrane_wire::oauth::CallbackParameters;

use super::auth::{TAG, TOKENS, secret};
use crate::app::App;
use crate::edge::{ApiError, Call, Route, RouteAccess, Routes, UnknownParameters};
use crate::openapi::{Compression, Doc, Parameter, ParameterKind, ResponseDoc};

pub(super) fn register(routes: Routes) -> Routes {
    let routes = routes.get("/api/v1/auth/oauth/{provider}/login", RouteAccess::Public, &LOGIN, login);
    // Providers add parameters of their own, which a client ignores (RFC 6749, section 4.1.2).
    let route = Route {
        method: Method::GET,
        path: "/api/v1/auth/oauth/{provider}/callback",
        access: RouteAccess::Public,
        doc: &CALLBACK,
    };
    routes.add(route, UnknownParameters::Ignored, callback)
}

async fn login(app: App, mut call: Call) -> Result<Response, ApiError> {
    let provider = call.path_parameter().await?;
    let begun = app.services.oauth.begin(&provider).map_err(ApiError::from_oauth)?;
    let mut response = Response::default();
    *response.status_mut() = StatusCode::FOUND;
    let location = HeaderValue::from_str(&begun.location);
    let location =
        location.map_err(|_| ApiError::new(Code::InternalError, "the login URL is not a valid header value"))?;
    let headers = response.headers_mut();
    headers.insert(LOCATION, location);
    headers.insert(SET_COOKIE, cookie(&app, &provider, &begun.binding, BINDING_SECONDS)?);
    keep_to_yourself(headers);
    Ok(response)
}

async fn callback(app: App, mut call: Call) -> Result<Response, ApiError> {
    let provider = call.path_parameter().await?;
    let parameters = CallbackParameters::read(call.query_string())?;
    let binding = only_cookie(call.headers(), &cookie_name(&app, &provider));
    let pair = app.services.oauth.finish(&provider, parameters.with(binding.as_deref()), &call.context).await;
    let pair = pair.map_err(ApiError::from_oauth)?;
    let mut response = secret(&Tokens::from(&pair));
    let headers = response.headers_mut();
    headers.insert(SET_COOKIE, cookie(&app, &provider, "", 0)?);
    keep_to_yourself(headers);
    Ok(response)
}

/// Prevents caches from storing the page, and other sites from seeing its address, which contains a code.
fn keep_to_yourself(headers: &mut HeaderMap) {
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
}

/// Returns the name of the cookie, which differs between providers. Over https, it has a prefix that prevents other
/// hosts and scripts from setting it.
fn cookie_name(app: &App, provider: &str) -> String {
    let prefix = if app.services.oauth.transport() == Transport::Https { "__Host-" } else { "" };
    format!("{prefix}terrane_sign_in_{provider}")
}

/// Returns the cookie. It has `SameSite=Lax`, because the browser returns by a link from the provider's site.
fn cookie(app: &App, provider: &str, binding: &str, seconds: i64) -> Result<HeaderValue, ApiError> {
    let secure = if app.services.oauth.transport() == Transport::Https { "; Secure" } else { "" };
    let name = cookie_name(app, provider);
    let text = format!("{name}={binding}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}");
    HeaderValue::from_str(&text)
        .map_err(|_| ApiError::new(Code::InternalError, "the cookie is not a valid header value"))
}

/// Returns the value of a cookie that occurs once. If two cookies have the name, another site may have set one of them.
fn only_cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut values = pairs.filter(|(found, _)| *found == name).map(|(_, value)| value);
    match (values.next(), values.next()) {
        (Some(only), None) => Some(only.to_owned()),
        _ => None,
    }
}

const PROVIDER: Parameter = Parameter::path("provider", "the name of a provider in `security.oauth.providers`");

static LOGIN: Doc = Doc {
    id: "oauth_login",
    tag: TAG,
    summary: "Redirect a browser to an identity provider to sign in",
    parameters: &[PROVIDER],
    body: None,
    answers: &[ResponseDoc {
        status: 302,
        description: "a redirect to the provider, with a cookie that binds the sign-in to this browser",
        content: &[],
        compression: Compression::Accepted,
    }],
    errors: &[Code::InvalidQuery, Code::NotFound],
    detail_errors: &[],
};

static CALLBACK: Doc = Doc {
    id: "oauth_callback",
    tag: TAG,
    summary: "Exchange the code of an identity provider for a session",
    parameters: &[
        PROVIDER,
        Parameter::query("state", ParameterKind::String, "the state that was sent to the provider"),
        Parameter::query("code", ParameterKind::String, "the code of the provider, which can be used once"),
        Parameter::query("error", ParameterKind::String, "the reason why the provider returns no code"),
        Parameter::query("iss", ParameterKind::String, "the issuer, if the provider sends it"),
    ],
    body: None,
    answers: TOKENS,
    errors: &[Code::InvalidQuery, Code::Unauthorized, Code::InvalidToken, Code::NotFound, Code::StateUnavailable],
    detail_errors: &[],
};
