//! Builds the models of a compilation, and serves the built relations.
//!
//! The compiled project is served before its models are built. A model that is not built with its current definition is
//! inlined, so that the policies of one definition never apply to rows of another one. After the builds, the last step
//! inspects the relations again. From then on, queries read the built relations.

use std::collections::HashMap;

use terrane_compiler::diagnostic::{Code, Diagnostic};
use terrane_compiler::project::soften_registered;

use super::ProjectService;
use super::compile::Compiled;
use super::outcome::ProjectError;
use crate::builds::{BuildRequest, BuildRunError, ModelBuild};
use crate::domain::RequestContext;
use crate::ports::builder::NotReady;

/// The code for a build that built no model.
pub const NOT_BUILT: Code = Code::ModelsNotBuilt;
/// The code for a build that built no model because of a warehouse error, which only operators may read.
pub const NOT_READY: Code = Code::WarehouseNotReady;

impl ProjectService {
    /// Builds the compiled models. If the warehouse cannot build models, adds a warning; queries then inline the
    /// models.
    pub(super) async fn build(&self, compiled: &mut Compiled, request: &RequestContext) -> Result<(), ProjectError> {
        let snapshot = self.ports.catalog.snapshot();
        let names: Vec<String> = compiled.models.iter().map(|model| model.name.clone()).collect();
        if names.is_empty() {
            return Ok(());
        }
        let entry = self.record("models_built", request, format!("project:{}", snapshot.model.project));
        let wanted = BuildRequest { models: Some(&names), entry };
        let builds = match self.ports.builds.run(&snapshot, wanted, &|_| {}, std::future::pending()).await {
            Ok(builds) => builds,
            Err(BuildRunError::Store(error)) => return Err(error.into()),
            Err(error) => {
                compiled.diagnostics.push(warning(&error));
                return Ok(());
            }
        };
        let mut by_name: HashMap<String, ModelBuild> =
            builds.into_iter().map(|build| (build.model.to_string(), build)).collect();
        for model in &mut compiled.models {
            model.build = by_name.remove(&model.name);
        }
        self.look_again().await
    }

    /// Inspects the built relations again and serves them.
    async fn look_again(&self) -> Result<(), ProjectError> {
        let mut held = self.changing.lock().await;
        let texts = held.clone();
        let before = self.ports.catalog.snapshot();
        let mut snapshot = self.snapshot_of(&texts, before.introspection()).await?;
        snapshot.harden(&before);
        soften_registered(&mut snapshot.diagnostics);
        self.swap_in_place(&mut held, texts, snapshot).await;
        Ok(())
    }
}

fn warning(error: &BuildRunError) -> Diagnostic {
    let (code, hint) = match error {
        BuildRunError::NotReady(NotReady::Cant(why)) => (NOT_BUILT, why.hint()),
        BuildRunError::NotReady(NotReady::Warehouse(_)) => {
            (NOT_READY, "compile again when the warehouse responds".to_owned())
        }
        _ => (NOT_BUILT, "compile again when the other run has ended".to_owned()),
    };
    let diagnostic = match error {
        BuildRunError::NotReady(NotReady::Warehouse(_)) => {
            Diagnostic::warning(code, "no model was built").detail(error.to_string())
        }
        _ => Diagnostic::warning(code, format!("no model was built: {error}")),
    };
    diagnostic.hint(hint)
}
