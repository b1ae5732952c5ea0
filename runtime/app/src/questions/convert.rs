//! Converts the interpretation of a question to a query.
//!
//! In: the interpretation of a question. Out: a [`SemanticQuery`]. If the question names a step of time, the query
//! groups by the time dimension that the question names, or else by the primary time dimension of its cube.

use std::sync::Arc;

use terrane_compiler::Access;
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
    let range = draft.range.as_ref().map(date_range);
    let mut time_range = range.map(|range| TimeRange { member: None, granularity: None, range });
    if let Some(step) = step.filter(|_| time_dimensions.is_empty()) {
        let member = primary_time(access, reading)?;
        let range = time_range.take().map(|range| range.range);
        time_dimensions.push(TimeDimension { member, granularity: Some(step), range });
    }
    let order =
        draft.order.iter().map(|order| Ok(OrderBy { member: order.member.parse()?, descending: order.is_descending }));
    Ok(SemanticQuery {
        values: members(&draft.values)?,
        dimensions,
        time_dimensions,
        time_range,
        filters: draft.filters.iter().map(condition).collect::<Result<_, QueryError>>()?,
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

fn primary_time(access: &Access<'_>, reading: &Interpretation) -> Result<MemberRef, QueryError> {
    let cube = reading.cube.as_deref().and_then(|name| metadata::cube(access, name));
    let name: Arc<str> = cube.map_or_else(|| "".into(), |cube| Arc::clone(&cube.name));
    let time = cube.and_then(|cube| cube.dimensions.get(cube.primary_time? as usize));
    match time {
        Some(time) => format!("{name}.{}", time.name).parse(),
        None => Err(QueryError::NoPrimaryTime { cube: name }),
    }
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
