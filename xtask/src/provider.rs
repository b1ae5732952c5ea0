//! Prepares the identity provider of the system tests: `oidc-provider` from npm.
//!
//! In: the pinned packages of `tests/system/provider`. Out: the packages in `.prepared/oidc-provider`, or a note that
//! its tests are skipped. Deliberately absent: failing, since its tests report a missing provider themselves, and
//! install scripts of packages, which never run.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::command::{is_installed, run_quiet};
use crate::context::Context;

const LIMIT: Duration = Duration::from_secs(300);
const PINNED: [&str; 2] = ["package.json", "package-lock.json"];

/// Installs the provider if it is not installed.
pub(crate) fn prepare(context: &Context) {
    let folder = context.prepared.join("oidc-provider");
    if !is_installed("node") || !is_installed("npm") {
        println!("note  node or npm is missing: the tests of identity providers are skipped");
        return;
    }
    match install(&context.root.join("tests/system/provider"), &folder) {
        Ok(()) => println!("ok    oidc-provider for the system tests"),
        Err(error) => println!("note  oidc-provider is missing, so its tests are skipped: {error:#}"),
    }
}

fn install(pinned: &Path, folder: &Path) -> Result<()> {
    let is_there = folder.join("node_modules/oidc-provider").is_dir();
    let is_same = |file: &str| fs::read(pinned.join(file)).ok() == fs::read(folder.join(file)).ok();
    if is_there && PINNED.iter().all(|file| is_same(file)) {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    for file in PINNED {
        fs::copy(pinned.join(file), folder.join(file)).with_context(|| format!("copying {file}"))?;
    }
    let mut npm = Command::new("npm");
    npm.current_dir(folder).args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
    let installed = run_quiet(&mut npm, LIMIT);
    if installed.is_err() {
        // An incomplete installation must not look complete.
        let _ = fs::remove_dir_all(folder.join("node_modules"));
    }
    installed.map(|_| ())
}
