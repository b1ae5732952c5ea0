//! The health of one plugin: call counts, and circuit breakers for each of its functions.
//!
//! In: the end of each call, and its caller. Out: whether the next call may run, and figures for operators. Only faults
//! that the guest caused open a breaker. State changes are logged here, and nowhere else. Not here: the rules of
//! circuit breakers (`breaker`, `callers`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use terrane_app::ports::plugins::{Blame, ExportStatus, Limit, PluginFault, PluginState, Unavailable};

use crate::breaker::{CallOutcome, Change};
use crate::call_statistics::CallStatistics;
use crate::callers::{Admission, AffectedCallers, Callers};
use crate::monotonic_clock::MonotonicClock;

/// The number of first calls of a new version, counted over all its functions. If a breaker opens for all callers
/// during these calls, the reload is reverted.
const FIRST_CALLS: u64 = 20;
/// The largest number of quarantined callers. Beyond it, the plugin is quarantined for all.
const MAX_QUARANTINED: usize = 1_024;

/// The health of one loaded plugin.
pub(crate) struct Health {
    component: Arc<str>,
    clock: MonotonicClock,
    condition: Mutex<Condition>,
}

#[derive(Default)]
struct Condition {
    is_quarantined: bool,
    /// The callers for which the plugin is quarantined.
    quarantined: BTreeSet<Arc<str>>,
    /// The fault that opened the breaker for all callers during the first calls of the plugin.
    early_fault: Option<PluginFault>,
    /// The state of each function, by its name in the contract.
    exports: BTreeMap<&'static str, Export>,
}

#[derive(Default)]
struct Export {
    callers: Callers,
    statistics: CallStatistics,
}

/// A permitted call. If it is dropped without [`Health::leave`], the call counts as not run; if it was a probe, the
/// next call may be the probe instead.
pub(crate) struct Entry<'a> {
    health: &'a Health,
    call: &'static str,
    caller: Arc<str>,
    began: Duration,
    admission: Option<Admission>,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        if let Some(admission) = self.admission.take() {
            let now = self.health.clock.now();
            let mut condition = self.health.lock();
            condition.exports.entry(self.call).or_default().callers.leave(
                now,
                &self.caller,
                &admission,
                CallOutcome::NotRun,
            );
        }
    }
}

impl Health {
    pub(crate) fn new(component: Arc<str>, clock: MonotonicClock) -> Health {
        Health { component, clock, condition: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Condition> {
        // Counts are consistent after any panic.
        self.condition.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Permits a call of this caller.
    ///
    /// # Errors
    /// [`PluginFault::Unavailable`].
    pub(crate) fn enter(&self, call: &'static str, caller: &Arc<str>) -> Result<Entry<'_>, PluginFault> {
        let began = self.clock.now();
        let mut condition = self.lock();
        let is_quarantined = condition.is_quarantined || condition.quarantined.contains(caller);
        let export = condition.exports.entry(call).or_default();
        let entered = if is_quarantined {
            Err(Unavailable::Quarantined)
        } else {
            export.callers.enter(began, caller).map_err(|wait| Unavailable::BreakerOpen { wait })
        };
        let entry =
            |admission| Entry { health: self, call, caller: Arc::clone(caller), began, admission: Some(admission) };
        entered.map(entry).map_err(|reason| {
            export.statistics.refused += 1;
            PluginFault::Unavailable { call, reason }
        })
    }

    /// Records the end of a permitted call and the fuel that it used.
    pub(crate) fn leave(&self, mut entry: Entry<'_>, fault: Option<&PluginFault>, fuel: u64) {
        let (now, call) = (self.clock.now(), entry.call);
        let outcome = match fault {
            // The guest answered. A caller with unsupported requests must not disable the function for others.
            None | Some(PluginFault::Declined { .. }) => CallOutcome::Success,
            Some(PluginFault::Limit { limit: Limit::Time, .. }) => CallOutcome::Timeout,
            Some(fault) if fault.blame() == Blame::Guest => CallOutcome::Fault,
            Some(_) => CallOutcome::NotRun,
        };
        let Some(admission) = entry.admission.take() else { return };
        let mut condition = self.lock();
        let export = condition.exports.entry(call).or_default();
        let changed = export.callers.leave(now, &entry.caller, &admission, outcome);
        if outcome != CallOutcome::NotRun {
            let is_fault = matches!(outcome, CallOutcome::Fault | CallOutcome::Timeout);
            export.statistics.count(is_fault, now.saturating_sub(entry.began), fuel);
        }
        condition.note(changed, &entry.caller, fault);
        drop(condition);
        self.log_change(call, changed, fault);
    }

    /// Counts the caller's last successful call as this fault, because its answer was rejected later.
    pub(crate) fn blame(&self, call: &'static str, caller: &Arc<str>, fault: &PluginFault) {
        let now = self.clock.now();
        let mut condition = self.lock();
        let export = condition.exports.entry(call).or_default();
        export.statistics.faults += 1;
        let changed = export.callers.blame(now, caller);
        condition.note(changed, caller, Some(fault));
        drop(condition);
        self.log_change(call, changed, Some(fault));
    }

    fn log_change(
        &self,
        call: &'static str,
        (change, affected_callers): (Change, AffectedCallers),
        fault: Option<&PluginFault>,
    ) {
        let (component, callers) = (&*self.component, affected_callers.as_str());
        let error_message = fault.map(tracing::field::display);
        match change {
            Change::None => {}
            Change::Opened => tracing::warn!(event = "plugin_degraded", component, call, callers, error_message),
            Change::Closed => tracing::info!(event = "plugin_recovered", component, call, callers),
            Change::Quarantined => {
                tracing::error!(event = "plugin_quarantined", component, call, callers, error_message);
            }
        }
    }

    /// Resets the circuit breakers and the quarantine, but not the counts.
    pub(crate) fn reset(&self) {
        let mut condition = self.lock();
        condition.is_quarantined = false;
        condition.quarantined.clear();
        condition.early_fault = None;
        for export in condition.exports.values_mut() {
            export.callers.reset();
        }
    }

    /// Returns `Active`, `Degraded` or `Quarantined`.
    pub(crate) fn state(&self) -> PluginState {
        let now = self.clock.now();
        let condition = self.lock();
        if condition.is_quarantined_for_all(now) {
            PluginState::Quarantined
        } else if condition.exports.values().any(|export| export.callers.is_open(now)) {
            PluginState::Degraded
        } else {
            PluginState::Active
        }
    }

    /// Returns the fault that opened a circuit breaker for all callers within the plugin's first calls.
    pub(crate) fn early_fault(&self) -> Option<PluginFault> {
        self.lock().early_fault.clone()
    }

    /// Returns whether calls of a function other than the `exempt` ones are rejected now.
    pub(crate) fn is_open_except(&self, exempt: &[&str]) -> bool {
        let now = self.clock.now();
        let condition = self.lock();
        let is_open = |(name, export): (&&'static str, &Export)| !exempt.contains(name) && export.callers.is_open(now);
        condition.is_quarantined_for_all(now) || condition.exports.iter().any(is_open)
    }

    pub(crate) fn exports(&self) -> Vec<ExportStatus> {
        let now = self.clock.now();
        let condition = self.lock();
        let is_quarantined = condition.is_quarantined_for_all(now);
        let status = |(name, export): (&&'static str, &Export)| ExportStatus {
            name,
            calls: export.statistics.calls,
            faults: export.statistics.faults,
            refused: export.statistics.refused,
            fuel: export.statistics.fuel,
            p50: export.statistics.quantile(0.5),
            p99: export.statistics.quantile(0.99),
            is_open: is_quarantined || export.callers.is_open(now),
        };
        condition.exports.iter().map(status).collect()
    }
}

impl Condition {
    fn note(
        &mut self,
        (change, affected_callers): (Change, AffectedCallers),
        caller: &Arc<str>,
        fault: Option<&PluginFault>,
    ) {
        let calls: u64 = self.exports.values().map(|export| export.statistics.calls).sum();
        if matches!(change, Change::Opened | Change::Quarantined)
            && affected_callers != AffectedCallers::One
            && calls <= FIRST_CALLS
        {
            self.early_fault = self.early_fault.take().or_else(|| fault.cloned());
        }
        if change == Change::Quarantined {
            self.quarantined.insert(Arc::clone(caller));
            self.is_quarantined |= affected_callers == AffectedCallers::All || self.quarantined.len() > MAX_QUARANTINED;
        }
    }

    /// Returns whether the plugin is quarantined for every caller that it answered in the last minutes.
    fn is_quarantined_for_all(&self, now: Duration) -> bool {
        let is_free = |caller: &str| !self.quarantined.contains(caller);
        let answers = |export: &Export| export.callers.has_answered(now, is_free);
        self.is_quarantined || !self.quarantined.is_empty() && !self.exports.values().any(answers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monotonic_clock::tests::ManualClock;

    fn health() -> (ManualClock, Health) {
        let clock = ManualClock::default();
        let health = Health::new("test".into(), clock.elapsed());
        (clock, health)
    }

    fn call_of(caller: &str, health: &Health, call: &'static str, fault: Option<PluginFault>) {
        let entry = health.enter(call, &caller.into()).unwrap();
        health.leave(entry, fault.as_ref(), 10);
    }

    fn call(health: &Health, call: &'static str, fault: Option<PluginFault>) {
        call_of("ada", health, call, fault);
    }

    fn refusal(health: &Health, call: &'static str) -> Option<PluginFault> {
        health.enter(call, &"ada".into()).err()
    }

    fn trap(call: &'static str) -> Option<PluginFault> {
        Some(PluginFault::Trapped { call, message: String::new() })
    }

    #[test]
    fn failing_function_does_not_disable_others_and_is_probed() {
        let (clock, health) = health();
        (0..5).for_each(|_| call(&health, "detect", trap("detect")));
        call(&health, "train", None);
        assert_eq!(health.state(), PluginState::Degraded);
        let wait = Duration::from_secs(1);
        let refused = PluginFault::Unavailable { call: "detect", reason: Unavailable::BreakerOpen { wait } };
        assert_eq!(refusal(&health, "detect"), Some(refused));
        clock.advance(wait);
        // The next call may be the probe, so the plugin counts as active.
        assert_eq!(health.state(), PluginState::Active);
        call(&health, "detect", None);
        let exports = health.exports();
        let found: Vec<_> = exports.iter().map(|e| (e.name, e.calls, e.faults, e.refused, e.fuel)).collect();
        assert_eq!(found, [("detect", 6, 5, 1, 60), ("train", 1, 0, 0, 10)]);
    }

    #[test]
    fn faults_of_the_host_do_not_count() {
        let (_, health) = health();
        for _ in 0..100 {
            call(&health, "on-query", Some(PluginFault::Busy { call: "on-query" }));
        }
        assert_eq!((health.state(), health.exports()[0].calls), (PluginState::Active, 0));
    }

    #[test]
    fn timeouts_open_the_breaker_but_never_quarantine() {
        let (clock, health) = health();
        let late = || Some(PluginFault::Limit { call: "on-query", limit: Limit::Time });
        for _ in 0..10 {
            while health.state() == PluginState::Active {
                call(&health, "on-query", late());
            }
            assert_eq!(health.state(), PluginState::Degraded);
            clock.advance(Duration::from_secs(60));
        }
        assert_eq!(health.exports()[0].faults, 14);
    }

    #[test]
    fn aborted_probe_permits_the_next_one() {
        let (clock, health) = health();
        (0..5).for_each(|_| call(&health, "detect", trap("detect")));
        clock.advance(Duration::from_secs(1));
        drop(health.enter("detect", &"ada".into()).unwrap());
        call(&health, "detect", None);
        assert_eq!((health.state(), health.exports()[0].calls), (PluginState::Active, 6));
    }

    #[test]
    fn exempt_function_does_not_count_as_open() {
        let (_, health) = health();
        (0..5).for_each(|_| call(&health, "on-certify", trap("on-certify")));
        assert_eq!(health.state(), PluginState::Degraded);
        assert!(!health.is_open_except(&["on-certify"]) && health.is_open_except(&[]));
        (0..5).for_each(|_| call(&health, "on-query", trap("on-query")));
        assert!(health.is_open_except(&["on-certify"]));
    }

    #[test]
    fn quarantine_lasts_until_a_reset() {
        let (clock, health) = health();
        for _ in 0..3 {
            (0..5).for_each(|_| call(&health, "on-query", trap("on-query")));
            clock.advance(Duration::from_secs(1));
            if health.state() != PluginState::Quarantined {
                call(&health, "on-query", None);
            }
        }
        clock.advance(Duration::from_secs(100_000));
        let refused = PluginFault::Unavailable { call: "evaluate", reason: Unavailable::Quarantined };
        assert_eq!(refusal(&health, "evaluate"), Some(refused));
        health.reset();
        call(&health, "on-query", None);
        assert_eq!(health.state(), PluginState::Active);
    }

    #[test]
    fn caller_with_repeated_faults_is_quarantined_alone() {
        let (clock, health) = health();
        for _ in 0..3 {
            call_of("bob", &health, "on-query", None);
            (0..5).for_each(|_| call(&health, "on-query", trap("on-query")));
            clock.advance(Duration::from_secs(1));
            if health.enter("on-query", &"ada".into()).is_ok() {
                call(&health, "on-query", None);
            }
        }
        let refused = PluginFault::Unavailable { call: "on-query", reason: Unavailable::Quarantined };
        assert_eq!(refusal(&health, "on-query"), Some(refused));
        call_of("bob", &health, "on-query", None);
        assert_eq!(health.state(), PluginState::Active);
        // No caller is left that was answered within the last ten minutes and is not quarantined.
        clock.advance(Duration::from_secs(600));
        assert_eq!(health.state(), PluginState::Quarantined);
        call_of("bob", &health, "on-query", None);
        assert_eq!(health.state(), PluginState::Active);
    }

    #[test]
    fn fault_within_the_first_calls_is_recorded() {
        let (_, health) = health();
        (0..15).for_each(|_| call(&health, "train", None));
        (0..5).for_each(|_| call(&health, "detect", trap("detect")));
        assert_eq!(health.early_fault(), trap("detect"));
        health.reset();
        assert_eq!(health.early_fault(), None);
        (0..5).for_each(|_| call(&health, "detect", trap("detect")));
        assert_eq!(health.early_fault(), None, "the first calls are over");
    }

    #[test]
    fn rejected_answer_counts_as_a_fault() {
        let (_, health) = health();
        let fault = PluginFault::Answer { call: "on-query", message: "no such cube".to_owned() };
        for _ in 0..5 {
            call(&health, "on-query", None);
            health.blame("on-query", &"ada".into(), &fault);
        }
        let [export] = &health.exports()[..] else { panic!("one function") };
        assert_eq!((export.calls, export.faults, export.is_open), (5, 5, true));
        assert_eq!(health.state(), PluginState::Degraded);
    }
}
