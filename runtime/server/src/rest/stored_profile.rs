//! Responses with stored profiles, for the routes of profiles and of jobs.

use axum::response::Response;
use serde_json::Value as Json;
use terrane_wire::{Code, ErrorBody};

use crate::edge::{ApiError, json_answer};

/// Returns the response with the text of a profile.
pub(super) fn answer(text: &str) -> Result<Response, ApiError> {
    let profile: Json = serde_json::from_str(text).map_err(|_| damaged())?;
    Ok(json_answer(&profile))
}

/// Returns the error for a stored profile that cannot be read.
pub(super) fn damaged() -> ApiError {
    ErrorBody::new(Code::InternalError, "the stored profile cannot be read").into()
}
