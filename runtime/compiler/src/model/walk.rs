//! Finds the names in a parsed expression and replaces them with finished parts.
//!
//! In: the tree of one expression, whose braces are stand-ins. Out: the same tree with stand-ins for [`SqlPart`]s,
//! which `read` prints and splits. Bare names become columns of the current cube, except in subqueries, whose scope is
//! unknown, and except names that are a lambda's parameters or a unit.

use std::ops::ControlFlow;

use sqlparser::ast::{
    AccessExpr, BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    OneOrManyWithParens, Query, Value, VisitMut, VisitorMut,
};
use sqlparser::dialect::Dialect;

use super::infallible::is_infallible;
use super::read::{Braces, put_back};
use super::scope::{NameScope, Place, Target};
use super::{Aggregate, Compared, CubeId, Member, Snippet, SqlPart};
use crate::diagnostic::Code;
use crate::snippet::calls::{has_methods, method_of, picks_columns};
use crate::snippet::form::{is_atomic, is_comparison, without_brackets};
use crate::snippet::grammar::{Problem, column_name, offset_of, placeholder};
use crate::snippet::stand_in::{PART, PLAIN, REFERENCE, cut, part_name, stand_in};
use crate::snippet::{aggregate, is_unit, takes_unit};
use crate::types::LogicalType;

pub(super) struct Walk<'w> {
    scope: NameScope<'w>,
    dialect: &'w dyn Dialect,
    braces: &'w [Braces],
    text: &'w str,
    parts: Vec<SqlPart>,
    problems: Vec<Problem>,
    /// True if the text has a problem that was reported elsewhere.
    is_broken: bool,
    subqueries: usize,
    /// True if the expression contains a subquery.
    has_query: bool,
    /// The parameters of the enclosing lambdas.
    parameters: Vec<String>,
    /// The number of entries in `parameters` that each enclosing lambda added.
    brought: Vec<usize>,
}

impl<'w> Walk<'w> {
    pub(super) fn new(scope: NameScope<'w>, dialect: &'w dyn Dialect, braces: &'w [Braces], text: &'w str) -> Self {
        Walk {
            scope,
            dialect,
            braces,
            text,
            parts: Vec::new(),
            problems: Vec::new(),
            is_broken: false,
            subqueries: 0,
            has_query: false,
            parameters: Vec::new(),
            brought: Vec::new(),
        }
    }

    pub(super) fn expression(&mut self, expr: &mut Expr) {
        let _ = expr.visit(self);
    }

    pub(super) fn finish(self, expr: &Expr) -> Result<Snippet, Vec<Problem>> {
        if self.is_broken || !self.problems.is_empty() {
            return Err(self.problems);
        }
        Ok(self.snippet(expr))
    }

    /// Returns a walked expression as a snippet.
    fn snippet(&self, expr: &Expr) -> Snippet {
        Snippet {
            parts: cut(&expr.to_string(), &self.parts),
            is_atomic: is_atomic(expr),
            is_infallible: is_infallible(expr, &self.parts, self.scope.place),
            has_query: self.has_query,
        }
    }

    fn part(&mut self, part: SqlPart) -> Ident {
        self.parts.push(part);
        Ident::new(part_name(self.parts.len() - 1))
    }

    fn report(&mut self, problem: Problem, ident: &Ident) {
        let at = offset_of(self.text, ident.span.start);
        self.problems.push(problem.at(at, ident.value.chars().count()));
    }

    fn column(&mut self, cube: CubeId, ident: &Ident) -> Ident {
        self.part(SqlPart::Column { cube, name: column_name(ident) })
    }

    /// Visits an unqualified name. Returns its replacement, if it has one.
    fn bare(&mut self, ident: &Ident) -> Option<Ident> {
        if let Some(index) = stand_in(ident, REFERENCE) {
            let reference = &self.braces[index];
            return match &reference.target {
                Target::Part(part) => Some(self.part(part.clone())),
                Target::Cube(cube) => {
                    let name = &self.scope.model.cube(*cube).name;
                    let problem = Problem::new(
                        Code::MissingColumn,
                        format!("`{}` refers to the rows of `{name}`, not to a value", reference.source),
                        format!("Name a column, as in `{}.some_column`.", reference.source),
                    );
                    self.problems.push(problem.at(reference.offset, reference.source.chars().count()));
                    None
                }
            };
        }
        let is_plain = stand_in(ident, PART).is_some() || ident.value.starts_with(PLAIN);
        if is_plain || self.subqueries > 0 || self.parameters.contains(&ident.value) {
            return None;
        }
        match self.scope.place {
            Place::Metric => match self.scope.name(&ident.value, false) {
                Ok(Target::Part(part)) => Some(self.part(part)),
                Ok(Target::Cube(_)) => None,
                Err(problem) => {
                    self.is_broken = true;
                    if let Some(problem) = problem {
                        self.report(problem, ident);
                    }
                    None
                }
            },
            Place::Number => {
                let is_member = self.scope.own().is_some_and(|own| own.member(&ident.value).is_some());
                let hint = if is_member {
                    format!("Write `{{{}}}` for the member.", ident.value)
                } else {
                    format!("Aggregate it, as in `SUM({})`, or name a measure in braces.", ident.value)
                };
                let message = format!("the column `{}` is outside an aggregate", ident.value);
                self.report(Problem::new(Code::BareColumn, message, hint), ident);
                None
            }
            _ => {
                let cube = self.scope.cube?;
                Some(self.column(cube, ident))
            }
        }
    }

    /// Reads a name with several parts, such as `{orders}.amount`, `orders.amount` or `payload.id`. Returns the known
    /// first parts as one name, followed by the others.
    fn compound(&mut self, idents: &[Ident]) -> Option<Vec<Ident>> {
        let [first, second, rest @ ..] = idents else { return None };
        let with_rest = |head: Ident| {
            let plain = rest.iter().map(|ident| Ident { value: format!("{PLAIN}{}", ident.value), ..ident.clone() });
            std::iter::once(head).chain(plain).collect()
        };
        if let Some(index) = stand_in(first, REFERENCE) {
            return match &self.braces[index].target {
                Target::Cube(_) if self.scope.place == Place::Number => {
                    let message = format!("the column `{}` is outside an aggregate", second.value);
                    let hint = format!("Aggregate it, as in `SUM({}.{})`.", self.braces[index].source, second.value);
                    self.report(Problem::new(Code::BareColumn, message, hint), second);
                    None
                }
                Target::Cube(cube) => {
                    let column = self.column(*cube, second);
                    Some(with_rest(column))
                }
                Target::Part(part) => {
                    let head = self.part(part.clone());
                    let plain = Ident { value: format!("{PLAIN}{}", second.value), ..second.clone() };
                    let mut idents: Vec<Ident> = with_rest(head);
                    idents.insert(1, plain);
                    Some(idents)
                }
            };
        }
        if self.subqueries > 0 || stand_in(first, PART).is_some() || self.parameters.contains(&first.value) {
            return None;
        }
        if self.scope.place == Place::Metric {
            return match self.scope.member_of(&first.value, &second.value) {
                Ok(Target::Part(part)) => Some(with_rest(self.part(part))),
                Ok(Target::Cube(_)) => None,
                Err(problem) => {
                    self.is_broken = true;
                    if let Some(problem) = problem {
                        let at = offset_of(self.text, first.span.start);
                        let length = first.value.chars().count() + 1 + second.value.chars().count();
                        self.problems.push(problem.at(at, length).narrowed(self.text));
                    }
                    None
                }
            };
        }
        if let Some(cube) = self.scope.cube_here(&first.value) {
            if self.scope.place == Place::Number {
                return self.bare(second).map(with_rest);
            }
            return Some(with_rest(self.column(cube, second)));
        }
        if self.scope.cube_named(&first.value).is_some() {
            let message = format!("`{}` is a cube; write its name in braces", first.value);
            let hint = format!("Write `{{{}}}.{}`.", first.value, second.value);
            self.report(Problem::new(Code::MissingBraces, message, hint), first);
            return None;
        }
        // The name is a field of a structured column.
        let head = self.bare(first)?;
        let mut idents: Vec<Ident> = with_rest(head);
        idents.insert(1, Ident { value: format!("{PLAIN}{}", second.value), ..second.clone() });
        Some(idents)
    }

    /// Reads a call of an aggregate function. In a `number` measure it becomes a hidden aggregate; elsewhere it is a
    /// mistake.
    fn aggregate(&mut self, function: &mut Function) -> Option<Ident> {
        let name = aggregate::name(function).unwrap_or_default().to_ascii_uppercase();
        let span = function.name.0.first().and_then(|part| part.as_ident()).map(|ident| ident.span);
        let at = span.map_or(0, |span| offset_of(self.text, span.start));
        let length = name.chars().count();
        let inside = argument_of(function);
        let misplaced =
            |message: String, hint: &str| Problem::new(Code::MisplacedAggregate, message, hint).at(at, length);
        match self.scope.place {
            Place::Number => {}
            Place::Metric => {
                let is_column = |inside: &str| {
                    let parts = inside.split_once('.');
                    let cube = parts.and_then(|(cube, _)| self.scope.model.cube_named(cube.trim_matches(['{', '}'])));
                    cube.zip(parts).is_some_and(|(cube, (_, name))| {
                        !matches!(cube.member(name.trim_end_matches('}')), Some(Member::Measure(_)))
                    })
                };
                let hint = match &inside {
                    Some(inside) if is_column(inside) => {
                        let column = inside.split_once('.').map_or("", |(_, column)| column.trim_end_matches('}'));
                        format!("Define a measure over `{column}` in its cube, and refer to the measure here.")
                    }
                    Some(inside) => format!("Write `{inside}`. The `type` of a measure already aggregates it."),
                    None => "Define a measure in a cube, and refer to it here.".to_owned(),
                };
                self.problems.push(misplaced(format!("{name} aggregates rows, which a metric does not have"), &hint));
                return None;
            }
            Place::Measure => {
                let hint = match &inside {
                    Some(inside) => {
                        format!("Write `sql: {inside}` and let `type` aggregate it, or write `type: number`.")
                    }
                    None => "Let `type` aggregate the values, or write `type: number`.".to_owned(),
                };
                self.problems.push(misplaced(
                    format!("{name} is an aggregate inside a measure whose `type` already aggregates"),
                    &hint,
                ));
                return None;
            }
            _ => {
                let hint = "Define it as a measure, or compute it in the cube's `sql`.";
                self.problems.push(misplaced(format!("{name} is an aggregate, but each row needs a value here"), hint));
                return None;
            }
        }
        let call = match aggregate::call(function) {
            Ok(call) => call,
            Err(problem) => {
                self.problems.push(problem.at(at, length));
                return None;
            }
        };
        let argument = match call.argument.map(|argument| self.rows(argument)) {
            None => None,
            Some(Some(snippet)) => Some(snippet),
            Some(None) => return None,
        };
        let filters = match call.filter.map(|filter| self.rows(filter)) {
            None => Vec::new(),
            Some(Some(snippet)) => vec![snippet],
            Some(None) => return None,
        };
        let aggregate = Aggregate {
            function: call.function,
            argument,
            filters,
            argument_type: LogicalType::Unknown,
            is_converted: false,
        };
        Some(self.part(SqlPart::Aggregate(Box::new(aggregate))))
    }

    /// Reads an expression inside an aggregation, over the rows of the current cube.
    fn rows(&mut self, mut expr: Expr) -> Option<Snippet> {
        let scope = NameScope { place: Place::Measure, ..self.scope };
        let mut walk = Walk::new(scope, self.dialect, self.braces, self.text);
        walk.expression(&mut expr);
        match walk.finish(&expr) {
            Ok(snippet) => Some(snippet),
            Err(problems) => {
                self.is_broken = true;
                self.problems.extend(problems);
                None
            }
        }
    }

    /// Adds an exact division that returns null if the divisor is 0. Only the results of aggregates are divided in this
    /// way.
    fn divide(&mut self, left: &Expr, right: &Expr) -> Ident {
        let side = |walk: &Self, expr: &Expr| Box::new(walk.snippet(expr));
        let divide = SqlPart::Divide(side(self, left), side(self, right));
        self.part(divide)
    }

    /// Stores the compared expression in a caller's value, if one of the two sides is such a value.
    fn compare(&mut self, one: &Expr, other: &Expr) {
        let (one, other) = (without_brackets(one), without_brackets(other));
        let user = |expr: &Expr| match expr {
            Expr::Identifier(ident) => {
                stand_in(ident, PART).filter(|index| matches!(self.parts.get(*index), Some(SqlPart::User(_))))
            }
            _ => None,
        };
        let Some(index) = user(one).filter(|_| user(other).is_none() && self.subqueries == 0) else { return };
        let sql = self.snippet(other);
        if let Some(SqlPart::User(user)) = self.parts.get_mut(index) {
            user.compared = Some(Box::new(Compared { sql, ty: LogicalType::Unknown }));
        }
    }

    fn compare_in(&mut self, expr: &Expr) {
        match expr {
            Expr::BinaryOp { left, op, right } if is_comparison(op) => {
                self.compare(left, right);
                self.compare(right, left);
            }
            Expr::InList { expr, list, .. } => list.iter().for_each(|item| self.compare(item, expr)),
            Expr::Between { expr, low, high, .. } => {
                self.compare(low, expr);
                self.compare(high, expr);
            }
            Expr::Like { expr, pattern, .. } => self.compare(pattern, expr),
            Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => {
                self.compare(left, right);
                self.compare(right, left);
            }
            _ => {}
        }
    }

    fn enter_call(&mut self, function: &mut Function) {
        let name = aggregate::name(function).unwrap_or_default().to_ascii_lowercase();
        if let FunctionArguments::List(list) = &mut function.args {
            let names_unit = takes_unit(&name);
            for arg in &mut list.args {
                match arg {
                    FunctionArg::ExprNamed { name: Expr::Identifier(ident), .. } => protect(ident),
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Identifier(ident)))
                        if names_unit && is_unit(&ident.value) =>
                    {
                        protect(ident);
                    }
                    _ => {}
                }
            }
        }
    }

    fn leave_lambda(&mut self) {
        let brought = self.brought.pop().unwrap_or(0);
        self.parameters.truncate(self.parameters.len().saturating_sub(brought));
    }

    /// Reports a call that reads columns without naming them. Returns true if the call is of this kind.
    fn hidden_columns(&mut self, function: &Function) -> bool {
        let Some(ident) = function.name.0.last().and_then(|part| part.as_ident()) else { return false };
        let method = method_of(&function.name).filter(|_| has_methods(self.dialect));
        let problem = if let Some(of) = method {
            let of: Vec<String> = of.iter().map(|ident| put_back(&ident.to_string(), self.braces)).collect();
            let message = format!("`{}.{}()` calls a function of a schema, or of a column", of.join("."), ident.value);
            let hint = format!(
                "Write `{}({})` for the column. Make your own functions available without a schema.",
                ident.value,
                of.join(".")
            );
            Problem::new(Code::MethodCall, message, hint)
        } else if picks_columns(&function.name) {
            let message = "COLUMNS selects several columns by a pattern";
            Problem::new(Code::ColumnPattern, message, "Name one column.")
        } else {
            return false;
        };
        self.report(problem, ident);
        true
    }
}

impl VisitorMut for Walk<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.subqueries += 1;
        self.has_query = true;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.subqueries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(function) => {
                let is_aggregate = aggregate::name(function).is_some_and(aggregate::is_aggregate);
                if self.subqueries == 0 && is_aggregate && function.over.is_none() {
                    let replaced = self.aggregate(function);
                    // The arguments of a refused call are not walked: their columns would be reported as well.
                    let ident = replaced.unwrap_or_else(|| Ident::new(PLAIN.to_string()));
                    *expr = Expr::Identifier(ident);
                    return ControlFlow::Continue(());
                }
                if self.subqueries == 0 && function.over.is_some() {
                    let problem = Problem::new(
                        Code::MisplacedWindow,
                        format!("window function `{}` is not allowed here", function.name),
                        "Compute it in the cube's `sql`, and refer to its column here.",
                    );
                    let ident = function.name.0.first().and_then(|part| part.as_ident()).cloned();
                    self.report(problem, &ident.unwrap_or_else(|| Ident::new("")));
                    *expr = Expr::Identifier(Ident::new(PLAIN.to_string()));
                    return ControlFlow::Continue(());
                }
                if self.subqueries == 0 && self.hidden_columns(function) {
                    *expr = Expr::Identifier(Ident::new(PLAIN.to_string()));
                    return ControlFlow::Continue(());
                }
                self.enter_call(function);
            }
            Expr::Lambda(lambda) => {
                let params = match &lambda.params {
                    OneOrManyWithParens::One(param) => vec![param.name.value.clone()],
                    OneOrManyWithParens::Many(params) => params.iter().map(|param| param.name.value.clone()).collect(),
                };
                self.brought.push(params.len());
                self.parameters.extend(params);
            }
            Expr::Value(value) if matches!(value.value, Value::Placeholder(_)) => {
                let at = offset_of(self.text, value.span.start);
                let source = value.to_string();
                self.problems.push(placeholder(&source).at(at, source.chars().count()));
            }
            Expr::CompoundFieldAccess { access_chain, .. } => {
                for access in access_chain {
                    if let AccessExpr::Dot(Expr::Identifier(ident)) = access {
                        protect(ident);
                    }
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(ident) => {
                if let Some(replacement) = self.bare(ident) {
                    *ident = replacement;
                }
            }
            Expr::CompoundIdentifier(idents) => {
                if let Some(replacement) = self.compound(idents) {
                    *idents = replacement;
                }
            }
            Expr::BinaryOp { left, op: BinaryOperator::Divide, right }
                if matches!(self.scope.place, Place::Number | Place::Metric) && self.subqueries == 0 =>
            {
                let ident = self.divide(left, right);
                *expr = Expr::Identifier(ident);
            }
            Expr::Lambda(_) => self.leave_lambda(),
            other if self.scope.place == Place::Policy => self.compare_in(other),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Returns the only argument of a call in its printed form, if it contains no stand-ins.
fn argument_of(function: &Function) -> Option<String> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))] = list.args.as_slice() else { return None };
    let text = argument.to_string();
    (!text.contains(|c| ('\u{E000}'..='\u{F8FF}').contains(&c))).then_some(text)
}

/// Marks a name that does not refer to a column.
fn protect(ident: &mut Ident) {
    if !ident.value.starts_with([PLAIN, REFERENCE]) {
        ident.value.insert(0, PLAIN);
    }
}
