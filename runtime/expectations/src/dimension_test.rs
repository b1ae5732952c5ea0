//! Runs the tests of dimensions.
//!
//! In: a test of a project's dimension. Out: an outcome of the same type as that of a case. Not here: the test's
//! statements (compiler), and the description of rows that violate the test (`app::data_check`).

use std::sync::Arc;
use std::time::Duration;

use terrane_app::catalog::Snapshot;
use terrane_app::data_check::DimensionTestRun;
use terrane_compiler::diagnostic::Span;

use crate::Subject;
use crate::run::{ExpectationOutcome, Mismatch};

/// Runs one test with the operator's privileges.
pub async fn run_dimension_test(
    subject: Subject<'_>,
    snapshot: &Snapshot,
    timeout: Duration,
    test: &DimensionTestRun,
) -> ExpectationOutcome {
    let started = subject.clock.elapsed();
    let problem = test.run(snapshot, subject.warehouse, timeout).await;
    let unknown = || Span { file: Arc::from(""), line: 1, column: 1, length: 1 };
    ExpectationOutcome {
        name: test.name.clone(),
        description: None,
        place: test.span.clone().unwrap_or_else(unknown),
        mismatch: problem.map(Mismatch::Values),
        sql: test.sql().map(str::to_owned),
        duration: subject.clock.elapsed().saturating_sub(started),
    }
}
