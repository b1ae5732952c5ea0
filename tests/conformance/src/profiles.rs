//! Stored profiles in memory.

use std::sync::Mutex;

use async_trait::async_trait;
use terrane_app::ports::profiles::{ProfileRecords, StoredProfile};
use terrane_app::ports::store::StoreError;

/// The profiles of one server, the newest last.
#[derive(Debug, Default)]
pub struct MemoryProfiles(Mutex<Vec<StoredProfile>>);

#[async_trait]
impl ProfileRecords for MemoryProfiles {
    async fn profile(&self, cube: &str, fingerprint: &str, range: &str) -> Result<Option<StoredProfile>, StoreError> {
        let profiles = self.0.lock().expect("no test panics here");
        let is_wanted = |profile: &&StoredProfile| {
            *profile.cube == *cube && *profile.fingerprint == *fingerprint && *profile.range == *range
        };
        Ok(profiles.iter().rev().find(is_wanted).cloned())
    }

    async fn store_profile(&self, profile: &StoredProfile, _: u32) -> Result<(), StoreError> {
        self.0.lock().expect("no test panics here").push(profile.clone());
        Ok(())
    }
}
