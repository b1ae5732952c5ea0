//! The port to the files of projects: the texts of a folder, which are read as a whole.

use std::sync::Arc;

use terrane_compiler::diagnostic::Diagnostic;
use terrane_compiler::project::{Inputs, SourceTree};

/// The files of a project, as of the time when they were read.
#[derive(Debug, Clone)]
pub struct ProjectTexts {
    /// The folder, as callers see it.
    pub folder: Arc<str>,
    /// The texts to compile.
    pub source: SourceTree,
    pub inputs: Inputs,
    /// Problems of the files themselves: files that cannot be read, and the reasons.
    pub problems: Vec<Diagnostic>,
}

/// The reason why a project cannot be read. A folder that may not be read is reported as missing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no project at `{path}`: {reason}")]
pub struct NoProject {
    pub path: String,
    pub reason: String,
    pub hint: String,
}

/// Reads projects. Blocking: ask it on a thread that may wait.
pub trait ProjectFiles: Send + Sync {
    /// Reads a project; `None` is the served one. A path is relative to its folder.
    ///
    /// # Errors
    /// [`NoProject`]
    fn read(&self, path: Option<&str>) -> Result<ProjectTexts, NoProject>;
}
