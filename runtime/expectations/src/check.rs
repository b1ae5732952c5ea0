//! Finds cases that cannot pass, without running queries.
//!
//! In: a project and its cases. Out: a diagnostic for each reason why a query that expects rows is refused, and for each
//! case that expects a refusal although its query is not refused. Also, a diagnostic for each SQL that the warehouse
//! cannot read, and for each expected key that the result does not have. Definitions with errors are missing in the
//! project; cases that depend on them are checked as far as possible. Not here: comparing rows (`run`).

use std::sync::Arc;

use terrane_app::catalog::Snapshot;
use terrane_app::ports::warehouse::WarehouseErrorKind;
use terrane_compiler::Authorized;
use terrane_compiler::diagnostic::Diagnostic;
use terrane_compiler::query::{QueryError, SemanticQuery};
use terrane_compiler::text::nearest::{MAX_NAMES, in_backticks, likely};

use crate::Subject;
use crate::expected::{Expected, problem, refused};
use crate::malformed::ReadableQuery;
use crate::names::{environment, place, report};
use crate::omissions::Omissions;
use crate::one_query::is_one_query;
use crate::parts::{Part, is_of_one_part, may_follow, separate};
use crate::read::Expectation;
use crate::refusal::{Refusal, compile, parse};
use crate::run::{by_hand, other_refusal};

/// The largest number of refusals that are reported for one query, besides those of single parts.
const MAX_REFUSALS: usize = 20;
/// The codes of refusals that depend on the model alone. Refusals with other codes may occur only when a query runs.
const MODEL_CODES: [&str; 4] = ["INVALID_MEASURE", "INVALID_DIMENSION", "INVALID_FILTER", "NO_JOIN_PATH"];

/// Problems of the project that were already reported, and that explain refusals of queries or SQL.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reported {
    /// A required hook cannot be used.
    pub has_hook: bool,
    /// The warehouse cannot read a cube, a model or a source, or did not answer about it.
    pub is_warehouse_incomplete: bool,
}

/// Returns a diagnostic for each problem because of which a case cannot pass. Problems that a missing definition of the
/// snapshot may explain are left out.
pub async fn check(
    subject: Subject<'_>,
    snapshot: &Snapshot,
    reported: Reported,
    cases: &[Expectation],
) -> Vec<Diagnostic> {
    let omissions = Omissions::new(&snapshot.model, &snapshot.definitions);
    let (mut problems, mut unknown) = (Vec::new(), Vec::new());
    for case in cases {
        let checker = Checker { subject, snapshot, omissions: &omissions, case };
        match checker.problems(reported, &mut problems).await {
            Ok(()) => {}
            Err(HookUnavailable) => unknown.push(case),
        }
    }
    problems.extend(hook_unavailable(&unknown).filter(|_| !reported.has_hook));
    problems
}

/// A required hook did not answer, so it is unknown whether a query is refused.
struct HookUnavailable;

/// The checks of one case.
struct Checker<'c> {
    subject: Subject<'c>,
    snapshot: &'c Snapshot,
    omissions: &'c Omissions<'c>,
    case: &'c Expectation,
}

impl Checker<'_> {
    async fn problems(&self, reported: Reported, problems: &mut Vec<Diagnostic>) -> Result<(), HookUnavailable> {
        let case = self.case;
        if let Expected::Error { code, contains } = &case.expected {
            return self.refusal(code, contains.as_deref(), problems).await;
        }
        let (keys, is_explained) = match &case.readable {
            Some(readable) => {
                let is_affected = self.omissions.affect(&readable.query);
                let keys = self.query(readable, is_affected, problems).await?;
                (keys, is_affected && reported.is_warehouse_incomplete)
            }
            None => (Vec::new(), reported.is_warehouse_incomplete),
        };
        match &case.expected {
            Expected::Sql(sql) => problems.extend(wrong_sql(self.subject, case, sql, &keys, is_explained).await),
            Expected::Rows(_) => problems.extend(unmatched_keys(case, &keys)),
            Expected::Error { .. } | Expected::Unread => {}
        }
        Ok(())
    }

    /// Checks that a query is refused as expected.
    async fn refusal(
        &self,
        code: &str,
        contains: Option<&str>,
        problems: &mut Vec<Diagnostic>,
    ) -> Result<(), HookUnavailable> {
        let case = self.case;
        let compiled = match parse(&case.query) {
            // A query without a body was already reported.
            _ if case.query.is_null() => return Ok(()),
            Ok(query) if self.omissions.affect(&query) => return Ok(()),
            Ok(query) => compile(self.subject, &case.caller, &query).await,
            Err(error) => Err(Refusal::from(error)),
        };
        if compiled.as_ref().is_err_and(|refusal| refusal.is_policy_unavailable) {
            return Err(HookUnavailable);
        }
        problems.extend(not_refused(case, compiled, code, contains));
        Ok(())
    }

    /// Reports each reason why a query is refused. Returns the keys of its result, which are empty if they are unknown.
    async fn query(
        &self,
        readable: &ReadableQuery,
        is_affected: bool,
        problems: &mut Vec<Diagnostic>,
    ) -> Result<Vec<Arc<str>>, HookUnavailable> {
        let case = self.case;
        let timezone = self.subject.queries.session(&case.caller).timezone().clone();
        let environment = environment(self.subject.clock.now(), timezone);
        let separated = {
            let authorized = Authorized::without_hooks(&self.snapshot.model, &case.caller.caller);
            separate(&authorized.access(), &readable.query, &environment)
        };
        report(case, separated.errors, self.omissions, problems);
        let (mut query, mut is_partial) = (separated.rest, readable.is_partial || separated.is_partial);
        for _ in 0..MAX_REFUSALS {
            let refusal = match compile(self.subject, &case.caller, &query).await {
                Ok(keys) => return Ok(if is_partial { Vec::new() } else { keys }),
                Err(refusal) => refusal,
            };
            if refusal.is_policy_unavailable {
                return Err(HookUnavailable);
            }
            let Some(error) = &refusal.error else {
                problems.extend((!is_affected).then(|| refused(&case.label(), &refusal).at(place(case, &refusal))));
                break;
            };
            let is_explained = !is_of_one_part(error) && (is_affected || is_partial && may_follow(error));
            if !is_explained {
                report(case, [(**error).clone()], self.omissions, problems);
            }
            let Some(cause) = self.cause(&query, error).await else { break };
            query = cause.left_out(&query);
            is_partial |= cause.is_needed();
        }
        Ok(Vec::new())
    }

    /// Returns a part of a query without which the query does not have this error.
    async fn cause(&self, query: &SemanticQuery, error: &QueryError) -> Option<Part> {
        for part in Part::all(query) {
            let other = part.left_out(query);
            if other == *query {
                continue;
            }
            let compiled = compile(self.subject, &self.case.caller, &other).await;
            if compiled.err().and_then(|refusal| refusal.error).is_none_or(|other| *other != *error) {
                return Some(part);
            }
        }
        None
    }
}

/// Returns one diagnostic for all cases whose queries could not be authorized by a required hook.
fn hook_unavailable(cases: &[&Expectation]) -> Option<Diagnostic> {
    let first = cases.first()?;
    let others = cases.len() - 1;
    let more = if others == 0 { String::new() } else { format!(" and of {others} more") };
    let message = format!("a required hook is unavailable for the query of {}{more}", first.label());
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
            format!("{} expects the refusal {code}, but its query is valid", case.label()),
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
            (format!("the query of {} has another refusal: {actual}: {message}", case.label()), hint)
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
    let message = format!("the result of {} has no key `{key}`, which {of} of the case have", case.label());
    let known: Vec<&str> = keys.iter().take(MAX_NAMES).map(|key| &**key).collect();
    let meant = likely(key, keys.iter().map(|key| &**key)).map(|meant| format!("Did you mean `{meant}`? "));
    problem(message, &format!("{}Available keys: {}.", meant.unwrap_or_default(), in_backticks(known)))
}

/// Returns a diagnostic if the warehouse cannot read the SQL of a case. Otherwise returns a diagnostic for each column
/// of the SQL that the query's result does not have.
/// A refusal of the SQL is not reported if a reported problem explains it.
async fn wrong_sql(
    subject: Subject<'_>,
    case: &Expectation,
    sql: &str,
    keys: &[Arc<str>],
    is_explained: bool,
) -> Vec<Diagnostic> {
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
        Err(error) if matches!(error.kind, WarehouseErrorKind::Refused) && !is_explained => {
            let message = format!("the warehouse cannot read the SQL of {}", case.label());
            let hint = "Write one SELECT for the project's warehouse.";
            vec![problem(message, hint).detail(error.message).at(case.expected_at.clone())]
        }
        Err(_) => Vec::new(),
    }
}
