//! Stored profiles of cubes.
//!
//! In: the JSON text of the stored profile, from the use case. Out: the same JSON, as REST sends it.

use async_graphql::Context;
use terrane_app::profiling::ProfileError;
use terrane_wire::{Code, ErrorBody};

use super::json::Json;
use super::request::state;
use crate::failure::Failure;

/// Returns the newest profile of a cube that was made with the caller's view of the cube, or `None` if no such profile
/// is stored.
///
/// # Errors
/// Profiling is switched off, or the caller may not see the cube.
pub(crate) async fn newest(context: &Context<'_>, cube: &str) -> Result<Option<Json>, Failure> {
    let state = state(context);
    state.count_items(0)?;
    let off = || ErrorBody::new(Code::NotFound, "profiling is switched off on this server");
    let profiles = state.parts.server()?.profiles.as_ref().ok_or_else(off)?;
    let request = &state.parts.context.request;
    match profiles.newest(request, cube).await {
        Ok(text) => Ok(Some(Json::text(text.as_bytes().to_vec()))),
        Err(ProfileError::NotProfiled { .. }) => Ok(None),
        Err(error) => Err(ErrorBody::from_profile(error, request.scopes).into()),
    }
}
