//! The outcomes of loading and compiling a project.

use std::sync::Arc;
use std::time::Duration;

use terrane_compiler::Access;
use terrane_compiler::diagnostic::{Code, Diagnostic, Span};
use terrane_compiler::model::{Cube, MetricId};
use terrane_compiler::project::Definitions;

use crate::catalog::Snapshot;
use crate::domain::{RequestContext, Surface};
use crate::ports::plugins::PluginError;
use crate::ports::projects::NoProject;
use crate::ports::store::StoreError;

/// The reason why a project was not loaded or compiled. The previous project is still served.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ProjectError {
    #[error(transparent)]
    NoProject(#[from] NoProject),
    /// The project has errors, and the caller accepts only projects without errors. `missing` is the first reference to
    /// a model or source that does not exist.
    #[error("the project has errors")]
    Invalid { diagnostics: Vec<Diagnostic>, missing: Option<MissingRef> },
    /// The caller lacks `admin`, and the change would replace the policies of the served project.
    #[error("another project, with other policies, is loaded with the scope `admin`")]
    Guarded,
    /// The SQL of a model does not compile.
    #[error("model `{model}` failed to compile: {message}")]
    Model { model: String, message: String, span: Option<Span>, is_warehouse: bool },
    /// The request names a model that the project does not have.
    #[error("unknown model `{name}`")]
    UnknownModel { name: String, nearest: Vec<String> },
    #[error(transparent)]
    Plugin(#[from] PluginError),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A thread panicked.
    #[error("the project could not be read completely")]
    Broken,
}

/// A `ref()` or `source()` whose target does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingRef {
    /// The model or cube that contains the reference. A model has the name of its file.
    pub of: Referrer,
    pub kind: MissingKind,
    /// The name of the target: a model, or `source.table`.
    pub missing_ref: String,
}

/// The kind of item that a missing reference names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingKind {
    Model,
    Source,
}

impl MissingKind {
    pub fn as_str(self) -> &'static str {
        match self {
            MissingKind::Model => "model",
            MissingKind::Source => "source",
        }
    }
}

/// The item that contains a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Referrer {
    Model(String),
    Cube(String),
}

/// A project that was loaded.
#[derive(Debug, Clone)]
pub struct Loaded {
    pub project: String,
    pub sources: usize,
    pub models: usize,
    pub cubes: usize,
    pub metrics: usize,
    pub graph_nodes: usize,
    pub graph_edges: usize,
    /// The warnings. Also the errors, if the project was loaded with `strict: false`.
    pub diagnostics: Vec<Diagnostic>,
    pub elapsed: Duration,
}

impl Loaded {
    /// Returns the outcome with the numbers of items that the caller may see.
    pub(super) fn of(snapshot: &Snapshot, request: &RequestContext, elapsed: Duration) -> Self {
        let definitions = &snapshot.definitions;
        let sight = ProjectSight::of(snapshot, request);
        let (graph_nodes, graph_edges) = sight.graph_size();
        Loaded {
            project: snapshot.model.project.to_string(),
            sources: definitions.sources.len(),
            models: definitions.models.len(),
            cubes: snapshot.model.cubes.iter().filter(|cube| cube.alias_of.is_none() && sight.sees_cube(cube)).count(),
            metrics: sight.metrics(),
            graph_nodes,
            graph_edges,
            diagnostics: snapshot.diagnostics.clone(),
            elapsed,
        }
    }
}

/// The part of a project that a caller may see, for the numbers in outcomes. The operator of this machine sees
/// everything.
pub(super) struct ProjectSight<'s> {
    snapshot: &'s Snapshot,
    /// The caller's access; `None` if nothing is hidden.
    access: Option<Access<'s>>,
}

impl<'s> ProjectSight<'s> {
    pub(super) fn of(snapshot: &'s Snapshot, request: &'s RequestContext) -> Self {
        let access = Some(Access::of(&snapshot.model, &request.caller));
        let access = access.filter(|access| request.surface != Surface::Internal && !access.sees_everything());
        ProjectSight { snapshot, access }
    }

    fn graph_size(&self) -> (usize, usize) {
        match &self.access {
            None => self.snapshot.graph_size(),
            Some(access) => {
                let graph = self.snapshot.graph(access);
                (graph.nodes.len(), graph.edges.len())
            }
        }
    }

    pub(super) fn sees_cube(&self, cube: &Cube) -> bool {
        self.access.as_ref().is_none_or(|access| !access.is_closed(cube))
    }

    /// Returns the number of metrics.
    pub(super) fn metrics(&self) -> usize {
        let ids = (0..).map(MetricId).zip(&self.snapshot.model.metrics);
        ids.filter(|(id, _)| self.access.as_ref().is_none_or(|access| access.offers_metric(*id))).count()
    }

    /// Returns the numbers of measures and dimensions of a cube.
    pub(super) fn members(&self, cube: &Cube) -> (usize, usize) {
        let is_seen = |name: &Arc<str>| {
            self.access.as_ref().is_none_or(|access| {
                !access.is_closed(cube) && cube.member(name).is_some_and(|member| access.offers(member))
            })
        };
        let measures = cube.measures.iter().filter(|measure| is_seen(&measure.name)).count();
        (measures, cube.dimensions.iter().filter(|dimension| is_seen(&dimension.name)).count())
    }
}

/// Returns the first reference to a model or source that does not exist.
pub fn missing_ref(diagnostics: &[Diagnostic], definitions: &Definitions) -> Option<MissingRef> {
    let (found, kind) = diagnostics.iter().find_map(|diagnostic| match diagnostic.code {
        Code::MissingRef => Some((diagnostic, MissingKind::Model)),
        Code::MissingSource => Some((diagnostic, MissingKind::Source)),
        _ => None,
    })?;
    let (span, missing) = (found.span.as_ref()?, found.subject.as_ref()?);
    let stem = span.file.rsplit('/').next().unwrap_or_default();
    let model = stem.rsplit_once('.').map_or(stem, |(stem, _)| stem);
    // The reference belongs to the last cube that begins before it.
    let cubes = definitions.cubes.iter().map(|cube| (cube.name.span(), &cube.name.value));
    let before = cubes.filter(|(begin, _)| begin.file == span.file && begin.line <= span.line);
    let of = match before.max_by_key(|(begin, _)| begin.line) {
        Some((_, cube)) => Referrer::Cube(cube.to_string()),
        None => Referrer::Model(model.to_owned()),
    };
    Some(MissingRef { of, kind, missing_ref: missing.to_string() })
}

/// Returns a warning if all cubes are closed because a file could not be read. This file may contain policies.
pub fn closed_cubes(definitions: &Definitions) -> Option<Diagnostic> {
    let span = definitions.unread_files.first()?;
    let mut files: Vec<&str> = definitions.unread_files.iter().map(|span| &*span.file).collect();
    files.dedup();
    let files: Vec<String> = files.into_iter().take(5).map(|file| format!("`{file}`")).collect();
    let message = format!("every cube is closed while {} cannot be read: it may contain policies", files.join(", "));
    let hint = "Correct or remove the file, and load the project again.";
    Some(Diagnostic::warning(Code::ClosedCubes, message).hint(hint).at(span.clone()))
}
