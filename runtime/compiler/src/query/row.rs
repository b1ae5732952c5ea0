//! Aggregates of values that are computed for each row of a cube.
//!
//! In: expressions over dimensions, which the evaluation of DAX creates. Requests of clients contain none. Out: the
//! input of `resolve`. As in SQL, a value is null if an operand is null, and a comparison with null is not true. The
//! rules of DAX for BLANK are written into the expressions. Not here: columns, types, SQL.

use std::sync::Arc;

use super::{Filter, MemberRef};
use crate::types::Value;

/// An aggregate of one value of each row of a cube.
#[derive(Debug, Clone, PartialEq)]
pub struct RowAggregate {
    /// The key in result rows.
    pub key: Arc<str>,
    pub cube: Arc<str>,
    pub function: RowFunction,
    pub value: RowValue,
}

/// The function of a [`RowAggregate`]. All of them skip null.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RowFunction {
    Sum,
    Average,
    Min,
    Max,
    Count,
    /// The number of different values. It takes a dimension of any type.
    CountDistinct,
}

/// A number, or null, that is computed from a row of a cube and the rows that it joins.
#[derive(Debug, Clone, PartialEq)]
pub enum RowValue {
    /// A dimension of the cube, or of a cube that it reaches by to-one joins. Its column must contain numbers.
    Member(MemberRef),
    /// A number or null.
    Constant(Value),
    Arithmetic {
        operator: RowOperator,
        left: Box<RowValue>,
        right: Box<RowValue>,
    },
    /// The first value, or the second one if the first is null.
    Coalesce(Box<RowValue>, Box<RowValue>),
    /// One of two values, by a condition.
    When {
        condition: Box<RowCondition>,
        value: Box<RowValue>,
        otherwise: Box<RowValue>,
    },
}

/// An operator of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowOperator {
    Add,
    Subtract,
    Multiply,
    /// Division of doubles. The quotient is null if the divisor is 0.
    Divide,
}

/// A condition on a row, which is true or false.
#[derive(Debug, Clone, PartialEq)]
pub enum RowCondition {
    /// A filter over dimensions.
    Filter(Filter),
    /// A comparison, which is false if a value is null.
    Compare {
        comparison: Comparison,
        left: RowValue,
        right: RowValue,
    },
    IsNull(RowValue),
    And(Vec<RowCondition>),
    Or(Vec<RowCondition>),
    Not(Box<RowCondition>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl RowValue {
    /// Visits the members that the value reads. The second argument is true for members in conditions.
    pub fn for_each_member<'r>(&'r self, visit: &mut dyn FnMut(&'r MemberRef, bool)) {
        match self {
            RowValue::Member(name) => visit(name, false),
            RowValue::Constant(_) => {}
            RowValue::Arithmetic { left, right, .. } | RowValue::Coalesce(left, right) => {
                left.for_each_member(visit);
                right.for_each_member(visit);
            }
            RowValue::When { condition, value, otherwise } => {
                condition.for_each_member(&mut |name| visit(name, true));
                value.for_each_member(visit);
                otherwise.for_each_member(visit);
            }
        }
    }
}

impl RowCondition {
    fn for_each_member<'r>(&'r self, visit: &mut dyn FnMut(&'r MemberRef)) {
        match self {
            RowCondition::Filter(filter) => members_of_filter(filter, visit),
            RowCondition::Compare { left, right, .. } => {
                left.for_each_member(&mut |name, _| visit(name));
                right.for_each_member(&mut |name, _| visit(name));
            }
            RowCondition::IsNull(value) => value.for_each_member(&mut |name, _| visit(name)),
            RowCondition::And(all) | RowCondition::Or(all) => all.iter().for_each(|one| one.for_each_member(visit)),
            RowCondition::Not(inner) => inner.for_each_member(visit),
        }
    }
}

fn members_of_filter<'r>(filter: &'r Filter, visit: &mut dyn FnMut(&'r MemberRef)) {
    match filter {
        Filter::Condition { member, .. } => visit(member),
        Filter::NoRow { .. } => {}
        Filter::And(all) | Filter::Or(all) => all.iter().for_each(|one| members_of_filter(one, visit)),
        Filter::Not(inner) => members_of_filter(inner, visit),
    }
}
