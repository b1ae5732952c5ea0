//! Virtual environments of Python packages, for the tools that only exist there.
//!
//! In: a list of pinned packages. Out: the environment's Python, made again when the list changes. Absent on
//! purpose: installing Python itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::command::{is_installed, run_shown};
use crate::context::{Context, shown};

/// The Python of `venv`, which has what `requirements` lists; `what` is said while it is fetched.
pub(crate) fn environment(context: &Context, venv: &Path, requirements: &Path, what: &str) -> Result<PathBuf> {
    let (python, stamp) = (venv.join("bin/python"), venv.join("requirements.txt"));
    let wanted = fs::read_to_string(requirements)?;
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(python);
    }
    if !is_installed("python3") {
        bail!("python3 is not installed, and {what} is made of Python packages");
    }
    println!("get   {what}, into {}", shown(context, venv));
    run_shown(Command::new("python3").args(["-m", "venv", "--clear"]).arg(venv))?;
    run_shown(Command::new(&python).args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(requirements))?;
    fs::write(stamp, wanted)?;
    Ok(python)
}
