//! The adapter to a language model on a server with OpenAI's chat interface.
//!
//! In: questions with the members that their callers may see. Out: queries in the form of `POST /api/v1/query`,
//! clarifying questions, or the reason why a reply is neither. Requests go through `outgoing`, which checks the
//! address. A reply must match a JSON schema that names the offered members. A reply that does not match is sent back
//! with the reason, so that the model can correct it. Not here: the rights of the caller and the number of requests
//! (`app::questions`).

mod prompt;
mod reply;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use terrane_app::ports::language_model::{LanguageModel, ModelError, ModelQuestion, ModelReply, Prompt};
use terrane_outgoing::{Endpoint, OutgoingClient, OutgoingError};

/// The path of the chat endpoint below the address of an interface.
const CHAT: &str = "/chat/completions";
const OK: u16 = 200;

/// The address, credential and limits of a language model with a chat-completions interface.
#[derive(Clone)]
pub struct ModelServerSettings {
    /// The address of the interface, such as `https://api.openai.com/v1`.
    pub url: String,
    pub model: Arc<str>,
    /// The key that requests carry as a bearer token.
    pub key: Option<String>,
    /// The largest number of tokens of a reply.
    pub max_tokens: u32,
    /// True if the model reasons before it replies. Such models take `max_completion_tokens`, and no temperature.
    pub is_reasoning: bool,
    /// The time for one request.
    pub timeout: Duration,
}

/// A client of a model server.
pub struct ModelServer {
    outgoing: OutgoingClient,
    endpoint: Endpoint,
    settings: ModelServerSettings,
}

impl ModelServer {
    /// Creates a client, without a request.
    ///
    /// # Errors
    /// No request to the address can ever succeed.
    pub fn new(settings: ModelServerSettings, outgoing: &OutgoingClient) -> Result<Self, OutgoingError> {
        let base = settings.url.trim_end_matches('/');
        let url = if base.ends_with(CHAT) { base.to_owned() } else { format!("{base}{CHAT}") };
        let endpoint = outgoing.endpoint(&url)?;
        Ok(ModelServer { outgoing: outgoing.with_timeout(settings.timeout), endpoint, settings })
    }
}

#[async_trait]
impl LanguageModel for ModelServer {
    fn name(&self) -> &str {
        &self.settings.model
    }

    fn host(&self) -> &str {
        self.endpoint.host()
    }

    fn prompt(&self, question: &ModelQuestion) -> Prompt {
        prompt::write(question, &self.settings)
    }

    async fn ask(&self, prompt: &Prompt) -> Result<ModelReply, ModelError> {
        let headers: Vec<(&'static str, String)> =
            self.settings.key.iter().map(|key| ("authorization", format!("Bearer {key}"))).collect();
        let sent = self.outgoing.post_json_for_body(&self.endpoint, prompt.body.to_string(), &headers).await;
        let response = sent.map_err(|error| match error {
            OutgoingError::TimedOut { .. } => ModelError::TimedOut,
            error => ModelError::Unreachable { reason: error.to_string() },
        })?;
        match response.status {
            OK => reply::read(&response.body),
            status => Err(ModelError::Status { status }),
        }
    }
}
