//! Converts the interpretation of a question to a query.
//!
//! In: the interpretation of a question. Out: a [`SemanticQuery`]. If the question names a step of time, the query
//! groups by the time dimension that the question names, or else by the time dimension of its cube. This is the primary
//! time dimension, with one exception: if that is an instant, and a date without a time zone is part of the cube's key,
//! days and longer steps use the date. For example, the UTC day of a flight's departure can differ from the local day
//! on which it left.

use std::sync::Arc;

use terrane_compiler::Access;
use terrane_compiler::model::{Cube, Dimension, TimeKind};
use terrane_compiler::query::{
    CompareRange, DateRange, Filter, MemberRef, OrderBy, QueryError, SemanticQuery, TimeDimension, TimeRange,
};
use terrane_compiler::types::{DimensionType, Granularity, Operator, Value};
use terrane_questions::{Comparison, Draft, DraftFilter, DraftRange, DraftValue, Interpretation};

use crate::metadata;

/// The largest integer such that a double can represent it and all smaller natural numbers.
const MAX_INTEGER: f64 = 9_007_199_254_740_992.0;

/// Returns the query of a draft.
///
/// # Errors
/// A name is invalid, or the cube has no time dimension to group by.
pub(super) fn query(access: &Access<'_>, reading: &Interpretation) -> Result<SemanticQuery, QueryError> {
    let draft = &reading.draft;
    let step: Option<Granularity> = draft.granularity.and_then(|name| name.parse().ok());
    let (mut dimensions, mut time_dimensions) = (Vec::new(), Vec::new());
    for group in &draft.groups {
        let member: MemberRef = group.member.parse()?;
        match step.filter(|_| is_time(access, &group.member)) {
            Some(step) => time_dimensions.push(TimeDimension { member, granularity: Some(step), range: None }),
            None => dimensions.push(member),
        }
    }
    let day = named_time(access, reading)?.or_else(|| own_day(access, reading));
    let range = draft.range.as_ref().map(date_range);
    let mut time_range = range.map(|range| TimeRange { member: None, granularity: None, range });
    if let Some(step) = step.filter(|_| time_dimensions.is_empty()) {
        let member = match day.clone().filter(|_| step >= Granularity::Day) {
            Some(day) => day,
            None => primary_time(access, reading)?,
        };
        let range = time_range.take().map(|range| range.range);
        time_dimensions.push(TimeDimension { member, granularity: Some(step), range });
    }
    if let Some(member) = day
        && let Some(range) = time_range.take()
    {
        time_dimensions.push(TimeDimension { member, granularity: None, range: Some(range.range) });
    }
    let mut filters = draft.filters.iter().map(condition).collect::<Result<Vec<_>, QueryError>>()?;
    for conditions in &draft.alternatives {
        filters.push(Filter::Or(conditions.iter().map(condition).collect::<Result<_, QueryError>>()?));
    }
    filters.extend(excluded(access, reading)?);
    let order =
        draft.order.iter().map(|order| Ok(OrderBy { member: order.member.parse()?, descending: order.is_descending }));
    Ok(SemanticQuery {
        values: members(&draft.values)?,
        dimensions,
        time_dimensions,
        time_range,
        filters,
        segments: members(&draft.segments)?,
        order: order.collect::<Result<_, QueryError>>()?,
        limit: draft.limit,
        totals: draft.totals,
        compare: compare(draft),
        ..SemanticQuery::default()
    })
}

fn members(names: &[Arc<str>]) -> Result<Vec<MemberRef>, QueryError> {
    names.iter().map(|name| name.parse()).collect()
}

fn is_time(access: &Access<'_>, name: &str) -> bool {
    let found = name.split_once('.').and_then(|(cube, name)| Some((metadata::cube(access, cube)?, name)));
    found.is_some_and(|(cube, name)| {
        cube.dimensions.iter().any(|dimension| &*dimension.name == name && dimension.ty == DimensionType::Time)
    })
}

/// Returns the time dimension that the question names, unless it is the primary one of its cube.
fn named_time(access: &Access<'_>, reading: &Interpretation) -> Result<Option<MemberRef>, QueryError> {
    let Some(name) = &reading.draft.time else { return Ok(None) };
    let primary = primary_time(access, reading).ok();
    let named: MemberRef = name.parse()?;
    Ok(Some(named).filter(|named| primary.as_ref() != Some(named)))
}

/// Returns the date that the times of a query refer to instead of the primary time dimension. It is none if a value of
/// the query belongs to another cube, which has a time of its own.
fn own_day(access: &Access<'_>, reading: &Interpretation) -> Option<MemberRef> {
    let cube = metadata::cube(access, reading.cube.as_deref()?)?;
    let is_own = |value: &Arc<str>| match value.split_once('.') {
        Some((own, _)) => *own == *cube.name,
        None => {
            let metric = metadata::metrics(access).find(|metric| metric.name == *value);
            metric.is_some_and(|metric| metadata::cubes_of_metric(access, metric).iter().all(|of| of.id == cube.id))
        }
    };
    let day = day_of(access, cube).filter(|_| reading.draft.values.iter().all(is_own))?;
    format!("{}.{}", cube.name, day.name).parse().ok()
}

/// Returns the date of a cube's key that is preferred to an instant as the primary time.
pub(super) fn day_of<'m>(access: &Access<'_>, cube: &'m Cube) -> Option<&'m Dimension> {
    let primary = cube.dimensions.get(cube.primary_time? as usize)?;
    let is_day = |of: &&Dimension| {
        let is_date = of.ty == DimensionType::Time && of.time == TimeKind::WallClock;
        is_date && of.primary_key && of.granularities.first() == Some(&Granularity::Day)
    };
    let mut days = metadata::dimensions(access, cube).filter(is_day);
    let day = days.next().filter(|_| primary.time == TimeKind::Utc && !primary.primary_key)?;
    days.next().is_none().then_some(day)
}

/// Returns the dimension whose newest value is the date of the newest data: the date of the key, or else the primary
/// time dimension. Also returns its finest step that is not shorter than a day.
pub(super) fn newest_of<'m>(access: &Access<'_>, cube: &'m Cube) -> Option<(&'m Dimension, Granularity)> {
    let primary = || cube.dimensions.get(cube.primary_time? as usize);
    let time = day_of(access, cube).or_else(primary)?;
    let is_shown = metadata::dimensions(access, cube).any(|of| of.name == time.name);
    let step = time.granularities.iter().copied().find(|step| *step >= Granularity::Day)?;
    is_shown.then_some((time, step))
}

fn primary_time(access: &Access<'_>, reading: &Interpretation) -> Result<MemberRef, QueryError> {
    let cube = reading.cube.as_deref().and_then(|name| metadata::cube(access, name));
    let name: Arc<str> = cube.map_or_else(|| "".into(), |cube| Arc::clone(&cube.name));
    let time = cube.and_then(|cube| cube.dimensions.get(cube.primary_time? as usize));
    match time {
        Some(time) => format!("{name}.{}", time.name).parse(),
        None => Err(QueryError::NoPrimaryTime { cube: name }),
    }
}

/// Returns the condition that leaves out a range of time. It is on the time dimension to which a range refers.
fn excluded(access: &Access<'_>, reading: &Interpretation) -> Result<Option<Filter>, QueryError> {
    let Some((first, last)) = &reading.draft.excluded else { return Ok(None) };
    let member = match named_time(access, reading)?.or_else(|| own_day(access, reading)) {
        Some(member) => member,
        None => primary_time(access, reading)?,
    };
    let values = [first, last].map(|day| Value::Text(Arc::clone(day))).to_vec();
    Ok(Some(Filter::Condition { member, operator: Operator::NotInDateRange, values }))
}

fn date_range(range: &DraftRange) -> DateRange {
    match range {
        DraftRange::Words(words) => DateRange::Words(Arc::clone(words)),
        DraftRange::Between(start, end) => DateRange::Between(start.clone(), end.clone()),
    }
}

fn compare(draft: &Draft) -> Option<CompareRange> {
    Some(match draft.compare.as_ref()? {
        Comparison::Shift(shift) => CompareRange::Shift(Arc::clone(shift)),
        Comparison::Range(range) => CompareRange::Range(date_range(range)),
    })
}

fn condition(filter: &DraftFilter) -> Result<Filter, QueryError> {
    Ok(Filter::Condition {
        member: filter.member.parse()?,
        operator: operator(filter.operator)?,
        values: filter.values.iter().map(value).collect(),
    })
}

fn operator(name: &'static str) -> Result<Operator, QueryError> {
    let found = Operator::ALL.into_iter().find(|operator| operator.as_str() == name);
    found.ok_or_else(|| QueryError::UnknownOperator { operator: name.into() })
}

fn value(value: &DraftValue) -> Value {
    match value {
        DraftValue::Text(text) => Value::Text(Arc::clone(text)),
        DraftValue::Number(number) if number.fract() == 0.0 && number.abs() < MAX_INTEGER => {
            Value::Integer(*number as i64)
        }
        DraftValue::Number(number) => Value::Float(*number),
        DraftValue::Boolean(value) => Value::Boolean(*value),
    }
}
