//! Correlation ids, under which requests are found in the log.
//!
//! In: the id that a client sent, if any. Out: that id, or a new one.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::HeaderValue;

use crate::telemetry::mask;

/// The largest length of a client's id that is adopted, in bytes.
const MAX_BYTES: usize = 128;

/// Creates unique ids. One half is random for each process. The other half is a counter to which a bijection is
/// applied, so that consecutive ids do not look alike.
pub(super) struct Ids {
    process: u64,
    next: AtomicU64,
}

impl Ids {
    pub(super) fn new() -> Self {
        let random = RandomState::new();
        Ids { process: random.hash_one(0_u8), next: AtomicU64::new(random.hash_one(1_u8)) }
    }

    /// Returns the client's own id if it is short, visible ASCII and not a secret, and a new one otherwise. Ids are
    /// written to the log, to answers and to the audit log.
    pub(super) fn adopt_or_make(&self, sent: Option<&HeaderValue>) -> Arc<str> {
        match sent.and_then(|value| value.to_str().ok()) {
            Some(id) if is_sane(id) && mask(id) == id => id.into(),
            _ => self.make(),
        }
    }

    fn make(&self) -> Arc<str> {
        let count = spread(self.next.fetch_add(1, Ordering::Relaxed));
        let mut text = [0; 32];
        for (number, digits) in [self.process, count].into_iter().zip(text.chunks_exact_mut(16)) {
            // Eight bytes are sixteen digits.
            let _ = hex::encode_to_slice(number.to_be_bytes(), digits);
        }
        // Hexadecimal digits are UTF-8.
        std::str::from_utf8(&text).unwrap_or_default().into()
    }
}

fn is_sane(id: &str) -> bool {
    (1..=MAX_BYTES).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Applies the finalizer of SplitMix64 (Steele, Lea, Flood 2014), which is a bijection.
fn spread(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_and_short_visible_ones_are_adopted() {
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
