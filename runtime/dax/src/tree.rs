//! The tree of a query before its names are resolved: its parts as they were written, with their places.
//!
//! In: tokens, through the parser. Out: data for the binder and the printer. Operators of one precedence form one
//! [`ExpressionKind::Chain`], so that a sum of a thousand terms is not a thousand levels deep.

use std::sync::Arc;

use jiff::civil::DateTime;

use crate::place::Place;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Query {
    pub definitions: Vec<Definition>,
    pub evaluations: Vec<Evaluation>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Definition {
    Measure { table: Name, name: Name, expression: Expression },
    Variable(Variable),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    pub table: Expression,
    pub order: Vec<OrderKey>,
    pub start_at: Vec<Expression>,
    /// The text from `EVALUATE` to the end of its expression.
    pub place: Place,
}

#[derive(Debug, Clone, PartialEq)]
pub struct OrderKey {
    pub expression: Expression,
    pub descending: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    pub name: Name,
    pub value: Expression,
}

/// A name as it was written, without quotes and brackets.
#[derive(Debug, Clone, PartialEq)]
pub struct Name {
    pub text: Arc<str>,
    /// True if the name is in single quotes. It is then the name of a table.
    pub is_quoted: bool,
    pub place: Place,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    pub kind: ExpressionKind,
    pub place: Place,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ExpressionKind {
    Literal(Literal),
    /// `@name`
    Parameter(Arc<str>),
    /// A variable, a table or a keyword.
    Name(Name),
    /// `Table[Name]` or `[Name]`: a column or a measure.
    Member {
        table: Option<Name>,
        name: Name,
    },
    Call {
        function: Name,
        arguments: Vec<Expression>,
    },
    Prefix {
        operator: PrefixOperator,
        operand: Box<Expression>,
    },
    /// Operators of one precedence, from left to right.
    Chain {
        first: Box<Expression>,
        rest: Vec<(Operator, Expression)>,
    },
    /// `(a, b)`
    Tuple(Vec<Expression>),
    /// `{a, b}` or `{(a, b), (c, d)}`
    Rows(Vec<Expression>),
    /// `VAR a = … RETURN …`
    Block {
        variables: Vec<Variable>,
        result: Box<Expression>,
    },
    /// An omitted argument between commas.
    Omitted,
    /// A part that could not be parsed and for which a problem was reported.
    Invalid,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    Number(Number),
    Text(Arc<str>),
    Date(DateTime),
    Boolean(bool),
}

/// A number as it was written, without a sign.
#[derive(Debug, Clone, PartialEq)]
pub enum Number {
    Integer(i64),
    /// A number that is not a 64-bit integer, as digits with at most one point between them.
    Decimal(Arc<str>),
    /// A number with an exponent.
    Double(f64),
}

impl Number {
    pub(crate) fn double(value: f64) -> Self {
        Number::Double(value)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrefixOperator {
    Minus,
    Plus,
    Not,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operator {
    Power,
    Multiply,
    Divide,
    Add,
    Subtract,
    Concatenate,
    Equal,
    StrictEqual,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    And,
    Or,
}

/// The precedence of operators, from the loosest to the tightest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Precedence {
    Or,
    And,
    Not,
    Comparison,
    Concatenation,
    Sum,
    Product,
    Sign,
    Power,
    Operand,
}

impl Operator {
    pub fn precedence(self) -> Precedence {
        match self {
            Operator::Power => Precedence::Power,
            Operator::Multiply | Operator::Divide => Precedence::Product,
            Operator::Add | Operator::Subtract => Precedence::Sum,
            Operator::Concatenate => Precedence::Concatenation,
            Operator::Equal
            | Operator::StrictEqual
            | Operator::NotEqual
            | Operator::Less
            | Operator::LessOrEqual
            | Operator::Greater
            | Operator::GreaterOrEqual
            | Operator::In => Precedence::Comparison,
            Operator::And => Precedence::And,
            Operator::Or => Precedence::Or,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Operator::Power => "^",
            Operator::Multiply => "*",
            Operator::Divide => "/",
            Operator::Add => "+",
            Operator::Subtract => "-",
            Operator::Concatenate => "&",
            Operator::Equal => "=",
            Operator::StrictEqual => "==",
            Operator::NotEqual => "<>",
            Operator::Less => "<",
            Operator::LessOrEqual => "<=",
            Operator::Greater => ">",
            Operator::GreaterOrEqual => ">=",
            Operator::In => "IN",
            Operator::And => "&&",
            Operator::Or => "||",
        }
    }
}

impl PrefixOperator {
    pub fn precedence(self) -> Precedence {
        match self {
            PrefixOperator::Minus | PrefixOperator::Plus => Precedence::Sign,
            PrefixOperator::Not => Precedence::Not,
        }
    }
}

impl Expression {
    pub(crate) fn invalid(place: Place) -> Self {
        Expression { kind: ExpressionKind::Invalid, place }
    }

    pub fn precedence(&self) -> Precedence {
        match &self.kind {
            ExpressionKind::Chain { rest, .. } => {
                rest.first().map_or(Precedence::Operand, |(operator, _)| operator.precedence())
            }
            ExpressionKind::Prefix { operator, .. } => operator.precedence(),
            // A block extends as far to the right as possible, so an operand that is a block needs parentheses.
            ExpressionKind::Block { .. } => Precedence::Or,
            _ => Precedence::Operand,
        }
    }
}
