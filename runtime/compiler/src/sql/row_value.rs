//! Converts values that are computed for each row to SQL expressions.
//!
//! In: a typed value over dimensions. Out: an expression over a fact's joined rows. Operands have the types that keep
//! the result exact: integers are widened, so that products of small integers do not overflow, and doubles of single
//! precision as well. An exact product of decimals requires a template of the dialect.

use super::ast::SqlExpr;
use super::dialect_profile::Op;
use super::expression::{Expressions, WIDE_INTEGER};
use super::scope::RowScope;
use crate::plan::Fact;
use crate::query::{Comparison, ResolvedRowCondition, RowOperator, RowValueKind, TypedRowValue};
use crate::types::{LogicalType, Value};

/// The product of two exact numbers of which at least one is a decimal. Dialects whose products can be rounded do not
/// have it.
const EXACT_PRODUCT: &str = "exact_product";

impl<'a> Expressions<'a> {
    /// Returns the argument of an aggregate. An operation can fail, so it is evaluated only on visible rows.
    pub(super) fn row_argument(&self, fact: &'a Fact<'a>, value: &'a TypedRowValue) -> SqlExpr<'a> {
        let scope = self.scope(&fact.tree);
        match (&value.kind, value.ty) {
            // Some engines add values of single precision in single precision.
            (RowValueKind::Dimension(id), LogicalType::Float) => scope.comparable(*id).cast(value.ty),
            (RowValueKind::Dimension(id), _) => scope.comparable(*id),
            (_, LogicalType::Float) => {
                scope.where_visible(fact.tree.cube, |scope| self.operand(scope, value, value.ty))
            }
            _ => scope.where_visible(fact.tree.cube, |scope| self.row_value(scope, value)),
        }
    }

    fn row_value(&self, scope: RowScope<'a>, value: &'a TypedRowValue) -> SqlExpr<'a> {
        match &value.kind {
            RowValueKind::Dimension(id) => scope.operand(*id),
            RowValueKind::Constant(constant) => constant_number(constant),
            RowValueKind::Arithmetic { operator, left, right } => {
                let args = [left, right].map(|side| self.operand(scope, side, value.ty)).into();
                match operator {
                    RowOperator::Add => SqlExpr::op(Op::Add, args),
                    RowOperator::Subtract => SqlExpr::op(Op::Sub, args),
                    RowOperator::Multiply if value.ty == LogicalType::Decimal => {
                        SqlExpr::Call { name: EXACT_PRODUCT, args }
                    }
                    RowOperator::Multiply => SqlExpr::op(Op::Mul, args),
                    RowOperator::Divide => SqlExpr::op(Op::Div, args),
                }
            }
            RowValueKind::Coalesce(first, second) => {
                SqlExpr::op(Op::Coalesce, [first, second].map(|side| self.branch(scope, side, value.ty)).into())
            }
            RowValueKind::When { condition, value: chosen, otherwise } => SqlExpr::when(
                vec![self.row_condition(scope, condition)],
                self.branch(scope, chosen, value.ty),
                match &otherwise.kind {
                    RowValueKind::Constant(Value::Null) => None,
                    _ => Some(self.branch(scope, otherwise, value.ty)),
                },
            ),
        }
    }

    /// Returns an operand of an operation whose result has the type `ty`. The columns of integers may be narrow, and
    /// those of doubles may have single precision.
    fn operand(&self, scope: RowScope<'a>, value: &'a TypedRowValue, ty: LogicalType) -> SqlExpr<'a> {
        let is_wide = matches!(value.kind, RowValueKind::Constant(_) | RowValueKind::Arithmetic { .. });
        match ty {
            _ if is_wide || value.ty != ty => self.branch(scope, value, ty),
            LogicalType::Integer if self.widens_integers => {
                SqlExpr::Call { name: WIDE_INTEGER.0, args: vec![self.row_value(scope, value)] }
            }
            LogicalType::Integer | LogicalType::Float => self.row_value(scope, value).cast(ty),
            _ => self.row_value(scope, value),
        }
    }

    /// Returns a value as a double if `ty` is the type of doubles. The engine unites the types of exact numbers.
    fn branch(&self, scope: RowScope<'a>, value: &'a TypedRowValue, ty: LogicalType) -> SqlExpr<'a> {
        let own = self.row_value(scope, value);
        if ty == LogicalType::Float && value.ty != ty { own.cast(ty) } else { own }
    }

    fn row_condition(&self, scope: RowScope<'a>, condition: &'a ResolvedRowCondition) -> SqlExpr<'a> {
        let all = |conditions: &'a [ResolvedRowCondition]| -> Vec<SqlExpr<'a>> {
            conditions.iter().map(|one| self.row_condition(scope, one)).collect()
        };
        match condition {
            ResolvedRowCondition::Filter(predicate) => scope.predicate(predicate, false),
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
                SqlExpr::op(op, [left, right].map(|side| self.branch(scope, side, ty)).into())
            }
            ResolvedRowCondition::IsNull(value) => SqlExpr::op(Op::IsNull, vec![self.row_value(scope, value)]),
            ResolvedRowCondition::And(conditions) if conditions.is_empty() => SqlExpr::Boolean(true),
            ResolvedRowCondition::Or(conditions) if conditions.is_empty() => SqlExpr::Boolean(false),
            ResolvedRowCondition::And(conditions) => SqlExpr::And(all(conditions)),
            ResolvedRowCondition::Or(conditions) => SqlExpr::Or(all(conditions)),
            // The negation of null must be true.
            ResolvedRowCondition::Not(inner) => SqlExpr::when(
                vec![self.row_condition(scope, inner)],
                SqlExpr::Boolean(false),
                Some(SqlExpr::Boolean(true)),
            ),
        }
    }
}

/// Returns a number as a literal, so that the engine derives the type of an exact result from its digits.
fn constant_number(constant: &Value) -> SqlExpr<'_> {
    match constant {
        Value::Integer(number) => SqlExpr::Integer(*number),
        Value::Decimal(_) => SqlExpr::Number(constant),
        Value::Null => SqlExpr::Null(Some(LogicalType::Integer)),
        other => SqlExpr::Number(other).cast(LogicalType::Float),
    }
}
