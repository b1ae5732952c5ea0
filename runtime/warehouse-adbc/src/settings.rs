//! The operator's settings, and errors of opening the warehouse.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use terrane_app::ports::warehouse::WarehouseError;

/// The library of a driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DriverPath {
    File(PathBuf),
    /// The name of a library that the system's loader searches for, such as `adbc_driver_postgresql`.
    Name(String),
}

impl fmt::Display for DriverPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DriverPath::File(path) => path.display().fmt(f),
            DriverPath::Name(name) => f.write_str(name),
        }
    }
}

/// The catalog in which tables are looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableCatalog {
    Postgres,
    /// A catalog that this adapter cannot read, so that no table is found.
    Unsupported,
}

/// The operator's settings for a driver and its database.
#[derive(Clone)]
pub struct AdbcSettings {
    /// The name of the dialect, which is also the name of the warehouse in errors.
    pub dialect: String,
    pub catalog: TableCatalog,
    pub driver: DriverPath,
    /// The symbol of the function that initializes the driver; `None` for `AdbcDriverInit`.
    pub entrypoint: Option<String>,
    /// The options of the database. Their values may be secrets. They are never logged and never part of an error.
    pub options: Vec<(String, String)>,
    /// Statements that run on each new connection, before it reads.
    pub session: Vec<String>,
    /// Statements that run at each start, in order, on a separate connection that may write.
    pub init: Vec<String>,
    /// The largest number of statements that run at the same time.
    pub connections: usize,
    /// The time limit of opening a connection.
    pub connect_timeout: Duration,
}

impl fmt::Debug for AdbcSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options: Vec<&str> = self.options.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("AdbcSettings")
            .field("dialect", &self.dialect)
            .field("driver", &self.driver)
            .field("entrypoint", &self.entrypoint)
            .field("options", &options)
            .field("connections", &self.connections)
            .field("connect_timeout", &self.connect_timeout)
            .finish_non_exhaustive()
    }
}

/// The reason why a warehouse could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("the driver {0} does not exist")]
    Missing(String),
    #[error("the driver {driver} cannot be read: {reason}")]
    Unreadable { driver: String, reason: String },
    #[error("the driver {0} is not a shared library")]
    NotALibrary(String),
    #[error("the driver {driver} is for {found}, and this program runs on {expected}")]
    Platform { driver: String, found: String, expected: String },
    #[error("the driver {driver} cannot be loaded: {reason}")]
    Load { driver: String, reason: String },
    #[error("the driver {driver} has no symbol `{symbol}`")]
    Symbol { driver: String, symbol: String },
    #[error("the driver {driver} supports neither version 1.1 nor version 1.0 of ADBC: {reason}")]
    Version { driver: String, reason: String },
    #[error("the driver refused the options: {0}")]
    Options(String),
    #[error("the database refused the credentials: {}", .0.message)]
    Credentials(WarehouseError),
    #[error("the database cannot be reached: {}", .0.message)]
    Connection(WarehouseError),
    #[error("`warehouse.adbc.session[{index}]` failed: {}\n  in: {statement}", .error.message)]
    Session { index: usize, statement: String, error: WarehouseError },
    #[error("`warehouse.init[{index}]` failed: {}\n  in: {statement}", .error.message)]
    Init { index: usize, statement: String, error: WarehouseError },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_options_are_never_shown() {
        let settings = AdbcSettings {
            dialect: "postgres".to_owned(),
            catalog: TableCatalog::Postgres,
            driver: DriverPath::Name("adbc_driver_postgresql".to_owned()),
            entrypoint: None,
            options: vec![("uri".to_owned(), "postgresql://me:hidden@h/db".to_owned())],
            session: Vec::new(),
            init: Vec::new(),
            connections: 1,
            connect_timeout: Duration::from_secs(1),
        };
        let shown = format!("{settings:?}");
        assert!(shown.contains("uri") && !shown.contains("hidden"), "{shown}");
    }
}
