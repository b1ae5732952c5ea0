//! Opening: the operator's settings and `init`, then the lock.
//!
//! The order is what matters. File paths in `init` are the project's, so the search path comes first;
//! the allowed folders can't be set once external access is off; `lock_configuration` is last, and
//! after it no statement changes a setting, loads an extension or attaches a file. Where no SQL of the
//! project or of the database reads files, no folder is allowed: DuckDB takes an unknown table for a file.
//!
//! DuckDB 1.5 holds a relative path against the allowed folders as the process's working directory
//! completes it, not as its search path does: a view over `read_parquet('data/x.parquet')` would stop
//! to work at the lock. So opening makes the project folder the working directory. A program that
//! serves one project can afford that; its other paths are absolute.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use duckdb::{AccessMode, Config, Connection};

use terrane_compiler::project::may_read_files;

use super::error::OpenError;
use crate::built::quoted as quoted_name;
use crate::file_versions::FileVersions;
use crate::rollups::RollupPlace;

/// The operator's settings.
#[derive(Debug, Clone)]
pub struct DuckDbSettings {
    /// `None`: in memory.
    pub path: Option<PathBuf>,
    /// Absolute. What `init` and the project's SQL may read lies in here.
    pub project: PathBuf,
    /// Run at each start, in order.
    pub init: Vec<String>,
    /// The most statements that run at once.
    pub connections: usize,
    /// Like `4GB`; `None` leaves DuckDB's own: 80 % of the machine.
    pub memory_limit: Option<String>,
    /// `None`: one for each core.
    pub threads: Option<u32>,
    pub file_access: FileAccess,
    /// A file is opened for writing also where `init` is empty.
    pub is_written: bool,
    /// The file with the tables of pre-aggregations, which this process alone has open. `None`: there are none.
    pub rollups: Option<RollupStore>,
}

/// A database of its own for the tables of pre-aggregations.
#[derive(Debug, Clone)]
pub struct RollupStore {
    pub path: PathBuf,
    /// Its schema is the name by which the database is attached.
    pub place: RollupPlace,
}

/// Which files SQL may read once the engine is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAccess {
    /// As `Project`, if a view or a macro of the database reads files; else as `None`.
    Views,
    /// The data folders and data files of the project.
    Project,
    /// No files.
    None,
}

/// Texts that the engine runs whenever a statement names them.
const STORED_TEXTS: &str = "\
    SELECT sql FROM duckdb_views() WHERE NOT internal \
    UNION ALL SELECT macro_definition FROM duckdb_functions() \
    WHERE NOT internal AND function_type IN ('macro', 'table_macro')";

/// Folders of a project that hold definitions, components and expectations, never data.
const NOT_DATA: &[&str] = &["sources", "models", "cubes", "metrics", "policies", "plugins", "tests"];

/// Files beside the project file that a warehouse may read; the project file itself is none of them.
const DATA_EXTENSIONS: &[&str] =
    &["parquet", "csv", "tsv", "json", "jsonl", "ndjson", "gz", "zst", "arrow", "ipc", "duckdb", "db"];

/// Opens the database, runs `init` and locks the engine. Returns the files that statements can read; `None` if they
/// can read other data too.
pub(super) fn open(settings: &DuckDbSettings) -> Result<(Connection, Option<FileVersions>), OpenError> {
    let folder = |error: io::Error| OpenError::Folder { path: settings.project.clone(), message: error.to_string() };
    env::set_current_dir(&settings.project).map_err(folder)?;
    let connection = connect(settings)?;
    let project = quoted(&settings.project.to_string_lossy());
    set(&connection, "TimeZone", "'UTC'")?;
    set(&connection, "file_search_path", &project)?;
    set(&connection, "temp_directory", &quoted(&spill_folder(&settings.project).to_string_lossy()))?;
    for (index, statement) in settings.init.iter().enumerate() {
        connection.execute_batch(statement).map_err(|error| OpenError::Init {
            index,
            statement: statement.trim().to_owned(),
            message: error.to_string(),
        })?;
    }
    if let Some(store) = &settings.rollups {
        attach_store(&connection, store)?;
    }
    let reads_files = match settings.file_access {
        FileAccess::Views => stored_texts_read_files(&connection)?,
        FileAccess::Project => true,
        FileAccess::None => false,
    };
    let readable = if reads_files { Some(readable(&settings.project)?) } else { None };
    let store = settings.rollups.as_ref().map(|store| &*store.place.schema);
    let files = attached_files(&connection, store)?.map(|attached| {
        let (folders, files) = readable.clone().unwrap_or_default();
        let versions = FileVersions::of(
            attached.into_iter().chain(files.into_iter().map(PathBuf::from)).collect(),
            folders.into_iter().map(PathBuf::from).collect(),
        );
        if settings.path.is_none() { versions.in_memory() } else { versions }
    });
    lock(&connection, readable)?;
    Ok((connection, files))
}

fn attach_store(connection: &Connection, store: &RollupStore) -> Result<(), OpenError> {
    let shown = store.path.display().to_string();
    let attach = format!("ATTACH {} AS {} (READ_WRITE)", quoted(&shown), quoted_name(&store.place.schema));
    let attached = connection.execute_batch(&attach);
    attached.map_err(|error| OpenError::RollupStore { path: shown, message: error.to_string() })
}

/// Returns the files of all databases but the `store` of pre-aggregations, each with its log of changes; `None` if one
/// is not DuckDB's own.
fn attached_files(connection: &Connection, store: Option<&str>) -> Result<Option<Vec<PathBuf>>, OpenError> {
    let databases = || {
        let others = "SELECT path, type FROM duckdb_databases() WHERE NOT internal AND database_name <> $1";
        let mut statement = connection.prepare(others)?;
        let rows = statement.query_map([store.unwrap_or_default()], |row| {
            Ok((row.get::<_, Option<String>>(0)?, row.get::<_, String>(1)?))
        })?;
        rows.collect::<Result<Vec<_>, duckdb::Error>>()
    };
    let databases = databases().map_err(|error| OpenError::Catalog { message: error.to_string() })?;
    let mut files = Vec::new();
    for (path, kind) in databases {
        if kind != "duckdb" {
            return Ok(None);
        }
        let Some(path) = path else { continue };
        if path.contains("://") {
            return Ok(None);
        }
        files.push(PathBuf::from(format!("{path}.wal")));
        files.push(PathBuf::from(path));
    }
    Ok(Some(files))
}

fn connect(settings: &DuckDbSettings) -> Result<Connection, OpenError> {
    let shown = settings.path.as_deref().map_or(":memory:".to_owned(), |path| path.display().to_string());
    let failed = |error: duckdb::Error| OpenError::Database { path: shown.clone(), message: error.to_string() };
    let mut config = Config::default().enable_autoload_extension(false).map_err(failed)?;
    if let Some(limit) = &settings.memory_limit {
        config = config.max_memory(limit).map_err(failed)?;
    }
    if let Some(threads) = settings.threads {
        config = config.threads(i64::from(threads)).map_err(failed)?;
    }
    match &settings.path {
        None => Connection::open_in_memory_with_flags(config).map_err(failed),
        Some(path) => {
            let mode = if reads_only(settings) { AccessMode::ReadOnly } else { AccessMode::Automatic };
            config = config.access_mode(mode).map_err(failed)?;
            Connection::open_with_flags(path, config).map_err(failed)
        }
    }
}

/// Nothing is written without `init` or builds, and readers don't lock one another out.
pub(super) fn reads_only(settings: &DuckDbSettings) -> bool {
    !settings.is_written && settings.init.is_empty() && settings.path.as_ref().is_some_and(|path| path.exists())
}

/// The folder for data that does not fit into memory: beside the project's state, or the system's folder if the project
/// is not writable.
fn spill_folder(project: &Path) -> PathBuf {
    let state = project.join(".terrane");
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.recursive(true).create(&state) {
        Ok(()) => state.join("spill"),
        Err(_) => env::temp_dir().join("terrane-spill"),
    }
}

/// An unknown definition, such as a view of another version, may read anything.
fn stored_texts_read_files(connection: &Connection) -> Result<bool, OpenError> {
    let texts = || {
        let mut statement = connection.prepare(STORED_TEXTS)?;
        let rows = statement.query_map([], |row| row.get::<_, Option<String>>(0))?;
        rows.collect::<Result<Vec<_>, duckdb::Error>>()
    };
    let texts = texts().map_err(|error| OpenError::Catalog { message: error.to_string() })?;
    Ok(texts.iter().any(|text| text.as_deref().is_none_or(may_read_files)))
}

/// `readable`: the folders and files that SQL may read.
fn lock(connection: &Connection, readable: Option<(Vec<String>, Vec<String>)>) -> Result<(), OpenError> {
    if let Some((folders, files)) = readable {
        set(connection, "allowed_directories", &list(&folders))?;
        set(connection, "allowed_paths", &list(&files))?;
    }
    set(connection, "allow_community_extensions", "false")?;
    set(connection, "enable_external_access", "false")?;
    // In 1.5.6 it takes two different columns of a union for one where a named query is read more than
    // once, and answers wrong numbers; tests/oracle/cases/6e9a67db65e46cbf.json is such a query.
    set(connection, "disabled_optimizers", "'common_subplan'")?;
    // The engine's allocator returns freed memory to the system while other statements run, or none does.
    set(connection, "allocator_background_threads", "true")?;
    set(connection, "lock_configuration", "true")
}

/// The project's folders and files that SQL may read: neither its definitions nor its state.
fn readable(project: &Path) -> Result<(Vec<String>, Vec<String>), OpenError> {
    let failed = |error: std::io::Error| OpenError::Folder { path: project.to_owned(), message: error.to_string() };
    let (mut folders, mut files) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(project).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let (Some(name), Some(text)) = (path.file_name().and_then(|n| n.to_str()), path.to_str()) else { continue };
        let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
        if name.starts_with('.') || NOT_DATA.contains(&name) {
            continue;
        }
        if path.is_dir() {
            folders.push(format!("{text}/"));
        } else if DATA_EXTENSIONS.contains(&extension) {
            files.push(text.to_owned());
        }
    }
    Ok((folders, files))
}

fn set(connection: &Connection, setting: &'static str, value: &str) -> Result<(), OpenError> {
    connection
        .execute_batch(&format!("SET GLOBAL {setting} = {value}"))
        .map_err(|error| OpenError::Setting { setting, message: error.to_string() })
}

fn list(items: &[String]) -> String {
    let items: Vec<String> = items.iter().map(|item| quoted(item)).collect();
    format!("[{}]", items.join(", "))
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
