//! Adapters of the warehouse port. In: printed statements and bound values. Out: Arrow batches. Not here: the meaning
//! of a query (compiler), and the time when it runs (app). Each engine has its own module: DuckDB in this process,
//! and PostgreSQL, MySQL with MariaDB, and SQLite through sqlx, which share `sessions` and `columns`.

mod built;
mod catalog;
mod columns;
mod duckdb;
mod file_versions;
mod foreign_keys;
mod instants;
pub mod mysql;
mod plan_json;
pub mod postgres;
mod rollups;
mod sessions;
pub mod sqlite;

pub use crate::duckdb::{DuckDb, DuckDbSettings, FileAccess, OpenError, RollupStore};
pub use crate::sessions::{ConnectError, ServerSettings};
pub use crate::sqlite::SqliteSettings;
