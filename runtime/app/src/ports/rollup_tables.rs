//! The port to the tables of pre-aggregations. The tables are immutable, and are built and verified in one snapshot of
//! the warehouse.
//!
//! All tables of one target are in one schema, which a project's SQL must not name, and have names that begin with the
//! target's own prefix. Absent: the tables that queries may read (`preaggregations`).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use terrane_compiler::rollup::{RollupTotals, StoredColumn};

use super::warehouse::WarehouseError;

/// A table to make.
#[derive(Debug, Clone)]
pub struct NewRollupTable {
    pub name: Arc<str>,
    /// The statement that computes its rows.
    pub query: String,
    pub columns: Vec<StoredColumn>,
    /// The statements that compare the table with the rows that it was made of.
    pub totals: RollupTotals,
}

/// A table that was made and checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuiltTable {
    pub rows: u64,
    /// The size on disk, if the warehouse knows it.
    pub bytes: Option<u64>,
}

/// The reason why a table was not made. Nothing is left of it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RollupTableError {
    #[error("the table has {stored} for the total of `{column}`, and the rows that it was made of have {base}")]
    NotVerified { column: String, base: String, stored: String },
    #[error("the warehouse's user may not create tables in schema `{schema}`")]
    NotAllowed { schema: String },
    #[error("the rows changed during each of {attempts} attempts")]
    Changing { attempts: u32 },
    #[error(transparent)]
    Warehouse(#[from] WarehouseError),
}

impl RollupTableError {
    /// Returns the code that builds record.
    pub fn code(&self) -> &'static str {
        match self {
            RollupTableError::NotVerified { .. } => "NOT_VERIFIED",
            RollupTableError::NotAllowed { .. } => "NOT_ALLOWED",
            RollupTableError::Changing { .. } => "ROWS_CHANGED",
            RollupTableError::Warehouse(_) => "WAREHOUSE_ERROR",
        }
    }
}

/// The tables of a target that another process has: they are known by name only.
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

/// Makes and drops the tables of one target. Each call has its whole effect or none, also if its future is dropped or
/// the process is killed; its statement is interrupted then.
#[async_trait]
pub trait RollupTables: Send + Sync {
    /// Returns the id of the target, which begins the name of each table: lower-case letters and digits.
    fn target(&self) -> &str;

    /// Returns the parts of a table's full name, outermost first.
    fn relation(&self, table: &str) -> Vec<String>;

    /// Makes the schema if it is missing.
    async fn prepare(&self) -> Result<(), RollupTableError>;

    /// Makes a table, its indexes, and compares its totals with those of the rows, all in one snapshot.
    async fn build(&self, table: &NewRollupTable, timeout: Duration) -> Result<BuiltTable, RollupTableError>;

    /// Returns the names of the target's tables.
    async fn tables(&self) -> Result<Vec<Arc<str>>, RollupTableError>;

    /// Drops tables of the target; those that do not exist are ignored.
    async fn drop_tables(&self, tables: &[Arc<str>]) -> Result<(), RollupTableError>;

    /// Waits a short time until interrupted statements have ended.
    async fn settle(&self);
}
