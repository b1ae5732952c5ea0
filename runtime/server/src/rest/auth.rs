//! Sessions: signing in with a password, refreshing the tokens, ending a session; and revoking tokens of applications.

use axum::http::HeaderValue;
use axum::http::header::CACHE_CONTROL;
use axum::response::Response;
use serde::Serialize;
use terrane_app::accounts::Actor;
use terrane_wire::Code;
use terrane_wire::auth::{Revoked, Tokens, refresh_token_from_wire, revoked_tokens_from_wire, sign_in_from_wire};
use terrane_wire::schema;

use super::accounts;
use crate::app::{App, Scope};
use crate::edge::{ApiError, Call, RouteAccess, Routes};
use crate::edge::{NeverCompressed, json_answer};
use crate::openapi::{Compression, Content, Doc, RequestBody, ResponseDoc};

pub(super) fn register(routes: Routes) -> Routes {
    routes
        .post("/api/v1/auth/token", RouteAccess::Public, &SIGN_IN, sign_in)
        .post("/api/v1/auth/refresh", RouteAccess::Public, &REFRESH, refresh)
        .post("/api/v1/auth/revoke", RouteAccess::Identified, &REVOKE, revoke)
        .post("/api/v1/auth/revoke-tokens", RouteAccess::Scoped(Scope::Admin), &REVOKE_TOKENS, revoke_tokens)
}

async fn sign_in(app: App, call: Call) -> Result<Response, ApiError> {
    let context = call.context.clone();
    let (username, password) = sign_in_from_wire(&call.json_body(&app).await?)?;
    let pair = app.services.authenticator.sign_in(&username, &password, &context).await;
    Ok(secret(&Tokens::from(&pair.map_err(ApiError::from_auth)?)))
}

async fn refresh(app: App, call: Call) -> Result<Response, ApiError> {
    let context = call.context.clone();
    let token = refresh_token_from_wire(&call.json_body(&app).await?)?;
    let pair = app.services.authenticator.refresh(&token, &context).await;
    Ok(secret(&Tokens::from(&pair.map_err(ApiError::from_auth)?)))
}

async fn revoke(app: App, call: Call) -> Result<Response, ApiError> {
    let (origin, identity) = (call.origin(), call.identity());
    let token = refresh_token_from_wire(&call.json_body(&app).await?)?;
    let ended = app.services.authenticator.revoke(&identity, &token, &origin).await;
    ended.map_err(ApiError::from_auth)?;
    Ok(secret(&Revoked { revoked: true }))
}

async fn revoke_tokens(app: App, call: Call) -> Result<Response, ApiError> {
    let (origin, identity) = (call.origin(), call.identity());
    let tokens = revoked_tokens_from_wire(&call.json_body(&app).await?)?;
    let actor = Actor::of_request(&identity, origin);
    app.services.authenticator.accounts().revoke_tokens(&actor, tokens).await.map_err(accounts::error)?;
    Ok(json_answer(&Revoked { revoked: true }))
}

/// Returns an answer that must not be stored (RFC 6749, section 5.1).
pub(super) fn secret(body: &impl Serialize) -> Response {
    let mut response = json_answer(body);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response.extensions_mut().insert(NeverCompressed);
    response
}

pub(super) const TAG: &str = "authentication";
pub(super) const TOKENS: &[ResponseDoc] = &[ResponseDoc {
    status: 200,
    description: "an access token, and a refresh token that can be used once",
    content: &[Content::Json(schema::of::<Tokens>())],
    compression: Compression::Never,
}];

static SIGN_IN: Doc = Doc {
    id: "sign_in",
    tag: TAG,
    summary: "Start a session with a password",
    parameters: &[],
    body: Some(RequestBody::required(schema::of::<terrane_wire::auth::SignIn>())),
    answers: TOKENS,
    errors: &[Code::Unauthorized, Code::RateLimited, Code::StateUnavailable],
    detail_errors: &[],
};

static REFRESH: Doc = Doc {
    id: "refresh",
    tag: TAG,
    summary: "Renew a session; a refresh token can be used once",
    parameters: &[],
    body: Some(RequestBody::required(schema::of::<terrane_wire::auth::RefreshToken>())),
    answers: TOKENS,
    errors: &[Code::Unauthorized, Code::InvalidToken, Code::RateLimited, Code::StateUnavailable],
    detail_errors: &[],
};

static REVOKE: Doc = Doc {
    id: "revoke",
    tag: TAG,
    summary: "End a session at once, with its access tokens",
    parameters: &[],
    body: Some(RequestBody::required(schema::of::<terrane_wire::auth::RefreshToken>())),
    answers: &[ResponseDoc {
        status: 200,
        description: "the session has ended",
        content: &[Content::Json(schema::of::<Revoked>())],
        compression: Compression::Never,
    }],
    errors: &[Code::InvalidToken],
    detail_errors: &[],
};

static REVOKE_TOKENS: Doc = Doc {
    id: "revoke_tokens",
    tag: TAG,
    summary: "Revoke tokens that applications signed: one token by its `jti`, or all tokens of a `sub` that were issued until now",
    parameters: &[],
    body: Some(RequestBody::required(schema::of::<terrane_wire::auth::TokensToRevoke>())),
    answers: &[ResponseDoc {
        status: 200,
        description: "the tokens are revoked",
        content: &[Content::Json(schema::of::<Revoked>())],
        compression: Compression::Accepted,
    }],
    errors: &[Code::InvalidQuery, Code::StateUnavailable],
    detail_errors: &[],
};
