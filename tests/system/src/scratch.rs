//! Projects that are created for one test, and the paths of existing projects.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// The example project.
pub const FLIGHTS: &str = "examples/flights";

/// Returns the path of a file of the repository.
pub fn path(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(relative)
}

/// A project in a temporary folder, which is removed when this value is dropped.
#[derive(Debug)]
pub struct Scratch {
    folder: TempDir,
}

/// The settings of a project for anonymous callers, with a warehouse in memory.
const SETTINGS: &str = "name: scratch\nwarehouse: {type: duckdb, init: [\"CREATE TABLE t AS SELECT 1 AS id\"]}\n\
                        security: {anonymous: {scopes: [read]}}\n";
const CUBE: &str = "cubes:\n  - name: t\n    sql_table: t\n    measures:\n      - {name: count, type: count}\n    \
                    dimensions:\n      - {name: id, type: number, sql: id, primary_key: true}\n";

impl Scratch {
    /// Creates an empty folder.
    pub fn empty() -> Self {
        Scratch { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    /// Creates a small valid project.
    pub fn project() -> Self {
        Scratch::empty().with("service_project.yml", SETTINGS).with("cubes/t.yml", CUBE)
    }

    /// Writes a file and creates its parent folders.
    #[must_use]
    pub fn with(self, name: &str, text: &str) -> Self {
        self.with_bytes(name, text.as_bytes())
    }

    /// Writes a file of bytes; see [`Scratch::with`].
    #[must_use]
    pub fn with_bytes(self, name: &str, bytes: &[u8]) -> Self {
        let file = self.path().join(name);
        fs::create_dir_all(file.parent().expect("a file in a folder")).expect("a folder of the scratch project");
        fs::write(file, bytes).expect("a file of the scratch project");
        self
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}
