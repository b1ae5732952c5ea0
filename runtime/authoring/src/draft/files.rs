//! Finds data files in a folder and writes the views that make them tables.
//!
//! In: a folder and a DuckDB warehouse that can read it. Out: data files, and one `CREATE VIEW` statement for each.
//! Not here: subfolders, which may be partitions, and copying files (cli).

use std::fs;
use std::path::{Path, PathBuf};

use terrane_app::ports::warehouse::Warehouse;
use terrane_terminal::plural;

use super::catalog::{count, rows};
use super::csv_text::{self, CsvText};
use crate::names::{Taken, identifier, quoted, snake_or};
use crate::{AuthoringError, PROJECT_FILE};

/// The schema of the views.
pub const FILES_SCHEMA: &str = "raw";
const MAX_FILES: usize = 300;
/// The number of columns that a note names.
const MAX_NAMES: usize = 5;

/// A file that becomes a table.
#[derive(Debug)]
pub struct DataFile {
    pub path: PathBuf,
    /// The path inside the project. The caller sets it.
    pub project_path: String,
    view: String,
    format: FileFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileFormat {
    Parquet,
    Csv,
}

impl DataFile {
    fn reader(&self, options: &str) -> String {
        let function = match self.format {
            FileFormat::Parquet => "read_parquet",
            FileFormat::Csv => "read_csv",
        };
        format!("{function}('{}'{options})", self.project_path.replace('\'', "''"))
    }
}

/// Returns the data files of a folder, and notes about entries that are left out. `tables` selects files by the names
/// of their views; empty selects all.
///
/// # Errors
/// The folder cannot be read, or it contains no selected data file or too many.
pub fn list(folder: &Path, tables: &[String]) -> Result<(Vec<DataFile>, Vec<String>), AuthoringError> {
    let unreadable =
        |error: std::io::Error| AuthoringError::new(format!("could not read {}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = Vec::new();
    let (mut folders, mut patterns) = (0, Vec::new());
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let original = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = original.to_lowercase();
        if name.starts_with('.') {
            continue;
        }
        if path.is_dir() {
            folders += 1;
        } else if stem(&name).is_some() && path.is_file() {
            // DuckDB expands a name with one of these characters as a pattern.
            let is_pattern = name.contains(['*', '?', '[', '{']);
            if is_pattern { patterns.push(original) } else { paths.push(path) }
        }
    }
    paths.sort();
    let mut taken = Taken::default();
    let (mut files, mut found) = (Vec::new(), Vec::new());
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(stem) = stem(&name.to_lowercase()).and_then(|stem| name.get(..stem.len())) else { continue };
        let view = taken.take(&snake_or(stem, || format!("table_{}", files.len() + 1)));
        found.push(view.clone());
        let is_selected = tables.is_empty() || tables.iter().any(|table| unqualified(table) == view);
        if is_selected {
            let is_parquet = name.to_lowercase().ends_with(".parquet");
            let format = if is_parquet { FileFormat::Parquet } else { FileFormat::Csv };
            files.push(DataFile { path, view, format, project_path: String::new() });
        }
    }
    let missing: Vec<&str> = tables.iter().map(|table| &**table).filter(|table| !is_one_of(&found, table)).collect();
    if files.is_empty() || !missing.is_empty() {
        if found.is_empty() {
            return Err(AuthoringError::new(format!("{} contains no Parquet, CSV or TSV file", folder.display()))
                .hint("Name the folder that contains the files. Subfolders are not read."));
        }
        let message = format!("{} has no table `{}`", folder.display(), missing.join("`, `"));
        return Err(AuthoringError::new(message).hint(format!("Its tables: {}.", found.join(", "))));
    }
    if files.len() > MAX_FILES {
        let message = format!("{} exceed the limit of {MAX_FILES}", plural(files.len(), "file"));
        return Err(AuthoringError::new(message).hint("Select some of them: --tables a,b,c."));
    }
    let mut notes: Vec<String> =
        patterns.iter().map(|name| format!("{name} is left out: its name is a file pattern")).collect();
    if folders > 0 {
        let verb = if folders == 1 { "was" } else { "were" };
        notes.push(format!("{} {verb} not read", plural(folders, "subfolder")));
    }
    Ok((files, notes))
}

/// Returns the name of a table without the schema of the views.
fn unqualified(table: &str) -> &str {
    table.strip_prefix(FILES_SCHEMA).and_then(|name| name.strip_prefix('.')).unwrap_or(table)
}

fn is_one_of(views: &[String], table: &str) -> bool {
    views.iter().any(|view| *view == unqualified(table))
}

/// Returns the name of a data file without its extension.
fn stem(name: &str) -> Option<&str> {
    let extensions = [".parquet", ".csv", ".tsv", ".csv.gz", ".tsv.gz", ".csv.zst"];
    extensions.iter().find_map(|extension| name.strip_suffix(extension)).filter(|stem| !stem.is_empty())
}

/// The view over a file.
#[derive(Debug)]
pub struct FileView {
    /// The statement that creates the view.
    pub statement: String,
    /// Facts about the file that a person should know.
    pub notes: Vec<String>,
}

/// Returns the view over a file.
///
/// DuckDB guesses the types of a CSV file from its first rows. The guessed types are compared with the types of all
/// rows, because one string in the last row of a numeric column would break every query.
///
/// # Errors
/// Returns the reason why the file cannot be a table.
pub async fn view(probe: &dyn Warehouse, file: &DataFile) -> Result<FileView, String> {
    let text = csv_text(file)?;
    let guessed = types(probe, &file.reader("")).await?;
    let mut notes = Vec::new();
    if let Some(text) = &text {
        notes.extend(check_header(text, &guessed)?);
    }
    let mut options = String::new();
    if file.format == FileFormat::Csv {
        let exact = types(probe, &file.reader(", sample_size = -1")).await?;
        let corrected: Vec<String> = exact
            .iter()
            .filter(|column| !guessed.contains(column))
            .map(|(name, ty)| format!("'{}': '{}'", name.replace('\'', "''"), ty.replace('\'', "''")))
            .collect();
        if !corrected.is_empty() {
            options = format!(", types = {{{}}}", corrected.join(", "));
        }
        notes.extend(ambiguous_dates(probe, file, &exact).await);
    }
    let name = format!("{FILES_SCHEMA}.{}", identifier(&file.view));
    let statement = format!("CREATE OR REPLACE VIEW {name} AS SELECT * FROM {}", file.reader(&options));
    Ok(FileView { statement, notes })
}

/// Reads the text of a CSV file that is not compressed.
///
/// # Errors
/// The file is empty or not UTF-8.
fn csv_text(file: &DataFile) -> Result<Option<CsvText>, String> {
    let name = file.path.file_name().unwrap_or_default().to_string_lossy();
    let is_plain =
        file.path.extension().is_some_and(|end| end.eq_ignore_ascii_case("csv") || end.eq_ignore_ascii_case("tsv"));
    if !is_plain {
        return Ok(None);
    }
    let text = csv_text::read(&file.path).map_err(|error| error.to_string())?;
    if text.is_empty {
        return Err("it is empty".to_owned());
    }
    match text.not_utf8 {
        None => Ok(Some(text)),
        Some(line) => Err(format!(
            "line {line} is not UTF-8; convert the file, as in `iconv -f WINDOWS-1252 -t UTF-8 {name} > new.csv`"
        )),
    }
}

/// Compares the first line of a file with the columns that the engine reads. Returns a note if the file has no header,
/// or if the engine skips the first line.
///
/// # Errors
/// The first line has several values, and the engine reads another number of columns.
fn check_header(text: &CsvText, columns: &[(String, String)]) -> Result<Option<String>, String> {
    if let Some((line, values)) = text.ragged.filter(|_| columns.len() != text.header) {
        let fault = format!("line {line} has {}, and the first line {}", plural(values, "value"), text.header);
        // A single value may be a title above the header, which the engine skips.
        if text.header > 1 {
            return Err(format!("{fault}; correct the file"));
        }
        let names: Vec<String> = columns.iter().map(|(name, _)| format!("`{name}`")).take(MAX_NAMES).collect();
        let names = names.join(", ");
        return Ok(Some(format!(
            "{fault}: its columns are {names}; correct the file if the first line has their names"
        )));
    }
    let is_numbered = |(at, (name, _)): (usize, &(String, String))| *name == format!("column{at}");
    let is_without = columns.iter().enumerate().all(is_numbered);
    Ok(is_without.then(|| {
        let last = columns.len().saturating_sub(1);
        let names = if last == 0 {
            "its column is `column0`".to_owned()
        } else {
            format!("its columns are `column0` to `column{last}`")
        };
        format!("the file has no header: {names}; add a first line with names")
    }))
}

/// Returns a note for each column of dates that can be read with the day first and with the month first.
async fn ambiguous_dates(probe: &dyn Warehouse, file: &DataFile, columns: &[(String, String)]) -> Vec<String> {
    let sniffed = format!("SELECT \"DateFormat\" FROM sniff_csv('{}')", file.project_path.replace('\'', "''"));
    let format = rows(probe, &sniffed).await.ok().and_then(|rows| rows.into_iter().next()?.into_iter().next()?);
    let Some(format) = format else { return Vec::new() };
    let order = match format.get(..2) {
        Some("%d") => "day, month",
        Some("%m") => "month, day",
        _ => return Vec::new(),
    };
    let other = format.replace("%d", "%1").replace("%m", "%d").replace("%1", "%m");
    let example = format.replace("%d", "03").replace("%m", "04").replace("%Y", "2024").replace("%y", "24");
    let mut notes = Vec::new();
    for (name, _) in columns.iter().filter(|(_, ty)| ty == "DATE") {
        let column = quoted(name);
        let relation = file.reader("");
        let statement = format!("SELECT count(*) FROM {relation} WHERE day({column}) > 12 OR month({column}) > 12");
        let certain = rows(probe, &statement).await.ok().and_then(|rows| rows.first().map(|row| count(row, 0)));
        if certain == Some(0) {
            notes.push(format!(
                "`{name}` has dates such as {example} in the order {order}, and no value shows whether this is right; \
                 if it is not, add `dateformat = '{other}'` to `read_csv` in {PROJECT_FILE}"
            ));
        }
    }
    notes
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
    fn extensions_are_not_part_of_a_table_name() {
        assert_eq!(stem("orders.csv.gz"), Some("orders"));
        assert_eq!(stem("a.b.parquet"), Some("a.b"));
        assert_eq!(stem("notes.txt"), None);
    }

    #[test]
    fn files_are_listed_without_patterns_and_subfolders() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["Orders.CSV", "a[1].csv", ".hidden.csv", "notes.txt"] {
            fs::write(folder.path().join(name), "a\n1\n").unwrap();
        }
        fs::create_dir(folder.path().join("parts")).unwrap();
        let (files, notes) = list(folder.path(), &[]).unwrap();
        assert_eq!(files.iter().map(|file| file.view.as_str()).collect::<Vec<_>>(), ["orders"]);
        assert_eq!(notes, ["a[1].csv is left out: its name is a file pattern", "1 subfolder was not read"]);
        assert!(list(folder.path(), &["other".to_owned()]).is_err());
    }
}
