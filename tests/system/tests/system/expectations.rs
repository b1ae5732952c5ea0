//! Runs the expectations of every project in this process, and compares their queries with hand-written SQL.

use std::path::Path;

use terrane_cli::commands::test;
use terrane_cli::config::Environment;
use terrane_cli::on_large_stack;
use terrane_cli::project::Project;
use terrane_system_tests::{FLIGHTS, path};

use crate::working_directory;

/// Runs the cases of a project, and fails with all failed cases.
fn check(folder: &Path, at_least: usize) {
    let _directory = working_directory();
    let outcomes = on_large_stack(|| {
        let project = Project::read(folder, &Environment::default())?;
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(test::outcomes(&project, None, |_| {}))
    });
    let outcomes = outcomes.and_then(|outcomes| outcomes?.some(None)).unwrap_or_else(|failure| panic!("{failure}"));
    assert!(outcomes.len() >= at_least, "only {} cases ran", outcomes.len());
    let failed: Vec<String> = outcomes
        .iter()
        .filter_map(|outcome| {
            let failure = outcome.mismatch.as_ref()?;
            let sql = outcome.sql.as_deref().unwrap_or("no SQL");
            Some(format!("{}: {}\n{failure}\n{sql}\n", outcome.place, outcome.name))
        })
        .collect();
    assert!(failed.is_empty(), "{} of {} cases failed\n\n{}", failed.len(), outcomes.len(), failed.join("\n"));
}

#[test]
fn flights_example_equals_manual_sql() {
    check(&path(FLIGHTS), 100);
}

#[test]
fn facts_behind_a_shared_dimension_do_not_multiply() {
    check(&path("tests/system/projects/two_cubes"), 24);
}

#[test]
fn values_of_every_type_keep_their_digits_and_names() {
    check(&path("tests/system/projects/types"), 24);
}

#[test]
fn to_many_dimensions_and_time_steps_do_not_multiply_values() {
    check(&path("tests/system/projects/fan_out"), 20);
}

#[test]
fn deviations_of_values_without_a_square_are_null() {
    check(&path("tests/system/projects/deviations"), 3);
}
