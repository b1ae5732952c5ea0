//! Runs expectations against an engine.

use std::time::Duration;

use terrane_app::ports::warehouse::Statement;
use terrane_app::query::Answer;
use terrane_app::services::Services;
use terrane_compiler::diagnostic::Span;
use terrane_server::Refused;

use super::compare::{difference, listed};
use super::read::{Expectation, Expected};
use crate::caller;
use crate::rows::Rows;
use crate::wire;

/// How a case ended.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub name: String,
    pub description: Option<String>,
    pub place: Span,
    /// What differs; `None` is a pass.
    pub failure: Option<String>,
    /// The statement that was run, where there is one.
    pub sql: Option<String>,
    pub duration: Duration,
}

/// Runs one case. SQL by hand runs on the project's warehouse, by the operator's authority.
pub async fn run(engine: &Services, timeout: Duration, case: &Expectation) -> Outcome {
    let started = engine.clock.elapsed();
    let (failure, sql) = judge(engine, timeout, case).await;
    Outcome {
        name: case.name.clone(),
        description: case.description.clone(),
        place: case.place.clone(),
        failure,
        sql,
        duration: engine.clock.elapsed().saturating_sub(started),
    }
}

async fn judge(engine: &Services, timeout: Duration, case: &Expectation) -> (Option<String>, Option<String>) {
    let answer = match wire::parse(&case.query.to_string()) {
        Ok(query) => wire::run(engine, &caller::operator(), &query).await,
        Err(refusal) => Err(refusal),
    };
    let answer = match (answer, &case.expected) {
        (Ok(answer), Expected::Error { code, .. }) => {
            let text = format!("refusal {code} expected, {} rows came", answer.returned_rows);
            return (Some(text), Some(answer.sql));
        }
        (Ok(answer), _) => answer,
        (Err(refusal), Expected::Error { code, contains }) => {
            return (other_refusal(&refusal, code, contains.as_deref()), None);
        }
        (Err(refusal), _) => return (Some(format!("rows expected, refused: {}", described(&refusal))), None),
    };
    let found = match rows_difference(engine, timeout, case, &answer).await {
        Ok(found) => found,
        Err(problem) => Some(problem),
    };
    (found, Some(answer.sql))
}

async fn rows_difference(
    engine: &Services,
    timeout: Duration,
    case: &Expectation,
    answer: &Answer,
) -> Result<Option<String>, String> {
    let actual = Rows::of_answer(answer).map_err(|error| format!("{error:#}"))?;
    let expected = match &case.expected {
        Expected::Sql(sql) => {
            let by_hand = engine.warehouse.execute(by_hand(sql), timeout).await;
            let by_hand = by_hand.map_err(|error| format!("the SQL by hand failed: {error}"))?;
            Rows::of_statement(&by_hand.schema, &by_hand.batches).map_err(|error| format!("{error:#}"))?
        }
        Expected::Rows(rows) => listed(rows, &actual),
        Expected::Error { .. } => return Ok(None),
    };
    Ok(difference(&actual, &expected, case.is_ordered))
}

/// The statement that a case has written down.
pub(super) fn by_hand(sql: &str) -> Statement<'_> {
    Statement::plain(sql.trim().trim_end_matches(';'))
}

/// `None`: the refusal is the one expected.
pub(super) fn other_refusal(refusal: &Refused, code: &str, contains: Option<&str>) -> Option<String> {
    let has_text = contains.is_none_or(|text| refusal.message.contains(text));
    if refusal.code == code && has_text {
        return None;
    }
    let wanted = contains.map_or_else(|| code.to_owned(), |text| format!("{code} with `{text}` in its message"));
    Some(format!("another refusal\n  expected: {wanted}\n  actual:   {}", described(refusal)))
}

fn described(refusal: &Refused) -> String {
    let hint = wire::hint(refusal).map_or(String::new(), |hint| format!("\n            {hint}"));
    format!("{}: {}{hint}", refusal.code, refusal.message)
}
