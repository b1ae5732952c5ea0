//! The adapter of `ProjectFiles` on the file system: the served project, and other projects in the folders that the
//! operator named.
//!
//! Only the definitions of another project are used: its SQL is read in the grammar of the served warehouse, and its
//! configuration has no effect.

use std::path::PathBuf;
use std::sync::Arc;

use terrane_app::ports::projects::{NoProject, ProjectFiles, ProjectTexts};
use terrane_compiler::project::Inputs;

use crate::config::{Environment, PROJECT_FILE};
use crate::project::Project;

/// Reads the projects that this server may serve.
#[derive(Debug)]
pub(super) struct FolderProjects {
    /// The canonical folder of the served project.
    root: PathBuf,
    /// The folders that may contain projects, as canonical paths, including that of the served project.
    roots: Vec<PathBuf>,
    environment: Environment,
    /// The served warehouse's type.
    warehouse: Arc<str>,
    /// The statements that each connection of the served warehouse runs first.
    init: Vec<Arc<str>>,
    /// The schema of pre-aggregations.
    reserved_schema: Option<Arc<str>>,
}

impl FolderProjects {
    pub(super) fn of(project: &Project) -> Self {
        let root = project.folder.root().to_owned();
        let named = project.config.server.project_roots.iter();
        // A folder that does not exist contains no project, so it is left out.
        let named = named.filter_map(|folder| root.join(&folder.value).canonicalize().ok());
        let roots = std::iter::once(root.clone()).chain(named).collect();
        let (environment, warehouse) = (project.environment.clone(), Arc::clone(&project.inputs.warehouse));
        let (init, reserved_schema) = (project.inputs.init.clone(), project.inputs.reserved_schema.clone());
        FolderProjects { root, roots, environment, warehouse, init, reserved_schema }
    }
}

impl ProjectFiles for FolderProjects {
    fn read(&self, path: Option<&str>) -> Result<ProjectTexts, NoProject> {
        let none = |reason: &str| NoProject {
            path: path.unwrap_or(".").chars().take(200).collect(),
            reason: reason.to_owned(),
            hint: format!(
                "Name a folder that contains {PROJECT_FILE}, relative to the served project, and below it or below \
                 one of `server.project_roots`."
            ),
        };
        let folder = match path {
            None => self.root.clone(),
            Some(path) => {
                let folder = self.root.join(path).canonicalize();
                let allowed = |folder: &PathBuf| self.roots.iter().any(|root| folder.starts_with(root));
                // The answer must not reveal whether a folder outside the roots exists.
                folder.ok().filter(allowed).ok_or_else(|| none("the folder does not exist"))?
            }
        };
        let project = Project::read(&folder, &self.environment)
            .map_err(|_| none(&format!("the folder contains no readable {PROJECT_FILE}")))?;
        let inputs = Inputs {
            warehouse: Arc::clone(&self.warehouse),
            init: self.init.clone(),
            reserved_schema: self.reserved_schema.clone(),
            ..project.inputs
        };
        let folder = folder.display().to_string().into();
        Ok(ProjectTexts { folder, source: project.source, inputs, problems: project.problems })
    }
}
