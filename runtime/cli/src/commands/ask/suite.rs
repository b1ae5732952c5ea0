//! Measures a suite of questions: how many questions are read as meant, how many need a clarification, and how many are
//! read wrongly.
//!
//! In: a file of questions with the queries that they mean. Out: the figures, with the questions that are not read as
//! meant. Two queries are the same if they differ only in the order of their conditions, or in the notation of a
//! granularity or a range of time.

use std::path::Path;

use serde::Serialize;
use serde_json::Value as Json;
use terrane_app::query::RequestContext;
use terrane_app::questions::{AskError, QuestionService, WordedQuestion};
use terrane_compiler::query::{Filter, SemanticQuery, TimeDimension, TimeRange};
use terrane_compiler::types::Operator;
use terrane_terminal::TerminalText;
use terrane_wire::ErrorBody;
use terrane_wire::query::{from_wire, to_wire};

use super::super::query::refused;
use crate::failure::Failure;

/// The largest suite.
const MAX_QUESTIONS: usize = 10_000;

/// The figures of a suite.
#[derive(Debug, Default, Serialize)]
pub(super) struct Figures {
    questions: usize,
    right: usize,
    /// The questions for which a clarification is requested although a query is expected.
    unclear: Vec<UnclearQuestion>,
    pub(super) wrong: Vec<ReadWrongly>,
}

#[derive(Debug, Serialize)]
struct UnclearQuestion {
    question: String,
    reasons: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct ReadWrongly {
    question: String,
    /// Null if a clarification is expected.
    expected: Json,
    found: Json,
}

/// A question of a suite.
pub(super) struct Case {
    question: String,
    /// The queries that the question may mean; empty if a clarification is expected.
    expected: Vec<SemanticQuery>,
}

impl Figures {
    /// Returns a line for each question that is not read as meant.
    pub(super) fn listing(&self) -> String {
        let mut lines = String::new();
        for one in &self.unclear {
            let line = format!("unclear: {}: {}", one.question, one.reasons.join("; "));
            lines.push_str(&format!("{}\n", TerminalText::spaced(&line)));
        }
        for one in &self.wrong {
            let line = format!("wrong: {}: expected {}, found {}", one.question, one.expected, one.found);
            lines.push_str(&format!("{}\n", TerminalText::spaced(&line)));
        }
        lines
    }

    pub(super) fn summary(&self) -> String {
        let Figures { questions, right, unclear, wrong } = self;
        format!("{questions} questions: {right} right, {} unclear, {} wrong", unclear.len(), wrong.len())
    }
}

/// Compares the queries of questions with the expected ones. The questions have the language and the reader of `asked`.
///
/// # Errors
/// A governance hook or the warehouse does not answer.
pub(super) async fn measure(
    cases: Vec<Case>,
    asked: &WordedQuestion,
    service: &QuestionService,
    caller: &RequestContext,
) -> Result<Figures, Failure> {
    let mut figures = Figures::default();
    for case in cases {
        figures.questions += 1;
        let question = WordedQuestion { text: case.question.clone(), ..asked.clone() };
        let (found, reasons) = match service.ask(&question, caller).await {
            Ok(answer) => {
                let reasons = answer.reading.clarifications.iter().map(|one| one.message.clone());
                (answer.query, reasons.collect())
            }
            Err(error @ AskError::Question(_)) => (None, vec![error.to_string()]),
            Err(error) => return Err(refused(ErrorBody::from_question(error, caller.scopes))),
        };
        let is_expected = |found: &SemanticQuery| {
            let found = normalized(found);
            case.expected.iter().any(|expected| normalized(expected) == found)
        };
        match found {
            None if case.expected.is_empty() => figures.right += 1,
            None => figures.unclear.push(UnclearQuestion { question: case.question, reasons }),
            Some(found) if is_expected(&found) => figures.right += 1,
            Some(found) => {
                let expected = case.expected.first().map_or(Json::Null, shown);
                figures.wrong.push(ReadWrongly { question: case.question, expected, found: shown(&found) });
            }
        }
    }
    Ok(figures)
}

fn shown(query: &SemanticQuery) -> Json {
    serde_json::from_str(&to_wire(query)).unwrap_or(Json::Null)
}

/// Returns a query in the form in which queries are compared: as JSON, in which a number has one form.
fn normalized(query: &SemanticQuery) -> String {
    let mut query = query.clone();
    for dimension in std::mem::take(&mut query.dimensions) {
        let member = match (dimension.granularity, dimension.text.rsplit_once('.')) {
            (Some(_), Some((member, _))) => member.parse().ok(),
            _ => None,
        };
        match member {
            Some(member) => {
                query.time_dimensions.push(TimeDimension { member, granularity: dimension.granularity, range: None });
            }
            None => query.dimensions.push(dimension),
        }
    }
    if let Some(TimeRange { member: Some(member), granularity, range }) = query.time_range.clone() {
        query.time_range = None;
        query.time_dimensions.push(TimeDimension { member, granularity, range: Some(range) });
    }
    normalize(&mut query.filters);
    to_wire(&query)
}

/// Puts conditions in the form and in the order in which queries are compared.
fn normalize(filters: &mut [Filter]) {
    for filter in &mut *filters {
        match filter {
            Filter::Condition { operator, values, .. } => {
                *operator = match *operator {
                    Operator::InList if values.len() == 1 => Operator::Equals,
                    Operator::NotInList if values.len() == 1 => Operator::NotEquals,
                    Operator::Equals if values.len() > 1 => Operator::InList,
                    Operator::NotEquals if values.len() > 1 => Operator::NotInList,
                    other => other,
                };
            }
            Filter::And(parts) | Filter::Or(parts) => normalize(parts),
            Filter::Not(part) => normalize(std::slice::from_mut(&mut **part)),
            Filter::NoRow { .. } => {}
        }
    }
    filters.sort_by_key(|filter| format!("{filter:?}"));
}

/// Reads the questions of a file.
///
/// # Errors
/// The file is not a suite.
pub(super) fn cases(file: &Path) -> Result<Vec<Case>, Failure> {
    let name = file.display();
    let text =
        std::fs::read_to_string(file).map_err(|error| Failure::new(format!("{name} cannot be read: {error}")))?;
    let list: Json =
        serde_saphyr::from_str(&text).map_err(|error| Failure::new(format!("{name} is not YAML: {error}")))?;
    let entries = list.as_array().filter(|list| list.len() <= MAX_QUESTIONS);
    let entries = entries.ok_or_else(|| Failure::new(format!("{name} is not a list of at most 10000 questions")))?;
    entries.iter().enumerate().map(|(at, entry)| case(entry, &format!("{name}: entry {}", at + 1))).collect()
}

fn case(entry: &Json, place: &str) -> Result<Case, Failure> {
    let invalid = || {
        Failure::new(format!("{place} is not a question"))
            .hint("Write {question: ..., query: {...}} or {question: ..., clarification: true}.")
    };
    let question = entry["question"].as_str().ok_or_else(invalid)?.to_owned();
    let queries = match (entry.get("query"), entry.get("clarification")) {
        (Some(query @ Json::Object(_)), None) => std::slice::from_ref(query),
        (Some(Json::Array(queries)), None) if !queries.is_empty() => queries,
        (None, Some(Json::Bool(true))) => &[],
        _ => return Err(invalid()),
    };
    let read = |query: &Json| {
        let read = from_wire(query.to_string().as_bytes());
        read.map(|request| request.query)
            .map_err(|error| Failure::new(format!("{place}: {}", ErrorBody::from(error).message)))
    };
    Ok(Case { question, expected: queries.iter().map(read).collect::<Result<_, Failure>>()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> SemanticQuery {
        from_wire(text.as_bytes()).unwrap().query
    }

    #[test]
    fn equal_queries_may_be_written_differently() {
        let one = query(
            r#"{"measures": ["a.b"], "dimensions": ["a.t.month"], "filters": [
                {"member": "a.c", "operator": "equals", "value": "x"}, {"member": "a.d", "operator": "gt", "value": 1}]}"#,
        );
        let other = query(
            r#"{"measures": ["a.b"], "time_dimensions": [{"dimension": "a.t", "granularity": "month"}], "filters": [
                {"member": "a.d", "operator": "gt", "value": 1}, {"member": "a.c", "operator": "inList", "value": ["x"]}]}"#,
        );
        assert_eq!(normalized(&one), normalized(&other));
        assert_ne!(normalized(&one), normalized(&query(r#"{"measures": ["a.b"]}"#)));
    }
}
