//! Interprets a question with a language model.
//!
//! In: a question, and the members that its caller may see. Out: a query that compiles for the caller, a request for
//! clarification, or the reason why there is neither. If a reply is refused, it is sent back to the model with the
//! reason, at most [`MAX_REPAIRS`] times. Each request is in the audit log before it is sent. Queries are cached by the
//! digest of their prompt. Callers who may see different members have different prompts, so they never share a query.
//! Not here: the format of requests and replies (the adapter), and rows of the warehouse.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use terrane_compiler::query::SemanticQuery;
use terrane_questions::{Clarification, Draft, Interpretation, Piece};
use tokio::sync::Semaphore;

use crate::domain::RequestContext;
use crate::limits::{Limit, Rate, RateScope, Subject};
use crate::ports::audit::{AuditEntry, Detail, Details};
use crate::ports::clock::Clock;
use crate::ports::language_model::{
    LanguageModel, ModelDraft, ModelError, ModelQuestion, Prompt, RefusedReply, WordMeaning,
};
use crate::query::{QueryRunError, QuerySession};
use crate::security::access::Durability;
use crate::security::{AccessRecorder, AuthMethod};

/// The largest number of further requests after a refused reply.
const MAX_REPAIRS: usize = 2;
/// The largest number of concurrent requests.
const MAX_RUNNING: usize = 4;
/// The largest number of stored queries.
const MAX_STORED: usize = 1_000;
const SECONDS_PER_HOUR: f64 = 3_600.0;
/// The largest number of characters of a model's message in an answer.
const MAX_MESSAGE: usize = 300;
/// The largest number of words with a meaning in a reply, and the largest number of choices.
const MAX_ITEMS: usize = 20;

/// The questions that are sent to the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ModelUse {
    /// Questions that the grammar cannot interpret.
    #[default]
    Unclear,
    /// All questions. If the model fails, the grammar answers.
    Always,
}

/// The limits on the use of a language model.
#[derive(Debug, Clone)]
pub struct ModelSettings {
    pub usage: ModelUse,
    /// The largest number of members that a request names.
    pub max_members: usize,
    /// True to send values of dimensions that match words of the question.
    pub sends_values: bool,
    /// The largest number of questions of one caller per hour, counted in each process.
    pub questions_per_hour: NonZeroU32,
    /// The time limit for a question with all its requests.
    pub timeout: Duration,
}

/// A language model with the limits on its use.
#[derive(Clone)]
pub struct ModelBackend {
    pub model: Arc<dyn LanguageModel>,
    pub settings: ModelSettings,
}

/// The reason why a model did not answer a question. The messages are for the caller who asked it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ModelProblem {
    #[error("the language model was not asked: this caller may ask it {per_hour} questions in an hour")]
    Budget { per_hour: NonZeroU32 },
    #[error("the language model did not reply in time")]
    TimedOut,
    #[error("the language model did not reply")]
    Failed,
    #[error("the language model did not return a valid query: {reason}")]
    Refused { reason: String },
    #[error("the language model was not asked: the audit log is unavailable")]
    Unrecorded,
}

/// A query of a model that compiles for the caller.
#[derive(Debug, Clone)]
pub(super) struct ModelQuery {
    pub query: SemanticQuery,
    pub words: Vec<WordMeaning>,
}

/// The result of asking a model.
#[derive(Debug)]
pub(super) enum ModelReading {
    Query(Box<ModelQuery>),
    Unclear(Clarification),
    Problem(ModelProblem),
}

/// The reason why the requests of a question ended without a reply.
enum Stop {
    Problem(ModelProblem),
    Query(QueryRunError),
}

impl From<QueryRunError> for Stop {
    fn from(error: QueryRunError) -> Self {
        Stop::Query(error)
    }
}

/// Asks a language model within its limits.
pub struct ModelReader {
    model: Arc<dyn LanguageModel>,
    access: Arc<AccessRecorder>,
    settings: ModelSettings,
    budget: Limit,
    running: Semaphore,
    stored: Mutex<StoredQueries>,
}

impl ModelReader {
    pub fn new(backend: ModelBackend, access: Arc<AccessRecorder>, clock: Arc<dyn Clock>) -> Self {
        let ModelBackend { model, settings } = backend;
        let burst = settings.questions_per_hour;
        let rate = Rate { requests_per_second: f64::from(burst.get()) / SECONDS_PER_HOUR, burst };
        ModelReader {
            model,
            access,
            settings,
            budget: Limit::new(rate, RateScope::Key, clock),
            running: Semaphore::new(MAX_RUNNING),
            stored: Mutex::default(),
        }
    }

    pub(super) fn name(&self) -> &str {
        self.model.name()
    }

    pub(super) fn settings(&self) -> &ModelSettings {
        &self.settings
    }

    /// Interprets a question.
    ///
    /// # Errors
    /// A query that the language model proposed cannot be checked, because a policy denies it or the warehouse does not
    /// respond.
    pub(super) async fn read(
        &self,
        question: ModelQuestion,
        session: &QuerySession<'_>,
        request: &RequestContext,
    ) -> Result<ModelReading, QueryRunError> {
        let digest = self.digest(&self.model.prompt(&question));
        if let Some(stored) = self.stored(&digest)
            && problem_of(session, &stored.query).await?.is_none()
        {
            return Ok(ModelReading::Query(Box::new(stored)));
        }
        let per_hour = self.settings.questions_per_hour;
        if self.budget.take(subject(request)).is_err() {
            return Ok(ModelReading::Problem(ModelProblem::Budget { per_hour }));
        }
        let requests = self.requests(question, session, request);
        match tokio::time::timeout(self.settings.timeout, requests).await {
            Ok(Ok(reading)) => {
                if let ModelReading::Query(query) = &reading {
                    self.store(digest, query);
                }
                Ok(reading)
            }
            Ok(Err(Stop::Problem(problem))) => Ok(ModelReading::Problem(problem)),
            Ok(Err(Stop::Query(error))) => Err(error),
            Err(_) => {
                self.report(&ModelError::TimedOut);
                Ok(ModelReading::Problem(ModelProblem::TimedOut))
            }
        }
    }

    /// Sends the question. If a reply is refused, sends the question again with the reason.
    async fn requests(
        &self,
        mut question: ModelQuestion,
        session: &QuerySession<'_>,
        request: &RequestContext,
    ) -> Result<ModelReading, Stop> {
        // The semaphore is never closed.
        let _running = self.running.acquire().await;
        loop {
            let prompt = self.model.prompt(&question);
            self.record(&question, &prompt, request).await?;
            let reply = match self.model.ask(&prompt).await {
                Ok(reply) => reply,
                Err(error) => return Err(Stop::Problem(self.report(&error))),
            };
            let reason = match reply.draft {
                ModelDraft::Unclear { message, choices } => {
                    return Ok(ModelReading::Unclear(clarification(&message, choices, &question)));
                }
                ModelDraft::Query { query, words } => match problem_of(session, &query).await? {
                    None => {
                        let words = meanings(words, &question);
                        return Ok(ModelReading::Query(Box::new(ModelQuery { query: *query, words })));
                    }
                    Some(reason) => reason,
                },
                ModelDraft::Invalid { reason } => reason,
            };
            if question.refused.len() == MAX_REPAIRS {
                return Err(Stop::Problem(ModelProblem::Refused { reason: bounded(&reason) }));
            }
            question.refused.push(RefusedReply { text: reply.text, reason });
        }
    }

    /// Writes the contents of a request to the audit log.
    async fn record(&self, question: &ModelQuestion, prompt: &Prompt, request: &RequestContext) -> Result<(), Stop> {
        let values = question.values.iter().map(|value| format!("{}: {}", value.member, value.value));
        let sent = Details::fields([
            ("model", self.model.name().into()),
            ("question", (&*question.text).into()),
            ("request", (question.refused.len() + 1).into()),
            ("members", question.members.iter().map(|member| &*member.name).collect::<Detail>()),
            ("values", values.collect::<Detail>()),
            ("bytes", prompt.body.len().into()),
            ("sha256", hex::encode(Sha256::digest(prompt.body.as_bytes())).into()),
        ]);
        let resource = format!("model:{}", self.model.host());
        let entry = AuditEntry { after: Some(sent), ..self.access.entry("language_model_asked", request, resource) };
        self.access.record(request, entry, Durability::BeforeAnswer).await.map_err(|error| {
            tracing::error!(event = "language_model_failed", model = self.model.name(), error_message = %error);
            Stop::Problem(ModelProblem::Unrecorded)
        })
    }

    fn report(&self, error: &ModelError) -> ModelProblem {
        let (model, host) = (self.model.name(), self.model.host());
        tracing::warn!(event = "language_model_failed", model, host, error_message = %error);
        match error {
            ModelError::TimedOut => ModelProblem::TimedOut,
            ModelError::Status { .. } | ModelError::Unreachable { .. } | ModelError::Unreadable { .. } => {
                ModelProblem::Failed
            }
        }
    }

    /// Returns the digest of a prompt and of the model that receives it.
    fn digest(&self, prompt: &Prompt) -> [u8; 32] {
        let mut digest = Sha256::new();
        for part in [self.model.host(), self.model.name(), &prompt.body] {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part.as_bytes());
        }
        digest.finalize().into()
    }

    fn stored(&self, digest: &[u8; 32]) -> Option<ModelQuery> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner).queries.get(digest).cloned()
    }

    fn store(&self, digest: [u8; 32], query: &ModelQuery) {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner).put(digest, query.clone());
    }
}

/// The queries of earlier questions, oldest first.
#[derive(Default)]
struct StoredQueries {
    queries: HashMap<[u8; 32], ModelQuery>,
    order: VecDeque<[u8; 32]>,
}

impl StoredQueries {
    fn put(&mut self, digest: [u8; 32], query: ModelQuery) {
        if self.queries.insert(digest, query).is_none() {
            self.order.push_back(digest);
        }
        while self.order.len() > MAX_STORED {
            if let Some(oldest) = self.order.pop_front() {
                self.queries.remove(&oldest);
            }
        }
    }
}

/// Returns the reason why a query does not compile for the caller; `None` if it compiles.
async fn problem_of(session: &QuerySession<'_>, query: &SemanticQuery) -> Result<Option<String>, QueryRunError> {
    match async { session.prepare(query).await?.planned().await }.await {
        Ok(_) => Ok(None),
        Err(QueryRunError::Query(error)) => Ok(Some(error.to_string())),
        Err(error) => Err(error),
    }
}

/// Returns the caller for whom questions are counted.
fn subject(request: &RequestContext) -> Subject {
    match request.caller.auth_method {
        AuthMethod::Anonymous => Subject::of_address(request.client),
        _ => Subject::User(Arc::clone(&request.caller.user_id)),
    }
}

/// Removes words that are not in the question, and members that were not offered to the model.
fn meanings(words: Vec<WordMeaning>, question: &ModelQuestion) -> Vec<WordMeaning> {
    let text = question.text.to_lowercase();
    let is_part = |word: &WordMeaning| !word.text.trim().is_empty() && text.contains(&word.text.to_lowercase());
    let is_offered = |name: &str| question.members.iter().any(|member| &*member.name == name);
    words.into_iter().filter(|word| is_part(word) && is_offered(&word.member)).take(MAX_ITEMS).collect()
}

/// Creates a clarification from a model's reply. Choices that were not offered to the model are left out.
fn clarification(message: &str, choices: Vec<Arc<str>>, question: &ModelQuestion) -> Clarification {
    let is_offered = |name: &Arc<str>| question.members.iter().any(|member| member.name == *name);
    Clarification {
        text: String::new(),
        message: bounded(message),
        choices: choices.into_iter().filter(is_offered).take(MAX_ITEMS).collect(),
    }
}

fn bounded(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(MAX_MESSAGE).collect()
}

/// Returns the interpretation of a model's query: the words with a member, and their share of the question's words.
pub(super) fn reading(text: &str, words: &[WordMeaning]) -> Interpretation {
    let count = |text: &str| text.split_whitespace().count();
    let named: usize = words.iter().map(|word| count(&word.text)).sum();
    let piece = |word: &WordMeaning| Piece {
        text: word.text.clone(),
        meaning: word.member.to_string(),
        alternatives: Vec::new(),
    };
    Interpretation {
        draft: Draft::default(),
        pieces: words.iter().map(piece).collect(),
        confidence: (named as f64 / count(text).max(1) as f64).min(1.0),
        clarifications: Vec::new(),
        unknown: Vec::new(),
        lookups: Vec::new(),
        joining: Vec::new(),
        is_dated: false,
        cube: None,
    }
}
