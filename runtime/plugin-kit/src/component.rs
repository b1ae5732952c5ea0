//! Opens a component on the test bench.
//!
//! In: a file. Out: the test bench, or the reason why a server would not load the file. Not here: calls.

use std::path::Path;

use terrane_app::ports::plugins::PluginRole;
use terrane_plugin_host::test_bench::TestBench;

use crate::error::KitError;

/// Reads and compiles a component.
pub(crate) fn open(file: &Path) -> Result<TestBench, KitError> {
    TestBench::open(file).map_err(|fault| KitError::Component { path: file.to_owned(), fault })
}

/// Returns the role of a component.
pub(crate) fn role_of(bench: &TestBench, file: &Path) -> Result<PluginRole, KitError> {
    bench.facts().role.ok_or_else(|| {
        let exports = bench.facts().exports.iter().map(|export| export.interface.clone()).collect();
        KitError::NoRole { path: file.to_owned(), exports }
    })
}
