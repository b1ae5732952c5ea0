//! Finds the columns that an expression is computed from.
//!
//! In: an expression's tree. Out: the origins of its value. Windows, filters of aggregates and conditions of subqueries
//! become uses of the relation. Chains of operators lean left and may be thousands of operators long, so the tree is
//! walked with a stack instead of recursion.

use std::sync::Arc;

use sqlparser::ast::{
    AccessExpr, Array, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments, Ident,
    JsonPathElem, LambdaFunction, OneOrManyWithParens, Query, Subscript, WindowFrameBound, WindowSpec, WindowType,
};

use super::arena::Reason;
use super::relation::{ColumnOrigins, Use};
use super::scope::{Analysis, AnalysisResult, Clause, idents};
use terrane_compiler::snippet::calls::{method_of, picks_columns};
use terrane_compiler::snippet::{is_aggregate, is_unit, takes_unit};

/// A part of a tree that is still to be visited.
enum Open<'e> {
    Expr(&'e Expr),
    Call(&'e Function),
    Query(&'e Query),
}

impl Analysis<'_, '_> {
    /// Returns the origins of an expression's value.
    pub(super) fn expr(&mut self, root: &Expr, clause: Clause) -> AnalysisResult<ColumnOrigins> {
        let mut origins = ColumnOrigins::new();
        let mut open = vec![Open::Expr(root)];
        while let Some(next) = open.pop() {
            self.spend(1)?;
            match next {
                Open::Expr(Expr::Identifier(ident)) => origins.extend(self.bare(ident, clause)?),
                Open::Expr(Expr::CompoundIdentifier(path)) => origins.extend(self.compound(path, clause)?),
                Open::Expr(Expr::CompoundFieldAccess { root, access_chain }) => {
                    self.field_access(root, access_chain, clause, &mut open, &mut origins)?;
                }
                Open::Expr(Expr::QualifiedWildcard(name, _)) => {
                    let path: Vec<Ident> = idents(name).into_iter().cloned().collect();
                    origins.extend(self.compound(&path, clause)?);
                }
                Open::Expr(Expr::Wildcard(_)) => {
                    let slots = self.frames.last().map(|frame| frame.slots.clone()).unwrap_or_default();
                    origins.extend(self.whole_row(&slots, &Ident::new("*"))?);
                }
                Open::Expr(Expr::Lambda(lambda)) => origins.extend(self.lambda(lambda, clause)?),
                Open::Expr(Expr::MatchAgainst { columns, .. }) => {
                    for column in columns {
                        let path: Vec<Ident> = idents(column).into_iter().cloned().collect();
                        origins.extend(self.compound(&path, clause)?);
                    }
                }
                Open::Expr(Expr::Exists { subquery, .. }) => self.exists(subquery)?,
                Open::Expr(expr) => children(expr, &mut open),
                Open::Call(function) => self.call(function, clause, &mut open, &mut origins)?,
                Open::Query(query) => {
                    let slots = self.query(query)?;
                    self.spend_slots(&slots)?;
                    for slot in &slots {
                        origins.extend(self.all_of(slot, None));
                    }
                }
            }
        }
        Ok(origins)
    }

    /// Adds the columns of an expression that decides which rows the relation has.
    pub(super) fn used(&mut self, expr: &Expr, usage: Use, clause: Clause) -> AnalysisResult<()> {
        let origins = self.expr(expr, clause)?;
        self.add_uses(usage, &origins)
    }

    /// Analyzes a subquery of EXISTS. Its value depends on the subquery's rows, and not on the selected columns.
    fn exists(&mut self, query: &Query) -> AnalysisResult<()> {
        self.query(query).map(|_| ())
    }

    pub(super) fn window(&mut self, spec: &WindowSpec) -> AnalysisResult<()> {
        let bounds = spec.window_frame.iter().flat_map(|frame| [Some(&frame.start_bound), frame.end_bound.as_ref()]);
        let bounds = bounds.flatten().filter_map(|bound| match bound {
            WindowFrameBound::Preceding(Some(by)) | WindowFrameBound::Following(Some(by)) => Some(&**by),
            _ => None,
        });
        let ordered = spec.order_by.iter().map(|by| &by.expr);
        for expr in spec.partition_by.iter().chain(ordered).chain(bounds) {
            self.used(expr, Use::Window, Clause::Select)?;
        }
        Ok(())
    }

    fn call<'e>(
        &mut self,
        function: &'e Function,
        clause: Clause,
        open: &mut Vec<Open<'e>>,
        origins: &mut ColumnOrigins,
    ) -> AnalysisResult<()> {
        let name = idents(&function.name).last().map(|ident| ident.value.to_ascii_lowercase()).unwrap_or_default();
        if let Some(WindowType::WindowSpec(spec)) = &function.over {
            self.window(spec)?;
        }
        if let Some(filter) = &function.filter {
            self.used(filter, Use::Filter, Clause::Where)?;
        }
        for by in &function.within_group {
            open.push(Open::Expr(&by.expr));
        }
        if picks_columns(&function.name) {
            // A pattern selects the columns, so they are unknown.
            let ident = idents(&function.name).last().map(|ident| (*ident).clone());
            origins.extend(self.unresolved(Reason::NotFollowed("COLUMNS"), ident.as_ref()));
            return Ok(());
        }
        if let Some(of) = method_of(&function.name).filter(|_| self.warehouse == "duckdb") {
            let path: Vec<Ident> = of.into_iter().cloned().collect();
            origins.extend(match path.as_slice() {
                [ident] => self.bare(ident, clause)?,
                path => self.compound(path, clause)?,
            });
        }
        for arguments in [&function.parameters, &function.args] {
            let list = match arguments {
                FunctionArguments::None => continue,
                FunctionArguments::Subquery(query) => {
                    open.push(Open::Query(query));
                    continue;
                }
                FunctionArguments::List(list) => list,
            };
            for arg in &list.args {
                if MAKE_ROWS.contains(&name.as_str())
                    && let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = arg
                {
                    self.used(expr, Use::Filter, clause)?;
                }
                let (FunctionArg::Named { arg, .. } | FunctionArg::ExprNamed { arg, .. } | FunctionArg::Unnamed(arg)) =
                    arg;
                match arg {
                    FunctionArgExpr::Expr(Expr::Identifier(ident))
                        if ident.quote_style.is_none() && takes_unit(&name) && is_unit(&ident.value) => {}
                    FunctionArgExpr::Expr(expr) => open.push(Open::Expr(expr)),
                    FunctionArgExpr::QualifiedWildcard(of) => {
                        let path: Vec<Ident> = idents(of).into_iter().cloned().collect();
                        origins.extend(self.compound(&path, clause)?);
                    }
                    // `count(*)` counts rows and reads no column.
                    FunctionArgExpr::Wildcard if name == "count" => {}
                    FunctionArgExpr::Wildcard | FunctionArgExpr::WildcardWithOptions(_) => {
                        let slots = self.frames.last().map(|frame| frame.slots.clone()).unwrap_or_default();
                        let ident =
                            idents(&function.name).last().map_or_else(|| Ident::new("*"), |ident| (*ident).clone());
                        origins.extend(self.whole_row(&slots, &ident)?);
                    }
                }
            }
            for clause_of in &list.clauses {
                match clause_of {
                    FunctionArgumentClause::OrderBy(by) => {
                        for by in by {
                            self.used(&by.expr, Use::Order, clause)?;
                        }
                    }
                    FunctionArgumentClause::Where(condition) => self.used(condition, Use::Filter, clause)?,
                    FunctionArgumentClause::Having(bound) => self.used(&bound.1, Use::Filter, clause)?,
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Analyzes a lambda such as `x -> x + rate`, and returns the origins of its body without the parameters.
    fn lambda(&mut self, lambda: &LambdaFunction, clause: Clause) -> AnalysisResult<ColumnOrigins> {
        let before = self.parameters.len();
        let keys: Vec<Arc<str>> = parameters(lambda).map(|ident| self.key(ident)).collect();
        self.parameters.extend(keys);
        let origins = self.expr(&lambda.body, clause);
        self.parameters.truncate(before);
        origins
    }

    /// Analyzes an access such as `orders.items[1].price`: a name, followed by steps into its value.
    fn field_access<'e>(
        &mut self,
        root: &'e Expr,
        chain: &'e [AccessExpr],
        clause: Clause,
        open: &mut Vec<Open<'e>>,
        origins: &mut ColumnOrigins,
    ) -> AnalysisResult<()> {
        let mut path: Vec<Ident> = match root {
            Expr::Identifier(ident) => vec![ident.clone()],
            Expr::CompoundIdentifier(path) => path.clone(),
            other => {
                open.push(Open::Expr(other));
                Vec::new()
            }
        };
        let mut is_name = !path.is_empty();
        for access in chain {
            match access {
                AccessExpr::Dot(Expr::Identifier(ident)) if is_name => path.push(ident.clone()),
                AccessExpr::Dot(Expr::Function(function)) => {
                    is_name = false;
                    open.push(Open::Call(function));
                }
                AccessExpr::Dot(_) => is_name = false,
                AccessExpr::Subscript(Subscript::Index { index }) => {
                    is_name = false;
                    open.push(Open::Expr(index));
                }
                AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, stride }) => {
                    is_name = false;
                    open.extend([lower_bound, upper_bound, stride].into_iter().flatten().map(Open::Expr));
                }
            }
        }
        if !path.is_empty() {
            origins.extend(self.compound(&path, clause)?);
        }
        Ok(())
    }
}

/// Functions that turn one value into several rows in a SELECT list.
const MAKE_ROWS: [&str; 5] = ["explode", "explode_outer", "posexplode", "posexplode_outer", "unnest"];

fn parameters(lambda: &LambdaFunction) -> impl Iterator<Item = &Ident> {
    let all = match &lambda.params {
        OneOrManyWithParens::One(parameter) => std::slice::from_ref(parameter),
        OneOrManyWithParens::Many(parameters) => parameters,
    };
    all.iter().map(|parameter| &parameter.name)
}

/// Adds the direct parts of an expression that contribute to its value.
fn children<'e>(expr: &'e Expr, open: &mut Vec<Open<'e>>) {
    use Expr as E;
    match expr {
        E::Identifier(_)
        | E::CompoundIdentifier(_)
        | E::CompoundFieldAccess { .. }
        | E::QualifiedWildcard(..)
        | E::Wildcard(_)
        | E::Lambda(_)
        | E::MatchAgainst { .. }
        | E::Exists { .. }
        | E::Value(_)
        | E::TypedString(_) => {}
        E::JsonAccess { value, path } => {
            open.push(Open::Expr(value));
            for element in &path.path {
                match element {
                    JsonPathElem::Bracket { key } | JsonPathElem::ColonBracket { key } => open.push(Open::Expr(key)),
                    JsonPathElem::Dot { .. } => {}
                }
            }
        }
        E::IsFalse(inner)
        | E::IsNotFalse(inner)
        | E::IsTrue(inner)
        | E::IsNotTrue(inner)
        | E::IsNull(inner)
        | E::IsNotNull(inner)
        | E::IsUnknown(inner)
        | E::IsNotUnknown(inner)
        | E::Nested(inner)
        | E::OuterJoin(inner)
        | E::Prior(inner) => open.push(Open::Expr(inner)),
        E::IsJson { expr, .. }
        | E::IsNormalized { expr, .. }
        | E::UnaryOp { expr, .. }
        | E::Cast { expr, .. }
        | E::Extract { expr, .. }
        | E::Ceil { expr, .. }
        | E::Floor { expr, .. }
        | E::Collate { expr, .. }
        | E::Named { expr, .. } => open.push(Open::Expr(expr)),
        E::Prefixed { value, .. } => open.push(Open::Expr(value)),
        E::IsDistinctFrom(left, right) | E::IsNotDistinctFrom(left, right) => {
            open.extend([left, right].map(|side| Open::Expr(side)));
        }
        E::BinaryOp { left, right, .. } | E::AnyOp { left, right, .. } | E::AllOp { left, right, .. } => {
            open.extend([left, right].map(|side| Open::Expr(side)));
        }
        E::InList { expr, list, .. } => {
            open.push(Open::Expr(expr));
            open.extend(list.iter().map(Open::Expr));
        }
        E::InSubquery { expr, subquery, .. } => open.extend([Open::Expr(expr), Open::Query(subquery)]),
        E::InUnnest { expr, array_expr, .. } => open.extend([Open::Expr(expr), Open::Expr(array_expr)]),
        E::Between { expr, low, high, .. } => open.extend([expr, low, high].map(|part| Open::Expr(part))),
        E::Like { expr, pattern, .. }
        | E::ILike { expr, pattern, .. }
        | E::SimilarTo { expr, pattern, .. }
        | E::RLike { expr, pattern, .. } => open.extend([expr, pattern].map(|part| Open::Expr(part))),
        E::Convert { expr, styles, .. } => {
            open.push(Open::Expr(expr));
            open.extend(styles.iter().map(Open::Expr));
        }
        E::AtTimeZone { timestamp, time_zone } => open.extend([timestamp, time_zone].map(|part| Open::Expr(part))),
        E::Position { expr, r#in } => open.extend([expr, r#in].map(|part| Open::Expr(part))),
        E::Substring { expr, substring_from, substring_for, .. } => {
            open.push(Open::Expr(expr));
            open.extend([substring_from, substring_for].into_iter().flatten().map(|part| Open::Expr(part)));
        }
        E::Trim { expr, trim_what, trim_characters, .. } => {
            open.push(Open::Expr(expr));
            open.extend(trim_what.iter().map(|part| Open::Expr(part)));
            open.extend(trim_characters.iter().flatten().map(Open::Expr));
        }
        E::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
            open.extend([expr, overlay_what, overlay_from].map(|part| Open::Expr(part)));
            open.extend(overlay_for.iter().map(|part| Open::Expr(part)));
        }
        E::Function(function) => open.push(Open::Call(function)),
        E::Case { operand, conditions, else_result, .. } => {
            open.extend(operand.iter().chain(else_result).map(|part| Open::Expr(part)));
            for when in conditions {
                open.extend([Open::Expr(&when.condition), Open::Expr(&when.result)]);
            }
        }
        E::Subquery(query) => open.push(Open::Query(query)),
        E::GroupingSets(sets) | E::Cube(sets) | E::Rollup(sets) => {
            open.extend(sets.iter().flatten().map(Open::Expr));
        }
        E::Tuple(items) | E::Array(Array { elem: items, .. }) | E::Struct { values: items, .. } => {
            open.extend(items.iter().map(Open::Expr));
        }
        E::Dictionary(fields) => open.extend(fields.iter().map(|field| Open::Expr(&field.value))),
        E::Map(map) => {
            for entry in &map.entries {
                open.extend([Open::Expr(&entry.key), Open::Expr(&entry.value)]);
            }
        }
        E::Interval(interval) => open.push(Open::Expr(&interval.value)),
        E::MemberOf(member) => open.extend([Open::Expr(&member.value), Open::Expr(&member.array)]),
    }
}

/// Returns whether an expression contains an aggregate. Window functions are not aggregates here.
pub(super) fn has_aggregate(root: &Expr) -> bool {
    let mut open = vec![Open::Expr(root)];
    while let Some(next) = open.pop() {
        match next {
            Open::Expr(expr) => children(expr, &mut open),
            Open::Call(function) => {
                let name = idents(&function.name).last().map(|ident| ident.value.as_str());
                if function.over.is_none() && name.is_some_and(is_aggregate) {
                    return true;
                }
                if let FunctionArguments::List(list) = &function.args {
                    for arg in &list.args {
                        if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = arg {
                            open.push(Open::Expr(expr));
                        }
                    }
                }
            }
            Open::Query(_) => {}
        }
    }
    false
}
