//! Begins an answer that is read as it comes.
//!
//! In: a compiled query. Out: the answer's head, known from its first rows, and the rows to come. Not
//! here: reading them (`rows`).

use std::time::Duration;

use arrow::array::RecordBatch;
use futures_util::StreamExt as _;

use super::answer::{self, AnswerStream, Opened, Totals};
use super::gate::Turn;
use super::rows::{Reading, Record};
use super::tally::Execution;
use super::{Asked, QueryService, RunError, check_added_rows, first_integer, key, logged};
use crate::ports::observer::Outcome;
use crate::ports::warehouse::{BatchStream, ResultSet, Statement, WarehouseError};

/// A statement whose first rows are there, or that has none.
struct Begun {
    turn: Turn,
    batches: BatchStream,
    /// The first that are any.
    rows: ResultSet,
    total_rows: Option<u64>,
    totals: Option<Totals>,
    waited: Duration,
    execution: Execution,
}

impl QueryService {
    pub(super) async fn run_streamed(&self, mut asked: Asked<'_>) -> Result<Opened, RunError> {
        let mut begun = match self.begin(&mut asked).await {
            Ok(begun) => begun,
            Err(error) => {
                let outcome = Err(error);
                asked.tally.end(&outcome);
                return logged(&asked.tally, outcome);
            }
        };
        if let Some(first) = begun.rows.batches.first().cloned() {
            return Ok(Opened::Streamed(self.streamed(asked, begun, first)));
        }
        begun.execution.outcome = Some(Outcome::Success);
        asked.tally.outcome = Outcome::Success;
        Ok(Opened::Whole(self.whole(&mut asked, begun.rows, begun.total_rows, begun.totals, begun.waited)))
    }

    async fn begin(&self, asked: &mut Asked<'_>) -> Result<Begun, RunError> {
        let timeout = self.settings.timeout;
        let begin = async {
            let turn = self.gate.enter(asked.context.tenant.as_ref()).await?;
            let since = asked.tally.ask();
            let mut execution = asked.tally.execution(asked.hash_of(&asked.sql), timeout);
            let mut refused = |error: WarehouseError| {
                execution.outcome = Some(error.kind.into());
                RunError::from_warehouse(error, timeout)
            };
            let mut batches =
                self.warehouse.stream(Statement::from(&asked.sql), timeout).await.map_err(&mut refused)?;
            let first = loop {
                match batches.next().await.transpose().map_err(&mut refused)? {
                    Some(batch) if batch.num_rows() == 0 => {}
                    first => break first,
                }
            };
            let rows = ResultSet { schema: batches.schema.clone(), batches: first.into_iter().collect() };
            check_added_rows(&asked.sql, &rows.batches)?;
            let totals = self.totals(asked).await?;
            let total_rows = match rows.batches.is_empty() {
                true => self.total_rows(asked, &rows).await?,
                // These are not all, so only they themselves can tell.
                false => asked.sql.total_column.and_then(|column| first_integer(&rows.batches, column)),
            };
            let waited = self.clock.elapsed().saturating_sub(since);
            Ok(Begun { turn, batches, rows, total_rows, totals, waited, execution })
        };
        self.in_time(begin).await
    }

    fn streamed(&self, asked: Asked<'_>, begun: Begun, first: RecordBatch) -> AnswerStream {
        let Asked { query, sql, tally, .. } = asked;
        let total_rows = begun.total_rows;
        let returned = total_rows.map(|total| total.saturating_sub(sql.offset).min(sql.limit.unwrap_or(u64::MAX)));
        let truncated = returned.and_then(|returned| answer::truncated(&sql, returned, total_rows));
        let reading = Reading {
            first: Some(first),
            batches: begun.batches,
            statement_timeout: self.settings.timeout,
            whole_timeout: self.settings.export_timeout,
            deadline: Box::pin(tokio::time::sleep(self.settings.export_timeout)),
            limit: sql.limit,
            truncated,
            record: Record {
                span: tracing::Span::current(),
                tally,
                execution: begun.execution,
                waited: begun.waited,
                rows: 0,
                is_open: true,
            },
            _turn: begun.turn,
        };
        AnswerStream {
            schema: begun.rows.schema,
            total_rows,
            totals: begun.totals,
            truncated,
            warnings: answer::warnings(&sql, query.limit.is_some(), truncated, returned.unwrap_or(0), total_rows),
            cache_key: key::cache_key(self.warehouse.name(), &sql),
            sql: sql.text,
            columns: sql.columns,
            pieces: reading.pieces().boxed(),
        }
    }
}
