//! Sessions: begin one with a password, go on with it, end it.

use axum::http::HeaderValue;
use axum::http::header::CACHE_CONTROL;
use axum::response::Response;
use serde_json::{Value as Json, json};

use crate::app::{App, Scope};
use crate::call::Call;
use crate::edge::{NeverCompressed, json_response};
use crate::error::{ApiError, Code};
use crate::openapi::{Answer, Doc};
use crate::routes::{Access, Routes};
use crate::wire::auth::{refresh_token_from_wire, revoked_tokens_from_wire, sign_in_from_wire, token_pair_to_wire};

pub(super) fn register(routes: Routes) -> Routes {
    routes
        .post("/api/v1/auth/token", Access::Public, &SIGN_IN, sign_in)
        .post("/api/v1/auth/refresh", Access::Public, &REFRESH, refresh)
        .post("/api/v1/auth/revoke", Access::Identified, &REVOKE, revoke)
        .post("/api/v1/auth/revoke-tokens", Access::Scoped(Scope::Admin), &REVOKE_TOKENS, revoke_tokens)
}

async fn sign_in(app: App, call: Call) -> Result<Response, ApiError> {
    let context = call.context.clone();
    let (username, password) = sign_in_from_wire(&call.json_body(&app).await?)?;
    let pair = app.ports.authenticator.sign_in(&username, &password, &context).await;
    Ok(secret(&token_pair_to_wire(&pair.map_err(ApiError::from_auth)?)))
}

async fn refresh(app: App, call: Call) -> Result<Response, ApiError> {
    let context = call.context.clone();
    let token = refresh_token_from_wire(&call.json_body(&app).await?)?;
    let pair = app.ports.authenticator.refresh(&token, &context).await;
    Ok(secret(&token_pair_to_wire(&pair.map_err(ApiError::from_auth)?)))
}

async fn revoke(app: App, call: Call) -> Result<Response, ApiError> {
    let (origin, identity) = (call.origin(), call.identity());
    let token = refresh_token_from_wire(&call.json_body(&app).await?)?;
    let ended = app.ports.authenticator.revoke(&identity, &token, &origin).await;
    ended.map_err(ApiError::from_auth)?;
    Ok(secret(&json!({"revoked": true})))
}

async fn revoke_tokens(app: App, call: Call) -> Result<Response, ApiError> {
    let (origin, identity) = (call.origin(), call.identity());
    let tokens = revoked_tokens_from_wire(&call.json_body(&app).await?)?;
    let revoked = app.ports.authenticator.revoke_tokens(&identity, tokens, &origin).await;
    revoked.map_err(ApiError::from_auth)?;
    Ok(json_response(json!({"revoked": true}).to_string().into_bytes()))
}

/// An answer that nobody on the way may keep (RFC 6749, section 5.1).
pub(super) fn secret(body: &Json) -> Response {
    let mut response = json_response(body.to_string().into_bytes());
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response.extensions_mut().insert(NeverCompressed);
    response
}

pub(super) const TAG: &str = "authentication";
pub(super) const TOKENS: &[Answer] = &[Answer {
    status: 200,
    description: "an access token, and a refresh token that is good once",
    content: &[("application/json", Some("Tokens"))],
}];

static SIGN_IN: Doc = Doc {
    id: "sign_in",
    tag: TAG,
    summary: "Begin a session with a password",
    parameters: &[],
    body: Some("SignIn"),
    answers: TOKENS,
    refusals: &[Code::Unauthorized, Code::RateLimited, Code::StateUnavailable],
};

static REFRESH: Doc = Doc {
    id: "refresh",
    tag: TAG,
    summary: "Go on with a session; the refresh token is used up",
    parameters: &[],
    body: Some("RefreshToken"),
    answers: TOKENS,
    refusals: &[Code::Unauthorized, Code::InvalidToken, Code::RateLimited, Code::StateUnavailable],
};

static REVOKE: Doc = Doc {
    id: "revoke",
    tag: TAG,
    summary: "End a session at once, with its access tokens",
    parameters: &[],
    body: Some("RefreshToken"),
    answers: &[Answer { status: 200, description: "it is over", content: &[("application/json", Some("Revoked"))] }],
    refusals: &[Code::InvalidToken],
};

static REVOKE_TOKENS: Doc = Doc {
    id: "revoke_tokens",
    tag: TAG,
    summary: "Revoke tokens that applications signed: one by `jti`, or those of a `sub` that were issued until now",
    parameters: &[],
    body: Some("RevokedTokens"),
    answers: &[Answer {
        status: 200,
        description: "they are refused",
        content: &[("application/json", Some("Revoked"))],
    }],
    refusals: &[Code::InvalidQuery, Code::StateUnavailable],
};
