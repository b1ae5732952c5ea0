//! The port to a warehouse: runs a compiled statement and returns Arrow batches, whole or as a stream.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use futures_util::stream::{self, BoxStream, Stream, StreamExt as _};
use jiff::Timestamp;
use terrane_compiler::model::ForeignKey;
use terrane_compiler::sql::{CompiledSql, ResultColumn};
use terrane_compiler::types::Value;

use super::builder::BuiltRelation;

/// The text of a statement and its bound values, as the printer made them.
#[derive(Debug, Clone, Copy)]
pub struct Statement<'a> {
    pub text: &'a str,
    pub params: &'a [Value],
    /// The meanings of the first columns, for engines without a type for them; empty if unknown.
    pub columns: &'a [ResultColumn],
}

impl<'a> Statement<'a> {
    /// Returns a statement without values. Its columns have the warehouse's types.
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

/// The rows of a statement as a stream. If it is dropped early, the statement is stopped.
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
    /// The statement exceeded its time limit.
    Timeout,
    /// The warehouse can't be reached or is shutting down.
    Unavailable,
}

/// The part of a statement that the warehouse refused, as far as the adapter knows it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RefusalCause {
    /// Any other part, or an unknown one.
    #[default]
    Other,
    /// A column of a type that has no Arrow type.
    UnsupportedType,
    /// A function that does not exist, or does not take its arguments.
    Function,
    /// A file that the warehouse's configuration does not let it read.
    FileAccess,
}

/// An error of the warehouse. Its message is for callers with `admin` and for the log.
#[derive(Debug, Clone, thiserror::Error)]
#[error("warehouse `{warehouse}`: {message}")]
pub struct WarehouseError {
    pub warehouse: String,
    pub kind: WarehouseErrorKind,
    /// The cause of a refused statement.
    pub cause: RefusalCause,
    pub message: String,
    /// The number of retries before the error was returned.
    pub retries: u32,
}

/// A table or a view, as the warehouse's catalog lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogTable {
    /// The full name in the catalog's own spelling, outermost part first. Quoted, it can be printed anywhere and
    /// means this table whatever a session's search path is.
    pub name: Vec<String>,
    /// The columns of `SELECT *`, in their order.
    pub columns: Vec<String>,
}

/// The connections of an adapter now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Connections {
    /// The connections that run a statement, abandoned ones included.
    pub active: u64,
    pub idle: u64,
    /// The number of failed connection attempts since the start.
    pub failed: u64,
    /// The number of connections since the start that broke during their use.
    pub lost: u64,
}

/// The version of everything that statements of a warehouse can read, as its engine knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineVersion {
    pub digest: [u8; 32],
    /// The time of the newest change; `None`: before anything that this process could have seen.
    pub changed_at: Option<Timestamp>,
}

/// A warehouse. Statements run concurrently up to the adapter's own pool; a timeout is answered at
/// its time, whether or not the engine has stopped.
#[async_trait]
pub trait Warehouse: Send + Sync {
    /// Returns the type that the project file names: `duckdb`, `postgres` …; also the dialect's name.
    fn name(&self) -> &str;

    async fn execute(&self, statement: Statement<'_>, timeout: Duration) -> Result<ResultSet, WarehouseError>;

    /// Runs a statement whose rows are streamed in bounded memory, for large results. `timeout` limits the time to the
    /// beginning of the result, and the time for each batch after it is requested; the time that the caller takes in
    /// between does not count. A stream that ends without an error is complete.
    async fn stream(&self, statement: Statement<'_>, timeout: Duration) -> Result<BatchStream, WarehouseError> {
        self.execute(statement, timeout).await.map(BatchStream::from)
    }

    /// Returns the columns of a statement without running it.
    async fn describe(&self, statement: Statement<'_>) -> Result<SchemaRef, WarehouseError>;

    /// Looks a table up in the catalog by the parts of its unquoted name, outermost first. The parts are bound as
    /// values and never become SQL text, because in `SELECT * FROM name` the engine may read the name as something
    /// else.
    ///
    /// A name with fewer parts than the engine has levels is resolved as in a session: by the current database and
    /// schema, or by the search path. The engine's case folding of unquoted names applies. If a name refers to more
    /// than one table, none is found.
    ///
    /// The lookup finds ordinary and partitioned tables, views and materialized views of users' schemas. It never finds
    ///
    /// - files, paths and table functions, including those that are called without parentheses: DuckDB's replacement
    ///   scans (`customers.csv`), SQLite's eponymous tables (`json_each`, `pragma_table_info`), PostgreSQL's
    ///   `current_user`, MariaDB's `seq_1_to_9`; for future engines: ClickHouse's table functions and dictionaries,
    ///   Spark's and Databricks' path tables (`parquet.x`, `delta.x`), Snowflake's stages, BigQuery's wildcard tables
    ///   and table decorators;
    /// - tables whose rows are stored elsewhere: foreign and external tables, tables of engines that read files, other
    ///   servers or other tables, virtual tables, databases attached over a connector;
    /// - temporary tables, tables that belong to another relation or to an extension, and system catalogs.
    ///
    /// A view is found whatever it reads, because the operator decided to create it.
    async fn table(&self, name: &[&str]) -> Result<Option<CatalogTable>, WarehouseError>;

    /// Returns the foreign keys that hold for every row that a statement can read: the engine checks each change of
    /// either table, no referencing column can be null, and no referenced row can be hidden from this program. A key
    /// that sessions can switch off is not among them.
    async fn foreign_keys(&self) -> Result<Vec<ForeignKey>, WarehouseError> {
        Ok(Vec::new())
    }

    async fn ping(&self) -> Result<(), WarehouseError>;

    /// Returns the relations with a [`Marker`](super::builder::Marker), of any project.
    async fn built(&self) -> Result<Vec<BuiltRelation>, WarehouseError> {
        Ok(Vec::new())
    }

    /// Returns a value that changes when the rows of any statement may have changed; `None` if the engine does not
    /// support this. It takes well under a millisecond.
    fn data_version(&self) -> Option<EngineVersion> {
        None
    }

    /// Returns the numbers of connections; `None` if the adapter does not count them. It is called at every scrape, so
    /// it must be fast.
    fn connections(&self) -> Option<Connections> {
        None
    }
}
