//! A project's own expectations: queries of `tests/*.yml` with the rows, the SQL by hand or the refusal
//! that must come of them.
//!
//! In: a project's files and an engine. Out: one [`Outcome`] a case. Rows are compared as the JSON that
//! the server would send. Not here: printing them (`commands::test`).

mod compare;
mod numbers;
mod read;
mod refused;
mod run;

pub use compare::difference;
pub use read::{Expectation, Expected, FOLDER, read};
pub use refused::refused;
pub use run::{Outcome, run};
