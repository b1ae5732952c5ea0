//! Errors of DuckDB, as errors of the port.

use std::path::PathBuf;

use terrane_app::ports::warehouse::{WarehouseError, WarehouseErrorKind};

/// The warehouse's type in a project file, and its dialect's name.
pub(super) const NAME: &str = "duckdb";

/// Why the database didn't open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("DuckDB database {path} did not open: {message}")]
    Database { path: String, message: String },
    #[error("DuckDB setting `{setting}`: {message}")]
    Setting { setting: &'static str, message: String },
    #[error("`warehouse.init[{index}]` failed: {message}\n  in: {statement}")]
    Init { index: usize, statement: String, message: String },
    #[error("views and macros of the DuckDB database cannot be listed: {message}")]
    Catalog { message: String },
    #[error("folder {path} cannot be read: {message}")]
    Folder { path: PathBuf, message: String },
}

/// Classifies an error of DuckDB by the first word of its message.
pub(super) fn from_engine(error: &duckdb::Error) -> WarehouseError {
    let mut message = error.to_string();
    // An internal error brings a stack trace along.
    message.truncate(message.find("\n\nStack Trace").unwrap_or(message.len()));
    // The engine is gone for good after a fatal error; a file that can't be read may come back. A caller that waits is
    // never interrupted by this program: the engine reports it where another of the statement's threads has failed.
    let is_unavailable = ["IO Error", "FATAL", "Connection Error"].iter().any(|k| message.starts_with(k));
    let kind = if is_unavailable { WarehouseErrorKind::Unavailable } else { WarehouseErrorKind::Refused };
    new(kind, message)
}

pub(super) fn timeout() -> WarehouseError {
    new(WarehouseErrorKind::Timeout, "the statement ran longer than it was given".to_owned())
}

pub(super) fn unavailable(message: &str) -> WarehouseError {
    new(WarehouseErrorKind::Unavailable, message.to_owned())
}

pub(super) fn refused(message: String) -> WarehouseError {
    new(WarehouseErrorKind::Refused, message)
}

fn new(kind: WarehouseErrorKind, message: String) -> WarehouseError {
    WarehouseError { warehouse: NAME.to_owned(), kind, message, retries: 0 }
}
