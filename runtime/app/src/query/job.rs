//! The compiled statements of one query. They run under one permit, and their result is cached as a whole.
//!
//! In: the main statement, and the statements for the number of groups and for totals if they may be needed. Out: their
//! result. A job owns all that it needs, so that it can continue without the caller that began it. Not here: compiling,
//! and the selection of the result's contents for the caller.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use jiff::Timestamp;
use terrane_compiler::query::QueryError;
use terrane_compiler::sql::CompiledSql;

use super::QueryRunError;
use super::answer::{first_integer, row_count};
use super::recorder::StatementOrigin;
use super::runner::{StatementRunner, Statements};
use crate::domain::DataVersion;
use crate::ports::result_cache::{EncodedRows, StoredResult};
use crate::ports::warehouse::ResultSet;

/// The statements of one query.
#[derive(Debug)]
pub(super) struct QueryJob {
    pub(super) main: CompiledSql,
    /// The statement that counts the groups; `None` if their number follows from a row or from the page.
    pub(super) count: Option<Result<CompiledSql, QueryError>>,
    /// The statement for the totals, each measure without dimensions; `None` if the query does not request totals.
    pub(super) totals: Option<CompiledSql>,
    /// True if the query does not request the number of groups.
    pub(super) skip_total: bool,
}

#[derive(Debug)]
pub(super) struct JobResult {
    pub(super) rows: ResultSet,
    pub(super) total_rows: Option<u64>,
    pub(super) totals: Option<Vec<RecordBatch>>,
    /// The time from the grant of the permit to the last row.
    pub(super) waited: Duration,
}

impl JobResult {
    /// Returns the result in the form that the cache stores.
    pub(super) fn stored(self, version: DataVersion, as_of: Timestamp) -> StoredResult {
        let JobResult { rows, total_rows, totals, waited } = self;
        StoredResult { rows, total_rows, totals, version, as_of, waited, encoded: EncodedRows::default() }
    }
}

impl QueryJob {
    /// Returns a job of one statement, without a count of groups.
    pub(super) fn of_rows(main: CompiledSql) -> Self {
        QueryJob { main, count: None, totals: None, skip_total: true }
    }

    /// Returns the time at which the data of the oldest pre-aggregated table in the statements was read.
    pub(super) fn oldest_table(&self) -> Option<Timestamp> {
        let facts = std::iter::once(&self.main).chain(&self.totals).flat_map(|sql| &sql.rollups);
        facts.filter_map(|fact| fact.served.as_ref()).map(|served| served.built_at).min()
    }

    /// Returns whether a separate statement may be needed to count the groups.
    pub(super) fn may_count(main: &CompiledSql, skip_total: bool) -> bool {
        let is_first_page = main.offset == 0 && main.limit != Some(0);
        main.added_column.is_some() || (!skip_total && !is_first_page)
    }

    /// Runs the statements under one permit.
    pub(super) async fn run(
        &self,
        runner: &StatementRunner,
        tenant: Option<&Arc<str>>,
        origin: &StatementOrigin,
    ) -> Result<JobResult, QueryRunError> {
        let statements = runner.admit(tenant, origin).await?;
        let rows = statements.execute(&self.main).await?;
        let total_rows = self.total_rows(&statements, &rows).await?;
        let totals = self.totals(&statements).await?;
        Ok(JobResult { rows, total_rows, totals, waited: statements.elapsed() })
    }

    /// Returns the value of each measure without dimensions.
    pub(super) async fn totals(&self, statements: &Statements<'_>) -> Result<Option<Vec<RecordBatch>>, QueryRunError> {
        match &self.totals {
            Some(sql) => statements.execute(sql).await.map(|rows| Some(rows.batches)),
            None => Ok(None),
        }
    }

    /// Returns the number of groups before paging. It is read from a row or follows from the page; otherwise a counting
    /// statement is run. The counting statement also checks the number of rows that gap filling added, which must not
    /// depend on the page.
    pub(super) async fn total_rows(
        &self,
        statements: &Statements<'_>,
        rows: &ResultSet,
    ) -> Result<Option<u64>, QueryRunError> {
        let (sql, returned) = (&self.main, row_count(&rows.batches));
        if returned == 0 && sql.added_column.is_some() {
            let total = self.count(statements).await?;
            return Ok(total.filter(|_| !self.skip_total));
        }
        if self.skip_total {
            return Ok(None);
        }
        if let Some(column) = sql.total_column
            && let Some(total) = first_integer(&rows.batches, column)
        {
            return Ok(Some(total));
        }
        let is_whole_page = returned > 0 && sql.limit.is_none_or(|limit| returned < limit);
        let is_first_page = sql.offset == 0 && sql.limit != Some(0);
        if is_whole_page || is_first_page {
            return Ok(Some(sql.offset + returned));
        }
        self.count(statements).await
    }

    async fn count(&self, statements: &Statements<'_>) -> Result<Option<u64>, QueryRunError> {
        let Some(count) = &self.count else { return Ok(None) };
        let counted = statements.execute(count.as_ref().map_err(Clone::clone)?).await?;
        Ok(first_integer(&counted.batches, 0))
    }
}
