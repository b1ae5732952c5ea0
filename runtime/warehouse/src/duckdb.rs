//! The adapter of DuckDB in this process: one database, and a bounded pool of connections, each on its own thread.
//!
//! In: settings of the operator, then statements. Out: DuckDB's own Arrow batches, without a conversion to rows. Two
//! invariants hold. No text of a client becomes SQL in this module. A caller never waits for the engine longer than its
//! timeout.

mod bind;
mod build;
mod catalog;
mod error;
mod foreign_keys;
mod open;
mod permit;
mod pool;
mod rollups;
mod scan_size;
mod session;
mod storage;
mod stream;

use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use terrane_app::ports::builder::{BuildsNothing, BuiltRelation, CantBuild, ModelBuilder};
use terrane_app::ports::rollup_tables::{RollupPlace, RollupTables};
use terrane_app::ports::warehouse::{
    BatchStream, CatalogTable, Connections, EngineVersion, ResultSet, ScanSize, Statement, Warehouse, WarehouseError,
};
use terrane_compiler::model::ForeignKey;
use terrane_compiler::sql::ScannedRange;

use build::DuckDbBuilder;
pub use error::OpenError;
pub use open::{DuckDbSettings, FileAccess, RollupStore};
use pool::Pool;
use rollups::DuckDbRollups;
use session::Request;

use crate::built::relations;
use crate::catalog::table;
use crate::file_versions::FileVersions;

/// The timeout of pings, descriptions and lookups.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// The warehouse in this process.
#[derive(Debug)]
pub struct DuckDb {
    pool: Arc<Pool>,
    reads_only: bool,
    /// The versions of the files that statements can read. `None` if statements can also read data whose changes cannot
    /// be detected.
    files: Option<FileVersions>,
    rollups: Option<RollupPlace>,
}

impl DuckDb {
    /// Opens the database, runs `init` and locks the engine. Blocks the thread; call it before serving.
    ///
    /// # Errors
    /// [`OpenError`] names the file or the statement that failed.
    pub fn open(settings: &DuckDbSettings) -> Result<Self, OpenError> {
        // This is checked before the database is opened, because opening creates a missing file.
        let reads_only = open::reads_only(settings);
        let open::Opened { connection, files, has_rollups } = open::open(settings)?;
        let pool = Arc::new(Pool::new(connection, settings.connections));
        let rollups = settings.rollups.as_ref().filter(|_| has_rollups).map(|store| store.place.clone());
        Ok(DuckDb { pool, reads_only, files, rollups })
    }

    /// Returns the builder of models in this database.
    pub fn builder(&self) -> Arc<dyn ModelBuilder> {
        if self.reads_only {
            return Arc::new(BuildsNothing(CantBuild::ReadOnly));
        }
        Arc::new(DuckDbBuilder::new(self.pool.clone()))
    }

    /// Returns the port to the tables of pre-aggregations. Returns `None` if the settings contain no file for them, or
    /// if tables that are only read cannot be read now.
    pub fn rollups(&self) -> Option<Arc<dyn RollupTables>> {
        let place = self.rollups.clone()?;
        Some(Arc::new(DuckDbRollups::new(self.pool.clone(), place)))
    }
}

#[async_trait]
impl Warehouse for DuckDb {
    fn name(&self) -> &str {
        error::NAME
    }

    async fn execute(&self, statement: Statement<'_>, timeout: Duration) -> Result<ResultSet, WarehouseError> {
        self.pool.run(Request::execute(statement), timeout).await
    }

    async fn stream(&self, statement: Statement<'_>, timeout: Duration) -> Result<BatchStream, WarehouseError> {
        self.pool.stream(Request::execute(statement), timeout).await
    }

    async fn describe(&self, statement: Statement<'_>) -> Result<SchemaRef, WarehouseError> {
        let answer = self.pool.run(Request::describe(statement), PROBE_TIMEOUT).await?;
        Ok(answer.schema)
    }

    async fn table(&self, name: &[&str]) -> Result<Option<CatalogTable>, WarehouseError> {
        let Some(lookup) = catalog::lookup(name) else { return Ok(None) };
        let rows = self.pool.run(Request::execute(lookup.statement()), PROBE_TIMEOUT).await?;
        Ok(table(&rows))
    }

    async fn foreign_keys(&self) -> Result<Vec<ForeignKey>, WarehouseError> {
        let statement = Request::execute(Statement::plain(foreign_keys::FOREIGN_KEYS));
        self.pool.run(statement, PROBE_TIMEOUT).await.map(|rows| crate::foreign_keys::foreign_keys(&rows))
    }

    async fn ping(&self) -> Result<(), WarehouseError> {
        self.pool.ping(PROBE_TIMEOUT).await
    }

    async fn built(&self) -> Result<Vec<BuiltRelation>, WarehouseError> {
        let statement = Request::execute(Statement::plain(build::BUILT));
        self.pool.run(statement, PROBE_TIMEOUT).await.map(|rows| relations(&rows))
    }

    fn data_version(&self) -> Option<EngineVersion> {
        self.files.as_ref()?.read()
    }

    async fn scan_size(&self, scan: &str, range: Option<&ScannedRange>) -> Result<Option<ScanSize>, WarehouseError> {
        scan_size::scan_size(&self.pool, scan, range).await
    }

    fn connections(&self) -> Option<Connections> {
        Some(self.pool.connections())
    }
}
