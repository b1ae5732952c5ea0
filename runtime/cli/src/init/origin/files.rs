//! A folder of files, each a table.
//!
//! In: a folder. Out: views over its files, as `init` of the project has them. What can't be read is left
//! out and noted. Not here: folders below it, which may be partitions or anything else.

use std::fs;
use std::path::{Path, PathBuf};

use terrane_app::ports::warehouse::Warehouse;

use super::{DATA, Opened, fits, inside, open_duckdb};
use crate::authoring::folder::NewFolder;
use crate::authoring::names::{Taken, identifier, snake_or};
use crate::failure::Failure;
use crate::init::catalog::rows;
use crate::init::project::WarehouseSettings;
use crate::report::plural;

/// Views over files are made in this schema.
const FILES_SCHEMA: &str = "raw";
const MAX_FILES: usize = 300;

/// Files of a folder, each a table.
pub(super) async fn open(path: &Path, folder: &NewFolder, tables: &[String]) -> Result<Opened, Failure> {
    let (mut found, mut notes) = list(path, tables)?;
    let is_inside = inside(path, folder).is_some() || path == folder.target();
    let root = if is_inside { folder.target() } else { folder.staging() };
    let mut copies: Vec<(PathBuf, String)> = Vec::new();
    for file in &mut found {
        file.kept_at = match inside(&file.path, folder) {
            Some(relative) => relative,
            None => {
                let kept_at = format!("{DATA}/{}", file.path.file_name().unwrap_or_default().to_string_lossy());
                copies.push((file.path.clone(), kept_at.clone()));
                kept_at
            }
        };
    }
    fits(&copies, folder)?;
    for (from, to) in &copies {
        folder.copy(from, to)?;
    }
    let (probe, state) = open_duckdb(None, root, Vec::new()).await?;
    let mut init = vec![format!("CREATE SCHEMA IF NOT EXISTS {FILES_SCHEMA}")];
    let mut views = 0;
    for file in &found {
        match view(&*probe, file).await {
            Ok(statement) => {
                init.push(statement);
                views += 1;
            }
            Err(why) => {
                notes.push(format!("{} is left out: {why}", file.kept_at));
                let _ = fs::remove_file(folder.staging().join(&file.kept_at));
            }
        }
    }
    drop(probe);
    if views == 0 {
        let message = format!("no file of {} can be read\n  {}", path.display(), notes.join("\n  "));
        return Err(Failure::new(message).hint("check the files; a name ends in .parquet, .csv, .tsv or .csv.gz"));
    }
    let (warehouse, _) = open_duckdb(None, root, init.clone()).await?;
    let settings = WarehouseSettings {
        kind: "duckdb".to_owned(),
        path: Some(":memory:".to_owned()),
        init,
        ..WarehouseSettings::default()
    };
    Ok(Opened { warehouse, settings, has_views_only: true, variables: Vec::new(), notes, copies: Vec::new(), state })
}

/// A file that becomes a table.
struct DataFile {
    path: PathBuf,
    view: String,
    is_parquet: bool,
    /// In the project.
    kept_at: String,
}

impl DataFile {
    fn reader(&self, options: &str) -> String {
        let function = if self.is_parquet { "read_parquet" } else { "read_csv" };
        format!("{function}('{}'{options})", self.kept_at.replace('\'', "''"))
    }
}

fn list(path: &Path, tables: &[String]) -> Result<(Vec<DataFile>, Vec<String>), Failure> {
    let unread = |error: std::io::Error| Failure::new(format!("{} can't be read: {error}", path.display()));
    let mut paths: Vec<PathBuf> = Vec::new();
    let (mut folders, mut odd) = (0, Vec::new());
    for entry in fs::read_dir(path).map_err(unread)? {
        let path = entry.map_err(unread)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        if name.starts_with('.') {
            continue;
        }
        if path.is_dir() {
            folders += 1;
        } else if stem(&name).is_some() && path.is_file() {
            // The engine would take these for patterns.
            let is_pattern = name.contains(['*', '?', '[', '{']);
            let written = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if is_pattern { odd.push(written) } else { paths.push(path) }
        }
    }
    paths.sort();
    let mut taken = Taken::default();
    let mut files = Vec::new();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(stem) = stem(&name.to_lowercase()).and_then(|stem| name.get(..stem.len())) else { continue };
        let view = taken.take(&snake_or(stem, || format!("table_{}", files.len() + 1)));
        let is_wanted =
            tables.is_empty() || tables.iter().any(|t| *t == view || *t == format!("{FILES_SCHEMA}.{view}"));
        if is_wanted {
            let is_parquet = name.to_lowercase().ends_with(".parquet");
            files.push(DataFile { path, view, is_parquet, kept_at: String::new() });
        }
    }
    if files.is_empty() {
        return Err(Failure::new(format!("{} holds no Parquet or CSV file that is wanted", path.display()))
            .hint("name the folder that the files are in: folders below it are not looked into"));
    }
    if files.len() > MAX_FILES {
        let message = format!("{} are more than the {MAX_FILES} of one project", plural(files.len(), "file"));
        return Err(Failure::new(message).hint("choose: --tables a,b,c"));
    }
    let mut notes: Vec<String> =
        odd.iter().map(|name| format!("{name} is left out: its name reads as a pattern")).collect();
    if folders > 0 {
        notes.push(format!(
            "{} below {} not looked into",
            plural(folders, "folder"),
            if folders == 1 { "was" } else { "were" }
        ));
    }
    Ok((files, notes))
}

/// The name of a data file without its ending.
fn stem(name: &str) -> Option<&str> {
    let endings = [".parquet", ".csv", ".tsv", ".csv.gz", ".tsv.gz", ".csv.zst"];
    endings.iter().find_map(|ending| name.strip_suffix(ending)).filter(|stem| !stem.is_empty())
}

/// The view over a file. What the engine guesses of a CSV's types from its first rows is held against all
/// of them: a code that is a text in the last row only would break every query.
async fn view(probe: &dyn Warehouse, file: &DataFile) -> Result<String, String> {
    let guessed = types(probe, &file.reader("")).await?;
    let mut options = String::new();
    if !file.is_parquet {
        let right = types(probe, &file.reader(", sample_size = -1")).await?;
        let wrong: Vec<String> = right
            .iter()
            .filter(|column| !guessed.contains(column))
            .map(|(name, ty)| format!("'{}': '{}'", name.replace('\'', "''"), ty.replace('\'', "''")))
            .collect();
        if !wrong.is_empty() {
            options = format!(", types = {{{}}}", wrong.join(", "));
        }
    }
    let name = format!("{FILES_SCHEMA}.{}", identifier(&file.view));
    Ok(format!("CREATE OR REPLACE VIEW {name} AS SELECT * FROM {}", file.reader(&options)))
}

async fn types(probe: &dyn Warehouse, relation: &str) -> Result<Vec<(String, String)>, String> {
    let statement = format!("SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM {relation})");
    let rows = rows(probe, &statement).await?;
    let pairs = rows.into_iter().filter_map(|row| match <[Option<String>; 2]>::try_from(row) {
        Ok([Some(name), Some(ty)]) => Some((name, ty)),
        _ => None,
    });
    Ok(pairs.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_without_their_endings() {
        assert_eq!(stem("orders.csv.gz"), Some("orders"));
        assert_eq!(stem("a.b.parquet"), Some("a.b"));
        assert_eq!(stem("notes.txt"), None);
    }
}
