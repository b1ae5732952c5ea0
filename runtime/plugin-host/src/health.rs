//! How one plugin is doing: counts of its calls, and a breaker for each of its functions.
//!
//! In: the end of each call. Out: whether the next one may run, and what operators are told. Only what is
//! the guest's fault counts against it. Changes are logged here, once. Not here: the rules (`breaker`).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use terrane_app::ports::plugins::{Blame, ExportStatus, Limit, PluginFault, PluginState, Unavailable};

use crate::breaker::{Breaker, Change, Ended, Pass};
use crate::elapsed::Elapsed;
use crate::tally::Tally;

/// Of one loaded plugin.
pub(crate) struct Health {
    component: Arc<str>,
    clock: Elapsed,
    condition: Mutex<Condition>,
}

#[derive(Default)]
struct Condition {
    is_quarantined: bool,
    /// By the contract's names, so there are no more than the contract has.
    exports: BTreeMap<&'static str, Export>,
}

#[derive(Default)]
struct Export {
    breaker: Breaker,
    tally: Tally,
}

/// A call that was let in. Dropped without [`Health::leave`], it was not run: a try that broke off must not
/// keep others from trying.
pub(crate) struct Entry<'a> {
    health: &'a Health,
    call: &'static str,
    began: Duration,
    pass: Option<Pass>,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        if let Some(pass) = self.pass.take() {
            let now = self.health.clock.now();
            let mut condition = self.health.lock();
            condition.exports.entry(self.call).or_default().breaker.leave(now, &pass, Ended::NotRun);
        }
    }
}

impl Health {
    pub(crate) fn new(component: Arc<str>, clock: Elapsed) -> Health {
        Health { component, clock, condition: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Condition> {
        // Counts are whole after any panic.
        self.condition.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a call in.
    ///
    /// # Errors
    /// [`PluginFault::Unavailable`].
    pub(crate) fn enter(&self, call: &'static str) -> Result<Entry<'_>, PluginFault> {
        let began = self.clock.now();
        let mut condition = self.lock();
        let is_quarantined = condition.is_quarantined;
        let export = condition.exports.entry(call).or_default();
        let entered = if is_quarantined {
            Err(Unavailable::Quarantined)
        } else {
            export.breaker.enter(began).map_err(|wait| Unavailable::BreakerOpen { wait })
        };
        entered.map(|pass| Entry { health: self, call, began, pass: Some(pass) }).map_err(|reason| {
            export.tally.refused += 1;
            PluginFault::Unavailable { call, reason }
        })
    }

    /// A call that was let in is over, with the fuel that it took.
    pub(crate) fn leave(&self, mut entry: Entry<'_>, fault: Option<&PluginFault>, fuel: u64) {
        let (now, call) = (self.clock.now(), entry.call);
        let ended = match fault {
            // It answered: callers who ask for what it can't do must not close it to others.
            None | Some(PluginFault::Declined { .. }) => Ended::Well,
            Some(PluginFault::Limit { limit: Limit::Time, .. }) => Ended::Late,
            Some(fault) if fault.blame() == Blame::Guest => Ended::Faulted,
            Some(_) => Ended::NotRun,
        };
        let Some(pass) = entry.pass.take() else { return };
        let mut condition = self.lock();
        let export = condition.exports.entry(call).or_default();
        let change = export.breaker.leave(now, &pass, ended);
        if ended != Ended::NotRun {
            let is_fault = matches!(ended, Ended::Faulted | Ended::Late);
            export.tally.count(is_fault, now.saturating_sub(entry.began), fuel);
        }
        condition.is_quarantined |= change == Change::Quarantined;
        drop(condition);
        self.tell(call, change, fault);
    }

    fn tell(&self, call: &'static str, change: Change, fault: Option<&PluginFault>) {
        let component = &*self.component;
        let error_message = fault.map(tracing::field::display);
        match change {
            Change::None => {}
            Change::Opened => tracing::warn!(event = "plugin_degraded", component, call, error_message),
            Change::Closed => tracing::info!(event = "plugin_recovered", component, call),
            Change::Quarantined => tracing::error!(event = "plugin_quarantined", component, call, error_message),
        }
    }

    /// As new, but for the counts.
    pub(crate) fn forgive(&self) {
        let mut condition = self.lock();
        condition.is_quarantined = false;
        for export in condition.exports.values_mut() {
            export.breaker.forgive();
        }
    }

    /// Active, degraded or quarantined.
    pub(crate) fn state(&self) -> PluginState {
        let now = self.clock.now();
        let condition = self.lock();
        if condition.is_quarantined {
            PluginState::Quarantined
        } else if condition.exports.values().any(|export| export.breaker.is_open(now)) {
            PluginState::Degraded
        } else {
            PluginState::Active
        }
    }

    /// Whether a function would be refused now, of which `spared` is none.
    pub(crate) fn is_open_but_for(&self, spared: &[&str]) -> bool {
        let now = self.clock.now();
        let condition = self.lock();
        let is_open = |(name, export): (&&'static str, &Export)| !spared.contains(name) && export.breaker.is_open(now);
        condition.is_quarantined || condition.exports.iter().any(is_open)
    }

    pub(crate) fn exports(&self) -> Vec<ExportStatus> {
        let now = self.clock.now();
        let condition = self.lock();
        let status = |(name, export): (&&'static str, &Export)| ExportStatus {
            name,
            calls: export.tally.calls,
            faults: export.tally.faults,
            refused: export.tally.refused,
            fuel: export.tally.fuel,
            p50: export.tally.quantile(0.5),
            p99: export.tally.quantile(0.99),
            is_open: condition.is_quarantined || export.breaker.is_open(now),
        };
        condition.exports.iter().map(status).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elapsed::tests::Still;

    fn health() -> (Still, Health) {
        let clock = Still::default();
        let health = Health::new("test".into(), clock.elapsed());
        (clock, health)
    }

    fn call(health: &Health, call: &'static str, fault: Option<PluginFault>) {
        let entry = health.enter(call).unwrap();
        health.leave(entry, fault.as_ref(), 10);
    }

    fn trap(call: &'static str) -> Option<PluginFault> {
        Some(PluginFault::Trapped { call, message: String::new() })
    }

    #[test]
    fn one_function_that_fails_leaves_the_others_alone_and_gets_another_chance() {
        let (clock, health) = health();
        (0..5).for_each(|_| call(&health, "detect", trap("detect")));
        call(&health, "train", None);
        assert_eq!(health.state(), PluginState::Degraded);
        let wait = Duration::from_secs(1);
        let refused = PluginFault::Unavailable { call: "detect", reason: Unavailable::BreakerOpen { wait } };
        assert_eq!(health.enter("detect").err(), Some(refused));
        clock.advance(wait);
        // The next call may try, so nobody has to be sent elsewhere.
        assert_eq!(health.state(), PluginState::Active);
        call(&health, "detect", None);
        let exports = health.exports();
        let found: Vec<_> = exports.iter().map(|e| (e.name, e.calls, e.faults, e.refused, e.fuel)).collect();
        assert_eq!(found, [("detect", 6, 5, 1, 60), ("train", 1, 0, 0, 10)]);
    }

    #[test]
    fn what_is_not_the_guests_fault_does_not_count() {
        let (_, health) = health();
        for _ in 0..100 {
            call(&health, "on-query", Some(PluginFault::Busy { call: "on-query" }));
        }
        assert_eq!((health.state(), health.exports()[0].calls), (PluginState::Active, 0));
    }

    #[test]
    fn running_out_of_time_opens_and_never_quarantines() {
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
    fn a_try_that_breaks_off_lets_the_next_one_try() {
        let (clock, health) = health();
        (0..5).for_each(|_| call(&health, "detect", trap("detect")));
        clock.advance(Duration::from_secs(1));
        drop(health.enter("detect").unwrap());
        call(&health, "detect", None);
        assert_eq!((health.state(), health.exports()[0].calls), (PluginState::Active, 6));
    }

    #[test]
    fn a_function_that_is_spared_is_not_missed() {
        let (_, health) = health();
        (0..5).for_each(|_| call(&health, "on-certify", trap("on-certify")));
        assert_eq!(health.state(), PluginState::Degraded);
        assert!(!health.is_open_but_for(&["on-certify"]) && health.is_open_but_for(&[]));
        (0..5).for_each(|_| call(&health, "on-query", trap("on-query")));
        assert!(health.is_open_but_for(&["on-certify"]));
    }

    #[test]
    fn a_quarantine_lasts_until_it_is_forgiven() {
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
        assert_eq!(health.enter("evaluate").err(), Some(refused));
        health.forgive();
        call(&health, "on-query", None);
        assert_eq!(health.state(), PluginState::Active);
    }
}
