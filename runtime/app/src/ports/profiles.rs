//! The port to the records of profiles of cubes.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;

use super::store::StoreError;

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
    /// Returns the profile of a range of a cube. The empty range stands for the whole cube.
    async fn profile(&self, cube: &str, fingerprint: &str, range: &str) -> Result<Option<StoredProfile>, StoreError>;

    /// Stores a profile. It replaces the profile of the same cube, fingerprint and range. Deletes all but the newest
    /// `most` profiles.
    async fn store_profile(&self, profile: &StoredProfile, most: u32) -> Result<(), StoreError>;
}
