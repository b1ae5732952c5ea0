//! How many queries run at once, and in which order those that wait get their turns.
//!
//! In: whose query it is. Out: a [`Turn`], or [`Overloaded`]. Turns go round robin among the tenants
//! that wait, oldest query first within each. The queue is bounded for all together and for each
//! tenant; when it is full, a tenant with few waiting queries takes the place of the newest one of the
//! tenant with most. So no tenant, however many queries it sends, keeps another out. A waiter that goes
//! away leaves the queue; one that was just given its turn passes it on.

mod line;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use line::Line;

/// How many may run, and how many may wait.
#[derive(Debug, Clone, Copy)]
pub struct GateSettings {
    pub running: usize,
    pub queued: usize,
    /// Of one tenant; `None`: as many as of all.
    pub running_per_tenant: Option<usize>,
    pub queued_per_tenant: Option<usize>,
}

/// Every turn is taken and there is no place in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{running} queries run and {queued} wait: try again later")]
pub struct Overloaded {
    pub running: usize,
    pub queued: usize,
}

/// A bounded number of turns with a bounded queue in front; a clone is the same gate.
#[derive(Debug, Clone)]
pub struct Gate(Arc<Mutex<Line>>);

/// Leave to run, until it is dropped; a stream takes it along.
#[derive(Debug)]
pub struct Turn {
    gate: Gate,
    tenant: Arc<str>,
}

/// A place in the queue, until it is dropped or becomes a turn.
struct Waiting {
    gate: Gate,
    tenant: Arc<str>,
    ticket: u64,
    word: oneshot::Receiver<Result<(), Overloaded>>,
}

impl Gate {
    pub fn new(settings: GateSettings) -> Self {
        Gate(Arc::new(Mutex::new(Line::new(settings))))
    }

    /// Queries that run and that wait.
    pub fn load(&self) -> (usize, usize) {
        self.line().counts()
    }

    /// Waits for a turn. Callers without a tenant are one tenant together.
    ///
    /// # Errors
    /// [`Overloaded`], at once or when another tenant needs the place.
    pub async fn enter(&self, tenant: Option<&Arc<str>>) -> Result<Turn, Overloaded> {
        let tenant = tenant.cloned().unwrap_or_default();
        let mut waiting = {
            let mut line = self.line();
            if line.begin(&tenant) {
                return Ok(Turn { gate: self.clone(), tenant });
            }
            let (sender, receiver) = oneshot::channel();
            let ticket = line.join(&tenant, sender)?;
            Waiting { gate: self.clone(), tenant, ticket, word: receiver }
        };
        match (&mut waiting.word).await {
            Ok(Ok(())) => Ok(Turn { gate: self.clone(), tenant: waiting.tenant.clone() }),
            Ok(Err(overloaded)) => Err(overloaded),
            // Senders live in the line, and the line in this gate.
            Err(_) => Err(self.line().overloaded()),
        }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        // Nothing in there panics between two changes that belong together.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.gate.line().end(&self.tenant);
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // Words are given under this lock, so that none comes between the look and the leave.
        let mut line = self.gate.line();
        match self.word.try_recv() {
            Ok(Ok(())) => line.end(&self.tenant),
            Ok(Err(_)) => {}
            // None was given, or it was heard: then the ticket is not in the line.
            Err(_) => line.leave(&self.tenant, self.ticket),
        }
    }
}

#[cfg(test)]
mod tests;
