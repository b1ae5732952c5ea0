//! Computes checksums of files, and accepts a download only if it has its pinned checksum.
//!
//! In: a file and a checksum from a table of this crate. Out: the file under its final name, or an error with both
//! checksums. Not here: checksums from the server of the download, which would prove nothing.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use sha2::{Digest, Sha256};

/// Returns the lower-case hexadecimal SHA-256 of a file.
pub(crate) fn sha256(path: &Path) -> Result<String> {
    let mut file = File::open(path).with_context(|| format!("opening {}", path.display()))?;
    let mut hasher = Sha256::new();
    io::copy(&mut file, &mut HashWriter(&mut hasher)).with_context(|| format!("reading {}", path.display()))?;
    Ok(hex::encode(hasher.finalize()))
}

/// Returns the lower-case hexadecimal SHA-256 of bytes in memory.
pub(crate) fn sha256_of(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

pub(crate) fn is(path: &Path, expected: &str) -> bool {
    sha256(path).is_ok_and(|found| found == expected)
}

/// Moves a download to its final name if its checksum matches; otherwise removes it.
pub(crate) fn admit(download: &Path, expected: &str, destination: &Path) -> Result<()> {
    let found = sha256(download)?;
    if found != expected {
        fs::remove_file(download)?;
        bail!(
            "the checksum of {} differs from the pinned one, so the download was removed\n  expected sha256 {expected}\n  found    sha256 {found}",
            destination.display()
        );
    }
    fs::rename(download, destination).with_context(|| format!("moving the download to {}", destination.display()))
}

struct HashWriter<'a>(&'a mut Sha256);

impl io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 180-2, appendix B.1.
    const SHA256_OF_ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn file_with_the_pinned_checksum_gets_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let (download, destination) = (folder.path().join("partial"), folder.path().join("final"));
        fs::write(&download, "abc").unwrap();
        admit(&download, SHA256_OF_ABC, &destination).unwrap();
        assert!(is(&destination, SHA256_OF_ABC) && !download.exists());
    }

    #[test]
    fn file_with_another_checksum_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (download, destination) = (folder.path().join("partial"), folder.path().join("final"));
        fs::write(&download, "abd").unwrap();
        let error = admit(&download, SHA256_OF_ABC, &destination).unwrap_err();
        assert!(error.to_string().contains(SHA256_OF_ABC), "{error}");
        assert!(!destination.exists() && !download.exists());
    }
}
