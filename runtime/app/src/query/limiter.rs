//! Limits how many queries run at once, and orders those that wait.
//!
//! In: the tenant of a query. Out: a [`Permit`], or [`Overloaded`]. Permits go round robin among the
//! tenants that wait, oldest query first within each. The queue is bounded in total and per tenant. When
//! it is full, a tenant with few waiting queries takes the place of the newest query of the tenant with
//! most, so no tenant can keep another out. A waiter that is dropped leaves the queue; if it was just
//! given its permit, the permit passes to the next one.

mod fair_queue;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use fair_queue::FairQueue;

/// The bounds of the limiter.
#[derive(Debug, Clone, Copy)]
pub struct LimiterSettings {
    pub running: usize,
    pub queued: usize,
    /// The largest number of running queries of one tenant; `None` for no limit besides `running`.
    pub running_per_tenant: Option<usize>,
    pub queued_per_tenant: Option<usize>,
}

/// Every permit is in use and the queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{running} queries run and {queued} wait: try again later")]
pub struct Overloaded {
    pub running: usize,
    pub queued: usize,
}

/// A bounded number of permits behind a bounded queue. Clones share them.
#[derive(Debug, Clone)]
pub struct ConcurrencyLimiter(Arc<Mutex<FairQueue>>);

/// The right to run one query, returned when it is dropped. A stream holds its permit until it ends.
#[derive(Debug)]
pub struct Permit {
    limiter: ConcurrencyLimiter,
    tenant: Arc<str>,
}

/// A place in the queue, until it is dropped or becomes a permit.
struct Waiter {
    limiter: ConcurrencyLimiter,
    tenant: Arc<str>,
    ticket: u64,
    decision: oneshot::Receiver<Result<(), Overloaded>>,
}

impl ConcurrencyLimiter {
    pub fn new(settings: LimiterSettings) -> Self {
        ConcurrencyLimiter(Arc::new(Mutex::new(FairQueue::new(settings))))
    }

    /// Returns the numbers of queries that run and that wait.
    pub fn load(&self) -> (usize, usize) {
        self.queue().counts()
    }

    /// Waits for a permit. Queries without a tenant count as those of one tenant.
    ///
    /// # Errors
    /// [`Overloaded`], at once or when another tenant takes the place in the queue.
    pub async fn acquire(&self, tenant: Option<&Arc<str>>) -> Result<Permit, Overloaded> {
        let tenant = tenant.cloned().unwrap_or_default();
        let mut waiter = {
            let mut queue = self.queue();
            if queue.try_start(&tenant) {
                return Ok(Permit { limiter: self.clone(), tenant });
            }
            let (sender, receiver) = oneshot::channel();
            let ticket = queue.join(&tenant, sender)?;
            Waiter { limiter: self.clone(), tenant, ticket, decision: receiver }
        };
        match (&mut waiter.decision).await {
            Ok(Ok(())) => Ok(Permit { limiter: self.clone(), tenant: waiter.tenant.clone() }),
            Ok(Err(overloaded)) => Err(overloaded),
            // The queue holds the senders, and this limiter holds the queue.
            Err(_) => Err(self.queue().overloaded()),
        }
    }

    fn queue(&self) -> MutexGuard<'_, FairQueue> {
        // No method of the queue panics between two changes that belong together.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.limiter.queue().end(&self.tenant);
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        // Decisions are sent under this lock, so none arrives between the check and the removal.
        let mut queue = self.limiter.queue();
        match self.decision.try_recv() {
            Ok(Ok(())) => queue.end(&self.tenant),
            Ok(Err(_)) => {}
            // No decision was sent, or it was received: then the ticket is not in the queue.
            Err(_) => queue.leave(&self.tenant, self.ticket),
        }
    }
}

#[cfg(test)]
mod tests;
