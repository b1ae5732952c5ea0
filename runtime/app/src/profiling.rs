//! The use case of a cube's profile: numbers about its columns, and what checks make of them.
//!
//! In: a cube, a range of time, a configuration. Out: the specification's cube profile. What the profile and
//! all checks want to know is merged into as few statements as can be: one of plain statistics, one of what
//! depends on their answers (moments about the mean, bins, fences), one for the most frequent values of each
//! dimension; each goes through the one query pipeline, so a caller's policies apply. All rows are counted:
//! nothing is sampled. Not here: SQL (compiler), rules of quality (components).

mod answers;
mod config;
mod quality;
mod report;
mod statistics;

use std::sync::Arc;

use terrane_compiler::column_statistics::{Statistic, StatisticsColumn, StatisticsQuery, has_quantiles};
use terrane_compiler::query::{DateRange, QueryError};

use crate::catalog::Catalog;
use crate::ports::calls::{CallFacts, ComponentFault};
use crate::ports::checks::{
    CheckAggregate, CheckCall, CheckPlan, CheckRequest, Checks, Finding, ProfiledColumn, QualityDimension,
};
use crate::ports::clock::Clock;
use crate::ports::plugins::PluginFault;
use crate::ports::severity::Severity;
use crate::query::{QueryService, RequestContext, RunError};
use answers::Answers;
pub use config::{ConfigError, ProfileConfig};
pub use report::{Bin, ColumnProfile, CubeProfile, Insight};

/// Profiles cubes.
pub struct ProfilingService {
    catalog: Arc<Catalog>,
    queries: Arc<QueryService>,
    checks: Arc<dyn Checks>,
    clock: Arc<dyn Clock>,
}

/// Wishes, by the columns they are about.
#[derive(Clone, Copy)]
struct Asking<'a> {
    context: &'a RequestContext,
    cube: &'a Arc<str>,
    range: Option<&'a DateRange>,
    columns: &'a [StatisticsColumn],
}

impl ProfilingService {
    pub fn new(
        catalog: Arc<Catalog>,
        queries: Arc<QueryService>,
        checks: Arc<dyn Checks>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        ProfilingService { catalog, queries, checks, clock }
    }

    /// Profiles a cube. A check that fails is an insight of its own and stops nothing.
    ///
    /// # Errors
    /// The cube is not there or closed, the range doesn't fit, or the warehouse refused.
    pub async fn profile(
        &self,
        context: &RequestContext,
        cube: &Arc<str>,
        range: Option<&DateRange>,
        config: &ProfileConfig,
    ) -> Result<CubeProfile, RunError> {
        let columns = self.queries.statistics_columns(context, cube, range).await?;
        let asking = Asking { context, cube, range, columns: &columns };
        let profiled_at = self.clock.now();
        let call = CheckCall {
            facts: CallFacts {
                now_unix_ms: profiled_at.as_millisecond(),
                time_zone: "UTC".into(),
                correlation_id: Arc::clone(&context.correlation_id),
                tenant: context.tenant.clone(),
            },
            profile_config_json: Arc::clone(&config.json),
        };
        let offered: Arc<[ProfiledColumn]> = columns.iter().map(|column| offered(cube, column)).collect();
        let (plans, mut faults) = self.plans(asking, &call, &offered).await;
        let own = report::wishes(&columns, config);
        let answers = self.ask(asking, own.iter().chain(plans.iter().flat_map(|plan| &plan.requests))).await?;
        let mut findings = Vec::new();
        for plan in &plans {
            let told = plan.requests.iter().map(|request| answers.answer(request)).collect();
            match self.checks.evaluate(&call, &plan.component, Arc::clone(&offered), told).await {
                Ok(found) => findings.extend(found),
                Err(fault) => faults.push(fault),
            }
        }
        findings.extend(faults.iter().map(unavailable));
        Ok(report::profile(cube, profiled_at, &answers, &findings, config))
    }

    /// The plans that can be carried out, and what is wrong with the others.
    async fn plans(
        &self,
        asking: Asking<'_>,
        call: &CheckCall,
        offered: &Arc<[ProfiledColumn]>,
    ) -> (Vec<CheckPlan>, Vec<ComponentFault>) {
        let (mut plans, mut faults) = (Vec::new(), Vec::new());
        if offered.is_empty() {
            return (plans, faults);
        }
        for planned in self.checks.plans(call, Arc::clone(offered)).await {
            match planned {
                Ok(plan) => match self.check_conditions(asking, &plan) {
                    Ok(()) => plans.push(plan),
                    Err(error) => {
                        let fault = PluginFault::Answer { call: "make-plan", message: error.to_string() };
                        faults.push(ComponentFault { component: plan.component, fault });
                    }
                },
                Err(fault) => faults.push(fault),
            }
        }
        (plans, faults)
    }

    /// A condition whose value does not fit its column is its component's fault, and must not keep the others
    /// from their answers.
    fn check_conditions(&self, asking: Asking<'_>, plan: &CheckPlan) -> Result<(), QueryError> {
        let conditions = plan.requests.iter().filter_map(|request| match &request.aggregate {
            CheckAggregate::Where(filter) => Some((None, Statistic::Where(filter.clone()))),
            _ => None,
        });
        let statistics: Vec<_> = conditions.collect();
        for statistics in statistics::split(statistics) {
            self.queries.check_profile(asking.context, &asking.query(statistics, None))?;
        }
        Ok(())
    }

    /// Everything that the requests need, each number once.
    async fn ask<'r>(
        &self,
        asking: Asking<'_>,
        requests: impl Iterator<Item = &'r CheckRequest> + Clone,
    ) -> Result<Answers, RunError> {
        let quantiles = has_quantiles(&self.catalog.snapshot().profile);
        let mut answers = Answers::new(asking.columns, quantiles);
        let plain = statistics::plain(&answers, requests.clone());
        self.add(asking, &mut answers, plain).await?;
        let following = statistics::following(&answers, requests.clone());
        self.add(asking, &mut answers, following).await?;
        for (column, count) in statistics::most_frequent(&answers, requests) {
            let name = Arc::clone(&asking.columns[column].name);
            let query = asking.query(vec![(None, Statistic::Rows)], Some((name, u64::from(count))));
            let rows = self.queries.profile(asking.context, &query).await?;
            answers.add_top(column, count, &rows.batches);
        }
        Ok(answers)
    }

    async fn add(
        &self,
        asking: Asking<'_>,
        answers: &mut Answers,
        statistics: Vec<(Option<usize>, Statistic)>,
    ) -> Result<(), RunError> {
        for part in statistics::split(statistics) {
            let named = part.iter().map(|(column, statistic)| {
                (column.map(|column| Arc::clone(&asking.columns[column].name)), statistic.clone())
            });
            let query = asking.query(named.collect(), None);
            let rows = self.queries.profile(asking.context, &query).await?;
            answers.add(part, &rows.batches);
        }
        Ok(())
    }
}

impl Asking<'_> {
    fn query(&self, statistics: Vec<(Option<Arc<str>>, Statistic)>, top: Option<(Arc<str>, u64)>) -> StatisticsQuery {
        StatisticsQuery { cube: Arc::clone(self.cube), range: self.range.cloned(), statistics, top }
    }
}

fn offered(cube: &Arc<str>, column: &StatisticsColumn) -> ProfiledColumn {
    ProfiledColumn {
        cube: Arc::clone(cube),
        member: Arc::clone(&column.name),
        ty: column.ty,
        is_measure: column.is_measure,
        is_primary_key: column.is_primary_key,
        tags: column.governed.tags.clone(),
        pii: column.governed.pii,
    }
}

fn unavailable(fault: &ComponentFault) -> Finding {
    Finding {
        component: Arc::clone(&fault.component),
        column: None,
        dimension: QualityDimension::Other,
        severity: Severity::High,
        score: None,
        code: "check_unavailable".into(),
        message: fault.to_string().into(),
        evidence: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
