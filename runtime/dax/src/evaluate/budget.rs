//! The limits of an evaluation: steps, memory, and cancellation by the caller.
//!
//! In: work, which is counted before it is done. Out: an error at a limit. Steps are counted over all rounds of an
//! evaluation. Memory is counted for one round: the bytes of its tables, strings and rows.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::rows::Rows;
use super::{Datum, Evaluator, Halt, Result};
use crate::place::Place;
use crate::problem::{Problem, ProblemKind};

/// The largest number of expressions and rows that one evaluation computes, in all rounds.
pub const MAX_STEPS: u64 = 100_000_000;
/// The largest number of bytes that one round of an evaluation uses.
pub const MAX_BYTES: usize = 256 * 1024 * 1024;
/// The largest size in bytes of a string that an expression creates.
const MAX_STRING: usize = 1024 * 1024;
/// The number of steps after which the flag for cancellation is checked again.
const CHECK_INTERVAL: u64 = 1_024;

/// The remaining work of an evaluation. All rounds of the evaluation share the budget. The caller holds it too, to
/// cancel the evaluation.
#[derive(Debug)]
pub struct Budget {
    max_steps: u64,
    steps: AtomicU64,
    is_cancelled: AtomicBool,
}

impl Budget {
    pub fn new(max_steps: u64) -> Self {
        Budget { max_steps, steps: AtomicU64::new(0), is_cancelled: AtomicBool::new(false) }
    }

    /// Ends the evaluation when it next checks for cancellation.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }

    fn take(&self, steps: u64, place: Place) -> Result<()> {
        let before = self.steps.fetch_add(steps, Ordering::Relaxed);
        if before + steps > self.max_steps {
            let kind = ProblemKind::TooLarge { what: "steps of evaluation", limit: self.max_steps };
            return Err(Problem::new(kind, place).into());
        }
        let is_due = before / CHECK_INTERVAL != (before + steps) / CHECK_INTERVAL;
        if is_due && self.is_cancelled.load(Ordering::Relaxed) {
            return Err(Problem::new(ProblemKind::Cancelled, place).into());
        }
        Ok(())
    }
}

/// The memory of a table, in bytes. It is released when the table is dropped.
#[derive(Debug)]
pub(super) struct Charge {
    bytes: usize,
    held: Rc<Cell<usize>>,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.held.set(self.held.get().saturating_sub(self.bytes));
    }
}

impl<'q> Evaluator<'q> {
    /// Counts a step of the evaluation.
    pub(super) fn step(&self, place: Place) -> Result<()> {
        self.steps(1, place)
    }

    /// Counts several steps of the evaluation.
    pub(super) fn steps(&self, steps: usize, place: Place) -> Result<()> {
        self.budget.take(steps as u64, place)
    }

    /// Checks the limits for rows before they are created, and counts a step for each row.
    pub(super) fn room_for(&self, rows: usize, width: usize, place: Place) -> Result<()> {
        self.limited(rows, place)?;
        self.steps(rows, place)?;
        self.can_hold(rows.saturating_mul(row_bytes(width)), place)
    }

    /// Checks that this number of bytes fits into the memory limit. If it does not fit, drops the cached tables and
    /// checks again.
    fn can_hold(&self, bytes: usize, place: Place) -> Result<()> {
        if self.held.get().saturating_add(bytes) <= MAX_BYTES {
            return Ok(());
        }
        self.forget_tables();
        if self.held.get().saturating_add(bytes) <= MAX_BYTES {
            return Ok(());
        }
        let kind = ProblemKind::TooLarge { what: "bytes of memory", limit: MAX_BYTES as u64 };
        Err(Halt::Problem(Problem::new(kind, place)))
    }

    /// Counts memory, in bytes, which stays in use until the end of the round.
    pub(super) fn hold(&self, bytes: usize, place: Place) -> Result<()> {
        self.can_hold(bytes, place)?;
        self.held.set(self.held.get() + bytes);
        Ok(())
    }

    /// Returns the table after its memory was counted. Rows that it shares with other tables are not counted again.
    pub(super) fn charged(&self, rows: Rc<Rows>, place: Place) -> Result<Rc<Rows>> {
        if rows.charge.is_some() {
            return Ok(rows);
        }
        let own = rows.rows.iter().filter(|row| Rc::strong_count(row) == 1);
        let own: usize = own.map(|row| row_bytes(row.len()) + row.iter().map(string_bytes).sum::<usize>()).sum();
        let bytes = own + rows.rows.len() * size_of::<Rc<[Datum]>>();
        self.hold(bytes, place)?;
        let charge = Rc::new(Charge { bytes, held: Rc::clone(&self.held) });
        let mut rows = Rc::unwrap_or_clone(rows);
        rows.charge = Some(charge);
        Ok(Rc::new(rows))
    }

    /// Checks the length of a string before it is created.
    pub(super) fn string_of(&self, length: usize, place: Place) -> Result<()> {
        self.steps(length / 1_024, place)?;
        if length > MAX_STRING {
            let kind = ProblemKind::TooLarge { what: "bytes of a string", limit: MAX_STRING as u64 };
            return Err(Halt::Problem(Problem::new(kind, place)));
        }
        Ok(())
    }
}

fn row_bytes(width: usize) -> usize {
    width * size_of::<Datum>() + 2 * size_of::<usize>()
}

fn string_bytes(value: &Datum) -> usize {
    match value {
        Datum::Text(text) if std::sync::Arc::strong_count(text) == 1 => text.len(),
        _ => 0,
    }
}
