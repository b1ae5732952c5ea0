//! Code that all engines behind sqlx share: a bounded number of sessions, and the cancellation of statements whose
//! caller has disconnected.
//!
//! In: an [`Engine`] and requests with a time limit. Out: the answer, or a timeout at the time limit. Three invariants:
//! a caller never waits longer than its time limit; a statement whose caller has disconnected is cancelled from another
//! connection and holds its session until then; and a broken session is never used again. Not here: differences between
//! engines.

mod answer;
mod failure;
mod open;
mod pool;
mod rows;
mod writers;

use std::time::Duration;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use serde_json::Value as Json;
use terrane_app::ports::builder::BuiltRelation;
use terrane_app::ports::warehouse::{
    CatalogTable, Connections, EngineVersion, ResultSet, ScanSize, SizeBasis, Statement, Warehouse, WarehouseError,
    WarehouseErrorKind,
};
use terrane_compiler::model::ForeignKey;
use terrane_compiler::sql::ScannedRange;
use terrane_compiler::types::Value;

use pool::Pool;

use crate::built::relations;
use crate::catalog::{Lookup, table};
use crate::columns::{Columns, Kind};
use crate::foreign_keys::foreign_keys;
use crate::plan_json::plan_of;

pub(crate) use answer::all_rows;
pub(crate) use failure::{Failed, timeout, within};
pub use open::{ConnectError, ServerSettings};
pub(crate) use open::{open_sessions, run_init};
pub(crate) use rows::{CellError, Reader};
pub(crate) use writers::{WritableEngine, Writers};

/// The timeout of pings, descriptions and lookups.
pub(crate) const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// A kind of database and the address of its server.
#[async_trait]
pub(crate) trait Engine: Send + Sync + 'static {
    const FAILED: Failed;
    /// The query for the relations that Terrane built, which have a marker in their comment. `None` if the engine
    /// builds no models.
    const BUILT: Option<&'static str> = None;
    /// The query for foreign keys that hold for every row. `None` if the engine does not guarantee any keys.
    const FOREIGN_KEYS: Option<&'static str> = None;
    /// The statements that return the sizes of scans. `None` if the engine does not know it.
    const SIZES: Option<SizeQueries> = None;
    /// A connection that is set up for reading.
    type Connection: Send + 'static;
    /// The data for cancelling the running statement of a session.
    type Handle: Send + Sync + 'static;

    /// Returns the lookup of a table in the catalog, as [`Warehouse::table`] defines it. Returns `None` if the names of
    /// tables cannot have this number of parts.
    fn lookup(name: &[&str]) -> Option<Lookup>;

    /// Opens a session.
    ///
    /// # Errors
    /// `Unavailable` if the server cannot be reached within the operator's time limit.
    async fn connect(&self) -> Result<WarehouseSession<Self>, WarehouseError>;

    /// Runs a statement. Returns `None` if there was no row, because the columns are only known from a row.
    ///
    /// # Errors
    /// `Unavailable` means that the connection is lost. After any other error, the connection can be used again.
    async fn rows(
        &self,
        connection: &mut Self::Connection,
        statement: Statement<'_>,
    ) -> Result<Option<Columns>, WarehouseError>;

    /// Returns the columns' names and kinds without running the statement.
    ///
    /// # Errors
    /// Returns the same errors as [`rows`](Engine::rows).
    async fn describe(
        &self,
        connection: &mut Self::Connection,
        statement: Statement<'_>,
    ) -> Result<ColumnKinds, WarehouseError>;

    /// Checks that the server of a connection responds.
    ///
    /// # Errors
    /// The server does not respond.
    async fn ping(&self, connection: &mut Self::Connection) -> Result<(), sqlx::Error>;

    /// Returns the version of the data, as [`Warehouse::data_version`] defines it.
    fn data_version(&self) -> Option<EngineVersion> {
        None
    }

    /// Cancels the running statement of a session. The session's connection is closed afterwards, even if this fails.
    async fn cancel(&self, handle: &Self::Handle) -> Result<(), WarehouseError>;
}

/// A connection and a handle to cancel its statement.
pub(crate) struct WarehouseSession<E: Engine + ?Sized> {
    pub(crate) connection: E::Connection,
    pub(crate) handle: E::Handle,
}

/// The statements that return the sizes of scans, and the meaning of their results.
#[derive(Clone, Copy)]
pub(crate) struct SizeQueries {
    /// The text before a statement that returns its plan as JSON.
    pub(crate) explain: &'static str,
    /// A query for the size of a table. Its parameters name the table.
    pub(crate) of_table: &'static str,
    /// Returns the parameters of each table in a plan; `None` if the plan reads anything else.
    pub(crate) tables: fn(&Json) -> Option<Vec<Vec<Value>>>,
    /// Returns the size in the result of `of_table`.
    pub(crate) size: fn(&ResultSet) -> Option<ScanSize>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Request<'a> {
    /// Runs the statement and returns all rows.
    Execute(Statement<'a>),
    /// Returns only the columns, without running the statement.
    Describe(Statement<'a>),
    /// Checks that the server responds.
    Probe,
}

/// The answer to a request. Only the answer to a statement that ran has batches.
pub(crate) type Answer = ResultSet;

/// The names and kinds of columns.
pub(crate) type ColumnKinds = Vec<(String, Kind)>;

/// A warehouse that implements the port with a pool of sessions.
pub(crate) struct Sessions<E: Engine> {
    pool: Pool<E>,
}

impl<E: Engine> Sessions<E> {
    /// Creates the pool. `first` is the session with which the settings were checked.
    pub(crate) fn new(engine: E, first: WarehouseSession<E>, connections: usize) -> Self {
        Sessions { pool: Pool::new(engine, first, connections) }
    }
}

#[async_trait]
impl<E: Engine> Warehouse for Sessions<E> {
    fn name(&self) -> &str {
        E::FAILED.warehouse
    }

    async fn execute(&self, statement: Statement<'_>, timeout: Duration) -> Result<ResultSet, WarehouseError> {
        self.pool.run(Request::Execute(statement), timeout).await
    }

    async fn describe(&self, statement: Statement<'_>) -> Result<SchemaRef, WarehouseError> {
        Ok(self.pool.run(Request::Describe(statement), PROBE_TIMEOUT).await?.schema)
    }

    async fn table(&self, name: &[&str]) -> Result<Option<CatalogTable>, WarehouseError> {
        let Some(lookup) = E::lookup(name) else { return Ok(None) };
        let rows = self.pool.run(Request::Execute(lookup.statement()), PROBE_TIMEOUT).await?;
        Ok(table(&rows))
    }

    async fn foreign_keys(&self) -> Result<Vec<ForeignKey>, WarehouseError> {
        let Some(text) = E::FOREIGN_KEYS else { return Ok(Vec::new()) };
        let rows = self.pool.run(Request::Execute(Statement::plain(text)), PROBE_TIMEOUT).await?;
        Ok(foreign_keys(&rows))
    }

    async fn ping(&self) -> Result<(), WarehouseError> {
        self.pool.run(Request::Probe, PROBE_TIMEOUT).await.map(drop)
    }

    async fn built(&self) -> Result<Vec<BuiltRelation>, WarehouseError> {
        let Some(text) = E::BUILT else { return Ok(Vec::new()) };
        let rows = self.pool.run(Request::Execute(Statement::plain(text)), PROBE_TIMEOUT).await?;
        Ok(relations(&rows))
    }

    fn data_version(&self) -> Option<EngineVersion> {
        self.pool.engine().data_version()
    }

    async fn scan_size(&self, scan: &str, _: Option<&ScannedRange>) -> Result<Option<ScanSize>, WarehouseError> {
        let Some(queries) = E::SIZES else { return Ok(None) };
        let explain = [queries.explain, scan].concat();
        let rows = match self.pool.run(Request::Execute(Statement::plain(&explain)), PROBE_TIMEOUT).await {
            Err(error) if error.kind == WarehouseErrorKind::Refused => return Ok(None),
            rows => rows?,
        };
        let Some(tables) = plan_of(&rows).and_then(|plan| (queries.tables)(&plan)) else { return Ok(None) };
        let mut total = ScanSize { bytes: 0, rows: Some(0), basis: SizeBasis::Exact };
        for params in tables {
            let statement = Statement { text: queries.of_table, params: &params, columns: &[] };
            let rows = self.pool.run(Request::Execute(statement), PROBE_TIMEOUT).await?;
            let Some(size) = (queries.size)(&rows) else { return Ok(None) };
            total.bytes += size.bytes;
            total.rows = total.rows.zip(size.rows).map(|(one, other)| one + other);
            total.basis = total.basis.max(size.basis);
        }
        Ok(Some(total))
    }

    fn connections(&self) -> Option<Connections> {
        Some(self.pool.connections())
    }
}
