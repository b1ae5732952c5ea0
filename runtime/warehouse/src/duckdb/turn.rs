//! A place among the statements that run, and who gives it back.
//!
//! A statement has two ends: the caller's, which may come early, and the engine's, which may come
//! late. The place is free when both have come, or at the caller's end while few strays run.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::OwnedSemaphorePermit;

/// Statements that nobody waits for any more and that the engine hasn't stopped.
#[derive(Debug, Clone)]
pub(super) struct Strays {
    running: Arc<AtomicUsize>,
    limit: usize,
}

impl Strays {
    pub(super) fn up_to(limit: usize) -> Self {
        Strays { running: Arc::default(), limit }
    }

    /// Those that gave their place on, as far as can be told from outside.
    pub(super) fn without_place(&self) -> usize {
        self.running.load(Ordering::Relaxed).min(self.limit)
    }
}

#[derive(Debug)]
enum State {
    Running(OwnedSemaphorePermit),
    /// The caller left first. Without a permit, its place was given on.
    Stray(Option<OwnedSemaphorePermit>),
    /// The engine finished first.
    Finished(OwnedSemaphorePermit),
    Over,
}

#[derive(Debug)]
pub(super) struct Turn {
    state: Mutex<State>,
    strays: Strays,
}

impl Turn {
    pub(super) fn new(permit: OwnedSemaphorePermit, strays: Strays) -> Self {
        Turn { state: Mutex::new(State::Running(permit)), strays }
    }

    /// The engine has finished the statement.
    pub(super) fn engine_ends(&self) {
        let mut state = self.state();
        *state = match std::mem::replace(&mut *state, State::Over) {
            State::Running(permit) => State::Finished(permit),
            State::Stray(permit) => {
                self.strays.running.fetch_sub(1, Ordering::Relaxed);
                drop(permit);
                State::Over
            }
            other => other,
        };
    }

    /// The caller has its answer or gave up. True: the session is free for the next statement;
    /// `give_back` runs before the place is free, so that whoever gets it finds the session.
    pub(super) fn caller_ends(&self, give_back: impl FnOnce(), give_up: impl FnOnce()) {
        let mut state = self.state();
        match std::mem::replace(&mut *state, State::Over) {
            State::Finished(permit) => {
                give_back();
                drop(permit);
            }
            State::Running(permit) => {
                give_up();
                let strays = self.strays.running.fetch_add(1, Ordering::Relaxed);
                *state = State::Stray((strays >= self.strays.limit).then_some(permit));
            }
            other => *state = other,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is one assignment, so a poisoned lock holds a whole state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
