//! Questions in words: bodies of requests, and queries with the meaning of each word as JSON.
//!
//! In: bodies; answers of `app::questions`. Out: questions, or a [`FieldError`]; the query as `POST /api/v1/query`
//! takes it.

use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Value as Json, json};
use terrane_app::query::Answer;
use terrane_app::questions::{Method, QuestionAnswer, WordedQuestion};

use crate::body::parse;
use crate::fields::{FieldError, Fields, Path};
use crate::json::{Numbers, write_objects};
use crate::query::to_wire;
use crate::schema;

pub(crate) const QUESTION: &[&str] = &["query", "language", "method", "run"];
const TEXT: &str = "a string like \"flights by carrier last month\"";
const LANGUAGE: &str = "`en` or `de`";
const METHOD: &str = "`auto`, `grammar` or `model`";

/// A question in words.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields, extend("required" = json!(["query"])))]
pub struct NaturalLanguageQuery {
    /// The question, at most 500 characters and 60 words.
    pub query: String,
    /// The language of the question: `en` (default) or `de`.
    #[schemars(schema_with = "languages")]
    pub language: Option<String>,
    /// The reader of the question: `auto` (default) is the grammar, and the language model as `search.llm` says; `model`
    /// fails without a language model.
    #[schemars(schema_with = "methods")]
    pub method: Option<String>,
    /// True to run the query and to add its rows. Default: false.
    pub run: Option<bool>,
}

fn languages(_: &mut SchemaGenerator) -> Schema {
    schema::words(&["en", "de"])
}

fn methods(_: &mut SchemaGenerator) -> Schema {
    schema::words(&["auto", "grammar", "model"])
}

/// The query of a question, or choices.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NaturalLanguageAnswer<'a> {
    /// The query as `POST /api/v1/query` takes it; null if the question is unclear.
    #[schemars(schema_with = "schema::any")]
    pub query: Json,
    /// The meaning of each part of the question, in its order. Words without influence on the query are left out.
    pub interpretation: Vec<QuestionPart<'a>>,
    /// The share of the parts that have a sure meaning, 0–1.
    pub confidence: f64,
    /// Members that a part may mean besides the one that was taken.
    pub alternatives: Vec<QuestionAlternative<'a>>,
    /// The clarifications; empty if there is a query.
    pub clarifications: Vec<QuestionClarification<'a>>,
    /// The language model that returned the query or the clarification; null if the grammar did.
    pub model: Option<&'a str>,
    /// Reasons why the language model did not read the question.
    pub warnings: &'a [String],
    /// Null if the rows were not asked for.
    pub result: Option<QuestionResult<'a>>,
}

/// The rows of a question's query.
#[derive(Debug, Serialize, JsonSchema)]
pub struct QuestionResult<'a> {
    /// One object for each row, keyed by column name. Decimals, and integers beyond 2^53, are strings.
    #[schemars(schema_with = "schema::any")]
    pub data: Json,
    pub sql: &'a str,
    pub returned_rows: u64,
    pub total_rows: Option<u64>,
}

/// A part of a question, and its meaning.
#[derive(Debug, Serialize, JsonSchema)]
pub struct QuestionPart<'a> {
    /// The text as the user wrote it.
    pub text: &'a str,
    pub meaning: &'a str,
}

/// The members that a part of a question may mean.
#[derive(Debug, Serialize, JsonSchema)]
pub struct QuestionAlternative<'a> {
    pub text: &'a str,
    pub members: &'a [Arc<str>],
}

/// A question to the caller.
#[derive(Debug, Serialize, JsonSchema)]
pub struct QuestionClarification<'a> {
    /// The part that is unclear; empty for the whole question.
    pub text: &'a str,
    pub message: &'a str,
    /// Names of members, or words that replace the unclear part; best first.
    pub choices: &'a [Arc<str>],
}

/// Reads the body of a question.
///
/// # Errors
/// Names the field that is missing, unknown or invalid.
pub fn question_from_wire(body: &[u8]) -> Result<WordedQuestion, FieldError> {
    let json = parse(body)?;
    let fields = Fields::new(&json, &Path::ROOT, "an object like {\"query\": \"flights by carrier\"}", QUESTION)?;
    let text = fields.required_string("query", TEXT)?.to_owned();
    let language = fields.string("language", LANGUAGE)?.map(str::to_owned);
    let method = match fields.string("method", METHOD)? {
        None | Some("auto") => Method::Auto,
        Some("grammar") => Method::Grammar,
        Some("model") => Method::Model,
        Some(other) => return Err(Path::ROOT.field("method").invalid_value(other, METHOD)),
    };
    Ok(WordedQuestion { text, language, method, runs: fields.boolean("run")? == Some(true) })
}

impl<'a> From<&'a QuestionAnswer> for NaturalLanguageAnswer<'a> {
    fn from(answer: &'a QuestionAnswer) -> Self {
        let reading = &answer.reading;
        let query = answer.query.as_ref().map(to_wire);
        let pieces = reading.pieces.iter();
        let unsure = reading.pieces.iter().filter(|piece| !piece.alternatives.is_empty());
        NaturalLanguageAnswer {
            model: answer.model.as_deref(),
            warnings: &answer.warnings,
            result: answer.rows.as_ref().map(QuestionResult::from),
            // The text of a query is JSON.
            query: query.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or(Json::Null),
            interpretation: pieces.map(|piece| QuestionPart { text: &piece.text, meaning: &piece.meaning }).collect(),
            confidence: reading.confidence,
            alternatives: unsure
                .map(|piece| QuestionAlternative { text: &piece.text, members: &piece.alternatives })
                .collect(),
            clarifications: reading
                .clarifications
                .iter()
                .map(|one| QuestionClarification { text: &one.text, message: &one.message, choices: &one.choices })
                .collect(),
        }
    }
}

impl<'a> From<&'a Answer> for QuestionResult<'a> {
    fn from(answer: &'a Answer) -> Self {
        let mut rows = vec![b'['];
        write_objects(&answer.columns, &answer.batches, Numbers::Exact, &mut rows);
        rows.push(b']');
        QuestionResult {
            // The writer of rows writes JSON.
            data: serde_json::from_slice(&rows).unwrap_or(Json::Null),
            sql: &answer.sql,
            returned_rows: answer.returned_rows,
            total_rows: answer.total_rows,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

    use super::*;

    #[test]
    fn bodies_are_read_strictly() {
        assert_eq!(question_from_wire(br#"{"query": "flights", "language": "de"}"#).unwrap().text, "flights");
        assert!(question_from_wire(b"{}").is_err());
        assert_eq!(question_from_wire(br#"{"query": "a", "method": "model"}"#).unwrap().method, Method::Model);
        let wrong_method = r#"{"query": "a", "method": "sql"}"#;
        for (body, field) in
            [(wrong_method, "method"), (r#"{"query": 1}"#, "query"), (r#"{"query": "a", "lang": "en"}"#, "lang")]
        {
            let error = crate::ErrorBody::from(question_from_wire(body.as_bytes()).unwrap_err()).into_json("");
            assert_eq!(error["error"]["details"]["field"], field, "{body}");
        }
    }
}
