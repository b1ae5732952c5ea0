//! The use case of projects: loads a project, compiles its models, and serves it instead of the previous project. Also
//! registers and deletes cubes while the server runs.
//!
//! In: a path and the caller. Out: the result, with every diagnostic. Only [`ProjectService`] replaces the served
//! project, one change at a time, and always as a whole. A project with errors does not replace the previous one,
//! unless the caller accepts the parts without errors. Not here: files (the port's adapter), wire formats.

mod build;
mod compile;
mod load;
mod outcome;
mod register;

use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use terrane_compiler::diagnostic::{self, Diagnostic};
use terrane_compiler::project::soften_registered;

pub use build::{NOT_BUILT, NOT_READY};
pub use compile::{
    CompileRequest, Compiled, CompiledCube, CompiledModel, RefusedModels, UNREADABLE_MODEL, refused_models,
};
pub use load::LoadRequest;
pub use outcome::{Loaded, ProjectError, Referrer, closed_cubes, missing_ref};
pub use register::{NewCube, NewDimension, NewMeasure, RegisterError};

use crate::builds::Builds;
use crate::catalog::{self, Catalog, Snapshot};
use crate::data_versions::DataVersions;
use crate::domain::{RequestContext, Scope};
use crate::governance::ApprovalService;
use crate::introspection::SchemaIntrospection;
use crate::ports::audit::{AuditEntry, AuditLog, Details};
use crate::ports::clock::Clock;
use crate::ports::plugins::{PluginError, Plugins};
use crate::ports::projects::{ProjectFiles, ProjectTexts};
use crate::ports::registrations::Registrations;
use crate::ports::warehouse::Warehouse;
use crate::security::{AccessRecorder, access};

/// The ports of the service.
#[derive(Clone)]
pub struct ProjectPorts {
    pub files: Arc<dyn ProjectFiles>,
    pub catalog: Arc<Catalog>,
    pub plugins: Arc<dyn Plugins>,
    pub warehouse: Arc<dyn Warehouse>,
    pub registrations: Arc<dyn Registrations>,
    pub audit: Arc<dyn AuditLog>,
    pub access: Arc<AccessRecorder>,
    pub builds: Builds,
    pub versions: Arc<DataVersions>,
    pub clock: Arc<dyn Clock>,
}

/// Loads projects and replaces the served one.
pub struct ProjectService {
    ports: ProjectPorts,
    approvals: ApprovalService,
    /// The source text of the served project. The lock is held while the project changes.
    changing: tokio::sync::Mutex<ProjectTexts>,
    status: Mutex<ServedStatus>,
}

/// The state of the served project compared with its files, for the health status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedStatus {
    /// The folder whose project is served.
    pub folder: Arc<str>,
    pub loaded_at: Timestamp,
    /// The number of errors in the served project. It is more than 0 only if the caller accepted the parts without
    /// errors.
    pub errors: usize,
    /// The last load that was refused since `loaded_at`; `None` if no load was refused.
    pub refused: Option<Refused>,
}

/// A refused load, after which the previous project is still served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub at: Timestamp,
    pub errors: usize,
    pub first: String,
}

impl ProjectService {
    /// Creates the use cases. `texts` are the files of the served snapshot.
    pub fn new(ports: ProjectPorts, approvals: ApprovalService, texts: ProjectTexts) -> Self {
        let errors = errors_of(&ports.catalog.snapshot());
        let loaded_at = ports.clock.now();
        let status = ServedStatus { folder: Arc::clone(&texts.folder), loaded_at, errors, refused: None };
        ProjectService { ports, approvals, changing: tokio::sync::Mutex::new(texts), status: Mutex::new(status) }
    }

    /// Returns the state of the served project compared with its files.
    pub fn served_status(&self) -> ServedStatus {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn texts_at(&self, path: Option<&str>) -> Result<ProjectTexts, ProjectError> {
        let (files, path) = (Arc::clone(&self.ports.files), path.map(str::to_owned));
        let read = tokio::task::spawn_blocking(move || files.read(path.as_deref())).await;
        let mut texts = read.map_err(|_| ProjectError::Broken)??;
        let registered = self.ports.registrations.registrations().await?;
        texts.inputs.registered = registered.into_iter().map(|one| one.cube).collect();
        Ok(texts)
    }

    /// Reads a project without serving it.
    ///
    /// # Errors
    /// [`ProjectError`]
    pub async fn read(&self, path: &str) -> Result<Snapshot, ProjectError> {
        let texts = self.texts_at(Some(path)).await?;
        let before = self.ports.catalog.snapshot();
        let mut snapshot = self.snapshot_of(&texts, before.introspection()).await?;
        soften_registered(&mut snapshot.diagnostics);
        Ok(snapshot)
    }

    /// Rejects a caller without `admin` who would replace the served project with another one, and with it, its
    /// policies. If the served project has no policies and no hooks are configured, the change is allowed.
    async fn check_replacement(&self, texts: &ProjectTexts, request: &RequestContext) -> Result<(), ProjectError> {
        let is_served = texts.folder == self.served_status().folder;
        let is_guarded = || !self.ports.catalog.snapshot().model.policies.is_empty() || self.approvals.has_hooks();
        if is_served || request.scopes.hold(Scope::Admin) || !is_guarded() {
            Ok(())
        } else {
            self.ports.access.denied(request, access::POLICY).await?;
            Err(ProjectError::Guarded)
        }
    }

    async fn snapshot_of(&self, texts: &ProjectTexts, known: &SchemaIntrospection) -> Result<Snapshot, PluginError> {
        let (plugins, warehouse) = (&*self.ports.plugins, &*self.ports.warehouse);
        let mut snapshot = catalog::load(&texts.source, &texts.inputs, known, plugins, warehouse).await?;
        snapshot.diagnostics.extend(texts.problems.iter().cloned());
        diagnostic::sort(&mut snapshot.diagnostics);
        Ok(snapshot)
    }

    /// Serves a snapshot from now on, and resets the served status.
    async fn swap(&self, held: &mut ProjectTexts, texts: ProjectTexts, snapshot: Snapshot) {
        let (loaded_at, errors) = (self.ports.clock.now(), errors_of(&snapshot));
        *self.status.lock().unwrap_or_else(PoisonError::into_inner) =
            ServedStatus { folder: Arc::clone(&texts.folder), loaded_at, errors, refused: None };
        self.swap_in_place(held, texts, snapshot).await;
    }

    /// Serves a new snapshot of the same files, and leaves the served status unchanged.
    async fn swap_in_place(&self, held: &mut ProjectTexts, texts: ProjectTexts, snapshot: Snapshot) {
        *held = texts;
        self.ports.catalog.replace(snapshot);
        self.ports.versions.invalidate_all().await;
    }

    fn note_refusal(&self, diagnostics: &[Diagnostic]) {
        let mut errors = diagnostics.iter().filter(|diagnostic| diagnostic.is_error());
        let first = errors.next().map(place_and_message).unwrap_or_default();
        let refused = Refused { at: self.ports.clock.now(), errors: errors.count() + 1, first };
        self.status.lock().unwrap_or_else(PoisonError::into_inner).refused = Some(refused);
    }

    /// Records that the served project could not be read or replaced.
    fn note_failure(&self, error: &ProjectError) {
        let refused = Refused { at: self.ports.clock.now(), errors: 1, first: error.to_string() };
        self.status.lock().unwrap_or_else(PoisonError::into_inner).refused = Some(refused);
    }

    fn record(&self, event: &'static str, request: &RequestContext, resource: String) -> AuditEntry {
        self.ports.access.entry(event, request, resource)
    }
}

fn errors_of(snapshot: &Snapshot) -> usize {
    snapshot.diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count()
}

fn place_and_message(diagnostic: &Diagnostic) -> String {
    match &diagnostic.span {
        Some(span) => format!("{span}: {}", diagnostic.full_message()),
        None => diagnostic.full_message().into_owned(),
    }
}

/// Returns the details of a project for its audit record.
fn contents(snapshot: &Snapshot) -> Details {
    let model = &snapshot.model;
    let own = model.cubes.iter().filter(|cube| cube.alias_of.is_none()).count();
    Details::fields([
        ("project", (&*model.project).into()),
        ("cubes", own.into()),
        ("metrics", model.metrics.len().into()),
        ("models", snapshot.definitions.models.len().into()),
    ])
}
