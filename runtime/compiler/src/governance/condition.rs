//! Converts a hook's condition to a predicate of the plan.
//!
//! In: a [`HookCondition`] over one cube. Out: a [`Predicate`] whose values have their members' types, or the fault of
//! the hook. Values are never cast silently.

use std::sync::Arc;

use super::check::{MAX_CONDITION_DEPTH, MAX_CONDITION_NODES, ObligationFault};
use super::{HookCondition, TestOperator};
use crate::model::{Cube, Dimension, DimensionId, DimensionType, Member};
use crate::plan::fit;
use crate::query::{Bound, Operand, Predicate, Test, TextMatch};
use crate::types::{LogicalType, Value};

/// Converts a condition on a cube or one of its aliases, which have the same dimensions.
///
/// # Errors
/// A dimension is unknown, a value has a different type, or the tree is too deep or too large.
pub(super) fn predicate(cube: &Cube, own_name: &str, condition: &HookCondition) -> Result<Predicate, ObligationFault> {
    let mut reading = ConditionReader { cube, own_name, nodes: 0 };
    reading.condition(condition, 1)
}

struct ConditionReader<'a> {
    cube: &'a Cube,
    own_name: &'a str,
    nodes: usize,
}

impl ConditionReader<'_> {
    fn condition(&mut self, condition: &HookCondition, depth: usize) -> Result<Predicate, ObligationFault> {
        if depth > MAX_CONDITION_DEPTH {
            return Err(ObligationFault::TooDeep { limit: MAX_CONDITION_DEPTH });
        }
        self.nodes += 1;
        if self.nodes > MAX_CONDITION_NODES {
            return Err(ObligationFault::TooLarge { limit: MAX_CONDITION_NODES });
        }
        let mut all =
            |inner: &[HookCondition]| inner.iter().map(|c| self.condition(c, depth + 1)).collect::<Result<Vec<_>, _>>();
        Ok(match condition {
            HookCondition::All(inner) => Predicate::And(all(inner)?),
            HookCondition::Any(inner) => Predicate::Or(all(inner)?),
            HookCondition::Not(inner) => Predicate::Not(Box::new(self.condition(inner, depth + 1)?)),
            HookCondition::Always(true) => Predicate::And(Vec::new()),
            HookCondition::Always(false) => Predicate::Or(Vec::new()),
            HookCondition::Test { member, operator, values } => {
                let id = self.dimension(member)?;
                let dimension = &self.cube.dimensions[id.index as usize];
                let test = Tested { dimension, member, operator: *operator }.test(values)?;
                Predicate::Test { operand: Operand::Dimension { id, granularity: None }, test }
            }
        })
    }

    fn dimension(&self, member: &Arc<str>) -> Result<DimensionId, ObligationFault> {
        let prefixed = member.strip_prefix(self.own_name).and_then(|rest| rest.strip_prefix('.'));
        let (cube, name) = (Arc::from(self.own_name), prefixed.unwrap_or(member));
        match self.cube.member(name) {
            Some(Member::Dimension(id)) => Ok(id),
            Some(_) => Err(ObligationFault::NotADimension { cube, member: member.clone() }),
            None => Err(ObligationFault::UnknownMember { cube, member: member.clone() }),
        }
    }
}

/// Returns the type that a dimension's values are compared as.
pub(super) fn type_of(dimension: &Dimension) -> LogicalType {
    match (dimension.column_type, dimension.ty) {
        (LogicalType::Unknown, DimensionType::String) => LogicalType::Text,
        (LogicalType::Unknown, DimensionType::Number) => LogicalType::Decimal,
        (LogicalType::Unknown, DimensionType::Boolean) => LogicalType::Boolean,
        (LogicalType::Unknown, DimensionType::Time) => LogicalType::Timestamp,
        (column_type, _) => column_type,
    }
}

struct Tested<'a> {
    dimension: &'a Dimension,
    member: &'a Arc<str>,
    operator: TestOperator,
}

impl Tested<'_> {
    fn test(&self, values: &[Value]) -> Result<Test, ObligationFault> {
        let not = |test: Test| Test::Not(Box::new(test));
        let after = |value, inclusive| Test::Range { low: Some(Bound { value, inclusive }), high: None };
        let before = |value, inclusive| Test::Range { low: None, high: Some(Bound { value, inclusive }) };
        Ok(match self.operator {
            TestOperator::IsNull | TestOperator::IsNotNull => {
                let [] = values else { return Err(self.count("no value", values.len())) };
                if self.operator == TestOperator::IsNull { Test::IsNull } else { not(Test::IsNull) }
            }
            TestOperator::Eq => self.equals(self.one(values)?)?,
            TestOperator::Ne => not(self.equals(self.one(values)?)?),
            TestOperator::Lt => before(self.ordered(self.one(values)?)?, false),
            TestOperator::Le => before(self.ordered(self.one(values)?)?, true),
            TestOperator::Gt => after(self.ordered(self.one(values)?)?, false),
            TestOperator::Ge => after(self.ordered(self.one(values)?)?, true),
            TestOperator::Between => {
                let [low, high] = values else { return Err(self.count("two values", values.len())) };
                let bound = |value| self.ordered(value).map(|value| Some(Bound { value, inclusive: true }));
                Test::Range { low: bound(low)?, high: bound(high)? }
            }
            TestOperator::InList => self.list(values)?,
            TestOperator::Contains => self.text_match(TextMatch::Contains, values)?,
            TestOperator::StartsWith => self.text_match(TextMatch::StartsWith, values)?,
            TestOperator::EndsWith => self.text_match(TextMatch::EndsWith, values)?,
        })
    }

    fn one<'v>(&self, values: &'v [Value]) -> Result<&'v Value, ObligationFault> {
        match values {
            [value] => Ok(value),
            _ => Err(self.count("one value", values.len())),
        }
    }

    fn equals(&self, value: &Value) -> Result<Test, ObligationFault> {
        if *value == Value::Null { Ok(Test::IsNull) } else { self.fitted(value).map(Test::Equals) }
    }

    fn list(&self, values: &[Value]) -> Result<Test, ObligationFault> {
        let or_null = values.contains(&Value::Null);
        let present = values.iter().filter(|value| **value != Value::Null);
        let values = present.map(|value| self.fitted(value)).collect::<Result<Vec<_>, _>>()?;
        Ok(match (values.is_empty(), or_null) {
            (true, true) => Test::IsNull,
            (true, false) => Test::Never,
            (false, or_null) => Test::InList { values, or_null },
        })
    }

    fn text_match(&self, kind: TextMatch, values: &[Value]) -> Result<Test, ObligationFault> {
        match (self.one(values)?, type_of(self.dimension)) {
            (text @ Value::Text(_), LogicalType::Text | LogicalType::Unknown) => {
                Ok(Test::Match { kind, text: text.clone() })
            }
            (value, ty) => Err(self.invalid_value(value, ty)),
        }
    }

    /// Converts a value for a comparison of order. Booleans and other types without an order are refused.
    fn ordered(&self, value: &Value) -> Result<Value, ObligationFault> {
        match (self.fitted(value)?, type_of(self.dimension)) {
            (_, ty @ (LogicalType::Boolean | LogicalType::Geo | LogicalType::Binary)) => {
                Err(self.invalid_value(value, ty))
            }
            (fitted, _) => Ok(fitted),
        }
    }

    /// Returns a value as a value of the member's type. A value of a different type must be equal to a value of the
    /// member's type.
    fn fitted(&self, value: &Value) -> Result<Value, ObligationFault> {
        const DAY: i64 = 86_400_000_000;
        let ty = type_of(self.dimension);
        let fitted = match (ty, value) {
            (_, Value::Null) => None,
            (_, Value::Float(number)) if !number.is_finite() => None,
            (LogicalType::Date, Value::Date(_)) => Some(value.clone()),
            (LogicalType::Date, Value::Timestamp(micros)) if micros % DAY == 0 => {
                i32::try_from(micros / DAY).ok().map(Value::Date)
            }
            (LogicalType::Timestamp, Value::Date(days)) => Some(Value::Timestamp(i64::from(*days) * DAY)),
            (LogicalType::TimestampTz, Value::Date(days)) => Some(Value::TimestampTz(i64::from(*days) * DAY)),
            (LogicalType::Timestamp, Value::Timestamp(_)) => Some(value.clone()),
            (LogicalType::TimestampTz, Value::Timestamp(micros)) => Some(Value::TimestampTz(*micros)),
            (LogicalType::Text, Value::Text(_)) => Some(value.clone()),
            // A number does not fit a string member: `5` and `5.0` are one number, but two strings.
            (LogicalType::Text, _) => None,
            // The digits are parsed as a number, so that zeros and signs have the same form as in all other values.
            (ty, Value::Decimal(digits)) => fit(Value::Text(digits.clone()), ty),
            (ty, value) => fit(value.clone(), ty),
        };
        fitted.ok_or_else(|| self.invalid_value(value, ty))
    }

    fn invalid_value(&self, value: &Value, expected: LogicalType) -> ObligationFault {
        let (member, operator) = (self.member.clone(), self.operator.as_str());
        ObligationFault::WrongType { member, operator, found: value.logical_type(), expected }
    }

    fn count(&self, expected: &'static str, found: usize) -> ObligationFault {
        ObligationFault::ValueCount { member: self.member.clone(), operator: self.operator.as_str(), expected, found }
    }
}
