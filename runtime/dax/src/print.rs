//! Prints a tree on one line, with as few parentheses as its meaning allows.
//!
//! In: a tree without invalid nodes. Out: text that parses to the same tree.

use std::fmt;

use crate::spelling::is_plain_name;
use crate::tree::{
    Definition, Evaluation, Expression, ExpressionKind, Literal, Name, Number, PrefixOperator, Query, Variable,
};

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.definitions.is_empty() {
            write!(f, "DEFINE ")?;
        }
        for definition in &self.definitions {
            match definition {
                Definition::Measure { table, name, expression } => {
                    write!(f, "MEASURE {table}{} = {expression} ", Bracketed(&name.text))?;
                }
                Definition::Variable(variable) => write!(f, "{variable} ")?,
            }
        }
        separated(f, &self.evaluations, " ")
    }
}

impl fmt::Display for Evaluation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EVALUATE {}", self.table)?;
        for (at, key) in self.order.iter().enumerate() {
            write!(f, "{}{}", if at == 0 { " ORDER BY " } else { ", " }, key.expression)?;
            f.write_str(if key.descending { " DESC" } else { " ASC" })?;
        }
        if !self.start_at.is_empty() {
            f.write_str(" START AT ")?;
        }
        separated(f, &self.start_at, ", ")
    }
}

impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VAR {} = {}", self.name, self.value)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_quoted { write!(f, "'{}'", self.text.replace('\'', "''")) } else { f.write_str(&self.text) }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.write(f))
    }
}

impl Expression {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            ExpressionKind::Literal(literal) => write!(f, "{literal}"),
            ExpressionKind::Parameter(name) => write!(f, "@{name}"),
            ExpressionKind::Name(name) => write!(f, "{name}"),
            ExpressionKind::Member { table, name } => {
                if let Some(table) = table {
                    write!(f, "{table}")?;
                }
                write!(f, "{}", Bracketed(&name.text))
            }
            ExpressionKind::Call { function, arguments } => {
                write!(f, "{function}(")?;
                separated(f, arguments, ", ")?;
                f.write_str(")")
            }
            ExpressionKind::Prefix { operator, operand } => {
                f.write_str(match operator {
                    PrefixOperator::Minus => "-",
                    PrefixOperator::Plus => "+",
                    PrefixOperator::Not => "NOT ",
                })?;
                // Without parentheses, two minus signs would start a comment.
                let is_prefix = matches!(operand.kind, ExpressionKind::Prefix { .. });
                parenthesized(f, operand, is_prefix || operand.precedence() < operator.precedence())
            }
            ExpressionKind::Chain { first, rest } => {
                let own = self.precedence();
                parenthesized(f, first, first.precedence() < own)?;
                for (operator, operand) in rest {
                    write!(f, " {} ", operator.as_str())?;
                    parenthesized(f, operand, operand.precedence() <= own)?;
                }
                Ok(())
            }
            ExpressionKind::Tuple(values) => {
                f.write_str("(")?;
                separated(f, values, ", ")?;
                f.write_str(")")
            }
            ExpressionKind::Rows(rows) => {
                f.write_str("{")?;
                separated(f, rows, ", ")?;
                f.write_str("}")
            }
            ExpressionKind::Block { variables, result } => {
                separated(f, variables, " ")?;
                write!(f, " RETURN {result}")
            }
            ExpressionKind::Omitted => Ok(()),
            ExpressionKind::Invalid => f.write_str("…"),
        }
    }
}

fn parenthesized(f: &mut fmt::Formatter<'_>, expression: &Expression, is_needed: bool) -> fmt::Result {
    if is_needed || matches!(expression.kind, ExpressionKind::Block { .. }) {
        write!(f, "({expression})")
    } else {
        write!(f, "{expression}")
    }
}

fn separated<T: fmt::Display>(f: &mut fmt::Formatter<'_>, items: &[T], separator: &str) -> fmt::Result {
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            f.write_str(separator)?;
        }
        write!(f, "{item}")?;
    }
    Ok(())
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Number(Number::Integer(value)) => write!(f, "{value}"),
            Literal::Number(Number::Decimal(digits)) if digits.contains('.') => f.write_str(digits),
            Literal::Number(Number::Decimal(digits)) => write!(f, "{digits}."),
            Literal::Number(Number::Double(value)) => write!(f, "{value:E}"),
            Literal::Text(text) => write!(f, "\"{}\"", text.replace('"', "\"\"")),
            Literal::Date(date) => write!(f, "dt\"{date}\""),
            Literal::Boolean(true) => f.write_str("TRUE"),
            Literal::Boolean(false) => f.write_str("FALSE"),
        }
    }
}

/// A name in brackets.
pub(crate) struct Bracketed<'a>(pub &'a str);

impl fmt::Display for Bracketed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}]", self.0.replace(']', "]]"))
    }
}

/// The name of a table, in quotes if it needs them.
pub(crate) struct TableName<'a>(pub &'a str);

impl fmt::Display for TableName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if is_plain_name(self.0) { f.write_str(self.0) } else { write!(f, "'{}'", self.0.replace('\'', "''")) }
    }
}
