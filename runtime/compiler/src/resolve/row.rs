//! Resolves aggregates of values of rows: names to dimensions, and the type of each value.

use std::sync::Arc;

use super::Resolver;
use super::filter::FilterTarget;
use crate::model::{CubeId, DimensionType};
use crate::query::{
    ExpectedMember, MemberRef, Predicate, QueryError, ResolvedRowAggregate, ResolvedRowCondition, RowAggregate,
    RowCondition, RowFunction, RowOperator, RowValue, RowValueKind, TypedRowValue,
};
use crate::types::{LogicalType, Value};

impl Resolver<'_> {
    /// Resolves the aggregates of values of rows.
    pub(super) fn computed(&self) -> Result<Vec<ResolvedRowAggregate>, QueryError> {
        self.query.computed.iter().map(|one| self.row_aggregate(one)).collect()
    }

    fn row_aggregate(&self, one: &RowAggregate) -> Result<ResolvedRowAggregate, QueryError> {
        let fact = self.names.public_cube(&one.cube)?.id;
        let value = match (one.function, &one.value) {
            (RowFunction::CountDistinct, RowValue::Member(name)) => self.counted_member(name)?,
            (_, value) => self.row_value(value, fact)?,
        };
        Ok(ResolvedRowAggregate { key: Arc::clone(&one.key), fact, function: one.function, value })
    }

    fn row_value(&self, value: &RowValue, fact: CubeId) -> Result<TypedRowValue, QueryError> {
        let boxed = |value: &RowValue| self.row_value(value, fact).map(Box::new);
        Ok(match value {
            RowValue::Member(name) => self.row_member(name)?,
            RowValue::Constant(value) => {
                let ty = match value {
                    // A null has the narrowest type, so that it does not change the type of another value.
                    Value::Null | Value::Integer(_) => LogicalType::Integer,
                    Value::Decimal(_) => LogicalType::Decimal,
                    _ => LogicalType::Float,
                };
                TypedRowValue { kind: RowValueKind::Constant(value.clone()), ty }
            }
            RowValue::Arithmetic { operator, left, right } => {
                let (left, right) = (boxed(left)?, boxed(right)?);
                let ty = match operator {
                    RowOperator::Divide => LogicalType::Float,
                    _ => wider(left.ty, right.ty),
                };
                TypedRowValue { kind: RowValueKind::Arithmetic { operator: *operator, left, right }, ty }
            }
            RowValue::Coalesce(first, second) => {
                let (first, second) = (boxed(first)?, boxed(second)?);
                let ty = wider(first.ty, second.ty);
                TypedRowValue { kind: RowValueKind::Coalesce(first, second), ty }
            }
            RowValue::When { condition, value, otherwise } => {
                let condition = Box::new(self.row_condition(condition, fact)?);
                let (value, otherwise) = (boxed(value)?, boxed(otherwise)?);
                let ty = wider(value.ty, otherwise.ty);
                TypedRowValue { kind: RowValueKind::When { condition, value, otherwise }, ty }
            }
        })
    }

    /// Returns the dimension of a count of different values, which can have any type.
    fn counted_member(&self, name: &MemberRef) -> Result<TypedRowValue, QueryError> {
        let id = self.names.dimension(name)?;
        Ok(TypedRowValue { kind: RowValueKind::Dimension(id), ty: self.names.model.dimension(id).column_type })
    }

    fn row_member(&self, name: &MemberRef) -> Result<TypedRowValue, QueryError> {
        let id = self.names.dimension(name)?;
        let dimension = self.names.model.dimension(id);
        let ty = dimension.column_type;
        if dimension.ty != DimensionType::Number || !is_number(ty) || name.granularity.is_some() {
            return Err(QueryError::WrongKind {
                name: Arc::clone(&name.text),
                expected: ExpectedMember::NumericDimension,
                found: "dimension of other values",
            });
        }
        Ok(TypedRowValue { kind: RowValueKind::Dimension(id), ty })
    }

    fn row_condition(&self, condition: &RowCondition, fact: CubeId) -> Result<ResolvedRowCondition, QueryError> {
        let all = |conditions: &[RowCondition]| {
            conditions.iter().map(|one| self.row_condition(one, fact)).collect::<Result<Vec<_>, _>>()
        };
        Ok(match condition {
            RowCondition::Filter(filter) => {
                let filters = self.filters_of(Some(fact));
                filters.check_size(std::slice::from_ref(filter))?;
                ResolvedRowCondition::Filter(filters.predicate(filter, FilterTarget::Rows)?)
            }
            RowCondition::Compare { comparison, left, right } => ResolvedRowCondition::Compare {
                comparison: *comparison,
                left: self.row_value(left, fact)?,
                right: self.row_value(right, fact)?,
            },
            RowCondition::IsNull(value) => ResolvedRowCondition::IsNull(self.row_value(value, fact)?),
            RowCondition::And(conditions) => ResolvedRowCondition::And(all(conditions)?),
            RowCondition::Or(conditions) => ResolvedRowCondition::Or(all(conditions)?),
            RowCondition::Not(inner) => match self.row_condition(inner, fact)? {
                ResolvedRowCondition::Filter(predicate) => {
                    ResolvedRowCondition::Filter(Predicate::Not(Box::new(predicate)))
                }
                inner => ResolvedRowCondition::Not(Box::new(inner)),
            },
        })
    }
}

fn is_number(ty: LogicalType) -> bool {
    matches!(ty, LogicalType::Integer | LogicalType::Decimal | LogicalType::Float)
}

/// Returns the wider of two types of numbers.
fn wider(one: LogicalType, two: LogicalType) -> LogicalType {
    use LogicalType::{Decimal, Float, Integer};
    match (one, two) {
        (Integer, Integer) => Integer,
        (Float, _) | (_, Float) => Float,
        _ => Decimal,
    }
}
