//! Adapters of the warehouse port. In: printed statements and bound values. Out: Arrow batches. Not
//! here: what a query means (compiler), when it may run (app). One folder a vendor; DuckDB in process
//! is the first.

mod duckdb;

pub use crate::duckdb::{DuckDb, DuckDbSettings, OpenError};
