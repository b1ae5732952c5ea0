//! The hash that chains audit records.
//!
//! SHA-256 over the previous hash and every field, each with its length before it, so that no two
//! records have one text. Whoever changes, drops or inserts a record changes every hash after it.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::ports::audit::AuditEntry;

/// What the first record is chained to.
pub const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The hash of a record at its place.
pub fn hash(previous: &str, sequence: u64, entry: &AuditEntry) -> Arc<str> {
    let mut digest = Sha256::new();
    let mut field = |text: Option<&str>| {
        let length = text.map_or(u64::MAX, |text| text.len() as u64);
        digest.update(length.to_be_bytes());
        digest.update(text.unwrap_or_default().as_bytes());
    };
    field(Some(previous));
    field(Some(&sequence.to_string()));
    field(Some(&entry.at.to_string()));
    for text in [&entry.event, &entry.actor, &entry.auth_method, &entry.resource] {
        field(Some(text));
    }
    for text in [&entry.client_ip, &entry.correlation_id, &entry.reason, &entry.before, &entry.after] {
        field(text.as_deref());
    }
    field(Some(&entry.count.to_string()));
    hex::encode(digest.finalize()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_and_place_counts() {
        let entry = AuditEntry { event: "a".into(), actor: "bc".into(), count: 1, ..AuditEntry::default() };
        let base = hash(GENESIS, 1, &entry);
        let others = [
            AuditEntry { event: "ab".into(), actor: "c".into(), ..entry.clone() },
            AuditEntry { reason: Some("".into()), ..entry.clone() },
            AuditEntry { before: Some("x".into()), ..entry.clone() },
            AuditEntry { after: Some("x".into()), ..entry.clone() },
            AuditEntry { count: 2, ..entry.clone() },
            AuditEntry { at: jiff::Timestamp::from_second(1).expect("a time"), ..entry.clone() },
        ];
        for other in &others {
            assert_ne!(hash(GENESIS, 1, other), base, "{other:?}");
        }
        assert_ne!(hash(GENESIS, 2, &entry), base);
        assert_ne!(hash(&base, 1, &entry), base);
    }
}
