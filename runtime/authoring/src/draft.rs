//! Drafts a project from the tables of a warehouse.
//!
//! In: an open [`Warehouse`] and a [`TableSelection`]. Out: a [`ProjectDraft`]: files that compile, and notes.
//! ```text
//! Warehouse ──catalog──▶ Vec<Table> ──keys──▶ keys and references, declared or found ──cubes──▶ files
//! ```
//! [`classify`] decides by name, type and a sample of values whether a numeric column gets measures. Not here:
//! opening a warehouse (cli), putting files in place ([`NewFolder`](crate::NewFolder)).

mod catalog;
mod classify;
mod column_kind;
mod csv_text;
mod cubes;
pub mod files;
mod joins;
mod keys;
pub mod project_file;
mod statements;
mod statistics;
mod table;
mod texts;

pub use cubes::{DraftCube, ProjectDraft};
pub use joins::Join;
pub use table::Evidence;

use terrane_app::ports::warehouse::Warehouse;

use crate::AuthoringError;

/// The tables to draft cubes for.
#[derive(Debug, Clone, Default)]
pub struct TableSelection {
    /// Names such as `orders` or `shop.orders`. An empty list selects all tables.
    pub tables: Vec<String>,
    pub schema: Option<String>,
    pub views: ViewSelection,
}

/// The views to draft cubes for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ViewSelection {
    /// The views that [`TableSelection::tables`] names. Other views are left out, because most views repeat the rows of
    /// tables.
    #[default]
    Named,
    All,
}

/// Reads the tables, looks for undeclared keys and references, and drafts a project.
///
/// # Errors
/// The catalog cannot be read, or the selection contains no table or too many.
pub async fn draft(
    warehouse: &dyn Warehouse,
    selection: &TableSelection,
    progress: &mut dyn FnMut(&str),
) -> Result<ProjectDraft, AuthoringError> {
    let mut notes = Vec::new();
    let mut tables = catalog::read(warehouse, selection, &mut notes).await?;
    for index in 0..tables.len() {
        progress(&format!("reading {}: {} of {}", tables[index].name, index + 1, tables.len()));
        statistics::read(warehouse, &mut tables[index], &mut notes).await;
        texts::read(warehouse, &mut tables[index], &mut notes).await;
        keys::find_key(warehouse, &mut tables[index], &mut notes).await;
    }
    // A database that declares some references is assumed to declare all of them.
    if tables.iter().all(|table| table.references.is_empty()) {
        progress("looking for references between the tables");
        keys::find_references(warehouse, &mut tables, &mut notes).await;
    }
    Ok(cubes::draft(&tables, warehouse.name(), notes))
}
