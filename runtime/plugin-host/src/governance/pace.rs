//! Whether hooks answer so quickly that they are asked on the spot.
//!
//! In: how long each round of questions took. Out: on the caller's thread, or on the pool. Handing a question to
//! another thread and its answer back takes longer than a quick hook takes. Quick rounds earn credit and a slow one
//! costs it: one among many may be the machine's, two close together on the spot send all questions to the pool for
//! ten seconds, and then until hooks have been quick for a while. So a hook that loops holds each worker of the server
//! for two calls in ten seconds at most, up to its time limit each; one that is slow now and then, for one call in
//! thirty-three. What is slow on the pool, as a server's first call may be, holds no worker and costs no more than its
//! credit. Certification and changes of metadata are asked the same way.

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
    pub(super) fn timed<T>(&self, is_on_the_spot: bool, ask: impl FnOnce() -> T) -> T {
        let started = self.clock.now();
        let answer = ask();
        self.note(is_on_the_spot, self.clock.now().saturating_sub(started));
        answer
    }

    fn note(&self, is_on_the_spot: bool, took: Duration) {
        let is_quick = took <= QUICK;
        let after = |credit: u32| if is_quick { MOST.min(credit + 1) } else { credit.saturating_sub(ENOUGH) };
        let next = |credit: u32| (after(credit) != credit).then(|| after(credit));
        let before = self.credit.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        let left = after(before.unwrap_or_else(|credit| credit));
        if !is_quick && is_on_the_spot && left < ENOUGH {
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

    /// One round, wherever it is due.
    fn round(pace: &Pace, clock: &Still, took: Duration) {
        pace.timed(pace.is_quick(), || clock.advance(took));
    }

    #[test]
    fn a_second_slow_round_sends_questions_to_the_pool_for_a_while() {
        let clock = Still::default();
        let pace = Pace::new(clock.elapsed());
        assert!(!pace.is_quick(), "nobody knows yet");
        (0..MOST).for_each(|_| round(&pace, &clock, QUICKLY));
        round(&pace, &clock, SLOWLY);
        assert!(pace.is_quick(), "one may be the machine's");
        round(&pace, &clock, SLOWLY);
        (0..2 * MOST).for_each(|_| round(&pace, &clock, QUICKLY));
        assert!(!pace.is_quick(), "the while is not over");
        clock.advance(PENALTY);
        assert!(pace.is_quick());
    }

    #[test]
    fn hooks_that_are_slow_now_and_then_stay_on_the_spot() {
        let clock = Still::default();
        let pace = Pace::new(clock.elapsed());
        (0..MOST).for_each(|_| round(&pace, &clock, QUICKLY));
        for _ in 0..20 {
            round(&pace, &clock, SLOWLY);
            assert!(pace.is_quick());
            (0..ENOUGH).for_each(|_| round(&pace, &clock, QUICKLY));
        }
    }

    #[test]
    fn without_credit_one_slow_round_is_enough() {
        let clock = Still::default();
        let pace = Pace::new(clock.elapsed());
        (0..ENOUGH).for_each(|_| round(&pace, &clock, QUICKLY));
        round(&pace, &clock, SLOWLY);
        clock.advance(PENALTY);
        assert!(!pace.is_quick(), "hooks have to be quick again");
    }

    #[test]
    fn a_slow_beginning_costs_no_time_on_the_spot() {
        let clock = Still::default();
        let pace = Pace::new(clock.elapsed());
        round(&pace, &clock, SLOWLY);
        (0..ENOUGH).for_each(|_| round(&pace, &clock, QUICKLY));
        assert!(pace.is_quick());
    }

    /// How often a worker is held by hooks that are slow `slow` times behind `quick` quick rounds, over and over, and
    /// for how many times ten seconds.
    fn held(quick: u32, slow: u32) -> (f64, f64) {
        let clock = Still::default();
        let (pace, mut held) = (Pace::new(clock.elapsed()), 0_u32);
        for _ in 0..400 {
            (0..quick).for_each(|_| round(&pace, &clock, QUICKLY));
            for _ in 0..slow {
                held += u32::from(pace.is_quick());
                round(&pace, &clock, SLOWLY);
            }
        }
        (f64::from(held), clock.elapsed().now().as_secs_f64() / PENALTY.as_secs_f64())
    }

    #[test]
    fn slow_rounds_close_together_hold_a_worker_twice_in_ten_seconds() {
        for slow in [2, 5, 30, 100] {
            let (held, tens_of_seconds) = held(MOST, slow);
            assert!(held <= 2.0 * (tens_of_seconds + 1.0), "{held} by {slow} in {tens_of_seconds} times ten seconds");
        }
    }

    #[test]
    fn slow_rounds_far_apart_hold_a_worker_for_one_call_in_thirty_three() {
        for quick in [0, 1, 5, ENOUGH - 1, ENOUGH, ENOUGH + 1, MOST] {
            let ((held, _), rounds) = (held(quick, 1), f64::from(400 * (quick + 1)));
            assert!(held <= rounds / f64::from(ENOUGH + 1) + 2.0, "{held} of 400 with {quick} quick ones between");
        }
    }
}
