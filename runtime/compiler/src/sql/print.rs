//! Prints the SQL tree. No other module creates SQL text.
//!
//! In: a [`Lowered`] statement and a validated dialect. Out: the text and its bound values. Values become placeholders,
//! names are quoted by the dialect's rules, and syntax comes from its templates. This is one file, so that a reviewer
//! and the layering test can read all code that creates SQL.

use std::sync::Arc;

use super::ast::{JoinClause, JoinKind, Name, OrderBy, OrderItem, Page, Query, Select, Source, SqlExpr, TimeFunction};
use super::dialect_profile::{DialectProfile, LimitStyle, NullOrder, Op, PlaceholderStyle};
use super::literal;
use super::lower::Lowered;
use super::template::{Segment, Template};
use crate::model::{ColumnName, Cube, Relation};
use crate::query::QueryError;
use crate::types::{LogicalType, Value};

/// The form of values in the text: bound or inline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parameters {
    Bound,
    /// The values are part of the text, for people to read.
    Inline,
}

/// Prints a statement.
///
/// # Errors
/// [`QueryError::DialectLacks`] for an operator or a page style that the dialect has no template for.
pub fn print(
    lowered: &Lowered<'_>,
    profile: &DialectProfile,
    parameters: Parameters,
) -> Result<(String, Vec<Value>), QueryError> {
    let is_bound = parameters == Parameters::Bound && profile.placeholders != PlaceholderStyle::None;
    let mut printer = Printer::new(profile, is_bound);
    printer.query(&lowered.query);
    printer.finish()
}

/// Prints named queries of the project's authors, each after those that it reads, as one query that returns the rows of
/// the last.
pub(crate) fn print_queries(queries: &[(String, Arc<str>)]) -> Arc<str> {
    let Some(((last, text), rest)) = queries.split_last() else { return Arc::default() };
    if rest.is_empty() {
        return Arc::clone(text);
    }
    let named: Vec<String> = queries.iter().map(|(name, text)| format!("{name} AS (\n{text}\n)")).collect();
    format!("WITH {}\nSELECT * FROM {last}", named.join(",\n")).into()
}

/// Prints a query for all rows of a relation. The relation's name must already be quoted.
pub(crate) fn print_rows_of(relation: &str) -> Arc<str> {
    format!("SELECT * FROM {relation}").into()
}

/// Prints the statement that returns the warehouse's plan of a statement. `None` if the dialect has none.
///
/// # Errors
/// Returns the same errors as [`print`].
pub fn print_explain(
    lowered: &Lowered<'_>,
    profile: &DialectProfile,
) -> Result<Option<(String, Vec<Value>)>, QueryError> {
    let Some(template) = &profile.explain else { return Ok(None) };
    let mut printer = Printer::new(profile, profile.placeholders != PlaceholderStyle::None);
    for segment in &template.segments {
        match segment {
            Segment::Text(text) => printer.text(text),
            Segment::Hole(_) | Segment::AllArguments => printer.query(&lowered.query),
        }
    }
    printer.finish().map(Some)
}

/// The function by which a dialect requests the keyword `MATERIALIZED`. Without this keyword, its warehouse may
/// evaluate a named query several times.
const MATERIALIZED: (&str, usize) = ("materialized", 1);

struct Printer<'p> {
    profile: &'p DialectProfile,
    is_bound: bool,
    /// True if named queries have the keyword `MATERIALIZED`.
    is_materialized: bool,
    out: String,
    params: Vec<Value>,
    /// The indentation of the SELECT that is being printed.
    depth: usize,
    missing: Option<(&'static str, Option<LogicalType>)>,
}

impl<'p> Printer<'p> {
    fn new(profile: &'p DialectProfile, is_bound: bool) -> Self {
        let (name, arity) = MATERIALIZED;
        let is_materialized = profile.function(name, arity, None).is_some();
        let out = String::with_capacity(1024);
        Printer { profile, is_bound, is_materialized, out, params: Vec::new(), depth: 0, missing: None }
    }

    fn finish(self) -> Result<(String, Vec<Value>), QueryError> {
        match self.missing {
            Some((op, ty)) => Err(QueryError::DialectLacks { dialect: self.profile.name.as_str().into(), op, ty }),
            None => Ok((self.out, self.params)),
        }
    }
}

impl Printer<'_> {
    fn text(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn number(&mut self, number: u64) {
        use std::fmt::Write;
        // Writing to a String never fails.
        let _ = write!(self.out, "{number}");
    }

    fn line(&mut self) {
        self.out.push('\n');
        for _ in 0..self.depth {
            self.out.push_str("  ");
        }
    }

    fn query(&mut self, query: &Query<'_>) {
        match query {
            Query::Select(select) => self.select(select),
            Query::UnionAll(selects) => {
                for (index, select) in selects.iter().enumerate() {
                    if index > 0 && select.from.is_none() {
                        self.text(" UNION ALL ");
                    } else if index > 0 {
                        self.line();
                        self.text("UNION ALL");
                        self.line();
                    }
                    self.select(select);
                }
            }
        }
    }

    fn select(&mut self, select: &Select<'_>) {
        for (index, (name, query)) in select.with.iter().enumerate() {
            self.text(if index == 0 { "WITH " } else { ", " });
            self.text(name);
            self.text(if self.is_materialized { " AS MATERIALIZED " } else { " AS " });
            self.nested(|printer| printer.query(query));
        }
        if !select.with.is_empty() {
            self.line();
        }
        self.text("SELECT");
        // Constants fit on one line.
        let is_constant = select.from.is_none();
        self.depth += 1;
        for (index, (expr, name)) in select.items.iter().enumerate() {
            if index > 0 {
                self.text(",");
            }
            if is_constant {
                self.text(" ");
            } else {
                self.line();
            }
            self.expr(expr);
            if !matches!(expr, SqlExpr::Star(_)) {
                self.text(" AS ");
                self.name(*name, index);
            }
        }
        self.depth -= 1;
        if let Some(from) = &select.from {
            self.line();
            self.text("FROM ");
            self.source(from);
        }
        for join in &select.joins {
            self.join(join);
        }
        self.conditions("WHERE ", &select.filters);
        if select.group_by > 0 {
            self.line();
            self.text("GROUP BY ");
            for item in 1..=select.group_by {
                if item > 1 {
                    self.text(", ");
                }
                self.number(item as u64);
            }
        }
        self.conditions("HAVING ", &select.having);
        self.order(select);
        if let Some(page) = select.page {
            self.page(page);
        }
    }

    fn source(&mut self, source: &Source<'_>) {
        match source {
            Source::Cube { cube, alias } => self.relation(cube, alias),
            Source::Table { name, alias } => {
                self.table(name);
                self.text(" AS ");
                self.identifier(alias);
            }
            Source::Rows { query, alias } => {
                self.nested(|printer| printer.query(query));
                self.text(" AS ");
                self.identifier(alias);
            }
            Source::Numbered { source, alias, column } => {
                self.nested(|printer| {
                    printer.text("SELECT ");
                    printer.identifier(alias);
                    // Some engines refuse a window without an order. Any order is correct here.
                    printer.text(".*, row_number() OVER (ORDER BY NULL) AS ");
                    printer.text(column);
                    printer.line();
                    printer.text("FROM ");
                    printer.source(source);
                });
                self.text(" AS ");
                self.identifier(alias);
            }
            Source::Named { name, alias } => {
                self.text(name);
                if name != alias {
                    self.text(" AS ");
                    self.text(alias);
                }
            }
            Source::Derived(query, alias) => {
                self.nested(|printer| printer.query(query));
                self.text(" AS ");
                self.text(alias);
            }
        }
    }

    /// Prints an indented block in parentheses.
    fn nested(&mut self, inner: impl FnOnce(&mut Self)) {
        self.text("(");
        self.depth += 1;
        self.line();
        inner(self);
        self.depth -= 1;
        self.line();
        self.text(")");
    }

    fn relation(&mut self, cube: &Cube, alias: &str) {
        match &cube.relation {
            Relation::Table(name) => self.table(name.printed()),
            Relation::Query { models, sql } => self.nested(|printer| {
                printer.models(models);
                // An author's query may begin with WITH, which cannot follow the WITH of the models.
                let is_wrapped = !models.is_empty() && starts_with_with(sql);
                if is_wrapped {
                    printer.text("SELECT * FROM (\n");
                }
                printer.text(sql);
                if is_wrapped {
                    printer.text("\n) AS query");
                }
            }),
            Relation::Model { models, name } => self.nested(|printer| {
                printer.models(models);
                printer.text("SELECT * FROM ");
                printer.text(name);
            }),
        }
        self.text(" AS ");
        self.identifier(alias);
    }

    fn table(&mut self, parts: &[ColumnName]) {
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                self.text(".");
            }
            self.column_name(part);
        }
    }

    fn models(&mut self, models: &[(Arc<str>, Arc<str>)]) {
        for (index, (name, model)) in models.iter().enumerate() {
            self.text(if index == 0 { "WITH " } else { ", " });
            self.identifier(name);
            self.text(" AS (\n");
            self.text(model);
            self.text("\n)");
            self.line();
        }
    }

    fn join(&mut self, join: &JoinClause<'_>) {
        self.line();
        self.text(match join.kind {
            JoinKind::Left => "LEFT JOIN ",
            JoinKind::Inner => "INNER JOIN ",
            JoinKind::Cross => "CROSS JOIN ",
        });
        self.source(&join.source);
        if join.kind != JoinKind::Cross {
            self.text(" ON ");
            self.connected(" AND ", &join.on);
        }
    }

    fn conditions(&mut self, keyword: &str, all: &[SqlExpr<'_>]) {
        for (index, condition) in all.iter().enumerate() {
            self.line();
            self.text(if index == 0 { keyword } else { "  AND " });
            if all.len() == 1 { self.expr(condition) } else { self.operand_of_logic(condition) }
        }
    }

    fn order(&mut self, select: &Select<'_>) {
        for (index, item) in select.order.iter().enumerate() {
            if index == 0 {
                self.line();
                self.text("ORDER BY ");
            } else {
                self.text(", ");
            }
            self.order_item(item, select);
        }
    }

    /// Prints an item of ORDER BY. Nulls come last in both directions.
    fn order_item(&mut self, item: &OrderItem<'_>, select: &Select<'_>) {
        let puts_nulls_last = match self.profile.default_null_order {
            NullOrder::NullsLast => true,
            NullOrder::NullsFirst => false,
            NullOrder::NullsHigh => !item.descending,
            NullOrder::NullsLow => item.descending,
        };
        let has_clause = self.profile.features.nulls_first_last;
        if !puts_nulls_last && !has_clause {
            self.text("CASE WHEN ");
            match &item.by {
                OrderBy::Item(number) => self.name(select.items[number - 1].1, number - 1),
                OrderBy::Expression(expr) => self.closed(expr),
            }
            self.text(" IS NULL THEN 1 ELSE 0 END, ");
        }
        match &item.by {
            OrderBy::Item(number) => self.number(*number as u64),
            OrderBy::Expression(expr) => self.expr(expr),
        }
        self.text(if item.descending { " DESC" } else { " ASC" });
        if has_clause {
            self.text(" NULLS LAST");
        }
    }

    fn page(&mut self, page: Page) {
        self.line();
        match self.profile.limit {
            LimitStyle::LimitOffset => {
                self.text("LIMIT ");
                self.number(page.limit);
                if page.offset > 0 {
                    self.text(" OFFSET ");
                    self.number(page.offset);
                }
            }
            LimitStyle::FetchFirst => {
                if page.offset > 0 {
                    self.text("OFFSET ");
                    self.number(page.offset);
                    self.text(" ROWS ");
                }
                self.text("FETCH NEXT ");
                self.number(page.limit);
                self.text(" ROWS ONLY");
            }
            // The check of a profile refuses both styles.
            LimitStyle::Top | LimitStyle::Rownum => self.missing = Some(("limit", None)),
        }
    }

    /// Prints a column's name in a select list. A key that the engine does not support is replaced by a number, because
    /// results are read by position.
    fn name(&mut self, name: Name<'_>, index: usize) {
        match name {
            Name::Key(key) if self.holds(key) => self.quoted(key),
            Name::Key(_) => {
                self.text("c");
                self.number(index as u64);
            }
            Name::Numbered(letter, number) => {
                self.out.push(letter);
                self.number(number as u64);
            }
            Name::Fixed(name) => self.text(name),
        }
    }

    /// Returns whether a key can be a column's name. If a dialect refuses some characters, all keys are numbered, so
    /// that no key equals the number of another.
    fn holds(&self, key: &str) -> bool {
        self.profile.features.punctuated_names && key.len() <= self.profile.quoting.max_ident_bytes as usize
    }

    /// Prints a name of the model, without quotes if that is safe.
    fn identifier(&mut self, name: &str) {
        let profile = self.profile;
        profile.quoting.write_name(&mut self.out, name);
    }

    /// Prints a name of the warehouse as its author wrote it.
    fn column_name(&mut self, name: &ColumnName) {
        if name.quoted { self.quoted(&name.text) } else { self.text(&name.text) }
    }

    fn quoted(&mut self, name: &str) {
        let profile = self.profile;
        profile.quoting.write_quoted_name(&mut self.out, name);
    }

    fn expr(&mut self, expr: &SqlExpr<'_>) {
        match expr {
            SqlExpr::Text(text) => self.text(text),
            SqlExpr::Column { alias, name } => {
                self.identifier(alias);
                self.text(".");
                self.column_name(name);
            }
            SqlExpr::Added { alias, column } => {
                self.identifier(alias);
                self.text(".");
                self.text(column);
            }
            SqlExpr::Derived(table, name) => {
                self.text(table);
                self.text(".");
                self.name(*name, 0);
            }
            SqlExpr::Sequence { parts, .. } => {
                for part in parts {
                    self.closed(part);
                }
            }
            SqlExpr::Call { name, args } => {
                let profile = self.profile;
                match profile.function(name, args.len(), None) {
                    Some(template) => self.template(template, args),
                    None => self.missing = Some((name, None)),
                }
            }
            SqlExpr::Star(alias) => {
                self.identifier(alias);
                self.text(".*");
            }
            SqlExpr::ParamList { values, is_compared } => {
                for (index, value) in values.iter().enumerate() {
                    if index > 0 {
                        self.text(", ");
                    }
                    match value {
                        Value::Text(_) if *is_compared => self.op(Op::Collate, None, &[SqlExpr::Param(value)]),
                        _ => self.param(value),
                    }
                }
            }
            SqlExpr::Param(value) => self.param(value),
            SqlExpr::Value(value) => self.param(value),
            SqlExpr::String(text) => {
                let profile = self.profile;
                profile.quoting.write_text(&mut self.out, text);
            }
            SqlExpr::Number(value) => literal::value(self.profile, value, &mut self.out),
            SqlExpr::Fraction(fraction) => self.text(&fraction.to_string()),
            SqlExpr::Integer(number) => {
                if *number < 0 {
                    self.text("-");
                }
                self.number(number.unsigned_abs());
            }
            SqlExpr::Null(None) => self.text("NULL"),
            SqlExpr::Null(Some(ty)) => self.op(Op::Cast, None, &[SqlExpr::Null(None), SqlExpr::TypeName(*ty)]),
            SqlExpr::TypeName(ty) => {
                let profile = self.profile;
                self.text(profile.type_name(*ty));
            }
            SqlExpr::Boolean(value) => {
                let profile = self.profile;
                self.template(if *value { &profile.true_literal } else { &profile.false_literal }, &[]);
            }
            SqlExpr::CountRows => self.op(Op::Count, None, &[]),
            SqlExpr::Op { op, ty, args } => self.op(*op, *ty, args),
            SqlExpr::Time { granularity, function, args } => {
                let profile = self.profile;
                let templates = profile.time(*granularity);
                match (function, &templates.trunc_instant) {
                    (TimeFunction::Add, _) => self.template(&templates.add, args),
                    (TimeFunction::TruncInstant, Some(template)) => self.template(template, args),
                    _ => self.template(&templates.trunc, &args[..1]),
                }
            }
            SqlExpr::And(all) => self.connected(" AND ", all),
            SqlExpr::Or(all) => self.connected(" OR ", all),
            SqlExpr::InQuery { operand, query } => {
                self.closed(operand);
                self.text(" IN ");
                self.nested(|printer| printer.query(query));
            }
            SqlExpr::InList { operand, values, is_negated } => {
                self.closed(operand);
                self.text(if *is_negated { " NOT IN (" } else { " IN (" });
                for (index, value) in values.iter().enumerate() {
                    if index > 0 {
                        self.text(", ");
                    }
                    self.param(value);
                }
                self.text(")");
            }
            SqlExpr::FilteredAggregate { call, filters } => {
                self.expr(call);
                self.text(" FILTER (WHERE ");
                self.connected(" AND ", filters);
                self.text(")");
            }
            SqlExpr::When { conditions, value, otherwise } => {
                self.text("CASE WHEN ");
                self.connected(" AND ", conditions);
                self.text(" THEN ");
                self.expr(value);
                if let Some(otherwise) = otherwise {
                    self.text(" ELSE ");
                    self.expr(otherwise);
                }
                self.text(" END");
            }
            SqlExpr::SumOver { argument, partition, order } => self.sum_over(argument, partition, order),
            SqlExpr::CountOverAll => {
                self.op(Op::Count, None, &[]);
                self.text(" OVER ()");
            }
            SqlExpr::RowNumber { partition, order } => {
                self.text("row_number() OVER (");
                self.partition_and_order(partition, order);
                self.text(")");
            }
        }
    }

    fn sum_over(&mut self, argument: &SqlExpr<'_>, partition: &[SqlExpr<'_>], order: &[SqlExpr<'_>]) {
        self.op(Op::Sum, None, std::slice::from_ref(argument));
        self.text(" OVER (");
        self.partition_and_order(partition, order);
        self.text(if order.is_empty() { ")" } else { " ROWS UNBOUNDED PRECEDING)" });
    }

    fn partition_and_order(&mut self, partition: &[SqlExpr<'_>], order: &[SqlExpr<'_>]) {
        for (keyword, all) in [("PARTITION BY ", partition), ("ORDER BY ", order)] {
            for (index, expr) in all.iter().enumerate() {
                self.text(if index == 0 { keyword } else { ", " });
                self.expr(expr);
            }
            if keyword.starts_with('P') && !partition.is_empty() && !order.is_empty() {
                self.text(" ");
            }
        }
    }

    fn param(&mut self, value: &Value) {
        let profile = self.profile;
        // A value that is not bound, or exceeds the engine's number of parameters, is printed as a literal, which the
        // host quotes.
        if !self.is_bound || self.params.len() >= profile.max_params as usize {
            literal::value(profile, value, &mut self.out);
            return;
        }
        self.params.push(value.clone());
        let number = self.params.len() as u64;
        match profile.placeholders {
            PlaceholderStyle::Question => self.text("?"),
            PlaceholderStyle::Pyformat => self.text("%s"),
            PlaceholderStyle::DollarN => {
                self.text("$");
                self.number(number);
            }
            PlaceholderStyle::ColonN => {
                self.text(":");
                self.number(number);
            }
            PlaceholderStyle::AtPn => {
                self.text("@p");
                self.number(number);
            }
            PlaceholderStyle::None => {}
        }
    }

    fn op(&mut self, op: Op, ty: Option<LogicalType>, args: &[SqlExpr<'_>]) {
        let profile = self.profile;
        match profile.op(op, args.len(), ty) {
            Some(template) => self.template(template, args),
            None => self.missing = Some((op.name(), ty)),
        }
    }

    fn template(&mut self, template: &Template, args: &[SqlExpr<'_>]) {
        for (index, segment) in template.segments.iter().enumerate() {
            match segment {
                Segment::Text(text) => self.text(text),
                Segment::Hole(hole) => {
                    let arg = &args[*hole as usize];
                    if is_enclosed(&template.segments, index) { self.expr(arg) } else { self.closed(arg) }
                }
                Segment::AllArguments => {
                    for (index, arg) in args.iter().enumerate() {
                        if index > 0 {
                            self.text(", ");
                        }
                        self.expr(arg);
                    }
                }
            }
        }
    }

    /// Prints the conjunction or disjunction of expressions, each in parentheses if necessary.
    fn connected(&mut self, connective: &str, all: &[SqlExpr<'_>]) {
        if let [single] = all {
            return self.expr(single);
        }
        for (index, expr) in all.iter().enumerate() {
            if index > 0 {
                self.text(connective);
            }
            self.operand_of_logic(expr);
        }
    }

    fn operand_of_logic(&mut self, expr: &SqlExpr<'_>) {
        let binds_tighter = match expr {
            SqlExpr::Op { op, .. } => {
                matches!(op, Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::IsNull | Op::IsNotNull)
            }
            SqlExpr::InList { .. } | SqlExpr::InQuery { .. } => true,
            _ => false,
        };
        if binds_tighter { self.expr(expr) } else { self.closed(expr) }
    }

    /// Prints an operand, in parentheses unless it is an atom or a call.
    fn closed(&mut self, expr: &SqlExpr<'_>) {
        if self.is_closed(expr) {
            return self.expr(expr);
        }
        self.text("(");
        self.expr(expr);
        self.text(")");
    }

    fn is_closed(&self, expr: &SqlExpr<'_>) -> bool {
        match expr {
            SqlExpr::Sequence { is_atomic, .. } => *is_atomic,
            SqlExpr::Op { op, ty, args } => self.profile.op(*op, args.len(), *ty).is_some_and(|t| t.is_closed),
            SqlExpr::Time { granularity, function, .. } => {
                let templates = self.profile.time(*granularity);
                match (function, &templates.trunc_instant) {
                    (TimeFunction::Add, _) => templates.add.is_closed,
                    (TimeFunction::TruncInstant, Some(template)) => template.is_closed,
                    _ => templates.trunc.is_closed,
                }
            }
            SqlExpr::Integer(number) => *number >= 0,
            SqlExpr::Number(value) => !is_negative(value),
            SqlExpr::Call { name, args } => self.profile.function(name, args.len(), None).is_some_and(|t| t.is_closed),
            SqlExpr::And(_)
            | SqlExpr::Or(_)
            | SqlExpr::InList { .. }
            | SqlExpr::InQuery { .. }
            | SqlExpr::CountOverAll
            | SqlExpr::RowNumber { .. }
            | SqlExpr::SumOver { .. } => false,
            _ => true,
        }
    }
}

fn is_negative(number: &Value) -> bool {
    match number {
        Value::Integer(number) => *number < 0,
        Value::Float(number) => number.is_sign_negative(),
        Value::Decimal(digits) => digits.starts_with('-'),
        _ => false,
    }
}

/// Returns whether a hole is between two brackets or commas, so that no operator can bind to its text.
fn is_enclosed(segments: &[Segment], index: usize) -> bool {
    let opens = |segment: &Segment| matches!(segment, Segment::Text(text) if text.trim_end().ends_with(['(', ',']));
    let closes =
        |segment: &Segment| matches!(segment, Segment::Text(text) if text.trim_start().starts_with([')', ',']));
    index.checked_sub(1).is_some_and(|before| opens(&segments[before])) && segments.get(index + 1).is_some_and(closes)
}

fn starts_with_with(sql: &str) -> bool {
    let start = sql.trim_start();
    start.get(..4).is_some_and(|word| word.eq_ignore_ascii_case("with"))
        && start[4..].starts_with(|c: char| c.is_whitespace() || c == '(')
}
