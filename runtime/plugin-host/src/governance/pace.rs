//! Whether hooks answer so quickly that they are asked on the spot.
//!
//! In: how long each round of questions took. Out: on the caller's thread, or on the pool. Handing a question to
//! another thread and its answer back takes longer than a quick hook takes. Quick rounds earn credit and a slow one
//! costs it: one among many may be the machine's, two close together send all questions to the pool for ten seconds,
//! and then until hooks have been quick for a while. So a hook that loops holds each worker of the server for two calls
//! in ten seconds at most, up to its time limit each; one that is slow now and then, for one call in thirty-three.
//! Certification and changes of metadata are asked the same way.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::elapsed::Elapsed;

/// A thread that had to wait for the processor in between may still count as quick; a hook that loops is broken off
/// after many times that.
const QUICK: Duration = Duration::from_millis(2);
/// So many more quick rounds than slow ones cost, and the next is on the spot.
const ENOUGH: u32 = 32;
const MOST: u32 = 2 * ENOUGH;
const PENALTY: Duration = Duration::from_secs(10);

pub(super) struct Pace {
    clock: Elapsed,
    /// One for each quick round, up to [`MOST`]; a slow one takes [`ENOUGH`].
    credit: AtomicU32,
    /// On the pool until then, in milliseconds of the clock.
    slow_until_ms: AtomicU64,
}

impl Pace {
    pub(super) fn new(clock: Elapsed) -> Pace {
        Pace { clock, credit: AtomicU32::new(0), slow_until_ms: AtomicU64::new(0) }
    }

    pub(super) fn is_quick(&self) -> bool {
        self.credit.load(Ordering::Relaxed) >= ENOUGH && self.now_ms() >= self.slow_until_ms.load(Ordering::Relaxed)
    }

    /// Asks, and notes how long it took.
    pub(super) fn timed<T>(&self, ask: impl FnOnce() -> T) -> T {
        let started = self.clock.now();
        let answer = ask();
        self.note(self.clock.now().saturating_sub(started));
        answer
    }

    fn note(&self, took: Duration) {
        let is_quick = took <= QUICK;
        let after = |credit: u32| if is_quick { MOST.min(credit + 1) } else { credit.saturating_sub(ENOUGH) };
        let next = |credit: u32| (after(credit) != credit).then(|| after(credit));
        let before = self.credit.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        let left = after(before.unwrap_or_else(|credit| credit));
        if !is_quick && left < ENOUGH {
            self.slow_until_ms.store(self.now_ms() + PENALTY.as_millis() as u64, Ordering::Relaxed);
        }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.clock.now().as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elapsed::tests::Still;

    const QUICKLY: Duration = Duration::from_micros(90);
    const SLOWLY: Duration = Duration::from_millis(10);

    #[test]
    fn a_second_slow_round_sends_questions_to_the_pool_for_a_while() {
        let clock = Still::default();
        let pace = Pace::new(clock.elapsed());
        let round = |took: Duration| pace.timed(|| clock.advance(took));
        assert!(!pace.is_quick(), "nobody knows yet");
        (0..MOST).for_each(|_| round(QUICKLY));
        round(SLOWLY);
        assert!(pace.is_quick(), "one may be the machine's");
        round(SLOWLY);
        (0..2 * MOST).for_each(|_| round(QUICKLY));
        assert!(!pace.is_quick(), "the while is not over");
        clock.advance(PENALTY);
        assert!(pace.is_quick());
    }

    #[test]
    fn hooks_that_are_slow_now_and_then_stay_on_the_spot() {
        let clock = Still::default();
        let pace = Pace::new(clock.elapsed());
        (0..MOST).for_each(|_| pace.timed(|| clock.advance(QUICKLY)));
        for _ in 0..20 {
            pace.timed(|| clock.advance(SLOWLY));
            assert!(pace.is_quick());
            (0..ENOUGH).for_each(|_| pace.timed(|| clock.advance(QUICKLY)));
        }
    }

    #[test]
    fn without_credit_one_slow_round_is_enough() {
        let clock = Still::default();
        let pace = Pace::new(clock.elapsed());
        (0..ENOUGH).for_each(|_| pace.timed(|| clock.advance(QUICKLY)));
        pace.timed(|| clock.advance(SLOWLY));
        clock.advance(PENALTY);
        assert!(!pace.is_quick(), "hooks have to be quick again");
    }
}
