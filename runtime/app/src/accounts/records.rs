//! Accounts as JSON objects, for audit records and for answers.
//!
//! In: keys, users and revocations. Out: their fields without secrets and hashes.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value as Json, json};

use super::keys::KeyState;
use crate::ports::credentials::{ApiKey, User};
use crate::security::caller_json;

/// The fields of a key, and its state at a time.
pub fn key_to_json(key: &ApiKey, now: Timestamp) -> Json {
    let mut caller = caller_json::to_json(&key.caller);
    json!({
        "id": &*key.id,
        "name": &*key.name,
        "scopes": key.scopes.names(),
        "user_id": caller["user_id"].take(),
        "email": caller["email"].take(),
        "roles": caller["roles"].take(),
        "groups": caller["groups"].take(),
        "attributes": caller["attributes"].take(),
        "tenant": key.tenant.as_deref(),
        "created_at": key.created_at.to_string(),
        "expires_at": key.expires_at.map(|at| at.to_string()),
        "state": KeyState::at(key, now).as_str(),
    })
}

/// The fields of a user.
pub fn user_to_json(user: &User) -> Json {
    let mut caller = caller_json::to_json(&user.caller);
    json!({
        "username": &*user.username,
        "user_id": caller["user_id"].take(),
        "email": caller["email"].take(),
        "scopes": user.scopes.names(),
        "roles": caller["roles"].take(),
        "groups": caller["groups"].take(),
        "attributes": caller["attributes"].take(),
        "tenant": user.tenant.as_deref(),
        "created_at": user.created_at.to_string(),
        "disabled_at": user.disabled_at.map(|at| at.to_string()),
    })
}

/// The record of a user whose password was changed.
pub(super) fn user_with_password(user: &User) -> Json {
    let mut json = user_to_json(user);
    json["password_changed"] = true.into();
    json
}

/// The record of a revocation of tokens.
pub(super) fn revocation(revoked_at: Timestamp) -> Arc<str> {
    json!({"revoked_at": revoked_at.to_string()}).to_string().into()
}
