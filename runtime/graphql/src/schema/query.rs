//! The root of queries.

use std::sync::Arc;

use async_graphql::{Context, Object, Result};
use terrane_compiler::Access;

use super::RequestState;

/// Reads of the model, of data and of the server's state.
pub(crate) struct Query;

#[Object]
impl Query {
    /// The names of all cubes that the caller may see.
    async fn cube_names(&self, context: &Context<'_>) -> Result<Vec<String>> {
        let state = context.data::<Arc<RequestState>>()?;
        let snapshot = state.services.catalog.snapshot();
        let access = Access::of(&snapshot.model, &state.context.request.caller);
        let cubes = snapshot.model.cubes.iter().filter(|cube| cube.public && !access.is_closed(cube));
        Ok(cubes.map(|cube| cube.name.to_string()).collect())
    }
}
