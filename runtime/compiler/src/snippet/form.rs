//! The form of parsed expressions.

use sqlparser::ast::{BinaryOperator, Expr};

/// Returns whether an expression needs no parentheses as an operand.
pub(crate) fn is_atomic(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Identifier(_)
            | Expr::CompoundIdentifier(_)
            | Expr::Function(_)
            | Expr::Value(_)
            | Expr::Nested(_)
            | Expr::Case { .. }
            | Expr::Extract { .. }
            | Expr::Ceil { .. }
            | Expr::Floor { .. }
            | Expr::Substring { .. }
            | Expr::Trim { .. }
            | Expr::Position { .. }
            | Expr::Overlay { .. }
            | Expr::Tuple(_)
            | Expr::Array(_)
            | Expr::TypedString(_)
    ) || matches!(expr, Expr::Cast { kind, .. } if !matches!(kind, sqlparser::ast::CastKind::DoubleColon))
}

/// Returns an expression without its outer parentheses.
pub(crate) fn without_brackets(mut expr: &Expr) -> &Expr {
    while let Expr::Nested(inner) = expr {
        expr = inner;
    }
    expr
}

/// Returns whether an operator compares two values.
pub(crate) fn is_comparison(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq, Spaceship};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | Spaceship)
}
