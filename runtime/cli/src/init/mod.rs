//! A project's beginning, made of what a warehouse says of its tables.
//!
//! In: what `--from` names. Out: the texts of a project that loads.
//! ```text
//! Origin ──catalog──▶ Vec<Table> ──keys──▶ keys and references, proved or declared ──draft──▶ files
//! ```
//! `meaning` judges what a column is for by its name, its type and a sample of its values. Not here: how a
//! warehouse is spoken to (its adapters), where files go (`authoring::folder`), words (`commands::init`).

mod catalog;
mod draft;
mod joins;
mod keys;
mod kind;
mod meaning;
pub mod origin;
pub mod project;
mod statements;
mod statistics;
mod table;

pub use draft::{Draft, Join};
pub use table::Evidence;

use terrane_app::ports::warehouse::Warehouse;

use crate::failure::Failure;

/// Which tables are taken.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// `orders` or `shop.orders`; empty: all.
    pub tables: Vec<String>,
    pub schema: Option<String>,
    /// Views too, without being named.
    pub views: bool,
}

/// Reads the tables, looks for what they don't say of themselves, and drafts cubes.
///
/// # Errors
/// The catalog can't be read, or the choice finds no table or too many.
pub async fn read(warehouse: &dyn Warehouse, choice: &Choice, tell: &mut dyn FnMut(&str)) -> Result<Draft, Failure> {
    let mut notes = Vec::new();
    let mut tables = catalog::read(warehouse, choice, &mut notes).await?;
    for index in 0..tables.len() {
        tell(&format!("looking at {}: {} of {}", tables[index].name, index + 1, tables.len()));
        statistics::read(warehouse, &mut tables[index], &mut notes).await;
        keys::find_key(warehouse, &mut tables[index], &mut notes).await;
    }
    // A database that declares references means to have declared all of them.
    if tables.iter().all(|table| table.references.is_empty()) {
        tell("looking for references between the tables");
        keys::find_references(warehouse, &mut tables, &mut notes).await;
    }
    Ok(draft::draft(&tables, warehouse.name(), notes))
}
