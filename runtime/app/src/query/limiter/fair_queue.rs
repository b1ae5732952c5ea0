//! The state of the limiter: the running queries, the waiting queries, and their order. Not here: waiting (`limiter`).
//!
//! Two invariants hold between any two calls. The number of running queries never exceeds the limits, in total and per
//! tenant. While a permit is free, no query waits whose tenant may use it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use tokio::sync::oneshot;

use super::{LimiterSettings, Overloaded};

/// The channel that sends a waiter its permit, or the error that another tenant took its place.
pub(super) type Decision = oneshot::Sender<Result<(), Overloaded>>;

#[derive(Debug)]
pub(super) struct FairQueue {
    settings: LimiterSettings,
    running: usize,
    queued: usize,
    /// The tenants with a running or waiting query.
    tenants: HashMap<Arc<str>, Tenant>,
    /// The tenants with waiting queries, each once, in the order in which they get permits.
    rotation: VecDeque<Arc<str>>,
    next_ticket: u64,
}

#[derive(Debug, Default)]
struct Tenant {
    running: usize,
    /// Waiting queries by ticket, oldest first.
    waiting: BTreeMap<u64, Decision>,
}

impl FairQueue {
    pub(super) fn new(settings: LimiterSettings) -> Self {
        let settings = LimiterSettings { running: settings.running.max(1), ..settings };
        FairQueue {
            settings,
            running: 0,
            queued: 0,
            tenants: HashMap::new(),
            rotation: VecDeque::new(),
            next_ticket: 0,
        }
    }

    pub(super) fn overloaded(&self) -> Overloaded {
        Overloaded { running: self.running, queued: self.queued }
    }

    /// Acquires a permit if one is free for the tenant. By the invariant, no waiting query could use this permit.
    pub(super) fn try_start(&mut self, tenant: &Arc<str>) -> bool {
        let of_tenant = self.tenants.get(tenant).map_or(0, |tenant| tenant.running);
        let may_run = self.running < self.settings.running && of_tenant < self.running_per_tenant();
        if may_run {
            self.running += 1;
            self.tenants.entry(tenant.clone()).or_default().running += 1;
        }
        may_run
    }

    /// Adds a query to the queue and returns its ticket.
    pub(super) fn join(&mut self, tenant: &Arc<str>, decision: Decision) -> Result<u64, Overloaded> {
        let waiting = self.tenants.get(tenant).map_or(0, |tenant| tenant.waiting.len());
        if self.settings.queued_per_tenant.is_some_and(|limit| waiting >= limit) {
            return Err(self.overloaded());
        }
        if self.queued >= self.settings.queued && !self.evict_newest(waiting) {
            return Err(self.overloaded());
        }
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        if waiting == 0 {
            self.rotation.push_back(tenant.clone());
        }
        self.tenants.entry(tenant.clone()).or_default().waiting.insert(ticket, decision);
        self.queued += 1;
        Ok(ticket)
    }

    /// Removes a waiter that was dropped before a decision was sent to it.
    pub(super) fn leave(&mut self, tenant: &Arc<str>, ticket: u64) {
        let Some(found) = self.tenants.get_mut(tenant) else { return };
        if found.waiting.remove(&ticket).is_some() {
            self.queued -= 1;
            self.tidy(tenant);
        }
    }

    /// Releases a permit and starts the next queries.
    pub(super) fn end(&mut self, tenant: &Arc<str>) {
        self.running = self.running.saturating_sub(1);
        if let Some(found) = self.tenants.get_mut(tenant) {
            found.running = found.running.saturating_sub(1);
        }
        self.tidy(tenant);
        while self.running < self.settings.running && self.start_next() {}
    }

    /// Starts the oldest query of the next tenant that is below its limit. Returns false if no waiting tenant is below
    /// its limit.
    fn start_next(&mut self) -> bool {
        let limit = self.running_per_tenant();
        let may_run = |name: &Arc<str>| self.tenants.get(name).is_some_and(|tenant| tenant.running < limit);
        let Some(place) = self.rotation.iter().position(may_run) else { return false };
        let Some(name) = self.rotation.remove(place) else { return false };
        let Some(tenant) = self.tenants.get_mut(&name) else { return true };
        let first = tenant.waiting.pop_first();
        if !tenant.waiting.is_empty() {
            self.rotation.push_back(name.clone());
        }
        if let Some((_, decision)) = first {
            self.queued -= 1;
            // A dropped waiter leaves the queue under the same lock, so the receiver of this decision still exists.
            if decision.send(Ok(())).is_ok() {
                tenant.running += 1;
                self.running += 1;
            }
        }
        true
    }

    /// Frees a place for a query of a tenant that has `waiting_of_tenant` waiting queries: removes the newest query of
    /// the tenant with the most waiting queries, if that tenant has at least two more. Returns whether a query was
    /// removed.
    fn evict_newest(&mut self, waiting_of_tenant: usize) -> bool {
        let longest = self.rotation.iter().max_by_key(|name| self.tenants.get(*name).map_or(0, |t| t.waiting.len()));
        let Some(name) = longest.cloned() else { return false };
        let Some(tenant) = self.tenants.get_mut(&name) else { return false };
        if tenant.waiting.len() < waiting_of_tenant + 2 {
            return false;
        }
        let Some((_, decision)) = tenant.waiting.pop_last() else { return false };
        self.queued -= 1;
        // The error is ignored, because the waiter may be about to leave.
        let _ = decision.send(Err(Overloaded { running: self.running, queued: self.queued }));
        true
    }

    /// Removes a tenant that has no running or waiting queries.
    fn tidy(&mut self, name: &Arc<str>) {
        let Some(tenant) = self.tenants.get(name) else { return };
        if !tenant.waiting.is_empty() {
            return;
        }
        if tenant.running == 0 {
            self.tenants.remove(name);
        }
        self.rotation.retain(|waiting| waiting != name);
    }

    fn running_per_tenant(&self) -> usize {
        self.settings.running_per_tenant.unwrap_or(usize::MAX).max(1)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.running == 0 && self.queued == 0 && self.tenants.is_empty() && self.rotation.is_empty()
    }

    /// Returns the number of running queries and the number of waiting queries.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.running, self.queued)
    }
}
