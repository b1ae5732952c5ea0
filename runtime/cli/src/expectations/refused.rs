//! Expectations whose queries the project's own model refuses.
//!
//! In: an engine, and expectations. Out: a diagnostic for each that can't come true: its query has rows expected of
//! it, and would be refused. Nothing is run. Not here: what rows come (`run`).

use terrane_app::query::RequestContext;
use terrane_compiler::diagnostic::{Diagnostic, Span};
use terrane_server::Refused;

use super::read::{Expectation, Expected, would_be_refused};
use crate::wire;
use crate::wiring::Engine;

/// What `terrane test` would fail for before it has asked the warehouse.
pub async fn refused(engine: &Engine, cases: &[Expectation]) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    for case in cases.iter().filter(|case| !matches!(case.expected, Expected::Error { .. })) {
        // A body that no server would take has been told where it was read.
        let Ok(query) = wire::parse(&case.query.to_string()) else { continue };
        if let Err(refused) = wire::inline_sql(engine, &RequestContext::default(), &query).await {
            problems.push(would_be_refused(&case.name, &refused).at(place(case, &refused)));
        }
    }
    problems
}

/// Where the query has what the refusal names; else the case.
fn place(case: &Expectation, refused: &Refused) -> Span {
    let named = refused.message.split('`').skip(1).step_by(2);
    let word = |named: &str| case.words.iter().find(|(word, _)| **word == *named);
    named.into_iter().find_map(word).map_or_else(|| case.place.clone(), |(_, place)| place.clone())
}
