//! The use cases of a server for a command, which calls them as the routes of a server do.
//!
//! In: a project. Out: services over the same state database, with the same rules, hooks and audit records. Not here:
//! background tasks, which servers run, and the result cache.

use std::sync::Arc;

use terrane_app::ports::observer::Unobserved;
use terrane_app::query::CacheSettings;
use terrane_app::services::ServerServices;

use super::{assembled, load_for_server, process_id, registered, state, unwritable};
use crate::failure::Failure;
use crate::project::Project;

/// Loads a project without errors, and assembles the use cases. No start is recorded.
///
/// # Errors
/// The project has errors, a part of the configuration cannot be used, or the state database is unavailable.
pub async fn modules(project: &Project) -> Result<ServerServices, Failure> {
    let store = state(project).await?;
    let cubes = registered(&store).await?;
    let (loaded, _) = load_for_server(project, Arc::new(Unobserved), cubes.clone(), None).await?;
    assembled(project, loaded, &store, cubes, (process_id(), CacheSettings::disabled())).await
}

/// Writes the audit records and the executed queries of a command that ends.
///
/// # Errors
/// The state database is unavailable.
pub async fn close_modules(services: &ServerServices) -> Result<(), Failure> {
    services.audit_buffer.flush().await.map_err(|error| unwritable(&error))?;
    match &services.cost {
        Some(cost) => cost.log().flush().await.map_err(|error| unwritable(&error)),
        None => Ok(()),
    }
}
