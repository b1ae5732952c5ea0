//! The DAX language: text in, bound queries and their plans out.
//!
//! The stages are `text → tokens → parse → tree → bind → BoundQuery → plan → SemanticPlan`. Parsing and binding report
//! all problems at once. The crate is pure, like the compiler: no files, no clock, no environment, no async. Not here:
//! SQL, HTTP, SOAP, results.

mod bind;
pub mod bound;
mod complete;
pub mod evaluate;
pub mod functions;
mod lexer;
pub mod listing;
mod names;
pub mod parser;
mod place;
pub mod plan;
mod print;
mod problem;
mod spelling;
pub mod tree;
mod types;

use terrane_compiler::Access;

pub use bind::{Bound, bind};
pub use complete::{Completion, CompletionKind, MAX_COMPLETIONS, complete};
pub use lexer::MAX_CHARACTERS;
pub use place::{Place, Position};
pub use problem::{Expected, ExpressionForm, Problem, ProblemCode, ProblemInText, ProblemKind};
pub use types::Type;

/// The largest number of `EVALUATE` statements in a query.
pub const MAX_EVALUATIONS: usize = 100;

/// Parses and binds a query for a caller. The result contains all problems, in the order of their places.
///
/// If the syntax of a query is invalid, the names in its valid parts are still checked.
pub fn read(text: &str, access: &Access<'_>) -> Bound {
    let parsed = parser::parse_query(text);
    let is_refused = parsed.problems.iter().any(|problem| problem.code() == ProblemCode::Limit);
    let mut bound = if is_refused { Bound::default() } else { bind(&parsed.tree, access) };
    bound.problems.extend(parsed.problems);
    if let Some(evaluation) = bound.query.evaluations.get(MAX_EVALUATIONS) {
        let kind = ProblemKind::TooManyEvaluations { limit: MAX_EVALUATIONS };
        bound.problems.push(Problem::new(kind, evaluation.place));
    }
    bound.problems.sort_by_key(|problem| problem.place);
    bound
}
