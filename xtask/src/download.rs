//! Downloads archives whose checksums are pinned.
//!
//! In: an archive's origin and checksum. Out: the verified archive in the download cache. If the user has put a copy
//! there, the copy is used. Not here: unpacking (`archive`), and archives without a checksum.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::checksum;
use crate::command::{is_installed, run_quiet};

const LIMIT: Duration = Duration::from_secs(600);

/// An archive with a pinned checksum.
pub(crate) struct Download {
    pub(crate) origin: Origin,
    /// The file name in the download cache.
    pub(crate) file_name: &'static str,
    pub(crate) sha256: &'static str,
}

pub(crate) enum Origin {
    /// A package in the registry for which npm is configured.
    Npm(&'static str),
    /// A function that returns the URL of a file name.
    Url(fn(&str) -> String),
}

impl Download {
    /// Returns the verified archive in the download cache.
    pub(crate) fn obtain(&self, downloads: &Path) -> Result<PathBuf> {
        let cached = downloads.join(self.file_name);
        if cached.is_file() {
            if checksum::is(&cached, self.sha256) {
                return Ok(cached);
            }
            println!("      {} has another checksum than the pinned one and is fetched again", cached.display());
        }
        let partial = downloads.join(format!(".partial-{}", std::process::id()));
        fs::create_dir_all(&partial)?;
        println!("      fetching {} …", self.file_name);
        let fetched =
            self.fetch(&partial).and_then(|()| checksum::admit(&partial.join(self.file_name), self.sha256, &cached));
        fs::remove_dir_all(&partial)?;
        fetched.map(|()| cached)
    }

    /// Describes how a user can download the archive, if this machine cannot.
    pub(crate) fn by_hand(&self, downloads: &Path) -> String {
        match &self.origin {
            Origin::Npm(package) => format!("npm pack {package} --pack-destination {}", downloads.display()),
            Origin::Url(url) => format!("put {} in {}", url(self.file_name), downloads.display()),
        }
    }

    fn fetch(&self, folder: &Path) -> Result<()> {
        match self.origin {
            Origin::Npm(package) => {
                if !is_installed("npm") {
                    bail!("npm is not installed (it comes with Node.js)");
                }
                let arguments =
                    ["pack", "--loglevel=error", "--fetch-retries=1", "--fetch-retry-mintimeout=2000", package];
                run_quiet(Command::new("npm").args(arguments).current_dir(folder), LIMIT)?;
            }
            Origin::Url(url) => {
                let (url, file) = (url(self.file_name), folder.join(self.file_name));
                if is_installed("curl") {
                    let arguments = ["-fsSL", "--connect-timeout", "15", "-o"];
                    run_quiet(Command::new("curl").args(arguments).arg(file).arg(url), LIMIT)?;
                } else if is_installed("wget") {
                    let arguments = ["-q", "--tries=2", "--connect-timeout=15", "-O"];
                    run_quiet(Command::new("wget").args(arguments).arg(file).arg(url), LIMIT)?;
                } else {
                    bail!("neither curl nor wget is installed");
                }
            }
        }
        Ok(())
    }
}
