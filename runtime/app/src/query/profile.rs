//! A statement of a profile, run as queries are: in its turn, in time, told to the observer.
//!
//! In: a [`StatisticsQuery`] and who asks. Out: Arrow batches. Not here: what a profile asks for (`profiling`).

use std::sync::Arc;

use terrane_compiler::Authorized;
use terrane_compiler::column_statistics::{
    Statistic, StatisticsColumn, StatisticsQuery, compile_statistics, statistics_as_query, statistics_columns,
};
use terrane_compiler::query::{DateRange, QueryError};
use terrane_compiler::sql::CompiledSql;

use super::tally::Tally;
use super::{Extent, QueryService, RequestContext, RunError, logged, outcome, row_count};
use crate::catalog::Snapshot;
use crate::ports::observer::QueryKind;
use crate::ports::warehouse::{ResultSet, Statement};

impl QueryService {
    /// The columns of a cube that the caller may read as they are stored, also as far as hooks are concerned.
    ///
    /// # Errors
    /// There is no such cube for the caller, or a hook refused.
    pub async fn statistics_columns(
        &self,
        context: &RequestContext,
        cube: &Arc<str>,
        range: Option<&DateRange>,
    ) -> Result<Vec<StatisticsColumn>, RunError> {
        let snapshot = self.catalog.snapshot();
        let columns = statistics_columns(&Authorized::without_hooks(&snapshot.model, &context.caller), cube)?;
        if columns.is_empty() {
            return Ok(columns);
        }
        let statistics = columns.iter().map(|column| (Some(Arc::clone(&column.name)), Statistic::Values));
        let all = StatisticsQuery {
            cube: Arc::clone(cube),
            range: range.cloned(),
            statistics: statistics.collect(),
            top: None,
        };
        let asked = statistics_as_query(&snapshot.model, &all)?;
        let environment = self.environment(Extent::Page);
        let mut tally = self.tally(&snapshot, context, &asked, QueryKind::Profile);
        let judged = self.judge(&snapshot, context, &asked, &environment, &tally).await;
        tally.end(&judged);
        Ok(statistics_columns(&judged?.authorized, cube)?)
    }

    /// Whether a statement of a profile can be made at all, hooks aside; nothing is executed.
    ///
    /// # Errors
    /// What was asked can't be answered.
    pub fn check_profile(&self, context: &RequestContext, query: &StatisticsQuery) -> Result<(), QueryError> {
        let snapshot = self.catalog.snapshot();
        let authorized = Authorized::without_hooks(&snapshot.model, &context.caller);
        compile_statistics(&snapshot.profile, query, &authorized, &self.environment(Extent::Page)).map(|_| ())
    }

    /// Runs a statement of a profile. The rows or the refusal come at the timeout at the latest.
    ///
    /// # Errors
    /// [`RunError`]
    pub async fn profile(&self, context: &RequestContext, query: &StatisticsQuery) -> Result<ResultSet, RunError> {
        let snapshot = self.catalog.snapshot();
        let asked = statistics_as_query(&snapshot.model, query)?;
        let mut tally = self.tally(&snapshot, context, &asked, QueryKind::Profile);
        let judged = self.judge(&snapshot, context, &asked, &self.environment(Extent::Page), &tally).await;
        let compiled =
            judged.and_then(|judged| Ok(self.compile_statistics(&snapshot, &judged.authorized, query, &tally)?));
        let rows = match compiled {
            Ok(sql) => self.run_statistics(context, &sql, &mut tally).await,
            Err(refusal) => Err(refusal),
        };
        tally.rows = rows.as_ref().map_or(0, |rows| row_count(&rows.batches));
        tally.end(&rows);
        logged(&tally, rows)
    }

    fn compile_statistics(
        &self,
        snapshot: &Snapshot,
        authorized: &Authorized<'_>,
        query: &StatisticsQuery,
        tally: &Tally,
    ) -> Result<CompiledSql, QueryError> {
        let started = self.clock.elapsed();
        let compiled = compile_statistics(&snapshot.profile, query, authorized, &self.environment(Extent::Page));
        tally.compiled(self.clock.elapsed().saturating_sub(started), outcome(&compiled));
        compiled
    }

    async fn run_statistics(
        &self,
        context: &RequestContext,
        sql: &CompiledSql,
        tally: &mut Tally,
    ) -> Result<ResultSet, RunError> {
        let timeout = self.settings.timeout;
        let run = async {
            let _turn = self.gate.enter(context.tenant.as_ref()).await?;
            tally.ask();
            let rows = self.warehouse.execute(Statement::from(sql), timeout).await;
            rows.map_err(|error| RunError::from_warehouse(error, timeout))
        };
        self.in_time(run).await
    }
}
