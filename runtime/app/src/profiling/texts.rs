//! The texts of stored profiles, which the crate `wire` implements.

use super::{CubeProfile, ProfileChanges, ProfileSummary};

/// Writes profiles as text, and parses the fields that are compared.
pub trait ProfileTexts: Send + Sync {
    fn write(&self, profile: &CubeProfile, range: &str, changes: Option<&ProfileChanges>) -> String;

    /// Writes the profile of the first dimension; `None` if the profile has no dimension.
    fn dimension(&self, profile: &CubeProfile) -> Option<String>;

    /// Returns the summary of a stored profile; `None` if the text was written by a different version.
    fn summary(&self, text: &str) -> Option<ProfileSummary>;
}
