//! The port to the results of jobs: files that all replicas share.
//!
//! A result is complete once its manifest exists, and is immutable from then on.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use futures_util::stream::BoxStream;
use jiff::Timestamp;
use terrane_compiler::sql::ResultColumn;

use super::jobs::Manifest;

/// The reason why a result cannot be written or read.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ResultsError {
    #[error("less than {floor} bytes of disk are free for results")]
    DiskFull { floor: u64 },
    #[error("a result cannot be stored or read: {message}")]
    Unavailable { message: Arc<str> },
}

/// The facts of a result that are stored beside its rows.
#[derive(Debug, Clone)]
pub struct ResultDescription {
    /// The columns of the query, which describe the first columns of the batches in order.
    pub columns: Vec<ResultColumn>,
    /// The rows are at least as new as the data at this time; `None` if the result was written by an older version.
    pub as_of: Option<Timestamp>,
    pub warnings: Vec<String>,
}

/// A part of a result.
pub struct ResultPage {
    pub description: ResultDescription,
    pub schema: SchemaRef,
    pub rows: BoxStream<'static, Result<RecordBatch, ResultsError>>,
}

/// Results by name.
#[async_trait]
pub trait JobResults: Send + Sync {
    /// Starts a result. Under its name, nothing is visible before the writer finishes.
    async fn create(
        &self,
        name: &str,
        description: &ResultDescription,
        schema: SchemaRef,
    ) -> Result<Box<dyn ResultWriter>, ResultsError>;
    /// Reads rows from an offset on, in bounded memory.
    async fn page(&self, manifest: &Manifest, offset: u64, limit: u64) -> Result<ResultPage, ResultsError>;
    /// Returns the names of all results, including results that are being written.
    async fn names(&self) -> Result<Vec<Arc<str>>, ResultsError>;
    /// Deletes a result, whether or not it is complete. Also succeeds if it does not exist.
    async fn remove(&self, name: &str) -> Result<(), ResultsError>;
}

/// A result that is being written. If the writer is dropped, nothing remains under the name.
#[async_trait]
pub trait ResultWriter: Send {
    async fn write(&mut self, batch: RecordBatch) -> Result<(), ResultsError>;
    /// Completes the result. When this returns, the result is on disk.
    async fn finish(self: Box<Self>) -> Result<Manifest, ResultsError>;
}
