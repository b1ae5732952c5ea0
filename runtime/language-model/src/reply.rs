//! Reads the reply of a model.
//!
//! In: the body of a response. Out: a query, a question back, or the reason why the reply is neither. A query is
//! parsed as a body of `POST /api/v1/query`, so a reply can express no more than a request of the caller.

use serde::Deserialize;
use serde_json::Value as Json;
use terrane_app::ports::language_model::{ModelDraft, ModelError, ModelReply, WordMeaning};
use terrane_wire::ErrorBody;
use terrane_wire::query::from_wire;

/// The fields of the server's response that are used.
#[derive(Deserialize)]
struct Completion {
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    content: Option<String>,
    /// The reason why the model refuses to reply.
    #[serde(default)]
    refusal: Option<String>,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default)]
    total_tokens: Option<u64>,
}

/// The reply of the model.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reply {
    query: Option<Json>,
    #[serde(default)]
    words: Vec<Word>,
    #[serde(default)]
    clarification: Option<Clarification>,
}

#[derive(Deserialize)]
struct Word {
    text: String,
    member: String,
}

#[derive(Deserialize)]
struct Clarification {
    message: String,
    #[serde(default)]
    choices: Vec<String>,
}

/// Reads the body of a response.
///
/// # Errors
/// The body is not the response of a chat.
pub(super) fn read(body: &[u8]) -> Result<ModelReply, ModelError> {
    let unreadable = |reason: &str| ModelError::Unreadable { reason: reason.to_owned() };
    let completion: Completion =
        serde_json::from_slice(body).map_err(|error| unreadable(&format!("it is not a chat: {error}")))?;
    let tokens = completion.usage.and_then(|usage| usage.total_tokens);
    let choice = completion.choices.into_iter().next().ok_or_else(|| unreadable("it has no choice"))?;
    let text = choice.message.content.unwrap_or_default();
    let draft = match (choice.message.refusal, choice.finish_reason.as_deref()) {
        (Some(reason), _) => ModelDraft::Unclear { message: reason, choices: Vec::new() },
        (None, Some("length")) => invalid("it is longer than `max_tokens`"),
        (None, _) => draft(&text),
    };
    Ok(ModelReply { draft, text: text.into(), tokens })
}

fn draft(text: &str) -> ModelDraft {
    let reply: Reply = match serde_json::from_str(without_fence(text)) {
        Ok(reply) => reply,
        Err(error) => return invalid(format!("it does not have the form of the schema: {error}")),
    };
    match (reply.query.map(without_empty), reply.clarification) {
        (None | Some(Json::Null), Some(asked)) => {
            ModelDraft::Unclear { message: asked.message, choices: asked.choices.into_iter().map(Into::into).collect() }
        }
        (None | Some(Json::Null), None) => invalid("it has neither a query nor a clarification"),
        (Some(query), _) => match from_wire(query.to_string().as_bytes()) {
            Ok(request) => ModelDraft::Query {
                query: Box::new(request.query),
                words: reply.words.into_iter().map(WordMeaning::from).collect(),
            },
            Err(error) => invalid(ErrorBody::from(error).message),
        },
    }
}

fn invalid(reason: impl Into<String>) -> ModelDraft {
    ModelDraft::Invalid { reason: reason.into() }
}

/// Removes the Markdown code fence that some models put around their reply.
fn without_fence(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("```json").or_else(|| text.strip_prefix("```"));
    inner.and_then(|inner| inner.strip_suffix("```")).map_or(text, str::trim)
}

/// Removes keys whose value is null or an empty list from an object and from the objects inside it. Models write such
/// keys because strict schemas require all keys.
fn without_empty(value: Json) -> Json {
    let is_empty = |value: &Json| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    match value {
        Json::Object(fields) => {
            let fields = fields.into_iter().map(|(key, value)| (key, without_empty(value)));
            Json::Object(fields.filter(|(_, value)| !is_empty(value)).collect())
        }
        Json::Array(items) => Json::Array(items.into_iter().map(without_empty).collect()),
        other => other,
    }
}

impl From<Word> for WordMeaning {
    fn from(word: Word) -> Self {
        WordMeaning { text: word.text, member: word.member.into() }
    }
}
