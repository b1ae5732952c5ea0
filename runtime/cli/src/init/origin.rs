//! Where a project begins: a DuckDB file, a folder of files, a PostgreSQL database.
//!
//! In: what `--from` names. Out: an open warehouse, and the settings by which the project will find it
//! again. What lies outside the project is copied into it, since a project reads nothing outside itself;
//! what is too large for that is refused with what to do.

mod files;
mod server;

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrane_app::ports::warehouse::Warehouse;
use terrane_warehouse::{DuckDb, DuckDbSettings, FileAccess};

use super::project::WarehouseSettings;
use crate::authoring::folder::NewFolder;
use crate::failure::Failure;

/// Copies go there.
const DATA: &str = "data";
const MAX_COPIED_BYTES: u64 = 1 << 30;
const CONNECTIONS: usize = 2;

/// What `--from` names.
#[derive(Debug)]
pub enum Origin {
    DuckDb(PathBuf),
    Files(PathBuf),
    /// Holds a password, maybe.
    Postgres(String),
}

/// An origin that answers.
pub struct Opened {
    pub warehouse: Arc<dyn Warehouse>,
    pub settings: WarehouseSettings,
    /// Tables are views, so views are taken.
    pub has_views_only: bool,
    /// Variables that the project file asks for, each with what it holds.
    pub variables: Vec<(&'static str, String)>,
    pub notes: Vec<String>,
    /// Copied once everything else is well.
    copies: Vec<(PathBuf, String)>,
    state: Option<PathBuf>,
}

impl Origin {
    /// # Errors
    /// It is nothing that a project begins with.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Origin::Postgres(text.to_owned()));
        }
        if let Some((scheme, _)) = text.split_once("://") {
            return Err(Failure::new(format!("projects can't be begun from `{scheme}://`"))
                .hint("name a DuckDB file, a folder of Parquet or CSV files, or postgres://user@host:5432/database"));
        }
        let path = Path::new(text).canonicalize().map_err(|error| {
            Failure::new(format!("{text}: {error}")).hint("name a file or folder that is there, or a postgres:// URL")
        })?;
        if path.is_dir() {
            return Ok(Origin::Files(path));
        }
        // The file's own mark, after a checksum; its name may be anything.
        let mut head = [0; 16];
        if !path.is_file() {
            return Err(Failure::new(format!("{text} is neither a file nor a folder")));
        }
        let read = fs::File::open(&path).and_then(|mut file| file.read(&mut head));
        match read {
            Ok(read) if read >= 12 && &head[8..12] == b"DUCK" => Ok(Origin::DuckDb(path)),
            Ok(_) if head.starts_with(b"SQLite format 3") => Err(Failure::new(format!("{text} is a SQLite database"))
                .hint("`terrane init` without --from makes a project; set `warehouse: {type: sqlite, path: …}` in it")),
            Ok(_) => Err(Failure::new(format!("{text} is no DuckDB database"))
                .hint("of Parquet and CSV files name the folder that they are in")),
            Err(error) => Err(Failure::new(format!("{text} can't be read: {error}"))),
        }
    }

    /// Opens the warehouse as it is; nothing of it is changed.
    ///
    /// # Errors
    /// It can't be reached or read, or is too large to be copied.
    pub async fn open(&self, folder: &NewFolder, tables: &[String]) -> Result<Opened, Failure> {
        match self {
            Origin::DuckDb(path) => duckdb(path, folder).await,
            Origin::Files(path) => files::open(path, folder, tables).await,
            Origin::Postgres(url) => server::open(url).await,
        }
    }
}

impl Opened {
    /// Lets go of the warehouse and copies into the project what lies outside of it.
    ///
    /// # Errors
    /// A file can't be copied.
    pub fn close(self, folder: &NewFolder) -> Result<(), Failure> {
        for (from, to) in &self.copies {
            folder.copy(from, to)?;
        }
        Ok(())
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // Where an engine would have put what doesn't fit into memory; a folder that is in use is kept.
        if let Some(state) = &self.state {
            let _ = fs::remove_dir(state.join("spill"));
            let _ = fs::remove_dir(state);
        }
    }
}

async fn duckdb(path: &Path, folder: &NewFolder) -> Result<Opened, Failure> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let inside = inside(path, folder);
    let mut copies = Vec::new();
    let kept_at = match inside {
        Some(relative) => relative,
        None => {
            let log = path.with_file_name(format!("{name}.wal"));
            if log.exists() {
                let message = format!("{} is there: {name} is in use, or was not closed", log.display());
                return Err(Failure::new(message).hint("close the program that writes it, or run CHECKPOINT in it"));
            }
            copies.push((path.to_owned(), format!("{DATA}/{name}")));
            fits(&copies, folder)?;
            format!("{DATA}/{name}")
        }
    };
    let (warehouse, state) = open_duckdb(Some(path.to_owned()), folder.staging(), Vec::new()).await?;
    let settings = WarehouseSettings { kind: "duckdb".to_owned(), path: Some(kept_at), ..WarehouseSettings::default() };
    Ok(Opened { warehouse, settings, has_views_only: false, variables: Vec::new(), notes: Vec::new(), copies, state })
}

/// A path inside the new project, relative to it, with forward slashes.
fn inside(path: &Path, folder: &NewFolder) -> Option<String> {
    let relative = path.strip_prefix(folder.target()).ok()?;
    let parts: Vec<&str> = relative.components().map(|part| part.as_os_str().to_str()).collect::<Option<_>>()?;
    (!parts.is_empty()).then(|| parts.join("/"))
}

fn fits(copies: &[(PathBuf, String)], folder: &NewFolder) -> Result<(), Failure> {
    let bytes: u64 = copies.iter().filter_map(|(from, _)| fs::metadata(from).ok()).map(|found| found.len()).sum();
    if bytes <= MAX_COPIED_BYTES {
        return Ok(());
    }
    let data = folder.target().join(DATA);
    let message = format!("{} MiB would have to be copied: a project reads nothing outside of its folder", bytes >> 20);
    Err(Failure::new(message).hint(format!(
        "move the data to {0} yourself (mkdir -p {0}), then name them there with --from",
        data.display()
    )))
}

/// Opens the engine over a project's folder, and tells which folder it made there, if it did.
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
    };
    let opened = tokio::task::spawn_blocking(move || DuckDb::open(&settings)).await;
    let warehouse = opened.map_err(|error| Failure::new(format!("opening the database broke off: {error}")))?;
    let warehouse = warehouse.map_err(|error| {
        Failure::new(error.to_string()).hint("another process may have the file open, or a newer DuckDB wrote it")
    })?;
    Ok((Arc::new(warehouse), state))
}
