//! Routes for API keys and users: list, create, read, change, and revoke or disable.

use axum::body::Body;
use axum::http::Method;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use terrane_app::accounts::{AccountError, Accounts, Actor};
use terrane_wire::accounts::{self as wire, Key, KeyWithText, Keys, UserAnswer, Users};
use terrane_wire::{Code, schema};

use super::auth::{TAG, secret};
use crate::app::{App, Scope};
use crate::edge::{ApiError, Call, RouteAccess, Routes, json_answer};
use crate::openapi::{Compression, Content, Doc, Parameter, RequestBody, ResponseDoc};

const ADMIN: RouteAccess = RouteAccess::Scoped(Scope::Admin);

pub(super) fn register(routes: Routes) -> Routes {
    let routes = routes
        .get("/api/v1/auth/keys", ADMIN, &LIST_KEYS, list_keys)
        .post("/api/v1/auth/keys", ADMIN, &CREATE_KEY, create_key)
        .get("/api/v1/auth/keys/{id}", ADMIN, &READ_KEY, read_key)
        .on(Method::PATCH, "/api/v1/auth/keys/{id}", ADMIN, &CHANGE_KEY, change_key)
        .on(Method::DELETE, "/api/v1/auth/keys/{id}", ADMIN, &REVOKE_KEY, revoke_key);
    routes
        .get("/api/v1/auth/users", ADMIN, &LIST_USERS, list_users)
        .post("/api/v1/auth/users", ADMIN, &CREATE_USER, create_user)
        .get("/api/v1/auth/users/{name}", ADMIN, &READ_USER, read_user)
        .on(Method::PATCH, "/api/v1/auth/users/{name}", ADMIN, &CHANGE_USER, change_user)
        .on(Method::DELETE, "/api/v1/auth/users/{name}", ADMIN, &DISABLE_USER, disable_user)
}

fn accounts(app: &App) -> &Accounts {
    app.services.authenticator.accounts()
}

fn actor(call: &Call) -> Actor {
    Actor::of_request(&call.identity(), call.origin())
}

async fn list_keys(app: App, _: Call) -> Result<Response, ApiError> {
    let keys = accounts(&app).keys().await.map_err(self::error)?;
    Ok(answer(StatusCode::OK, &Keys::new(&keys, app.services.clock.now())))
}

async fn create_key(app: App, call: Call) -> Result<Response, ApiError> {
    let actor = actor(&call);
    let request = wire::new_key_from_wire(&call.json_body(&app).await?)?;
    let issued = accounts(&app).create_key(&actor, request).await.map_err(self::error)?;
    let mut response = secret(&KeyWithText::new(&issued, app.services.clock.now()));
    *response.status_mut() = StatusCode::CREATED;
    Ok(response)
}

async fn read_key(app: App, mut call: Call) -> Result<Response, ApiError> {
    let id = call.path_parameter().await?;
    let key = accounts(&app).key(&id).await.map_err(self::error)?;
    Ok(answer(StatusCode::OK, &Key::new(&key, app.services.clock.now())))
}

async fn change_key(app: App, mut call: Call) -> Result<Response, ApiError> {
    let (id, actor) = (call.path_parameter().await?, actor(&call));
    let change = wire::key_change_from_wire(&call.json_body(&app).await?)?;
    let key = accounts(&app).change_key(&actor, &id, change).await.map_err(self::error)?;
    Ok(answer(StatusCode::OK, &Key::new(&key, app.services.clock.now())))
}

async fn revoke_key(app: App, mut call: Call) -> Result<Response, ApiError> {
    let id = call.path_parameter().await?;
    accounts(&app).revoke_key(&actor(&call), &id).await.map_err(self::error)?;
    Ok(no_content())
}

async fn list_users(app: App, _: Call) -> Result<Response, ApiError> {
    let users = accounts(&app).users().await.map_err(self::error)?;
    Ok(answer(StatusCode::OK, &Users::from(users.as_slice())))
}

async fn create_user(app: App, call: Call) -> Result<Response, ApiError> {
    let actor = actor(&call);
    let request = wire::new_user_from_wire(&call.json_body(&app).await?)?;
    let user = accounts(&app).create_user(&actor, request).await.map_err(self::error)?;
    Ok(answer(StatusCode::CREATED, &UserAnswer::from(&user)))
}

async fn read_user(app: App, mut call: Call) -> Result<Response, ApiError> {
    let name = call.path_parameter().await?;
    let user = accounts(&app).user(&name).await.map_err(self::error)?;
    Ok(answer(StatusCode::OK, &UserAnswer::from(&user)))
}

async fn change_user(app: App, mut call: Call) -> Result<Response, ApiError> {
    let (name, actor) = (call.path_parameter().await?, actor(&call));
    let change = wire::user_change_from_wire(&call.json_body(&app).await?)?;
    let changed = accounts(&app).change_user(&actor, &name, change).await.map_err(self::error)?;
    Ok(answer(StatusCode::OK, &UserAnswer::from(&changed.user)))
}

async fn disable_user(app: App, mut call: Call) -> Result<Response, ApiError> {
    let name = call.path_parameter().await?;
    accounts(&app).disable_user(&actor(&call), &name).await.map_err(self::error)?;
    Ok(no_content())
}

fn answer(status: StatusCode, body: &impl Serialize) -> Response {
    let mut response = json_answer(body);
    *response.status_mut() = status;
    response
}

fn no_content() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

pub(super) fn error(error: AccountError) -> ApiError {
    let message = error.to_string();
    match error {
        AccountError::Invalid { field, .. } => ApiError::new(Code::InvalidQuery, message).detail("field", field),
        AccountError::NothingToChange => ApiError::new(Code::InvalidQuery, message),
        AccountError::UnknownKey { .. } | AccountError::UnknownUser { .. } => ApiError::new(Code::NotFound, message),
        AccountError::RevokedKey { .. }
        | AccountError::UserExists { .. }
        | AccountError::DisabledUser { .. }
        | AccountError::Contended => ApiError::new(Code::Conflict, message),
        AccountError::NotHashed => ApiError::new(Code::InternalError, message),
        AccountError::Store(error) => ApiError::from_store(&error),
    }
}

const ID: Parameter = Parameter::path("id", "the id of a key, which has 16 digits");
const NAME: Parameter = Parameter::path("name", "the name of a user");

const KEY: Content = Content::Json(schema::of::<Key>());
const USER: Content = Content::Json(schema::of::<UserAnswer>());

const fn described(status: u16, description: &'static str, content: &'static [Content]) -> ResponseDoc {
    ResponseDoc { status, description, content, compression: Compression::Accepted }
}

static LIST_KEYS: Doc = Doc::simple(
    "list_keys",
    TAG,
    "List API keys, newest first, without their secrets",
    &[described(200, "all keys", &[Content::Json(schema::of::<Keys>())])],
);

static CREATE_KEY: Doc = Doc {
    id: "create_key",
    tag: TAG,
    summary: "Create an API key; its secret is returned only once",
    parameters: &[],
    body: Some(RequestBody::required(schema::of::<wire::NewKey>())),
    answers: &[ResponseDoc {
        status: 201,
        description: "the key with its secret",
        content: &[Content::Json(schema::of::<KeyWithText>())],
        compression: Compression::Never,
    }],
    errors: &[],
    detail_errors: &[],
};

static READ_KEY: Doc = Doc {
    id: "read_key",
    tag: TAG,
    summary: "Read an API key, without its secret",
    parameters: &[ID],
    body: None,
    answers: &[described(200, "the key", &[KEY])],
    errors: &[Code::NotFound],
    detail_errors: &[],
};

static CHANGE_KEY: Doc = Doc {
    id: "change_key",
    tag: TAG,
    summary: "Change the name, the expiry or the rights of an API key; omitted fields stay unchanged",
    parameters: &[ID],
    body: Some(RequestBody::required(schema::of::<wire::KeyPatch>())),
    answers: &[described(200, "the key after the change", &[KEY])],
    errors: &[Code::NotFound, Code::Conflict],
    detail_errors: &[],
};

static REVOKE_KEY: Doc = Doc {
    id: "revoke_key",
    tag: TAG,
    summary: "Revoke an API key at once",
    parameters: &[ID],
    body: None,
    answers: &[described(204, "the key is revoked", &[])],
    errors: &[Code::NotFound, Code::Conflict],
    detail_errors: &[],
};

static LIST_USERS: Doc = Doc::simple(
    "list_users",
    TAG,
    "List users, by name",
    &[described(200, "all users", &[Content::Json(schema::of::<Users>())])],
);

static CREATE_USER: Doc = Doc {
    id: "create_user",
    tag: TAG,
    summary: "Create a user who signs in with a password",
    parameters: &[],
    body: Some(RequestBody::required(schema::of::<wire::NewUser>())),
    answers: &[described(201, "the user", &[USER])],
    errors: &[Code::Conflict],
    detail_errors: &[],
};

static READ_USER: Doc = Doc {
    id: "read_user",
    tag: TAG,
    summary: "Read a user",
    parameters: &[NAME],
    body: None,
    answers: &[described(200, "the user", &[USER])],
    errors: &[Code::NotFound],
    detail_errors: &[],
};

static CHANGE_USER: Doc = Doc {
    id: "change_user",
    tag: TAG,
    summary: "Change the password or the rights of a user, or disable or enable the user; all sessions of the user end",
    parameters: &[NAME],
    body: Some(RequestBody::required(schema::of::<wire::UserPatch>())),
    answers: &[described(200, "the user after the change", &[USER])],
    errors: &[Code::NotFound, Code::Conflict],
    detail_errors: &[],
};

static DISABLE_USER: Doc = Doc {
    id: "disable_user",
    tag: TAG,
    summary: "Disable a user and end the user's sessions; the name cannot be used again",
    parameters: &[NAME],
    body: None,
    answers: &[described(204, "the user is disabled", &[])],
    errors: &[Code::NotFound, Code::Conflict],
    detail_errors: &[],
};
