//! The use cases of commands that read rows.
//!
//! In: a project. Out: use cases whose answers come from the same sources as those of a server: results that this
//! process has stored, published tables of pre-aggregations, or rows. The tables are those that the state database
//! records, if it exists. If they cannot be read, queries read rows, which gives the same answers. Not here: building
//! tables (`commands::preagg`).

use std::sync::Arc;

use terrane_app::ports::observer::Unobserved;
use terrane_app::ports::rollup_tables::{RollupPlace, RollupTables};
use terrane_app::services::Services;
use terrane_store::StateStore;

use super::{WarehouseUse, for_operator, has_state, open, preaggregations, rollup_place, state, whole};
use crate::failure::Failure;
use crate::project::Project;

/// The duration of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandDuration {
    /// The command ends when its queries have ended.
    Short,
    /// The command waits for input. It must not keep a file open that a server writes.
    Long,
}

/// Connects, loads a project that has no errors, and assembles the use cases of a command that reads rows. Also returns
/// the reason why no pre-aggregations are read, if the state database cannot be read.
///
/// # Errors
/// Every problem of the project, if one of them is an error.
pub async fn load_for_queries(
    project: &Project,
    duration: CommandDuration,
) -> Result<(Services, Option<Failure>), Failure> {
    let (published, mut unread) = match published(project, duration).await {
        Ok(published) => (published, None),
        Err(failure) => (None, Some(failure)),
    };
    let usage = published.as_ref().map_or(WarehouseUse::Read, |(_, place)| WarehouseUse::ReadTables(place.clone()));
    let (mut loaded, _) = whole(project, open(project, Arc::new(Unobserved), Vec::new(), usage).await)?;
    let tables = loaded.rollups.take();
    let services = for_operator(project, loaded);
    if let Some((store, tables)) = published.map(|(store, _)| store).zip(tables) {
        unread = follow(project, &services, &store, tables).await.err();
    }
    Ok((services, unread))
}

/// Returns the state database and the place of tables; `None` if the command reads rows only.
async fn published(
    project: &Project,
    duration: CommandDuration,
) -> Result<Option<(Arc<StateStore>, RollupPlace)>, Failure> {
    let holds_file = duration == CommandDuration::Long && project.config.warehouse.kind == "duckdb";
    if holds_file || !project.config.pre_aggregations.enabled || !has_state(project) {
        return Ok(None);
    }
    let store = state(project).await?;
    Ok(rollup_place(project, &store).await?.map(|place| (store, place)))
}

/// Lets queries read the published tables, now and whenever new ones are published.
///
/// # Errors
/// The state database cannot be read.
async fn follow(
    project: &Project,
    services: &Services,
    store: &Arc<StateStore>,
    tables: Arc<dyn RollupTables>,
) -> Result<(), Failure> {
    let service = preaggregations(project, services, store, tables);
    service.reload().await.map_err(|error| Failure::new(error.to_string()))?;
    // The task ends with the command.
    tokio::spawn(async move { service.follow().await });
    Ok(())
}
