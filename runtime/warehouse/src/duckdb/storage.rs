//! The storage version of a DuckDB file.
//!
//! In: the path of a file. Out: the version in its header, also of a file that the engine does not open. The header
//! begins with a checksum of 8 bytes, the word `DUCK`, and the version as a little-endian integer of 8 bytes
//! (<https://duckdb.org/docs/stable/internals/storage>).

use std::fs::File;
use std::io::Read as _;
use std::ops::RangeInclusive;
use std::path::Path;

/// The storage versions that the engine of this program reads. Version 64 is that of DuckDB 0.9 to 1.1, and version 68
/// is that of DuckDB 1.5.
pub(super) const READABLE: RangeInclusive<u64> = 64..=68;

/// Returns the storage version of a file that a newer DuckDB has written, and `None` for any other file.
pub(super) fn newer_version(path: &Path) -> Option<u64> {
    version(path).filter(|version| version > READABLE.end())
}

/// Returns the storage version of a DuckDB file.
fn version(path: &Path) -> Option<u64> {
    let mut header = [0; 20];
    File::open(path).and_then(|mut file| file.read_exact(&mut header)).ok()?;
    let version = header[12..].try_into().ok().map(u64::from_le_bytes)?;
    (&header[8..12] == b"DUCK").then_some(version)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use duckdb::Connection;

    use super::*;

    #[test]
    fn latest_version_of_the_engine_is_the_last_readable_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("latest.duckdb");
        let attach = format!("ATTACH '{}' AS latest (STORAGE_VERSION 'latest')", path.display());
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(&attach).unwrap();
        connection.execute_batch("CREATE TABLE latest.t (a INTEGER); DETACH latest").unwrap();
        assert_eq!(version(&path), Some(*READABLE.end()));
        assert_eq!(newer_version(&path), None);
        let mut bytes = fs::read(&path).unwrap();
        bytes[12] += 1;
        fs::write(&path, bytes).unwrap();
        assert_eq!(newer_version(&path), Some(READABLE.end() + 1));
    }

    #[test]
    fn other_files_have_no_version() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        for text in ["", "id\n1\n", "12345678DUCK", "12345678DUCE\u{7f}0000000 and more"] {
            fs::write(&path, text).unwrap();
            assert_eq!(version(&path), None, "{text}");
        }
        assert_eq!(version(&folder.path().join("missing")), None);
    }
}
