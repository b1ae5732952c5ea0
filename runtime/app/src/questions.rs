//! The use case of questions in words.
//!
//! In: a question and its caller. Out: a query with the meaning of each word, or choices. The vocabulary consists of
//! the members that metadata lists for the caller, so names of other members are in no answer and no choice. A word
//! that is not a name may be a value. Such words are looked up among the values of dimensions with `meta.searchable`,
//! by a query of the caller, to which the caller's policies and limits apply. A query is compiled for the caller before
//! it is returned. It is run only if the caller requests rows. Absent: formats.
//!
//! ```text
//! question ─▶ grammar ─▶ query that compiles ───────────────────────▶ answer
//!                │ unclear, and a language model is configured             ▲
//!                └──▶ ModelReader ─▶ query that compiles ──────────────────┘
//! ```

mod convert;
mod model;
mod vocabulary;

use std::sync::Arc;

use arrow::array::{Array as _, AsArray as _};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use terrane_compiler::Access;
use terrane_compiler::query::SemanticQuery;
use terrane_questions::{
    Clarification, Interpretation, KnownValue, KnownValues, Language, QuestionError, SearchedWord, Vocabulary, read,
};

use crate::dimension_values::{ValuesOrder, ValuesRequest};
use crate::domain::{QueryKind, RequestContext};
use crate::ports::language_model::{ModelQuestion, OfferedValue};
use crate::query::{Answer, QueryRunError, QueryService, QuerySession};
use crate::search::{ArtifactText, SearchService};

use model::ModelReading;
pub use model::{ModelBackend, ModelReader, ModelSettings, ModelUse};

/// The largest number of words that are looked up as values.
const MAX_LOOKED_UP: usize = 4;
/// The largest number of dimensions whose values are looked up.
const MAX_DIMENSIONS: usize = 8;
/// The largest number of values that one lookup returns.
const MAX_VALUES: u64 = 20;

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

/// A question in words.
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

/// Turns questions in words into queries.
pub struct QuestionService {
    queries: Arc<QueryService>,
    search: Arc<SearchService>,
    model: Option<ModelReader>,
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
        QuestionService { queries, search, model }
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
        let vocabulary = Vocabulary::new(vocabulary::entries(access, artifacts), language);
        let today = session.now().date();
        let mut values = KnownValues::default();
        let mut reading = read(&question.text, &vocabulary, &values, language, today)?;
        if !reading.unknown.is_empty() {
            values = self.values(request, access, &reading).await?;
            if !values.searched.is_empty() || !values.values.is_empty() {
                reading = read(&question.text, &vocabulary, &values, language, today)?;
            }
        }
        let answer = if reading.clarifications.is_empty() {
            self.compiled(session, access, reading).await?
        } else {
            QuestionAnswer::of_grammar(None, reading)
        };
        Ok((answer, values))
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
        reading.clarifications.push(Clarification { text: String::new(), message, choices: Vec::new() });
        Ok(QuestionAnswer::of_grammar(None, reading))
    }

    /// Looks up each word without a meaning in the searchable dimensions, among the values that the caller may see.
    async fn values(
        &self,
        request: &RequestContext,
        access: &Access<'_>,
        reading: &Interpretation,
    ) -> Result<KnownValues, AskError> {
        let context = request.with_kind(QueryKind::Rest);
        let session = self.queries.session(&context);
        let dimensions = vocabulary::searchable(access, reading.cube.as_deref());
        let mut known = KnownValues::default();
        for text in reading.unknown.iter().take(MAX_LOOKED_UP) {
            for (cube, dimension) in dimensions.iter().take(MAX_DIMENSIONS) {
                let wanted = ValuesRequest {
                    cube,
                    dimension,
                    granularity: None,
                    search: Some(text),
                    order: ValuesOrder::ByValue,
                    limit: MAX_VALUES,
                };
                let query = wanted.query(access).map_err(QueryRunError::from)?;
                let answer = match async { session.prepare(&query).await?.run().await }.await {
                    Ok(answer) => answer,
                    // The dimension may be masked, so that it cannot be filtered, or a guardrail may forbid the lookup.
                    Err(QueryRunError::Query(_) | QueryRunError::Denied(_) | QueryRunError::Guardrail(_)) => continue,
                    Err(error) => return Err(error.into()),
                };
                let member: Arc<str> = format!("{cube}.{dimension}").into();
                let (mut rows, mut column) = (0, Vec::new());
                for batch in &answer.batches {
                    rows += batch.num_rows() as u64;
                    column.extend(batch.columns().first().and_then(|column| cast(column, &DataType::Utf8).ok()));
                }
                if rows < MAX_VALUES {
                    known.searched.push(SearchedWord { member: Arc::clone(&member), word: text.as_str().into() });
                }
                for values in &column {
                    let values = values.as_string::<i32>();
                    let present = (0..values.len()).filter(|row| values.is_valid(*row)).map(|row| values.value(row));
                    let named = present.filter(|value| !value.is_empty());
                    known
                        .values
                        .extend(named.map(|value| KnownValue { member: Arc::clone(&member), value: value.into() }));
                }
            }
        }
        Ok(known)
    }
}

/// Returns whether the model is asked about a question after the grammar interpreted it.
fn is_asked(model: &ModelReader, method: Method, by_grammar: &QuestionAnswer) -> bool {
    match method {
        Method::Grammar => false,
        Method::Model => true,
        Method::Auto => model.settings().usage == ModelUse::Always || by_grammar.query.is_none(),
    }
}

/// Interprets a question by the model. If the model has no answer, the grammar's answer is returned.
async fn by_model(
    model: &ModelReader,
    asked: &QuestionInput<'_>,
    values: KnownValues,
    mut by_grammar: QuestionAnswer,
) -> Result<QuestionAnswer, AskError> {
    let &QuestionInput { question, request, session, access, artifacts, language } = asked;
    let settings = model.settings();
    let values = values.values.into_iter().filter(|_| settings.sends_values);
    let members = vocabulary::offered(access, artifacts, &question.text, settings.max_members);
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
