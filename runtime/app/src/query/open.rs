//! Begins an answer that is read as it comes.
//!
//! In: a compiled query. Out: the answer's head, known from its first rows, and the rows to come. Not
//! here: reading them (`rows`).

use futures_util::StreamExt as _;

use super::answer::{self, AnswerStream, Opened};
use super::rows::{Reading, Record};
use super::{Asked, QueryService, RunError, check_added_rows, cube_label, first_integer, key};
use crate::ports::warehouse::{ResultSet, Statement};

impl QueryService {
    pub(super) async fn run_streamed(&self, asked: &Asked<'_>) -> Result<Opened, RunError> {
        let timeout = self.settings.timeout;
        let begin = async {
            let turn = self.gate.enter().await?;
            let since = self.clock.elapsed();
            let refused = |error| RunError::from_warehouse(error, timeout);
            let mut batches = self.warehouse.stream(Statement::from(&asked.sql), timeout).await.map_err(refused)?;
            let first = loop {
                match batches.next().await.transpose().map_err(refused)? {
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
            Ok((turn, batches, rows, total_rows, totals, self.clock.elapsed().saturating_sub(since)))
        };
        let (turn, batches, rows, total_rows, totals, waited) = self.in_time(begin).await?;
        let Some(first) = rows.batches.first().cloned() else {
            return Ok(Opened::Whole(self.whole(asked, rows, total_rows, totals, waited)));
        };
        let Asked { query, sql, started, .. } = asked;
        let returned = total_rows.map(|total| total.saturating_sub(sql.offset).min(sql.limit.unwrap_or(u64::MAX)));
        let truncated = returned.and_then(|returned| answer::truncated(sql, returned, total_rows));
        let reading = Reading {
            first: Some(first),
            batches,
            statement_timeout: timeout,
            whole_timeout: self.settings.export_timeout,
            deadline: Box::pin(tokio::time::sleep(self.settings.export_timeout)),
            limit: sql.limit,
            truncated,
            record: Record {
                clock: self.clock.clone(),
                span: tracing::Span::current(),
                warehouse: self.warehouse.name().to_owned(),
                cube: cube_label(query).to_owned(),
                started: *started,
                waited,
                rows: 0,
                is_open: true,
            },
            _turn: turn,
        };
        Ok(Opened::Streamed(AnswerStream {
            sql: sql.text.clone(),
            columns: sql.columns.clone(),
            schema: rows.schema,
            total_rows,
            totals,
            truncated,
            warnings: answer::warnings(sql, query.limit.is_some(), truncated, returned.unwrap_or(0), total_rows),
            cache_key: key::cache_key(self.warehouse.name(), sql),
            pieces: reading.pieces().boxed(),
        }))
    }
}
