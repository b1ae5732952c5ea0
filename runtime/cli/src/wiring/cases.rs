//! The adapter of `ProjectCases` on the folder of the served project.
//!
//! In: `tests/*.yml` as they are when a run begins. Out: a result for each case. A file with mistakes has one unchecked
//! result for each of them, and none of its cases run, as with `terrane test`. Not here: comparing rows
//! (`terrane_expectations`).

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use terrane_app::data_tests::{CaseContext, ProjectCases};
use terrane_app::ports::data_tests::{TestOutcome, TestResult};
use terrane_compiler::diagnostic::Diagnostic;
use terrane_expectations::{self as expectations, ExpectationOutcome, Subject};

use crate::project::Project;
use crate::project_files::ProjectFolder;

/// Runs the cases in the folder of a project.
pub(super) struct FolderCases {
    root: PathBuf,
}

impl FolderCases {
    pub(super) fn of(project: &Project) -> Self {
        FolderCases { root: project.folder.root().to_owned() }
    }
}

#[async_trait]
impl ProjectCases for FolderCases {
    async fn run(&self, context: CaseContext<'_>) -> Vec<TestResult> {
        let Ok(folder) = ProjectFolder::open(&self.root) else {
            return vec![unread(expectations::FOLDER, None, "the folder of the project cannot be read")];
        };
        let (tree, mut problems) = folder.collect_folder(expectations::FOLDER);
        let (cases, found) = expectations::read(&tree);
        problems.extend(found);
        let mut results: Vec<TestResult> = problems.iter().map(of_problem).collect();
        let broken: HashSet<&str> =
            problems.iter().filter_map(|problem| problem.span.as_ref()).map(|span| &*span.file).collect();
        let subject = Subject { queries: context.queries, warehouse: context.warehouse, clock: context.clock };
        for case in cases.iter().filter(|case| !broken.contains(&*case.place.file)) {
            results.push(result(expectations::run(subject, context.timeout, case).await));
        }
        results
    }
}

fn result(outcome: ExpectationOutcome) -> TestResult {
    let ExpectationOutcome { name, place, mismatch, duration, .. } = outcome;
    TestResult {
        name: name.into(),
        file: Some(place.file),
        line: Some(place.line),
        outcome: match &mismatch {
            None => TestOutcome::Passed,
            Some(mismatch) if mismatch.is_unchecked() => TestOutcome::Unchecked,
            Some(_) => TestOutcome::Failed,
        },
        message: mismatch.map(|mismatch| mismatch.to_string().into()),
        duration,
    }
}

/// Returns the result of a mistake in a file.
fn of_problem(problem: &Diagnostic) -> TestResult {
    let file = problem.span.as_ref().map_or(expectations::FOLDER, |span| &*span.file);
    unread(file, problem.span.as_ref().map(|span| span.line), &problem.full_message())
}

fn unread(file: &str, line: Option<u32>, message: &str) -> TestResult {
    TestResult {
        name: file.into(),
        file: Some(file.into()),
        line,
        outcome: TestOutcome::Unchecked,
        message: Some(Arc::from(message)),
        duration: Duration::ZERO,
    }
}
