//! The adapter of the warehouse that the project names.
//!
//! In: `warehouse` of the configuration. Out: an open warehouse, or the problem of a setting at its key. Not here: the
//! adapters themselves.

mod adbc;
mod spark;

use std::sync::Arc;
use std::time::Duration;

use terrane_app::ports::builder::{BuildsNothing, CantBuild, ModelBuilder};
use terrane_app::ports::rollup_tables::{RollupPlace, RollupTables};
use terrane_app::ports::warehouse::Warehouse;
use terrane_compiler::diagnostic::{Code, Diagnostic};
use terrane_compiler::project::{Inputs, RegisteredCube, project_may_read_files};
use terrane_warehouse::{
    ConnectError, DuckDb, DuckDbSettings, FileAccess, OpenError, RollupStore, ServerSettings, SqliteSettings, mysql,
    postgres, sqlite,
};

use super::{WarehouseUse, mark, preaggregations};
use crate::config::{WAREHOUSES, WarehouseConfig, WithPlace};
use crate::failure::Failure;
use crate::project::Project;

/// The default number of statements that a warehouse runs at once.
const CONNECTIONS: usize = 8;
const CONNECT_TIMEOUT_SECONDS: u64 = 5;

/// The hint for unknown warehouse types.
const KNOWN: &str =
    "Write duckdb, postgres, mysql (also for MariaDB), sqlite or spark, or name a driver in `warehouse.adbc`.";

/// Checks that this version connects to warehouses of a type, with or without a driver.
pub(super) fn check_type(kind: &str) -> Result<(), Failure> {
    match WAREHOUSES.contains(&kind) {
        true => Ok(()),
        false => {
            let hint = format!("Write one of {}.", WAREHOUSES.join(", "));
            Err(Failure::new(format!("unknown warehouse type `{kind}`")).hint(hint))
        }
    }
}

/// An open warehouse.
pub(super) struct Opened {
    pub(super) warehouse: Arc<dyn Warehouse>,
    pub(super) builder: Arc<dyn ModelBuilder>,
    /// The tables of pre-aggregations; `None` if they are switched off.
    pub(super) rollups: Option<Arc<dyn RollupTables>>,
}

/// Opens the warehouse and runs its `init`.
pub(super) async fn open(
    project: &Project,
    registered: &[RegisteredCube],
    usage: &WarehouseUse,
    problems: &mut Vec<Diagnostic>,
) -> Option<Opened> {
    match connect(project, registered, usage).await {
        Ok(opened) => Some(opened),
        Err(problem) => {
            problems.push(problem);
            None
        }
    }
}

async fn connect(project: &Project, registered: &[RegisteredCube], usage: &WarehouseUse) -> Result<Opened, Diagnostic> {
    let config = &project.config.warehouse;
    let failed = |error: ConnectError| explain_connect(config, &error);
    // Models cannot be built in MySQL and SQLite, and through ADBC drivers.
    let builds_nothing = || Arc::new(BuildsNothing(CantBuild::Engine { warehouse: config.kind.clone() }));
    if let Some(driver) = &config.adbc {
        refuse_rollups(config, usage)?;
        let warehouse = Arc::new(adbc::connect(project, driver).await?);
        return Ok(Opened { warehouse, builder: builds_nothing(), rollups: None });
    }
    match config.kind.as_str() {
        "duckdb" => duckdb(project, registered, usage).await,
        "postgres" => {
            let settings = server(config)?;
            let warehouse = Arc::new(postgres::connect(&settings).await.map_err(failed)?);
            let builder = Arc::new(postgres::builder(&settings).map_err(failed)?);
            let rollups = usage.place().map(|place| postgres::rollups(&settings, place.clone())).transpose();
            let rollups = rollups.map_err(failed)?.map(|rollups| Arc::new(rollups) as Arc<dyn RollupTables>);
            Ok(Opened { warehouse, builder, rollups: rollups.or(usage.read_tables()) })
        }
        "mysql" => {
            let settings = server(config)?;
            let warehouse = Arc::new(mysql::connect(&settings).await.map_err(failed)?);
            let rollups = usage.place().map(|place| mysql::rollups(&settings, place.clone())).transpose();
            let rollups = rollups.map_err(failed)?.map(|rollups| Arc::new(rollups) as Arc<dyn RollupTables>);
            Ok(Opened { warehouse, builder: builds_nothing(), rollups: rollups.or(usage.read_tables()) })
        }
        "sqlite" => {
            refuse_rollups(config, usage)?;
            let settings =
                SqliteSettings { path: file(project)?, init: init(config), connections: connections(config) };
            let warehouse = Arc::new(sqlite::open(&settings).await.map_err(failed)?);
            Ok(Opened { warehouse, builder: builds_nothing(), rollups: None })
        }
        "spark" => {
            let warehouse = spark::connect(config).await?;
            let builder = Arc::new(warehouse.builder());
            let rollups =
                usage.place().map(|place| Arc::new(warehouse.rollups(place.clone())) as Arc<dyn RollupTables>);
            Ok(Opened { warehouse: Arc::new(warehouse), builder, rollups: rollups.or(usage.read_tables()) })
        }
        other if adbc::TYPES.contains(&other) => {
            let message = format!("a warehouse of type `{other}` needs `warehouse.adbc`");
            Err(refused(config, message, "Name a driver: `adbc: {driver: …, options: {…}}`."))
        }
        other => Err(refused(config, format!("unknown warehouse type `{other}`"), KNOWN)),
    }
}

/// Loads the ADBC driver that the project names, without connecting. Returns `None` if the project names none.
pub(super) fn driver(project: &Project) -> Option<Result<String, Diagnostic>> {
    project.config.warehouse.adbc.as_ref().map(|driver| adbc::describe(project, driver))
}

/// Refuses pre-aggregations in a warehouse that cannot build them.
fn refuse_rollups(config: &WarehouseConfig, usage: &WarehouseUse) -> Result<(), Diagnostic> {
    if usage.place().is_none() {
        return Ok(());
    }
    let message = format!("pre-aggregations cannot be built in a warehouse of type `{}`", config.kind);
    Err(refused(config, message, "Set `pre_aggregations.enabled: false`, or use duckdb, postgres, mysql or spark."))
}

async fn duckdb(project: &Project, registered: &[RegisteredCube], usage: &WarehouseUse) -> Result<Opened, Diagnostic> {
    let config = &project.config.warehouse;
    let store = |place: &RollupPlace| {
        let path = preaggregations::file_of(project)?;
        Ok(RollupStore { path, place: place.clone(), is_written: usage.place().is_some() })
    };
    let settings = DuckDbSettings {
        path: file(project)?,
        project: project.folder.root().to_owned(),
        init: init(config),
        threads: config.threads.map(|n| n as u32),
        memory_limit: config.memory_limit.clone(),
        connections: connections(config),
        file_access: config.file_access.unwrap_or_else(|| needed_access(project, registered)),
        is_written: *usage == WarehouseUse::Build,
        rollups: usage.place().or(usage.read_place()).map(store).transpose()?,
    };
    // Opening runs the operator's SQL, which may take long, so it runs on a thread for blocking work.
    match tokio::task::spawn_blocking(move || DuckDb::open(&settings)).await {
        Ok(Ok(warehouse)) => {
            let (builder, rollups) = (warehouse.builder(), warehouse.rollups());
            Ok(Opened { warehouse: Arc::new(warehouse), builder, rollups })
        }
        Ok(Err(error)) => Err(explain_open(config, &error)),
        Err(error) => {
            Err(Diagnostic::error(Code::NoWarehouse, format!("opening the warehouse was interrupted: {error}")))
        }
    }
}

/// Returns the least file access that the project's SQL, the database's views and macros, and registered cubes need.
fn needed_access(project: &Project, registered: &[RegisteredCube]) -> FileAccess {
    let inputs = Inputs { registered: registered.to_vec(), ..project.inputs.clone() };
    if project_may_read_files(&project.source, &inputs) { FileAccess::Project } else { FileAccess::Views }
}

fn server(config: &WarehouseConfig) -> Result<ServerSettings, Diagnostic> {
    let Some(url) = &config.url else {
        let message = format!("a warehouse of type `{}` needs `warehouse.url`", config.kind);
        return Err(refused(config, message, "Set it in the environment: `SERVICE_WAREHOUSE__URL`."));
    };
    if let Some(path) = &config.path {
        let message = format!("`warehouse.path` is for files, and {} is a server", config.kind);
        let problem = Diagnostic::error(Code::NoWarehouse, message);
        return Err(path.place.mark(problem.hint("Remove `warehouse.path`, and set `warehouse.url` to the database.")));
    }
    Ok(ServerSettings {
        url: url.expose().to_owned(),
        init: init(config),
        connections: connections(config),
        connect_timeout: Duration::from_secs(config.connect_timeout_seconds.unwrap_or(CONNECT_TIMEOUT_SECONDS)),
    })
}

/// Returns the file of an embedded engine; `None` for an in-memory database.
fn file(project: &Project) -> Result<Option<std::path::PathBuf>, Diagnostic> {
    let config = &project.config.warehouse;
    if config.url.is_some() {
        let message = format!("`warehouse.url` is for servers, and {} is a file", config.kind);
        return Err(refused(config, message, "Set `warehouse.path` to the file in the project."));
    }
    match &config.path {
        Some(WithPlace { value, place }) if !matches!(value.as_str(), ":memory:" | "") => {
            project.folder.inside(value).map(Some).map_err(|problem| place.mark(problem))
        }
        _ => Ok(None),
    }
}

/// Returns whether the warehouse is an in-memory DuckDB database, whose data ends with the process.
pub(super) fn is_in_memory(project: &Project) -> bool {
    project.config.warehouse.kind == "duckdb" && matches!(file(project), Ok(None))
}

fn init(config: &WarehouseConfig) -> Vec<String> {
    config.init.iter().map(|statement| statement.value.clone()).collect()
}

/// Returns the number of statements that the warehouse runs at once.
pub(super) fn connections(config: &WarehouseConfig) -> usize {
    config.max_connections.map_or(CONNECTIONS, |n| n as usize)
}

fn refused(config: &WarehouseConfig, message: String, hint: &str) -> Diagnostic {
    mark(config.place.as_ref(), Diagnostic::error(Code::NoWarehouse, message).hint(hint))
}

/// Returns DuckDB's error at the key that causes it.
fn explain_open(config: &WarehouseConfig, error: &OpenError) -> Diagnostic {
    let (place, hint) = match error {
        OpenError::Init { index, .. } => (
            config.init.get(*index).map(|statement| &statement.place),
            "Correct the statement, or the file that it reads. Relative paths begin at the project's folder.",
        ),
        OpenError::RollupStore { .. } => (
            config.place.as_ref(),
            "End the other process that has the file open, or name another file in `pre_aggregations.path`. If the file is damaged, delete it; the server builds the tables again.",
        ),
        OpenError::Database { .. } | OpenError::NewerStorage { .. } => (
            config.path.as_ref().map(|path| &path.place),
            "Check the file of `warehouse.path`. Another process may have it open.",
        ),
        _ => (config.place.as_ref(), "Check the keys of `warehouse`."),
    };
    let hint = error.hint().unwrap_or_else(|| hint.to_owned());
    mark(place, Diagnostic::error(Code::NoWarehouse, error.to_string()).hint(hint))
}

/// Returns the diagnostic of an engine that is reached over a connection.
fn explain_connect(config: &WarehouseConfig, error: &ConnectError) -> Diagnostic {
    let (place, hint) = match error {
        ConnectError::Init { index, .. } => (
            config.init.get(*index).map(|statement| &statement.place),
            "Correct the statement. `init` runs at each start, so it must be repeatable.",
        ),
        ConnectError::Url { .. } => (config.place.as_ref(), "Check `warehouse.url` or SERVICE_WAREHOUSE__URL."),
        ConnectError::Connection(_) => (
            config.path.as_ref().map(|path| &path.place).or(config.place.as_ref()),
            "Check that the database is running, and that its name, the user and the password are correct.",
        ),
    };
    mark(place, Diagnostic::error(Code::NoWarehouse, error.to_string()).hint(hint))
}
