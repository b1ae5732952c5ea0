//! The port to the tables of pre-aggregations. A table is immutable, and is built and verified in one snapshot of the
//! warehouse.
//!
//! All tables of a target are in one schema, which the SQL of a project must not name. Their names begin with a prefix
//! that belongs to the target. Not here: the tables that queries may read (`preaggregations`).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use terrane_compiler::rollup::{RollupTotals, StoredColumn};

use super::warehouse::WarehouseError;

/// The location of the tables of pre-aggregations, and the prefix of their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RollupPlace {
    /// The id of the target, in lower-case letters and digits. Names of tables begin with it.
    pub target: String,
    /// The schema of the tables, or the database if the engine has no schemas.
    pub schema: String,
}

impl RollupPlace {
    /// Returns whether a table of the schema belongs to this target.
    pub fn owns(&self, table: &str) -> bool {
        table.strip_prefix(&self.target).is_some_and(|rest| rest.starts_with('_'))
    }
}

/// A table to build.
#[derive(Debug, Clone)]
pub struct NewRollupTable {
    pub name: Arc<str>,
    /// The statement that computes its rows.
    pub query: String,
    pub columns: Vec<StoredColumn>,
    /// The statements that compare the table with the rows that it is computed from.
    pub totals: RollupTotals,
}

/// A table that was built and verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuiltTable {
    pub rows: u64,
    /// The size on disk in bytes; `None` if the warehouse does not report it.
    pub bytes: Option<u64>,
}

/// The reason why a table was not built. Nothing remains of the attempt.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RollupTableError {
    #[error("the total of `{column}` is {stored} in the table, but {base} in the rows that it was built from")]
    NotVerified { column: String, base: String, stored: String },
    #[error("the warehouse's user may not create tables in schema `{schema}`")]
    NotAllowed { schema: String },
    #[error("the rows changed during each of {attempts} attempts")]
    Changing { attempts: u32 },
    #[error(transparent)]
    Warehouse(#[from] WarehouseError),
}

impl RollupTableError {
    /// Returns the code under which builds record the error.
    pub fn code(&self) -> &'static str {
        match self {
            RollupTableError::NotVerified { .. } => "NOT_VERIFIED",
            RollupTableError::NotAllowed { .. } => "NOT_ALLOWED",
            RollupTableError::Changing { .. } => "ROWS_CHANGED",
            RollupTableError::Warehouse(_) => "WAREHOUSE_ERROR",
        }
    }
}

/// The tables of a target that belongs to another process. Only the names of these tables are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TablesElsewhere {
    pub target: String,
    pub schema: String,
}

#[async_trait]
impl RollupTables for TablesElsewhere {
    fn target(&self) -> &str {
        &self.target
    }

    fn relation(&self, table: &str) -> Vec<String> {
        vec![self.schema.clone(), table.to_owned()]
    }

    async fn prepare(&self) -> Result<(), RollupTableError> {
        Err(RollupTableError::NotAllowed { schema: self.schema.clone() })
    }

    async fn build(&self, _: &NewRollupTable, _: Duration) -> Result<BuiltTable, RollupTableError> {
        Err(RollupTableError::NotAllowed { schema: self.schema.clone() })
    }

    async fn tables(&self) -> Result<Vec<Arc<str>>, RollupTableError> {
        Err(RollupTableError::NotAllowed { schema: self.schema.clone() })
    }

    async fn drop_tables(&self, _: &[Arc<str>]) -> Result<(), RollupTableError> {
        Err(RollupTableError::NotAllowed { schema: self.schema.clone() })
    }

    async fn settle(&self) {}
}

/// Builds and drops the tables of one target. Each call has its whole effect or none, even if its future is dropped or
/// the process is killed. A dropped call interrupts its statement.
#[async_trait]
pub trait RollupTables: Send + Sync {
    /// Returns the id of the target, which is the prefix of each table's name: lower-case letters and digits.
    fn target(&self) -> &str;

    /// Returns the parts of a table's full name, outermost first.
    fn relation(&self, table: &str) -> Vec<String>;

    /// Creates the schema if it is missing.
    async fn prepare(&self) -> Result<(), RollupTableError>;

    /// Builds a table and its indexes, and compares its totals with the totals of the rows, all in one snapshot.
    async fn build(&self, table: &NewRollupTable, timeout: Duration) -> Result<BuiltTable, RollupTableError>;

    /// Returns the names of the target's tables.
    async fn tables(&self) -> Result<Vec<Arc<str>>, RollupTableError>;

    /// Drops tables of the target. Tables that do not exist are ignored.
    async fn drop_tables(&self, tables: &[Arc<str>]) -> Result<(), RollupTableError>;

    /// Waits a short time until interrupted statements have ended.
    async fn settle(&self);
}
