//! `cargo xtask adbc NAME`: fetches the ADBC driver of a database.
//!
//! In: the name of a driver, and `xtask/adbc/NAME.txt` with its version and the checksum of its package for each
//! platform. Out: the driver's library in `.prepared/adbc`, where the program of the clone finds it by name. The
//! package is cached with the other downloads. Not here: platforms other than that of this machine, and building
//! drivers.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::archive::extract_member;
use crate::checksum;
use crate::command::{is_installed, run_quiet};
use crate::context::{Context, shown};

const NAMES: [&str; 4] = ["postgresql", "snowflake", "bigquery", "flightsql"];

/// The drivers that the system tests use.
const TESTED: [&str; 2] = ["postgresql", "snowflake"];

const LIMIT: Duration = Duration::from_secs(600);

#[derive(clap::Args)]
pub(crate) struct AdbcArguments {
    /// The driver.
    #[arg(value_parser = NAMES)]
    name: String,
}

pub(crate) fn run(context: &Context, arguments: &AdbcArguments) -> Result<ExitCode> {
    let library = fetch(context, &arguments.name)?;
    println!("ok    {}", shown(context, &library));
    println!("      warehouse: {{type: …, adbc: {{driver: {}, options: {{…}}}}}}", arguments.name);
    Ok(ExitCode::SUCCESS)
}

/// Fetches the drivers of the system tests. Without a driver, its tests report themselves as skipped.
pub(crate) fn prepare(context: &Context) {
    for name in TESTED {
        match fetch(context, name) {
            Ok(_) => println!("ok    the ADBC driver {name} for the system tests"),
            Err(error) => println!("note  the ADBC driver {name} is missing, so its tests are skipped: {error:#}"),
        }
    }
}

/// Returns the library of a driver, which is fetched unless it is there in its pinned version.
fn fetch(context: &Context, name: &str) -> Result<PathBuf> {
    let requirements = context.root.join("xtask/adbc").join(name).with_extension("txt");
    let pinned = fs::read_to_string(&requirements).with_context(|| format!("reading {}", requirements.display()))?;
    let folder = context.prepared.join("adbc");
    let (library, stamp) = (folder.join(library_name(name)), folder.join(name).with_extension("txt"));
    if library.is_file() && fs::read_to_string(&stamp).is_ok_and(|found| found == pinned) {
        return Ok(library);
    }
    let package = obtain(&context.downloads(), &requirements, &checksums(&pinned))?;
    let partial = folder.join(format!(".partial-{}", std::process::id()));
    // The packages of all platforms have the same name for the library.
    let member = format!("adbc_driver_{name}/libadbc_driver_{name}.so");
    let extracted = extract_member(&package, &member, &partial);
    let moved = extracted.and_then(|extracted| Ok(fs::rename(extracted, &library)?));
    fs::remove_dir_all(&partial)?;
    moved?;
    fs::write(stamp, pinned)?;
    Ok(library)
}

/// Returns the verified package for this platform in the download cache.
fn obtain(downloads: &Path, requirements: &Path, pinned: &[&str]) -> Result<PathBuf> {
    if !is_installed("python3") {
        bail!("python3 is not installed, and its pip fetches the driver");
    }
    let partial = downloads.join(format!(".partial-{}", std::process::id()));
    fs::create_dir_all(&partial)?;
    // A package in the cache needs no network.
    let cached = download(&partial, requirements, &["--no-index", "--find-links"], Some(downloads));
    let fetched = cached.or_else(|_| {
        println!("      fetching the driver …");
        download(&partial, requirements, &[], None)
    });
    let admitted = fetched.and_then(|()| admit(&partial, downloads, pinned));
    fs::remove_dir_all(&partial)?;
    admitted
}

fn download(folder: &Path, requirements: &Path, arguments: &[&str], from: Option<&Path>) -> Result<()> {
    let mut command = Command::new("python3");
    command.args(["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes"]);
    command.args(arguments).args(from).arg("--dest").arg(folder).arg("--requirement").arg(requirements);
    run_quiet(&mut command, LIMIT).map(drop)
}

/// Moves the package to the cache if it has one of the pinned checksums.
fn admit(partial: &Path, downloads: &Path, pinned: &[&str]) -> Result<PathBuf> {
    let files = fs::read_dir(partial)?.collect::<Result<Vec<_>, _>>()?;
    let mut packages = files.iter().map(fs::DirEntry::path).filter(|path| path.extension() == Some(OsStr::new("whl")));
    let package = packages.next().context("pip fetched no package")?;
    let destination = downloads.join(package.file_name().context("a package without a name")?);
    let found = checksum::sha256(&package)?;
    // If none is equal, the first one is shown beside that of the package.
    let expected = pinned.iter().find(|pinned| **pinned == found).or(pinned.first());
    checksum::admit(&package, expected.context("no checksum is pinned")?, &destination)?;
    Ok(destination)
}

/// Returns the checksums of a list of pinned packages.
fn checksums(pinned: &str) -> Vec<&str> {
    pinned.split_whitespace().filter_map(|word| word.strip_prefix("--hash=sha256:")).collect()
}

/// Returns the file name of a driver's library on this platform.
fn library_name(name: &str) -> String {
    let (prefix, suffix) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    format!("{prefix}adbc_driver_{name}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pinned(name: &str) -> String {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("adbc");
        fs::read_to_string(folder.join(name).with_extension("txt")).unwrap()
    }

    #[test]
    fn every_driver_has_a_checksum_for_each_platform() {
        for name in NAMES {
            let text = pinned(name);
            let checksums = checksums(&text);
            assert!(text.contains(&format!("adbc-driver-{name}==")), "{name}");
            assert_eq!(checksums.len(), 5, "{name}");
            assert!(checksums.iter().all(|checksum| checksum.len() == 64), "{name}");
        }
    }

    #[test]
    fn package_with_another_checksum_is_removed() {
        let (partial, downloads) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(partial.path().join("driver.whl"), "abc").unwrap();
        let text = pinned(TESTED[0]);
        assert!(admit(partial.path(), downloads.path(), &checksums(&text)).is_err());
        assert!(!downloads.path().join("driver.whl").exists());
        fs::write(partial.path().join("driver.whl"), "abc").unwrap();
        let sum = checksum::sha256_of(b"abc");
        assert!(admit(partial.path(), downloads.path(), &["0", &sum]).is_ok());
        assert!(downloads.path().join("driver.whl").is_file());
    }
}
