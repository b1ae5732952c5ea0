//! The permit of a running statement.
//!
//! In: the end of the statement for its caller, who may time out or give up, and its end in the engine, which may be
//! later. Out: the permit, which is released after both. It is released after the caller's end alone while few orphaned
//! statements run.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::OwnedSemaphorePermit;

/// The statements whose caller has gone and that the engine has not stopped yet.
#[derive(Debug, Clone)]
pub(super) struct OrphanedStatements {
    running: Arc<AtomicUsize>,
    limit: usize,
}

impl OrphanedStatements {
    pub(super) fn up_to(limit: usize) -> Self {
        OrphanedStatements { running: Arc::default(), limit }
    }

    /// Returns the number of orphaned statements without a permit.
    pub(super) fn without_place(&self) -> usize {
        self.running.load(Ordering::Relaxed).min(self.limit)
    }
}

#[derive(Debug)]
enum State {
    Running(OwnedSemaphorePermit),
    /// The caller ended before the engine. `None` if the permit was already released.
    Orphaned(Option<OwnedSemaphorePermit>),
    /// The engine finished first.
    Finished(OwnedSemaphorePermit),
    Over,
}

#[derive(Debug)]
pub(super) struct StatementPermit {
    state: Mutex<State>,
    orphans: OrphanedStatements,
}

impl StatementPermit {
    pub(super) fn new(permit: OwnedSemaphorePermit, orphans: OrphanedStatements) -> Self {
        StatementPermit { state: Mutex::new(State::Running(permit)), orphans }
    }

    /// Records that the engine has finished the statement.
    pub(super) fn engine_ends(&self) {
        let mut state = self.state();
        *state = match std::mem::replace(&mut *state, State::Over) {
            State::Running(permit) => State::Finished(permit),
            State::Orphaned(permit) => {
                self.orphans.running.fetch_sub(1, Ordering::Relaxed);
                drop(permit);
                State::Over
            }
            other => other,
        };
    }

    /// Ends the statement for its caller, who has the answer or gave up. `give_back` runs before the permit is
    /// released, so that the next statement finds the session.
    pub(super) fn caller_ends(&self, give_back: impl FnOnce(), give_up: impl FnOnce()) {
        let mut state = self.state();
        match std::mem::replace(&mut *state, State::Over) {
            State::Finished(permit) => {
                give_back();
                drop(permit);
            }
            State::Running(permit) => {
                give_up();
                let orphans = self.orphans.running.fetch_add(1, Ordering::Relaxed);
                *state = State::Orphaned((orphans >= self.orphans.limit).then_some(permit));
            }
            other => *state = other,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is one assignment, so a poisoned lock holds a complete state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
