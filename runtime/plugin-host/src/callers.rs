//! The breakers of one function: one for each caller, and one for all of them.
//!
//! In: who calls, and how each call ended. Out: whether the next one may run. A function that one caller's
//! questions bring down is let alone for that caller and goes on for those it answers; so nobody can take it
//! from others by asking what it can't bear. Once it has failed for several callers within a minute, and for
//! more than it answered, it is let alone for all. Not here: when a breaker opens (`breaker`).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::breaker::{self, Breaker, Change, Ended, OPENINGS_WITHIN, WINDOW};

/// So many callers must have seen it fail before it is let alone for those who did not.
const FAILED_CALLERS: usize = 5;
/// More are not told apart for long: who was seen longest ago makes room.
const MAX_CALLERS: usize = 1_024;

/// Of one function of one plugin.
#[derive(Debug, Default)]
pub(crate) struct Callers {
    common: Breaker,
    own: HashMap<Arc<str>, Own>,
}

/// What is known of one caller.
#[derive(Debug, Default)]
struct Own {
    breaker: Breaker,
    seen: Duration,
    answered: Option<Duration>,
    failed: Option<Duration>,
}

/// Of a call that was let in.
#[derive(Debug)]
pub(crate) struct Pass {
    common: breaker::Pass,
    own: breaker::Pass,
}

/// For whom something changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Others are answered.
    One,
    /// Nobody is left whom it was good for within the last minute.
    Asking,
    All,
}

impl Reach {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Reach::One => "one",
            Reach::Asking | Reach::All => "all",
        }
    }
}

impl Own {
    fn has_failed(&self, now: Duration) -> bool {
        self.failed.is_some_and(|at| at + WINDOW > now)
    }

    fn was_answered(&self, now: Duration, within: Duration) -> bool {
        self.answered.is_some_and(|at| at + within > now)
    }
}

impl Callers {
    /// Whether a call of this caller may run now.
    ///
    /// # Errors
    /// How long to wait.
    pub(crate) fn enter(&mut self, now: Duration, caller: &Arc<str>) -> Result<Pass, Duration> {
        if !self.own.contains_key(caller) {
            self.make_room(now);
        }
        let own = self.own.entry(Arc::clone(caller)).or_default();
        own.seen = now;
        let pass = own.breaker.enter(now)?;
        match self.common.enter(now) {
            Ok(common) => Ok(Pass { common, own: pass }),
            Err(wait) => {
                own.breaker.leave(now, &pass, Ended::NotRun);
                Err(wait)
            }
        }
    }

    /// A call that was let in is over.
    pub(crate) fn leave(&mut self, now: Duration, caller: &str, pass: &Pass, ended: Ended) -> (Change, Reach) {
        let settled = self.common.settle(now, &pass.common, ended);
        // Who made room meanwhile is not remembered.
        let Some(own) = self.own.get_mut(caller) else { return (settled, Reach::All) };
        let change = own.breaker.leave(now, &pass.own, ended);
        match ended {
            Ended::Well => own.answered = Some(now),
            Ended::Faulted | Ended::Late => own.failed = Some(now),
            Ended::NotRun => {}
        }
        match (settled, ended) {
            (Change::None, Ended::Faulted | Ended::Late) => self.failed(now, change, ended == Ended::Faulted),
            (Change::None, _) => (change, self.reach(now)),
            (settled, _) => (settled, Reach::All),
        }
    }

    /// The last call of this caller ended well, and its answer turned out to be a fault.
    pub(crate) fn blame(&mut self, now: Duration, caller: &str) -> (Change, Reach) {
        let Some(own) = self.own.get_mut(caller) else { return (Change::None, Reach::One) };
        let change = own.breaker.blame(now);
        (own.failed, own.answered) = (Some(now), None);
        self.failed(now, change, true)
    }

    /// Whether all must wait, now that one more call failed.
    fn failed(&mut self, now: Duration, own: Change, is_grave: bool) -> (Change, Reach) {
        let failed = self.own.values().filter(|own| own.has_failed(now)).count();
        let answered = self.own.values().filter(|own| !own.has_failed(now) && own.was_answered(now, WINDOW)).count();
        if failed >= FAILED_CALLERS && failed > answered {
            let common = self.common.trip(now, is_grave);
            if common != Change::None {
                return (common, Reach::All);
            }
        }
        (own, self.reach(now))
    }

    fn reach(&self, now: Duration) -> Reach {
        let is_answered = |own: &Own| !own.breaker.is_open(now) && own.was_answered(now, WINDOW);
        if self.own.values().any(is_answered) { Reach::One } else { Reach::Asking }
    }

    /// As new; calls under way count no more.
    pub(crate) fn forgive(&mut self) {
        self.common.forgive();
        self.own.values_mut().for_each(|own| {
            own.breaker.forgive();
            own.failed = None;
        });
    }

    /// Whether nobody who asks is answered now: it is closed to all, or to everybody it was not good for within
    /// the last minute.
    pub(crate) fn is_open(&self, now: Duration) -> bool {
        let is_held = self.own.values().any(|own| own.breaker.is_open(now));
        self.common.is_open(now) || is_held && self.reach(now) == Reach::Asking
    }

    /// Whether it was good, within ten minutes, for somebody that `is_meant` names.
    pub(crate) fn has_answered(&self, now: Duration, is_meant: impl Fn(&str) -> bool) -> bool {
        self.own.iter().any(|(caller, own)| is_meant(caller) && own.was_answered(now, OPENINGS_WITHIN))
    }

    fn make_room(&mut self, now: Duration) {
        if self.own.len() < MAX_CALLERS {
            return;
        }
        self.own.retain(|_, own| own.seen + OPENINGS_WITHIN > now);
        if self.own.len() >= MAX_CALLERS {
            let oldest = self.own.iter().min_by_key(|(_, own)| own.seen).map(|(caller, _)| Arc::clone(caller));
            if let Some(caller) = oldest {
                self.own.remove(&caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn call(callers: &mut Callers, now: Duration, caller: &str, ended: Ended) -> (Change, Reach) {
        let pass = callers.enter(now, &caller.into()).unwrap();
        callers.leave(now, caller, &pass, ended)
    }

    fn fail(callers: &mut Callers, now: Duration, caller: &str) -> (Change, Reach) {
        for _ in 0..4 {
            call(callers, now, caller, Ended::Faulted);
        }
        call(callers, now, caller, Ended::Faulted)
    }

    #[test]
    fn what_fails_for_one_caller_goes_on_for_those_it_answers() {
        let mut callers = Callers::default();
        call(&mut callers, at(0), "ada", Ended::Well);
        assert_eq!(fail(&mut callers, at(0), "eve"), (Change::Opened, Reach::One));
        assert_eq!(callers.enter(at(0), &"eve".into()).err(), Some(at(1)));
        assert!(!callers.is_open(at(0)));
        for _ in 0..100 {
            assert_eq!(call(&mut callers, at(0), "ada", Ended::Well), (Change::None, Reach::One));
        }
    }

    #[test]
    fn what_fails_for_everybody_who_asked_is_open_and_a_newcomer_may_try() {
        let mut callers = Callers::default();
        assert_eq!(fail(&mut callers, at(0), "eve"), (Change::Opened, Reach::Asking));
        assert!(callers.is_open(at(0)));
        assert_eq!(call(&mut callers, at(0), "ada", Ended::Well), (Change::None, Reach::One));
        assert!(!callers.is_open(at(0)));
        assert!(callers.enter(at(0), &"eve".into()).is_err(), "it is not good for her because it is for others");
    }

    #[test]
    fn what_fails_for_more_callers_than_it_answers_is_let_alone_for_all() {
        let mut callers = Callers::default();
        for caller in ["a", "b", "c", "d"] {
            assert_eq!(call(&mut callers, at(0), caller, Ended::Faulted).0, Change::None);
        }
        assert_eq!(call(&mut callers, at(0), "e", Ended::Faulted), (Change::Opened, Reach::All));
        assert_eq!(callers.enter(at(0), &"new".into()).err(), Some(at(1)));
        // One call tries for all.
        assert_eq!(call(&mut callers, at(1), "new", Ended::Well), (Change::Closed, Reach::All));
        assert!(callers.enter(at(1), &"other".into()).is_ok());
    }

    #[test]
    fn a_few_callers_can_not_close_it_to_many() {
        let mut callers = Callers::default();
        for number in 0..20 {
            call(&mut callers, at(0), &format!("user-{number}"), Ended::Well);
        }
        for number in 0..19 {
            assert_eq!(fail(&mut callers, at(0), &format!("eve-{number}")), (Change::Opened, Reach::One));
        }
        assert_eq!(call(&mut callers, at(0), "user-0", Ended::Well), (Change::None, Reach::One));
    }

    #[test]
    fn an_answer_that_turns_out_to_be_a_fault_counts_as_one() {
        let mut callers = Callers::default();
        for number in 1..=5 {
            call(&mut callers, at(0), "ada", Ended::Well);
            let expected = if number == 5 { Change::Opened } else { Change::None };
            assert_eq!(callers.blame(at(0), "ada").0, expected, "{number}");
        }
        // Neither does such an answer close it again.
        assert_eq!(call(&mut callers, at(1), "ada", Ended::Well).0, Change::Closed);
        callers.blame(at(1), "ada");
        assert_eq!(callers.enter(at(1), &"ada".into()).err(), Some(at(2)));
    }

    #[test]
    fn callers_are_bounded_and_the_oldest_make_room() {
        let mut callers = Callers::default();
        for number in 0..3 * MAX_CALLERS as u64 {
            call(&mut callers, Duration::from_millis(number), &number.to_string(), Ended::Well);
        }
        assert_eq!(callers.own.len(), MAX_CALLERS);
        assert!(!callers.own.contains_key("0") && callers.own.contains_key("3000"));
        call(&mut callers, at(100_000), "late", Ended::Well);
        assert_eq!(callers.own.len(), 1);
    }
}
