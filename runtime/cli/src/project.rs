//! A project as a command meets it: its folder, its texts, its configuration, and what is wrong so far.
//!
//! In: a folder and the environment. Out: a [`Project`]. Nothing is connected to yet (`wiring`).

use std::path::Path;
use std::sync::Arc;

use terrane_compiler::diagnostic::{Code, Diagnostic, Span};
use terrane_compiler::project::{Inputs, SourceTree};

use crate::config::{self, Config, Environment, PROJECT_FILE};
use crate::failure::Failure;
use crate::project_files::ProjectFolder;

/// A project's texts and configuration.
#[derive(Debug)]
pub struct Project {
    pub folder: ProjectFolder,
    pub config: Config,
    /// The texts as they lie in the folder, for people to be shown.
    pub tree: SourceTree,
    /// The texts to compile: the environment may have changed what the project file defines.
    pub source: SourceTree,
    pub inputs: Inputs,
    /// What it was read with, to read it again.
    pub environment: Environment,
    /// Of the configuration and the files; the compiler's own come with the snapshot.
    pub problems: Vec<Diagnostic>,
}

impl Project {
    /// Reads all texts of a project.
    ///
    /// # Errors
    /// There is no project. Whatever is wrong inside one is among its problems.
    pub fn read(path: &Path, environment: &Environment) -> Result<Self, Failure> {
        let folder = ProjectFolder::open(path)?;
        let mut problems = Vec::new();
        // A project file that can't be read is told by `collect`.
        let settings = folder.settings().ok();
        let (config, found) = config::read(settings.as_deref(), environment);
        problems.extend(found);
        let (tree, found) = folder.collect(&config.folders);
        let unread_files = found.iter().filter(|told| told.is_error()).map(place).collect();
        let unread = found.iter().filter(|told| told.code == Code::NotUtf8).filter_map(|told| told.span.as_ref());
        let unread = unread.flat_map(|span| folder.names_in(&span.file)).collect();
        problems.extend(found);
        let mut source = tree.clone();
        if let Some(definitions) = &config.definitions {
            source.files.insert(PROJECT_FILE.into(), definitions.as_str().into());
        }
        let inputs = Inputs {
            warehouse: Arc::from(&*config.warehouse.kind),
            env: environment.for_projects(),
            init: config.warehouse.init.iter().map(|statement| statement.value.as_str().into()).collect(),
            registered: Vec::new(),
            unread_files,
            unread,
        };
        Ok(Project { folder, config, tree, source, inputs, environment: environment.clone(), problems })
    }
}

/// Where a problem of the files stands; what has no place is the whole project's.
fn place(told: &Diagnostic) -> Span {
    told.span.clone().unwrap_or_else(|| Span { file: PROJECT_FILE.into(), line: 1, column: 1, length: 1 })
}
