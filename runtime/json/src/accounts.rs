//! Accounts as JSON objects.
//!
//! In: keys and users. Out: their fields without secrets and hashes, as the audit log records them.

use jiff::Timestamp;
use serde_json::Value as Json;
use terrane_app::accounts::{key_details, user_details};
use terrane_app::ports::credentials::{ApiKey, User};

use crate::details;

/// Returns the fields of a key, with its state at the time `now`.
pub fn key_to_json(key: &ApiKey, now: Timestamp) -> Json {
    details::to_json(&key_details(key, now))
}

/// Returns the fields of a user.
pub fn user_to_json(user: &User) -> Json {
    details::to_json(&user_details(user))
}
