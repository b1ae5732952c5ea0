//! The warehouse, which implements the port with a pool of sessions.

use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use terrane_app::ports::builder::{BuiltRelation, ModelBuilder};
use terrane_app::ports::rollup_tables::{RollupPlace, RollupTables};
use terrane_app::ports::warehouse::{
    BatchStream, CatalogTable, Connections, ResultSet, Statement, Warehouse, WarehouseError,
};
use tonic::transport::Certificate;

use crate::builder::SparkBuilder;
use crate::built;
use crate::catalog;
use crate::failure::NAME;
use crate::opening::Opener;
use crate::pool::{PROBE_TIMEOUT, Pool};
use crate::rollups::SparkRollups;
use crate::session::{Server, query};
use crate::settings::{ConnectError, SparkSettings};
use crate::url::Address;
use crate::writers::Writers;

/// A warehouse on a server with the Spark Connect protocol.
#[derive(Debug)]
pub struct SparkWarehouse {
    pool: Pool,
    writers: Arc<Writers>,
}

/// Opens a session, runs `init` in it, and checks that the server answers.
///
/// # Errors
/// [`ConnectError`] names the statement that failed. No error shows the URL.
pub async fn connect(settings: &SparkSettings) -> Result<SparkWarehouse, ConnectError> {
    let server = server(settings).await?;
    let opener = Arc::new(Opener::new(server, settings.init.clone(), settings.connect_timeout));
    let pool = Pool::new(Arc::clone(&opener), settings.connections);
    pool.open_first().await?;
    Ok(SparkWarehouse { pool, writers: Arc::new(Writers::new(opener)) })
}

impl SparkWarehouse {
    /// Returns the builder of models, which writes with the rights of the URL's user.
    pub fn builder(&self) -> impl ModelBuilder + use<> {
        SparkBuilder::new(self.pool.clone(), Arc::clone(&self.writers))
    }

    /// Returns the tables of pre-aggregations at a place.
    pub fn rollups(&self, place: RollupPlace) -> impl RollupTables + use<> {
        SparkRollups::new(self.pool.clone(), Arc::clone(&self.writers), place)
    }
}

async fn server(settings: &SparkSettings) -> Result<Server, ConnectError> {
    let address = Address::parse(&settings.url)?;
    let root = match &address.root_certificate {
        None => None,
        Some(path) => {
            let pem = tokio::fs::read(path).await;
            Some(Certificate::from_pem(pem.map_err(|error| ConnectError::RootCertificate(error.to_string()))?))
        }
    };
    Ok(Server { address: Arc::new(address), root })
}

#[async_trait]
impl Warehouse for SparkWarehouse {
    fn name(&self) -> &str {
        NAME
    }

    async fn execute(&self, statement: Statement<'_>, timeout: Duration) -> Result<ResultSet, WarehouseError> {
        self.pool.run(query(statement)?, timeout).await
    }

    async fn stream(&self, statement: Statement<'_>, timeout: Duration) -> Result<BatchStream, WarehouseError> {
        self.pool.stream(query(statement)?, timeout).await
    }

    async fn describe(&self, statement: Statement<'_>) -> Result<SchemaRef, WarehouseError> {
        self.pool.describe(query(statement)?, PROBE_TIMEOUT).await
    }

    async fn table(&self, name: &[&str]) -> Result<Option<CatalogTable>, WarehouseError> {
        catalog::table(&self.pool, name).await
    }

    async fn built(&self) -> Result<Vec<BuiltRelation>, WarehouseError> {
        built::relations(&self.pool).await
    }

    async fn ping(&self) -> Result<(), WarehouseError> {
        self.pool.ping(PROBE_TIMEOUT).await
    }

    fn connections(&self) -> Option<Connections> {
        Some(self.pool.connections())
    }
}
