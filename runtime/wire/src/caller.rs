//! Reads a caller from JSON, so that the operator can try policies as another caller.
//!
//! In: JSON such as `{"user_id": "u1", "roles": ["manager"], "attributes": {"region": "EU"}}`. Out: the context of the
//! caller's requests. Without `auth_method`, a request counts as one of the operator, who acts as this caller. Not
//! here: reading files.

use serde_json::Value as Json;
use terrane_app::domain::{RequestContext, Scopes};
use terrane_json::caller::{CallerError, from_json};

/// Reads a caller.
///
/// # Errors
/// [`CallerError`] names the invalid field.
pub fn request_of(json: &Json) -> Result<RequestContext, CallerError> {
    let caller = from_json(json)?;
    let is_operator = json.get("auth_method").is_none_or(Json::is_null);
    Ok(match is_operator {
        true => RequestContext::operator(caller),
        false => RequestContext { scopes: Scopes::READ, caller, ..RequestContext::default() },
    })
}
