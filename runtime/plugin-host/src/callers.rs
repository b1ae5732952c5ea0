//! The circuit breakers of one function: one for each caller, and one for all callers.
//!
//! In: the caller, and the outcome of each call. Out: whether the next call may run. After a function has failed for
//! one caller, the calls of that caller alone are rejected, so that no caller can disable a function for others. The
//! calls of all callers are rejected if the function has failed for several callers within a minute, and for more
//! callers than it has answered. Not here: the conditions that open a breaker (`breaker`).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::breaker::{self, Breaker, CallOutcome, Change, FaultWeight, OPENINGS_WITHIN, WINDOW};

/// The number of callers for which a function must have failed before the breaker for all callers opens.
const FAILED_CALLERS: usize = 5;
/// The largest number of callers with a state. Beyond it, the caller whose last call is oldest is removed first.
const MAX_CALLERS: usize = 1_024;

/// The breakers of one function of one plugin.
#[derive(Debug, Default)]
pub(crate) struct Callers {
    common: Breaker,
    by_caller: HashMap<Arc<str>, CallerState>,
}

#[derive(Debug, Default)]
struct CallerState {
    breaker: Breaker,
    seen: Duration,
    answered: Option<Duration>,
    failed: Option<Duration>,
}

/// The permissions for one call.
#[derive(Debug)]
pub(crate) struct Admission {
    common: breaker::Admission,
    by_caller: breaker::Admission,
}

/// The callers whose calls a change permits or rejects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AffectedCallers {
    /// One caller. Calls of other callers still succeed.
    One,
    /// All callers of the last minute. Each of them was not answered, or has an open breaker.
    Active,
    All,
}

impl AffectedCallers {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            AffectedCallers::One => "one",
            AffectedCallers::Active | AffectedCallers::All => "all",
        }
    }
}

impl CallerState {
    fn has_failed(&self, now: Duration) -> bool {
        self.failed.is_some_and(|at| at + WINDOW > now)
    }

    fn was_answered(&self, now: Duration, within: Duration) -> bool {
        self.answered.is_some_and(|at| at + within > now)
    }
}

impl Callers {
    /// Permits a call of this caller.
    ///
    /// # Errors
    /// Returns the time to wait if a circuit breaker is open.
    pub(crate) fn enter(&mut self, now: Duration, caller: &Arc<str>) -> Result<Admission, Duration> {
        if !self.by_caller.contains_key(caller) {
            self.make_room(now);
        }
        let by_caller = self.by_caller.entry(Arc::clone(caller)).or_default();
        by_caller.seen = now;
        let admission = by_caller.breaker.enter(now)?;
        match self.common.enter(now) {
            Ok(common) => Ok(Admission { common, by_caller: admission }),
            Err(wait) => {
                by_caller.breaker.leave(now, &admission, CallOutcome::NotRun);
                Err(wait)
            }
        }
    }

    /// Records the end of a permitted call.
    pub(crate) fn leave(
        &mut self,
        now: Duration,
        caller: &str,
        admission: &Admission,
        outcome: CallOutcome,
    ) -> (Change, AffectedCallers) {
        let probe_change = self.common.finish_probe(now, &admission.common, outcome);
        // The state is missing if it was removed during the call.
        let Some(by_caller) = self.by_caller.get_mut(caller) else { return (probe_change, AffectedCallers::All) };
        let change = by_caller.breaker.leave(now, &admission.by_caller, outcome);
        match outcome {
            CallOutcome::Success => by_caller.answered = Some(now),
            CallOutcome::Fault | CallOutcome::Timeout => by_caller.failed = Some(now),
            CallOutcome::NotRun => {}
        }
        match (probe_change, outcome) {
            (Change::None, CallOutcome::Fault | CallOutcome::Timeout) => {
                let is_fault = outcome == CallOutcome::Fault;
                self.failed(now, change, if is_fault { FaultWeight::Severe } else { FaultWeight::Light })
            }
            (Change::None, _) => (change, self.affected_callers(now)),
            (probe_change, _) => (probe_change, AffectedCallers::All),
        }
    }

    /// Counts the caller's last successful call as a fault after its answer was rejected.
    pub(crate) fn blame(&mut self, now: Duration, caller: &str) -> (Change, AffectedCallers) {
        let Some(by_caller) = self.by_caller.get_mut(caller) else { return (Change::None, AffectedCallers::One) };
        let change = by_caller.breaker.blame(now);
        (by_caller.failed, by_caller.answered) = (Some(now), None);
        self.failed(now, change, FaultWeight::Severe)
    }

    /// Opens the common breaker if the function has failed for too many callers, and returns the change of that
    /// breaker. Otherwise returns `by_caller`, the change of the caller's own breaker.
    fn failed(&mut self, now: Duration, by_caller: Change, weight: FaultWeight) -> (Change, AffectedCallers) {
        let failed = self.by_caller.values().filter(|by_caller| by_caller.has_failed(now)).count();
        let answered = self
            .by_caller
            .values()
            .filter(|by_caller| !by_caller.has_failed(now) && by_caller.was_answered(now, WINDOW))
            .count();
        if failed >= FAILED_CALLERS && failed > answered {
            let common = self.common.trip(now, weight);
            if common != Change::None {
                return (common, AffectedCallers::All);
            }
        }
        (by_caller, self.affected_callers(now))
    }

    fn affected_callers(&self, now: Duration) -> AffectedCallers {
        let is_answered =
            |by_caller: &CallerState| !by_caller.breaker.is_open(now) && by_caller.was_answered(now, WINDOW);
        if self.by_caller.values().any(is_answered) { AffectedCallers::One } else { AffectedCallers::Active }
    }

    /// Resets all breakers. The outcomes of calls that are in progress are ignored.
    pub(crate) fn reset(&mut self) {
        self.common.reset();
        self.by_caller.values_mut().for_each(|by_caller| {
            by_caller.breaker.reset();
            by_caller.failed = None;
        });
    }

    /// Returns whether no active caller is answered. This holds if the common breaker is open. It also holds if a
    /// caller's own breaker is open and no caller with a closed breaker was answered within the last minute.
    pub(crate) fn is_open(&self, now: Duration) -> bool {
        let is_held = self.by_caller.values().any(|by_caller| by_caller.breaker.is_open(now));
        self.common.is_open(now) || is_held && self.affected_callers(now) == AffectedCallers::Active
    }

    /// Returns whether a caller for which `is_included` holds was answered within ten minutes.
    pub(crate) fn has_answered(&self, now: Duration, is_included: impl Fn(&str) -> bool) -> bool {
        self.by_caller
            .iter()
            .any(|(caller, by_caller)| is_included(caller) && by_caller.was_answered(now, OPENINGS_WITHIN))
    }

    fn make_room(&mut self, now: Duration) {
        if self.by_caller.len() < MAX_CALLERS {
            return;
        }
        self.by_caller.retain(|_, by_caller| by_caller.seen + OPENINGS_WITHIN > now);
        if self.by_caller.len() >= MAX_CALLERS {
            let oldest =
                self.by_caller.iter().min_by_key(|(_, by_caller)| by_caller.seen).map(|(caller, _)| Arc::clone(caller));
            if let Some(caller) = oldest {
                self.by_caller.remove(&caller);
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

    fn call(callers: &mut Callers, now: Duration, caller: &str, outcome: CallOutcome) -> (Change, AffectedCallers) {
        let admission = callers.enter(now, &caller.into()).unwrap();
        callers.leave(now, caller, &admission, outcome)
    }

    fn fail(callers: &mut Callers, now: Duration, caller: &str) -> (Change, AffectedCallers) {
        for _ in 0..4 {
            call(callers, now, caller, CallOutcome::Fault);
        }
        call(callers, now, caller, CallOutcome::Fault)
    }

    #[test]
    fn failures_of_one_caller_do_not_affect_others() {
        let mut callers = Callers::default();
        call(&mut callers, at(0), "ada", CallOutcome::Success);
        assert_eq!(fail(&mut callers, at(0), "eve"), (Change::Opened, AffectedCallers::One));
        assert_eq!(callers.enter(at(0), &"eve".into()).err(), Some(at(1)));
        assert!(!callers.is_open(at(0)));
        for _ in 0..100 {
            assert_eq!(call(&mut callers, at(0), "ada", CallOutcome::Success), (Change::None, AffectedCallers::One));
        }
    }

    #[test]
    fn failures_of_all_callers_open_the_breaker_except_for_probes() {
        let mut callers = Callers::default();
        assert_eq!(fail(&mut callers, at(0), "eve"), (Change::Opened, AffectedCallers::Active));
        assert!(callers.is_open(at(0)));
        assert_eq!(call(&mut callers, at(0), "ada", CallOutcome::Success), (Change::None, AffectedCallers::One));
        assert!(!callers.is_open(at(0)));
        assert!(callers.enter(at(0), &"eve".into()).is_err(), "it is not good for her because it is for others");
    }

    #[test]
    fn failures_of_most_callers_open_the_breaker_for_all() {
        let mut callers = Callers::default();
        for caller in ["a", "b", "c", "d"] {
            assert_eq!(call(&mut callers, at(0), caller, CallOutcome::Fault).0, Change::None);
        }
        assert_eq!(call(&mut callers, at(0), "e", CallOutcome::Fault), (Change::Opened, AffectedCallers::All));
        assert_eq!(callers.enter(at(0), &"new".into()).err(), Some(at(1)));
        // The wait is over, so this call is the probe of the common breaker. Its success permits the calls of all
        // callers.
        assert_eq!(call(&mut callers, at(1), "new", CallOutcome::Success), (Change::Closed, AffectedCallers::All));
        assert!(callers.enter(at(1), &"other".into()).is_ok());
    }

    #[test]
    fn few_callers_cannot_open_the_breaker_for_many() {
        let mut callers = Callers::default();
        for number in 0..20 {
            call(&mut callers, at(0), &format!("user-{number}"), CallOutcome::Success);
        }
        for number in 0..19 {
            assert_eq!(fail(&mut callers, at(0), &format!("eve-{number}")), (Change::Opened, AffectedCallers::One));
        }
        assert_eq!(call(&mut callers, at(0), "user-0", CallOutcome::Success), (Change::None, AffectedCallers::One));
    }

    #[test]
    fn rejected_answer_counts_as_a_fault() {
        let mut callers = Callers::default();
        for number in 1..=5 {
            call(&mut callers, at(0), "ada", CallOutcome::Success);
            let expected = if number == 5 { Change::Opened } else { Change::None };
            assert_eq!(callers.blame(at(0), "ada").0, expected, "{number}");
        }
        // If the probe's answer is rejected afterwards, the breaker opens again, for twice the wait.
        assert_eq!(call(&mut callers, at(1), "ada", CallOutcome::Success).0, Change::Closed);
        callers.blame(at(1), "ada");
        assert_eq!(callers.enter(at(1), &"ada".into()).err(), Some(at(2)));
    }

    #[test]
    fn callers_are_bounded_and_the_oldest_are_evicted() {
        let mut callers = Callers::default();
        for number in 0..3 * MAX_CALLERS as u64 {
            call(&mut callers, Duration::from_millis(number), &number.to_string(), CallOutcome::Success);
        }
        assert_eq!(callers.by_caller.len(), MAX_CALLERS);
        assert!(!callers.by_caller.contains_key("0") && callers.by_caller.contains_key("3000"));
        call(&mut callers, at(100_000), "late", CallOutcome::Success);
        assert_eq!(callers.by_caller.len(), 1);
    }
}
