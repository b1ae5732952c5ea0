//! The warehouse, which implements the port with a pool of connections.

use std::time::Duration;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use terrane_app::ports::warehouse::{
    BatchStream, CatalogTable, Connections, ResultSet, Statement, Warehouse, WarehouseError,
};

use crate::catalog;
use crate::connection::Opener;
use crate::library::LoadedDriver;
use crate::pool::{PROBE_TIMEOUT, Pool};
use crate::settings::{AdbcSettings, ConnectError, TableCatalog};

/// A warehouse behind an ADBC driver.
#[derive(Debug)]
pub struct AdbcWarehouse {
    dialect: String,
    catalog: TableCatalog,
    pool: Pool,
}

/// Runs `init`, opens a connection, and checks that the database answers.
///
/// # Errors
/// [`ConnectError`] names the statement that failed. No error shows the value of an option.
pub async fn connect(driver: LoadedDriver, settings: &AdbcSettings) -> Result<AdbcWarehouse, ConnectError> {
    let LoadedDriver { path, version, .. } = &driver;
    tracing::info!(event = "driver_loaded", warehouse = settings.dialect, path, version);
    let opener = Opener::new(driver, settings);
    let pool = Pool::new(opener, settings.connect_timeout, settings.connections);
    pool.open_first(settings.init.clone()).await?;
    Ok(AdbcWarehouse { dialect: settings.dialect.clone(), catalog: settings.catalog, pool })
}

impl AdbcWarehouse {
    fn text(&self, statement: Statement<'_>) -> Result<String, WarehouseError> {
        if statement.params.is_empty() {
            return Ok(statement.text.to_owned());
        }
        Err(self.pool.failures().refused("a statement for an ADBC driver cannot have parameters".to_owned()))
    }
}

#[async_trait]
impl Warehouse for AdbcWarehouse {
    fn name(&self) -> &str {
        &self.dialect
    }

    fn binds_parameters(&self) -> bool {
        false
    }

    async fn execute(&self, statement: Statement<'_>, timeout: Duration) -> Result<ResultSet, WarehouseError> {
        self.pool.run(self.text(statement)?, timeout).await
    }

    async fn stream(&self, statement: Statement<'_>, timeout: Duration) -> Result<BatchStream, WarehouseError> {
        self.pool.stream(self.text(statement)?, timeout).await
    }

    async fn describe(&self, statement: Statement<'_>) -> Result<SchemaRef, WarehouseError> {
        self.pool.describe(self.text(statement)?, PROBE_TIMEOUT).await
    }

    async fn table(&self, name: &[&str]) -> Result<Option<CatalogTable>, WarehouseError> {
        if self.catalog == TableCatalog::Unsupported {
            return Ok(None);
        }
        let Some(lookup) = catalog::lookup(name) else { return Ok(None) };
        self.pool.run(lookup, PROBE_TIMEOUT).await.map(|rows| catalog::table(&rows))
    }

    async fn ping(&self) -> Result<(), WarehouseError> {
        self.pool.ping(PROBE_TIMEOUT).await
    }

    fn connections(&self) -> Option<Connections> {
        Some(self.pool.connections())
    }
}
