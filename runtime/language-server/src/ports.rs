//! The ports: files and checks that the program provides to the server.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrane_compiler::diagnostic::Diagnostic;
use terrane_compiler::model::Model;
use terrane_compiler::project::schema::Schema;
use terrane_compiler::project::{Definitions, Inputs, SourceTree};

/// Finds projects on disk, and the process of the editor.
pub trait Projects: Send + Sync {
    /// Opens the project whose folder is `folder`; `None` if the folder contains no project file.
    fn open(&self, folder: &Path) -> Option<Box<dyn ProjectFiles>>;

    /// Returns false if no process has this number.
    fn is_process_alive(&self, process: u32) -> bool;
}

/// The files of one project on disk, and the checks of the project that the compiler does not do.
pub trait ProjectFiles {
    /// Returns the absolute path of the project's folder.
    fn root(&self) -> PathBuf;

    /// Reads all YAML and SQL files of the project, including tests, by their relative paths. Also returns the problems
    /// of files that cannot be read.
    fn read_all(&self) -> (SourceTree, Vec<Diagnostic>);

    /// Reads one file; `None` if it does not exist, or is not text.
    fn read(&self, path: &str) -> Option<Arc<str>>;

    /// Returns the inputs of the compiler besides the files. They may depend on the content of the project file.
    fn inputs(&self, tree: &SourceTree) -> Inputs;

    /// Checks the settings in the project file, and the project's tests.
    fn check(&self, tree: &SourceTree, definitions: &Definitions, model: &Model) -> Vec<Diagnostic>;

    /// Returns the schema of the project file, and that of tests.
    fn schemas(&self) -> FileSchemas;
}

/// The schemas of files whose keys the compiler does not define.
#[derive(Debug, Clone, Default)]
pub struct FileSchemas {
    pub project: Schema,
    pub tests: Schema,
}
