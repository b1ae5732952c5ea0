//! Reads the rows of a statement as a stream, and records its end.
//!
//! In: a statement that has begun. Out: [`Piece`]s, the last of which marks the end. A slow client would hold its
//! permit for long, so the whole stream has a deadline. Not here: the decision to stream (`prepared`).

use std::pin::Pin;
use std::time::Duration;

use arrow::array::RecordBatch;
use futures_util::StreamExt as _;
use futures_util::stream::{self, Stream};
use tokio::time::Sleep;

use super::answer::Piece;
use super::cache_use::CacheUse;
use super::limiter::Permit;
use super::recorder::{ExecutedStatement, QueryRecorder, StatementRecorder};
use super::{QueryRunError, milliseconds};
use crate::ports::observer::QueryOutcome;
use crate::ports::warehouse::{BatchStream, WarehouseError};

/// A stream whose first rows were read.
pub(super) struct RowReader {
    pub(super) first: Option<RecordBatch>,
    pub(super) batches: BatchStream,
    pub(super) statement_timeout: Duration,
    pub(super) deadline: Pin<Box<Sleep>>,
    /// The error of a stream that reaches its deadline.
    pub(super) overdue: QueryRunError,
    /// The number of rows of a full page.
    pub(super) limit: Option<u64>,
    pub(super) truncated: Option<bool>,
    pub(super) record: StreamRecord,
    /// The permit of the query, which is returned when the reader is dropped.
    pub(super) _permit: Permit,
}

/// The record of a stream. It is written when the stream ends, whatever the reason.
pub(super) struct StreamRecord {
    pub(super) span: tracing::Span,
    pub(super) query: QueryRecorder,
    pub(super) statement: StatementRecorder,
    /// The time spent waiting for the warehouse.
    pub(super) waited: Duration,
    pub(super) rows: u64,
    pub(super) cache: CacheUse,
    pub(super) executed: ExecutedStatement,
    pub(super) is_open: bool,
}

impl RowReader {
    pub(super) fn pieces(self) -> impl Stream<Item = Result<Piece, QueryRunError>> + Send + 'static {
        stream::unfold(Some(self), |reader| async move {
            let mut reader = reader?;
            match reader.next().await {
                Ok(Some(batch)) => Some((Ok(Piece::Rows(batch)), Some(reader))),
                Ok(None) => Some((Ok(reader.end()), None)),
                Err(error) => {
                    reader.record.fail(&error);
                    Some((Err(error), None))
                }
            }
        })
    }

    async fn next(&mut self) -> Result<Option<RecordBatch>, QueryRunError> {
        let batch = match self.first.take() {
            Some(first) => Some(first),
            None => self.read_batch().await?,
        };
        self.record.rows += batch.as_ref().map_or(0, |batch| batch.num_rows() as u64);
        Ok(batch)
    }

    async fn read_batch(&mut self) -> Result<Option<RecordBatch>, QueryRunError> {
        let started = self.record.query.origin.clock.elapsed();
        let batch = tokio::select! {
            biased;
            () = &mut self.deadline => return Err(self.overdue.clone()),
            batch = self.batches.next() => batch,
        };
        self.record.waited += self.record.query.origin.clock.elapsed().saturating_sub(started);
        batch.transpose().map_err(|error: WarehouseError| QueryRunError::from_warehouse(error, self.statement_timeout))
    }

    fn end(mut self) -> Piece {
        let returned_rows = self.record.rows;
        let is_full = self.limit.is_some_and(|limit| returned_rows >= limit);
        let truncated = self.truncated.or(if is_full { None } else { Some(false) });
        Piece::End { returned_rows, truncated, duration: self.record.complete() }
    }
}

impl StreamRecord {
    fn complete(&mut self) -> Duration {
        self.query.outcome = QueryOutcome::Success;
        self.end(QueryOutcome::Success);
        let duration = self.query.duration();
        self.span.in_scope(|| {
            self.query.log_executed(self.waited, duration, self.rows, self.cache, &self.executed);
        });
        duration
    }

    fn fail(&mut self, error: &QueryRunError) {
        self.end(QueryOutcome::from(error));
        self.span.in_scope(|| self.query.fail_after_rows(error));
    }

    fn end(&mut self, outcome: QueryOutcome) {
        self.is_open = false;
        self.statement.outcome = Some(outcome);
        self.update();
    }

    /// Copies the progress of the stream to both records.
    fn update(&mut self) {
        (self.query.waited, self.query.rows, self.statement.rows) = (Some(self.waited), self.rows, self.rows);
    }
}

impl Drop for StreamRecord {
    fn drop(&mut self) {
        if self.is_open {
            self.update();
            let total_duration_ms = milliseconds(self.query.duration());
            self.span.in_scope(|| {
                tracing::info!(
                    event = "query_abandoned",
                    cube = &*self.query.origin.cube,
                    total_duration_ms,
                    rows_returned = self.rows
                );
            });
        }
    }
}
