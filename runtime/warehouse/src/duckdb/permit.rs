//! The permit of a running statement.
//!
//! In: the end of the statement for its caller, who may time out or give up, and its end in the engine, which may be
//! later. Out: the permit. It is released after the caller's end if few orphaned statements run, and otherwise after
//! both ends.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::OwnedSemaphorePermit;

/// The statements whose caller has disconnected, but which the engine has not stopped yet.
#[derive(Debug, Clone)]
pub(super) struct OrphanedStatements {
    running: Arc<AtomicUsize>,
    limit: usize,
}

impl OrphanedStatements {
    pub(super) fn up_to(limit: usize) -> Self {
        OrphanedStatements { running: Arc::default(), limit }
    }

    /// Returns the number of orphaned statements that do not hold a permit.
    pub(super) fn without_place(&self) -> usize {
        self.running.load(Ordering::Relaxed).min(self.limit)
    }
}

#[derive(Debug)]
enum State {
    Running(OwnedSemaphorePermit),
    /// The caller left, but the engine still runs the statement. `None` if the permit has already been released.
    Orphaned(Option<OwnedSemaphorePermit>),
    /// The engine ended the statement, but the caller still waits or reads.
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

    /// Ends the statement for its caller. If the engine has finished, runs `give_back` and then releases the permit, so
    /// that the next statement finds the session. Otherwise runs `give_up`.
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
        // The lock protects one value that is replaced as a whole, so it is complete even after a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
