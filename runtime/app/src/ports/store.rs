//! The port to the state database, which stores keys, jobs, audit records and governance.

use async_trait::async_trait;

/// The reason why a call failed: the state database refused it, or cannot be reached.
#[derive(Debug, Clone, thiserror::Error)]
#[error("state database: {message}")]
pub struct StoreError {
    pub message: String,
}

/// The state database.
#[async_trait]
pub trait Store: Send + Sync {
    /// Checks that the database can be read and written.
    async fn ping(&self) -> Result<(), StoreError>;

    /// Returns the version of the schema after the last migration.
    async fn schema_version(&self) -> Result<i64, StoreError>;

    /// Records that a server of this version has started. `started_at` is ISO 8601 in UTC.
    async fn record_start(&self, version: &str, started_at: &str) -> Result<(), StoreError>;
}
