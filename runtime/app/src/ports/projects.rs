//! The port to the files of projects. The files of a folder are read as a whole.

use std::sync::Arc;

use terrane_compiler::diagnostic::Diagnostic;
use terrane_compiler::project::{Inputs, SourceTree};

/// The files of a project at the time when they were read.
#[derive(Debug, Clone)]
pub struct ProjectTexts {
    /// The folder, in the form that callers see.
    pub folder: Arc<str>,
    /// The source text to compile.
    pub source: SourceTree,
    pub inputs: Inputs,
    /// Diagnostics about the files themselves, such as files that cannot be read.
    pub problems: Vec<Diagnostic>,
}

/// The error that a project cannot be read. A folder that the caller may not read counts as missing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no project at `{path}`: {reason}")]
pub struct NoProject {
    pub path: String,
    pub reason: String,
    pub hint: String,
}

/// Reads projects. The calls block, so they belong on a thread that may wait.
pub trait ProjectFiles: Send + Sync {
    /// Reads a project. `path` is relative to the folder of the served project; `None` reads the served project.
    ///
    /// # Errors
    /// [`NoProject`]
    fn read(&self, path: Option<&str>) -> Result<ProjectTexts, NoProject>;
}
