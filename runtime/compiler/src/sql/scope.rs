//! The joined rows of one select: the meaning of the names in snippets, and the rows that they are evaluated on.
//!
//! In: a join tree under a caller's row filters. Out: snippets, dimensions and conditions over its rows. An engine
//! evaluates the conditions of a WHERE or ON in any order, and may move conditions of an outer select into an inner
//! one, next to a row filter. So an expression that can fail on a row is put into a CASE over the row filter of the
//! cube that it reads. CASE is the only construct whose order engines guarantee: no hidden row makes a statement fail.
//! A column that is only compared is not put into a CASE, so that engines can use indexes and hash joins.

use super::ast::{Name, SqlExpr};
use super::dialect_profile::Op;
use super::predicate::{Tested, lower_predicate};
use crate::model::{ColumnName, CubeId, Dimension, DimensionId, DimensionType, Model, Rollup, Snippet, SqlPart};
use crate::plan::{JoinTree, NodeId, Protection, RowGuard, type_of};
use crate::query::{Operand, Predicate};
use crate::types::LogicalType;

/// The column that marks the rows of a cube that passed the row filters.
pub(super) const PASSES: &str = "terrane_passes";
/// The form of a string column that its indexes use: equal for all strings that are equal by code point.
pub(super) const LOOKUP: (&str, usize) = ("text_lookup", 1);
/// The form to which a dialect without types for times converts strings that contain times: equal for equal times.
pub(super) const TIME: (&str, usize) = ("text_time", 1);

/// The conversions that strings need before a dialect compares them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Texts {
    pub(super) collates: bool,
    /// True if the dialect has [`LOOKUP`].
    pub(super) looks_up: bool,
    /// True if the dialect has [`TIME`].
    pub(super) are_times: bool,
}

/// The joined rows of one fact, which the names in snippets refer to.
#[derive(Clone, Copy)]
pub(super) struct RowScope<'a> {
    pub(super) model: &'a Model,
    pub(super) tree: &'a JoinTree<'a>,
    pub(super) protection: &'a Protection<'a>,
    pub(super) texts: Texts,
    /// The alias of the root's rows, if it is not the cube's name.
    root: Option<&'a str>,
    /// The node whose row filter needs no check: the expression is a part of the filter, or is inside a CASE over it.
    passed: Option<NodeId>,
    /// The pre-aggregation whose table the rows come from.
    stored: Option<&'a Rollup>,
}

/// The alias of the rows of a pre-aggregation's table.
pub(super) const STORED: &str = "stored";

impl<'a> RowScope<'a> {
    pub(super) fn new(
        model: &'a Model,
        tree: &'a JoinTree<'a>,
        protection: &'a Protection<'a>,
        texts: Texts,
    ) -> RowScope<'a> {
        RowScope { model, tree, protection, texts, root: None, passed: None, stored: None }
    }

    /// Returns the scope over the rows of a pre-aggregation's table, if one is given.
    pub(super) fn over(self, stored: Option<&'a Rollup>) -> RowScope<'a> {
        RowScope { stored, ..self }
    }

    /// Returns the stored column of a dimension, if the scope reads a table of a pre-aggregation.
    fn stored_dimension(&self, id: DimensionId) -> Option<SqlExpr<'a>> {
        let rollup = self.stored?;
        let dimension = rollup.dimensions.iter().position(|stored| *stored == id);
        let name = match dimension {
            Some(index) => Name::Numbered('d', index),
            None => rollup.bucket_of(id).map(|_| Name::Numbered('t', 0))?,
        };
        Some(SqlExpr::Derived(STORED, name))
    }

    /// Returns the stored column of a dimension that consists only of this column.
    fn stored_column(&self, cube: CubeId, name: &ColumnName) -> Option<SqlExpr<'a>> {
        let is_column = |id: &DimensionId| self.model.dimension(*id).is_column(cube, name);
        let index = self.stored?.dimensions.iter().position(is_column)?;
        Some(SqlExpr::Derived(STORED, Name::Numbered('d', index)))
    }

    /// Returns the scope for conditions of a row filter. `root` is the alias of the filtered rows.
    pub(super) fn judging(self, root: Option<&'a str>) -> RowScope<'a> {
        RowScope { root, passed: Some(0), ..self }
    }

    /// Returns the scope inside a CASE over a node's row filter.
    fn behind(self, node: NodeId) -> RowScope<'a> {
        RowScope { passed: Some(node), ..self }
    }

    /// Returns the alias of a node's rows in SQL.
    pub(super) fn alias(&self, node: NodeId) -> &'a str {
        match node.checked_sub(1) {
            Some(index) => &self.tree.joins[index].alias,
            None => self.root.unwrap_or(&self.model.cube(self.tree.cube).name),
        }
    }

    pub(super) fn node_of(&self, cube: CubeId) -> NodeId {
        self.tree.find(self.model, 0, cube).unwrap_or(0)
    }

    /// Returns a snippet of a joined cube.
    pub(super) fn in_cube(&self, cube: CubeId, snippet: &'a Snippet) -> SqlExpr<'a> {
        self.snippet(self.node_of(cube), snippet)
    }

    /// Returns whether each row of the root has a row of a node.
    pub(super) fn is_always_joined(&self, node: NodeId) -> bool {
        self.protection.is_always_joined(self.tree, node)
    }

    /// Returns a joined cube's value; null if no row of it is joined.
    pub(super) fn where_joined(&self, cube: CubeId, value: SqlExpr<'a>) -> SqlExpr<'a> {
        match self.node_of(cube) {
            node if self.is_always_joined(node) => value,
            node => SqlExpr::when(vec![self.is_joined(node)], value, None),
        }
    }

    /// Returns an expression over a cube's rows, which is null on hidden rows.
    pub(super) fn where_visible(&self, cube: CubeId, make: impl FnOnce(RowScope<'a>) -> SqlExpr<'a>) -> SqlExpr<'a> {
        let node = self.node_of(cube);
        match self.guard(node) {
            Some(guard) => SqlExpr::when(guard, make(self.behind(node)), None),
            None => make(*self),
        }
    }

    /// Returns a snippet of a member of `owner`'s cube.
    pub(super) fn snippet(&self, owner: NodeId, snippet: &'a Snippet) -> SqlExpr<'a> {
        match &snippet.parts[..] {
            [SqlPart::Dimension(id)] => self.dimension(owner, *id),
            _ => self.own(owner, snippet, Evaluation::Infallible),
        }
    }

    pub(super) fn join_condition(&self, node: NodeId) -> SqlExpr<'a> {
        let planned = &self.tree.joins[node - 1];
        // Columns are guarded one by one, so that an equality of columns stays an equality.
        let evaluation = Evaluation::Infallible.and(self.is_infallible(&planned.join.on));
        self.parts(planned.from, &planned.join.on, Some(node), evaluation)
    }

    /// Returns a dimension that a member of `owner`'s cube refers to. It is null if no row is joined, even if its SQL
    /// would turn null into a value.
    pub(super) fn dimension(&self, owner: NodeId, id: DimensionId) -> SqlExpr<'a> {
        self.value(owner, id, Evaluation::Infallible)
    }

    /// Returns a dimension of the root's members. A string is comparable by code point. A time that is stored as a
    /// string is comparable with literals and with other times.
    pub(super) fn comparable(&self, id: DimensionId) -> SqlExpr<'a> {
        let dimension = self.model.dimension(id);
        let value = self.value(0, id, Evaluation::Infallible.and(compares_as_it_is(dimension)));
        if self.texts.are_times && is_time_in_string(dimension) {
            return SqlExpr::Call { name: TIME.0, args: vec![value] };
        }
        self.by_code_point(dimension, value)
    }

    /// Returns a number of the root's members as an operand of an operation, which can fail. It is null on hidden rows.
    pub(super) fn operand(&self, id: DimensionId) -> SqlExpr<'a> {
        self.value(0, id, Evaluation::Fallible)
    }

    /// Returns the value of a dimension. A string is converted so that it compares by code point; a string dimension
    /// over a column of a different type is converted to a string first.
    pub(super) fn by_code_point(&self, dimension: &Dimension, value: SqlExpr<'a>) -> SqlExpr<'a> {
        let value = if dimension.converted_from.is_some() { value.cast(LogicalType::Text) } else { value };
        if self.texts.collates && matches!(dimension.ty, DimensionType::String) {
            return SqlExpr::op(Op::Collate, vec![value]);
        }
        value
    }

    /// Returns a predicate over dimensions. If `by_index` is true, it contains a form that an index can answer.
    pub(super) fn predicate(&self, predicate: &'a Predicate, by_index: bool) -> SqlExpr<'a> {
        lower_predicate(predicate, false, &mut |on| self.tested(on, by_index))
    }

    fn tested(&self, on: &'a Operand, by_index: bool) -> Tested<'a> {
        // `plan` keeps groups out of row filters.
        let Operand::Dimension { id, .. } = on else { return Tested::plain(SqlExpr::Null(None)) };
        match self.comparable(*id) {
            SqlExpr::Op { op: Op::Collate, ty, args } => {
                let bare = args[0].clone();
                let is_column = by_index && self.texts.looks_up && matches!(bare, SqlExpr::Column { .. });
                let lookup = is_column.then(|| SqlExpr::Call { name: LOOKUP.0, args: vec![bare.clone()] });
                Tested { value: SqlExpr::Op { op: Op::Collate, ty, args }, bare: Some(bare), lookup }
            }
            value => Tested::plain(value),
        }
    }

    /// Returns the conditions on the root's rows, which are ANDed. Conditions that cannot fail come first. Every other
    /// condition is evaluated only on rows that passed the conditions before it. A row that one filter hides can
    /// therefore not make another filter fail.
    pub(super) fn row_filters(&self, all: &[&'a Snippet], predicates: &[&'a Predicate]) -> Vec<SqlExpr<'a>> {
        let (mut certain, mut others) = (Vec::new(), Vec::new());
        for sql in all {
            if self.is_infallible(sql) { &mut certain } else { &mut others }.push(self.snippet(0, sql));
        }
        for predicate in predicates {
            let mut is_infallible = true;
            predicate.for_each_operand(&mut |operand| {
                if let Operand::Dimension { id, .. } = operand {
                    let dimension = self.model.dimension(*id);
                    is_infallible &= compares_as_it_is(dimension) && self.is_infallible(&dimension.sql);
                }
            });
            if is_infallible { &mut certain } else { &mut others }.push(self.predicate(predicate, true));
        }
        let behind = |inner: Option<SqlExpr<'a>>, outer| match inner {
            Some(inner) => Some(SqlExpr::when(vec![outer], inner, None)),
            None => Some(outer),
        };
        if let Some(mut last) = others.into_iter().rev().fold(None, behind) {
            if !certain.is_empty() {
                last = SqlExpr::when(certain.clone(), last, None);
            }
            certain.push(last);
        }
        certain
    }

    /// Returns the condition that a node's row is visible; none if all rows are, or if it is already checked.
    fn guard(&self, node: NodeId) -> Option<Vec<SqlExpr<'a>>> {
        if self.passed == Some(node) {
            return None;
        }
        let alias = self.alias(node);
        Some(match self.protection.rows(self.tree.cube_of(node))? {
            RowGuard::Never => vec![SqlExpr::Boolean(false)],
            RowGuard::Filters { tree, all, predicates } if tree.joins.is_empty() => {
                RowScope { tree, ..*self }.judging(Some(alias)).row_filters(all, predicates)
            }
            RowGuard::Filters { .. } => vec![SqlExpr::Added { alias, column: PASSES }],
        })
    }

    /// Returns whether the expression cannot fail on any row.
    fn is_infallible(&self, snippet: &Snippet) -> bool {
        let of_part = |part: &SqlPart| match part {
            SqlPart::Dimension(id) => self.is_infallible(&self.model.dimension(*id).sql),
            SqlPart::User(user) => {
                user.compared.as_ref().is_some_and(|other| type_of(self.model, other) != LogicalType::Unknown)
            }
            _ => true,
        };
        snippet.is_infallible && snippet.parts.iter().all(of_part)
    }

    /// Lowers a member's own expression inside an expression of the given evaluation.
    fn own(&self, owner: NodeId, snippet: &'a Snippet, outer: Evaluation) -> SqlExpr<'a> {
        let evaluation = outer.and(self.is_infallible(snippet));
        let reads_rows =
            snippet.parts.iter().any(|part| matches!(part, SqlPart::Column { .. } | SqlPart::Dimension(_)));
        // If no row is joined, an expression may still have a value. In a joined cube, its columns are therefore
        // guarded one by one.
        let is_unguarded = evaluation == Evaluation::Infallible || owner != 0 || !reads_rows;
        let guard = if is_unguarded { None } else { self.guard(owner) };
        match guard {
            Some(guard) => {
                SqlExpr::when(guard, self.behind(owner).parts(owner, snippet, None, Evaluation::Fallible), None)
            }
            None => self.parts(owner, snippet, None, evaluation),
        }
    }

    fn value(&self, owner: NodeId, id: DimensionId, outer: Evaluation) -> SqlExpr<'a> {
        if let Some(stored) = self.stored_dimension(id) {
            return stored;
        }
        let node = self.tree.find(self.model, owner, id.cube).unwrap_or(owner);
        let snippet = &self.model.dimension(id).sql;
        if node == owner || matches!(snippet.parts[..], [SqlPart::Column { .. }]) {
            return self.own(node, snippet, outer);
        }
        let evaluation = outer.and(self.is_infallible(snippet));
        let guard = if evaluation == Evaluation::Infallible { None } else { self.guard(node) };
        let scope = if guard.is_some() { self.behind(node) } else { *self };
        let conditions = std::iter::once(self.is_joined(node)).chain(guard.into_iter().flatten()).collect();
        SqlExpr::when(conditions, scope.parts(node, snippet, None, evaluation), None)
    }

    /// Returns the parts of a snippet. `joined` is the node that an `on` condition is about to join.
    fn parts(
        &self,
        owner: NodeId,
        snippet: &'a Snippet,
        joined: Option<NodeId>,
        evaluation: Evaluation,
    ) -> SqlExpr<'a> {
        let node_of = |cube| {
            let own = joined.filter(|node| self.tree.cube_of(*node) == cube);
            // `plan` has joined every cube that the snippet names.
            own.or_else(|| self.tree.find(self.model, owner, cube)).unwrap_or(owner)
        };
        let part = |part: &'a SqlPart| match part {
            SqlPart::Text(text) => SqlExpr::Text(text),
            SqlPart::Column { cube, name } => self.column(node_of(*cube), name, evaluation),
            SqlPart::Dimension(id) if joined.is_some_and(|node| self.tree.cube_of(node) == id.cube) => {
                self.own(node_of(id.cube), &self.model.dimension(*id).sql, evaluation)
            }
            SqlPart::Dimension(id) => self.value(owner, *id, evaluation),
            SqlPart::Divide(left, right) => {
                let side = |side| self.parts(owner, side, joined, evaluation);
                SqlExpr::op(Op::Div, vec![side(left), side(right)])
            }
            SqlPart::User(user) => SqlExpr::ParamList {
                values: self.protection.values(self.model, user),
                is_compared: user.compared.is_some(),
            },
            // Only values contain these parts, and values are lowered from the plan's own expressions.
            SqlPart::Measure(_) | SqlPart::Metric(_) | SqlPart::Aggregate(_) => SqlExpr::Null(None),
        };
        match &snippet.parts[..] {
            [single] if !matches!(single, SqlPart::Text(_)) => part(single),
            parts => SqlExpr::Sequence { parts: parts.iter().map(part).collect(), is_atomic: snippet.is_atomic },
        }
    }

    fn column(&self, node: NodeId, name: &'a ColumnName, evaluation: Evaluation) -> SqlExpr<'a> {
        if let Some(stored) = self.stored_column(self.tree.cube_of(node), name) {
            return stored;
        }
        let column = SqlExpr::Column { alias: self.alias(node), name };
        match if evaluation == Evaluation::Infallible { None } else { self.guard(node) } {
            Some(guard) => SqlExpr::when(guard, column, None),
            None => column,
        }
    }

    /// Returns the condition that a row is joined: its key, or else a column that it is joined on, is not null. If
    /// neither column is known, the condition is the condition of the join.
    fn is_joined(&self, node: NodeId) -> SqlExpr<'a> {
        let cube = self.model.cube(self.tree.cube_of(node));
        let key = cube.primary_key.first().map(|index| &cube.dimensions[*index as usize].sql.parts[..]);
        let name = match key {
            Some([SqlPart::Column { name, .. }]) => Some(name),
            _ => compared_column(&self.tree.joins[node - 1].join.on, cube.id),
        };
        match name {
            Some(name) => {
                let column = SqlExpr::Column { alias: self.alias(node), name };
                SqlExpr::op(Op::IsNotNull, vec![column])
            }
            None => self.join_condition(node),
        }
    }
}

/// The rows on which an expression can be evaluated without an error: all rows, or only rows that passed their guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Evaluation {
    Infallible,
    Fallible,
}

impl Evaluation {
    /// Returns the evaluation of an expression to which a part is added. It is infallible only if the part is
    /// infallible too.
    fn and(self, is_infallible: bool) -> Evaluation {
        if is_infallible { self } else { Evaluation::Fallible }
    }
}

/// Returns whether a time comes from a column that may contain strings in several forms. Even in an engine without
/// types for times, columns may be declared as `DATE` or `TIMESTAMP`; their values have one form.
fn is_time_in_string(dimension: &Dimension) -> bool {
    dimension.ty == DimensionType::Time && matches!(dimension.column_type, LogicalType::Text | LogicalType::Unknown)
}

/// Returns whether a dimension's column is compared without a cast. A query's values then have the column's own type,
/// so that no engine converts the column. A string dimension is always compared in this way, because the conversion to
/// a string never fails.
fn compares_as_it_is(dimension: &Dimension) -> bool {
    use LogicalType::{Boolean, Decimal, Float, Integer};
    match dimension.ty {
        DimensionType::String | DimensionType::Geo => true,
        DimensionType::Number => matches!(dimension.column_type, Integer | Decimal | Float),
        DimensionType::Boolean => matches!(dimension.column_type, Boolean | Integer),
        DimensionType::Time => dimension.column_type.is_temporal(),
    }
}

/// Returns a column of the joined cube that cannot be null if the condition is true, because the condition consists of
/// equalities.
fn compared_column(on: &Snippet, joined: CubeId) -> Option<&ColumnName> {
    let is_plain = |text: &str| {
        let words = text.split(|c: char| c.is_whitespace() || c == '(' || c == ')').filter(|word| !word.is_empty());
        words.into_iter().all(|word| word == "=" || word.eq_ignore_ascii_case("and"))
    };
    let mut column = None;
    for part in &on.parts {
        match part {
            SqlPart::Text(text) if !is_plain(text) => return None,
            SqlPart::Column { cube, name } if *cube == joined => column = column.or(Some(name)),
            SqlPart::Text(_) | SqlPart::Column { .. } => {}
            _ => return None,
        }
    }
    column
}
