//! The language model that reads questions, if the configuration names one.

use std::sync::Arc;

use terrane_app::questions::ModelBackend;
use terrane_language_model::{ModelServer, ModelServerSettings};

use super::providers::{failed, outgoing};
use crate::config::{LanguageModelConfig, Secret};
use crate::failure::Failure;
use crate::project::Project;

/// Creates the adapter, without a request; `None` without `search.llm`.
///
/// # Errors
/// The address can never be used.
pub fn language_model(project: &Project) -> Result<Option<ModelBackend>, Failure> {
    let config = &project.config;
    let Some(LanguageModelConfig { url, model, key, max_tokens, is_reasoning, settings }) =
        config.search.language_model.clone().filter(|_| config.search.enabled)
    else {
        return Ok(None);
    };
    let server = ModelServerSettings {
        url: url.value,
        model: model.into(),
        key: key.as_ref().map(Secret::expose).map(str::to_owned),
        max_tokens,
        is_reasoning,
        timeout: settings.timeout,
    };
    let outgoing = outgoing(config, project.folder.root())?;
    let server = ModelServer::new(server, &outgoing).map_err(|problem| failed("search.llm.url", &problem))?;
    Ok(Some(ModelBackend { model: Arc::new(server), settings }))
}
