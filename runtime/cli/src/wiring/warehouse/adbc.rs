//! Opens a database through the ADBC driver that the operator names.
//!
//! In: `warehouse` of the configuration. Out: an open warehouse, or the problem at its key. No problem shows the value
//! of an option, which may be a secret.

use std::path::{Path, PathBuf};
use std::time::Duration;

use terrane_compiler::diagnostic::{Code, Diagnostic};
use terrane_warehouse_adbc::{AdbcSettings, AdbcWarehouse, ConnectError, DriverPath, LoadedDriver, TableCatalog, load};

use super::super::WORKSPACE;
use super::{CONNECT_TIMEOUT_SECONDS, connections, init, mark, refused};
use crate::config::{AdbcConfig, WarehouseConfig};
use crate::project::Project;

/// The types of warehouses that are reached only through a driver.
pub(super) const TYPES: &[&str] =
    &["bigquery", "clickhouse", "databricks", "flightsql", "redshift", "snowflake", "trino"];

/// The beginning of the names of all drivers' libraries.
const PREFIX: &str = "adbc_driver_";

/// The settings of PostgreSQL's sessions, which are those of the PostgreSQL adapter.
const POSTGRES_SESSION: &[&str] = &[
    "SET default_transaction_read_only = on",
    "SET TIME ZONE 'UTC'",
    "SET extra_float_digits = 3",
    "SET standard_conforming_strings = on",
];

/// Loads the driver, runs `init`, and opens the first connection.
pub(super) async fn connect(project: &Project, adbc: &AdbcConfig) -> Result<AdbcWarehouse, Diagnostic> {
    let config = &project.config.warehouse;
    let driver = loaded(project, adbc)?;
    let settings = settings(project, adbc);
    terrane_warehouse_adbc::connect(driver, &settings).await.map_err(|error| explain(config, adbc, &error))
}

/// Loads the driver and describes it.
pub(super) fn describe(project: &Project, adbc: &AdbcConfig) -> Result<String, Diagnostic> {
    let LoadedDriver { path, entrypoint, version, .. } = loaded(project, adbc)?;
    Ok(format!("{path} exports `{entrypoint}` and supports ADBC {version}"))
}

fn loaded(project: &Project, adbc: &AdbcConfig) -> Result<LoadedDriver, Diagnostic> {
    let config = &project.config.warehouse;
    if config.url.is_some() || config.path.is_some() {
        let message = "`warehouse.url` and `warehouse.path` have no effect with `warehouse.adbc`".to_owned();
        return Err(refused(config, message, "Write the address into an option of the driver, such as `uri`."));
    }
    let driver = driver(project.folder.root(), &adbc.driver.value);
    load(&driver, adbc.entrypoint.as_deref()).map_err(|error| explain(config, adbc, &error))
}

fn settings(project: &Project, adbc: &AdbcConfig) -> AdbcSettings {
    let config = &project.config.warehouse;
    let own = adbc.session.as_ref().map(|session| session.iter().map(|statement| statement.value.clone()).collect());
    let usual = || session(&config.kind).iter().map(ToString::to_string).collect();
    AdbcSettings {
        dialect: config.dialect().to_owned(),
        catalog: if config.kind == "postgres" { TableCatalog::Postgres } else { TableCatalog::Unsupported },
        driver: driver(project.folder.root(), &adbc.driver.value),
        entrypoint: adbc.entrypoint.clone(),
        options: adbc.options.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect(),
        session: own.unwrap_or_else(usual),
        init: init(config),
        connections: connections(config),
        connect_timeout: Duration::from_secs(config.connect_timeout_seconds.unwrap_or(CONNECT_TIMEOUT_SECONDS)),
    }
}

/// Returns the statements with which sessions of a type read, in UTC.
fn session(kind: &str) -> &'static [&'static str] {
    match kind {
        "postgres" => POSTGRES_SESSION,
        "redshift" => &["SET timezone TO 'UTC'"],
        "snowflake" => &["ALTER SESSION SET TIMEZONE = 'UTC'"],
        "databricks" | "spark" => &["SET TIME ZONE 'UTC'"],
        _ => &[],
    }
}

/// Returns the library of a driver: a path, or a name such as `postgresql`, which is searched for in the folder
/// `drivers` beside the program, in the folder of `cargo xtask adbc`, and by the system's loader.
fn driver(root: &Path, text: &str) -> DriverPath {
    let text = text.trim();
    let is_path = text.contains(['/', '\\']) || [".so", ".dylib", ".dll"].iter().any(|end| text.ends_with(end));
    if is_path {
        return DriverPath::File(root.join(text));
    }
    let name = if text.starts_with(PREFIX) { text.to_owned() } else { format!("{PREFIX}{text}") };
    let file = format!("{}{name}{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let found = folders().into_iter().map(|folder| folder.join(&file)).find(|file| file.is_file());
    found.map_or(DriverPath::Name(name), DriverPath::File)
}

fn folders() -> Vec<PathBuf> {
    let program = std::env::current_exe().and_then(|path| path.canonicalize()).ok();
    let beside = program.as_deref().and_then(Path::parent).map(|folder| folder.join("drivers"));
    let prepared = WORKSPACE.map(|root| Path::new(root).join(".prepared/adbc"));
    beside.into_iter().chain(prepared.and_then(|folder| folder.canonicalize().ok())).collect()
}

fn explain(config: &WarehouseConfig, adbc: &AdbcConfig, error: &ConnectError) -> Diagnostic {
    let driver = Some(&adbc.driver.place);
    let options = adbc.options_place.as_ref().or(driver);
    let (place, hint) = match error {
        ConnectError::Missing(_) | ConnectError::Unreadable { .. } => {
            (driver, "Check the path in `warehouse.adbc.driver`; relative paths begin at the project's folder.")
        }
        ConnectError::NotALibrary(_) => (driver, "Name the shared library itself, not the package that contains it."),
        ConnectError::Platform { .. } => (driver, "Install the driver for this operating system and processor."),
        ConnectError::Load { .. } => (
            driver,
            "Install the driver, and write the path of its library; in a clone, `cargo xtask adbc NAME` fetches it.",
        ),
        ConnectError::Symbol { .. } => {
            (driver, "Remove `warehouse.adbc.entrypoint`, or write the symbol that the driver's documentation names.")
        }
        ConnectError::Version { .. } => (driver, "Install another version of the driver."),
        ConnectError::Options(_) => (options, "Check `warehouse.adbc.options` against the driver's documentation."),
        ConnectError::Credentials(_) => (options, "Check the user and the secret in `warehouse.adbc.options`."),
        ConnectError::Connection(_) => {
            (options, "Check that the database runs, and its address in `warehouse.adbc.options`.")
        }
        ConnectError::Session { index, .. } => (
            adbc.session.as_ref().and_then(|session| session.get(*index)).map(|statement| &statement.place).or(driver),
            "Set `warehouse.adbc.session` to statements that this database accepts.",
        ),
        ConnectError::Init { index, .. } => (
            config.init.get(*index).map(|statement| &statement.place),
            "Correct the statement. `init` runs at each start, so it must be repeatable.",
        ),
    };
    mark(place, Diagnostic::error(Code::NoWarehouse, error.to_string()).hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_is_relative_to_the_project() {
        for (text, path) in
            [("drivers/x.so", "/project/drivers/x.so"), ("x.so", "/project/x.so"), ("/opt/x.so", "/opt/x.so")]
        {
            assert_eq!(driver(Path::new("/project"), text), DriverPath::File(path.into()), "{text}");
        }
    }

    #[test]
    fn unknown_name_is_left_to_the_loader() {
        for text in ["nowhere", "adbc_driver_nowhere"] {
            assert_eq!(driver(Path::new("/project"), text), DriverPath::Name("adbc_driver_nowhere".to_owned()));
        }
    }
}
