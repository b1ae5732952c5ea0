//! Runs cases against a project.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use terrane_app::data_check::plural;
use terrane_app::ports::warehouse::{Statement, WarehouseError};
use terrane_app::query::{Answer, CacheControl, QueryRunError};
use terrane_compiler::diagnostic::{Diagnostic, Span};
use terrane_compiler::query::PreAggregations;

use crate::compare::{Difference, difference, listed};
use crate::expected::Expected;
use crate::read::Expectation;
use crate::refusal::{Refusal, hint, parse};
use crate::{Rows, Subject};

/// The result of one case.
#[derive(Debug, Clone)]
pub struct ExpectationOutcome {
    pub name: String,
    pub description: Option<String>,
    pub place: Span,
    /// The difference from the expectation; `None` if the case passed.
    pub mismatch: Option<Mismatch>,
    /// The statement that was run, if any.
    pub sql: Option<String>,
    pub duration: Duration,
}

/// A reason why a case fails.
#[derive(Debug, Clone)]
pub enum Mismatch {
    /// The query returned rows instead of the expected refusal.
    Answered { expected_code: String, rows: u64 },
    /// The query was refused instead of returning rows.
    Refused(Box<Refusal>),
    /// The query was refused, but not for the expected reason.
    OtherRefusal { expected_code: String, expected_text: Option<String>, actual: Box<Refusal> },
    /// The statement of the case failed.
    Sql(WarehouseError),
    /// The rows differ from those expected.
    Rows(Difference),
    /// Rows that were read from tables of pre-aggregations differ from those expected.
    StoredRows(Difference, Vec<ReadTables>),
    /// Values of a dimension violate its test, or could not be checked.
    Values(Diagnostic),
    /// Rows could not be read back from the server's JSON, which is a bug.
    Encoding(String),
}

/// The tables of a pre-aggregation that answered a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadTables {
    pub cube: Arc<str>,
    pub name: Arc<str>,
    /// The time at which the oldest table was read from the cube.
    pub built_at: Timestamp,
}

/// Runs one case. Its SQL runs on the project's warehouse with the operator's privileges.
pub async fn run(subject: Subject<'_>, timeout: Duration, case: &Expectation) -> ExpectationOutcome {
    let started = subject.clock.elapsed();
    let (mismatch, sql) = evaluate(subject, timeout, case).await;
    ExpectationOutcome {
        name: case.name.clone(),
        description: case.description.clone(),
        place: case.place.clone(),
        mismatch,
        sql,
        duration: subject.clock.elapsed().saturating_sub(started),
    }
}

async fn evaluate(subject: Subject<'_>, timeout: Duration, case: &Expectation) -> (Option<Mismatch>, Option<String>) {
    let answer = match parse(&case.query) {
        Ok(mut query) => {
            if case.query.get("pre_aggregations").is_none() {
                query.pre_aggregations = PreAggregations::Off;
            }
            let session = subject.queries.session(&case.caller);
            // A server may have older results and tables, while the SQL of the case reads the newest rows.
            let newest = CacheControl { bypass: true, ..CacheControl::default() };
            async { session.prepare(&query).await?.with_cache(newest).run().await }.await.map_err(Refusal::from)
        }
        Err(error) => Err(Refusal::from(error)),
    };
    let answer = match (answer, &case.expected) {
        (Ok(answer), Expected::Error { code, .. }) => {
            let mismatch = Mismatch::Answered { expected_code: code.clone(), rows: answer.returned_rows };
            return (Some(mismatch), Some(answer.sql));
        }
        (Ok(answer), _) => answer,
        (Err(refusal), Expected::Error { code, contains }) => {
            return (other_refusal(refusal, code, contains.as_deref()), None);
        }
        (Err(refusal), _) => return (Some(Mismatch::Refused(Box::new(refusal))), None),
    };
    let mismatch = rows_mismatch(subject, timeout, case, &answer).await.unwrap_or_else(Some);
    (mismatch, Some(answer.sql))
}

async fn rows_mismatch(
    subject: Subject<'_>,
    timeout: Duration,
    case: &Expectation,
    answer: &Answer,
) -> Result<Option<Mismatch>, Mismatch> {
    let encoding = |error: serde_json::Error| Mismatch::Encoding(error.to_string());
    let actual = Rows::of_answer(answer).map_err(encoding)?;
    let expected = match &case.expected {
        Expected::Sql(sql) => {
            let statement = subject.warehouse.execute(by_hand(sql), timeout);
            let refused = |error: QueryRunError| Mismatch::Refused(Box::new(Refusal::from(error)));
            let by_hand = subject.queries.admitted(statement).await.map_err(refused)?.map_err(Mismatch::Sql)?;
            Rows::of_statement(&by_hand.schema, &by_hand.batches).map_err(encoding)?
        }
        Expected::Rows(rows) => listed(rows, &actual),
        Expected::Error { .. } | Expected::Unread => return Ok(None),
    };
    let tables = read_tables(answer);
    Ok(difference(&actual, &expected, case.order).map(|difference| match tables.is_empty() {
        true => Mismatch::Rows(difference),
        false => Mismatch::StoredRows(difference, tables),
    }))
}

fn read_tables(answer: &Answer) -> Vec<ReadTables> {
    let served = answer.pre_aggregations.iter().filter_map(|fact| Some((&fact.cube, fact.served.as_ref()?)));
    let tables = served.map(|(cube, served)| ReadTables {
        cube: Arc::clone(cube),
        name: Arc::clone(&served.rollup),
        built_at: served.built_at,
    });
    tables.collect()
}

/// Returns the statement of a case.
pub(crate) fn by_hand(sql: &str) -> Statement<'_> {
    Statement::plain(sql.trim().trim_end_matches(';'))
}

/// Returns a mismatch if the code of a refusal is not `code`, or its message does not contain `contains`.
pub(crate) fn other_refusal(refusal: Refusal, code: &str, contains: Option<&str>) -> Option<Mismatch> {
    let has_text = contains.is_none_or(|text| refusal.body.message.contains(text));
    if refusal.body.code.as_str() == code && has_text {
        return None;
    }
    Some(Mismatch::OtherRefusal {
        expected_code: code.to_owned(),
        expected_text: contains.map(str::to_owned),
        actual: Box::new(refusal),
    })
}

impl Mismatch {
    /// Returns whether the case was not checked: its SQL or its query could not run. It may be valid.
    pub fn is_unchecked(&self) -> bool {
        // The statuses of timeouts, limits and faults of the server or the warehouse.
        let is_temporary = |refusal: &Refusal| matches!(refusal.body.code.status(), 408 | 429 | 500..);
        match self {
            Mismatch::Refused(refusal) => is_temporary(refusal),
            Mismatch::OtherRefusal { actual, .. } => is_temporary(actual),
            Mismatch::Sql(_) | Mismatch::Encoding(_) => true,
            Mismatch::Values(problem) => !problem.is_error(),
            Mismatch::Answered { .. } | Mismatch::Rows(_) => false,
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::Answered { expected_code, rows } => {
                write!(f, "expected the refusal {expected_code}, found {}", plural(*rows, "row"))
            }
            Mismatch::Refused(refusal) => write!(f, "expected rows, found a refusal: {refusal}"),
            Mismatch::OtherRefusal { expected_code, expected_text, actual } => {
                write!(f, "another refusal\n  expected: {expected_code}")?;
                if let Some(text) = expected_text {
                    write!(f, " with `{text}` in its message")?;
                }
                write!(f, "\n  actual:   {actual}")
            }
            Mismatch::Sql(error) => write!(f, "the SQL of the case failed: {error}"),
            Mismatch::Rows(difference) => difference.fmt(f),
            Mismatch::StoredRows(difference, tables) => {
                difference.fmt(f)?;
                for ReadTables { cube, name, built_at } in tables {
                    write!(f, "\n  rows of pre-aggregation `{cube}.{name}`, as old as {built_at}")?;
                }
                f.write_str(
                    "\n  Build it, or write `pre_aggregations: off` in the query to compare the rows of the cube.",
                )
            }
            Mismatch::Values(problem) => {
                write!(f, "{}", problem.full_message())
            }
            Mismatch::Encoding(error) => write!(f, "could not read the server's JSON: {error}"),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.body.code.as_str(), self.body.message)?;
        hint(&self.body).map_or(Ok(()), |hint| write!(f, "\n            {hint}"))
    }
}
