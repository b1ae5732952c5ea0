//! The root cause of a detection: the slices of a measure that moved.
//!
//! In: a detection, and the rights of its reader. Out: the gap between the expected and the actual value, and the
//! smallest set of slices that explains most of the gap. For every dimension that [`dimensions`] chooses, two
//! statements are run: over the step, and over the history before it. The expected value of a slice is its mean over
//! the history. These means are scaled so that they add up to the detector's expected value.
//!
//! If the values of slices add up to the measure, shares are exact. For other measures, each slice is weighed by its
//! rows. The change of its value and the change of its weight then add up to the gap: exactly for averages, and
//! approximately for the rest. The arithmetic is in [`slices`], the measures behind a metric are in [`parts`], and
//! dimensions that follow from the time, such as the weekday, are recognised by [`calendar`].

mod calendar;
mod dimensions;
mod parts;
mod slices;

use std::sync::Arc;

use arrow::array::{Array as _, AsArray as _, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use terrane_compiler::Access;
use terrane_compiler::query::{DateRange, Filter, MemberRef, QueryError, SemanticQuery, TimeDimension};
use terrane_compiler::types::{Granularity, Operator, Value};

use self::slices::{Candidate, Slice, best_candidate, determines_the_value, slices_of};
use super::SeenDetection;
use super::error::MonitorError;
use crate::anomaly::bucket::Bucket;
use crate::anomaly::{AnomalyError, Unreadable, time_dimension_of};
use crate::domain::{RequestContext, qualified};
use crate::query::{QueryRunError, QueryService, QuerySession};

/// The largest number of values of a dimension. A dimension with more values is left out.
const MAX_VALUES: u64 = 1_000;
/// The number of best dimensions whose pairs are examined.
const PAIRED: usize = 3;
/// The largest number of steps of history from which the expected values of slices are computed.
const MAX_HISTORY: u32 = 28;
/// The share of the usual number of rows below which a step counts as incomplete.
const FEW_ROWS: f64 = 0.5;

/// A dimension and one of its values; `None` is null.
pub type SliceFilter = (Arc<str>, Option<Arc<str>>);

/// The slices of a measure that explain a detection.
#[derive(Debug, Clone, PartialEq)]
pub struct RootCause {
    pub expected: f64,
    pub actual: f64,
    /// True if the values of slices add up to the measure, so that shares are exact.
    pub is_exact: bool,
    pub data_causes: Vec<DataCause>,
    /// The smallest set of slices that explains at least four fifths of the gap. Empty if the change is broad.
    pub slices: Vec<RootSlice>,
    /// Slices of the same dimensions that moved against the gap.
    pub against: Vec<RootSlice>,
    /// The share of the gap that neither `slices` nor `against` explain.
    pub rest: f64,
    /// The dimensions that were examined.
    pub looked_at: Vec<Arc<str>>,
    /// The dimensions that were not examined, each with the reason.
    pub left_out: Vec<(Arc<str>, &'static str)>,
    pub warnings: Vec<String>,
}

/// A cause in the number of rows, rather than in the values of the measure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DataCause {
    /// The step has no rows.
    NoRows,
    /// The step has less than half of the usual number of rows.
    FewRows { rows: f64, usual: f64 },
}

/// The direction in which a slice moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moved {
    Up,
    Down,
}

/// A slice of the measure.
#[derive(Debug, Clone, PartialEq)]
pub struct RootSlice {
    pub filters: Vec<SliceFilter>,
    /// The value before the step; `None` if the slice had none.
    pub before: Option<f64>,
    pub after: Option<f64>,
    pub moved: Moved,
    /// The share of the gap between the expected and the actual value.
    pub share: f64,
    /// The share of the expected value. For a measure that does not add up, the share of the usual rows.
    pub support: f64,
    /// The query for this slice in the step.
    pub query: SemanticQuery,
}

/// The inputs that all statements of one explanation share.
struct Question<'q> {
    session: QuerySession<'q>,
    cube: Arc<str>,
    /// The cube to which names without a dot belong.
    scope: Option<Arc<str>>,
    value: MemberRef,
    /// A measure or a metric that counts rows, which are the weights of slices.
    weight: Option<MemberRef>,
    time: MemberRef,
    is_utc: bool,
    filters: Vec<Filter>,
    step: DateRange,
    history: DateRange,
    /// The range and the granularity by which dimensions that depend only on the time are recognized, such as the
    /// weekday of a day.
    calendar: (DateRange, Granularity),
    is_exact: bool,
    /// True if the measure counts the rows of the cube.
    is_row_count: bool,
}

/// The value and the rows of a group.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Group {
    pub(super) value: Option<f64>,
    pub(super) rows: f64,
}

type Groups = Vec<(Vec<Option<Arc<str>>>, Group)>;

/// Explains a detection.
///
/// # Errors
/// A query failed.
pub(super) async fn explain(
    queries: &QueryService,
    request: &RequestContext,
    seen: &SeenDetection,
) -> Result<RootCause, MonitorError> {
    let (definition, step) = (&seen.monitor.definition, &seen.detection.step);
    let session = queries.session(request);
    let snapshot = session.shared_snapshot();
    let access = Access::of(&snapshot.model, &request.caller);
    let parts = parts::of(&access, &session, &definition.value)?;
    let cube = parts.cube;
    let dimensions::Choice { looked_at, left_out } = dimensions::of(&access, cube, definition);
    let time = time_dimension_of(&session, &cube.name).await?;
    let granularity = definition.granularity;
    let at = Bucket::at_ms(step.at_ms).ok_or(MonitorError::UnknownDetection)?;
    let steps = definition.training_size.min(MAX_HISTORY);
    let first = at.earlier(steps, granularity).ok_or(MonitorError::UnknownDetection)?;
    let last = at.earlier(1, granularity).ok_or(MonitorError::UnknownDetection)?;
    let between = |from: Bucket, to: Bucket| DateRange::Between(Some(from.text()), Some(to.end_text(granularity)));
    let question = Question {
        cube: Arc::clone(&cube.name),
        scope: definition.value.cube().cloned(),
        value: definition.value.member().parse()?,
        weight: parts.weight.map(|weight| weight.parse::<MemberRef>()).transpose()?,
        time: time.parse()?,
        is_utc: granularity.is_sub_day(),
        filters: [parts.filters, filters(&cube.name, &step.series)?].concat(),
        step: between(at, at),
        history: between(first, last),
        calendar: calendar::range(at, granularity, steps).ok_or(MonitorError::UnknownDetection)?,
        is_exact: parts.is_exact,
        is_row_count: parts.is_row_count,
        session,
    };
    // All statements together may take as long as one query.
    let explained = question.explain(step.expected, steps, looked_at, left_out);
    match tokio::time::timeout(question.session.timeout(), explained).await {
        Ok(cause) => cause,
        Err(_) => Err(question.session.overdue().into()),
    }
}

impl Question<'_> {
    async fn explain(
        &self,
        detector_expected: Option<f64>,
        steps: u32,
        dimensions: Vec<Arc<str>>,
        mut left_out: Vec<(Arc<str>, &'static str)>,
    ) -> Result<RootCause, MonitorError> {
        let total = |groups: Option<Groups>| groups.and_then(|groups| groups.first().map(|(_, group)| *group));
        let now = total(self.groups(&[], &self.step).await?).unwrap_or_default();
        let history = total(self.groups(&[], &self.history).await?).unwrap_or_default();
        let steps = f64::from(steps);
        let usual = match self.is_exact {
            true => history.value.map(|value| value / steps),
            false => history.value,
        };
        let actual = now.value.unwrap_or(0.0);
        let expected = detector_expected.or(usual).unwrap_or(0.0);
        // Scales the slices to the detector's expected value, so that the gaps of slices add up to the gap of the
        // detection.
        let scale = match usual {
            Some(usual) if usual != 0.0 && (expected / usual).is_finite() && expected / usual > 0.0 => expected / usual,
            _ => 1.0,
        };
        let mut cause = RootCause {
            expected,
            actual,
            is_exact: self.is_exact,
            data_causes: self.data_causes(now, history, steps),
            slices: Vec::new(),
            against: Vec::new(),
            rest: 1.0,
            looked_at: Vec::new(),
            left_out: Vec::new(),
            warnings: Vec::new(),
        };
        if !self.is_exact && self.weight.is_none() {
            let warning = "the measure does not add up, and no measure counts the rows that would weigh its parts";
            cause.warnings.push(warning.to_owned());
        } else {
            let frame = slices::Frame { expected, actual, scale, steps, is_exact: self.is_exact, history };
            let mut singles: Vec<Candidate> = Vec::new();
            for dimension in dimensions {
                let found = match self.slices(std::slice::from_ref(&dimension), &frame).await {
                    Err(MonitorError::Query(QueryRunError::Query(_))) => {
                        left_out.push((dimension, "it cannot be grouped by"));
                        continue;
                    }
                    found => found?,
                };
                match found {
                    Some(found) if self.follows_from_time(&dimension, &found).await? => {
                        left_out.push((dimension, "its values follow from the time"));
                    }
                    Some(found) if !self.is_exact && determines_the_value(&found) => {
                        left_out.push((dimension, "it only says which rows the measure counts"));
                    }
                    Some(found) => {
                        singles.extend(best_candidate(&[Arc::clone(&dimension)], found));
                        cause.looked_at.push(dimension);
                    }
                    None => left_out.push((dimension, "it has more than 1000 values")),
                }
            }
            singles.sort_by(|one, other| other.lift.total_cmp(&one.lift));
            let mut best = singles.first().cloned();
            let names: Vec<Arc<str>> =
                singles.iter().take(PAIRED).map(|found| Arc::clone(&found.dimensions[0])).collect();
            for (index, one) in names.iter().enumerate() {
                for other in &names[index + 1..] {
                    let pair = [Arc::clone(one), Arc::clone(other)];
                    let Some(found) = self.slices(&pair, &frame).await? else { continue };
                    let found = best_candidate(&pair, found);
                    let found = found.filter(|found| !singles.iter().any(|single| slices::splits(found, single)));
                    best = slices::better(best, found);
                }
            }
            if let Some(best) = best.filter(Candidate::is_localised) {
                cause.rest = 1.0 - best.share;
                cause.slices = self.shown(&best.dimensions, best.chosen)?;
                cause.against = self.shown(&best.dimensions, best.against)?;
                cause.rest -= cause.against.iter().map(|slice| slice.share).sum::<f64>();
            }
        }
        cause.left_out = left_out;
        Ok(cause)
    }

    fn data_causes(&self, now: Group, history: Group, steps: f64) -> Vec<DataCause> {
        let rows = |group: Group| if self.is_row_count { group.value.unwrap_or(0.0) } else { group.rows };
        let (rows, usual) = (rows(now), rows(history) / steps);
        let are_known = self.is_row_count || self.weight.is_some();
        if now.value.is_none() || (are_known && usual > 0.0 && rows == 0.0) {
            return vec![DataCause::NoRows];
        }
        let is_few = are_known && usual > 0.0 && rows < usual * FEW_ROWS;
        if is_few { vec![DataCause::FewRows { rows, usual }] } else { Vec::new() }
    }

    /// Returns the slices of dimensions; `None` if there are too many groups.
    async fn slices(&self, dimensions: &[Arc<str>], frame: &slices::Frame) -> Result<Option<Vec<Slice>>, MonitorError> {
        let Some(now) = self.groups(dimensions, &self.step).await? else { return Ok(None) };
        let Some(history) = self.groups(dimensions, &self.history).await? else { return Ok(None) };
        Ok(Some(slices_of(now, history, frame)))
    }

    /// Returns the values of the measure by dimensions within a range; `None` if there are too many groups.
    async fn groups(&self, dimensions: &[Arc<str>], range: &DateRange) -> Result<Option<Groups>, MonitorError> {
        let members = dimensions.iter().map(|name| name.parse()).collect::<Result<_, QueryError>>()?;
        let query = self.query(members, self.filters.clone(), range);
        let answer = self.session.prepare(&query).await?.run().await?;
        if answer.returned_rows > MAX_VALUES || answer.truncated == Some(true) {
            return Ok(None);
        }
        let has_weight = self.weight.is_some();
        let groups = answer.batches.iter().map(|batch| read(batch, dimensions.len(), has_weight));
        let groups: Vec<Groups> = groups.collect::<Result<_, Unreadable>>().map_err(AnomalyError::from)?;
        Ok(Some(groups.into_iter().flatten().collect()))
    }

    fn query(&self, dimensions: Vec<MemberRef>, filters: Vec<Filter>, range: &DateRange) -> SemanticQuery {
        let time = TimeDimension { member: self.time.clone(), granularity: None, range: Some(range.clone()) };
        SemanticQuery {
            cube: self.scope.clone(),
            values: std::iter::once(self.value.clone()).chain(self.weight.clone()).collect(),
            dimensions,
            time_dimensions: vec![time],
            filters,
            limit: Some(MAX_VALUES.min(self.session.max_rows())),
            timezone: self.is_utc.then(|| "UTC".into()),
            ..SemanticQuery::default()
        }
    }

    fn shown(&self, dimensions: &[Arc<str>], slices: Vec<Slice>) -> Result<Vec<RootSlice>, MonitorError> {
        let shown = slices.into_iter().map(|slice| {
            let own: Vec<SliceFilter> = dimensions.iter().cloned().zip(slice.key).collect();
            let mut all = self.filters.clone();
            all.extend(filters(&self.cube, &own)?);
            let query = SemanticQuery { limit: None, ..self.query(Vec::new(), all, &self.step) };
            Ok::<RootSlice, QueryError>(RootSlice {
                filters: own,
                before: slice.before,
                after: slice.after,
                moved: if slice.moved >= 0.0 { Moved::Up } else { Moved::Down },
                share: slice.share,
                support: slice.support,
                query,
            })
        });
        Ok(shown.collect::<Result<_, _>>()?)
    }
}

fn filters(cube: &str, values: &[SliceFilter]) -> Result<Vec<Filter>, QueryError> {
    let filter = |(name, value): &SliceFilter| {
        let (operator, values) = match value {
            Some(value) => (Operator::Equals, vec![Value::Text(value.to_string().into())]),
            None => (Operator::NotSet, Vec::new()),
        };
        Ok(Filter::Condition { member: qualified(cube, name).parse()?, operator, values })
    };
    values.iter().map(filter).collect()
}

fn read(batch: &RecordBatch, dimensions: usize, has_weight: bool) -> Result<Groups, Unreadable> {
    let column = |index: usize, wanted: DataType, shown: &'static str| {
        let column = batch.columns().get(index);
        let found = || column.map_or_else(|| "nothing".to_owned(), |column| column.data_type().to_string());
        let read = column.and_then(|column| cast(column, &wanted).ok());
        read.ok_or_else(|| Unreadable { column: index + 1, found: found(), wanted: shown })
    };
    let keys: Vec<_> = (0..dimensions).map(|index| column(index, DataType::Utf8, "text")).collect::<Result<_, _>>()?;
    let values = column(dimensions, DataType::Float64, "a number")?;
    let rows = has_weight.then(|| column(dimensions + 1, DataType::Float64, "a number")).transpose()?;
    let number = |column: &arrow::array::ArrayRef, row: usize| {
        let column = column.as_primitive::<Float64Type>();
        column.is_valid(row).then(|| column.value(row)).filter(|value| value.is_finite())
    };
    let group = |row: usize| {
        let key = keys.iter().map(|column| column.is_valid(row).then(|| column.as_string::<i32>().value(row).into()));
        let rows = rows.as_ref().and_then(|rows| number(rows, row)).unwrap_or(0.0);
        (key.collect(), Group { value: number(&values, row), rows })
    };
    Ok((0..batch.num_rows()).map(group).collect())
}
