//! The use case of questions in words.
//!
//! In: a question and its caller. Out: a query with the meaning of each word, or choices. The vocabulary is that of the
//! members that metadata lists for the caller, so names of others are in no answer and no choice. A word that is not a
//! name may be a value: the values of dimensions with `meta.searchable` are looked up by a query of the caller, within
//! its policies and limits. A query is compiled for the caller before it is returned. It runs if the rows are asked for.
//! Absent: formats.

mod convert;
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
use crate::query::{Answer, QueryRunError, QueryService, QuerySession};
use crate::search::SearchService;

/// Words that are looked up as values.
const MAX_LOOKED_UP: usize = 4;
/// Dimensions whose values are looked up.
const MAX_DIMENSIONS: usize = 8;
/// Values of one lookup.
const MAX_VALUES: u64 = 20;

/// A question in words.
#[derive(Debug, Clone, Default)]
pub struct WordedQuestion {
    pub text: String,
    /// The code of the language; `None`: English.
    pub language: Option<String>,
    /// Run the query too.
    pub runs: bool,
}

/// The reason why a question is not read.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error(transparent)]
    Question(#[from] QuestionError),
    #[error("unknown language `{name}`; expected `en` or `de`")]
    UnknownLanguage { name: String },
    #[error(transparent)]
    Query(#[from] QueryRunError),
}

/// The query of a question.
#[derive(Debug)]
pub struct QuestionAnswer {
    /// `None` if the question is unclear.
    pub query: Option<SemanticQuery>,
    pub reading: Interpretation,
    /// The rows, if they were asked for.
    pub rows: Option<Answer>,
}

/// Reads questions in words.
pub struct QuestionService {
    queries: Arc<QueryService>,
    search: Arc<SearchService>,
}

impl QuestionService {
    pub fn new(queries: Arc<QueryService>, search: Arc<SearchService>) -> Self {
        QuestionService { queries, search }
    }

    /// Reads a question.
    ///
    /// # Errors
    /// The question is empty or too long, the language is unknown, or the warehouse does not answer a lookup of values.
    pub async fn ask(&self, question: &WordedQuestion, request: &RequestContext) -> Result<QuestionAnswer, AskError> {
        let code = question.language.as_deref().unwrap_or("en");
        let unknown = || AskError::UnknownLanguage { name: code.chars().take(20).collect() };
        let language = Language::named(code).ok_or_else(unknown)?;
        let context = request.with_kind(QueryKind::Explain);
        let session = self.queries.session(&context);
        let artifacts = self.search.visible(&session.shared_snapshot(), request).await;
        let access = Access::of(&session.snapshot().model, &request.caller);
        let vocabulary = Vocabulary::new(vocabulary::entries(&access, &artifacts), language);
        let today = session.now().date();
        let mut reading = read(&question.text, &vocabulary, &KnownValues::default(), language, today)?;
        if !reading.unknown.is_empty() {
            let values = self.values(request, &access, &reading).await?;
            if !values.searched.is_empty() || !values.values.is_empty() {
                reading = read(&question.text, &vocabulary, &values, language, today)?;
            }
        }
        if !reading.clarifications.is_empty() {
            return Ok(QuestionAnswer { query: None, reading, rows: None });
        }
        let answer = self.compiled(&session, &access, reading).await?;
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

    /// Returns the query of a reading, if it compiles for the caller.
    async fn compiled(
        &self,
        session: &QuerySession<'_>,
        access: &Access<'_>,
        mut reading: Interpretation,
    ) -> Result<QuestionAnswer, AskError> {
        let refused = match convert::query(access, &reading) {
            Ok(query) => match async { session.prepare(&query).await?.planned().await }.await {
                Ok(_) => return Ok(QuestionAnswer { query: Some(query), reading, rows: None }),
                Err(QueryRunError::Query(error)) => error,
                Err(error) => return Err(error.into()),
            },
            Err(error) => error,
        };
        let message = refused.to_string();
        reading.clarifications.push(Clarification { text: String::new(), message, choices: Vec::new() });
        Ok(QuestionAnswer { query: None, reading, rows: None })
    }

    /// Looks up the words without a meaning among the values of searchable dimensions, as the caller sees them.
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
                    // A masked dimension cannot be filtered, and a guardrail may forbid to look values up.
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
