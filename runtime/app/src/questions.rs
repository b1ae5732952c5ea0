//! The use case of questions in words.
//!
//! In: a question and its caller. Out: a query with the meaning of each word, or choices. The vocabulary consists of
//! the members that metadata lists for the caller, so names of other members are in no answer and no choice. A word
//! that is not a name may be a value. Such words are looked up among the values of dimensions with `meta.searchable`:
//! in the list that searches use for the caller, or by a query of the caller, to which the caller's policies and limits
//! apply. A query is compiled for the caller before it is returned. It is run only if the caller requests rows. Not
//! here: formats.
//!
//! ```text
//! question ─▶ grammar ─▶ query that compiles ───────────────────────▶ answer
//!                │ unclear, and a language model is configured             ▲
//!                └──▶ ModelReader ─▶ query that compiles ──────────────────┘
//! ```

mod convert;
mod grammar;
mod model;
mod values;
mod vocabulary;

use std::sync::Arc;

use terrane_compiler::Access;
use terrane_compiler::query::SemanticQuery;
use terrane_questions::{Clarification, Draft, Interpretation, KnownValues, Language, QuestionError};

use crate::blocking::over_rows;
use crate::domain::{QueryKind, RequestContext};
use crate::ports::language_model::{ModelQuestion, OfferedMember, OfferedValue};
use crate::query::{Answer, QueryRunError, QueryService, QuerySession};
use crate::search::{ArtifactText, SearchService};

use grammar::Grammars;
use model::ModelReading;
pub use model::{ModelBackend, ModelReader, ModelSettings, ModelUse};
use values::Lookups;

/// The largest number of joining cubes in which the words of a question are looked up.
const MAX_JOINING: usize = 4;

/// The method of interpreting a question.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Method {
    /// The grammar; and the language model in the cases that the configuration states.
    #[default]
    Auto,
    Grammar,
    /// The language model; if it fails, the grammar.
    Model,
}

#[derive(Debug, Clone, Default)]
pub struct WordedQuestion {
    pub text: String,
    /// The code of the language; `None` for English.
    pub language: Option<String>,
    pub method: Method,
    /// True to run the query as well.
    pub runs: bool,
}

/// The reason why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error(transparent)]
    Question(#[from] QuestionError),
    #[error("unknown language `{name}`; expected `en` or `de`")]
    UnknownLanguage { name: String },
    #[error("no language model is configured; set `search.llm.url` and `search.llm.model` in service_project.yml")]
    NoModel,
    #[error(transparent)]
    Query(#[from] QueryRunError),
}

/// The answer to a question: its query.
#[derive(Debug)]
pub struct QuestionAnswer {
    /// The query; `None` if the question is unclear.
    pub query: Option<SemanticQuery>,
    pub reading: Interpretation,
    /// The name of the language model that wrote the query; `None` if the grammar did.
    pub model: Option<Arc<str>>,
    /// The reasons why the language model did not answer the question.
    pub warnings: Vec<String>,
    /// The rows; `None` if the caller did not request them.
    pub rows: Option<Answer>,
}

impl QuestionAnswer {
    fn of_grammar(query: Option<SemanticQuery>, reading: Interpretation) -> Self {
        QuestionAnswer { query, reading, model: None, warnings: Vec::new(), rows: None }
    }
}

/// Translates questions in plain language into queries.
pub struct QuestionService {
    queries: Arc<QueryService>,
    search: Arc<SearchService>,
    model: Option<ModelReader>,
    grammars: Grammars,
}

/// A question, with the session and the vocabulary of its caller.
struct QuestionInput<'a> {
    question: &'a WordedQuestion,
    language: &'static Language,
    request: &'a RequestContext,
    session: &'a QuerySession<'a>,
    access: &'a Access<'a>,
    artifacts: &'a [Arc<ArtifactText>],
}

impl QuestionService {
    /// Creates the use case. Without a `model`, the grammar interprets all questions.
    pub fn new(queries: Arc<QueryService>, search: Arc<SearchService>, model: Option<ModelReader>) -> Self {
        QuestionService { queries, search, model, grammars: Grammars::default() }
    }

    /// Interprets a question.
    ///
    /// # Errors
    /// The question is empty or too long, the language is unknown, the language model is requested but none is
    /// configured, or the warehouse does not answer a lookup of values.
    pub async fn ask(&self, question: &WordedQuestion, request: &RequestContext) -> Result<QuestionAnswer, AskError> {
        let code = question.language.as_deref().unwrap_or("en");
        let unknown = || AskError::UnknownLanguage { name: code.chars().take(20).collect() };
        let language = Language::named(code).ok_or_else(unknown)?;
        if question.method == Method::Model && self.model.is_none() {
            return Err(AskError::NoModel);
        }
        let context = request.with_kind(QueryKind::Explain);
        let session = self.queries.session(&context);
        let artifacts = self.search.visible(&session.shared_snapshot(), request).await;
        let access = Access::of(&session.snapshot().model, &request.caller);
        let asked =
            QuestionInput { question, language, request, session: &session, access: &access, artifacts: &artifacts };
        let (by_grammar, values) = self.by_grammar(&asked).await?;
        let answer = match self.model.as_ref().filter(|model| is_asked(model, question.method, &by_grammar)) {
            Some(model) => by_model(model, &asked, values, by_grammar).await?,
            None => by_grammar,
        };
        self.with_rows(question, request, answer).await
    }

    /// Interprets a question by the grammar. Also returns the values that were looked up.
    async fn by_grammar(&self, asked: &QuestionInput<'_>) -> Result<(QuestionAnswer, KnownValues), AskError> {
        let &QuestionInput { question, language, request, session, access, artifacts } = asked;
        let snapshot = session.shared_snapshot();
        let grammar = self.grammars.of(&question.text, language, snapshot, request, artifacts).await;
        let today = session.now().date();
        let mut values = Arc::<KnownValues>::default();
        let mut reading = grammar.read(&values, today).await?;
        let context = request.with_kind(QueryKind::Rest);
        let lookups = Lookups {
            session: &self.queries.session(&context),
            access,
            lists: self.search.lists(),
            snapshot: session.shared_snapshot(),
            request,
        };
        if !reading.lookups.is_empty() {
            let mut known = KnownValues::default();
            lookups.add_values(&reading, reading.cube.as_deref(), &mut known).await?;
            values = Arc::new(known);
            reading = grammar.read(&values, today).await?;
        }
        // Words that are no values of the question's cube may be values of a cube that joins it.
        if !reading.lookups.is_empty() && !reading.joining.is_empty() {
            let mut known = KnownValues::clone(&values);
            for cube in reading.joining.iter().take(MAX_JOINING) {
                lookups.add_values(&reading, Some(cube), &mut known).await?;
            }
            if known.values.len() > values.values.len() {
                values = Arc::new(known);
                reading = grammar.read(&values, today).await?;
            }
        }
        // The date of the newest row comes from a query of the caller. If policies forbid the query, the date is
        // unknown.
        if reading.is_dated {
            if let Some(newest) = lookups.newest(&reading).await? {
                reading = grammar.read(&values, newest.min(today)).await?;
                reading.note_end_of_data(newest, today);
            }
        } else if reading.is_relative()
            && lookups.has_newest_of_time(&reading)
            // The note is not needed for an answer.
            && let Ok(Some(newest)) = lookups.newest(&reading).await
        {
            reading.note_end_of_data(newest, today);
        }
        if reading.compares_dates()
            && lookups.has_newest_of_time(&reading)
            && let Ok(Some(oldest)) = lookups.oldest(&reading).await
        {
            reading.check_start_of_data(oldest);
        }
        let answer = if reading.clarifications.is_empty() {
            self.compiled(session, access, reading).await?
        } else {
            QuestionAnswer::of_grammar(None, reading)
        };
        Ok((answer, Arc::unwrap_or_clone(values)))
    }

    /// Adds the rows of the query, if the caller requests them.
    async fn with_rows(
        &self,
        question: &WordedQuestion,
        request: &RequestContext,
        answer: QuestionAnswer,
    ) -> Result<QuestionAnswer, AskError> {
        match &answer.query {
            Some(query) if question.runs => {
                let context = request.with_kind(QueryKind::Rest);
                let session = self.queries.session(&context);
                let rows = session.prepare(query).await?.run().await?;
                Ok(QuestionAnswer { rows: Some(rows), ..answer })
            }
            _ => Ok(answer),
        }
    }

    /// Returns the query of an interpretation, if it compiles for the caller.
    async fn compiled(
        &self,
        session: &QuerySession<'_>,
        access: &Access<'_>,
        mut reading: Interpretation,
    ) -> Result<QuestionAnswer, AskError> {
        let refused = match convert::query(access, &reading) {
            Ok(query) => match async { session.prepare(&query).await?.planned().await }.await {
                Ok(_) => return Ok(QuestionAnswer::of_grammar(Some(query), reading)),
                Err(QueryRunError::Query(error)) => error,
                Err(error) => return Err(error.into()),
            },
            Err(error) => error,
        };
        let message = refused.to_string();
        reading.confidence = 0.0;
        let choices = members_of(&reading.draft);
        reading.clarifications.push(Clarification { text: String::new(), message, choices });
        Ok(QuestionAnswer::of_grammar(None, reading))
    }
}

/// Returns the members of a draft that cannot be combined, as choices.
fn members_of(draft: &Draft) -> Vec<Arc<str>> {
    let groups = draft.groups.iter().map(|group| &group.member);
    let conditions = draft.filters.iter().chain(draft.alternatives.iter().flatten()).map(|filter| &filter.member);
    let named = draft.values.iter().chain(groups).chain(conditions);
    let mut members: Vec<Arc<str>> = Vec::new();
    for name in named.chain(&draft.segments) {
        if !members.contains(name) {
            members.push(Arc::clone(name));
        }
    }
    members
}

/// Returns whether the model is asked about a question after the grammar interpreted it.
fn is_asked(model: &ModelReader, method: Method, by_grammar: &QuestionAnswer) -> bool {
    match method {
        Method::Grammar => false,
        Method::Model => true,
        Method::Auto => model.settings().usage == ModelUse::Always || by_grammar.query.is_none(),
    }
}

/// Returns the members that are offered to the model.
async fn offered(asked: &QuestionInput<'_>, limit: usize) -> Vec<OfferedMember> {
    let &QuestionInput { question, request, session, artifacts, .. } = asked;
    let (snapshot, caller, artifacts) = (session.shared_snapshot(), request.caller.clone(), artifacts.to_vec());
    let text = question.text.clone();
    over_rows(artifacts.len() as u64, move || {
        vocabulary::offered(&Access::of(&snapshot.model, &caller), &artifacts, &text, limit)
    })
    .await
}

/// Interprets a question by the model. If the model has no answer, the grammar's answer is returned.
async fn by_model(
    model: &ModelReader,
    asked: &QuestionInput<'_>,
    values: KnownValues,
    mut by_grammar: QuestionAnswer,
) -> Result<QuestionAnswer, AskError> {
    let &QuestionInput { question, request, session, language, .. } = asked;
    let settings = model.settings();
    let values = values.values.into_iter().filter(|_| settings.sends_values);
    let members = offered(asked, settings.max_members).await;
    let asked = ModelQuestion {
        text: question.text.as_str().into(),
        language: language.code().into(),
        today: session.now().date(),
        members: members.into(),
        values: values.map(|found| OfferedValue { member: found.member, value: found.value }).collect(),
        refused: Vec::new(),
    };
    Ok(match model.read(asked, session, request).await? {
        ModelReading::Query(found) => QuestionAnswer {
            query: Some(found.query),
            reading: model::reading(&question.text, &found.words),
            model: Some(model.name().into()),
            warnings: Vec::new(),
            rows: None,
        },
        ModelReading::Unclear(clarification) if by_grammar.query.is_none() => {
            by_grammar.reading.clarifications.push(clarification);
            QuestionAnswer { model: Some(model.name().into()), ..by_grammar }
        }
        ModelReading::Unclear(clarification) => {
            by_grammar
                .warnings
                .push(format!("the language model finds the question unclear: {}", clarification.message));
            by_grammar
        }
        ModelReading::Problem(problem) => {
            by_grammar.warnings.push(problem.to_string());
            by_grammar
        }
    })
}
