//! Makes the call of a case file once.
//!
//! In: a component and a case. Out: the answer, the log, the fault because of which a server would refuse the answer,
//! and the call's cost.

use std::path::Path;

use terrane_plugin_host::test_bench::CallReport;

use crate::case::Case;
use crate::component::open;
use crate::error::KitError;

/// A call that returned.
#[derive(Debug, Clone)]
pub struct CaseRun {
    /// The contract's function.
    pub call: String,
    pub report: CallReport,
}

/// Makes the call of the case `input`.
///
/// # Errors
/// The component or the case cannot be read, or the call fails.
pub fn run(file: &Path, input: &Path) -> Result<CaseRun, KitError> {
    let bench = open(file)?;
    let case = Case::read(input, &bench)?;
    let called = bench.call(&case.call, &case.arguments);
    let report = called.map_err(|error| KitError::Call { path: input.to_owned(), error })?;
    Ok(CaseRun { call: case.call, report })
}
