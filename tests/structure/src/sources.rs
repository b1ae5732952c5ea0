//! The crates of the workspace and their source files.
//!
//! In: folders below the root of the workspace. Out: paths and texts. Not here: cargo. A folder with a `Cargo.toml`
//! counts as a crate, so the checks run without building anything else.

use std::fs;
use std::path::{Path, PathBuf};

/// The folders of the workspace that contain Rust sources.
pub const FOLDERS: [&str; 6] = ["runtime", "sdk", "plugins", "xtask", "tests", "examples"];

/// A crate of the workspace.
pub struct Crate {
    /// The path of its folder from the root, for example `runtime/app`.
    pub folder: String,
    /// All `.rs` files of the crate in order, including its tests and benches.
    pub files: Vec<PathBuf>,
}

/// Returns the root of the workspace.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

/// Returns all crates below the given folders, ordered by their paths.
pub fn crates(folders: &[&str]) -> Vec<Crate> {
    let mut crates = Vec::new();
    for folder in folders {
        collect_crates(&root().join(folder), &mut crates);
    }
    crates.sort_by(|a, b| a.folder.cmp(&b.folder));
    crates
}

/// Returns all `.rs` files below a folder, in order.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for path in entries(folder) {
        if path.is_dir() {
            files.extend(self::files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// Returns the text of a file.
///
/// # Panics
/// The file cannot be read. A check that skipped it would pass without checking it.
pub fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("reading {}: {error}", file.display()))
}

/// Returns the path relative to the root of the workspace, with `/` on every system.
pub fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).to_string_lossy().replace('\\', "/")
}

/// Returns the entries of a list, without comments and blank lines.
pub fn list(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

/// Fails with all violations, one per line.
///
/// # Panics
/// The list of violations is not empty.
pub fn assert_none(violations: &[String]) {
    assert!(violations.is_empty(), "{} violations:\n  {}", violations.len(), violations.join("\n  "));
}

fn collect_crates(folder: &Path, crates: &mut Vec<Crate>) {
    if folder.join("Cargo.toml").is_file() {
        crates.push(Crate { folder: shown(folder), files: own_files(folder) });
    }
    for path in entries(folder) {
        if path.is_dir() {
            collect_crates(&path, crates);
        }
    }
}

/// Returns the files of a crate, without the files of crates in folders below it.
fn own_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for path in entries(folder) {
        if path.is_dir() && !path.join("Cargo.toml").is_file() {
            files.extend(own_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// Returns the entries of a folder in order, without target folders and hidden files.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = fs::read_dir(folder).unwrap_or_else(|error| panic!("reading {}: {error}", folder.display()));
    let is_source = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        name != "target" && name != "node_modules" && !name.starts_with('.')
    };
    let mut paths: Vec<PathBuf> = read.flatten().map(|entry| entry.path()).filter(is_source).collect();
    paths.sort();
    paths
}
