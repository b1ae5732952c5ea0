//! Comparisons in the condition of a join.
//!
//! In: a join's condition. Out: the two operands of each comparison, each with its SQL and its form, from which its
//! type follows if the warehouse does not report one. Not here: operands that no column of a statement can show
//! (subqueries, tuples, parameters of lambdas), and values inside documents, which engines convert as they compare.

use std::ops::ControlFlow;

use sqlparser::ast::{BinaryOperator, Expr, Function, Ident, Query, Value, Visit, Visitor, visit_expressions};
use sqlparser::dialect::Dialect;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::dialect_profile::DialectProfile;
use super::expression_type::expression_type;
use crate::model::{Dimension, DimensionId, Model, Snippet, SqlPart};
use crate::snippet::calls::read_as_engine;
use crate::snippet::form::{is_atomic, is_comparison, without_brackets};
use crate::snippet::stand_in::{PART, cut, part_name, stand_in};
use crate::snippet::tokenize;
use crate::types::LogicalType;

/// The deepest nesting of conditions that are read. A project's own SQL is never deeper.
const MAX_DEPTH: usize = 60;

/// The comparisons of a condition, in reading order.
#[derive(Debug, Default)]
pub(super) struct Comparisons<'s> {
    condition: &'s [SqlPart],
    pub(super) pairs: Vec<[Operand; 2]>,
}

/// One side of a comparison.
#[derive(Debug, Clone)]
pub(super) struct Operand {
    pub(super) sql: Snippet,
    form: Expr,
}

/// Reads the comparisons of a condition; none if the grammar does not accept the printed SQL.
pub(super) fn comparisons<'s>(on: &'s Snippet, dialect: &dyn Dialect) -> Comparisons<'s> {
    let pairs = match &on.parts[..] {
        // The usual join needs no parser.
        [left, SqlPart::Text(operator), right] if operator.trim() == "=" => {
            vec![[Operand::plain(left, 0), Operand::plain(right, 2)]]
        }
        parts => parsed(parts, dialect).unwrap_or_default(),
    };
    Comparisons { condition: &on.parts, pairs }
}

impl Comparisons<'_> {
    /// Returns the SQL of the operands whose types the warehouse can report, with their numbers for [`Self::type_of`].
    /// These are all operands except constants, and the columns inside them.
    pub(super) fn probed(&self) -> impl Iterator<Item = (u32, Snippet)> {
        let is_inside = |part: &SqlPart| {
            let mut larger = self.pairs.iter().flatten().filter(|operand| operand.sql.parts.len() > 1);
            larger.any(|operand| operand.sql.parts.contains(part))
        };
        let is_variable = |sql: &Snippet| sql.parts.iter().any(|part| !matches!(part, SqlPart::Text(_)));
        let operands = self.pairs.iter().flatten().map(|operand| Some(operand.sql.clone()));
        let columns = self.condition.iter().map(move |part| is_inside(part).then(|| single(part.clone())));
        let values = (0u32..).zip(operands.chain(columns));
        values.filter_map(move |(number, sql)| Some((number, sql.filter(is_variable)?)))
    }

    /// Returns the type of the n-th operand: the reported type, or else the type that follows from its form.
    ///
    /// `reported` has the types of [`Self::probed`] by number; `shown` has the type of a column that a dimension shows.
    pub(super) fn type_of(
        &self,
        operand: u32,
        profile: &DialectProfile,
        reported: impl Fn(u32) -> Option<LogicalType>,
        shown: impl Fn(&SqlPart) -> Option<LogicalType>,
    ) -> LogicalType {
        let Some(definition) = self.pairs.iter().flatten().nth(operand as usize) else { return LogicalType::Unknown };
        if let Some(ty) = reported(operand).filter(|ty| *ty != LogicalType::Unknown) {
            return ty;
        }
        let first_column = 2 * self.pairs.len();
        let column = |ident: &Ident| {
            let index = stand_in(ident, PART)?;
            shown(self.condition.get(index)?).or_else(|| reported((first_column + index) as u32))
        };
        expression_type(&definition.form, &profile.name, &column)
    }
}

impl Operand {
    fn plain(part: &SqlPart, index: usize) -> Operand {
        Operand { sql: single(part.clone()), form: Expr::Identifier(Ident::new(part_name(index))) }
    }

    /// Returns whether engines convert the operand to the type of the other side.
    fn is_adaptable(&self) -> bool {
        let Expr::Value(value) = without_brackets(&self.form) else { return false };
        !matches!(value.value, Value::Number(..) | Value::Boolean(_))
    }
}

fn single(part: SqlPart) -> Snippet {
    Snippet { parts: vec![part], is_atomic: true, ..Snippet::default() }
}

/// Returns the dimension that an operand reads.
pub(super) fn dimension_of(model: &Model, operand: &SqlPart) -> Option<DimensionId> {
    match operand {
        SqlPart::Dimension(id) => Some(*id),
        SqlPart::Column { cube, name } => {
            let is_column = |dimension: &Dimension| match &dimension.sql.parts[..] {
                [SqlPart::Column { cube: of, name: shown }] => of == cube && shown == name,
                _ => false,
            };
            let index = model.cube(*cube).dimensions.iter().position(is_column)?;
            Some(DimensionId { cube: *cube, index: index as u32 })
        }
        _ => None,
    }
}

fn parsed(parts: &[SqlPart], dialect: &dyn Dialect) -> Option<Vec<[Operand; 2]>> {
    let mut tokens: Vec<TokenWithSpan> = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        match part {
            SqlPart::Text(text) => tokens.extend(tokenize(text, dialect).ok()?),
            _ => tokens.push(TokenWithSpan::wrap(Token::make_word(&part_name(index), None))),
        }
    }
    let mut parser = Parser::new(dialect).with_recursion_limit(MAX_DEPTH).with_tokens_with_locations(tokens);
    let mut condition = parser.parse_expr().ok().filter(|_| parser.peek_token().token == Token::EOF)?;
    read_as_engine(&mut condition, dialect);
    let mut finder = Finder { parts, hidden: 0, pairs: Vec::new() };
    let _ = condition.visit(&mut finder);
    Some(finder.pairs)
}

struct Finder<'p> {
    parts: &'p [SqlPart],
    /// The number of enclosing subqueries and lambdas, in which names have another meaning.
    hidden: usize,
    pairs: Vec<[Operand; 2]>,
}

impl Finder<'_> {
    fn compare(&mut self, left: &Expr, right: &Expr) {
        if let (Expr::Tuple(lefts), Expr::Tuple(rights)) = (without_brackets(left), without_brackets(right)) {
            if lefts.len() == rights.len() {
                lefts.iter().zip(rights).for_each(|(left, right)| self.compare(left, right));
            }
            return;
        }
        if let (Some(left), Some(right)) = (self.operand(left), self.operand(right))
            && !left.is_adaptable()
            && !right.is_adaptable()
        {
            self.pairs.push([left, right]);
        }
    }

    fn operand(&self, expr: &Expr) -> Option<Operand> {
        let expr = without_brackets(expr);
        let is_value = visit_expressions(expr, |inner| match inner {
            Expr::Subquery(_)
            | Expr::Exists { .. }
            | Expr::InSubquery { .. }
            | Expr::Tuple(_)
            | Expr::Array(_)
            | Expr::Interval(_)
            | Expr::Lambda(_)
            | Expr::JsonAccess { .. }
            | Expr::BinaryOp { op: BinaryOperator::Arrow | BinaryOperator::HashArrow, .. } => ControlFlow::Break(()),
            Expr::Function(function) if reads_document(function) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        });
        let parts = cut(&expr.to_string(), self.parts);
        let sql = Snippet { parts, is_atomic: is_atomic(expr), ..Snippet::default() };
        is_value.is_continue().then(|| Operand { sql, form: expr.clone() })
    }
}

impl Visitor for Finder<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.hidden += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.hidden -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Lambda(_) => self.hidden += 1,
            _ if self.hidden > 0 => {}
            Expr::BinaryOp { left, op, right } if is_comparison(op) => self.compare(left, right),
            Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => self.compare(left, right),
            Expr::InList { expr, list, .. } => list.iter().for_each(|item| self.compare(expr, item)),
            Expr::Between { expr, low, high, .. } => {
                self.compare(expr, low);
                self.compare(expr, high);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if matches!(expr, Expr::Lambda(_)) {
            self.hidden -= 1;
        }
        ControlFlow::Continue(())
    }
}

fn reads_document(function: &Function) -> bool {
    let name = function.name.0.last().and_then(|part| part.as_ident());
    name.is_some_and(|name| ["json", "variant"].iter().any(|word| name.value.to_ascii_lowercase().starts_with(word)))
}
