//! The adapter of the ports `Store`, `Credentials` and `AuditLog` on sqlx: SQLite in a file.
//!
//! In: the URL of `state.url`. Out: an open, migrated database. A write is on disk before it is
//! answered. A database that a newer program has migrated is refused.

mod audit;
mod credentials;
mod location;
mod row;
mod sqlite;

pub use location::StateUrlError;
pub use sqlite::{OpenError, SqliteStore};
