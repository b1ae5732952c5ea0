//! Converts values that are computed for each row to SQL expressions.
//!
//! In: a typed value over dimensions. Out: an expression over a fact's joined rows. Operands have the types that keep
//! the result exact: integers are widened, so that products of small integers do not overflow.

use super::ast::SqlExpr;
use super::dialect_profile::Op;
use super::expression::Expressions;
use crate::plan::Fact;
use crate::query::{Comparison, ResolvedRowCondition, RowOperator, RowValueKind, TypedRowValue};
use crate::types::{LogicalType, Value};

impl<'a> Expressions<'a> {
    /// Returns a value of a row.
    pub(super) fn row_value(&self, fact: &'a Fact<'a>, value: &'a TypedRowValue) -> SqlExpr<'a> {
        match &value.kind {
            RowValueKind::Dimension(id) => self.dimension(fact, *id),
            RowValueKind::Constant(constant) => self.constant(constant),
            RowValueKind::Arithmetic { operator, left, right } => {
                let op = match operator {
                    RowOperator::Add => Op::Add,
                    RowOperator::Subtract => Op::Sub,
                    RowOperator::Multiply => Op::Mul,
                    RowOperator::Divide => Op::Div,
                };
                SqlExpr::op(op, [left, right].map(|side| self.operand(fact, side, value.ty)).into())
            }
            RowValueKind::Coalesce(first, second) => {
                SqlExpr::op(Op::Coalesce, [first, second].map(|side| self.branch(fact, side, value.ty)).into())
            }
            RowValueKind::When { condition, value: chosen, otherwise } => SqlExpr::when(
                vec![self.row_condition(fact, condition)],
                self.branch(fact, chosen, value.ty),
                match &otherwise.kind {
                    RowValueKind::Constant(Value::Null) => None,
                    _ => Some(self.branch(fact, otherwise, value.ty)),
                },
            ),
        }
    }

    /// Returns an operand of an operation whose result has the type `ty`. The columns of integers may be narrow.
    fn operand(&self, fact: &'a Fact<'a>, value: &'a TypedRowValue, ty: LogicalType) -> SqlExpr<'a> {
        match (&value.kind, ty) {
            (RowValueKind::Dimension(_), LogicalType::Integer) => self.row_value(fact, value).cast(ty),
            _ => self.branch(fact, value, ty),
        }
    }

    /// Returns a value as a double if `ty` is the type of doubles. The engine unites the types of exact numbers.
    fn branch(&self, fact: &'a Fact<'a>, value: &'a TypedRowValue, ty: LogicalType) -> SqlExpr<'a> {
        let own = self.row_value(fact, value);
        if ty == LogicalType::Float && value.ty != ty { own.cast(ty) } else { own }
    }

    /// Returns a number as a literal, so that the engine derives the type of an exact result from its digits.
    fn constant(&self, constant: &'a Value) -> SqlExpr<'a> {
        match constant {
            Value::Integer(number) => SqlExpr::Integer(*number),
            Value::Decimal(_) => SqlExpr::Number(constant),
            Value::Null => SqlExpr::Null(Some(LogicalType::Integer)),
            other => SqlExpr::Number(other).cast(LogicalType::Float),
        }
    }

    fn row_condition(&self, fact: &'a Fact<'a>, condition: &'a ResolvedRowCondition) -> SqlExpr<'a> {
        let all = |conditions: &'a [ResolvedRowCondition]| -> Vec<SqlExpr<'a>> {
            conditions.iter().map(|one| self.row_condition(fact, one)).collect()
        };
        match condition {
            ResolvedRowCondition::Filter(predicate) => self.scope(&fact.tree).predicate(predicate, false),
            ResolvedRowCondition::Compare { comparison, left, right } => {
                let op = match comparison {
                    Comparison::Equal => Op::Eq,
                    Comparison::NotEqual => Op::Ne,
                    Comparison::Less => Op::Lt,
                    Comparison::LessOrEqual => Op::Le,
                    Comparison::Greater => Op::Gt,
                    Comparison::GreaterOrEqual => Op::Ge,
                };
                let has_double = left.ty == LogicalType::Float || right.ty == LogicalType::Float;
                let ty = if has_double { LogicalType::Float } else { left.ty };
                SqlExpr::op(op, [left, right].map(|side| self.branch(fact, side, ty)).into())
            }
            ResolvedRowCondition::IsNull(value) => SqlExpr::op(Op::IsNull, vec![self.row_value(fact, value)]),
            ResolvedRowCondition::And(conditions) if conditions.is_empty() => SqlExpr::Boolean(true),
            ResolvedRowCondition::Or(conditions) if conditions.is_empty() => SqlExpr::Boolean(false),
            ResolvedRowCondition::And(conditions) => SqlExpr::And(all(conditions)),
            ResolvedRowCondition::Or(conditions) => SqlExpr::Or(all(conditions)),
            // The negation of null must be true.
            ResolvedRowCondition::Not(inner) => SqlExpr::when(
                vec![self.row_condition(fact, inner)],
                SqlExpr::Boolean(false),
                Some(SqlExpr::Boolean(true)),
            ),
        }
    }
}
