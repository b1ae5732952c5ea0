//! Adapters of the `Warehouse` port. Today DuckDB, in process.
//!
//! In: statements with bound values. Out: Arrow batches. Not here: dialects (they are components) and
//! anything that knows a cube.

mod duckdb;

pub use self::duckdb::{DuckDb, DuckDbSettings, OpenError};
