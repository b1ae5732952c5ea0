//! Finds mistakes in single parts of the queries of cases, such as unknown names, without a warehouse.
//!
//! In: a model, the definitions that it was built from, and cases. Out: a diagnostic for each part of a query that is
//! refused. A name is not reported if its definition was left out of the model, because the reason for that was already
//! reported. Not here: refusals for other reasons (`check`).

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use terrane_app::query::QueryRunError;
use terrane_compiler::diagnostic::{Diagnostic, Span};
use terrane_compiler::model::Model;
use terrane_compiler::project::Definitions;
use terrane_compiler::query::QueryError;
use terrane_compiler::{Authorized, Environment};

use crate::expected::refused;
use crate::omissions::Omissions;
use crate::parts::separate;
use crate::read::Expectation;
use crate::refusal::Refusal;

/// Returns a diagnostic for each refused part of queries that expect rows.
pub fn check_names(model: &Model, definitions: &Definitions, cases: &[Expectation]) -> Vec<Diagnostic> {
    let omissions = Omissions::new(model, definitions);
    let environment = environment(Timestamp::UNIX_EPOCH, TimeZone::UTC);
    let mut problems = Vec::new();
    for case in cases {
        let Some(readable) = &case.readable else { continue };
        let authorized = Authorized::without_hooks(model, &case.caller.caller);
        let separated = separate(&authorized.access(), &readable.query, &environment);
        // The current time is unknown here.
        let errors = separated.errors.into_iter().filter(|error| !matches!(error, QueryError::ReversedRange { .. }));
        report(case, errors, &omissions, &mut problems);
    }
    problems
}

/// Adds a diagnostic for each error that is not about an omitted name. Each is added once for a case.
pub(crate) fn report(
    case: &Expectation,
    errors: impl IntoIterator<Item = QueryError>,
    omissions: &Omissions<'_>,
    problems: &mut Vec<Diagnostic>,
) {
    for error in errors.into_iter().filter(|error| !omissions.explain(error)) {
        let refusal = Refusal::from(QueryRunError::Query(error));
        let problem = refused(&case.label(), &refusal).at(place(case, &refusal));
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }
}

/// Returns an environment for resolving the parts of queries, whose limits are checked elsewhere.
pub(crate) fn environment(now: Timestamp, default_timezone: TimeZone) -> Environment {
    Environment {
        now,
        zones: TimeZoneDatabase::bundled(),
        default_timezone,
        default_limit: 1,
        max_limit: u64::MAX,
        limit_advice: "",
        rollups: Arc::default(),
    }
}

/// Returns the place in the query that a refusal is about, or else the place of the case.
pub(crate) fn place(case: &Expectation, refusal: &Refusal) -> Span {
    let word = |subject: &str| case.words.iter().find(|(word, _)| **word == *subject);
    let found = refusal.subjects.iter().find_map(|subject| word(subject));
    found.map_or_else(|| case.place.clone(), |(_, place)| place.clone())
}
