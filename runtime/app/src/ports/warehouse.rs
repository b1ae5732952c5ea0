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
use terrane_compiler::sql::{CompiledSql, ResultColumn, ScannedRange};
use terrane_compiler::types::Value;

use super::builder::BuiltRelation;

/// The metadata key of a described field that is a string in Arrow, but that the engine does not compare as a string,
/// such as an enum or a UUID.
pub const SPECIAL_TYPE: &str = "terrane.special_type";

/// The text of a statement and its bound values, as the printer wrote them.
#[derive(Debug, Clone, Copy)]
pub struct Statement<'a> {
    pub text: &'a str,
    pub params: &'a [Value],
    /// The types of the first columns, for engines that cannot represent all types themselves; empty if unknown.
    pub columns: &'a [ResultColumn],
}

impl<'a> Statement<'a> {
    /// Returns a statement without bound values. Its columns have the types that the warehouse reports.
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

/// The rows of a statement as a stream. Dropping the stream early stops the statement.
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
    /// The warehouse refused the statement, for example because of its syntax, a missing table or a failed cast.
    Refused,
    /// The statement exceeded its time limit.
    Timeout,
    /// The warehouse cannot be reached, or is shutting down.
    Unavailable,
}

/// The cause of an error, as far as the adapter can determine it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RefusalCause {
    /// Another cause, or an unknown one.
    #[default]
    Other,
    /// A column of a type that has no Arrow type.
    UnsupportedType,
    /// A function that does not exist, or does not accept its arguments.
    Function,
    /// A value that an operation cannot compute, such as an overflow or a failed cast, or that cannot be returned.
    Value,
    /// A file that the warehouse's configuration does not allow it to read.
    FileAccess,
    /// A file that the statement reads and that does not exist. The warehouse is unavailable for such statements only.
    MissingFile,
}

/// An error of the warehouse. Its message is for callers with `admin` and for the log.
#[derive(Debug, Clone, thiserror::Error)]
#[error("warehouse `{warehouse}`: {message}")]
pub struct WarehouseError {
    pub warehouse: String,
    pub kind: WarehouseErrorKind,
    /// The cause of the error.
    pub cause: RefusalCause,
    pub message: String,
    /// The number of retries before the error was returned.
    pub retries: u32,
}

/// A table or view that the warehouse's catalog lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogTable {
    /// The full name in the catalog's own spelling, outermost part first. If its parts are quoted, the name means this
    /// table in every statement, independent of a session's search path.
    pub name: Vec<String>,
    /// The columns of `SELECT *`, in their order.
    pub columns: Vec<String>,
}

/// The open connections of an adapter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Connections {
    /// The number of connections that run a statement, including abandoned statements.
    pub active: u64,
    pub idle: u64,
    /// The number of failed connection attempts since the start.
    pub failed: u64,
    /// The number of connections that broke while they were used, since the start.
    pub lost: u64,
}

/// The version of all data that statements can read, as the engine reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineVersion {
    pub digest: [u8; 32],
    /// The time of the newest change; `None` if the change happened before this process can have read any data.
    pub changed_at: Option<Timestamp>,
}

/// The trustworthiness of a [`ScanSize`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SizeBasis {
    /// The stored sizes of exactly the columns and files that the scan reads.
    Exact,
    /// The scan reads at most this size.
    UpperBound,
    /// Estimates from the statistics of the engine.
    Statistics,
}

/// The size of a scan of whole relations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanSize {
    /// The number of stored bytes that are read.
    pub bytes: u64,
    /// The number of rows that are read; `None` if unknown.
    pub rows: Option<u64>,
    pub basis: SizeBasis,
}

/// A warehouse. Statements run concurrently, limited by the adapter's own pool. A timeout is returned on time, whether
/// or not the engine has stopped the statement.
#[async_trait]
pub trait Warehouse: Send + Sync {
    /// Returns the type of the warehouse in the project file, such as `duckdb` or `postgres`. It is also the name of
    /// the dialect.
    fn name(&self) -> &str;

    /// Returns true if statements may have parameters. Otherwise, the compiler prints values as literals of the dialect.
    fn binds_parameters(&self) -> bool {
        true
    }

    async fn execute(&self, statement: Statement<'_>, timeout: Duration) -> Result<ResultSet, WarehouseError>;

    /// Runs a statement whose rows are streamed in bounded memory, for large results. `timeout` limits the time until
    /// the result begins. It also limits the time for each batch, counted from the request for this batch; the time
    /// between the caller's requests does not count. A stream that ends without an error is complete.
    async fn stream(&self, statement: Statement<'_>, timeout: Duration) -> Result<BatchStream, WarehouseError> {
        self.execute(statement, timeout).await.map(BatchStream::from)
    }

    /// Returns the columns of a statement without running it. A field has the metadata [`SPECIAL_TYPE`] if its strings
    /// come from a type that the engine does not compare as strings.
    async fn describe(&self, statement: Statement<'_>) -> Result<SchemaRef, WarehouseError>;

    /// Looks a table up in the catalog by the parts of its unquoted name, outermost first. The parts are bound as
    /// values and never become SQL text, because in `SELECT * FROM name` the engine may interpret the name differently.
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
    /// A view is found whatever relations it reads, because the operator decided to create it.
    async fn table(&self, name: &[&str]) -> Result<Option<CatalogTable>, WarehouseError>;

    /// Returns the foreign keys that hold for every row that a statement can read. For such a key, the engine checks
    /// each change of either table, no referencing column can be null, and no referenced row can be hidden from this
    /// program. A key that sessions can switch off is left out.
    async fn foreign_keys(&self) -> Result<Vec<ForeignKey>, WarehouseError> {
        Ok(Vec::new())
    }

    async fn ping(&self) -> Result<(), WarehouseError>;

    /// Returns the relations of all projects that have a [`Marker`](super::builder::Marker).
    async fn built(&self) -> Result<Vec<BuiltRelation>, WarehouseError> {
        Ok(Vec::new())
    }

    /// Returns a value that changes when the rows of any statement may have changed; `None` if the engine does not
    /// support this. The call takes far less than a millisecond.
    fn data_version(&self) -> Option<EngineVersion> {
        None
    }

    /// Returns the size of what a scan reads: a statement that selects columns of all rows of a relation, with no value
    /// of a caller in it ([`scan_statement`](terrane_compiler::sql::scan_statement)). The statement is not run; only
    /// catalogs, statistics, plans and the metadata of files are read. `None` if the engine does not know it.
    /// A range of time may leave out rows; an engine that does not know their size ignores it.
    async fn scan_size(&self, _scan: &str, _range: Option<&ScannedRange>) -> Result<Option<ScanSize>, WarehouseError> {
        Ok(None)
    }

    /// Returns the numbers of connections; `None` if the adapter does not count them. The function is called for every
    /// scrape of metrics, so it must be fast.
    fn connections(&self) -> Option<Connections> {
        None
    }
}
