//! Writes projects: from the tables of a warehouse, or from the data model of another tool.
//!
//! In: an open warehouse ([`draft`]) or a folder of model files ([`import`]). Out: the files of a project that
//! compiles, and a report of everything that a person should review. [`NewFolder`] puts the files in place. Not
//! here: opening warehouses, command-line arguments and output (cli).

pub mod draft;
mod error;
pub mod import;
pub mod names;
mod new_folder;
pub mod regular_file;
pub mod yaml;

pub use error::AuthoringError;
pub use new_folder::NewFolder;

/// The name of the project file, which a folder needs to be a project.
const PROJECT_FILE: &str = "service_project.yml";
