//! The identity provider that the system tests sign in through: npm's `oidc-provider`.
//!
//! In: the pinned packages of `tests/system/provider`. Out: them under `.prepared/oidc-provider`, or a note of
//! what is skipped. Absent on purpose: failing, since its cases are skipped by name where it is missing, and
//! scripts of packages, which are never run.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::command::{is_installed, run_quiet};
use crate::context::Context;

const LIMIT: Duration = Duration::from_secs(300);
const PINNED: [&str; 2] = ["package.json", "package-lock.json"];

/// Installs it where that is not done yet.
pub(crate) fn prepare(context: &Context) {
    let folder = context.prepared.join("oidc-provider");
    if !is_installed("node") || !is_installed("npm") {
        println!("note  no node and npm: the cases of identity providers are skipped");
        return;
    }
    match install(&context.root.join("tests/system/provider"), &folder) {
        Ok(()) => println!("ok    oidc-provider for the system tests"),
        Err(error) => println!("note  no oidc-provider, so its cases are skipped: {error:#}"),
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
        // Half of it must not look like all of it.
        let _ = fs::remove_dir_all(folder.join("node_modules"));
    }
    installed.map(|_| ())
}
