//! The version of the files that an embedded engine reads.
//!
//! In: files, and folders whose files are included. Out: a digest of the files' identities, sizes and modification
//! times, and the newest modification time. A change of any file changes the version, whichever files a statement
//! reads. Not here: the contents of files.

use std::fs::{self, Metadata};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use terrane_app::ports::warehouse::EngineVersion;

/// The largest number of files. With more files, computing the version would take too long.
const MAX_FILES: usize = 256;
const MAX_DEPTH: usize = 8;

/// The files that statements can read.
#[derive(Debug, Default)]
pub(crate) struct FileVersions {
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
    /// A number that differs for each process, if the engine has data in memory. Otherwise 0.
    process: u64,
}

struct VersionDigest {
    hash: Sha256,
    newest: Option<Timestamp>,
    count: usize,
}

impl FileVersions {
    pub(crate) fn of(files: Vec<PathBuf>, folders: Vec<PathBuf>) -> Self {
        FileVersions { files, folders, process: 0 }
    }

    /// Makes the version specific to this process, because the engine has data in its memory.
    pub(crate) fn in_memory(self) -> Self {
        FileVersions { process: RandomState::new().build_hasher().finish(), ..self }
    }

    /// Returns the version. Returns `None` if there are too many files or levels of folders, or a folder is unreadable.
    pub(crate) fn read(&self) -> Option<EngineVersion> {
        let mut reading = VersionDigest { hash: Sha256::new(), newest: None, count: 0 };
        reading.hash.update(self.process.to_le_bytes());
        for file in &self.files {
            reading.file(file, fs::metadata(file).ok().as_ref());
        }
        for folder in &self.folders {
            reading.folder(folder, 0)?;
        }
        Some(EngineVersion { digest: reading.hash.finalize().into(), changed_at: reading.newest })
    }
}

impl VersionDigest {
    fn folder(&mut self, folder: &Path, depth: usize) -> Option<()> {
        let entries = fs::read_dir(folder).ok()?.collect::<Result<Vec<_>, _>>().ok()?;
        let mut paths: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            self.count += 1;
            if self.count > MAX_FILES || depth > MAX_DEPTH {
                return None;
            }
            match fs::metadata(&path) {
                Ok(found) if found.is_dir() => self.folder(&path, depth + 1)?,
                found => self.file(&path, found.ok().as_ref()),
            }
        }
        Some(())
    }

    fn file(&mut self, path: &Path, found: Option<&Metadata>) {
        let name = path.as_os_str().as_encoded_bytes();
        self.hash.update((name.len() as u64).to_le_bytes());
        self.hash.update(name);
        let Some(found) = found else {
            self.hash.update(b"-");
            return;
        };
        self.hash.update(found.len().to_le_bytes());
        self.hash.update(identity(found).to_le_bytes());
        let modified = found.modified().ok().and_then(|at| Timestamp::try_from(at).ok());
        self.hash.update(modified.map_or(i128::MIN, Timestamp::as_nanosecond).to_le_bytes());
        self.newest = self.newest.max(modified);
    }
}

/// Returns a number that changes if a file is replaced by another file.
#[cfg(unix)]
fn identity(found: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(found)
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

    use super::*;

    #[test]
    fn each_change_of_a_file_changes_the_version() {
        let folder = tempfile::tempdir().unwrap();
        let (nested, single) = (folder.path().join("data/2024"), folder.path().join("one.csv"));
        fs::create_dir_all(&nested).unwrap();
        let versions = FileVersions::of(vec![single.clone()], vec![folder.path().join("data")]);
        let mut seen = vec![versions.read().unwrap().digest];
        let mut changes = |versions: &FileVersions| {
            let digest = versions.read().unwrap().digest;
            assert_eq!(versions.read().unwrap().digest, digest, "nothing changed");
            assert!(!seen.contains(&digest));
            seen.push(digest);
        };
        fs::write(&single, "a").unwrap();
        changes(&versions);
        fs::write(nested.join("a.parquet"), "a").unwrap();
        changes(&versions);
        let file = fs::File::options().write(true).open(nested.join("a.parquet")).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        changes(&versions);
        fs::rename(nested.join("a.parquet"), nested.join("b.parquet")).unwrap();
        changes(&versions);
    }

    #[test]
    fn folder_with_too_many_files_has_no_version() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..=MAX_FILES {
            fs::write(folder.path().join(number.to_string()), "").unwrap();
        }
        assert_eq!(FileVersions::of(Vec::new(), vec![folder.path().to_owned()]).read(), None);
    }

    #[test]
    fn version_of_memory_data_is_unique_per_process() {
        let version = || FileVersions::default().in_memory().read().unwrap().digest;
        assert_ne!(version(), version());
    }
}
