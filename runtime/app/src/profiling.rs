//! The use case of a cube's profile: statistics of its columns, and the findings of checks.
//!
//! In: a cube, a range of time, a configuration. Out: the profile of the cube. The statistics that the profile and all
//! checks need are merged into few statements. One statement computes plain statistics. A second statement computes the
//! statistics that depend on these (moments about the mean, bins, fences). One further statement per dimension reads
//! the dimension's most frequent values. All statements run in one query session, so they use one snapshot of the
//! project, and the caller's policies apply. If a sample is requested, one more statement counts all rows, and the
//! others read the same sample of them. Not here: SQL (compiler), rules of quality (components).

mod answers;
mod archive;
mod changes;
mod config;
mod quality;
mod report;
mod sampling;
mod spellings;
mod statistics;
mod text_forms;
mod texts;

use std::sync::Arc;

use terrane_compiler::Access;
use terrane_compiler::column_statistics::{RowSample, Statistic, StatisticsColumn, StatisticsQuery};
use terrane_compiler::query::{DateRange, QueryError};
use terrane_compiler::types::LogicalType;

use crate::domain::QueryKind;
use crate::metadata;
use crate::ports::calls::{CallFacts, ComponentFault};
use crate::ports::checks::{
    CheckAggregate, CheckCall, CheckPlan, CheckRequest, Checks, Finding, ProfiledColumn, QualityDimension,
};
use crate::ports::clock::Clock;
use crate::ports::plugins::PluginFault;
use crate::ports::severity::FindingSeverity;
use crate::query::{QueryRunError, QueryService, QuerySession, RequestContext};
use answers::Answers;
pub use archive::{ProfileArchive, ProfileError, RequestedProfile};
pub use changes::{ColumnChange, ColumnChangeKind, ColumnSummary, Pair, ProfileChanges, ProfileSummary};
pub use config::{ProfileConfig, SampleRequest};
pub use report::{Bin, ColumnProfile, CubeProfile, Insight};
pub use spellings::Spellings;
pub use texts::ProfileTexts;

/// Profiles cubes.
pub struct ProfilingService {
    queries: Arc<QueryService>,
    checks: Arc<dyn Checks>,
    clock: Arc<dyn Clock>,
}

/// The cube of a profile, within the session of its statements.
#[derive(Clone, Copy)]
struct ProfileTarget<'a> {
    session: &'a QuerySession<'a>,
    cube: &'a Arc<str>,
    range: Option<&'a DateRange>,
    columns: &'a [StatisticsColumn],
    /// The sample that the statements read; `None` for all rows.
    sample: Option<&'a RowSample>,
}

/// A profile to compute.
#[derive(Clone, Copy)]
struct ProfileRequest<'a> {
    cube: &'a Arc<str>,
    range: Option<&'a DateRange>,
    config: &'a ProfileConfig,
    /// The name of the dimension to profile; `None` for all columns.
    dimension: Option<&'a str>,
}

impl ProfilingService {
    pub fn new(queries: Arc<QueryService>, checks: Arc<dyn Checks>, clock: Arc<dyn Clock>) -> Self {
        ProfilingService { queries, checks, clock }
    }

    /// Profiles a cube. If a check fails, its fault becomes a finding, and the other checks continue.
    ///
    /// # Errors
    /// The cube is unknown or closed, the range is invalid, or the warehouse refused a statement.
    pub async fn profile(
        &self,
        context: &RequestContext,
        cube: &Arc<str>,
        range: Option<&DateRange>,
        config: &ProfileConfig,
    ) -> Result<CubeProfile, QueryRunError> {
        let context = &context.with_kind(QueryKind::Profile);
        let session = self.queries.session(context);
        self.profile_in(&session, context, ProfileRequest { cube, range, config, dimension: None }).await
    }

    /// Profiles one dimension of a cube, or all columns, in a session. The profile of an unknown dimension has no
    /// columns.
    async fn profile_in(
        &self,
        session: &QuerySession<'_>,
        context: &RequestContext,
        request: ProfileRequest<'_>,
    ) -> Result<CubeProfile, QueryRunError> {
        let ProfileRequest { cube, range, config, dimension } = request;
        let is_bounded = matches!(range, Some(DateRange::Between(Some(_), _) | DateRange::Words(_)));
        if !is_bounded {
            let snapshot = session.shared_snapshot();
            let access = Access::of(&snapshot.model, &context.caller);
            let has_time = |cube: &str| metadata::has_time_dimension(&access, cube);
            session.guardrails().check_time_filter(std::slice::from_ref(cube), has_time)?;
        }
        let mut columns = session.profile_columns(cube, range).await?;
        if let Some(name) = dimension {
            columns.retain(|column| !column.is_measure && *column.name == *name);
        }
        let target = ProfileTarget { session, cube, range, columns: &columns, sample: None };
        let rows = sampling::rows(target, &config.sample).await?;
        let target = ProfileTarget { sample: rows.sample.as_ref(), ..target };
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
        let (plans, mut faults) = self.plans(target, &call, &offered).await;
        let own = report::requests(&columns, config);
        let answers = self.ask(target, own.iter().chain(plans.iter().flat_map(|plan| &plan.requests))).await?;
        let mut findings = Vec::new();
        for plan in &plans {
            let answered = plan.requests.iter().map(|request| answers.answer(request)).collect();
            match self.checks.evaluate(&call, &plan.component, Arc::clone(&offered), answered).await {
                Ok(found) => findings.extend(found),
                Err(fault) => faults.push(fault),
            }
        }
        findings.extend(faults.iter().map(unavailable));
        let as_of = session.oldest_rows().map_or(profiled_at, |oldest| oldest.min(profiled_at));
        Ok(report::profile(cube, (profiled_at, as_of), &answers, &findings, &rows, config))
    }

    /// Returns the plans that can be carried out, and the faults of the components whose plan cannot be.
    async fn plans(
        &self,
        target: ProfileTarget<'_>,
        call: &CheckCall,
        offered: &Arc<[ProfiledColumn]>,
    ) -> (Vec<CheckPlan>, Vec<ComponentFault>) {
        let (mut plans, mut faults) = (Vec::new(), Vec::new());
        if offered.is_empty() {
            return (plans, faults);
        }
        for planned in self.checks.plans(call, Arc::clone(offered)).await {
            match planned {
                Ok(plan) => match self.check_conditions(target, &plan) {
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

    /// Checks that the values in a plan's conditions fit their columns. A value that does not fit is a fault of the
    /// component; the other components continue.
    fn check_conditions(&self, target: ProfileTarget<'_>, plan: &CheckPlan) -> Result<(), QueryError> {
        let conditions = plan.requests.iter().filter_map(|request| match &request.aggregate {
            CheckAggregate::Where(filter) => Some((None, Statistic::Where(filter.clone()))),
            _ => None,
        });
        let statistics: Vec<_> = conditions.collect();
        for statistics in statistics::split(statistics) {
            target.session.check_profile(&target.query(statistics, None))?;
        }
        Ok(())
    }

    /// Computes the statistics that the requests need. A statistic that several requests need is computed once.
    async fn ask<'r>(
        &self,
        target: ProfileTarget<'_>,
        requests: impl Iterator<Item = &'r CheckRequest> + Clone,
    ) -> Result<Answers, QueryRunError> {
        let quantiles = target.session.has_quantiles();
        let mut answers = Answers::new(target.columns, quantiles);
        let plain = statistics::plain(&answers, requests.clone());
        self.add(target, &mut answers, plain).await?;
        let following = statistics::following(&answers, requests.clone());
        self.add(target, &mut answers, following).await?;
        for (column, count) in statistics::most_frequent(&answers, requests) {
            let name = Arc::clone(&target.columns[column].name);
            let query = target.query(vec![(None, Statistic::Rows)], Some((name, u64::from(count))));
            let rows = target.session.profile(&query).await?;
            answers.add_top(column, count, &rows.batches);
        }
        Ok(answers)
    }

    async fn add(
        &self,
        target: ProfileTarget<'_>,
        answers: &mut Answers,
        statistics: Vec<(Option<usize>, Statistic)>,
    ) -> Result<(), QueryRunError> {
        for part in statistics::split(statistics) {
            let named = part.iter().map(|(column, statistic)| {
                (column.map(|column| Arc::clone(&target.columns[column].name)), statistic.clone())
            });
            let query = target.query(named.collect(), None);
            let rows = target.session.profile(&query).await?;
            answers.add(part, &rows.batches);
        }
        Ok(())
    }
}

impl ProfileTarget<'_> {
    fn query(&self, statistics: Vec<(Option<Arc<str>>, Statistic)>, top: Option<(Arc<str>, u64)>) -> StatisticsQuery {
        let (cube, range) = (Arc::clone(self.cube), self.range.cloned());
        StatisticsQuery { cube, range, statistics, top, sample: self.sample.cloned() }
    }
}

fn offered(cube: &Arc<str>, column: &StatisticsColumn) -> ProfiledColumn {
    ProfiledColumn {
        cube: Arc::clone(cube),
        member: Arc::clone(&column.name),
        // No value of the dimension's type can be compared with the column, so checks see a column of unknown type.
        ty: column.mismatch.map_or(column.ty, |_| LogicalType::Unknown),
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
        severity: FindingSeverity::High,
        score: None,
        code: "check_unavailable".into(),
        message: fault.to_string().into(),
        evidence: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
