//! Products over engines other than DuckDB.
//!
//! In: the address of a server, and the statements that create its tables. Out: a [`Product`]. Not here: starting the
//! servers.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use terrane_app::cost::Guardrails;
use terrane_app::ports::warehouse::Warehouse;
use terrane_compiler::sql::dialect_profile::DialectProfile;
use terrane_golden_tests::{mysql_profile, postgres_profile, spark_profile, sqlite_profile};
use terrane_warehouse::{ServerSettings, SqliteSettings, mysql, postgres, sqlite};
use terrane_warehouse_spark::SparkSettings;
use tokio::runtime::Runtime;

use super::Product;
use crate::oracle::Settings;

impl Product {
    /// Starts a product over a PostgreSQL server after running `init`, which may write.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses a statement.
    pub fn on_postgres(settings: Settings, url: &str, init: Vec<String>) -> Result<Self> {
        let runtime = runtime()?;
        let warehouse = runtime.block_on(postgres::connect(&server(url, init)))?;
        Product::over(settings, runtime, Arc::new(warehouse), postgres_profile())
    }

    /// Starts a product over a MySQL or MariaDB server after running `init`, which may write.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses a statement.
    pub fn on_mysql(settings: Settings, url: &str, init: Vec<String>) -> Result<Self> {
        let runtime = runtime()?;
        let warehouse = runtime.block_on(mysql::connect(&server(url, init)))?;
        Product::over(settings, runtime, Arc::new(warehouse), mysql_profile())
    }

    /// Starts a product over an SQLite file in the temporary folder of the product, after running `init`.
    ///
    /// # Errors
    /// SQLite refuses a statement.
    pub fn on_sqlite(settings: Settings, init: Vec<String>) -> Result<Self> {
        let (runtime, folder) = (runtime()?, tempfile::tempdir()?);
        let file = SqliteSettings { path: Some(folder.path().join("rows.db")), init, connections: 1 };
        let warehouse = runtime.block_on(sqlite::open(&file))?;
        let product = Product::over(settings, runtime, Arc::new(warehouse), sqlite_profile())?;
        Ok(Product { _folder: folder, ..product })
    }

    /// Starts a product over a server of Spark Connect. Its tables are in the current schema of the session.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub fn on_spark(settings: Settings, url: &str) -> Result<Self> {
        let server = SparkSettings {
            url: url.to_owned(),
            init: Vec::new(),
            // Temporary views belong to one session.
            connections: 1,
            connect_timeout: Duration::from_secs(60),
        };
        let runtime = runtime()?;
        let warehouse = runtime.block_on(terrane_warehouse_spark::connect(&server))?;
        Product::over(settings, runtime, Arc::new(warehouse), spark_profile())
    }

    /// Returns a product over a warehouse that `runtime` has opened.
    pub(super) fn over(
        settings: Settings,
        runtime: Runtime,
        warehouse: Arc<dyn Warehouse>,
        profile: DialectProfile,
    ) -> Result<Self> {
        let (profile, _folder) = (Arc::new(profile), tempfile::tempdir()?);
        Ok(Product { runtime, warehouse, profile, settings, flaw: None, guardrails: Guardrails::default(), _folder })
    }
}

fn runtime() -> Result<Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

fn server(url: &str, init: Vec<String>) -> ServerSettings {
    ServerSettings { url: url.to_owned(), init, connections: 1, connect_timeout: Duration::from_secs(10) }
}
