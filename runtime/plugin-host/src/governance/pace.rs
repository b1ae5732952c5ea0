//! Whether hooks answer so quickly that they are asked on the spot.
//!
//! In: how long each round of questions took. Out: on the caller's thread, or on the pool. Handing a question to
//! another thread and its answer back takes longer than a quick hook takes. One slow round sends all questions to the
//! pool for ten seconds, and then until hooks have been quick for a while, so a hook that loops holds each worker of
//! the server for one call, up to its time limit, in ten seconds at most. Certification and changes of metadata are
//! asked the same way.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::elapsed::Elapsed;

/// A thread that had to wait for the processor in between may still count as quick; a hook that loops is broken off
/// after many times that.
const QUICK: Duration = Duration::from_millis(2);
/// So many quick rounds in a row, and the next is on the spot.
const ROUNDS: u32 = 32;
const PENALTY: Duration = Duration::from_secs(10);

pub(super) struct Pace {
    clock: Elapsed,
    quick_rounds: AtomicU32,
    /// On the pool until then, in milliseconds of the clock.
    slow_until_ms: AtomicU64,
}

impl Pace {
    pub(super) fn new(clock: Elapsed) -> Pace {
        Pace { clock, quick_rounds: AtomicU32::new(0), slow_until_ms: AtomicU64::new(0) }
    }

    pub(super) fn is_quick(&self) -> bool {
        self.quick_rounds.load(Ordering::Relaxed) >= ROUNDS
            && self.now_ms() >= self.slow_until_ms.load(Ordering::Relaxed)
    }

    /// Asks, and notes how long it took.
    pub(super) fn timed<T>(&self, ask: impl FnOnce() -> T) -> T {
        let started = self.clock.now();
        let answer = ask();
        self.note(self.clock.now().saturating_sub(started));
        answer
    }

    fn note(&self, took: Duration) {
        if took > QUICK {
            self.quick_rounds.store(0, Ordering::Relaxed);
            self.slow_until_ms.store(self.now_ms() + PENALTY.as_millis() as u64, Ordering::Relaxed);
        } else if self.quick_rounds.load(Ordering::Relaxed) < ROUNDS {
            self.quick_rounds.fetch_add(1, Ordering::Relaxed);
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

    #[test]
    fn one_slow_round_sends_questions_to_the_pool_for_a_while() {
        let clock = Still::default();
        let pace = Pace::new(clock.elapsed());
        let round = |took: Duration| pace.timed(|| clock.advance(took));
        assert!(!pace.is_quick(), "nobody knows yet");
        (0..ROUNDS).for_each(|_| round(Duration::from_micros(90)));
        assert!(pace.is_quick());
        round(Duration::from_millis(10));
        (0..2 * ROUNDS).for_each(|_| round(Duration::from_micros(90)));
        assert!(!pace.is_quick(), "the while is not over");
        clock.advance(PENALTY);
        assert!(pace.is_quick());
    }

    #[test]
    fn after_the_while_hooks_have_to_be_quick_again() {
        let clock = Still::default();
        let pace = Pace::new(clock.elapsed());
        pace.timed(|| clock.advance(Duration::from_millis(3)));
        clock.advance(PENALTY);
        assert!(!pace.is_quick());
    }
}
