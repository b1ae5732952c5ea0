//! One round of a monitor: selects the steps to evaluate, and scores them.
//!
//! In: a monitor, the current rights of its owner, and the time. Out: a [`MonitorRound`]. The step that contains the
//! current time is incomplete, so it is not evaluated. The newest step with data is looked up first, so that late data
//! counts as "no data yet" instead of a drop to 0. The newest step of the last round is evaluated again, because more
//! of its rows may have arrived.

use std::sync::Arc;

use terrane_compiler::Access;
use terrane_compiler::model::Cube;
use terrane_compiler::query::{
    DateRange, MemberRef, OrderBy, PreAggregations, QueryError, SemanticQuery, TimeDimension,
};
use terrane_compiler::types::Granularity;

use super::error::MonitorError;
use super::{MonitorService, run_of};
use crate::anomaly::bucket::Bucket;
use crate::anomaly::{AnomalyError, AnomalyRequest, AnomalyRun, series};
use crate::cron_schedule::CronSchedule;
use crate::domain::{RequestContext, SeriesValue, qualified};
use crate::metadata;
use crate::ports::detectors::DetectorKind;
use crate::ports::monitors::{Monitor, MonitorDefinition, MonitorRound, RunOutcome, ScoredStep};
use crate::query::QuerySession;

/// The range of dates in a statement whose digest identifies a caller's view. It is arbitrary, but must stay the same.
const VIEW_RANGE: [&str; 2] = ["2000-01-01", "2000-01-02"];

/// The message of a round whose expected step has no data yet.
const LATE: &str = "the data of the expected step is not there yet";

/// A range of steps to evaluate, as dates or timestamps, both inclusive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScoredRange {
    pub from: Option<Arc<str>>,
    pub to: Option<Arc<str>>,
}

impl ScoredRange {
    /// Checks that both ends are dates or timestamps, and that the first is not after the last.
    pub(super) fn check(&self, granularity: Granularity) -> Result<(), MonitorError> {
        let step = |text: &Arc<str>| {
            Bucket::holding(text, granularity).ok_or_else(|| AnomalyError::Moment { text: Arc::clone(text) })
        };
        let (from, to) = (self.from.as_ref().map(step).transpose()?, self.to.as_ref().map(step).transpose()?);
        match (from, to) {
            (Some(from), Some(to)) if from > to => {
                Err(MonitorError::Invalid { field: "from", problem: "must not be after `to`".to_owned() })
            }
            _ => Ok(()),
        }
    }
}

/// The evaluated steps of a round.
struct Scored {
    steps: Vec<ScoredStep>,
    until_ms: Option<i64>,
    detector: Arc<str>,
    /// The reason why nothing was evaluated; `None` if steps were evaluated.
    reason: Option<String>,
}

impl MonitorService {
    /// Evaluates a monitor now, with the current rights of its owner. A failure is recorded in the round.
    pub(super) async fn round(
        &self,
        monitor: &Monitor,
        range: Option<&ScoredRange>,
    ) -> Result<MonitorRound, MonitorError> {
        let now = self.ports.clock.now();
        let next_run_at = CronSchedule::parse(&monitor.definition.schedule, &monitor.definition.timezone)
            .ok()
            .and_then(|schedule| schedule.next(now))
            .filter(|_| monitor.definition.is_enabled);
        let round = |run, evaluated: Option<Scored>, view| {
            let evaluated = evaluated.unwrap_or_else(|| Scored {
                steps: Vec::new(),
                until_ms: None,
                detector: "".into(),
                reason: None,
            });
            MonitorRound {
                monitor_id: Arc::clone(&monitor.id),
                run,
                next_run_at,
                steps: evaluated.steps,
                judged_until_ms: evaluated.until_ms,
                detector: evaluated.detector,
                view,
                rules: monitor.definition.alerts.clone(),
            }
        };
        let Some(context) = self.owner_context(monitor).await? else {
            let message = Some("the account that owns the monitor was disabled or deleted".to_owned());
            let paused = round(run_of(now, RunOutcome::Paused, message), None, None);
            return Ok(MonitorRound { next_run_at: None, ..paused });
        };
        let evaluated = async {
            let view = self.view(&context, &monitor.definition).await?;
            let scored = self.score(&context, monitor, range).await?;
            // Policies may have changed during the evaluation. The scores must belong to the view that the round
            // records.
            if self.view(&context, &monitor.definition).await? != view {
                return Err(MonitorError::Contended);
            }
            Ok::<_, MonitorError>((scored, view))
        };
        Ok(match evaluated.await {
            Ok((evaluated, view)) if evaluated.reason.is_some() => {
                let reason = evaluated.reason.clone();
                round(run_of(now, RunOutcome::NoData, reason), Some(evaluated), Some(view))
            }
            Ok((evaluated, view)) => round(run_of(now, RunOutcome::Scored, None), Some(evaluated), Some(view)),
            Err(MonitorError::Store(error)) => return Err(error.into()),
            Err(error) => {
                let denied = self.denied_member(&context, &monitor.definition);
                let denied = denied.map(|what| format!("the owner of the monitor may not query {what}"));
                match denied.or_else(|| is_pause(&error).then(|| failure_text(&error))) {
                    Some(reason) => {
                        let paused = round(run_of(now, RunOutcome::Paused, Some(reason)), None, None);
                        MonitorRound { next_run_at: None, ..paused }
                    }
                    None => round(run_of(now, RunOutcome::Failed, Some(failure_text(&error))), None, None),
                }
            }
        })
    }

    /// Returns the first member of a monitor that policies deny to its owner; `None` if they deny none. A query of the
    /// owner reports such a member as unknown. If the primary time dimension is denied, only its cube is named, because
    /// the definition does not contain the dimension's name.
    fn denied_member(&self, owner: &RequestContext, definition: &MonitorDefinition) -> Option<String> {
        let session = self.ports.queries.session(owner);
        let model = &session.snapshot().model;
        let access = Access::of(model, session.caller());
        let value = definition.value.member();
        let is_denied = |name: &Arc<str>| {
            let Some((cube, member)) = name.split_once('.') else { return false };
            let Some(cube) = model.cube_named(cube) else { return false };
            cube.member(member).is_some_and(|member| access.is_closed(cube) || !access.offers(member))
        };
        let is_denied_metric = |name: &Arc<str>| model.metric_named(name).is_some_and(|id| !access.offers_metric(id));
        let time = definition.value.cube().and_then(|cube| {
            let cube = model.cube_named(cube)?;
            let primary = cube.dimensions.get(cube.primary_time? as usize)?;
            Some(qualified(&cube.name, &primary.name))
        });
        let dimensions = definition.dimensions.iter().map(|name| definition.value.dimension(name));
        match &definition.value {
            SeriesValue::Metric(metric) if is_denied_metric(metric) => Some(format!("`{metric}`")),
            _ => {
                let named = std::iter::once(value).chain(dimensions).find(is_denied);
                let time = || time.filter(is_denied).zip(definition.value.cube());
                named
                    .map(|name| format!("`{name}`"))
                    .or_else(|| time().map(|(_, cube)| format!("the time of `{cube}`")))
            }
        }
    }

    async fn score(
        &self,
        context: &RequestContext,
        monitor: &Monitor,
        range: Option<&ScoredRange>,
    ) -> Result<Scored, MonitorError> {
        let definition = &monitor.definition;
        let granularity = definition.granularity;
        let (time, newest, expected) = {
            let session = self.ports.queries.session(context);
            let time = definition.value.time_dimension(&session, None).await?;
            let now = match granularity.is_sub_day() {
                true => jiff::tz::TimeZone::UTC.to_datetime(self.ports.clock.now()),
                false => session.now(),
            };
            let expected = Bucket::of(now, granularity).earlier(1, granularity);
            let evaluated = monitor.judged_until_ms.filter(|_| range.is_none()).and_then(Bucket::at_ms);
            let first = range.and_then(|range| Bucket::holding(range.from.as_ref()?, granularity));
            // If guardrails require a time filter, the newest step is looked up within `training_size` steps before the
            // current time.
            let recent = || expected.and_then(|expected| expected.earlier(definition.training_size, granularity));
            let recent = || session.guardrails().require_time_filter.then(recent).flatten();
            let since = evaluated.or(first).or_else(recent);
            let newest = self.newest_step(&session, definition, &time, since, expected).await?;
            (time, newest, expected)
        };
        let none = |reason: Option<&str>| {
            let reason = reason.map(str::to_owned);
            Scored { steps: Vec::new(), until_ms: None, detector: "".into(), reason }
        };
        let Some(newest) = newest else { return Ok(none(Some(LATE))) };
        let is_late = expected.is_some_and(|expected| newest.ms() < expected.ms());
        let moment = |text: &Arc<str>| {
            Bucket::holding(text, granularity).ok_or_else(|| AnomalyError::Moment { text: Arc::clone(text) })
        };
        let (from, to) = match range {
            Some(range) => {
                let to = range.to.as_ref().map(&moment).transpose()?.map_or(newest, |to| to.min(newest));
                let from = range.from.as_ref().map(&moment).transpose()?.unwrap_or(to);
                (from, to)
            }
            None => {
                let evaluated = monitor.judged_until_ms.and_then(Bucket::at_ms);
                // While the expected step has no data, the newest step may still lack rows, so it is not evaluated
                // either.
                let last = if is_late { newest.earlier(1, granularity) } else { Some(newest) };
                let Some(last) = last.filter(|last| !is_late || evaluated.is_none_or(|evaluated| *last > evaluated))
                else {
                    return Ok(none(Some(LATE)));
                };
                // After a pause of the monitor, at most `training_size` steps are evaluated.
                let oldest = last.earlier(definition.training_size, granularity).unwrap_or(last);
                (evaluated.unwrap_or(last).max(oldest).min(last), last)
            }
        };
        if from > to {
            return Ok(none(is_late.then_some(LATE)));
        }
        let request = AnomalyRequest {
            value: definition.value.clone(),
            detector: Arc::clone(&definition.detector),
            sensitivity: definition.sensitivity,
            training_size: definition.training_size,
            granularity,
            time_dimension: Some(time),
            dimensions: definition.dimensions.clone(),
            from: Some(from.text()),
            to: Some(to.end_text(granularity)),
            seasonality: None,
        };
        match self.ports.anomalies.score(context, &request).await {
            Ok(run) => Ok(scored(&run, to)),
            Err(error @ AnomalyError::NothingToEvaluate { .. }) => Ok(none(Some(&error.to_string()))),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the newest complete step with rows. For a metric of several cubes, takes the newest step of each cube,
    /// and returns the oldest of these steps; `None` if one of the cubes has no rows.
    async fn newest_step(
        &self,
        session: &QuerySession<'_>,
        definition: &MonitorDefinition,
        time: &Arc<str>,
        since: Option<Bucket>,
        expected: Option<Bucket>,
    ) -> Result<Option<Bucket>, MonitorError> {
        let granularity = definition.granularity;
        let end = expected.map(|expected| expected.end_text(granularity));
        let range = DateRange::Between(since.map(Bucket::text), end);
        let key: MemberRef = format!("{time}.{}", granularity.as_str()).parse()?;
        let all = series_query(definition, time.parse()?, &[], Some(range))?;
        let mut newest = None;
        for query in of_each_cube(session, &definition.value, all) {
            let order = vec![OrderBy { member: key.clone(), descending: true }];
            let query = SemanticQuery { order, limit: Some(1), skip_total: true, ..query };
            let answer = session.prepare(&query).await?.run().await?;
            let Some(found) = series::newest_time(&answer.batches).map_err(AnomalyError::from)? else {
                return Ok(None);
            };
            newest = Some(newest.map_or(found, |newest: i64| newest.min(found)));
        }
        Ok(newest.and_then(Bucket::at_ms))
    }
}

/// Returns one query for each cube of a metric: it finds the steps in which the cube has rows. The values of the metric
/// cannot show this, because some metrics, such as running totals, have values in steps without rows. If the caller
/// cannot query one of the cubes, returns the query of the values.
fn of_each_cube(session: &QuerySession<'_>, value: &SeriesValue, query: SemanticQuery) -> Vec<SemanticQuery> {
    let model = &session.snapshot().model;
    let Some(metric) = value.metric().and_then(|metric| model.metric_named(metric)) else { return vec![query] };
    let access = Access::of(model, session.caller());
    let cubes: Vec<&Cube> = model.facts_of_metric(metric).into_iter().map(|cube| model.cube(cube)).collect();
    if cubes.is_empty() || !cubes.iter().all(|cube| metadata::is_shown(&access, cube)) {
        return vec![query];
    }
    let of_cube =
        |cube: &&Cube| SemanticQuery { cube: Some(Arc::clone(&cube.name)), values: Vec::new(), ..query.clone() };
    cubes.iter().map(of_cube).collect()
}

/// Returns the query of a monitor's series over a range.
fn series_query(
    definition: &MonitorDefinition,
    member: MemberRef,
    dimensions: &[Arc<str>],
    range: Option<DateRange>,
) -> Result<SemanticQuery, QueryError> {
    let time = TimeDimension { member, granularity: Some(definition.granularity), range };
    definition.value.query(time, dimensions)
}

/// Returns the query whose statement identifies a caller's view of a monitor's series.
pub(super) async fn view_query(
    session: &QuerySession<'_>,
    definition: &MonitorDefinition,
) -> Result<SemanticQuery, MonitorError> {
    let time = definition.value.time_dimension(session, None).await?;
    let [start, end] = VIEW_RANGE.map(|date| Some(date.into()));
    let range = Some(DateRange::Between(start, end));
    let query = series_query(definition, time.parse()?, &definition.dimensions, range)?;
    // Pre-aggregations are off because the names of their tables change with each build. The limit is fixed because
    // guardrails would otherwise change it. Neither depends on policies.
    Ok(SemanticQuery { pre_aggregations: PreAggregations::Off, limit: Some(1), ..query })
}

fn scored(run: &AnomalyRun, to: Bucket) -> Scored {
    let is_evaluated = run.series.is_empty() || run.series.iter().any(|series| !series.points.is_empty());
    let longest = run.series.iter().map(|series| series.history).max().unwrap_or_default();
    let too_short = || {
        let DetectorKind { kind, min_points, .. } = &run.detector;
        format!("the history has {longest} steps with a value; {kind} needs at least {min_points}")
    };
    let steps = run.series.iter().flat_map(|series| {
        series.points.iter().map(|point| ScoredStep {
            series: series.dimensions.clone(),
            at_ms: point.at_ms,
            value: point.value,
            expected: point.expected,
            lower_bound: point.lower_bound,
            upper_bound: point.upper_bound,
            raw: point.raw,
            score: point.score,
            severity: point.severity,
            is_anomalous: point.is_anomalous,
        })
    });
    Scored {
        steps: steps.collect(),
        until_ms: Some(to.ms()),
        detector: format!("{} {}", run.detector.component, run.detector.version).into(),
        reason: (!is_evaluated).then(too_short),
    }
}

fn is_pause(error: &MonitorError) -> bool {
    match error {
        MonitorError::Query(error) | MonitorError::Anomaly(AnomalyError::Run(error)) => error.is_denial(),
        MonitorError::MaskedDimension { .. } => true,
        _ => false,
    }
}

/// Returns the reason for a failure. All callers who may see the monitor can read it, so a fixed text replaces the
/// messages of the warehouse.
fn failure_text(error: &MonitorError) -> String {
    use crate::query::QueryRunError;
    match error {
        MonitorError::Query(QueryRunError::Warehouse(_))
        | MonitorError::Anomaly(AnomalyError::Run(QueryRunError::Warehouse(_))) => {
            "the warehouse did not answer the query".to_owned()
        }
        error => error.to_string(),
    }
}
