//! Tests stored profiles on SQLite.

#![allow(clippy::unwrap_used, reason = "a test stops at its first fault")]

use jiff::Timestamp;
use terrane_app::ports::profiles::{ProfileRecords as _, StoredProfile};
use terrane_store::StateStore;

fn profile(fingerprint: &str, range: &str, second: i64, text: &str) -> StoredProfile {
    StoredProfile {
        cube: "orders".into(),
        fingerprint: fingerprint.into(),
        range: range.into(),
        profiled_at: Timestamp::from_second(second).unwrap(),
        text: text.into(),
    }
}

#[tokio::test]
async fn newest_profile_of_a_view_and_a_range_is_returned() {
    let folder = tempfile::tempdir().unwrap();
    let store = StateStore::open("sqlite://state.db", folder.path()).await.unwrap();
    let found = async |fingerprint: &str, range: &str| {
        let found = store.profile("orders", fingerprint, range).await.unwrap();
        found.map(|profile| profile.text.to_string())
    };
    assert_eq!(found("a", "").await, None);
    let all = profile("a", "", 2, "all");
    for stored in [&profile("a", "", 1, "first"), &all, &profile("a", "2024", 3, "year"), &profile("b", "", 4, "other")]
    {
        store.store_profile(stored, 10).await.unwrap();
    }
    assert_eq!(store.profile("orders", "a", "").await.unwrap(), Some(all));
    assert_eq!(found("a", "2024").await.as_deref(), Some("year"));
    assert_eq!(found("c", "").await, None);
    assert_eq!(store.profile("visits", "a", "").await.unwrap(), None);
    // Storing a profile deletes the oldest ones beyond the limit.
    store.store_profile(&profile("d", "", 5, "newest"), 2).await.unwrap();
    assert_eq!(found("a", "").await, None);
    assert_eq!(found("b", "").await.as_deref(), Some("other"));
}
