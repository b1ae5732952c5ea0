//! `cargo xtask package`: the folder that is shipped.
//!
//! In: a release build. Out: `terrane` with `lib/` and `components/` beside it, which runs from
//! wherever it is put, because the binary looks for its library in `$ORIGIN/lib`. Absent on
//! purpose: archives, signatures and installers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

use crate::command::run_shown;
use crate::context::Context;
use crate::duckdb;

#[derive(clap::Args)]
pub(crate) struct PackageArguments {
    /// The folder to make.
    #[arg(long, default_value = "target/package/terrane")]
    out: PathBuf,
}

pub(crate) fn run(context: &Context, arguments: &PackageArguments) -> Result<ExitCode> {
    crate::set_up(context)?;
    // The variable keeps this machine's paths out of the binary; see runtime/cli/build.rs.
    run_shown(context.cargo().args(["build", "--release", "--package", "terrane-cli"]).env("TERRANE_SHIPPED", "1"))?;

    let out = context.root.join(&arguments.out);
    if out.exists() {
        bail!("{} exists already; remove it or name another with --out", out.display());
    }
    fs::create_dir_all(&out)?;
    fs::copy(context.target()?.join("release/terrane"), out.join("terrane"))?;
    let library = duckdb::library_name().context("this platform has no prebuilt libduckdb")?;
    copy_matching(&context.prepared.join("lib"), &out.join("lib"), |name| name == library)?;
    copy_matching(&context.prepared.join("components"), &out.join("components"), |name| name.ends_with(".wasm"))?;
    println!("ok    {}", out.display());
    Ok(ExitCode::SUCCESS)
}

fn copy_matching(from: &Path, to: &Path, matches: impl Fn(&str) -> bool) -> Result<()> {
    fs::create_dir_all(to)?;
    for file in fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let file = file?;
        if matches(&file.file_name().to_string_lossy()) {
            fs::copy(file.path(), to.join(file.file_name()))?;
        }
    }
    Ok(())
}
