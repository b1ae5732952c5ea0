//! Opening a database: configuration, the operator's `init`, the lock.

use std::path::{Path, PathBuf};

use duckdb::{Config, Connection};

/// How a database is opened.
#[derive(Debug, Clone)]
pub struct DuckDbSettings {
    /// `None` is a database in memory.
    pub path: Option<PathBuf>,
    /// Relative file names in SQL are this folder's, and files outside it can't be reached.
    pub project: PathBuf,
    /// SQL run at each start, by the operator's authority.
    pub init: Vec<String>,
    /// `None` leaves the engine's own choice.
    pub threads: Option<u32>,
    /// Like `4GB`; `None` leaves the engine's own choice.
    pub memory_limit: Option<String>,
    /// Statements that run at once.
    pub connections: usize,
}

/// Why a database can't be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("cannot open the DuckDB database {}: {source}", path.display())]
    Database { path: PathBuf, source: duckdb::Error },
    #[error("`warehouse.{setting}` was refused by DuckDB: {source}")]
    Setting { setting: &'static str, source: duckdb::Error },
    #[error("`warehouse.init[{index}]` failed: {source}\n  in: {statement}")]
    Init { index: usize, statement: String, source: duckdb::Error },
    #[error("cannot lock the engine: {source}")]
    Lock { source: duckdb::Error },
}

pub(super) fn open(settings: &DuckDbSettings) -> Result<Connection, OpenError> {
    let mut config = Config::default();
    if let Some(threads) = settings.threads {
        let setting = |source| OpenError::Setting { setting: "threads", source };
        config = config.threads(i64::from(threads)).map_err(setting)?;
    }
    if let Some(limit) = &settings.memory_limit {
        let setting = |source| OpenError::Setting { setting: "memory_limit", source };
        config = config.max_memory(limit).map_err(setting)?;
    }
    let opened = match &settings.path {
        Some(path) => Connection::open_with_flags(path, config),
        None => Connection::open_in_memory_with_flags(config),
    };
    let path = || settings.path.clone().unwrap_or_else(|| PathBuf::from(":memory:"));
    let connection = opened.map_err(|source| OpenError::Database { path: path(), source })?;
    let lock = |source| OpenError::Lock { source };
    let project = literal(&settings.project);
    connection
        .execute_batch(&format!("SET GLOBAL TimeZone = 'UTC'; SET GLOBAL file_search_path = {project};"))
        .map_err(lock)?;
    for (index, statement) in settings.init.iter().enumerate() {
        connection.execute_batch(statement).map_err(|source| OpenError::Init {
            index,
            statement: statement.trim().to_owned(),
            source,
        })?;
    }
    // The order matters: what is allowed is named before everything else is closed, and the lock
    // comes last.
    connection
        .execute_batch(&format!(
            "SET GLOBAL allowed_directories = [{project}];
             SET GLOBAL autoinstall_known_extensions = false;
             SET GLOBAL autoload_known_extensions = false;
             SET GLOBAL allow_community_extensions = false;
             SET GLOBAL enable_external_access = false;
             SET GLOBAL lock_configuration = true;"
        ))
        .map_err(lock)?;
    Ok(connection)
}

/// A setting's value; settings take no parameters.
fn literal(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "''"))
}
