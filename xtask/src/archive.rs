//! Extracts one file or folder of an archive.
//!
//! In: a verified archive. Out: the member in a given folder. Not here: crates for archives, because `tar`, `unzip` and
//! `dpkg-deb` exist on every machine whose platform uses their archives.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::command::{is_installed, run_quiet};

const LIMIT: Duration = Duration::from_secs(300);

/// Unpacks `member` of a `.tgz`, a `.zip` or a Python wheel into `folder` and returns its path there.
pub(crate) fn extract_member(archive: &Path, member: &str, folder: &Path) -> Result<PathBuf> {
    fs::create_dir_all(folder)?;
    if archive.extension().is_some_and(|extension| extension == "zip" || extension == "whl") {
        unzip(archive, member, folder)?;
    } else {
        run_quiet(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(folder).arg(member), LIMIT)?;
    }
    let extracted = folder.join(member);
    if !extracted.is_file() {
        bail!("{} does not contain {member}", archive.display());
    }
    Ok(extracted)
}

/// Unpacks the given folders of a Debian package, without installing it.
pub(crate) fn extract_debian_package(package: &Path, members: &[String], folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let mut reader = Command::new("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(package)
        .stdout(Stdio::piped())
        .spawn()
        .context("starting `dpkg-deb`, which unpacks Debian packages")?;
    let tar = reader.stdout.take().context("dpkg-deb has no output")?;
    let unpacked = Command::new("tar")
        .arg("-x")
        .arg("-C")
        .arg(folder)
        .args(members)
        .stdin(tar)
        .status()
        .context("starting `tar`")?;
    let read = reader.wait()?;
    if !unpacked.success() || !read.success() {
        bail!("unpacking {} failed (dpkg-deb: {read}, tar: {unpacked})", package.display());
    }
    Ok(())
}

fn unzip(archive: &Path, member: &str, folder: &Path) -> Result<()> {
    if is_installed("unzip") {
        run_quiet(Command::new("unzip").arg("-oq").arg(archive).arg(member).arg("-d").arg(folder), LIMIT)?;
    } else if is_installed("python3") {
        run_quiet(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(archive).arg(folder), LIMIT)?;
    } else {
        bail!("unpacking {} needs `unzip` or `python3`; install one of them", archive.display());
    }
    Ok(())
}
