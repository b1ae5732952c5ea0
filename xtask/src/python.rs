//! Creates virtual environments of Python packages, for tools that are written in Python.
//!
//! In: a list of pinned packages. Out: the path of the environment's Python. The environment is rebuilt if the list
//! changes. Not here: installing Python itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::command::{is_installed, run_shown};
use crate::context::{Context, shown};

/// Returns the Python of `venv` with the packages of `requirements`. `name` describes the packages in the output.
pub(crate) fn environment(context: &Context, venv: &Path, requirements: &Path, name: &str) -> Result<PathBuf> {
    let (python, stamp) = (venv.join("bin/python"), venv.join("requirements.txt"));
    let wanted = fs::read_to_string(requirements)?;
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(python);
    }
    if !is_installed("python3") {
        bail!("python3 is not installed, and {name} needs it");
    }
    println!("get   {name}, into {}", shown(context, venv));
    run_shown(Command::new("python3").args(["-m", "venv", "--clear"]).arg(venv))?;
    run_shown(Command::new(&python).args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(requirements))?;
    fs::write(stamp, wanted)?;
    Ok(python)
}
