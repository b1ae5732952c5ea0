//! Opens a database with the operator's settings and `init`, and then locks it.
//!
//! The order of the steps is important. File paths in `init` are relative to the project, so the search path is set
//! first. The allowed folders must be set before external access is turned off. `lock_configuration` is last: after it,
//! no statement can change a setting, load an extension or attach a file. If the SQL of the project and of the database
//! does not read files, no folder is allowed. Otherwise DuckDB would read an unknown table's name as that of a file.
//!
//! DuckDB 1.5 checks a relative path against the allowed folders as if it were relative to the working directory of the
//! process and not to the search path. A view over `read_parquet('data/x.parquet')` would therefore fail after the
//! lock. To prevent this, the project's folder becomes the working directory. That is acceptable for a program that
//! serves one project, and whose other paths are absolute.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs, io, thread};

use duckdb::{AccessMode, Config, Connection};

use terrane_app::ports::rollup_tables::RollupPlace;
use terrane_compiler::project::may_read_files;

use super::error::OpenError;
use super::storage;
use crate::built::quoted as quoted_name;
use crate::file_versions::FileVersions;

/// The operator's settings.
#[derive(Debug, Clone)]
pub struct DuckDbSettings {
    /// The database file. If `None`, the database is in memory.
    pub path: Option<PathBuf>,
    /// The absolute path of the project, which contains the files that `init` and the project's SQL may read.
    pub project: PathBuf,
    /// The statements that run at each start, in order.
    pub init: Vec<String>,
    /// The largest number of statements that run at the same time.
    pub connections: usize,
    /// The memory limit, such as `4GB`. If `None`, DuckDB's default applies, which is 80 % of the machine's memory.
    pub memory_limit: Option<String>,
    /// The number of threads. If `None`, DuckDB uses one for each core.
    pub threads: Option<u32>,
    pub file_access: FileAccess,
    /// True if the file is opened for writing even without `init`.
    pub is_written: bool,
    /// The file with the tables of pre-aggregations. `None` if the project has no pre-aggregations.
    pub rollups: Option<RollupStore>,
}

/// A separate database for the tables of pre-aggregations.
#[derive(Debug, Clone)]
pub struct RollupStore {
    pub path: PathBuf,
    /// The place of the tables. Its schema is the name by which the database is attached.
    pub place: RollupPlace,
    /// True to build tables, for which no other process may have the file open. False to read existing tables; without
    /// the file, and while another process builds tables, the database has none.
    pub is_written: bool,
}

/// An open database.
pub(super) struct Opened {
    pub(super) connection: Connection,
    /// The files that statements can read; `None` if statements can also read other data.
    pub(super) files: Option<FileVersions>,
    /// True if the tables of pre-aggregations can be read.
    pub(super) has_rollups: bool,
}

/// The files that SQL may read after the engine is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAccess {
    /// The same files as for `Project` if a view or a macro of the database reads files, and otherwise none.
    Views,
    /// The data folders and data files of the project.
    Project,
    /// No files.
    None,
}

/// The time for which a builder of tables waits for commands that read them.
const PATIENCE: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(100);

/// Selects the stored definitions that the engine runs when a statement refers to them.
const STORED_TEXTS: &str = "\
    SELECT sql FROM duckdb_views() WHERE NOT internal \
    UNION ALL SELECT macro_definition FROM duckdb_functions() \
    WHERE NOT internal AND function_type IN ('macro', 'table_macro')";

/// Folders of a project that contain definitions, components and expectations, but never data.
const NOT_DATA: &[&str] = &["sources", "models", "cubes", "metrics", "policies", "plugins", "tests"];

/// The extensions of files in the project's folder that a warehouse may read. The project file itself is excluded.
const DATA_EXTENSIONS: &[&str] =
    &["parquet", "csv", "tsv", "json", "jsonl", "ndjson", "gz", "zst", "arrow", "ipc", "duckdb", "db"];

/// Opens the database, runs `init` and locks the engine.
pub(super) fn open(settings: &DuckDbSettings) -> Result<Opened, OpenError> {
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
    let has_rollups = settings.rollups.as_ref().map(|store| attach_store(&connection, store)).transpose()?;
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
    Ok(Opened { connection, files, has_rollups: has_rollups.unwrap_or(false) })
}

/// Attaches the database of pre-aggregations. Returns false if its tables are only read, and cannot be read now.
fn attach_store(connection: &Connection, store: &RollupStore) -> Result<bool, OpenError> {
    let shown = store.path.display().to_string();
    let mode = if store.is_written { "READ_WRITE" } else { "READ_ONLY" };
    let attach = format!("ATTACH {} AS {} ({mode})", quoted(&shown), quoted_name(&store.place.schema));
    let mut patience = if store.is_written { PATIENCE } else { Duration::ZERO };
    loop {
        match connection.execute_batch(&attach) {
            Ok(()) => return Ok(true),
            Err(_) if !patience.is_zero() => {
                thread::sleep(PAUSE);
                patience = patience.saturating_sub(PAUSE);
            }
            Err(_) if !store.is_written => return Ok(false),
            Err(error) => return Err(OpenError::RollupStore { path: shown, message: error.to_string() }),
        }
    }
}

/// Returns the files of all databases, each with its write-ahead log. The database `store` of pre-aggregations is left
/// out. Returns `None` if one of the databases is not a local DuckDB database.
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
            Connection::open_with_flags(path, config).map_err(|error| match storage::newer_version(path) {
                Some(version) => OpenError::NewerStorage { path: shown.clone(), version },
                None => failed(error),
            })
        }
    }
}

/// Returns whether the database is opened read-only. Without `init` and builds, nothing is written. Several processes
/// can open a file read-only at the same time.
pub(super) fn reads_only(settings: &DuckDbSettings) -> bool {
    !settings.is_written && settings.init.is_empty() && settings.path.as_ref().is_some_and(|path| path.exists())
}

/// Returns the folder for data that does not fit into memory. It is in the project's state folder, or in the system's
/// folder for temporary files if the project is not writable.
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

/// Returns whether a stored definition may read files. A definition whose text is unavailable, such as a view of
/// another version, counts as one that may.
fn stored_texts_read_files(connection: &Connection) -> Result<bool, OpenError> {
    let texts = || {
        let mut statement = connection.prepare(STORED_TEXTS)?;
        let rows = statement.query_map([], |row| row.get::<_, Option<String>>(0))?;
        rows.collect::<Result<Vec<_>, duckdb::Error>>()
    };
    let texts = texts().map_err(|error| OpenError::Catalog { message: error.to_string() })?;
    Ok(texts.iter().any(|text| text.as_deref().is_none_or(may_read_files)))
}

/// Locks the engine. `readable` contains the folders and files that SQL may read.
fn lock(connection: &Connection, readable: Option<(Vec<String>, Vec<String>)>) -> Result<(), OpenError> {
    if let Some((folders, files)) = readable {
        set(connection, "allowed_directories", &list(&folders))?;
        set(connection, "allowed_paths", &list(&files))?;
    }
    set(connection, "allow_community_extensions", "false")?;
    set(connection, "enable_external_access", "false")?;
    // In DuckDB 1.5.6, this optimizer can take two different columns of a union for one if a named query is read more
    // than once. The result is then wrong; tests/oracle/cases/6e9a67db65e46cbf.json is such a query.
    set(connection, "disabled_optimizers", "'common_subplan'")?;
    // Background threads of the allocator return freed memory to the system, whether or not statements run.
    set(connection, "allocator_background_threads", "true")?;
    set(connection, "lock_configuration", "true")
}

/// Returns the folders and files of the project that SQL may read. Definitions and the state folder are left out.
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
