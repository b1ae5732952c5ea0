//! `cargo xtask docs`: builds the documents as a static site and checks its links.
//!
//! In: `runtime/docs/SUMMARY.md`, which lists the pages, `book.toml` beside it, and the Markdown files. Out: the site
//! in `target/docs`, or an error with each broken link. The site is built from a copy of the pages, which stay in their
//! places in the clone, so that their links also work without the site. Not here: a server for the site.

mod pages;
mod site;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Result, bail};

use crate::command::{run_quiet, run_shown};
use crate::context::{Context, shown};

const MDBOOK: &str = "0.5.4";
const LIMIT: Duration = Duration::from_secs(300);
/// The folder of the index and of the settings of the site, from the root of the clone.
const FOLDER: &str = "runtime/docs";

pub(crate) fn run(context: &Context) -> Result<ExitCode> {
    let mdbook = install(context)?;
    let book = context.target()?.join("docs-book");
    let site = context.root.join("target/docs");
    if book.exists() {
        fs::remove_dir_all(&book)?;
    }
    let pages = pages::copy(&context.root, Path::new(FOLDER), &book.join("src"))?;
    fs::copy(context.root.join(FOLDER).join("book.toml"), book.join("book.toml"))?;
    run_quiet(Command::new(mdbook).arg("build").arg(&book).arg("--dest-dir").arg(&site), LIMIT)?;
    let faults = site::faults(&site)?;
    if !faults.is_empty() {
        bail!("{} links of the site lead nowhere:\n  {}", faults.len(), faults.join("\n  "));
    }
    println!("ok    {} pages in {}", pages, shown(context, &site.join("index.html")));
    Ok(ExitCode::SUCCESS)
}

/// Installs mdBook for `cargo xtask test`. Returns whether the site can be built.
pub(crate) fn prepare(context: &Context) -> bool {
    match install(context) {
        Ok(_) => println!("ok    mdBook {MDBOOK} for the documents"),
        Err(error) => println!("note  mdBook is missing, so the site is not checked: {error:#}"),
    }
    program(context).is_file()
}

fn program(context: &Context) -> PathBuf {
    context.cache.join("tools").join(format!("mdbook-{MDBOOK}")).join("bin/mdbook")
}

/// Returns the path of `mdbook` in the pinned version, which all clones share.
fn install(context: &Context) -> Result<PathBuf> {
    let program = program(context);
    let folder = program.ancestors().nth(2).unwrap_or(&program);
    if program.is_file() {
        return Ok(program);
    }
    println!("get   mdBook {MDBOOK}, into {}", folder.display());
    let build = folder.join("build");
    let mut command = context.cargo();
    command.args(["install", "mdbook", "--version", MDBOOK, "--locked", "--debug", "--quiet"]);
    command.args(["--no-default-features", "--features", "search", "--root"]).arg(folder);
    run_shown(command.arg("--target-dir").arg(&build).env("CARGO_PROFILE_DEV_DEBUG", "0"))?;
    fs::remove_dir_all(&build)?;
    Ok(program)
}
