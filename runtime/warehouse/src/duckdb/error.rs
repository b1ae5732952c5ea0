//! Converts errors of DuckDB to errors of the port.

use std::path::PathBuf;

use terrane_app::ports::warehouse::{RefusalCause, WarehouseError, WarehouseErrorKind};

use super::storage::READABLE;

/// The warehouse's type in a project file, and its dialect's name.
pub(super) const NAME: &str = "duckdb";

/// The reason why the database could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("DuckDB database {path} did not open: {message}")]
    Database { path: String, message: String },
    #[error("DuckDB database {path} has storage version {version}, which is newer than this program")]
    NewerStorage { path: String, version: u64 },
    #[error("DuckDB setting `{setting}`: {message}")]
    Setting { setting: &'static str, message: String },
    #[error("`warehouse.init[{index}]` failed: {message}\n  in: {statement}")]
    Init { index: usize, statement: String, message: String },
    #[error("the file of pre-aggregations {path} did not open: {message}")]
    RollupStore { path: String, message: String },
    #[error("views and macros of the DuckDB database cannot be listed: {message}")]
    Catalog { message: String },
    #[error("folder {path} cannot be read: {message}")]
    Folder { path: PathBuf, message: String },
}

impl OpenError {
    /// Returns an action that fits the error itself. For the other errors, it depends on the settings.
    pub fn hint(&self) -> Option<String> {
        let OpenError::NewerStorage { .. } = self else { return None };
        let (first, last) = (READABLE.start(), READABLE.end());
        Some(format!(
            "A newer DuckDB wrote the file. This program reads the storage versions {first} to {last}, up to that of DuckDB 1.5. \
             Copy the database with that DuckDB: `ATTACH 'copy.duckdb' AS copy (STORAGE_VERSION 'v1.5.0')` and \
             `COPY FROM DATABASE name TO copy`."
        ))
    }
}

/// Classifies an error of DuckDB by the first word of its message.
pub(super) fn from_engine(error: &duckdb::Error) -> WarehouseError {
    let mut message = error.to_string();
    // The message of an internal error contains a stack trace, which is cut off.
    message.truncate(message.find("\n\nStack Trace").unwrap_or(message.len()));
    // After a fatal error, the engine stays unavailable; after an I/O error, the file may become readable again. An
    // interrupt is not a timeout here: this program only interrupts statements whose caller has gone away. If a caller
    // that still waits receives an interrupt, another thread of its statement has failed.
    let is_unavailable = ["IO Error", "FATAL", "Connection Error"].iter().any(|k| message.starts_with(k));
    let kind = if is_unavailable { WarehouseErrorKind::Unavailable } else { WarehouseErrorKind::Refused };
    let cause = cause(&message);
    WarehouseError { cause, ..new(kind, message) }
}

/// Returns whether an error is a bug of the engine. DuckDB has no error codes, so the first words of the message
/// decide.
pub(super) fn is_internal(error: &WarehouseError) -> bool {
    error.message.starts_with("INTERNAL Error")
}

/// Parts of messages about files that do not exist.
const MISSING_FILE: [&str; 2] = ["No files found that match the pattern", "No such file or directory"];

/// The first words of messages about values that an operation cannot compute with.
const VALUE: [&str; 3] = ["Out of Range Error", "Conversion Error", "Decimal Error"];

/// Returns the cause of an error. DuckDB has no error codes, so the message decides.
fn cause(message: &str) -> RefusalCause {
    if message.starts_with("IO Error") && MISSING_FILE.iter().any(|words| message.contains(words)) {
        RefusalCause::MissingFile
    } else if message.contains("disabled by configuration") {
        RefusalCause::FileAccess
    } else if VALUE.iter().any(|words| message.starts_with(words)) {
        RefusalCause::Value
    } else if message.contains("unction") {
        RefusalCause::Function
    } else {
        RefusalCause::Other
    }
}

pub(super) fn timeout() -> WarehouseError {
    new(WarehouseErrorKind::Timeout, "the statement exceeded its timeout".to_owned())
}

pub(super) fn unavailable(message: &str) -> WarehouseError {
    new(WarehouseErrorKind::Unavailable, message.to_owned())
}

pub(super) fn refused(message: String) -> WarehouseError {
    new(WarehouseErrorKind::Refused, message)
}

fn new(kind: WarehouseErrorKind, message: String) -> WarehouseError {
    WarehouseError { warehouse: NAME.to_owned(), kind, cause: RefusalCause::Other, message, retries: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_read_from_messages_of_the_engine() {
        for (message, expected) in [
            ("Catalog Error: Scalar Function with name date_trnc does not exist!", RefusalCause::Function),
            ("Binder Error: No function matches the given name and argument types", RefusalCause::Function),
            (
                "Permission Error: Cannot access file: file system operations are disabled by configuration",
                RefusalCause::FileAccess,
            ),
            ("IO Error: No files found that match the pattern \"data/a.csv\"", RefusalCause::MissingFile),
            ("IO Error: Cannot open file \"a.csv\": No such file or directory", RefusalCause::MissingFile),
            ("IO Error: Could not read enough bytes from file \"a.csv\"", RefusalCause::Other),
            ("Out of Range Error: Overflow in multiplication of INT64 (9 * 9)!", RefusalCause::Value),
            ("Conversion Error: Type UINT64 with value 9 can't be cast", RefusalCause::Value),
            ("Out of Memory Error: failed to allocate data of size 1 MiB", RefusalCause::Other),
            ("Binder Error: Referenced column \"x\" not found in FROM clause!", RefusalCause::Other),
        ] {
            assert_eq!(cause(message), expected, "{message}");
        }
    }
}
