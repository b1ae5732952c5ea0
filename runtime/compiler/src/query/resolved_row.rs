//! Resolved aggregates of values of rows: ids instead of names, and the type of each value.

use std::sync::Arc;

use super::resolved::{Operand, Predicate};
use super::row::{Comparison, RowFunction, RowOperator};
use crate::model::{Aggregate, AggregateFunction, CubeId, DimensionId, Snippet};
use crate::types::{LogicalType, Value};

/// An aggregate of one value of each row of a fact.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedRowAggregate {
    pub key: Arc<str>,
    pub fact: CubeId,
    pub function: RowFunction,
    pub value: TypedRowValue,
}

/// A value with its type: an integer, a decimal or a double. The value of a count of different values can have any type.
#[derive(Debug, Clone, PartialEq)]
pub struct TypedRowValue {
    pub kind: RowValueKind,
    pub ty: LogicalType,
}

#[derive(Debug, Clone, PartialEq)]
pub enum RowValueKind {
    Dimension(DimensionId),
    Constant(Value),
    Arithmetic { operator: RowOperator, left: Box<TypedRowValue>, right: Box<TypedRowValue> },
    Coalesce(Box<TypedRowValue>, Box<TypedRowValue>),
    When { condition: Box<ResolvedRowCondition>, value: Box<TypedRowValue>, otherwise: Box<TypedRowValue> },
}

#[derive(Debug, Clone, PartialEq)]
pub enum ResolvedRowCondition {
    Filter(Predicate),
    Compare { comparison: Comparison, left: TypedRowValue, right: TypedRowValue },
    IsNull(TypedRowValue),
    And(Vec<ResolvedRowCondition>),
    Or(Vec<ResolvedRowCondition>),
    Not(Box<ResolvedRowCondition>),
}

impl ResolvedRowAggregate {
    /// Returns the aggregate for the plan, with an empty argument. The plan has the value in an
    /// [`ArgumentForm`](crate::plan::ArgumentForm).
    pub(crate) fn aggregate(&self) -> &'static Aggregate {
        let of_type = match self.value.ty {
            LogicalType::Integer => &INTEGERS,
            LogicalType::Decimal => &DECIMALS,
            LogicalType::Float => &DOUBLES,
            _ => &OTHERS,
        };
        &of_type[self.function as usize]
    }
}

static INTEGERS: [Aggregate; 6] = aggregates(LogicalType::Integer);
static DECIMALS: [Aggregate; 6] = aggregates(LogicalType::Decimal);
static DOUBLES: [Aggregate; 6] = aggregates(LogicalType::Float);
static OTHERS: [Aggregate; 6] = aggregates(LogicalType::Unknown);

/// Returns the aggregates of values of a type, in the order of [`RowFunction`].
const fn aggregates(ty: LogicalType) -> [Aggregate; 6] {
    [
        aggregate(AggregateFunction::Sum, ty),
        aggregate(AggregateFunction::Avg, ty),
        aggregate(AggregateFunction::Min, ty),
        aggregate(AggregateFunction::Max, ty),
        aggregate(AggregateFunction::Count, ty),
        aggregate(AggregateFunction::CountDistinct, ty),
    ]
}

const fn aggregate(function: AggregateFunction, argument_type: LogicalType) -> Aggregate {
    let argument = Snippet { parts: Vec::new(), is_atomic: false, is_infallible: false, has_query: false };
    Aggregate { function, argument: Some(argument), filters: Vec::new(), argument_type, is_converted: false }
}

impl TypedRowValue {
    /// Visits every dimension that the value reads. The second argument is true for dimensions in conditions.
    pub fn for_each_dimension(&self, visit: &mut dyn FnMut(DimensionId, bool)) {
        match &self.kind {
            RowValueKind::Dimension(id) => visit(*id, false),
            RowValueKind::Constant(_) => {}
            RowValueKind::Arithmetic { left, right, .. } | RowValueKind::Coalesce(left, right) => {
                left.for_each_dimension(visit);
                right.for_each_dimension(visit);
            }
            RowValueKind::When { condition, value, otherwise } => {
                condition.for_each_dimension(visit);
                value.for_each_dimension(visit);
                otherwise.for_each_dimension(visit);
            }
        }
    }
}

impl ResolvedRowCondition {
    fn for_each_dimension(&self, visit: &mut dyn FnMut(DimensionId, bool)) {
        let mut read = |value: &TypedRowValue| value.for_each_dimension(&mut |id, _| visit(id, true));
        match self {
            ResolvedRowCondition::Compare { left, right, .. } => {
                read(left);
                read(right);
            }
            ResolvedRowCondition::IsNull(value) => read(value),
            ResolvedRowCondition::Filter(predicate) => predicate.for_each_operand(&mut |operand| {
                if let Operand::Dimension { id, .. } = operand {
                    visit(*id, true);
                }
            }),
            ResolvedRowCondition::And(all) | ResolvedRowCondition::Or(all) => {
                all.iter().for_each(|one| one.for_each_dimension(visit));
            }
            ResolvedRowCondition::Not(inner) => inner.for_each_dimension(visit),
        }
    }
}
