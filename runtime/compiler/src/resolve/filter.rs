//! Filters: checks operators and values against the types of their members.
//!
//! In: a [`Filter`] tree with values as they were sent. Out: a [`Predicate`] whose values have the members' types.
//! Values are never cast silently.

use std::sync::Arc;

use super::names::{NamedMember, Names};
use super::time::TimeAxis;
use crate::model::{
    Aggregate, AggregateFunction, Cube, Dimension, DimensionId, DimensionType, MeasureKind, Model, SqlPart, TimeKind,
};
use crate::query::resolved::{Bound, Operand, Predicate, Test, TextMatch, ValueId};
use crate::query::{DateRange, Filter, MAX_FILTER_DEPTH, MemberRef, Operator, QueryError};
use crate::types::{LogicalType, Value};

/// The largest number of values in one list.
const MAX_LIST_VALUES: usize = 10_000;
/// The largest number of conditions in one query.
const MAX_CONDITIONS: usize = 1_000;

/// Returns the error of a condition that can never fit its dimension as declared, whatever the column, the time and the
/// time zone are. Also returns the index of the value at fault, if a value is at fault. Errors that depend on the query
/// are not found here.
pub(crate) fn refusal(
    dimension: &Dimension,
    member: &MemberRef,
    operator: Operator,
    values: &[Value],
) -> Option<(QueryError, Option<usize>)> {
    // Phrases look back in time, so at the end of the calendar every phrase has a valid range.
    let (zone, now) = (jiff::tz::TimeZone::UTC, jiff::Timestamp::MAX);
    let comparable = Comparable::of(dimension);
    let test = |operator: Operator, values: &[Value]| {
        Condition { member, comparable, operator, target: FilterTarget::Rows, zone: &zone, now }.test(values)
    };
    let is_unfit = |value: &Value| {
        let operator = if values.len() == 1 { operator } else { Operator::Equals };
        matches!(test(operator, std::slice::from_ref(value)), Err(QueryError::ValueDoesNotFit { .. }))
    };
    match test(operator, values).err()? {
        error @ QueryError::ValueDoesNotFit { .. } => Some((error, values.iter().position(is_unfit))),
        error @ (QueryError::OperatorNotAllowed { .. } | QueryError::ValueCount { .. }) => Some((error, None)),
        _ => None,
    }
}

fn in_lower_case(value: &Value) -> Value {
    match value {
        Value::Text(text) => Value::Text(text.to_lowercase().into()),
        other => other.clone(),
    }
}

/// The values that a member can be compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparable {
    Text,
    Number,
    Boolean,
    Time { kind: TimeKind, column_type: LogicalType },
}

pub(super) struct Filters<'a> {
    pub names: &'a Names<'a>,
    /// The dimension that `metric_time` refers to: on rows, the primary time of the tested fact; on groups, that of the
    /// first fact.
    pub metric_time: Option<DimensionId>,
    pub zone: &'a jiff::tz::TimeZone,
    pub now: jiff::Timestamp,
}

impl Filters<'_> {
    /// Returns whether a condition names a measure, so that it applies to groups.
    pub(super) fn has_value(&self, filter: &Filter) -> Result<bool, QueryError> {
        match filter {
            Filter::Condition { member, .. } => Ok(matches!(self.names.operand(member)?, NamedMember::Value(_))),
            Filter::And(all) | Filter::Or(all) => {
                let mut any = false;
                for filter in all {
                    any |= self.has_value(filter)?;
                }
                Ok(any)
            }
            Filter::Not(inner) => self.has_value(inner),
            Filter::NoRow { .. } => Ok(false),
        }
    }

    /// Returns whether a filter refers to `metric_time`, which stands for a different column in each fact.
    pub(super) fn has_metric_time(filter: &Filter) -> bool {
        match filter {
            Filter::Condition { member, .. } => member.is_metric_time(),
            Filter::And(all) | Filter::Or(all) => all.iter().any(Self::has_metric_time),
            Filter::Not(inner) => Self::has_metric_time(inner),
            Filter::NoRow { .. } => false,
        }
    }

    pub(super) fn check_size(&self, filters: &[Filter]) -> Result<(), QueryError> {
        fn walk(filter: &Filter, depth: usize, conditions: &mut usize) -> Result<(), QueryError> {
            if depth > MAX_FILTER_DEPTH {
                return Err(QueryError::TooDeep { limit: MAX_FILTER_DEPTH });
            }
            match filter {
                Filter::Condition { values, .. } => {
                    *conditions += 1;
                    if values.len() > MAX_LIST_VALUES {
                        return Err(QueryError::TooMany { what: "values in one list", limit: MAX_LIST_VALUES });
                    }
                    if *conditions > MAX_CONDITIONS {
                        return Err(QueryError::TooMany { what: "filter conditions", limit: MAX_CONDITIONS });
                    }
                    Ok(())
                }
                Filter::And(all) | Filter::Or(all) => all.iter().try_for_each(|f| walk(f, depth + 1, conditions)),
                Filter::Not(inner) => walk(inner, depth + 1, conditions),
                Filter::NoRow { .. } => Ok(()),
            }
        }
        let mut conditions = 0;
        filters.iter().try_for_each(|filter| walk(filter, 1, &mut conditions))
    }

    /// Resolves a filter on rows or groups.
    pub(super) fn predicate(&self, filter: &Filter, target: FilterTarget) -> Result<Predicate, QueryError> {
        let all = |filters: &[Filter]| filters.iter().map(|f| self.predicate(f, target)).collect::<Result<Vec<_>, _>>();
        Ok(match filter {
            Filter::And(filters) => Predicate::And(all(filters)?),
            Filter::Or(filters) => Predicate::Or(all(filters)?),
            Filter::Not(inner) => Predicate::Not(Box::new(self.predicate(inner, target)?)),
            Filter::NoRow { cube } => self.no_row(cube)?,
            Filter::Condition { member, operator, values } => {
                let (operand, comparable) = self.operand(member, target)?;
                let (operator, zone, now) = (*operator, self.zone, self.now);
                let condition = Condition { member, comparable, operator, target, zone, now };
                Predicate::Test { operand, test: condition.test(values)? }
            }
        })
    }

    /// Returns the condition that a row has no matching row in a cube. It tests the columns of the cube's primary key,
    /// which every matching row has.
    fn no_row(&self, name: &Arc<str>) -> Result<Predicate, QueryError> {
        let cube = self.names.public_cube(name)?;
        if cube.primary_key.is_empty() {
            return Err(QueryError::NeedsPrimaryKey { cube: Arc::clone(name), member: Arc::clone(name) });
        }
        let test = |index: &u32| {
            let operand = Operand::Dimension { id: DimensionId { cube: cube.id, index: *index }, granularity: None };
            Predicate::Test { operand, test: Test::NoRow }
        };
        Ok(Predicate::And(cube.primary_key.iter().map(test).collect()))
    }

    fn operand(&self, member: &MemberRef, target: FilterTarget) -> Result<(Operand, Comparable), QueryError> {
        match self.names.operand(member)? {
            NamedMember::Value(value) => Ok((Operand::Value(value), value_type(self.names.model, value))),
            NamedMember::Dimension(id) => {
                self.names.check_granularity(member, id, member.granularity)?;
                let operand = Operand::Dimension { id, granularity: member.granularity };
                Ok((operand, self.comparable(id, member, target)))
            }
            NamedMember::MetricTime => {
                let id = self.metric_time.ok_or(QueryError::MetricTimeOfNothing)?;
                self.names.check_granularity(member, id, member.granularity)?;
                let granularity = member.granularity;
                let operand = match target {
                    FilterTarget::Groups => Operand::MetricTime { granularity },
                    FilterTarget::Rows => Operand::Dimension { id, granularity },
                };
                Ok((operand, self.comparable(id, member, target)))
            }
            NamedMember::Segment(_) => {
                Err(QueryError::UnknownSegment { name: member.text.clone(), nearest: Vec::new() })
            }
        }
    }

    fn comparable(&self, id: DimensionId, member: &MemberRef, target: FilterTarget) -> Comparable {
        match Comparable::of(self.names.model.dimension(id)) {
            Comparable::Time { column_type, .. } if target == FilterTarget::Groups => {
                Comparable::Time { kind: self.names.grouped_kind(id, member.granularity), column_type }
            }
            comparable => comparable,
        }
    }
}

/// The relation that a filter restricts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FilterTarget {
    /// The rows of a fact.
    Rows,
    /// The groups of a result, whose dimensions are group-by columns.
    Groups,
}

/// A condition whose values are read.
struct Condition<'a> {
    member: &'a MemberRef,
    comparable: Comparable,
    operator: Operator,
    target: FilterTarget,
    zone: &'a jiff::tz::TimeZone,
    now: jiff::Timestamp,
}

impl Condition<'_> {
    /// Returns the operator's test with `values` as operands.
    fn test(&self, values: &[Value]) -> Result<Test, QueryError> {
        let Condition { member, comparable, operator, .. } = *self;
        let valid = valid_operators(comparable);
        let is_search = operator == Operator::ContainsAnyCase;
        if is_search && comparable != Comparable::Text {
            return Err(QueryError::NotSearchable { member: member.text.clone(), ty: comparable.name() });
        }
        if !is_search && !valid.contains(&operator) {
            return Err(QueryError::OperatorNotAllowed {
                member: member.text.clone(),
                operator: operator.as_str(),
                ty: comparable.name(),
                valid_operators: valid.iter().map(|o| o.as_str()).collect(),
            });
        }
        let one = || match values {
            [value] => Ok(value),
            _ => Err(self.count("one value", values.len())),
        };
        let not = |test: Test| Test::Not(Box::new(test));
        Ok(match operator {
            Operator::Set | Operator::NotSet => {
                if !values.is_empty() {
                    return Err(self.count("no value", values.len()));
                }
                if operator == Operator::Set { not(Test::IsNull) } else { Test::IsNull }
            }
            Operator::Equals | Operator::NotEquals => {
                let test = match values {
                    [] => return Err(self.count("a value", 0)),
                    [value] => self.equals(value)?,
                    several => self.list(several)?,
                };
                if operator == Operator::Equals { test } else { not(test) }
            }
            Operator::InList => self.list(values)?,
            Operator::NotInList => not(self.list(values)?),
            Operator::Contains => self.text_match(TextMatch::Contains, one()?)?,
            Operator::NotContains => not(self.text_match(TextMatch::Contains, one()?)?),
            Operator::ContainsAnyCase => self.text_match(TextMatch::ContainsAnyCase, &in_lower_case(one()?))?,
            Operator::StartsWith => self.text_match(TextMatch::StartsWith, one()?)?,
            Operator::EndsWith => self.text_match(TextMatch::EndsWith, one()?)?,
            Operator::Gt | Operator::AfterDate => self.after(one()?, false)?,
            Operator::Gte => self.after(one()?, true)?,
            Operator::Lt | Operator::BeforeDate => self.before(one()?, false)?,
            Operator::Lte => self.before(one()?, true)?,
            Operator::Between => self.between(values)?,
            Operator::InDateRange => self.date_range(values)?,
            Operator::NotInDateRange => not(self.date_range(values)?),
        })
    }

    fn count(&self, expected: &'static str, found: usize) -> QueryError {
        QueryError::ValueCount { member: self.member.text.clone(), operator: self.operator.as_str(), expected, found }
    }

    fn invalid_value(&self, value: &Value, expected: &'static str) -> QueryError {
        QueryError::ValueDoesNotFit { member: self.member.text.clone(), value: display(value), expected }
    }

    fn axis(&self, kind: TimeKind, column_type: LogicalType) -> TimeAxis<'_> {
        TimeAxis {
            member: &self.member.text,
            kind,
            column_type,
            granularity: self
                .member
                .granularity
                .filter(|_| self.target == FilterTarget::Rows || kind == TimeKind::WallClock),
            zone: self.zone,
            now: self.now,
        }
    }

    fn time_text<'v>(&self, value: &'v Value) -> Result<&'v str, QueryError> {
        match value {
            Value::Text(text) => Ok(text),
            _ => Err(self.invalid_value(value, "a date or timestamp as a string, like \"2024-01-31\"")),
        }
    }

    fn equals(&self, value: &Value) -> Result<Test, QueryError> {
        match (value, self.comparable) {
            (Value::Null, _) => Ok(Test::IsNull),
            (value, Comparable::Time { kind, column_type }) => {
                self.axis(kind, column_type).equals(self.time_text(value)?)
            }
            (value, _) => Ok(Test::Equals(self.scalar(value)?)),
        }
    }

    fn list(&self, values: &[Value]) -> Result<Test, QueryError> {
        let or_null = values.contains(&Value::Null);
        let present = values.iter().filter(|v| **v != Value::Null);
        if let Comparable::Time { .. } = self.comparable {
            let mut tests = present.map(|v| self.equals(v)).collect::<Result<Vec<_>, _>>()?;
            if or_null {
                tests.push(Test::IsNull);
            }
            return Ok(if tests.is_empty() { Test::Never } else { Test::AnyOf(tests) });
        }
        let values = present.map(|v| self.scalar(v)).collect::<Result<Vec<_>, _>>()?;
        Ok(match (values.is_empty(), or_null) {
            (true, true) => Test::IsNull,
            (true, false) => Test::Never,
            (false, or_null) => Test::InList { values, or_null },
        })
    }

    fn text_match(&self, kind: TextMatch, value: &Value) -> Result<Test, QueryError> {
        match self.scalar(value)? {
            text @ Value::Text(_) => Ok(Test::Match { kind, text }),
            _ => Err(self.invalid_value(value, "text")),
        }
    }

    fn after(&self, value: &Value, inclusive: bool) -> Result<Test, QueryError> {
        match self.comparable {
            Comparable::Time { kind, column_type } => {
                self.axis(kind, column_type).after(self.time_text(value)?, inclusive)
            }
            _ => Ok(Test::Range { low: Some(Bound { value: self.scalar(value)?, inclusive }), high: None }),
        }
    }

    fn before(&self, value: &Value, inclusive: bool) -> Result<Test, QueryError> {
        match self.comparable {
            Comparable::Time { kind, column_type } => {
                self.axis(kind, column_type).before(self.time_text(value)?, inclusive)
            }
            _ => Ok(Test::Range { low: None, high: Some(Bound { value: self.scalar(value)?, inclusive }) }),
        }
    }

    /// Returns the test of a lower and an upper bound, both inclusive.
    fn between(&self, values: &[Value]) -> Result<Test, QueryError> {
        let [low, high] = values else { return Err(self.count("[low, high]", values.len())) };
        if let Comparable::Time { .. } = self.comparable {
            return self.date_range(values);
        }
        let (low, high) = (self.scalar(low)?, self.scalar(high)?);
        let bound = |value| Some(Bound { value, inclusive: true });
        Ok(Test::Range { low: bound(low), high: bound(high) })
    }

    /// Returns the test of a start and an end, or of a phrase such as `last 7 days`.
    fn date_range(&self, values: &[Value]) -> Result<Test, QueryError> {
        let Comparable::Time { kind, column_type } = self.comparable else {
            return Err(self.count("[start, end]", values.len()));
        };
        let range = match values {
            [words] => DateRange::Words(self.time_text(words)?.into()),
            [start, end] => DateRange::Between(Some(self.time_text(start)?.into()), Some(self.time_text(end)?.into())),
            _ => return Err(self.count("[start, end]", values.len())),
        };
        self.axis(kind, column_type).within(&range)
    }

    /// Reads a value by the member's type. A string is accepted for every type, because surfaces without types send
    /// only strings.
    fn scalar(&self, value: &Value) -> Result<Value, QueryError> {
        let fitted = match self.comparable {
            Comparable::Text => match value {
                Value::Text(text) => Some(Value::Text(text.clone())),
                _ => None,
            },
            Comparable::Number => match value {
                Value::Integer(_) | Value::Decimal(_) | Value::Float(_) => Some(value.clone()),
                Value::Text(text) => number(text),
                _ => None,
            },
            Comparable::Boolean => match value {
                Value::Boolean(_) => Some(value.clone()),
                Value::Text(text) if &**text == "true" => Some(Value::Boolean(true)),
                Value::Text(text) if &**text == "false" => Some(Value::Boolean(false)),
                _ => None,
            },
            Comparable::Time { .. } => None,
        };
        fitted.ok_or_else(|| {
            self.invalid_value(
                value,
                match self.comparable {
                    Comparable::Text => "a string, such as \"a\"",
                    Comparable::Number => "a number, such as 5 or 2.5",
                    Comparable::Boolean => "true or false",
                    Comparable::Time { .. } => "a date or a timestamp",
                },
            )
        })
    }
}

impl Comparable {
    fn of(dimension: &Dimension) -> Comparable {
        match dimension.ty {
            DimensionType::String | DimensionType::Geo => Comparable::Text,
            DimensionType::Number => Comparable::Number,
            DimensionType::Boolean => Comparable::Boolean,
            DimensionType::Time => Comparable::Time { kind: dimension.time, column_type: dimension.column_type },
        }
    }

    fn name(self) -> &'static str {
        match self {
            Comparable::Text => "string",
            Comparable::Number => "number",
            Comparable::Boolean => "boolean",
            Comparable::Time { .. } => "time",
        }
    }
}

/// Returns the operators that a type allows, in the order of the documented table of operators.
fn valid_operators(comparable: Comparable) -> &'static [Operator] {
    use Operator::*;
    match comparable {
        Comparable::Text => {
            &[Equals, NotEquals, Contains, NotContains, StartsWith, EndsWith, InList, NotInList, Set, NotSet]
        }
        Comparable::Number => &[Equals, NotEquals, Gt, Gte, Lt, Lte, Between, InList, NotInList, Set, NotSet],
        Comparable::Boolean => &[Equals, NotEquals, InList, NotInList, Set, NotSet],
        Comparable::Time { .. } => &[
            Equals,
            NotEquals,
            Gt,
            Gte,
            Lt,
            Lte,
            Between,
            InList,
            NotInList,
            InDateRange,
            NotInDateRange,
            BeforeDate,
            AfterDate,
            Set,
            NotSet,
        ],
    }
}

/// Returns the type of a finished value in comparisons: only `min` and `max` keep their column's type.
fn value_type(model: &Model, value: ValueId) -> Comparable {
    let snippet = match value {
        ValueId::Metric(id) => &model.metric(id).body,
        ValueId::Measure(id) => match &model.measure(id).kind {
            MeasureKind::Aggregate(aggregate) | MeasureKind::Rolling { aggregate, .. } => {
                return aggregate_type(model.cube(id.cube), aggregate);
            }
            MeasureKind::RunningTotal { .. } => return Comparable::Number,
            MeasureKind::Number(snippet) => snippet,
        },
    };
    match (&snippet.parts[..], value) {
        ([SqlPart::Measure(id)], _) => value_type(model, ValueId::Measure(*id)),
        ([SqlPart::Metric(id)], _) => value_type(model, ValueId::Metric(*id)),
        ([SqlPart::Aggregate(aggregate)], ValueId::Measure(id)) => aggregate_type(model.cube(id.cube), aggregate),
        _ => Comparable::Number,
    }
}

fn aggregate_type(cube: &Cube, aggregate: &Aggregate) -> Comparable {
    if !matches!(aggregate.function, AggregateFunction::Min | AggregateFunction::Max) {
        return Comparable::Number;
    }
    match aggregate.argument_type {
        LogicalType::Text => Comparable::Text,
        LogicalType::Boolean => Comparable::Boolean,
        column_type if column_type.is_temporal() => {
            Comparable::Time { kind: cube.time_kind_of(aggregate), column_type }
        }
        _ => Comparable::Number,
    }
}

/// Reads a number; one with an exponent becomes a double.
pub(crate) fn number(text: &str) -> Option<Value> {
    if let Ok(integer) = text.parse::<i64>() {
        return Some(Value::Integer(integer));
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_decimal = !digits.is_empty()
        && digits.len() <= 38
        && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.')
        && digits.bytes().filter(|b| *b == b'.').count() <= 1
        && digits.bytes().any(|b| b.is_ascii_digit());
    if is_decimal {
        return Some(Value::Decimal(plain_decimal(text.starts_with('-'), digits).into()));
    }
    text.parse::<f64>().ok().filter(|f| f.is_finite()).map(Value::Float)
}

/// Returns a decimal number with a digit on each side of the point and without leading zeros.
fn plain_decimal(is_negative: bool, digits: &str) -> String {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        whole => whole,
    };
    let sign = if is_negative { "-" } else { "" };
    if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

fn display(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Boolean(b) => b.to_string(),
        Value::Integer(i) => i.to_string(),
        Value::Float(f) => f.to_string(),
        Value::Decimal(text) | Value::Text(text) => text.chars().take(64).collect(),
        Value::Date(days) => days.to_string(),
        Value::Timestamp(micros) | Value::TimestampTz(micros) => micros.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the table of operators and types with the reference of queries.
    #[test]
    fn reference_lists_the_operators_of_each_type() {
        let reference = include_str!("../../../docs/reference/query.md");
        let row_of = |operator: Operator| {
            let name = format!("`{}`", operator.as_str());
            let mut rows = reference.lines().filter(|line| line.contains('✓')).map(|line| line.split('|').skip(1));
            rows.find_map(|mut cells| cells.next().filter(|names| names.contains(&name)).map(|_| cells))
        };
        let time = Comparable::Time { kind: TimeKind::Utc, column_type: LogicalType::Timestamp };
        for operator in Operator::ALL {
            let mut cells =
                row_of(operator).unwrap_or_else(|| panic!("query.md has no row for `{}`", operator.as_str()));
            for comparable in [Comparable::Text, Comparable::Number, Comparable::Boolean, time] {
                let is_marked = cells.next().is_some_and(|cell| cell.contains('✓'));
                let fits = valid_operators(comparable).contains(&operator);
                assert_eq!(is_marked, fits, "query.md: `{}` on a {}", operator.as_str(), comparable.name());
            }
        }
    }
}
