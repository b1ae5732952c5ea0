//! Writes projects from the tables of a warehouse.
//!
//! In: an open warehouse ([`draft`]). Out: the files of a project that compiles, and notes on everything that a person
//! should review. [`NewFolder`] puts the files in place. [`yaml`], [`names`] and [`regular_file`] are also used by the
//! importers. Not here: models of other tools (importers), opening warehouses, command-line arguments and output (cli).

pub mod draft;
mod error;
pub mod names;
mod new_folder;
pub mod regular_file;
pub mod yaml;

pub use error::AuthoringError;
pub use new_folder::NewFolder;

/// The name of the project file, which a folder needs to be a project.
pub const PROJECT_FILE: &str = "service_project.yml";
