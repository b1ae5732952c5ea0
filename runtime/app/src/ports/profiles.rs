//! The ports to stored profiles of cubes: their records, and their format.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;

use super::store::StoreError;
use crate::profiling::{CubeProfile, ProfileChanges, ProfileSummary};

/// The profile of a cube for all callers who may see the same rows and columns of the cube.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredProfile {
    pub cube: Arc<str>,
    /// The digest of the rows and columns of the cube that a caller may see. Callers with the same view have the same
    /// digest.
    pub fingerprint: Arc<str>,
    /// The range of time as the caller wrote it; empty for all rows.
    pub range: Arc<str>,
    pub profiled_at: Timestamp,
    pub text: Arc<str>,
}

/// The stored profiles. For each cube, fingerprint and range, only the newest profile is stored.
#[async_trait]
pub trait ProfileRecords: Send + Sync {
    /// Returns the newest profile of a cube; with `range`, the newest profile of this range.
    async fn profile(
        &self,
        cube: &str,
        fingerprint: &str,
        range: Option<&str>,
    ) -> Result<Option<StoredProfile>, StoreError>;

    /// Stores a profile. It replaces the profile of the same cube, fingerprint and range. Deletes all but the newest
    /// `most` profiles.
    async fn store_profile(&self, profile: &StoredProfile, most: u32) -> Result<(), StoreError>;
}

/// Writes profiles as text, and parses the fields that are compared.
pub trait ProfileTexts: Send + Sync {
    fn write(&self, profile: &CubeProfile, range: &str, changes: Option<&ProfileChanges>) -> String;

    /// Writes the profile of the first dimension; `None` if the profile has no dimension.
    fn dimension(&self, profile: &CubeProfile) -> Option<String>;

    /// Returns the summary of a stored profile; `None` if the text was written by a different version.
    fn summary(&self, text: &str) -> Option<ProfileSummary>;
}
