//! Creates ids of traces and spans, which are evenly distributed and differ from those of other processes. They are not
//! secret, so they are computed without a system call for random bytes.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use terrane_app::ports::traces::{SpanId, TraceId};

pub(crate) struct Ids {
    process: u64,
    next: AtomicU64,
}

impl Ids {
    pub(crate) fn random() -> Self {
        let random = RandomState::new();
        Ids { process: random.hash_one(0_u8), next: AtomicU64::new(random.hash_one(1_u8)) }
    }

    pub(crate) fn trace(&self) -> TraceId {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&spread(self.number() ^ self.process).to_be_bytes());
        id[8..].copy_from_slice(&self.span().0);
        TraceId(id)
    }

    pub(crate) fn span(&self) -> SpanId {
        // Zero is not a valid id. The bijection `spread` returns zero for exactly one of the 2^64 numbers.
        SpanId(spread(self.number().wrapping_add(self.process)).max(1).to_be_bytes())
    }

    fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }
}

/// Returns whether a trace is sampled. The decision depends only on the id, so all processes agree.
pub(crate) fn is_sampled(trace: TraceId, ratio: f64) -> bool {
    let [.., a, b, c, d] = trace.0;
    f64::from(u32::from_be_bytes([a, b, c, d])) < ratio * 2_f64.powi(32)
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
    fn ids_differ_and_have_the_ratio() {
        let ids = Ids::random();
        let traces: Vec<TraceId> = (0..20_000).map(|_| ids.trace()).collect();
        let different: std::collections::HashSet<[u8; 16]> = traces.iter().map(|trace| trace.0).collect();
        assert_eq!(different.len(), traces.len());
        let share = |ratio| traces.iter().filter(|trace| is_sampled(**trace, ratio)).count();
        assert_eq!((share(0.0), share(1.0)), (0, 20_000));
        assert!((1_700..2_300).contains(&share(0.1)), "{}", share(0.1));
    }
}
