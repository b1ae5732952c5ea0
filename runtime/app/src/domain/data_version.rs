//! Versions of data: equal versions of cubes mean equal rows.

use std::fmt;

/// The version of the data of one cube or of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DataVersion([u8; 16]);

impl DataVersion {
    /// A version for results that no other query may reuse.
    pub const UNKNOWN: DataVersion = DataVersion([0; 16]);

    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        DataVersion(bytes)
    }

    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for DataVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}
