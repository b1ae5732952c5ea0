//! Rows that are read as they come, and the record of it.
//!
//! In: a warehouse's stream that has begun. Out: [`Piece`]s, the last of them an end. Whoever reads
//! slowly holds a turn, so the whole has a deadline. Not here: when rows are streamed (`query`).

use std::pin::Pin;
use std::time::Duration;

use arrow::array::RecordBatch;
use futures_util::StreamExt as _;
use futures_util::stream::{self, Stream};
use tokio::time::Sleep;

use super::answer::Piece;
use super::gate::Turn;
use super::tally::{Execution, Tally};
use super::{RunError, error_type, exception, milliseconds, retry_count};
use crate::ports::observer::Outcome;
use crate::ports::warehouse::{BatchStream, WarehouseError};

/// A stream of which the first rows are there.
pub(super) struct Reading {
    pub(super) first: Option<RecordBatch>,
    pub(super) batches: BatchStream,
    pub(super) statement_timeout: Duration,
    pub(super) whole_timeout: Duration,
    pub(super) deadline: Pin<Box<Sleep>>,
    /// The number of rows that makes a page full.
    pub(super) limit: Option<u64>,
    pub(super) truncated: Option<bool>,
    pub(super) record: Record,
    /// Given back when the last row is read.
    pub(super) _turn: Turn,
}

/// What the log and the observer are told when the stream ends, however it does.
pub(super) struct Record {
    pub(super) span: tracing::Span,
    pub(super) tally: Tally,
    pub(super) execution: Execution,
    /// Spent waiting for the warehouse.
    pub(super) waited: Duration,
    pub(super) rows: u64,
    pub(super) is_open: bool,
}

impl Reading {
    pub(super) fn pieces(self) -> impl Stream<Item = Result<Piece, RunError>> + Send + 'static {
        stream::unfold(Some(self), |reading| async move {
            let mut reading = reading?;
            match reading.next().await {
                Ok(Some(batch)) => Some((Ok(Piece::Rows(batch)), Some(reading))),
                Ok(None) => Some((Ok(reading.end()), None)),
                Err(error) => {
                    reading.record.fail(&error);
                    Some((Err(error), None))
                }
            }
        })
    }

    async fn next(&mut self) -> Result<Option<RecordBatch>, RunError> {
        let batch = match self.first.take() {
            Some(first) => Some(first),
            None => self.ask().await?,
        };
        self.record.rows += batch.as_ref().map_or(0, |batch| batch.num_rows() as u64);
        Ok(batch)
    }

    async fn ask(&mut self) -> Result<Option<RecordBatch>, RunError> {
        let asked = self.record.tally.clock.elapsed();
        let batch = tokio::select! {
            biased;
            () = &mut self.deadline => return Err(RunError::Timeout { timeout: self.whole_timeout }),
            batch = self.batches.next() => batch,
        };
        self.record.waited += self.record.tally.clock.elapsed().saturating_sub(asked);
        batch.transpose().map_err(|error: WarehouseError| RunError::from_warehouse(error, self.statement_timeout))
    }

    fn end(mut self) -> Piece {
        let returned_rows = self.record.rows;
        let is_full = self.limit.is_some_and(|limit| returned_rows >= limit);
        let truncated = self.truncated.or(if is_full { None } else { Some(false) });
        Piece::End { returned_rows, truncated, duration: self.record.complete() }
    }
}

impl Record {
    fn complete(&mut self) -> Duration {
        self.end(Outcome::Success);
        let duration = self.duration();
        self.span.in_scope(|| {
            tracing::info!(
                event = "query_executed",
                cube = &*self.tally.cube,
                warehouse = &*self.tally.warehouse,
                warehouse_duration_ms = milliseconds(self.waited),
                total_duration_ms = milliseconds(duration),
                rows_returned = self.rows,
                bytes_scanned = tracing::field::Empty,
                cache_hit = false,
                preagg_used = false,
            );
        });
        duration
    }

    fn fail(&mut self, error: &RunError) {
        self.end(Outcome::from(error));
        self.span.in_scope(|| {
            tracing::error!(
                event = "query_failed",
                cube = &*self.tally.cube,
                error_type = error_type(error),
                error_message = %error,
                rows_returned = self.rows,
                retry_count = retry_count(error),
                exception = exception(error),
            );
        });
    }

    fn end(&mut self, outcome: Outcome) {
        self.is_open = false;
        self.tally.outcome = outcome;
        self.execution.outcome = Some(outcome);
        self.tell();
    }

    /// How far it came.
    fn tell(&mut self) {
        (self.tally.waited, self.tally.rows, self.execution.rows) = (Some(self.waited), self.rows, self.rows);
    }

    fn duration(&self) -> Duration {
        self.tally.clock.elapsed().saturating_sub(self.tally.started)
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if self.is_open {
            self.tell();
            let total_duration_ms = milliseconds(self.duration());
            self.span.in_scope(|| {
                tracing::info!(
                    event = "query_abandoned",
                    cube = &*self.tally.cube,
                    total_duration_ms,
                    rows_returned = self.rows
                );
            });
        }
    }
}
