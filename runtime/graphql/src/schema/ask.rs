//! Questions in words.
//!
//! In: answers of the use case. Out: the fields that REST sends, under names in GraphQL's convention.

use async_graphql::{Context, Enum, SimpleObject};
use terrane_app::questions::{Method, WordedQuestion};
use terrane_wire::questions::{NaturalLanguageAnswer, QuestionResult};
use terrane_wire::{Code, ErrorBody};

use super::json::Json;
use super::request::state;
use crate::failure::Failure;

/// The method of interpreting a question.
#[derive(Enum, Clone, Copy, PartialEq, Eq)]
#[graphql(remote = "Method")]
pub(crate) enum AskMethod {
    /// The grammar, and the language model if the configuration enables it.
    Auto,
    Grammar,
    /// The language model, or the grammar if the model fails. Refused if no language model is configured.
    Model,
}

/// The query of a question, or choices.
#[derive(SimpleObject)]
pub(crate) struct QuestionReading {
    /// The query as `POST /api/v1/query` takes it; null if the question is unclear.
    query: Option<Json>,
    /// The meaning of each part of the question.
    interpretation: Vec<QuestionPart>,
    /// The share of the parts that have a sure meaning, 0–1.
    confidence: f64,
    /// Members that a part may mean besides the one that was taken.
    alternatives: Vec<QuestionAlternative>,
    /// The clarifications; empty if there is a query.
    clarifications: Vec<QuestionClarification>,
    /// The language model that returned the query or the clarification; null if the grammar did.
    model: Option<String>,
    /// Reasons why the language model did not read the question.
    warnings: Vec<String>,
    /// The rows; null if they were not requested.
    result: Option<QuestionRows>,
}

/// The members that a part of a question may mean.
#[derive(SimpleObject)]
pub(crate) struct QuestionAlternative {
    text: String,
    members: Vec<String>,
}

/// The rows of a question's query.
#[derive(SimpleObject)]
pub(crate) struct QuestionRows {
    /// One object for each row, keyed by column name. Decimals, and integers beyond 2^53, are strings.
    data: Json,
    sql: String,
    returned_rows: i64,
    total_rows: Option<i64>,
}

/// A part of a question, and its meaning.
#[derive(SimpleObject)]
pub(crate) struct QuestionPart {
    text: String,
    meaning: String,
}

/// A question to the caller.
#[derive(SimpleObject)]
pub(crate) struct QuestionClarification {
    /// The part that is unclear; empty for the whole question.
    text: String,
    message: String,
    /// Names of members, or words that replace the unclear part; best first.
    choices: Vec<String>,
}

/// Interprets a question, and runs its query if the rows are requested.
///
/// # Errors
/// Search is switched off, the question is invalid, or its query fails.
pub(crate) async fn ask(context: &Context<'_>, asked: WordedQuestion) -> Result<QuestionReading, Failure> {
    let state = state(context);
    state.count_items(0)?;
    let off = || ErrorBody::new(Code::NotFound, "search is switched off on this server");
    let questions = state.parts.services.questions.as_ref().ok_or_else(off)?;
    let request = &state.parts.context.request;
    let answer = questions.ask(&asked, request).await;
    let answer = answer.map_err(|error| ErrorBody::from_question(error, request.scopes))?;
    let body = NaturalLanguageAnswer::from(&answer);
    let choices = body.clarifications.iter().map(|one| one.choices.len()).sum();
    let members = body.alternatives.iter().map(|one| one.members.len()).sum();
    let items = |list: &str| match list {
        "interpretation" => Some(body.interpretation.len()),
        "clarifications" => Some(body.clarifications.len()),
        "choices" => Some(choices),
        "alternatives" => Some(body.alternatives.len()),
        "members" => Some(members),
        "warnings" => Some(body.warnings.len()),
        _ => None,
    };
    state.count(context, 1, &items)?;
    Ok(QuestionReading {
        query: (!body.query.is_null()).then(|| Json::text(body.query.to_string())),
        interpretation: body
            .interpretation
            .iter()
            .map(|part| QuestionPart { text: part.text.to_owned(), meaning: part.meaning.to_owned() })
            .collect(),
        confidence: body.confidence,
        alternatives: body
            .alternatives
            .iter()
            .map(|one| QuestionAlternative {
                text: one.text.to_owned(),
                members: one.members.iter().map(ToString::to_string).collect(),
            })
            .collect(),
        result: body.result.as_ref().map(QuestionRows::from),
        model: body.model.map(str::to_owned),
        warnings: body.warnings.to_vec(),
        clarifications: body
            .clarifications
            .iter()
            .map(|one| QuestionClarification {
                text: one.text.to_owned(),
                message: one.message.to_owned(),
                choices: one.choices.iter().map(|choice| choice.to_string()).collect(),
            })
            .collect(),
    })
}

impl From<&QuestionResult<'_>> for QuestionRows {
    fn from(result: &QuestionResult<'_>) -> Self {
        let count = |rows: u64| i64::try_from(rows).unwrap_or(i64::MAX);
        QuestionRows {
            data: Json::text(result.data.to_string()),
            sql: result.sql.to_owned(),
            returned_rows: count(result.returned_rows),
            total_rows: result.total_rows.map(count),
        }
    }
}
