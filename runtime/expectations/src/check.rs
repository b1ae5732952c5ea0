//! Finds cases that cannot pass, without running queries.
//!
//! In: a project and its cases. Out: a diagnostic for each case that expects rows although its query is refused, or
//! expects a refusal although its query is not refused. Also, a diagnostic for each SQL that the warehouse cannot read,
//! and for each expected key that the result does not have. Not here: comparing rows (`run`).

use std::sync::Arc;

use terrane_app::ports::warehouse::WarehouseErrorKind;
use terrane_compiler::diagnostic::{Diagnostic, Span};
use terrane_compiler::text::nearest::{MAX_NAMES, in_backticks, likely};

use crate::Subject;
use crate::expected::{Expected, problem};
use crate::one_query::is_one_query;
use crate::read::{Expectation, refused_problem};
use crate::refusal::{Refusal, compile, parse};
use crate::run::{by_hand, other_refusal};

/// The codes of refusals that depend on the model alone. Refusals with other codes may occur only when a query runs.
const MODEL_CODES: [&str; 4] = ["INVALID_MEASURE", "INVALID_DIMENSION", "INVALID_FILTER", "NO_JOIN_PATH"];

/// Returns a diagnostic for each case that cannot pass.
pub async fn check(subject: Subject<'_>, cases: &[Expectation]) -> Vec<Diagnostic> {
    let (mut problems, mut unknown) = (Vec::new(), Vec::new());
    for case in cases {
        let (compiled, is_query) = match parse(&case.query) {
            Ok(query) => (compile(subject, &case.caller, &query).await, true),
            Err(error) => (Err(Refusal::from(error)), false),
        };
        if compiled.as_ref().is_err_and(|refusal| refusal.is_policy_unavailable) {
            unknown.push(case);
            continue;
        }
        if let Expected::Error { code, contains } = &case.expected {
            problems.extend(not_refused(case, compiled, code, contains.as_deref()));
            continue;
        }
        // A body that is not a query was already reported when the file was read.
        if let Err(refusal) = &compiled
            && is_query
        {
            problems.push(refused_problem(&case.name, refusal).at(place(case, refusal)));
        }
        let keys = compiled.unwrap_or_default();
        match &case.expected {
            Expected::Sql(sql) => problems.extend(wrong_sql(subject, case, sql, &keys).await),
            Expected::Rows(_) => problems.extend(unmatched_keys(case, &keys)),
            Expected::Error { .. } => {}
        }
    }
    problems.extend(hook_unavailable(&unknown));
    problems
}

/// Returns one diagnostic for all cases whose queries could not be authorized by a required hook.
fn hook_unavailable(cases: &[&Expectation]) -> Option<Diagnostic> {
    let first = cases.first()?;
    let others = cases.len() - 1;
    let more = if others == 0 { String::new() } else { format!(" and of {others} more") };
    let message = format!("a required hook is unavailable for the query of case `{}`{more}", first.name);
    let hint = "Standard error shows the fault of the hook. Repair the plugin, or its configuration in the project.";
    Some(problem(message, hint).at(first.place.clone()))
}

fn not_refused(
    case: &Expectation,
    compiled: Result<Vec<Arc<str>>, Refusal>,
    code: &str,
    contains: Option<&str>,
) -> Option<Diagnostic> {
    let (message, hint) = match compiled {
        Ok(_) if !MODEL_CODES.contains(&code) => return None,
        Ok(_) => (
            format!("case `{}` expects the refusal {code}, but its query is valid", case.name),
            "Expect `rows`, or change the query.".to_owned(),
        ),
        Err(refusal) => {
            let (actual, message) = (refusal.body.code.as_str(), refusal.body.message.clone());
            other_refusal(refusal, code, contains)?;
            let hint = if actual == code {
                "Expect a part of that message.".to_owned()
            } else {
                format!("Expect that refusal: `error: {{code: {actual}}}`.")
            };
            (format!("the query of case `{}` has another refusal: {actual}: {message}", case.name), hint)
        }
    };
    Some(problem(message, &hint).at(case.expected_at.clone()))
}

/// Returns a diagnostic for each key of the expected rows that the result does not have. `keys` are the keys of the
/// result. They are empty if the query is refused; then nothing is reported.
fn unmatched_keys(case: &Expectation, keys: &[Arc<str>]) -> Vec<Diagnostic> {
    let unmatched = case.row_keys.iter().filter(|(key, _)| !keys.is_empty() && !keys.contains(key));
    unmatched.map(|(key, place)| unmatched_key(case, "the rows", key, keys).at(place.clone())).collect()
}

fn unmatched_key(case: &Expectation, of: &str, key: &str, keys: &[Arc<str>]) -> Diagnostic {
    let message = format!("the result of case `{}` has no key `{key}`, which {of} of the case have", case.name);
    let known: Vec<&str> = keys.iter().take(MAX_NAMES).map(|key| &**key).collect();
    let meant = likely(key, keys.iter().map(|key| &**key)).map(|meant| format!("Did you mean `{meant}`? "));
    problem(message, &format!("{}Available keys: {}.", meant.unwrap_or_default(), in_backticks(known)))
}

/// Returns a diagnostic if the warehouse cannot read the SQL of a case. Otherwise returns a diagnostic for each column
/// of the SQL that the query's result does not have.
async fn wrong_sql(subject: Subject<'_>, case: &Expectation, sql: &str, keys: &[Arc<str>]) -> Vec<Diagnostic> {
    if !is_one_query(sql) {
        // SQL that is not one query was already reported when the file was read.
        return Vec::new();
    }
    match subject.warehouse.describe(by_hand(sql)).await {
        Ok(schema) if !keys.is_empty() => {
            let columns = schema.fields().iter().map(|field| field.name().as_str());
            let unmatched = columns.filter(|column| !keys.iter().any(|key| **key == **column));
            unmatched
                .map(|column| unmatched_key(case, "the columns", column, keys).at(case.expected_at.clone()))
                .collect()
        }
        Ok(_) => Vec::new(),
        Err(error) if matches!(error.kind, WarehouseErrorKind::Refused) => {
            let message = format!("the warehouse cannot read the SQL of case `{}`", case.name);
            let hint = "Write one SELECT for the project's warehouse.";
            vec![problem(message, hint).detail(error.message).at(case.expected_at.clone())]
        }
        Err(_) => Vec::new(),
    }
}

/// Returns the place in the query that a refusal is about, or else the place of the case.
pub(crate) fn place(case: &Expectation, refusal: &Refusal) -> Span {
    let word = |subject: &str| case.words.iter().find(|(word, _)| **word == *subject);
    let found = refusal.subjects.iter().find_map(|subject| word(subject));
    found.map_or_else(|| case.place.clone(), |(_, place)| place.clone())
}
