//! Limits how many queries run at once, and orders those that wait.
//!
//! In: the tenant of a query. Out: a [`Permit`], or [`Overloaded`]. The tenants that wait get permits in turn; within a
//! tenant, the oldest query is first. The queue is bounded in total and per tenant. If it is full, a query of a tenant
//! with few waiting queries replaces the newest query of the tenant with the most. So no tenant can keep another one
//! out. A waiter that is dropped leaves the queue. If a permit was just granted to it, the permit goes to the next
//! query.

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

/// The error that every permit is in use and the queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{running} queries are running and {queued} are waiting; retry later")]
pub struct Overloaded {
    pub running: usize,
    pub queued: usize,
}

/// A bounded number of permits with a bounded queue. Clones share both.
#[derive(Debug, Clone)]
pub struct ConcurrencyLimiter(Arc<Mutex<FairQueue>>);

/// The right to run one query. Dropping it returns the permit. A stream holds its permit until it ends.
#[derive(Debug)]
pub struct Permit {
    limiter: ConcurrencyLimiter,
    tenant: Arc<str>,
}

/// A query that waits in the queue. It leaves the queue when the waiter is dropped or a permit is granted.
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

    /// Returns the number of running queries and the number of waiting queries.
    pub fn load(&self) -> (usize, usize) {
        self.queue().counts()
    }

    /// Waits for a permit. All queries without a tenant count as queries of one tenant.
    ///
    /// # Errors
    /// [`Overloaded`], at once, or later if another tenant takes the place in the queue.
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
            // Receiving cannot fail while this limiter exists: it holds the queue, and the queue holds the senders.
            Err(_) => Err(self.queue().overloaded()),
        }
    }

    fn queue(&self) -> MutexGuard<'_, FairQueue> {
        // No method of the queue panics between two changes that must be made together.
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
        // Decisions are sent under this lock, so none can arrive between the check and the removal.
        let mut queue = self.limiter.queue();
        match self.decision.try_recv() {
            Ok(Ok(())) => queue.end(&self.tenant),
            Ok(Err(_)) => {}
            // No decision was sent, or it was received already. In the latter case, the ticket is not in the queue any
            // more.
            Err(_) => queue.leave(&self.tenant, self.ticket),
        }
    }
}

#[cfg(test)]
mod tests;
