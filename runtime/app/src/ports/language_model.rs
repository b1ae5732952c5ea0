//! The port to a language model that turns questions in words into queries.
//!
//! In: a question and the members that its caller may see. Out: a query of these members, or a request for
//! clarification. The use case does not trust the model's query, and compiles it for the caller. Not here: rows of the
//! warehouse, which are never sent to a model.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::civil::Date;
use terrane_compiler::query::SemanticQuery;
use terrane_compiler::types::DimensionType;

/// A member that the model may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedMember {
    pub name: Arc<str>,
    pub kind: OfferedKind,
    pub title: Arc<str>,
    pub description: Option<Arc<str>>,
    pub synonyms: Vec<Arc<str>>,
    pub unit: Option<Arc<str>>,
}

/// The kind of an offered member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfferedKind {
    Measure,
    Metric,
    Dimension(DimensionType),
    Segment,
}

/// A value of a dimension that words of the question match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedValue {
    pub member: Arc<str>,
    pub value: Arc<str>,
}

/// A reply of the model that was refused, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedReply {
    pub text: Arc<str>,
    pub reason: String,
}

/// The input of a language model for one question.
#[derive(Debug, Clone)]
pub struct ModelQuestion {
    pub text: Arc<str>,
    /// The code of the language, such as `en`.
    pub language: Arc<str>,
    /// The current day in the zone of the query, to which words such as `last month` refer.
    pub today: Date,
    pub members: Arc<[OfferedMember]>,
    /// Values that the caller may see; empty unless the configuration allows that values are sent.
    pub values: Vec<OfferedValue>,
    /// The model's earlier replies to this question that were refused, oldest first.
    pub refused: Vec<RefusedReply>,
}

/// The body of a request to the model. It contains everything that is sent to the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    pub body: Arc<str>,
}

/// Words of the question, and the member that they mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WordMeaning {
    pub text: String,
    pub member: Arc<str>,
}

/// The content of a reply.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelDraft {
    Query {
        query: Box<SemanticQuery>,
        words: Vec<WordMeaning>,
    },
    /// The question is unclear, and the model asks for a clarification.
    Unclear {
        message: String,
        choices: Vec<Arc<str>>,
    },
    /// The reply does not have the form of a query.
    Invalid {
        reason: String,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub struct ModelReply {
    pub draft: ModelDraft,
    /// The text of the reply, which becomes part of the next request if the reply is refused.
    pub text: Arc<str>,
    /// The number of tokens of the request and the reply; `None` if the server does not report it.
    pub tokens: Option<u64>,
}

/// The reason why the model did not reply. The message is only for the log and for callers with `admin`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    #[error("the language model did not reply in time")]
    TimedOut,
    #[error("the language model responded with status {status}")]
    Status { status: u16 },
    #[error("the language model cannot be reached: {reason}")]
    Unreachable { reason: String },
    #[error("the response of the language model cannot be read: {reason}")]
    Unreadable { reason: String },
}

/// A model that translates questions in words to queries.
#[async_trait]
pub trait LanguageModel: Send + Sync {
    /// Returns the name of the model in the configuration.
    fn name(&self) -> &str;

    /// Returns the host that requests are sent to.
    fn host(&self) -> &str;

    /// Writes the request for a question. Equal questions have equal prompts.
    fn prompt(&self, question: &ModelQuestion) -> Prompt;

    /// Sends a request.
    ///
    /// # Errors
    /// [`ModelError`].
    async fn ask(&self, prompt: &Prompt) -> Result<ModelReply, ModelError>;
}
