//! The hash that chains audit records.
//!
//! In: a record and the hash of the previous record. Out: SHA-256 over the previous hash and every field. The length of
//! a field is hashed before the field, so that different records add different bytes. Changing, removing or inserting a
//! record changes every later hash.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::ports::audit::AuditEntry;

/// The previous hash of the first record.
pub const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The details of a record as the store wrote them.
#[derive(Debug, Clone, Copy, Default)]
pub struct StoredDetails<'d> {
    pub before: Option<&'d str>,
    pub after: Option<&'d str>,
}

/// Returns the hash of a record at its place in the chain, over its details as the store wrote them.
pub fn hash(previous: &str, sequence: u64, entry: &AuditEntry, details: StoredDetails<'_>) -> Arc<str> {
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
    for text in [&entry.client_ip, &entry.correlation_id, &entry.reason] {
        field(text.as_deref());
    }
    field(details.before);
    field(details.after);
    field(Some(&entry.count.to_string()));
    hex::encode(digest.finalize()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_depends_on_every_field_and_its_position() {
        let entry = AuditEntry { event: "a".into(), actor: "bc".into(), count: 1, ..AuditEntry::default() };
        let none = StoredDetails::default();
        let base = hash(GENESIS, 1, &entry, none);
        let others = [
            AuditEntry { event: "ab".into(), actor: "c".into(), ..entry.clone() },
            AuditEntry { reason: Some("".into()), ..entry.clone() },
            AuditEntry { count: 2, ..entry.clone() },
            AuditEntry { at: jiff::Timestamp::from_second(1).expect("a time"), ..entry.clone() },
        ];
        for other in &others {
            assert_ne!(hash(GENESIS, 1, other, none), base, "{other:?}");
        }
        for details in
            [StoredDetails { before: Some("x"), after: None }, StoredDetails { before: None, after: Some("x") }]
        {
            assert_ne!(hash(GENESIS, 1, &entry, details), base, "{details:?}");
        }
        assert_ne!(hash(GENESIS, 2, &entry, none), base);
        assert_ne!(hash(&base, 1, &entry, none), base);
    }
}
