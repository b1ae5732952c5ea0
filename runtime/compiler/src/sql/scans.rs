//! Reports the relations and columns that a statement scans, for predictions of its bytes.
//!
//! In: the SQL tree of a statement. Out: one [`Scan`] for each place where the statement reads rows, with the columns
//! that it uses there. The tree is walked once, from the outside to the inside; nothing is printed. A scan can be
//! printed as a statement of its own ([`scan_statement`]), which contains only names and SQL of the project's authors,
//! and no value of a caller. Not here: the sizes of relations, which only the warehouse knows.

use super::ast::{Name, OrderBy, Query, Select, Source, SqlExpr};
use super::dialect_profile::{DialectProfile, Op};
use super::lower::Lowered;
use super::print::{Parameters, print};
use crate::model::{ColumnName, CubeId, DimensionId, Model};
use crate::plan::{Fact, SecuredPlan};
use crate::query::{Operand, Predicate, Test};
use crate::types::Value;

/// The facts about a statement from which its bytes and its time are predicted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatementShape {
    pub scans: Vec<Scan>,
    /// True if SQL of the project's authors contains queries, whose scans are unknown.
    pub has_unknown_scans: bool,
    /// The number of facts that are aggregated.
    pub facts: u32,
    pub joins: u32,
    /// The number of columns that rows are grouped by.
    pub groups: u32,
    /// The length of the shortest range of time that a fact is filtered by; `None` without a range with both ends.
    pub range_seconds: Option<u64>,
}

/// A place where a statement reads the rows of a relation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    pub relation: ScannedRelation,
    pub columns: ScannedColumns,
    /// True if conditions or joins may let the engine skip a part of the rows.
    pub is_narrowed: bool,
    /// The range of time that the query's own filters set for all rows. Filters of policies set none.
    pub range: Option<ScannedRange>,
}

/// A range of a column of times, in microseconds since 1970. Both ends may be part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScannedRange {
    pub column: ColumnName,
    /// The index of the column in the columns of the scan. In the printed scan the column is named `c` and this number.
    pub place: usize,
    pub low: Option<i64>,
    pub high: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScannedRelation {
    Cube(CubeId),
    /// A table, by the parts of its name.
    Table(Vec<ColumnName>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScannedColumns {
    All,
    /// The columns that are used, sorted by name. If rows are only counted, there are none.
    Named(Vec<ColumnName>),
}

/// The alias of the relation in a printed scan.
const SCANNED: &str = "scanned";

/// Returns the scans of a statement, and the size of its plan.
pub(crate) fn shape_of(lowered: &Lowered<'_>, secured: &SecuredPlan<'_>) -> StatementShape {
    let plan = secured.plan();
    let mut walk = Walk::default();
    walk.query(&lowered.query);
    for scan in &mut walk.shape.scans {
        // A range that could come from a policy would disclose how many rows the policy hides.
        let is_open = matches!(scan.relation, ScannedRelation::Cube(id) if secured.protection().rows(id).is_none());
        scan.range = scan.range.take().filter(|_| is_open);
        let columns = match &mut scan.columns {
            ScannedColumns::Named(columns) => columns,
            ScannedColumns::All => {
                scan.range = None;
                continue;
            }
        };
        columns.sort_by(|one, other| (&one.text, one.quoted).cmp(&(&other.text, other.quoted)));
        scan.range = scan.range.take().and_then(|range| {
            let place = columns.iter().position(|column| *column == range.column)?;
            Some(ScannedRange { place, ..range })
        });
    }
    let joins = plan.facts.iter().map(|fact| fact.tree.joins.len() + fact.semi_joins.len()).sum();
    StatementShape {
        facts: small(plan.facts.len()),
        joins: small(joins),
        groups: small(plan.groups.len()),
        range_seconds: plan.facts.iter().filter_map(range_seconds).min(),
        ..walk.shape
    }
}

/// Returns the length of the shortest range that all rows of a fact are in.
fn range_seconds(fact: &Fact<'_>) -> Option<u64> {
    let mut ranges: Vec<(DimensionId, [Option<i64>; 2])> = Vec::new();
    fact.row_filters.iter().for_each(|filter| add_ranges(filter, &mut ranges));
    let length = |(_, [low, high]): &(DimensionId, [Option<i64>; 2])| {
        u64::try_from((*high)?.checked_sub((*low)?)?).ok().map(|micros| micros.div_ceil(1_000_000))
    };
    ranges.iter().filter_map(length).min()
}

/// Adds the bounds of each time that a predicate sets for all rows, in microseconds.
fn add_ranges(predicate: &Predicate, ranges: &mut Vec<(DimensionId, [Option<i64>; 2])>) {
    match predicate {
        Predicate::And(all) => all.iter().for_each(|each| add_ranges(each, ranges)),
        Predicate::Test { operand: Operand::Dimension { id, .. }, test: Test::Range { low, high } } => {
            let [low, high] = [low, high].map(|end| end.as_ref().and_then(|end| micros(&end.value)));
            match ranges.iter_mut().find(|(of, _)| of == id) {
                Some((_, known)) => {
                    known[0] = known[0].max(low);
                    known[1] = [known[1], high].into_iter().flatten().min();
                }
                None => ranges.push((*id, [low, high])),
            }
        }
        _ => {}
    }
}

fn micros(value: &Value) -> Option<i64> {
    const DAY: i64 = 86_400_000_000;
    match value {
        Value::Timestamp(micros) | Value::TimestampTz(micros) => Some(*micros),
        Value::Date(days) => Some(i64::from(*days) * DAY),
        _ => None,
    }
}

/// Prints a scan as a statement without bound values: the used columns of all rows. `None` if the model has changed, or
/// if the dialect cannot select from the relation.
pub fn scan_statement(model: &Model, profile: &DialectProfile, scan: &Scan) -> Option<String> {
    let source = match &scan.relation {
        ScannedRelation::Cube(id) => Source::Cube { cube: model.cubes.get(id.0 as usize)?, alias: SCANNED },
        ScannedRelation::Table(name) => Source::Table { name, alias: SCANNED },
    };
    let items = match &scan.columns {
        ScannedColumns::All => vec![(SqlExpr::Star(SCANNED), Name::Fixed(SCANNED))],
        ScannedColumns::Named(columns) if columns.is_empty() => vec![(SqlExpr::Integer(1), Name::Numbered('c', 0))],
        ScannedColumns::Named(columns) => {
            let column = |(index, name)| (SqlExpr::Column { alias: SCANNED, name }, Name::Numbered('c', index));
            columns.iter().enumerate().map(column).collect()
        }
    };
    let query = Query::Select(Box::new(Select::new(items, source)));
    let printed = print(&Lowered { query, total_column: None, added_column: None }, profile, Parameters::Inline);
    printed.ok().map(|(text, _)| text)
}

fn small(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// A walk over a statement. An alias refers to the last scan that was bound to it.
#[derive(Default)]
struct Walk<'a> {
    shape: StatementShape,
    /// The aliases in scope, innermost last, each with the index of its scan.
    bound: Vec<(&'a str, usize)>,
}

impl<'a> Walk<'a> {
    fn query(&mut self, query: &'a Query<'a>) {
        match query {
            Query::Select(select) => self.select(select),
            Query::UnionAll(selects) => selects.iter().for_each(|select| self.select(select)),
        }
    }

    fn select(&mut self, select: &'a Select<'a>) {
        let outside = self.bound.len();
        self.rows_of(select);
        for (item, _) in &select.items {
            self.expression(item);
        }
        self.bound.truncate(outside);
    }

    /// Binds the sources of a select, and walks its conditions and its order, but not its items.
    fn rows_of(&mut self, select: &'a Select<'a>) {
        for (_, query) in &select.with {
            self.query(query);
        }
        let first = self.bound.len();
        let sources = select.from.iter().chain(select.joins.iter().map(|join| &join.source));
        sources.for_each(|source| self.source(source));
        if !select.filters.is_empty() || !select.joins.is_empty() {
            for (_, scan) in &self.bound[first..] {
                self.shape.scans[*scan].is_narrowed = true;
            }
        }
        select.filters.iter().for_each(|filter| self.bounds(filter));
        let conditions = select.joins.iter().flat_map(|join| &join.on).chain(&select.filters).chain(&select.having);
        conditions.for_each(|condition| self.expression(condition));
        for item in &select.order {
            if let OrderBy::Expression(expression) = &item.by {
                self.expression(expression);
            }
        }
    }

    fn source(&mut self, source: &'a Source<'a>) {
        match source {
            Source::Cube { cube, alias } => self.bind(alias, ScannedRelation::Cube(cube.id)),
            Source::Table { name, alias } => self.bind(alias, ScannedRelation::Table(name.to_vec())),
            Source::Numbered { source, .. } => self.source(source),
            Source::Rows { query, alias } => self.filtered_rows(query, alias),
            Source::Derived(query, _) => self.query(query),
            Source::Named { .. } => {}
        }
    }

    /// Walks a select that passes all columns of a cube to the outer select. Only the columns that the outer select
    /// uses count, because engines leave out all others.
    fn filtered_rows(&mut self, query: &'a Query<'a>, alias: &'a str) {
        let Query::Select(select) = query else { return self.query(query) };
        let outside = self.bound.len();
        self.rows_of(select);
        let mut passed = None;
        for (item, _) in &select.items {
            match item {
                SqlExpr::Star(own) => passed = self.scan_of(own),
                other => self.expression(other),
            }
        }
        self.bound.truncate(outside);
        if let Some(scan) = passed {
            self.bound.push((alias, scan));
        }
    }

    /// Adds the bounds of times that a condition sets for all rows. Of each scan, the first column with bounds counts.
    fn bounds(&mut self, condition: &'a SqlExpr<'a>) {
        let (op, args) = match condition {
            SqlExpr::And(all) => return all.iter().for_each(|each| self.bounds(each)),
            SqlExpr::Op { op, args, .. } => (op, args),
            _ => return,
        };
        let [SqlExpr::Column { alias, name }, SqlExpr::Param(value)] = &args[..] else { return };
        let (Some(scan), Some(bound)) = (self.scan_of(alias), micros(value)) else { return };
        let new = || ScannedRange { column: (*name).clone(), place: 0, low: None, high: None };
        let range = self.shape.scans[scan].range.get_or_insert_with(new);
        if range.column != **name {
            return;
        }
        match op {
            Op::Ge | Op::Gt => range.low = range.low.max(Some(bound)),
            Op::Le | Op::Lt => range.high = Some(range.high.map_or(bound, |high| high.min(bound))),
            _ => {}
        }
    }

    fn bind(&mut self, alias: &'a str, relation: ScannedRelation) {
        self.bound.push((alias, self.shape.scans.len()));
        let columns = ScannedColumns::Named(Vec::new());
        self.shape.scans.push(Scan { relation, columns, is_narrowed: false, range: None });
    }

    fn scan_of(&self, alias: &str) -> Option<usize> {
        self.bound.iter().rev().find(|(bound, _)| *bound == alias).map(|(_, scan)| *scan)
    }

    fn uses(&mut self, alias: &str, name: &ColumnName) {
        let Some(scan) = self.scan_of(alias) else { return };
        if let ScannedColumns::Named(columns) = &mut self.shape.scans[scan].columns
            && !columns.contains(name)
        {
            columns.push(name.clone());
        }
    }

    fn expression(&mut self, expression: &'a SqlExpr<'a>) {
        match expression {
            SqlExpr::Text(text) => self.shape.has_unknown_scans |= has_query(text),
            SqlExpr::Column { alias, name } => self.uses(alias, name),
            SqlExpr::Derived(table, Name::Numbered(letter, number)) if self.scan_of(table).is_some() => {
                self.uses(table, &ColumnName { text: format!("{letter}{number}").into(), quoted: false });
            }
            SqlExpr::Star(alias) => {
                if let Some(scan) = self.scan_of(alias) {
                    self.shape.scans[scan].columns = ScannedColumns::All;
                }
            }
            SqlExpr::InQuery { operand, query } => {
                self.expression(operand);
                self.query(query);
            }
            other => self.parts(other),
        }
    }

    /// Walks the operands of an expression that itself names no column.
    fn parts(&mut self, expression: &'a SqlExpr<'a>) {
        match expression {
            SqlExpr::Call { args: parts, .. }
            | SqlExpr::Op { args: parts, .. }
            | SqlExpr::Time { args: parts, .. }
            | SqlExpr::Sequence { parts, .. }
            | SqlExpr::And(parts)
            | SqlExpr::Or(parts) => self.all(parts),
            SqlExpr::InList { operand, .. } => self.expression(operand),
            SqlExpr::FilteredAggregate { call, filters } => {
                self.expression(call);
                self.all(filters);
            }
            SqlExpr::When { conditions, value, otherwise } => {
                self.all(conditions);
                self.expression(value);
                otherwise.iter().for_each(|otherwise| self.expression(otherwise));
            }
            SqlExpr::SumOver { argument, partition, order } => {
                self.expression(argument);
                self.all(partition);
                self.all(order);
            }
            SqlExpr::RowNumber { partition, order } => {
                self.all(partition);
                self.all(order);
            }
            _ => {}
        }
    }

    fn all(&mut self, expressions: &'a [SqlExpr<'a>]) {
        expressions.iter().for_each(|expression| self.expression(expression));
    }
}

/// Returns whether an author's SQL may contain a query: whether it has the word `select` anywhere.
fn has_query(text: &str) -> bool {
    const SELECT: &[u8] = b"select";
    text.as_bytes().windows(SELECT.len()).any(|word| word.eq_ignore_ascii_case(SELECT))
}
