//! Data sources for new projects: a DuckDB file, a folder of files, a PostgreSQL database.
//!
//! In: the value of `--from`. Out: an open warehouse, and the settings with which the project opens it again. Files
//! outside the project are copied into it, since a project reads nothing outside its folder. Files that are too
//! large to be copied are refused with a hint.

mod files;
mod server;

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrane_app::ports::warehouse::Warehouse;
use terrane_authoring::NewFolder;
use terrane_authoring::draft::ViewSelection;
use terrane_authoring::draft::project_file::WarehouseSettings;
use terrane_warehouse::{DuckDb, DuckDbSettings, FileAccess};

use crate::failure::Failure;

/// The folder for copies.
const DATA: &str = "data";
const MAX_COPIED_BYTES: u64 = 1 << 30;
const CONNECTIONS: usize = 2;

/// A data source that `--from` names.
#[derive(Debug)]
pub(crate) enum DataSource {
    DuckDb(PathBuf),
    Files(PathBuf),
    /// A URL, which may contain a password.
    Postgres(String),
}

/// An open data source.
pub(crate) struct OpenSource {
    pub warehouse: Arc<dyn Warehouse>,
    pub settings: WarehouseSettings,
    pub views: ViewSelection,
    /// The environment variables that the project file needs, each with a description.
    pub variables: Vec<(&'static str, String)>,
    pub notes: Vec<String>,
    /// Files to copy after everything else has succeeded.
    copies: Vec<(PathBuf, String)>,
    state: Option<PathBuf>,
}

impl DataSource {
    /// Reads the value of `--from`.
    ///
    /// # Errors
    /// The value names no supported data source.
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(DataSource::Postgres(text.to_owned()));
        }
        if let Some((scheme, _)) = text.split_once("://") {
            return Err(Failure::new(format!("unsupported data source `{scheme}://`"))
                .hint("Name a DuckDB file, a folder of Parquet or CSV files, or postgres://user@host:5432/database."));
        }
        let path = Path::new(text).canonicalize().map_err(|error| {
            Failure::new(format!("{text}: {error}")).hint("Name an existing file or folder, or a postgres:// URL.")
        })?;
        if path.is_dir() {
            return Ok(DataSource::Files(path));
        }
        // A DuckDB file may have any name, so it is recognized by its signature, which follows a checksum.
        let mut head = [0; 16];
        if !path.is_file() {
            return Err(Failure::new(format!("{text} is neither a file nor a folder")));
        }
        let read = fs::File::open(&path).and_then(|mut file| file.read(&mut head));
        match read {
            Ok(read) if read >= 12 && &head[8..12] == b"DUCK" => Ok(DataSource::DuckDb(path)),
            Ok(_) if head.starts_with(b"SQLite format 3") => Err(Failure::new(format!("{text} is a SQLite database"))
                .hint("Run `terrane init` without --from and set `warehouse: {type: sqlite, path: …}`.")),
            Ok(_) => Err(Failure::new(format!("{text} is not a DuckDB database"))
                .hint("For Parquet and CSV files, name the folder that contains them.")),
            Err(error) => Err(Failure::new(format!("could not read {text}: {error}"))),
        }
    }

    /// Opens the data source for reading.
    ///
    /// # Errors
    /// The data source cannot be reached or read, or is too large to be copied.
    pub(crate) async fn open(&self, folder: &NewFolder, tables: &[String]) -> Result<OpenSource, Failure> {
        match self {
            DataSource::DuckDb(path) => duckdb(path, folder).await,
            DataSource::Files(path) => files::open(path, folder, tables).await,
            DataSource::Postgres(url) => server::open(url).await,
        }
    }
}

impl OpenSource {
    /// Closes the warehouse and copies its files into the project.
    ///
    /// # Errors
    /// A file cannot be copied.
    pub(crate) fn close(self, folder: &NewFolder) -> Result<(), Failure> {
        for (from, to) in &self.copies {
            folder.copy(from, to)?;
        }
        Ok(())
    }
}

impl Drop for OpenSource {
    fn drop(&mut self) {
        // The engine spills to these folders. A folder in use is not empty, so `remove_dir` leaves it.
        if let Some(state) = &self.state {
            let _ = fs::remove_dir(state.join("spill"));
            let _ = fs::remove_dir(state);
        }
    }
}

async fn duckdb(path: &Path, folder: &NewFolder) -> Result<OpenSource, Failure> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let relative = path_inside(path, folder);
    let mut copies = Vec::new();
    let project_path = match relative {
        Some(relative) => relative,
        None => {
            let log = path.with_file_name(format!("{name}.wal"));
            if log.exists() {
                let message = format!("{} exists: {name} is in use, or was not closed", log.display());
                return Err(Failure::new(message).hint("Close the program that writes it, or run CHECKPOINT in it."));
            }
            copies.push((path.to_owned(), format!("{DATA}/{name}")));
            check_size(&copies, folder)?;
            format!("{DATA}/{name}")
        }
    };
    let (warehouse, state) = open_duckdb(Some(path.to_owned()), folder.staging(), Vec::new()).await?;
    let settings =
        WarehouseSettings { kind: "duckdb".to_owned(), path: Some(project_path), ..WarehouseSettings::default() };
    Ok(OpenSource {
        warehouse,
        settings,
        views: ViewSelection::Named,
        variables: Vec::new(),
        notes: Vec::new(),
        copies,
        state,
    })
}

/// Returns the path relative to the new project, with forward slashes, or `None` for a path outside it.
fn path_inside(path: &Path, folder: &NewFolder) -> Option<String> {
    let relative = path.strip_prefix(folder.target()).ok()?;
    let parts: Vec<&str> = relative.components().map(|part| part.as_os_str().to_str()).collect::<Option<_>>()?;
    (!parts.is_empty()).then(|| parts.join("/"))
}

fn check_size(copies: &[(PathBuf, String)], folder: &NewFolder) -> Result<(), Failure> {
    let bytes: u64 = copies.iter().filter_map(|(from, _)| fs::metadata(from).ok()).map(|found| found.len()).sum();
    if bytes <= MAX_COPIED_BYTES {
        return Ok(());
    }
    let data = folder.target().join(DATA);
    let message = format!("{} MiB would have to be copied, since a project reads only its own folder", bytes >> 20);
    Err(Failure::new(message)
        .hint(format!("Move the data to {0} (mkdir -p {0}), then name it there with --from.", data.display())))
}

/// Opens DuckDB over a project's folder. Returns the warehouse, and the state folder if the project had none before.
async fn open_duckdb(
    path: Option<PathBuf>,
    project: &Path,
    init: Vec<String>,
) -> Result<(Arc<dyn Warehouse>, Option<PathBuf>), Failure> {
    let state = project.join(".terrane");
    let state = (!state.exists()).then_some(state);
    let settings = DuckDbSettings {
        path,
        project: project.to_owned(),
        init,
        connections: CONNECTIONS,
        memory_limit: None,
        threads: None,
        file_access: FileAccess::Project,
        is_written: false,
        rollups: None,
    };
    let opened = tokio::task::spawn_blocking(move || DuckDb::open(&settings)).await;
    let warehouse = opened.map_err(|error| Failure::new(format!("opening the database failed: {error}")))?;
    let warehouse = warehouse.map_err(|error| {
        let hint = error.hint().unwrap_or_else(|| "Check whether another process has the file open.".to_owned());
        Failure::new(error.to_string()).hint(hint)
    })?;
    Ok((Arc::new(warehouse), state))
}
