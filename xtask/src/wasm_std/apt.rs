//! Downloads packages of the Debian archive from the package sources of this machine.
//!
//! In: the machine's package sources. Out: the archive's address, a downloaded file, or packages resolved in a private
//! apt state. Not here: root, `apt-get install`, changes to the machine's lists, and addresses other than the sources
//! that the machine trusts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::command::{is_installed, run_quiet};

const LIMIT: Duration = Duration::from_secs(600);
const HELPER: &str = "/usr/lib/apt/apt-helper";

/// One repository of the machine's package sources.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Repository {
    /// The address, which ends with a slash.
    pub(super) address: String,
    pub(super) suite: String,
}

/// Returns the address of the main Debian archive from the machine's sources.
pub(super) fn archive() -> Result<String> {
    let release = fs::read_to_string("/etc/os-release").context("this system is not Debian")?;
    let codename = field(&release, "VERSION_CODENAME=").context("/etc/os-release does not name a release")?;
    if field(&release, "ID=") != Some("debian") {
        bail!("this system is not Debian");
    }
    let repositories = repositories(Path::new("/etc/apt"))?;
    repositories
        .into_iter()
        .find(|repository| {
            repository.suite == codename || repository.suite == "stable" || repository.suite == "oldstable"
        })
        .map(|repository| repository.address)
        .with_context(|| format!("the package sources of this machine do not name an archive for {codename}"))
}

pub(super) fn download(address: &str, file: &Path) -> Result<()> {
    if Path::new(HELPER).is_file() {
        run_quiet(
            Command::new(HELPER).args(["-o", "APT::Sandbox::User=root", "download-file", address]).arg(file),
            LIMIT,
        )?;
    } else if is_installed("curl") {
        run_quiet(Command::new("curl").args(["-fsSL", "--connect-timeout", "15", "-o"]).arg(file).arg(address), LIMIT)?;
    } else {
        bail!("neither apt-helper nor curl is installed");
    }
    Ok(())
}

/// A private apt state over the machine's package sources. Signatures are checked as usual. Packages that are installed
/// on the machine count as installed.
pub(super) struct PrivateApt {
    folder: PathBuf,
}

impl PrivateApt {
    /// Downloads the current lists of packages.
    pub(super) fn updated(folder: PathBuf) -> Result<Self> {
        for name in ["lists/partial", "cache/archives/partial", "packages"] {
            fs::create_dir_all(folder.join(name))?;
        }
        let apt = Self { folder };
        // Other repositories may be unreachable. If the lists of Debian are missing, the next step fails.
        let _ = run_quiet(apt.command("apt-get").arg("update"), LIMIT);
        Ok(apt)
    }

    /// Returns the newest available version of a package.
    pub(super) fn candidate(&self, package: &str) -> Result<String> {
        let policy = run_quiet(self.command("apt-cache").args(["policy", package]), LIMIT)?;
        let candidate = policy.lines().find_map(|line| line.trim().strip_prefix("Candidate: ")).unwrap_or("(none)");
        if candidate == "(none)" {
            bail!("the package sources of this machine do not offer {package}");
        }
        Ok(candidate.to_owned())
    }

    /// Downloads the packages and their missing dependencies without installing them. apt checks each package against
    /// its signed lists.
    pub(super) fn download(&self, packages: &[&str]) -> Result<Vec<PathBuf>> {
        let plan = run_quiet(
            self.command("apt-get").args(["install", "--simulate", "--no-install-recommends"]).args(packages),
            LIMIT,
        )?;
        let names = planned(&plan);
        if names.is_empty() {
            bail!("apt would not install anything for {packages:?}");
        }
        let folder = self.folder.join("packages");
        run_quiet(self.command("apt-get").arg("download").args(&names).current_dir(&folder), LIMIT)?;
        let files = fs::read_dir(&folder)?.map(|file| Ok(file?.path())).collect::<Result<Vec<_>>>()?;
        Ok(files.into_iter().filter(|file| file.extension().is_some_and(|extension| extension == "deb")).collect())
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        for (option, value) in [("Dir::State::lists", "lists"), ("Dir::Cache", "cache")] {
            command.arg("-o").arg(format!("{option}={}", self.folder.join(value).display()));
        }
        command.args(["-o", "APT::Sandbox::User=root", "-o", "Debug::NoLocking=1"]).env("LC_ALL", "C");
        command
    }
}

/// Returns `name=version` for every `Inst` line of a simulated installation.
fn planned(plan: &str) -> Vec<String> {
    plan.lines()
        .filter_map(|line| {
            let mut words = line.strip_prefix("Inst ")?.split_whitespace();
            let name = words.next()?;
            let version = words.find_map(|word| word.strip_prefix('('))?;
            Some(format!("{name}={version}"))
        })
        .collect()
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim_matches('"'))
}

fn repositories(folder: &Path) -> Result<Vec<Repository>> {
    let mut files = vec![folder.join("sources.list")];
    if let Ok(parts) = fs::read_dir(folder.join("sources.list.d")) {
        files.extend(parts.flatten().map(|part| part.path()));
    }
    files.sort();
    let mut repositories = Vec::new();
    for file in files {
        let Ok(text) = fs::read_to_string(&file) else { continue };
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("sources") => repositories.extend(parse_deb822(&text)),
            _ => repositories.extend(parse_one_line(&text)),
        }
    }
    Ok(repositories)
}

/// Parses the format of `*.sources` files; see sources.list(5).
fn parse_deb822(text: &str) -> Vec<Repository> {
    let mut repositories = Vec::new();
    for paragraph in text.split("\n\n") {
        let values = |name: &str| field(paragraph, name).unwrap_or_default().split_whitespace();
        if field(paragraph, "Enabled:").is_some_and(|value| value.trim() == "no") {
            continue;
        }
        for address in values("URIs:") {
            repositories.extend(values("Suites:").map(|suite| repository(address, suite)));
        }
    }
    repositories
}

/// Parses the format of `sources.list`: `deb [options] address suite components`; see sources.list(5).
fn parse_one_line(text: &str) -> Vec<Repository> {
    text.lines()
        .filter_map(|line| {
            let rest = line.trim().strip_prefix("deb ")?.trim();
            let rest = if rest.starts_with('[') { rest.split_once(']')?.1 } else { rest };
            let mut words = rest.split_whitespace();
            Some(repository(words.next()?, words.next()?))
        })
        .collect()
}

fn repository(address: &str, suite: &str) -> Repository {
    Repository { address: format!("{}/", address.trim_end_matches('/')), suite: suite.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_formats_of_package_sources_are_read() {
        let expected = [
            repository("http://mirror.example/debian", "bookworm"),
            repository("http://mirror.example/debian", "bookworm-updates"),
        ];
        let deb822 = "Types: deb\n# a remark\nURIs: http://mirror.example/debian\nSuites: bookworm bookworm-updates\nComponents: main\n";
        assert_eq!(parse_deb822(deb822), expected);
        let lines = "# a remark\ndeb [arch=amd64 signed-by=/a.gpg] http://mirror.example/debian/ bookworm main\ndeb http://mirror.example/debian bookworm-updates main\ndeb-src http://mirror.example/debian bookworm main\n";
        assert_eq!(parse_one_line(lines), expected);
    }

    #[test]
    fn disabled_source_is_ignored() {
        assert_eq!(parse_deb822("Enabled: no\nURIs: http://mirror.example/debian\nSuites: bookworm\n"), []);
    }

    #[test]
    fn simulated_installation_lists_missing_packages() {
        let plan = "Reading package lists...\nInst libllvm22 (1:22.1.2-1 Debian:12 [amd64])\nInst rustc-web [1.85] (1.96.0+dfsg1-1 Debian-Security:12 [amd64]) []\nConf libllvm22 (1:22.1.2-1 Debian:12 [amd64])\n";
        assert_eq!(planned(plan), ["libllvm22=1:22.1.2-1", "rustc-web=1.96.0+dfsg1-1"]);
    }
}
