//! Prepares npm packages of the system tests: an identity provider, generators of clients.
//!
//! In: a folder with pinned packages. Out: the packages in `.prepared`, or a note that their tests are skipped. A
//! missing package is not an error here, because the tests report it. Install scripts of packages never run.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::command::{is_installed, run_quiet};
use crate::context::Context;

const LIMIT: Duration = Duration::from_secs(300);
const PINNED: [&str; 2] = ["package.json", "package-lock.json"];

/// Installs a package and the packages that are pinned with it, unless they are installed.
pub(crate) fn prepare(context: &Context, package: &str, pinned: &str, folder: &str) {
    let folder = context.prepared.join(folder);
    if !is_installed("node") || !is_installed("npm") {
        println!("note  node or npm is missing: the tests of {package} are skipped");
        return;
    }
    match install(package, &context.root.join(pinned), &folder) {
        Ok(()) => println!("ok    {package} for the system tests"),
        Err(error) => println!("note  {package} is missing, so its tests are skipped: {error:#}"),
    }
}

fn install(package: &str, pinned: &Path, folder: &Path) -> Result<()> {
    let is_there = folder.join("node_modules").join(package).is_dir();
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
