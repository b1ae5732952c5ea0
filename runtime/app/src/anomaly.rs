//! The use case of an anomaly run: a detector scores one measure or metric along time.
//!
//! In: a measure or metric, a granularity, the dimensions that distinguish series, a detector. Out: each point with its
//! score, severity and bounds. [`QueryService`] computes the values, so the caller's policies and hooks apply as to any
//! query. The baseline of a series consists of at most `training_size` steps before the first scored point. All points
//! of the series are scored against this baseline. Not here: the mathematics (components), monitors and alerts
//! (`monitors`).

pub(crate) mod bucket;
mod data_end;
mod data_range;
mod error;
pub(crate) mod series;
mod value;

use std::sync::Arc;

use jiff::Timestamp;
use terrane_compiler::query::{DateRange, SemanticQuery, TimeDimension};
use terrane_compiler::types::Granularity;

use crate::domain::{SeriesKey, SeriesValue};
use crate::ports::calls::CallFacts;
use crate::ports::clock::Clock;
use crate::ports::detectors::{
    Detection, DetectorError, DetectorKind, DetectorList, DetectorParams, Detectors, SeriesBatch,
};
use crate::ports::severity::FindingSeverity;
use crate::query::{QueryRunError, QueryService, QuerySession, RequestContext};
use bucket::Bucket;
pub use data_range::DataRange;
pub use error::AnomalyError;
use series::Series;
pub use series::Unreadable;
pub(crate) use value::{time_dimension_of, visible_metric};

/// The default number of steps of history.
pub const TRAINING_SIZE: u32 = 100;
/// The largest number of steps of history that a run may request.
const MAX_TRAINING_SIZE: u32 = 10_000;

/// The series to evaluate, and the settings of the detector.
#[derive(Debug, Clone, PartialEq)]
pub struct AnomalyRequest {
    pub value: SeriesValue,
    pub detector: Arc<str>,
    /// The sensitivity; `None` for the detector's default.
    pub sensitivity: Option<f64>,
    pub training_size: u32,
    pub granularity: Granularity,
    /// The time dimension; `None` for the primary time dimension of each measure's cube.
    pub time_dimension: Option<Arc<str>>,
    /// The dimensions that distinguish series. Each combination of their values is one series.
    pub dimensions: Vec<Arc<str>>,
    /// The first date or timestamp to score; `None` to score from the step after the first `training_size` steps of
    /// data.
    pub from: Option<Arc<str>>,
    /// The last date or timestamp to score, inclusive; `None` for the last step that has ended.
    pub to: Option<Arc<str>>,
    /// The number of steps in one season; `None` for the default of the granularity.
    pub seasonality: Option<u32>,
}

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct AnomalyRun {
    pub detector: DetectorKind,
    pub sensitivity: f64,
    pub granularity: Granularity,
    pub time_dimension: Arc<str>,
    /// The values are at least as new as the data at this time.
    pub as_of: Timestamp,
    /// The series, ordered by the values of their dimensions.
    pub series: Vec<ScoredSeries>,
}

/// One series with its points.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoredSeries {
    pub dimensions: SeriesKey,
    /// The number of values in the history that the points were scored against. Missing values do not count.
    pub history: usize,
    /// The scored points. Empty if the history has fewer values than the detector needs.
    pub points: Vec<Point>,
}

/// One scored point. A number is `None` if the series has no value in this step, or the detector computed no number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// The start of the bucket in the local time of the query's zone, in milliseconds since 1970-01-01T00:00:00.
    pub at_ms: i64,
    pub value: Option<f64>,
    pub expected: Option<f64>,
    pub lower_bound: Option<f64>,
    pub upper_bound: Option<f64>,
    pub raw: Option<f64>,
    pub score: f64,
    pub severity: FindingSeverity,
    pub is_anomalous: bool,
    /// False if more rows may follow: for the step that contains the current time, for the step in which the data
    /// ends early, and for later ones.
    pub is_complete: bool,
}

/// Returns the severity of a score. Each severity is a band of scores that includes its lower end.
pub fn severity(score: f64) -> FindingSeverity {
    match score {
        score if score >= 0.8 => FindingSeverity::Critical,
        score if score >= 0.6 => FindingSeverity::High,
        score if score >= 0.4 => FindingSeverity::Medium,
        score if score >= 0.2 => FindingSeverity::Low,
        _ => FindingSeverity::Info,
    }
}

/// Evaluates measures and metrics.
pub struct AnomalyService {
    queries: Arc<QueryService>,
    detectors: Arc<dyn Detectors>,
    clock: Arc<dyn Clock>,
}

impl AnomalyService {
    pub fn new(queries: Arc<QueryService>, detectors: Arc<dyn Detectors>, clock: Arc<dyn Clock>) -> Self {
        AnomalyService { queries, detectors, clock }
    }

    /// Scores the series of one measure or metric, and marks the steps that are incomplete because the data ends.
    ///
    /// # Errors
    /// [`AnomalyError`]
    pub async fn run(&self, context: &RequestContext, request: &AnomalyRequest) -> Result<AnomalyRun, AnomalyError> {
        let mut run = self.score(context, request).await?;
        if run.series.iter().all(|series| series.points.is_empty()) {
            return Ok(run);
        }
        if let Some(incomplete) = self.first_incomplete(context, request, &run.time_dimension).await? {
            let points = run.series.iter_mut().flat_map(|series| &mut series.points);
            points.for_each(|point| point.is_complete &= point.at_ms < incomplete.ms());
        }
        Ok(run)
    }

    /// Returns the first step that is incomplete because the data ends; `None` if the time dimension has no finer
    /// granularity to measure the end of the data in, or the caller may not query it.
    async fn first_incomplete(
        &self,
        context: &RequestContext,
        request: &AnomalyRequest,
        time: &str,
    ) -> Result<Option<Bucket>, AnomalyError> {
        let session = self.queries.session(context);
        let (from, _) = range(request)?;
        let granularity = request.granularity;
        let range = query_range(request, from)?;
        let Some(query) = data_end::query(&request.value, time, granularity, range, session.max_rows())? else {
            return Ok(None);
        };
        let answer = match session.prepare(&query).await {
            Ok(prepared) => prepared.run().await,
            Err(error) => Err(error),
        };
        match answer {
            Ok(answer) => Ok(data_end::first_incomplete(&answer.batches, granularity, session.timezone())?),
            Err(QueryRunError::Query(_) | QueryRunError::Denied(_) | QueryRunError::Guardrail(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Scores the series of one measure or metric. Marks only the steps that have not ended yet as incomplete, and not
    /// those at the end of the data.
    ///
    /// # Errors
    /// [`AnomalyError`]
    pub(crate) async fn score(
        &self,
        context: &RequestContext,
        request: &AnomalyRequest,
    ) -> Result<AnomalyRun, AnomalyError> {
        check(request)?;
        let detector = self.detector(&request.detector).await?;
        let session = self.queries.session(context);
        let time = request.value.time_dimension(&session, request.time_dimension.as_ref()).await?;
        let (from, _) = range(request)?;
        let query = query(request, &time, from)?;
        let limit = session.max_rows();
        let query = SemanticQuery { limit: Some(limit), ..query };
        let answer = match session.prepare(&query).await {
            Ok(prepared) => prepared.run().await,
            Err(error) => Err(error),
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return Err(request.value.disclosed(&session, error).await.into()),
        };
        if answer.truncated != Some(false) {
            let rows = answer.returned_rows;
            return Err(match session.exceeded_rows(limit) {
                _ if rows < limit => AnomalyError::FewerRows { rows },
                Some(exceeded) => AnomalyError::Run(exceeded),
                None => AnomalyError::TooManyPoints { limit },
            });
        }
        request.value.check_numbers(&answer.columns)?;
        let mut all = series::begun(series::of_batches(&answer.batches, request.dimensions.len())?);
        let present = self.present_step(&session, request.granularity);
        if request.to.is_none() {
            series::end_before(&mut all, present);
        }
        let parts: Vec<Parts<'_>> = all.iter().map(|series| Parts::of(series, from, request.training_size)).collect();
        if !all.is_empty() && parts.iter().all(|parts| parts.points.is_empty()) {
            return Err(AnomalyError::NothingToEvaluate { training_size: request.training_size });
        }
        let evaluated: Vec<bool> = parts.iter().map(|parts| parts.known() >= detector.min_points as usize).collect();
        let named = |series: &Series| -> SeriesKey {
            request.dimensions.iter().cloned().zip(series.key.iter().cloned()).collect()
        };
        let chosen = all.iter().zip(&parts).zip(&evaluated).filter(|(_, is_evaluated)| **is_evaluated);
        let (keys, chosen): (Vec<&Series>, Vec<Parts<'_>>) =
            chosen.map(|((series, parts), _)| (series, *parts)).unzip();
        let detection = self.detect(context, request, &detector, &chosen).await.map_err(|error| match error {
            DetectorError::Fault { fault, series } => {
                let series = keys.get(series).unwrap_or_default().iter().map(|series| named(series));
                AnomalyError::Fault { fault, series: series.collect() }
            }
            error => error.into(),
        })?;
        let asked = chosen.iter().flat_map(|parts| parts.points);
        let mut found = asked.enumerate().map(|(index, point)| scored_point(*point, index, &detection, present));
        let series = all.iter().zip(&parts).zip(&evaluated).map(|((series, parts), is_evaluated)| ScoredSeries {
            dimensions: named(series),
            history: parts.known(),
            points: if *is_evaluated { found.by_ref().take(parts.points.len()).collect() } else { Vec::new() },
        });
        let series = series.collect();
        let sensitivity = request.sensitivity.unwrap_or(detector.default_sensitivity);
        let (granularity, as_of) = (request.granularity, answer.freshness.as_of);
        Ok(AnomalyRun { detector, sensitivity, granularity, time_dimension: time, as_of, series })
    }

    /// Returns the range of time in which the data have rows, if the requested range lies outside that range.
    ///
    /// # Errors
    /// Returns the same errors as [`AnomalyService::run`].
    pub async fn data_elsewhere(
        &self,
        context: &RequestContext,
        request: &AnomalyRequest,
    ) -> Result<Option<DataRange>, AnomalyError> {
        let (from, to) = range(request)?;
        let session = self.queries.session(context);
        let time = request.value.time_dimension(&session, request.time_dimension.as_ref()).await?;
        let value = request.value.member();
        let mut ends = Vec::new();
        for end in [data_range::End::First, data_range::End::Last] {
            let query = data_range::query(&value, &time, request.granularity, end)?;
            let answer = session.prepare(&query).await?.run().await?;
            ends.extend(data_range::step(&answer.batches)?);
        }
        let [first_ms, last_ms] = ends[..] else { return Ok(None) };
        let is_elsewhere = from.is_some_and(|from| from.ms() > last_ms) || to.is_some_and(|to| to.ms() < first_ms);
        Ok(is_elsewhere.then_some(DataRange { first_ms, last_ms }))
    }

    /// Returns the step that contains the current time. More rows of this step may follow.
    fn present_step(&self, session: &QuerySession<'_>, granularity: Granularity) -> Bucket {
        let now = match granularity.is_sub_day() {
            true => jiff::tz::TimeZone::UTC.to_datetime(self.clock.now()),
            false => session.now(),
        };
        Bucket::of(now, granularity)
    }

    pub async fn kinds(&self) -> DetectorList {
        self.detectors.kinds().await
    }

    /// Returns a kind of detector.
    pub(crate) async fn detector(&self, kind: &str) -> Result<DetectorKind, AnomalyError> {
        let list = self.detectors.kinds().await;
        if let Some(found) = list.kinds.iter().find(|found| &*found.kind == kind) {
            return Ok(found.clone());
        }
        let known = list.kinds.iter().map(|kind| Arc::clone(&kind.kind)).collect();
        Err(DetectorError::Unknown { kind: kind.to_owned(), known, faults: list.faults }.into())
    }

    async fn detect(
        &self,
        context: &RequestContext,
        request: &AnomalyRequest,
        detector: &DetectorKind,
        parts: &[Parts<'_>],
    ) -> Result<Detection, DetectorError> {
        let step_ms = bucket::step_ms(request.granularity);
        let (mut history, mut points) = (SeriesBatch::new(step_ms), SeriesBatch::new(step_ms));
        for part in parts {
            history.push(part.history.iter().copied());
            points.push(part.points.iter().copied());
        }
        let (history, points) = (Arc::new(history), Arc::new(points));
        let call = CallFacts {
            now_unix_ms: self.clock.now().as_millisecond(),
            time_zone: "UTC".into(),
            correlation_id: Arc::clone(&context.correlation_id),
            tenant: context.tenant.clone(),
        };
        let params = DetectorParams {
            sensitivity: request.sensitivity,
            training_size: request.training_size,
            seasonality: request.seasonality.or_else(|| bucket::season(request.granularity)),
            extra: Vec::new(),
        };
        let kind = &detector.kind;
        let models = match detector.has_model {
            true => self.detectors.train(&call, kind, Arc::clone(&history), &params).await?,
            false => Vec::new(),
        };
        self.detectors.detect(&call, kind, models, history, points, &params).await
    }
}

/// A series, split into the history and the points to score.
#[derive(Clone, Copy)]
struct Parts<'a> {
    history: &'a [(i64, f64)],
    points: &'a [(i64, f64)],
}

impl<'a> Parts<'a> {
    fn of(series: &'a Series, from: Option<Bucket>, training_size: u32) -> Self {
        let size = training_size as usize;
        let first = match from {
            Some(from) => series.points.partition_point(|(at, _)| *at < from.ms()),
            None => size.min(series.points.len()),
        };
        let (before, points) = series.points.split_at(first);
        Parts { history: &before[before.len().saturating_sub(size)..], points }
    }

    /// Returns the number of values in the history that are not missing.
    fn known(&self) -> usize {
        self.history.iter().filter(|(_, value)| !value.is_nan()).count()
    }
}

fn check(request: &AnomalyRequest) -> Result<(), AnomalyError> {
    if let Some(sensitivity) = request.sensitivity.filter(|s| !(s.is_finite() && *s > 0.0)) {
        return Err(AnomalyError::Sensitivity { sensitivity });
    }
    let found = request.training_size;
    match (1..=MAX_TRAINING_SIZE).contains(&found) {
        true => Ok(()),
        false => Err(AnomalyError::TrainingSize { found, limit: MAX_TRAINING_SIZE }),
    }
}

fn moment(text: &Arc<str>, granularity: Granularity) -> Result<Bucket, AnomalyError> {
    Bucket::holding(text, granularity).ok_or_else(|| AnomalyError::Moment { text: Arc::clone(text) })
}

/// Returns the steps in which the requested range begins and ends.
fn range(request: &AnomalyRequest) -> Result<(Option<Bucket>, Option<Bucket>), AnomalyError> {
    let step = |text: &Option<Arc<str>>| text.as_ref().map(|text| moment(text, request.granularity)).transpose();
    let (begin, end) = (step(&request.from)?, step(&request.to)?);
    match (begin, end, &request.from, &request.to) {
        (Some(begin), Some(end), Some(from), Some(to)) if begin > end => {
            Err(AnomalyError::ReversedRange { from: Arc::clone(from), to: Arc::clone(to) })
        }
        _ => Ok((begin, end)),
    }
}

/// Returns the query for the values by step and dimensions, including steps without rows.
fn query(request: &AnomalyRequest, time: &Arc<str>, from: Option<Bucket>) -> Result<SemanticQuery, AnomalyError> {
    let range = query_range(request, from)?;
    let time = TimeDimension { member: time.parse()?, granularity: Some(request.granularity), range };
    Ok(SemanticQuery { fill_gaps: true, ..request.value.query(time, &request.dimensions)? })
}

/// Returns the range of the query. With `from`, it begins `training_size` steps before `from`.
fn query_range(request: &AnomalyRequest, from: Option<Bucket>) -> Result<Option<DateRange>, AnomalyError> {
    let far = |text: &Arc<str>| AnomalyError::Moment { text: Arc::clone(text) };
    let start = match (from, &request.from) {
        (Some(from), Some(text)) => {
            Some(from.earlier(request.training_size, request.granularity).ok_or_else(|| far(text))?.text())
        }
        _ => None,
    };
    let is_open = start.is_none() && request.to.is_none();
    Ok((!is_open).then(|| DateRange::Between(start, request.to.clone())))
}

fn scored_point((at_ms, value): (i64, f64), index: usize, detection: &Detection, present: Bucket) -> Point {
    let number = |value: f64| Some(value).filter(|value| value.is_finite());
    Point {
        at_ms,
        value: number(value),
        expected: number(detection.expected[index]),
        lower_bound: number(detection.lower_bound[index]),
        upper_bound: number(detection.upper_bound[index]),
        raw: number(detection.raw[index]),
        score: detection.scores[index],
        severity: severity(detection.scores[index]),
        is_anomalous: detection.anomalous[index],
        is_complete: at_ms < present.ms(),
    }
}

#[cfg(test)]
mod tests;
