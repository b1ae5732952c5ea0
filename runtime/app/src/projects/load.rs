//! Loads a project: reads the files, builds the model, and serves it instead of the previous one.

use terrane_compiler::diagnostic::Diagnostic;
use terrane_compiler::project::soften_registered;

use super::outcome::{Loaded, ProjectError, closed_cubes, missing_ref};
use super::{ProjectService, contents};
use crate::domain::RequestContext;
use crate::introspection::SchemaIntrospection;
use crate::ports::projects::ProjectTexts;

/// A request to load a project.
#[derive(Debug, Clone, Default)]
pub struct LoadRequest {
    /// The path of the project; `None` for the served project.
    pub path: Option<String>,
    /// True to refuse the project if it has an error; false to serve the parts without errors.
    pub is_strict: bool,
    /// True to reuse the known column types of unchanged cubes.
    pub trusts_types: bool,
}

impl ProjectService {
    /// Loads a project and serves it from now on.
    ///
    /// # Errors
    /// [`ProjectError`]; the previous project is still served.
    pub async fn load(&self, load: &LoadRequest, request: &RequestContext) -> Result<Loaded, ProjectError> {
        let mut held = self.changing.lock().await;
        let loaded = self.load_into(&mut held, load, request).await;
        // `load_into` has recorded a refusal because of the project's errors. A request without the rights to replace
        // the project is not recorded as a failure.
        if let Err(error) = &loaded
            && load.path.is_none()
            && !matches!(error, ProjectError::Invalid { .. } | ProjectError::Guarded)
        {
            self.note_failure(error);
        }
        loaded
    }

    async fn load_into(
        &self,
        held: &mut ProjectTexts,
        load: &LoadRequest,
        request: &RequestContext,
    ) -> Result<Loaded, ProjectError> {
        let started = self.ports.clock.elapsed();
        let texts = self.texts_at(load.path.as_deref()).await?;
        self.check_replacement(&texts, request).await?;
        let before = self.ports.catalog.snapshot();
        let nothing = SchemaIntrospection::default();
        let known = if load.trusts_types { before.introspection() } else { &nothing };
        let mut snapshot = self.snapshot_of(&texts, known).await?;
        soften_registered(&mut snapshot.diagnostics);
        if texts.folder == held.folder {
            snapshot.harden(&before);
        }
        if load.is_strict && snapshot.diagnostics.iter().any(Diagnostic::is_error) {
            self.note_refusal(&snapshot.diagnostics);
            let missing = missing_ref(&snapshot.diagnostics, &snapshot.definitions);
            return Err(ProjectError::Invalid { diagnostics: snapshot.diagnostics, missing });
        }
        let closed = closed_cubes(&snapshot.definitions);
        if let Some(closed) = &closed {
            tracing::warn!(event = "cubes_closed", error_message = &*closed.message);
        }
        snapshot.diagnostics.extend(closed);
        let loaded = Loaded::of(&snapshot, request, self.ports.clock.elapsed().saturating_sub(started));
        let mut record = self.record("project_loaded", request, format!("project:{}", texts.folder));
        record.after = Some(contents(&snapshot));
        self.ports.audit.append(vec![record]).await?;
        self.swap(held, texts, snapshot).await;
        Ok(loaded)
    }
}
