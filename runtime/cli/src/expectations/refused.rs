//! Expectations that can't come true, as the project's own model and the warehouse say without running a query.
//!
//! In: an engine, and expectations. Out: a diagnostic for each whose query would be refused where rows are expected,
//! or not refused as it is expected, and for SQL by hand that the warehouse can't read. Not here: what rows come
//! (`run`).

use terrane_app::ports::warehouse::WarehouseErrorKind;
use terrane_app::services::Services;
use terrane_compiler::diagnostic::{Diagnostic, Span};
use terrane_server::Refused;

use super::read::{Expectation, Expected, problem, would_be_refused};
use super::run::{by_hand, other_refusal};
use crate::caller;
use crate::wire;

/// Refusals that come of the model alone; others may come when a query runs.
const OF_THE_MODEL: [&str; 4] = ["INVALID_MEASURE", "INVALID_DIMENSION", "INVALID_FILTER", "NO_JOIN_PATH"];

/// What `terrane test` would fail for before it has rows.
pub async fn refused(engine: &Services, cases: &[Expectation]) -> Vec<Diagnostic> {
    let (mut problems, mut unjudged) = (Vec::new(), Vec::new());
    for case in cases {
        let parsed = wire::parse(&case.query.to_string());
        let is_query = parsed.is_ok();
        let compiled = match parsed {
            Ok(query) => wire::inline_sql(engine, &caller::operator(), &query).await,
            Err(refused) => Err(refused),
        };
        if compiled.as_ref().is_err_and(wire::is_hook_away) {
            unjudged.push(case);
            continue;
        }
        if let Expected::Error { code, contains } = &case.expected {
            problems.extend(not_refused(case, compiled, code, contains.as_deref()));
            continue;
        }
        // A body that no server would take has been told where it was read.
        if let Err(refused) = compiled.as_ref()
            && is_query
        {
            problems.push(would_be_refused(&case.name, refused).at(place(case, refused)));
        }
        if let Expected::Sql(sql) = &case.expected {
            problems.extend(unread(engine, case, sql).await);
        }
    }
    problems.extend(hook_away(&unjudged));
    problems
}

/// One for all cases whose queries a hook could not judge: nothing is wrong with them.
fn hook_away(cases: &[&Expectation]) -> Option<Diagnostic> {
    let first = cases.first()?;
    let others = cases.len() - 1;
    let more = if others == 0 { String::new() } else { format!(", and of {others} more") };
    let message = format!("a hook that is required could not judge the query of case `{}`{more}", first.name);
    let hint = "its fault stands on standard error; repair the plugin, or what the project says of it";
    Some(problem(message, hint).at(first.place.clone()))
}

fn not_refused(
    case: &Expectation,
    compiled: Result<String, Refused>,
    code: &str,
    contains: Option<&str>,
) -> Option<Diagnostic> {
    let (message, hint) = match compiled {
        Ok(_) if !OF_THE_MODEL.contains(&code) => return None,
        Ok(_) => (
            format!("case `{}` expects the refusal {code}, and its query would be answered", case.name),
            "expect `rows`, or ask for what is refused".to_owned(),
        ),
        Err(refused) => {
            other_refusal(&refused, code, contains)?;
            let cure = if refused.code == code {
                "expect words of that message".to_owned()
            } else {
                format!("expect it: `error: {{code: {}}}`", refused.code)
            };
            let said = format!("{}: {}", refused.code, refused.message);
            (format!("the query of case `{}` would be refused otherwise: {said}", case.name), cure)
        }
    };
    Some(problem(message, &hint).at(case.expected_at.clone()))
}

/// One SELECT by hand that the warehouse can't read. What else may be run can't be described everywhere.
async fn unread(engine: &Services, case: &Expectation, sql: &str) -> Option<Diagnostic> {
    let text = by_hand(sql).text.to_ascii_lowercase();
    let is_query = ["select", "with", "from", "values", "("].iter().any(|word| text.starts_with(word));
    if !is_query || text.contains(';') {
        return None;
    }
    let error = engine.warehouse.describe(by_hand(sql)).await.err()?;
    let message = format!("the SQL of case `{}` can't be read: {}", case.name, error.message);
    let is_refused = matches!(error.kind, WarehouseErrorKind::Refused);
    is_refused.then(|| problem(message, "it is one SELECT for the project's warehouse").at(case.expected_at.clone()))
}

/// Where the query has what the refusal names; else the case.
fn place(case: &Expectation, refused: &Refused) -> Span {
    let named = refused.message.split('`').skip(1).step_by(2);
    let word = |named: &str| case.words.iter().find(|(word, _)| **word == *named);
    named.into_iter().find_map(word).map_or_else(|| case.place.clone(), |(_, place)| place.clone())
}
