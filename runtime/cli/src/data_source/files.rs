//! A folder of Parquet and CSV files, opened as views of an in-memory DuckDB.
//!
//! In: a folder. Out: an open warehouse with one view per file. Files that cannot be read are left out and noted.

use std::fs;
use std::path::{Path, PathBuf};

use terrane_authoring::NewFolder;
use terrane_authoring::draft::ViewSelection;
use terrane_authoring::draft::files::{FILES_SCHEMA, list, view};
use terrane_authoring::draft::project_file::WarehouseSettings;

use super::{DATA, OpenSource, check_size, open_duckdb, path_inside};
use crate::failure::Failure;

/// Opens a folder. `tables` selects files by the names of their views.
pub(super) async fn open(path: &Path, folder: &NewFolder, tables: &[String]) -> Result<OpenSource, Failure> {
    let (mut files, mut notes) = list(path, tables)?;
    let is_inside = path_inside(path, folder).is_some() || path == folder.target();
    let root = if is_inside { folder.target() } else { folder.staging() };
    let mut copies: Vec<(PathBuf, String)> = Vec::new();
    for file in &mut files {
        file.project_path = match path_inside(&file.path, folder) {
            Some(relative) => relative,
            None => {
                let target = format!("{DATA}/{}", file.path.file_name().unwrap_or_default().to_string_lossy());
                copies.push((file.path.clone(), target.clone()));
                target
            }
        };
    }
    check_size(&copies, folder)?;
    for (from, to) in &copies {
        folder.copy(from, to)?;
    }
    let (probe, state) = open_duckdb(None, root, Vec::new()).await?;
    let mut init = vec![format!("CREATE SCHEMA IF NOT EXISTS {FILES_SCHEMA}")];
    let mut views = 0;
    for file in &files {
        match view(&*probe, file).await {
            Ok(view) => {
                init.push(view.statement);
                notes.extend(view.notes.iter().map(|note| format!("{}: {note}", file.project_path)));
                views += 1;
            }
            Err(reason) => {
                notes.push(format!("{} is left out: {reason}", file.project_path));
                let _ = fs::remove_file(folder.staging().join(&file.project_path));
            }
        }
    }
    drop(probe);
    if views == 0 {
        let message = format!("could not read any file of {}\n  {}", path.display(), notes.join("\n  "));
        return Err(Failure::new(message)
            .hint("Check the files. Their names must end in .parquet, .csv, .tsv, .csv.gz, .tsv.gz or .csv.zst."));
    }
    let (warehouse, _) = open_duckdb(None, root, init.clone()).await?;
    let settings = WarehouseSettings {
        kind: "duckdb".to_owned(),
        path: Some(":memory:".to_owned()),
        init,
        ..WarehouseSettings::default()
    };
    Ok(OpenSource {
        warehouse,
        settings,
        views: ViewSelection::All,
        variables: Vec::new(),
        notes,
        copies: Vec::new(),
        state,
    })
}
