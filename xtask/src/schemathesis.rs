//! schemathesis, which sends what `/openapi.json` allows and forbids, for the system tests.
//!
//! In: the machine. Out: installed under the target folder, or a note of what is missed. Failing is left to
//! nobody: without it its test is skipped by name.

use crate::context::Context;
use crate::python;

/// Installs it where Python is there.
pub(crate) fn prepare(context: &Context) {
    match install(context) {
        Ok(()) => println!("ok    schemathesis for the system tests"),
        Err(error) => println!("note  no schemathesis, so its test is skipped: {error:#}"),
    }
}

fn install(context: &Context) -> anyhow::Result<()> {
    // Where tests look for it: beside their own scratch folder.
    let venv = context.target()?.join("tools/schemathesis");
    let requirements = context.root.join("xtask/schemathesis/requirements.txt");
    python::environment(context, &venv, &requirements, "schemathesis").map(drop)
}
