//! A circuit breaker for one function of a plugin.
//!
//! In: the outcome of each call, and the time. Out: whether the next call may run. Five faults within a minute open the
//! breaker for a second. Faults in at least a fifth of the calls open it too, if there were at least 20 calls. After
//! the wait one call is permitted as a probe, and each failed probe doubles the wait, up to a minute. Three openings within ten
//! minutes quarantine the plugin until an operator resets it. Openings by timeouts alone do not count towards the
//! quarantine, because the machine may be busy. Failed probes do not count either: if only some calls make a guest
//! fail, the guest works again once such calls stop. Not here: clocks, the callers that share a breaker (`callers`), and
//! the definition of a fault (`health`).

use std::collections::VecDeque;
use std::time::Duration;

/// The length of the window over which the failure rate is evaluated.
pub(crate) const WINDOW: Duration = Duration::from_secs(60);
const FAULTS: u64 = 5;
/// The minimum number of calls in the window before the failure rate is evaluated. The breaker then opens if one of
/// [`SHARE`] calls failed.
const MIN_CALLS: u64 = 20;
const SHARE: u64 = 5;
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);
const OPENINGS: usize = 3;
pub(crate) const OPENINGS_WITHIN: Duration = Duration::from_secs(600);

/// The severity of the faults that open a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultWeight {
    /// All faults are timeouts, which do not count towards a quarantine.
    Light,
    /// At least one fault is a trap or an invalid answer.
    Severe,
}

/// The state of one function of one plugin, for one caller or for all callers together (`callers`).
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    state: State,
    /// The counts of those seconds of the last minute that had calls.
    seconds: VecDeque<Second>,
    /// The times at which the breaker opened because of a fault other than a timeout.
    openings: VecDeque<Duration>,
    /// The wait before the probe that closed the breaker. `None` from the end of the next call on.
    last_probe_wait: Option<Duration>,
    /// A number that increases when the breaker opens and when a probe begins. Results of calls that began under an
    /// earlier number are ignored.
    generation: u64,
}

/// The permission for one call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Admission {
    generation: u64,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Closed,
    Open {
        until: Duration,
        wait: Duration,
    },
    /// A probe is running.
    HalfOpen {
        wait: Duration,
    },
}

#[derive(Debug)]
struct Second {
    at: u64,
    calls: u64,
    faults: u64,
    /// The number of faults other than timeouts.
    severe: u64,
}

impl Second {
    fn add(&mut self, outcome: CallOutcome) {
        self.calls += 1;
        self.faults += u64::from(matches!(outcome, CallOutcome::Fault | CallOutcome::Timeout));
        self.severe += u64::from(outcome == CallOutcome::Fault);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallOutcome {
    Success,
    Fault,
    /// The call exceeded its time limit. On a busy machine, that can happen to a correct guest too.
    Timeout,
    /// The guest was not called.
    NotRun,
}

/// The change of a breaker's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    None,
    Opened,
    Closed,
    /// The breaker opened too often.
    Quarantined,
}

impl Breaker {
    /// Permits a call.
    ///
    /// # Errors
    /// Returns the time to wait.
    pub(crate) fn enter(&mut self, now: Duration) -> Result<Admission, Duration> {
        match self.state {
            State::Closed => {}
            State::Open { until, wait } if until <= now => {
                self.state = State::HalfOpen { wait };
                self.generation += 1;
            }
            State::Open { until, .. } => return Err(until - now),
            State::HalfOpen { wait } => return Err(wait),
        }
        Ok(Admission { generation: self.generation })
    }

    /// Records the end of a permitted call.
    pub(crate) fn leave(&mut self, now: Duration, admission: &Admission, outcome: CallOutcome) -> Change {
        if admission.generation == self.generation && self.state == State::Closed && outcome != CallOutcome::NotRun {
            self.last_probe_wait = None;
            self.second(now).add(outcome);
            return self.evaluate(now);
        }
        self.finish_probe(now, admission, outcome)
    }

    /// Records the end of a call whose outcome another breaker counts. The outcome changes the state only if the call
    /// was a probe.
    pub(crate) fn finish_probe(&mut self, now: Duration, admission: &Admission, outcome: CallOutcome) -> Change {
        if admission.generation != self.generation {
            return Change::None;
        }
        match (self.state, outcome) {
            (State::HalfOpen { wait }, CallOutcome::NotRun) => {
                self.state = State::Open { until: now, wait };
                Change::None
            }
            (State::HalfOpen { wait }, CallOutcome::Success) => {
                self.state = State::Closed;
                self.seconds.clear();
                self.last_probe_wait = Some(wait);
                Change::Closed
            }
            (State::HalfOpen { wait }, CallOutcome::Fault | CallOutcome::Timeout) => {
                self.wait_longer(now, wait);
                Change::None
            }
            (State::Open { .. } | State::Closed, _) => Change::None,
        }
    }

    /// Counts a successful call as a fault, because its answer was rejected later.
    pub(crate) fn blame(&mut self, now: Duration) -> Change {
        match (self.state, self.last_probe_wait.take()) {
            (State::Closed, Some(wait)) => {
                self.wait_longer(now, wait);
                Change::None
            }
            (State::Closed, None) => {
                let second = self.second(now);
                second.faults += 1;
                second.severe += 1;
                self.evaluate(now)
            }
            (State::Open { .. } | State::HalfOpen { .. }, _) => Change::None,
        }
    }

    /// Opens the breaker because of faults that other breakers counted.
    pub(crate) fn trip(&mut self, now: Duration, weight: FaultWeight) -> Change {
        if self.state == State::Closed { self.open(now, weight) } else { Change::None }
    }

    fn wait_longer(&mut self, now: Duration, wait: Duration) {
        let wait = (wait * 2).min(LONGEST_WAIT);
        self.state = State::Open { until: now + wait, wait };
        self.generation += 1;
    }

    /// Resets the breaker. Running calls no longer count.
    pub(crate) fn reset(&mut self) {
        *self = Breaker { generation: self.generation + 1, ..Breaker::default() };
    }

    /// Returns whether a call would be rejected now. While a probe runs, the breaker does not count as open.
    pub(crate) fn is_open(&self, now: Duration) -> bool {
        matches!(self.state, State::Open { until, .. } if until > now)
    }

    /// Returns the counts of the current second, and removes expired ones.
    fn second(&mut self, now: Duration) -> &mut Second {
        let at = now.as_secs();
        while self.seconds.front().is_some_and(|second| second.at + WINDOW.as_secs() <= at) {
            self.seconds.pop_front();
        }
        if self.seconds.back().is_none_or(|second| second.at != at) {
            self.seconds.push_back(Second { at, calls: 0, faults: 0, severe: 0 });
        }
        let last = self.seconds.len() - 1;
        &mut self.seconds[last]
    }

    /// Opens the breaker if there are too many faults.
    fn evaluate(&mut self, now: Duration) -> Change {
        let calls: u64 = self.seconds.iter().map(|second| second.calls).sum();
        let faults: u64 = self.seconds.iter().map(|second| second.faults).sum();
        let has_severe = self.seconds.iter().any(|second| second.severe > 0);
        let weight = if has_severe { FaultWeight::Severe } else { FaultWeight::Light };
        let is_too_much = faults >= FAULTS || calls >= MIN_CALLS && faults * SHARE >= calls;
        if is_too_much { self.open(now, weight) } else { Change::None }
    }

    fn open(&mut self, now: Duration, weight: FaultWeight) -> Change {
        self.state = State::Open { until: now + FIRST_WAIT, wait: FIRST_WAIT };
        self.generation += 1;
        self.seconds.clear();
        if weight == FaultWeight::Light {
            return Change::Opened;
        }
        self.openings.push_back(now);
        while self.openings.front().is_some_and(|at| *at + OPENINGS_WITHIN <= now) {
            self.openings.pop_front();
        }
        if self.openings.len() >= OPENINGS { Change::Quarantined } else { Change::Opened }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Makes up to `calls` calls with this outcome, and stops when a call is rejected.
    fn end(breaker: &mut Breaker, now: Duration, calls: usize, outcome: CallOutcome) -> Change {
        let mut change = Change::None;
        for _ in 0..calls {
            let admission = breaker.enter(now).unwrap();
            change = breaker.leave(now, &admission, outcome);
        }
        change
    }

    fn fail(breaker: &mut Breaker, now: Duration, calls: usize) -> Change {
        end(breaker, now, calls, CallOutcome::Fault)
    }

    #[test]
    fn five_faults_within_a_minute_open_the_breaker() {
        let mut breaker = Breaker::default();
        assert_eq!(fail(&mut breaker, at(0), 4), Change::None);
        // The first four faults have expired.
        assert_eq!(fail(&mut breaker, at(60), 4), Change::None);
        assert_eq!(fail(&mut breaker, at(119), 1), Change::Opened);
        assert_eq!(breaker.enter(at(119)), Err(at(1)));
    }

    #[test]
    fn calls_from_before_the_opening_are_ignored() {
        let mut breaker = Breaker::default();
        let late = breaker.enter(at(0)).unwrap();
        assert_eq!(fail(&mut breaker, at(0), 5), Change::Opened);
        assert_eq!(breaker.leave(at(0), &late, CallOutcome::Fault), Change::None);
        let tries = breaker.enter(at(1)).unwrap();
        for outcome in [CallOutcome::Success, CallOutcome::Fault, CallOutcome::Timeout, CallOutcome::NotRun] {
            assert_eq!(breaker.leave(at(1), &late, outcome), Change::None);
            assert!(breaker.enter(at(1)).is_err(), "the one that tries is still on its way");
        }
        assert_eq!(breaker.leave(at(1), &tries, CallOutcome::Success), Change::Closed);
        for _ in 0..10 {
            assert_eq!(breaker.leave(at(1), &late, CallOutcome::Fault), Change::None);
        }
    }

    #[test]
    fn probe_from_before_a_reset_is_ignored() {
        let mut breaker = Breaker::default();
        fail(&mut breaker, at(0), 5);
        let old = breaker.enter(at(1)).unwrap();
        breaker.reset();
        fail(&mut breaker, at(1), 5);
        let _new = breaker.enter(at(2)).unwrap();
        assert_eq!(breaker.leave(at(2), &old, CallOutcome::Success), Change::None);
    }

    #[test]
    fn call_without_a_permit_is_not_a_fault() {
        let mut breaker = Breaker::default();
        assert_eq!(end(&mut breaker, at(0), 100, CallOutcome::NotRun), Change::None);
        fail(&mut breaker, at(0), 5);
        assert_eq!(end(&mut breaker, at(1), 1, CallOutcome::NotRun), Change::None);
        assert!(breaker.enter(at(1)).is_ok());
    }

    #[test]
    fn probe_delay_doubles_up_to_a_minute() {
        let mut breaker = Breaker::default();
        fail(&mut breaker, at(0), 5);
        let mut now = at(0);
        for wait in [1, 2, 4, 8, 16, 32, 60, 60] {
            assert_eq!(breaker.enter(now), Err(at(wait)));
            now += at(wait);
            let admission = breaker.enter(now).unwrap();
            assert!(breaker.enter(now).is_err(), "one at a time");
            assert_eq!(breaker.leave(now, &admission, CallOutcome::Fault), Change::None);
        }
        now += at(60);
        assert_eq!(end(&mut breaker, now, 1, CallOutcome::Success), Change::Closed);
        assert!(!breaker.is_open(now));
        assert_eq!(fail(&mut breaker, now, 4), Change::None);
    }

    #[test]
    fn failure_rate_of_one_fifth_opens_the_breaker() {
        let mut breaker = Breaker::default();
        assert_eq!(end(&mut breaker, at(0), 16, CallOutcome::Success), Change::None);
        assert_eq!(fail(&mut breaker, at(0), 3), Change::None);
        assert_eq!(fail(&mut breaker, at(0), 1), Change::Opened);
    }

    #[test]
    fn three_openings_within_ten_minutes_quarantine() {
        for (times, last) in [([0, 300, 599], Change::Quarantined), ([0, 300, 600], Change::Opened)] {
            let mut breaker = Breaker::default();
            let mut change = Change::None;
            for time in times {
                change = fail(&mut breaker, at(time), 5);
                if change != Change::Quarantined {
                    assert_eq!(end(&mut breaker, at(time + 1), 1, CallOutcome::Success), Change::Closed);
                }
            }
            assert_eq!(change, last);
        }
    }

    #[test]
    fn openings_by_timeouts_alone_do_not_quarantine() {
        let mut breaker = Breaker::default();
        for time in [0, 10, 20, 30] {
            assert_eq!(end(&mut breaker, at(time), 5, CallOutcome::Timeout), Change::Opened);
            assert_eq!(end(&mut breaker, at(time + 1), 1, CallOutcome::Success), Change::Closed);
        }
    }

    #[test]
    fn opening_with_a_severe_fault_counts_towards_quarantine() {
        let mut breaker = Breaker::default();
        let mut change = Change::None;
        for time in [0, 10, 20] {
            end(&mut breaker, at(time), 4, CallOutcome::Timeout);
            change = fail(&mut breaker, at(time), 1);
            if time < 20 {
                assert_eq!(end(&mut breaker, at(time + 1), 1, CallOutcome::Success), Change::Closed);
            }
        }
        assert_eq!(change, Change::Quarantined);
    }
}
