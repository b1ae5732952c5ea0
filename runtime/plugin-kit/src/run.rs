//! Makes the call of a case file once.
//!
//! In: a component and a case. Out: the answer, the log, the fault for which a server would refuse the answer, and the
//! cost of the call.

use std::path::Path;

use terrane_plugin_host::test_bench::CallReport;

use crate::case::Case;
use crate::component::open;
use crate::error::KitError;

/// The report of a call that returned.
#[derive(Debug, Clone)]
pub struct CaseRun {
    /// The function of the contract that was called.
    pub call: String,
    pub report: CallReport,
}

/// Makes the call of the case file `input`.
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
