//! The validity of API keys.
//!
//! In: a key and a time. Out: its state, and the word for it.

use jiff::Timestamp;

use crate::ports::credentials::ApiKey;

/// The validity of a key at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyState {
    Valid,
    Expired,
    Revoked,
}

impl KeyState {
    pub fn at(key: &ApiKey, now: Timestamp) -> Self {
        match key {
            ApiKey { revoked_at: Some(_), .. } => KeyState::Revoked,
            ApiKey { expires_at: Some(at), .. } if *at <= now => KeyState::Expired,
            _ => KeyState::Valid,
        }
    }

    /// Returns the word for the state in responses and audit records.
    pub fn as_str(self) -> &'static str {
        match self {
            KeyState::Valid => "active",
            KeyState::Expired => "expired",
            KeyState::Revoked => "revoked",
        }
    }
}
