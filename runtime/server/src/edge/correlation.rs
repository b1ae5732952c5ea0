//! The number under which a request is found in the log.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::HeaderValue;

use crate::telemetry::mask;

const MAX_BYTES: usize = 128;

/// Makes ids that no other process and no earlier request has: a random half and a counted half,
/// which is spread by a bijection so that ids don't look alike.
pub(super) struct Ids {
    process: u64,
    next: AtomicU64,
}

impl Ids {
    pub(super) fn new() -> Self {
        let random = RandomState::new();
        Ids { process: random.hash_one(0_u8), next: AtomicU64::new(random.hash_one(1_u8)) }
    }

    /// The client's own id where it is short, visible ASCII and no secret, else a new one: ids go into
    /// the log, into answers and into the audit log.
    pub(super) fn adopt_or_make(&self, sent: Option<&HeaderValue>) -> Arc<str> {
        match sent.and_then(|value| value.to_str().ok()) {
            Some(id) if is_sane(id) && mask(id) == id => id.into(),
            _ => self.make(),
        }
    }

    fn make(&self) -> Arc<str> {
        let halves = [self.process, spread(self.next.fetch_add(1, Ordering::Relaxed))];
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&halves[0].to_be_bytes());
        bytes[8..].copy_from_slice(&halves[1].to_be_bytes());
        hex::encode(bytes).into()
    }
}

fn is_sane(id: &str) -> bool {
    (1..=MAX_BYTES).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
fn spread(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_and_sane_ones_are_kept() {
        let ids = Ids::new();
        assert_ne!(ids.make(), ids.make());
        assert_eq!(&*ids.adopt_or_make(Some(&HeaderValue::from_static("abc-1"))), "abc-1");
        for foreign in ["", "two words", "\u{e9}"] {
            let sent = HeaderValue::from_str(foreign).ok();
            assert_eq!(ids.adopt_or_make(sent.as_ref()).len(), 32, "{foreign:?}");
        }
        let long = HeaderValue::from_str(&"x".repeat(129)).unwrap();
        assert_eq!(ids.adopt_or_make(Some(&long)).len(), 32);
    }
}
