//! Reads a project: its folder, files and configuration, with the problems found so far.
//!
//! In: a folder and the environment. Out: a [`Project`]. Not here: connections (`wiring`).

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use terrane_compiler::diagnostic::{Code, Diagnostic, Span};
use terrane_compiler::model::{self, Model};
use terrane_compiler::project::{self, Inputs, SourceTree};

use crate::config::{self, Config, Environment, PROJECT_FILE};
use crate::failure::Failure;
use crate::project_files::ProjectFolder;

/// The files and the configuration of a project.
#[derive(Debug)]
pub struct Project {
    pub folder: ProjectFolder,
    pub config: Config,
    /// The files of the folder, to show the places of problems.
    pub tree: SourceTree,
    /// The files to compile. The environment may change the definitions of the project file.
    pub source: SourceTree,
    pub inputs: Inputs,
    /// The environment, for reloading the project.
    pub environment: Environment,
    /// Problems of the configuration and the files. The compiler's problems come with the snapshot.
    pub problems: Vec<Diagnostic>,
}

impl Project {
    /// Reads all files of a project.
    ///
    /// # Errors
    /// The folder contains no project. Problems inside a project are in [`Project::problems`].
    pub fn read(path: &Path, environment: &Environment) -> Result<Self, Failure> {
        let folder = ProjectFolder::open(path)?;
        let mut problems = Vec::new();
        // `collect` reports a project file that cannot be read.
        let settings = folder.settings().ok();
        let (config, found) = config::read(settings.as_deref(), environment);
        problems.extend(found);
        let (tree, found) = folder.collect(&config.folders);
        let unread_files = found.iter().filter(|problem| problem.is_error()).map(place).collect();
        let unread =
            found.iter().filter(|problem| problem.code == Code::NotUtf8).filter_map(|problem| problem.span.as_ref());
        let mut unread: BTreeSet<Arc<str>> = unread.flat_map(|span| folder.names_in(&span.file)).collect();
        // The names that an unreadable file defines are unknown. Most files have the name of their cube, so the name of
        // the file counts as one of them.
        let closed = found.iter().filter(|problem| problem.code == Code::UnreadableFile);
        let closed = closed.filter_map(|problem| Path::new(&*problem.span.as_ref()?.file).file_stem()?.to_str());
        unread.extend(closed.map(Arc::from));
        problems.extend(found);
        let mut source = tree.clone();
        if let Some(definitions) = &config.definitions {
            source.files.insert(PROJECT_FILE.into(), definitions.as_str().into());
        }
        let inputs = Inputs { unread_files, unread, ..Project::inputs_of(&config, environment) };
        Ok(Project { folder, config, tree, source, inputs, environment: environment.clone(), problems })
    }
}

impl Project {
    /// Builds the model without a warehouse.
    ///
    /// # Errors
    /// The project has errors.
    pub(crate) fn model(&self) -> Result<Model, Failure> {
        let (definitions, mut problems) = project::read(&self.source, &self.inputs);
        let (model, found) = model::build(&definitions);
        problems.extend(self.problems.iter().cloned().chain(found));
        problems.retain(|problem| problem.is_error());
        if problems.is_empty() { Ok(model) } else { Err(Failure::Project { problems, tree: self.tree.clone() }) }
    }

    /// Returns the compiler's inputs of a configuration, without names of files that cannot be read.
    pub fn inputs_of(config: &Config, environment: &Environment) -> Inputs {
        // An unknown warehouse has the grammar that accepts the most SQL.
        let warehouse = if config.is_warehouse_unread { "" } else { config.warehouse.dialect() };
        Inputs {
            warehouse: Arc::from(warehouse),
            env: environment.for_projects(),
            init: config.warehouse.init.iter().map(|statement| statement.value.as_str().into()).collect(),
            registered: Vec::new(),
            unread_files: Vec::new(),
            unread: BTreeSet::new(),
            reserved_schema: config.pre_aggregations.enabled.then(|| config.pre_aggregations.schema.as_str().into()),
        }
    }
}

/// Returns the place of a problem, or the project file for a problem without a place.
fn place(problem: &Diagnostic) -> Span {
    problem.span.clone().unwrap_or_else(|| Span { file: PROJECT_FILE.into(), line: 1, column: 1, length: 1 })
}
