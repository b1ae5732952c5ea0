//! One engine with its rows, and the settings of a project that uses it.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use tempfile::TempDir;

use super::kind::Kind;
use super::process::Server;
use super::sample::Table;
use super::{Missing, adbc, certificate, mariadb, postgres, spark};

impl Kind {
    /// Returns the tool that the engine needs and this machine lacks; `None` if the engine can run.
    pub fn missing(self) -> Option<Missing> {
        let component = crate::path(&format!(".prepared/components/dialect-{}.wasm", self.warehouse()));
        if !component.is_file() {
            return Some(Missing(format!("the component dialect-{} has not been built", self.warehouse())));
        }
        match self {
            Kind::DuckDb | Kind::Sqlite => None,
            Kind::Postgres => postgres::missing(),
            Kind::PostgresThroughAdbc => postgres::missing().or_else(adbc::missing),
            Kind::MariaDb => mariadb::missing(),
            Kind::Spark => spark::missing(),
        }
    }
}

/// A running engine.
#[derive(Debug)]
pub struct Engine {
    pub kind: Kind,
    /// The server; `None` if the engine runs in the process of the program under test, or was
    /// already running.
    pub server: Option<Server>,
    state: TempDir,
}

impl Engine {
    /// Starts an engine.
    ///
    /// # Errors
    /// The engine's server does not start.
    pub fn start(kind: Kind) -> Result<Self> {
        let server = match kind {
            Kind::DuckDb | Kind::Sqlite => None,
            Kind::Postgres | Kind::PostgresThroughAdbc => Some(postgres::start()?),
            Kind::MariaDb => Some(mariadb::start()?),
            Kind::Spark if spark::running().is_some() => None,
            Kind::Spark => Some(spark::start()?),
        };
        Ok(Engine { kind, server, state: tempfile::tempdir()? })
    }

    /// Starts PostgreSQL with a certificate, or returns the tool that this machine lacks for it.
    ///
    /// # Errors
    /// The server does not start.
    pub fn start_with_certificate() -> Result<Result<Self, Missing>> {
        if let Some(missing) = Kind::Postgres.missing().or_else(certificate::missing) {
            return Ok(Err(missing));
        }
        let server = Some(postgres::start_with_certificate()?);
        Ok(Ok(Engine { kind: Kind::Postgres, server, state: tempfile::tempdir()? }))
    }

    /// Returns the path of a file in the server's folder, such as a certificate.
    pub fn file(&self, name: &str) -> Option<PathBuf> {
        Some(self.server.as_ref()?.folder().join(name))
    }

    /// Returns the environment variables with which a project uses the engine and loads the tables when it starts. The
    /// `further` statements run after the tables are loaded.
    pub fn variables(&self, tables: &[Table], further: &[String]) -> Vec<(String, String)> {
        let mut init = if self.kind == Kind::Spark { spark::own_schema() } else { Vec::new() };
        init.extend(tables.iter().flat_map(|table| table.statements(self.kind)));
        init.extend_from_slice(further);
        let mut variables = vec![
            ("SERVICE_WAREHOUSE__TYPE".to_owned(), self.kind.warehouse().to_owned()),
            ("SERVICE_WAREHOUSE__INIT".to_owned(), serde_json::Value::from(init).to_string()),
            ("SERVICE_STATE__URL".to_owned(), format!("sqlite://{}", self.state_file().display())),
        ];
        match self.kind {
            Kind::PostgresThroughAdbc => variables.extend(self.url().into_iter().flat_map(adbc::variables)),
            _ => variables.extend(self.url().map(|url| ("SERVICE_WAREHOUSE__URL".to_owned(), url))),
        }
        variables
    }

    /// Returns the URL of the engine's server; `None` if the engine has no server.
    pub fn url(&self) -> Option<String> {
        if self.kind == Kind::Spark && self.server.is_none() {
            return spark::running();
        }
        let port = self.server.as_ref()?.port;
        match self.kind {
            Kind::Postgres | Kind::PostgresThroughAdbc => Some(postgres::url(port)),
            Kind::MariaDb => Some(mariadb::url(port)),
            Kind::Spark => Some(spark::url(port)),
            Kind::DuckDb | Kind::Sqlite => None,
        }
    }

    /// Returns whether the engine is Sail instead of Apache Spark.
    pub fn is_sail(&self) -> bool {
        self.kind == Kind::Spark && self.server.is_some()
    }

    /// Creates an empty database on the PostgreSQL server and returns its URL.
    ///
    /// # Errors
    /// The database cannot be created.
    pub fn make_database(&self, name: &str) -> Result<String> {
        let server = self.server.as_ref().context("no server")?;
        postgres::ask(server.port, "createdb", &[name])?;
        Ok(format!("postgres://terrane:secret@127.0.0.1:{}/{name}", server.port))
    }

    /// Returns the result of a statement in a database of a PostgreSQL server, one row per line.
    ///
    /// # Errors
    /// The server refuses the statement.
    pub fn ask(&self, database: &str, statement: &str) -> Result<String> {
        let server = self.server.as_ref().context("no server")?;
        postgres::ask(server.port, "psql", &["-d", database, "-qtA", "-v", "ON_ERROR_STOP=1", "-c", statement])
    }

    fn state_file(&self) -> PathBuf {
        Path::new(self.state.path()).join("state.db")
    }
}
