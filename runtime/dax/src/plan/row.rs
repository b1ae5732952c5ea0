//! Expressions over one row as values that a semantic query computes.
//!
//! In: a scalar over a row of a table of the model. Out: a [`RowValue`] with the meaning that the scalar has in DAX: the
//! rules for BLANK are written into the value. Only numbers are converted, because their operators mean the same in
//! every engine. Fails if an expression could differ, such as a division by a column, which is infinite for 0.

use std::collections::BTreeSet;

use terrane_compiler::model::{DimensionId, Model};
use terrane_compiler::query::{Comparison, RowCondition, RowOperator, RowValue};
use terrane_compiler::types::{DimensionType, LogicalType, Value};

use super::condition::{Compared, Row};
use super::shape::{Source, column_ref};
use super::{Parameters, Planner, not_supported};
use crate::bound::{BlankRule, BoundExpression, BoundQuery, Scalar, ScalarKind};
use crate::functions::{Aggregation, Operation};
use crate::place::Place;
use crate::problem::Problem;
use crate::tree::Operator;
use crate::types::Type;

/// The largest number of nodes of a value.
const MAX_NODES: usize = 500;
/// The largest number of fraction digits of a constant. Some engines truncate decimals after this number.
const MAX_FRACTION: usize = 9;
/// The deepest nesting of a value.
const MAX_DEPTH: usize = 100;

/// A row of a table of the model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ModelRow<'r> {
    /// The number of the row context.
    pub context: u32,
    pub columns: &'r [DimensionId],
}

/// A part of a query that is computed for each row, and the columns that it reads.
#[derive(Debug, Clone)]
pub(crate) struct OfRow<T> {
    pub part: T,
    pub columns: BTreeSet<DimensionId>,
}

/// Converts a number over a row. Returns `None` if the value could differ, or is not a number.
pub(crate) fn row_value(
    query: &BoundQuery,
    model: &Model,
    parameters: &Parameters,
    scalar: &Scalar,
    row: ModelRow<'_>,
) -> Option<OfRow<RowValue>> {
    let planner = Planner { query, model, parameters };
    let mut conversion = Conversion::new(&planner, row);
    let part = conversion.value(scalar, 0).ok()?.plain;
    Some(OfRow { part, columns: conversion.read })
}

/// Converts a condition over a row. Returns `None` if its value could differ.
pub(crate) fn row_condition(
    query: &BoundQuery,
    model: &Model,
    parameters: &Parameters,
    scalar: &Scalar,
    row: ModelRow<'_>,
) -> Option<OfRow<RowCondition>> {
    let planner = Planner { query, model, parameters };
    let mut conversion = Conversion::new(&planner, row);
    let part = conversion.condition(scalar, 0).ok()?;
    Some(OfRow { part, columns: conversion.read })
}

/// Returns a value that is null for rows that do not meet all conditions. Returns `None` if it is too large.
pub(crate) fn row_value_where(conditions: Vec<RowCondition>, value: RowValue) -> Option<RowValue> {
    if conditions.is_empty() {
        return Some(value);
    }
    let value = when(RowCondition::And(conditions), value, RowValue::Constant(Value::Null));
    (row_value_size(&value) <= MAX_NODES).then_some(value)
}

/// Returns whether the values of a column are numbers of a known type.
pub(crate) fn has_numbers(model: &Model, id: DimensionId) -> bool {
    let dimension = model.dimension(id);
    dimension.ty == DimensionType::Number
        && matches!(dimension.column_type, LogicalType::Integer | LogicalType::Decimal | LogicalType::Float)
}

/// A value, and the same value with 0 for BLANK.
struct Converted {
    /// The value. BLANK is null.
    plain: RowValue,
    filled: RowValue,
    /// The value is null if all of these are null. Empty if it is never null.
    nulls: Vec<RowValue>,
}

impl Converted {
    fn of(plain: RowValue) -> Self {
        match plain {
            RowValue::Constant(Value::Null) => Converted { filled: zero(), nulls: vec![plain.clone()], plain },
            plain if is_never_null(&plain) => Converted { filled: plain.clone(), nulls: Vec::new(), plain },
            plain => {
                let filled = RowValue::Coalesce(Box::new(plain.clone()), Box::new(zero()));
                Converted { filled, nulls: vec![plain.clone()], plain }
            }
        }
    }

    /// Returns a value that is null if all of some values are null, and `filled` otherwise.
    fn unless_null(nulls: Vec<RowValue>, filled: RowValue) -> Self {
        let plain = match nulls.is_empty() {
            true => filled.clone(),
            false => when(all_null(&nulls), RowValue::Constant(Value::Null), filled.clone()),
        };
        Converted { plain, filled, nulls }
    }
}

struct Conversion<'c> {
    planner: &'c Planner<'c>,
    row: ModelRow<'c>,
    sources: Vec<Option<Source>>,
    read: BTreeSet<DimensionId>,
    nodes: usize,
}

impl<'c> Conversion<'c> {
    fn new(planner: &'c Planner<'c>, row: ModelRow<'c>) -> Self {
        let sources = row.columns.iter().map(|id| Some(Source::Group(*id))).collect();
        Conversion { planner, row, sources, read: BTreeSet::new(), nodes: 0 }
    }

    fn value(&mut self, scalar: &Scalar, depth: usize) -> Result<Converted, Problem> {
        self.count(depth, scalar.place)?;
        let converted = self.value_kind(scalar, depth)?;
        // Some conversions repeat their operands.
        if row_value_size(&converted.plain) > MAX_NODES { Err(refusal(scalar.place)) } else { Ok(converted) }
    }

    fn value_kind(&mut self, scalar: &Scalar, depth: usize) -> Result<Converted, Problem> {
        if let Some(constant) = self.planner.constant(scalar)? {
            return number(constant).map(Converted::of).ok_or_else(|| refusal(scalar.place));
        }
        match &scalar.kind {
            ScalarKind::Column { context, column } if *context == self.row.context => {
                let id = self.row.columns.get(*column as usize).copied();
                self.member(id.ok_or_else(|| refusal(scalar.place))?, scalar.place)
            }
            ScalarKind::Related { context, column } if *context == self.row.context => {
                self.member(*column, scalar.place)
            }
            ScalarKind::Variable(id) => match &self.planner.query.variables[id.0 as usize].value {
                BoundExpression::Scalar(value) => self.value(value, depth + 1),
                BoundExpression::Table(_) => Err(refusal(scalar.place)),
            },
            ScalarKind::Block { result, .. } => self.value(result, depth + 1),
            ScalarKind::Negate(inner) => {
                let inner = self.value(inner, depth + 1)?;
                Ok(Converted::of(arithmetic(RowOperator::Subtract, zero(), inner.plain)))
            }
            ScalarKind::Arithmetic { first, rest } => self.chain(first, rest, depth),
            ScalarKind::Call { function, arguments, .. } => {
                self.call(function.operation, arguments, scalar.place, depth)
            }
            _ => Err(refusal(scalar.place)),
        }
    }

    fn count(&mut self, depth: usize, place: Place) -> Result<(), Problem> {
        self.nodes += 1;
        if self.nodes > MAX_NODES || depth > MAX_DEPTH { Err(refusal(place)) } else { Ok(()) }
    }

    fn member(&mut self, id: DimensionId, place: Place) -> Result<Converted, Problem> {
        let name = column_ref(self.planner.model, id).filter(|_| has_numbers(self.planner.model, id));
        self.read.insert(id);
        name.map(|name| Converted::of(RowValue::Member(name))).ok_or_else(|| refusal(place))
    }

    fn chain(&mut self, first: &Scalar, rest: &[(Operator, Scalar)], depth: usize) -> Result<Converted, Problem> {
        let mut left = self.value(first, depth + rest.len())?;
        for (at, (operator, scalar)) in rest.iter().enumerate() {
            let right = self.value(scalar, depth + rest.len() - at)?;
            left = match operator {
                Operator::Add => sum(RowOperator::Add, left, right),
                Operator::Subtract => sum(RowOperator::Subtract, left, right),
                Operator::Multiply => Converted::of(arithmetic(RowOperator::Multiply, left.plain, right.plain)),
                Operator::Divide if is_nonzero(&right.plain) => {
                    Converted::of(arithmetic(RowOperator::Divide, left.plain, right.plain))
                }
                _ => return Err(refusal(scalar.place)),
            };
        }
        Ok(left)
    }

    fn call(
        &mut self,
        operation: Operation,
        arguments: &[Option<Scalar>],
        place: Place,
        depth: usize,
    ) -> Result<Converted, Problem> {
        let given: Vec<&Scalar> = arguments.iter().flatten().collect();
        if given.len() != arguments.len() {
            return Err(refusal(place));
        }
        let depth = depth + 1;
        match (operation, &given[..]) {
            (Operation::If, [condition, value, otherwise @ ..]) => {
                let condition = self.condition(condition, depth)?;
                let value = self.value(value, depth)?.plain;
                let otherwise = self.otherwise(otherwise.first().copied(), depth)?;
                Ok(Converted::of(when(condition, value, otherwise)))
            }
            (Operation::Switch, [expression, cases @ ..]) => self.switch(expression, cases, depth),
            (Operation::Coalesce, [first, rest @ ..]) => {
                let mut value = self.value(first, depth + rest.len())?.plain;
                for (at, one) in rest.iter().enumerate() {
                    let next = self.value(one, depth + rest.len() - at)?.plain;
                    value = RowValue::Coalesce(Box::new(value), Box::new(next));
                }
                Ok(Converted::of(value))
            }
            (Operation::Divide, [dividend, divisor, alternate @ ..]) => {
                let (dividend, divisor) = (self.value(dividend, depth)?.plain, self.value(divisor, depth)?);
                let quotient = arithmetic(RowOperator::Divide, dividend, divisor.plain);
                Ok(Converted::of(match alternate.first() {
                    None => quotient,
                    Some(alternate) => {
                        let alternate = self.value(alternate, depth)?.plain;
                        when(compared(Comparison::Equal, divisor.filled, zero()), alternate, quotient)
                    }
                }))
            }
            (Operation::Abs, [value]) => {
                let value = self.value(value, depth)?.plain;
                let negated = arithmetic(RowOperator::Subtract, zero(), value.clone());
                Ok(Converted::of(when(compared(Comparison::Less, value.clone(), zero()), negated, value)))
            }
            (Operation::Aggregate(aggregation), [one, two]) => self.extreme(aggregation, one, two, place, depth),
            _ => Err(refusal(place)),
        }
    }

    /// Converts the last argument of IF and SWITCH, which is BLANK if it is not given.
    fn otherwise(&mut self, scalar: Option<&Scalar>, depth: usize) -> Result<RowValue, Problem> {
        scalar.map_or(Ok(RowValue::Constant(Value::Null)), |scalar| Ok(self.value(scalar, depth)?.plain))
    }

    /// Converts MIN or MAX of two values. A BLANK counts as 0, but of two BLANKs the result is BLANK.
    fn extreme(
        &mut self,
        aggregation: Aggregation,
        one: &Scalar,
        two: &Scalar,
        place: Place,
        depth: usize,
    ) -> Result<Converted, Problem> {
        let comparison = match aggregation {
            Aggregation::Max => Comparison::GreaterOrEqual,
            Aggregation::Min => Comparison::LessOrEqual,
            _ => return Err(refusal(place)),
        };
        let (one, two) = (self.value(one, depth)?, self.value(two, depth)?);
        let nulls = nulls_of_both(&one, &two);
        let is_first = compared(comparison, one.filled.clone(), two.filled.clone());
        Ok(Converted::unless_null(nulls, when(is_first, one.filled, two.filled)))
    }

    /// Converts SWITCH. The value of the first case that matches strictly is the result.
    fn switch(&mut self, expression: &Scalar, cases: &[&Scalar], depth: usize) -> Result<Converted, Problem> {
        let depth = depth + cases.len() / 2;
        let mut pairs = cases.chunks_exact(2);
        let mut chosen = Vec::new();
        for pair in &mut pairs {
            let condition = self.is_case(expression, pair[0], depth)?;
            chosen.push((condition, self.value(pair[1], depth)?.plain));
        }
        let otherwise = self.otherwise(pairs.remainder().first().copied(), depth)?;
        let chosen = chosen.into_iter().rev();
        Ok(Converted::of(chosen.fold(otherwise, |otherwise, (condition, value)| when(condition, value, otherwise))))
    }

    /// Returns the condition that the expression of SWITCH has the value of a case.
    fn is_case(&mut self, expression: &Scalar, case: &Scalar, depth: usize) -> Result<RowCondition, Problem> {
        if self.planner.constant(expression)? == Some(Value::Boolean(true)) {
            return if case.ty == Type::Boolean { self.condition(case, depth) } else { Err(refusal(case.place)) };
        }
        let mut used = Compared::default();
        let row = Row { context: self.row.context, columns: &self.sources, has_related: true };
        if let Ok(filter) = self.planner.has_value(expression, case, &row, &mut used) {
            self.read.extend(used.columns);
            return Ok(RowCondition::Filter(filter));
        }
        Ok(is_same(self.value(expression, depth)?, self.value(case, depth)?))
    }

    fn condition(&mut self, scalar: &Scalar, depth: usize) -> Result<RowCondition, Problem> {
        self.count(depth, scalar.place)?;
        let converted = self.condition_kind(scalar, depth)?;
        if condition_size(&converted) > MAX_NODES { Err(refusal(scalar.place)) } else { Ok(converted) }
    }

    fn condition_kind(&mut self, scalar: &Scalar, depth: usize) -> Result<RowCondition, Problem> {
        let mut used = Compared::default();
        let row = Row { context: self.row.context, columns: &self.sources, has_related: true };
        if let Ok(filter) = self.planner.condition(scalar, &row, &mut used) {
            self.nodes += used.columns.len();
            self.read.extend(used.columns);
            return Ok(RowCondition::Filter(filter));
        }
        let depth = depth + 1;
        match &scalar.kind {
            ScalarKind::And(all) => self.conditions(all, depth).map(RowCondition::And),
            ScalarKind::Or(all) => self.conditions(all, depth).map(RowCondition::Or),
            ScalarKind::Not(inner) => Ok(RowCondition::Not(Box::new(self.condition(inner, depth)?))),
            ScalarKind::Block { result, .. } => self.condition(result, depth),
            ScalarKind::Variable(id) => match &self.planner.query.variables[id.0 as usize].value {
                BoundExpression::Scalar(value) => self.condition(value, depth),
                BoundExpression::Table(_) => Err(refusal(scalar.place)),
            },
            ScalarKind::Constant(Value::Boolean(value)) => {
                Ok(if *value { RowCondition::And(Vec::new()) } else { RowCondition::Or(Vec::new()) })
            }
            ScalarKind::Compare { operator, blank, left, right } => {
                self.comparison(*operator, *blank, left, right, depth)
            }
            ScalarKind::Call { function, arguments, .. } if function.operation == Operation::IsBlank => {
                match &arguments[..] {
                    [Some(value)] => Ok(RowCondition::IsNull(self.value(value, depth)?.plain)),
                    _ => Err(refusal(scalar.place)),
                }
            }
            // A number is true unless it is 0 or BLANK.
            _ if scalar.ty.is_number() => {
                let value = self.value(scalar, depth)?;
                Ok(compared(Comparison::NotEqual, value.filled, zero()))
            }
            _ => Err(refusal(scalar.place)),
        }
    }

    fn conditions(&mut self, all: &[Scalar], depth: usize) -> Result<Vec<RowCondition>, Problem> {
        all.iter().map(|one| self.condition(one, depth)).collect()
    }

    fn comparison(
        &mut self,
        operator: Operator,
        blank: BlankRule,
        left: &Scalar,
        right: &Scalar,
        depth: usize,
    ) -> Result<RowCondition, Problem> {
        let comparison = match operator {
            Operator::Equal | Operator::StrictEqual => Comparison::Equal,
            Operator::NotEqual => Comparison::NotEqual,
            Operator::Less => Comparison::Less,
            Operator::LessOrEqual => Comparison::LessOrEqual,
            Operator::Greater => Comparison::Greater,
            Operator::GreaterOrEqual => Comparison::GreaterOrEqual,
            _ => return Err(refusal(left.place)),
        };
        let (one, two) = (self.value(left, depth)?, self.value(right, depth)?);
        match blank {
            BlankRule::Strict => Ok(is_same(one, two)),
            BlankRule::Zero | BlankRule::ByValue => Ok(compared(comparison, one.filled, two.filled)),
            BlankRule::EmptyText | BlankRule::False => Err(refusal(left.place)),
        }
    }
}

fn refusal(place: Place) -> Problem {
    not_supported("this expression of a row", place)
}

/// Returns a constant as a value, if it is BLANK or a finite number that every engine represents exactly.
fn number(constant: Value) -> Option<RowValue> {
    let is_number = match &constant {
        Value::Null | Value::Integer(_) => true,
        Value::Decimal(digits) => {
            digits.split_once('.').is_none_or(|(_, fraction)| fraction.trim_end_matches('0').len() <= MAX_FRACTION)
        }
        Value::Float(number) => number.is_finite(),
        _ => false,
    };
    is_number.then_some(RowValue::Constant(constant))
}

fn zero() -> RowValue {
    RowValue::Constant(Value::Integer(0))
}

fn arithmetic(operator: RowOperator, left: RowValue, right: RowValue) -> RowValue {
    RowValue::Arithmetic { operator, left: Box::new(left), right: Box::new(right) }
}

fn when(condition: RowCondition, value: RowValue, otherwise: RowValue) -> RowValue {
    RowValue::When { condition: Box::new(condition), value: Box::new(value), otherwise: Box::new(otherwise) }
}

fn compared(comparison: Comparison, left: RowValue, right: RowValue) -> RowCondition {
    RowCondition::Compare { comparison, left, right }
}

/// Returns the strict comparison of two values: BLANK equals only BLANK.
fn is_same(one: Converted, two: Converted) -> RowCondition {
    let both = [&one.plain, &two.plain].map(|value| RowCondition::IsNull(value.clone())).into();
    RowCondition::Or(vec![compared(Comparison::Equal, one.plain, two.plain), RowCondition::And(both)])
}

fn all_null(values: &[RowValue]) -> RowCondition {
    RowCondition::And(values.iter().map(|value| RowCondition::IsNull(value.clone())).collect())
}

/// Returns the values that are all null if both of two values are null. Empty if one of the two is never null.
fn nulls_of_both(one: &Converted, two: &Converted) -> Vec<RowValue> {
    if one.nulls.is_empty() || two.nulls.is_empty() {
        return Vec::new();
    }
    one.nulls.iter().chain(&two.nulls).cloned().collect()
}

/// Returns a sum or a difference. BLANK counts as 0, but of two BLANKs the result is BLANK.
fn sum(operator: RowOperator, left: Converted, right: Converted) -> Converted {
    let nulls = nulls_of_both(&left, &right);
    Converted::unless_null(nulls, arithmetic(operator, left.filled, right.filled))
}

/// Returns the number of nodes of a value.
pub(crate) fn row_value_size(value: &RowValue) -> usize {
    1 + match value {
        RowValue::Member(_) | RowValue::Constant(_) => 0,
        RowValue::Arithmetic { left, right, .. } | RowValue::Coalesce(left, right) => {
            row_value_size(left) + row_value_size(right)
        }
        RowValue::When { condition, value, otherwise } => {
            condition_size(condition) + row_value_size(value) + row_value_size(otherwise)
        }
    }
}

/// Returns the number of nodes of a condition. A filter counts as one.
fn condition_size(condition: &RowCondition) -> usize {
    1 + match condition {
        RowCondition::Filter(_) => 0,
        RowCondition::Compare { left, right, .. } => row_value_size(left) + row_value_size(right),
        RowCondition::IsNull(value) => row_value_size(value),
        RowCondition::And(all) | RowCondition::Or(all) => all.iter().map(condition_size).sum(),
        RowCondition::Not(inner) => condition_size(inner),
    }
}

fn is_never_null(value: &RowValue) -> bool {
    match value {
        RowValue::Member(_) => false,
        RowValue::Constant(value) => *value != Value::Null,
        RowValue::Arithmetic { operator, left, right } => {
            *operator != RowOperator::Divide && is_never_null(left) && is_never_null(right)
        }
        RowValue::Coalesce(first, second) => is_never_null(first) || is_never_null(second),
        RowValue::When { value, otherwise, .. } => is_never_null(value) && is_never_null(otherwise),
    }
}

/// Returns whether a value is a constant other than 0 and BLANK.
fn is_nonzero(value: &RowValue) -> bool {
    match value {
        RowValue::Constant(Value::Integer(number)) => *number != 0,
        RowValue::Constant(Value::Float(number)) => *number != 0.0,
        RowValue::Constant(Value::Decimal(digits)) => digits.chars().any(|c| matches!(c, '1'..='9')),
        _ => false,
    }
}
