//! Detects expressions that cannot fail on any row, by their form.
//!
//! In: a walked expression. Out: whether it consists only of columns, tests for null, and comparisons of columns with
//! strings or a caller's values. Engines convert such strings and values to the column's type, and do not convert
//! the column. A join's condition may also compare columns. All other expressions may fail on some row: calls, casts,
//! arithmetic, and comparisons of a column with a number, because some engines then cast a column of strings. An
//! infallible expression lets the engine use an index under a policy (`sql::scope`). Other expressions only lose the
//! use of the index.

use sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, Value};

use super::SqlPart;
use super::scope::Place;
use crate::snippet::form::is_comparison;
use crate::snippet::stand_in::{PART, stand_in};

/// Returns whether an expression cannot fail on any row. `parts` are the references behind its placeholders.
pub(super) fn is_infallible(expr: &Expr, parts: &[SqlPart], place: Place) -> bool {
    let form = Form { parts, compares_columns: matches!(place, Place::Join(_)) };
    form.is_column(expr) || form.is_test(expr)
}

struct Form<'p> {
    parts: &'p [SqlPart],
    compares_columns: bool,
}

impl Form<'_> {
    fn part(&self, expr: &Expr) -> Option<&SqlPart> {
        match expr {
            Expr::Identifier(ident) => self.parts.get(stand_in(ident, PART)?),
            // `{orders}.amount`: the whole reference is one stand-in.
            Expr::CompoundIdentifier(idents) => match idents.as_slice() {
                [ident] => self.parts.get(stand_in(ident, PART)?),
                _ => None,
            },
            Expr::Nested(inner) => self.part(inner),
            _ => None,
        }
    }

    fn is_column(&self, expr: &Expr) -> bool {
        matches!(self.part(expr), Some(SqlPart::Column { .. } | SqlPart::Dimension(_)))
    }

    fn is_constant(&self, expr: &Expr) -> bool {
        let is_text = matches!(expr, Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_)));
        is_text || matches!(self.part(expr), Some(SqlPart::User(_)))
    }

    fn is_test(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Nested(inner) | Expr::UnaryOp { op: UnaryOperator::Not, expr: inner } => self.is_test(inner),
            Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, right } => {
                self.is_test(left) && self.is_test(right)
            }
            Expr::BinaryOp { left, op, right } if is_comparison(op) => {
                match (self.is_column(left), self.is_column(right)) {
                    (true, true) => self.compares_columns,
                    (true, false) => self.is_constant(right),
                    (false, true) => self.is_constant(left),
                    (false, false) => false,
                }
            }
            Expr::IsNull(inner) | Expr::IsNotNull(inner) => self.is_column(inner),
            Expr::InList { expr, list, .. } => self.is_column(expr) && list.iter().all(|item| self.is_constant(item)),
            _ => false,
        }
    }
}
