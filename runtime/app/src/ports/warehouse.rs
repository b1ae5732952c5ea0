//! The port to a warehouse: run a compiled statement, get Arrow batches, all at once or as they come.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use futures_util::stream::{self, BoxStream, Stream, StreamExt as _};
use terrane_compiler::sql::{CompiledSql, ResultColumn};
use terrane_compiler::types::Value;

use super::builder::BuiltRelation;

/// A text and its bound values, as the printer made them.
#[derive(Debug, Clone, Copy)]
pub struct Statement<'a> {
    pub text: &'a str,
    pub params: &'a [Value],
    /// What the first columns mean, for engines that have no type for it; empty where nobody knows.
    pub columns: &'a [ResultColumn],
}

impl<'a> Statement<'a> {
    /// A text without values, whose columns are what the warehouse says.
    pub fn plain(text: &'a str) -> Self {
        Statement { text, params: &[], columns: &[] }
    }
}

impl<'a> From<&'a CompiledSql> for Statement<'a> {
    fn from(sql: &'a CompiledSql) -> Self {
        Statement { text: &sql.text, params: &sql.params, columns: &sql.columns }
    }
}

/// All rows of a statement, in columns.
#[derive(Debug, Clone)]
pub struct ResultSet {
    pub schema: SchemaRef,
    pub batches: Vec<RecordBatch>,
}

/// The rows of a statement as they come. Dropped early, it stops the statement.
pub struct BatchStream {
    pub schema: SchemaRef,
    batches: BoxStream<'static, Result<RecordBatch, WarehouseError>>,
}

impl BatchStream {
    pub fn new(
        schema: SchemaRef,
        batches: impl Stream<Item = Result<RecordBatch, WarehouseError>> + Send + 'static,
    ) -> Self {
        BatchStream { schema, batches: batches.boxed() }
    }
}

impl From<ResultSet> for BatchStream {
    fn from(rows: ResultSet) -> Self {
        BatchStream::new(rows.schema, stream::iter(rows.batches.into_iter().map(Ok)))
    }
}

impl Stream for BatchStream {
    type Item = Result<RecordBatch, WarehouseError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.batches.poll_next_unpin(context)
    }
}

impl fmt::Debug for BatchStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchStream").field("schema", &self.schema).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarehouseErrorKind {
    /// The statement was refused: syntax, a missing table, a failed cast.
    Refused,
    /// It ran longer than it was given.
    Timeout,
    /// The warehouse can't be reached or is shutting down.
    Unavailable,
}

/// The warehouse's own message is for callers with `admin` and for the log.
#[derive(Debug, Clone, thiserror::Error)]
#[error("warehouse `{warehouse}`: {message}")]
pub struct WarehouseError {
    pub warehouse: String,
    pub kind: WarehouseErrorKind,
    pub message: String,
    /// How often the statement was run again before this was believed.
    pub retries: u32,
}

/// What an adapter holds of connections, as they are now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Connections {
    /// Running a statement, be it one that nobody waits for any more.
    pub active: u64,
    pub idle: u64,
    /// Since the start: connections that could not be made.
    pub failed: u64,
    /// Since the start: connections that broke while they were used.
    pub lost: u64,
}

/// A warehouse. Statements run concurrently up to the adapter's own pool; a timeout is answered at
/// its time, whether or not the engine has stopped.
#[async_trait]
pub trait Warehouse: Send + Sync {
    /// The type that the project file names: `duckdb`, `postgres` …; also the dialect's name.
    fn name(&self) -> &str;

    async fn execute(&self, statement: Statement<'_>, timeout: Duration) -> Result<ResultSet, WarehouseError>;

    /// The rows in bounded memory, for answers that may be large. `timeout` is for the answer to begin,
    /// and again for each batch from when it is asked for: how long the caller takes in between is the
    /// caller's own affair. A stream that ends without an error was whole.
    async fn stream(&self, statement: Statement<'_>, timeout: Duration) -> Result<BatchStream, WarehouseError> {
        self.execute(statement, timeout).await.map(BatchStream::from)
    }

    /// The columns a statement would give, without running it.
    async fn describe(&self, statement: Statement<'_>) -> Result<SchemaRef, WarehouseError>;

    async fn ping(&self) -> Result<(), WarehouseError>;

    /// The relations that bear a [`Marker`](super::builder::Marker), of whatever project.
    async fn built(&self) -> Result<Vec<BuiltRelation>, WarehouseError> {
        Ok(Vec::new())
    }

    /// Cheap enough for every scrape. `None`: this adapter doesn't count.
    fn connections(&self) -> Option<Connections> {
        None
    }
}
