//! Tests a component with the conformance vectors of its role and with the cases of its author.
//!
//! In: the folder of a crate, which is built first, or a component. Out: a result for each vector and case. If a case
//! has no expected answer, the answer can be written into it. An existing expectation is never overwritten.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use terrane_app::ports::plugins::PluginRole;
use terrane_plugin_host::test_bench::TestBench;

use crate::build::{BuildRequest, CoreModule, Profile, build};
use crate::case::Case;
use crate::check::{manifest_problems, probe};
use crate::component::{open, role_of};
use crate::conformance::{self, ConformanceOutcome};
use crate::error::KitError;
use crate::files::{read_text, write};

/// The treatment of cases without an expected answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingExpectations {
    Fail,
    /// The answer is written into the case.
    Write,
}

/// A component to test.
#[derive(Debug, Clone)]
pub struct TestRequest {
    /// A crate's folder, or a component.
    pub path: PathBuf,
    /// The folder of case files, or `None` for the folder `cases` of a crate.
    pub cases: Option<PathBuf>,
    /// The configuration for calls, a JSON object. A case may have a configuration of its own.
    pub config_json: String,
    pub missing_expectations: MissingExpectations,
}

/// Tests a component.
///
/// # Errors
/// The crate does not build, the component has no role, or a case cannot be read.
pub fn test(request: &TestRequest) -> Result<Vec<ConformanceOutcome>, KitError> {
    let is_crate = request.path.is_dir();
    let file = if is_crate { build_crate(&request.path)? } else { request.path.clone() };
    let crate_cases = is_crate.then(|| request.path.join("cases")).filter(|folder| folder.is_dir());
    let bench = open(&file)?.configured(&request.config_json);
    let role = role_of(&bench, &file)?;
    let mut outcomes = vec![described(&bench, role)];
    outcomes.extend(conformance::run(&bench, role));
    if let Some(folder) = request.cases.clone().or(crate_cases) {
        for path in case_files(&folder)? {
            outcomes.push(case_outcome(&path, &bench, request.missing_expectations)?);
        }
    }
    Ok(outcomes)
}

fn build_crate(folder: &Path) -> Result<PathBuf, KitError> {
    let module = CoreModule::Crate(Profile::Dev);
    Ok(build(&BuildRequest { folder: folder.to_owned(), module, out: None })?.path)
}

/// Returns the result of the checks that a server makes before its first call of the component.
fn described(bench: &TestBench, role: PluginRole) -> ConformanceOutcome {
    let (identity, mut problems) = probe(bench, role);
    problems.extend(manifest_problems(bench.facts(), role, identity.as_ref()));
    ConformanceOutcome::new("describe", Ok(problems))
}

fn case_files(folder: &Path) -> Result<Vec<PathBuf>, KitError> {
    let entries = fs::read_dir(folder).map_err(|source| KitError::Read { path: folder.to_owned(), source })?;
    let paths = entries.flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|e| e == "json")).collect();
    files.sort();
    Ok(files)
}

fn case_outcome(path: &Path, bench: &TestBench, missing: MissingExpectations) -> Result<ConformanceOutcome, KitError> {
    let case = Case::read(path, bench)?;
    let name = format!("case {}", path.file_name().unwrap_or_default().to_string_lossy());
    let report = match conformance::call_twice(bench, &case.call, &case.arguments) {
        Ok(report) => report,
        Err(problem) => return Ok(ConformanceOutcome::new(name, Err(problem))),
    };
    let mut problems = case.differences(&report.answer);
    if case.expected.is_none() {
        match missing {
            MissingExpectations::Write => write_expectation(path, &report.answer)?,
            MissingExpectations::Fail => {
                problems.push("it has no `expect`; write one, or let --bless write the answer".to_owned());
            }
        }
    }
    Ok(ConformanceOutcome::new(name, Ok(problems)).with_log(report.log.texts()))
}

fn write_expectation(path: &Path, answer: &Value) -> Result<(), KitError> {
    let text = read_text(path)?;
    let mut case: Value = serde_json::from_str(&text)
        .map_err(|error| KitError::Case { path: path.to_owned(), message: error.to_string() })?;
    case["expect"] = answer.clone();
    write(path, format!("{case:#}\n").as_bytes())
}
