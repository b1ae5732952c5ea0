//! The DAX language: text in, a bound query out.
//!
//! `text → lexer → tokens → parser → tree → bind → bound query`; each step reports all problems of its text at once.
//! Pure, like the compiler: no files, no clock, no environment, no async. Absent on purpose: SQL, HTTP, SOAP, results.

mod bind;
pub mod bound;
mod complete;
pub mod functions;
mod lexer;
pub mod listing;
mod names;
pub mod parser;
mod place;
pub mod plan;
mod print;
mod problem;
pub mod tree;
mod types;

pub use bind::{Bound, bind};
pub use complete::{Completion, CompletionKind, MAX_COMPLETIONS, complete};
pub use lexer::MAX_CHARACTERS;
pub use place::{Place, Position};
pub use problem::{Expected, Problem, ProblemCode, ProblemInText, ProblemKind, Shape};
pub use types::Type;

use terrane_compiler::Access;

/// Returns every problem of a query for a caller, in the order of their places.
///
/// The names of a query whose syntax is invalid are checked too, as far as its parts are known.
pub fn check(text: &str, access: &Access<'_>) -> Vec<Problem> {
    let parsed = parser::parse_query(text);
    let mut problems = parsed.problems;
    if !problems.iter().any(|problem| problem.code() == ProblemCode::Limit) {
        problems.extend(bind(&parsed.tree, access).problems);
    }
    problems.sort_by_key(|problem| problem.place);
    problems
}
