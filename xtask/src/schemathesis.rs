//! Prepares schemathesis, which sends requests that `/openapi.json` allows and forbids, for the system tests.
//!
//! In: the machine. Out: an environment under the target folder, or a note that its test is skipped. A missing tool is
//! not an error here, because the test reports it.

use crate::context::Context;
use crate::python;

/// Installs schemathesis if Python is installed.
pub(crate) fn prepare(context: &Context) {
    match install(context) {
        Ok(()) => println!("ok    schemathesis for the system tests"),
        Err(error) => println!("note  schemathesis is missing, so its test is skipped: {error:#}"),
    }
}

fn install(context: &Context) -> anyhow::Result<()> {
    // The tests search for the tool in this folder.
    let venv = context.target()?.join("tools/schemathesis");
    let requirements = context.root.join("xtask/schemathesis/requirements.txt");
    python::environment(context, &venv, &requirements, "schemathesis").map(drop)
}
