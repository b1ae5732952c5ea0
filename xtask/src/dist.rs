//! `cargo xtask dist`: the release archive, one tar that runs on a machine without Rust.
//!
//! In: a release build. Out: `terrane-<version>-<target>.tar.gz` with its checksum, and a folder with the same files:
//! the program, `lib/` with libduckdb, `components/` with the first-party plugins, licenses, and `SHA256SUMS`. The
//! program finds its library and components beside itself, wherever the folder is. Not here: installers and signatures.

mod notices;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::checksum;
use crate::command::{run_quiet, run_shown};
use crate::context::{Context, shown};
use crate::duckdb;

const CHECKSUMS: &str = "SHA256SUMS";
const LIMIT: Duration = Duration::from_secs(300);

#[derive(clap::Args)]
pub(crate) struct DistArguments {
    /// The folder for the archive.
    #[arg(long, default_value = "target/dist")]
    out: PathBuf,
}

pub(crate) fn run(context: &Context, arguments: &DistArguments) -> Result<ExitCode> {
    crate::set_up(context)?;
    crate::playground::require(context)?;
    // The variable keeps the paths of this machine out of the program; see runtime/cli/build.rs.
    run_shown(context.cargo().args(["build", "--release", "--package", "terrane-cli"]).env("TERRANE_SHIPPED", "1"))?;

    let out = context.root.join(&arguments.out);
    let name = format!("terrane-{}-{}", env!("CARGO_PKG_VERSION"), context.compiler()?.host);
    let folder = out.join(&name);
    remove(&folder)?;
    stage(context, &folder)?;
    let archive = out.join(format!("{name}.tar.gz"));
    pack(&out, &name, &archive)?;
    check(&archive, &name, &out.join(format!(".check-{}", std::process::id())))?;
    let sum = format!("{}  {name}.tar.gz\n", checksum::sha256(&archive)?);
    fs::write(out.join(format!("{name}.tar.gz.sha256")), sum)?;
    println!("ok    {} ({} MiB)", shown(context, &archive), fs::metadata(&archive)?.len().div_ceil(1 << 20));
    Ok(ExitCode::SUCCESS)
}

/// Copies all files of the archive into a folder.
fn stage(context: &Context, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    fs::copy(context.target()?.join("release/terrane"), folder.join("terrane")).context("copying the program")?;
    let library = duckdb::library_name().context("this platform has no prebuilt libduckdb")?;
    copy_matching(&context.prepared.join("lib"), &folder.join("lib"), |name| name == library)?;
    copy_matching(&context.prepared.join("components"), &folder.join("components"), |name| name.ends_with(".wasm"))?;
    fs::copy(context.root.join("LICENSE"), folder.join("LICENSE"))?;
    fs::write(folder.join("THIRD-PARTY-NOTICES.txt"), notices::text(context)?)?;
    let sums = checksums(folder)?;
    fs::write(folder.join(CHECKSUMS), sums)?;
    Ok(())
}

/// Returns the checksums of all files in a folder, in the format of `sha256sum`.
fn checksums(folder: &Path) -> Result<String> {
    let mut sums = String::new();
    for file in files(folder)? {
        let name = file.strip_prefix(folder)?.display();
        sums += &format!("{}  {name}\n", checksum::sha256(&file)?);
    }
    Ok(sums)
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            files.extend(self::files(&path)?);
        } else {
            files.push(path);
        }
    }
    Ok(files)
}

fn pack(out: &Path, name: &str, archive: &Path) -> Result<()> {
    run_quiet(Command::new("tar").arg("-czf").arg(archive).arg("-C").arg(out).arg(name), LIMIT).map(drop)
}

/// Unpacks the archive into another folder and runs the program without environment variables of this machine. The
/// program checks a new project, for which it needs its library and a component.
fn check(archive: &Path, name: &str, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    run_quiet(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(folder), LIMIT)?;
    let unpacked = folder.join(name);
    let sums = fs::read_to_string(unpacked.join(CHECKSUMS))?;
    let is_complete = verify(&unpacked, &sums);
    let program = |arguments: &[&str]| {
        run_quiet(Command::new(unpacked.join("terrane")).args(arguments).current_dir(folder).env_clear(), LIMIT)
    };
    let version = program(&["--version"]).context("starting the unpacked program");
    let checked = version.and_then(|version| {
        program(&["init", "project"]).context("making a project with the unpacked program")?;
        program(&["check", "project"]).context("checking a project with the unpacked program")?;
        Ok(version)
    });
    remove(folder)?;
    is_complete?;
    println!("ok    the unpacked program starts and checks a project: {}", checked?.trim());
    Ok(())
}

/// Compares the files of a folder with their checksums.
fn verify(folder: &Path, sums: &str) -> Result<()> {
    for line in sums.lines() {
        let (sum, name) = line.split_once("  ").with_context(|| format!("reading {CHECKSUMS}: {line}"))?;
        if !checksum::is(&folder.join(name), sum) {
            bail!("{name} differs from its checksum");
        }
    }
    Ok(())
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

fn remove(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_name_files_in_folders() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("lib")).unwrap();
        fs::write(folder.path().join("lib/b"), "abc").unwrap();
        fs::write(folder.path().join("a"), "").unwrap();
        let sums = checksums(folder.path()).unwrap();
        let names: Vec<_> = sums.lines().map(|line| line.split_once("  ").unwrap().1).collect();
        assert_eq!(names, ["a", "lib/b"]);
        verify(folder.path(), &sums).unwrap();
    }

    #[test]
    fn changed_or_missing_file_differs_from_its_checksum() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), "abc").unwrap();
        let sums = checksums(folder.path()).unwrap();
        fs::write(folder.path().join("a"), "abd").unwrap();
        assert!(verify(folder.path(), &sums).is_err());
        fs::remove_file(folder.path().join("a")).unwrap();
        assert!(verify(folder.path(), &sums).is_err());
        assert!(verify(folder.path(), "no sum").is_err());
    }

    #[test]
    fn archive_without_a_program_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let staged = folder.path().join("terrane-test");
        fs::create_dir(&staged).unwrap();
        fs::write(staged.join(CHECKSUMS), "").unwrap();
        let archive = folder.path().join("terrane-test.tar.gz");
        pack(folder.path(), "terrane-test", &archive).unwrap();
        let error = check(&archive, "terrane-test", &folder.path().join("check")).unwrap_err();
        insta::assert_snapshot!(error, @"starting the unpacked program");
    }
}
