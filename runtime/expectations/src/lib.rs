//! The expectations of a project: queries of `tests/*.yml` with their expected rows, SQL or refusal, and tests of
//! dimensions.
//!
//! In: the files of a project and its use cases ([`Subject`]). Out: one [`ExpectationOutcome`] per case from [`run`],
//! or diagnostics for cases that cannot pass from [`check`] and [`check_names`]. Rows are compared as the JSON that the
//! server sends. Not here: finding the files, printing outcomes (cli).

mod check;
mod compare;
mod dimension_test;
mod expected;
mod json_of_yaml;
mod malformed;
mod names;
mod numbers;
mod omissions;
mod one_query;
mod parts;
mod read;
mod refusal;
mod rows;
mod run;
pub mod schema;

pub use check::{Reported, check};
pub use compare::{Difference, Row, RowOrder, difference};
pub use dimension_test::run_dimension_test;
pub use expected::Expected;
pub use names::check_names;
pub use read::{Expectation, FOLDER, read};
pub use refusal::{Refusal, hint};
pub use rows::Rows;
pub use run::{ExpectationOutcome, Mismatch, ReadTables, run};

use terrane_app::ports::clock::Clock;
use terrane_app::ports::warehouse::Warehouse;
use terrane_app::query::QueryService;

/// The project under test.
#[derive(Clone, Copy)]
pub struct Subject<'s> {
    pub queries: &'s QueryService,
    /// Runs the SQL of cases, with the operator's privileges.
    pub warehouse: &'s dyn Warehouse,
    pub clock: &'s dyn Clock,
}
