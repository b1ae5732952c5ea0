//! The ports to stored profiles of cubes: their records, and their text.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;

use super::store::StoreError;
use crate::profiling::{CubeProfile, ProfileChanges, ProfileSummary};

/// The profile of a cube as some callers see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredProfile {
    pub cube: Arc<str>,
    /// The digest of what the cube's rows and columns are for a caller: equal for callers with the same view.
    pub fingerprint: Arc<str>,
    /// The range of time as the caller wrote it; empty for all rows.
    pub range: Arc<str>,
    pub profiled_at: Timestamp,
    pub text: Arc<str>,
}

/// The stored profiles: the newest one of each cube, fingerprint and range.
#[async_trait]
pub trait ProfileRecords: Send + Sync {
    /// Returns the newest profile of a cube; with a range, that of the range.
    async fn profile(
        &self,
        cube: &str,
        fingerprint: &str,
        range: Option<&str>,
    ) -> Result<Option<StoredProfile>, StoreError>;

    /// Replaces the profile of the same cube, fingerprint and range, and deletes all but the newest `most` profiles.
    async fn store_profile(&self, profile: &StoredProfile, most: u32) -> Result<(), StoreError>;
}

/// Writes profiles as text, and reads the parts that are compared.
pub trait ProfileTexts: Send + Sync {
    fn write(&self, profile: &CubeProfile, range: &str, changes: Option<&ProfileChanges>) -> String;

    /// Writes the profile of the first dimension; `None` if the profile has no dimension.
    fn dimension(&self, profile: &CubeProfile) -> Option<String>;

    /// Returns the summary of a stored profile; `None` if its text has another version.
    fn summary(&self, text: &str) -> Option<ProfileSummary>;
}
