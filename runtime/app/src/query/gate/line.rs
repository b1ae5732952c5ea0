//! The queue itself: who runs, who waits, whose turn is next. Not here: waiting (`gate`).
//!
//! What holds between any two calls: no more run than may, altogether and of each tenant; and where a
//! turn is free, nobody waits who could have it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use tokio::sync::oneshot;

use super::{GateSettings, Overloaded};

/// Tells a waiter that it may run, or that its place went to somebody else.
pub(super) type Word = oneshot::Sender<Result<(), Overloaded>>;

#[derive(Debug)]
pub(super) struct Line {
    settings: GateSettings,
    running: usize,
    queued: usize,
    /// Only those of which a query runs or waits.
    tenants: HashMap<Arc<str>, Tenant>,
    /// The tenants that wait, each once, the next one first.
    rota: VecDeque<Arc<str>>,
    next_ticket: u64,
}

#[derive(Debug, Default)]
struct Tenant {
    running: usize,
    /// By ticket: the oldest is the first.
    waiting: BTreeMap<u64, Word>,
}

impl Line {
    pub(super) fn new(settings: GateSettings) -> Self {
        let settings = GateSettings { running: settings.running.max(1), ..settings };
        Line { settings, running: 0, queued: 0, tenants: HashMap::new(), rota: VecDeque::new(), next_ticket: 0 }
    }

    pub(super) fn overloaded(&self) -> Overloaded {
        Overloaded { running: self.running, queued: self.queued }
    }

    /// Takes a turn if one is free: nobody waits who could have it.
    pub(super) fn begin(&mut self, tenant: &Arc<str>) -> bool {
        let of_tenant = self.tenants.get(tenant).map_or(0, |tenant| tenant.running);
        let may_run = self.running < self.settings.running && of_tenant < self.running_per_tenant();
        if may_run {
            self.running += 1;
            self.tenants.entry(tenant.clone()).or_default().running += 1;
        }
        may_run
    }

    /// Takes a place in the queue.
    pub(super) fn join(&mut self, tenant: &Arc<str>, word: Word) -> Result<u64, Overloaded> {
        let waiting = self.tenants.get(tenant).map_or(0, |tenant| tenant.waiting.len());
        if self.settings.queued_per_tenant.is_some_and(|limit| waiting >= limit) {
            return Err(self.overloaded());
        }
        if self.queued >= self.settings.queued && !self.make_place(waiting) {
            return Err(self.overloaded());
        }
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        if waiting == 0 {
            self.rota.push_back(tenant.clone());
        }
        self.tenants.entry(tenant.clone()).or_default().waiting.insert(ticket, word);
        self.queued += 1;
        Ok(ticket)
    }

    /// A waiter went away without a word.
    pub(super) fn leave(&mut self, tenant: &Arc<str>, ticket: u64) {
        let Some(found) = self.tenants.get_mut(tenant) else { return };
        if found.waiting.remove(&ticket).is_some() {
            self.queued -= 1;
            self.tidy(tenant);
        }
    }

    /// A turn is over; the next ones begin.
    pub(super) fn end(&mut self, tenant: &Arc<str>) {
        self.running = self.running.saturating_sub(1);
        if let Some(found) = self.tenants.get_mut(tenant) {
            found.running = found.running.saturating_sub(1);
        }
        self.tidy(tenant);
        while self.running < self.settings.running && self.give_turn() {}
    }

    /// Lets the oldest query of the next tenant run that may have one more.
    fn give_turn(&mut self) -> bool {
        let limit = self.running_per_tenant();
        let may_run = |name: &Arc<str>| self.tenants.get(name).is_some_and(|tenant| tenant.running < limit);
        let Some(place) = self.rota.iter().position(may_run) else { return false };
        let Some(name) = self.rota.remove(place) else { return false };
        let Some(tenant) = self.tenants.get_mut(&name) else { return true };
        let first = tenant.waiting.pop_first();
        if !tenant.waiting.is_empty() {
            self.rota.push_back(name.clone());
        }
        if let Some((_, word)) = first {
            self.queued -= 1;
            // Whoever went away leaves under the same lock first, so that the word is heard.
            if word.send(Ok(())).is_ok() {
                tenant.running += 1;
                self.running += 1;
            }
        }
        true
    }

    /// Sends the newest query of the tenant with most away, for one of a tenant with fewer.
    fn make_place(&mut self, waiting_of_newcomer: usize) -> bool {
        let longest = self.rota.iter().max_by_key(|name| self.tenants.get(*name).map_or(0, |t| t.waiting.len()));
        let Some(name) = longest.cloned() else { return false };
        let Some(tenant) = self.tenants.get_mut(&name) else { return false };
        if tenant.waiting.len() < waiting_of_newcomer + 2 {
            return false;
        }
        let Some((_, word)) = tenant.waiting.pop_last() else { return false };
        self.queued -= 1;
        // It may be about to leave.
        let _ = word.send(Err(Overloaded { running: self.running, queued: self.queued }));
        true
    }

    /// Forgets a tenant of which nothing runs or waits.
    fn tidy(&mut self, name: &Arc<str>) {
        let Some(tenant) = self.tenants.get(name) else { return };
        if !tenant.waiting.is_empty() {
            return;
        }
        if tenant.running == 0 {
            self.tenants.remove(name);
        }
        self.rota.retain(|waiting| waiting != name);
    }

    fn running_per_tenant(&self) -> usize {
        self.settings.running_per_tenant.unwrap_or(usize::MAX).max(1)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.running == 0 && self.queued == 0 && self.tenants.is_empty() && self.rota.is_empty()
    }

    /// Queries that run and that wait.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.running, self.queued)
    }
}
