//! Statements that find rows that violate a project's keys, joins and tests of dimensions.
//!
//! In: a model. Out: a typed list of [`DataCheck`]s, each a claim and one SELECT of the rows that violate it. No policy
//! is applied to the rows, because the operator runs the checks. Not here: running the statements and wording their
//! results (app).
//!
//! Every statement has the same columns: the offending key, the number of rows with this key, the number of offending
//! keys, and the number of rows with any offending key. The rows of a source are numbered, so that a broken key cannot
//! hide a broken join.

use std::collections::HashSet;
use std::sync::Arc;

use super::ast::{JoinClause, JoinKind, Name, OrderBy, OrderItem, Page, Query, Select, Source, SqlExpr};
use super::compiled::{ColumnFormat, ResultColumn};
use super::dialect_profile::{DialectProfile, Op};
use super::lower::Lowered;
use super::print::{Parameters, print};
use super::scope::{RowScope, Texts};
use super::template::Segment;
use crate::diagnostic::Span;
use crate::model::{
    ColumnName, Cube, CubeId, Dimension, DimensionId, DimensionRule, DimensionTest, DimensionType, Join, JoinOperand,
    Model, Relation, Relationship, SqlPart, TimeKind, equalities, operands,
};
use crate::plan::{JoinTree, Protection, joins_for, joins_over};
use crate::query::QueryError;

/// The largest number of offending keys that a check names.
pub const FOUND_KEYS: u64 = 5;

const ROW_NUMBER: &str = "source_row";
const ROW_COUNT: &str = "row_count";
const KEY_COUNT: &str = "key_count";
const ALL_ROWS: &str = "all_rows";

/// A claim about a cube, which a check tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// No part of the primary key is null.
    KeyIsThere,
    /// No two rows have the same primary key.
    KeyIsUnique,
    /// No two rows of the target have the same values in the columns that it is joined on.
    TargetIsUnique { target: CubeId, relationship: Relationship },
    /// Each row joins at most one row of the target.
    FindsAtMostOne { target: CubeId, relationship: Relationship },
    /// Each row joins at least one row of the target.
    FindsOne { target: CubeId },
    /// Each row of the target belongs to at most one row of the cube.
    IsFoundOnce { target: CubeId, relationship: Relationship },
    /// The rows of a model or a query can be read.
    IsReadable,
    /// A dimension passes one of its tests.
    Dimension(DimensionClaim),
}

/// The claim of a dimension's test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DimensionClaim {
    NotNull(DimensionId),
    Unique(DimensionId),
    AcceptedValues(DimensionId),
    /// Each value of `from` is a value of `to`.
    Relationship {
        from: DimensionId,
        to: DimensionId,
    },
}

/// A claim, and the statement that searches for rows that violate it.
#[derive(Debug, Clone)]
pub struct DataCheck {
    pub claim: Claim,
    pub cube: CubeId,
    /// The place of the dimension, join or cube that makes the claim.
    pub span: Option<Span>,
    /// The names of the statement's first columns, which contain an offending key. Three columns of counts begin at
    /// [`DataCheck::counts_at`]: the rows with this key, the offending keys, and the rows with any offending key.
    pub key: Vec<Arc<str>>,
    pub counts_at: usize,
    /// The meanings of the first columns; empty if only the warehouse knows them.
    pub columns: Vec<ResultColumn>,
    pub text: String,
}

/// A statement that cannot be created: its cube, the place of the claim, and the error.
pub type UncheckedClaim = (CubeId, Option<Span>, QueryError);

/// Returns all checks of a model, cube by cube. Aliases are left out, because they have the rows and joins of their
/// cubes. If a statement cannot be created, the item is an error with the cube and the place.
pub fn data_checks(model: &Model, profile: &DialectProfile) -> Vec<Result<DataCheck, UncheckedClaim>> {
    let mut checks = Vec::new();
    let mut proven: HashSet<(CubeId, Vec<&ColumnName>)> = HashSet::new();
    for cube in model.cubes.iter().filter(|cube| cube.alias_of.is_none()) {
        let of_cube = OfCube { model, profile, cube };
        let wrong = |span: &Option<Span>, error| (cube.id, span.clone(), error);
        if let Some(first) = cube.primary_key.first() {
            let span = &cube.dimensions[*first as usize].span;
            for claim in [Claim::KeyIsThere, Claim::KeyIsUnique] {
                checks.push(of_cube.primary_key(claim, span.clone()).map_err(|error| wrong(span, error)));
            }
        } else if !matches!(cube.relation, Relation::Table(_)) {
            checks.push(of_cube.readable().map_err(|error| wrong(&cube.span, error)));
        }
        for join in &cube.joins {
            let checks_of_join = match join.relationship.is_to_one() {
                true => of_cube.join(join, &mut proven),
                false => of_cube.to_many_join(join),
            };
            for check in checks_of_join {
                checks.push(check.map_err(|error| wrong(&join.span, error)));
            }
        }
    }
    checks
}

/// Returns a check for each test of a dimension, cube by cube. Aliases are left out.
pub fn dimension_tests(
    model: &Model,
    profile: &DialectProfile,
) -> Vec<(DimensionClaim, Result<DataCheck, UncheckedClaim>)> {
    let mut checks = Vec::new();
    for cube in model.cubes.iter().filter(|cube| cube.alias_of.is_none()) {
        let of_cube = OfCube { model, profile, cube };
        for (index, dimension) in (0..).zip(&cube.dimensions) {
            let id = DimensionId { cube: cube.id, index };
            for test in &dimension.tests {
                let claim = DimensionClaim::of(id, &test.rule);
                let check = of_cube.dimension(claim, dimension, test);
                checks.push((claim, check.map_err(|error| (cube.id, Some(test.span.clone()), error))));
            }
        }
    }
    checks
}

impl DimensionClaim {
    fn of(id: DimensionId, rule: &DimensionRule) -> Self {
        match rule {
            DimensionRule::NotNull => DimensionClaim::NotNull(id),
            DimensionRule::Unique => DimensionClaim::Unique(id),
            DimensionRule::AcceptedValues(_) => DimensionClaim::AcceptedValues(id),
            DimensionRule::RefersTo(to) => DimensionClaim::Relationship { from: id, to: *to },
        }
    }
}

/// Returns whether columns of a cube contain its primary key.
fn holds_key(cube: &Cube, columns: &[&ColumnName]) -> bool {
    let mut key = cube.primary_key.iter().map(|index| &cube.dimensions[*index as usize].sql.parts[..]);
    !cube.primary_key.is_empty()
        && key.all(|parts| matches!(parts, [SqlPart::Column { name, .. }] if columns.contains(&name)))
}

struct OfCube<'m> {
    model: &'m Model,
    profile: &'m DialectProfile,
    cube: &'m Cube,
}

/// The parts of a check besides its claim.
struct Parts<'a> {
    key: Vec<(SqlExpr<'a>, Arc<str>)>,
    columns: Vec<ResultColumn>,
    /// An expression that distinguishes rows with the same shown key.
    row: Option<SqlExpr<'a>>,
    from: Source<'a>,
    joins: Vec<JoinClause<'a>>,
    filters: Vec<SqlExpr<'a>>,
    /// True if only keys that several rows share are offending.
    is_repeated: bool,
}

impl<'m> OfCube<'m> {
    fn primary_key(&self, claim: Claim, span: Option<Span>) -> Result<DataCheck, QueryError> {
        let dimensions = || self.cube.primary_key.iter().map(|index| &self.cube.dimensions[*index as usize]);
        let tree = joins_for(self.model, self.cube.id, dimensions().map(|dimension| &dimension.sql))?;
        let protection = Protection::default();
        let scope = self.scope(&tree, &protection);
        let (key, columns) = self.shown(&scope, dimensions());
        let is_repeated = claim == Claim::KeyIsUnique;
        let null = if is_repeated { Op::IsNotNull } else { Op::IsNull };
        let tests = key.iter().map(|(value, _)| SqlExpr::op(null, vec![value.clone()])).collect();
        let filters = if is_repeated { tests } else { vec![any(tests)] };
        let joins = self.joins(&scope, &tree);
        let from = self.rows(scope.alias(0));
        self.check(claim, span, Parts { key, columns, row: None, from, joins, filters, is_repeated })
    }

    /// Returns the values of dimensions of the cube, and their columns in a result.
    fn shown<'a>(
        &self,
        scope: &RowScope<'a>,
        dimensions: impl Iterator<Item = &'m Dimension>,
    ) -> (Vec<(SqlExpr<'a>, Arc<str>)>, Vec<ResultColumn>)
    where
        'm: 'a,
    {
        let shown = dimensions.map(|dimension| {
            let name = Arc::clone(&dimension.name);
            ((self.compared(scope, dimension), name), result_column(dimension))
        });
        shown.unzip()
    }

    /// Returns the value of a dimension of the cube. Strings are compared by code point, as in queries.
    fn compared<'a>(&self, scope: &RowScope<'a>, dimension: &'m Dimension) -> SqlExpr<'a>
    where
        'm: 'a,
    {
        let collates = self.profile.op(Op::Collate, 1, None).is_some_and(|t| t.segments != [Segment::Hole(0)]);
        let value = scope.by_code_point(dimension, scope.snippet(0, &dimension.sql));
        let is_text = collates && dimension.ty == DimensionType::String;
        if is_text { SqlExpr::op(Op::Collate, vec![value]) } else { value }
    }

    /// Creates the statement of a dimension's test. A violating null is shown by the primary key of its row. Other
    /// violating values are shown themselves.
    fn dimension(
        &self,
        claim: DimensionClaim,
        dimension: &'m Dimension,
        test: &'m DimensionTest,
    ) -> Result<DataCheck, QueryError> {
        let is_null = test.rule == DimensionRule::NotNull;
        let mut shown = vec![dimension];
        if is_null && !self.cube.primary_key.is_empty() {
            shown = self.cube.primary_key.iter().map(|index| &self.cube.dimensions[*index as usize]).collect();
        }
        let read = shown.iter().copied().chain([dimension]).map(|dimension| &dimension.sql);
        let tree = joins_for(self.model, self.cube.id, read)?;
        let target_tree = match &test.rule {
            DimensionRule::RefersTo(to) => {
                Some(joins_for(self.model, to.cube, std::iter::once(&self.model.dimension(*to).sql))?)
            }
            _ => None,
        };
        let protection = Protection::default();
        let scope = self.scope(&tree, &protection);
        let value = self.compared(&scope, dimension);
        let null = if is_null { Op::IsNull } else { Op::IsNotNull };
        let mut filters = vec![SqlExpr::op(null, vec![value.clone()])];
        if let DimensionRule::AcceptedValues(values) = &test.rule {
            filters.push(SqlExpr::InList { operand: Box::new(value.clone()), values, is_negated: true });
        }
        if let (DimensionRule::RefersTo(to), Some(tree)) = (&test.rule, &target_tree) {
            let query = Box::new(self.values_of(*to, tree, &protection));
            filters.push(SqlExpr::op(Op::Not, vec![SqlExpr::InQuery { operand: Box::new(value), query }]));
        }
        let (key, columns) = self.shown(&scope, shown.into_iter());
        let (from, joins) = (self.rows(scope.alias(0)), self.joins(&scope, &tree));
        let is_repeated = test.rule == DimensionRule::Unique;
        let parts = Parts { key, columns, row: None, from, joins, filters, is_repeated };
        self.check(Claim::Dimension(claim), Some(test.span.clone()), parts)
    }

    /// Returns the values of another cube's dimension that are not null.
    fn values_of<'a>(&self, id: DimensionId, tree: &'a JoinTree<'a>, protection: &'a Protection<'a>) -> Query<'a>
    where
        'm: 'a,
    {
        let of_target = OfCube { cube: self.model.cube(id.cube), ..*self };
        let scope = of_target.scope(tree, protection);
        let value = of_target.compared(&scope, self.model.dimension(id));
        let mut select = Select::new(vec![(value.clone(), Name::Numbered('v', 0))], of_target.rows(scope.alias(0)));
        select.joins = of_target.joins(&scope, tree);
        select.filters = vec![SqlExpr::op(Op::IsNotNull, vec![value])];
        Query::Select(Box::new(select))
    }

    /// Creates a statement that reads all rows of a model, and returns none.
    fn readable(&self) -> Result<DataCheck, QueryError> {
        let alias = &*self.cube.name;
        let rows = Select::new(vec![(SqlExpr::CountRows, Name::Fixed(ROW_COUNT))], self.rows(alias));
        let text = self.print(rows)?;
        let (claim, cube, span) = (Claim::IsReadable, self.cube.id, self.cube.span.clone());
        Ok(DataCheck { claim, cube, span, key: Vec::new(), counts_at: 0, columns: Vec::new(), text })
    }

    fn join(
        &self,
        join: &'m Join,
        proven: &mut HashSet<(CubeId, Vec<&'m ColumnName>)>,
    ) -> Vec<Result<DataCheck, QueryError>> {
        let (target, relationship) = (join.target, join.relationship);
        let equalities = equalities(&join.on, target);
        let mut checks = Vec::new();
        match &equalities {
            Some(pairs) => {
                if !self.is_proven(pairs, target, proven) {
                    checks.push(self.target_is_unique(join, pairs));
                }
            }
            None => checks.push(self.joined(join, Claim::FindsAtMostOne { target, relationship }, None)),
        }
        if join.always {
            checks.push(self.joined(join, Claim::FindsOne { target }, equalities.as_deref()));
        }
        if relationship == Relationship::OneToOne {
            checks.push(self.joined(join, Claim::IsFoundOnce { target, relationship }, None));
        }
        checks
    }

    /// Returns the check of a one-to-many join. No check is needed if the compared columns contain the cube's primary
    /// key, because the key has a check of its own.
    fn to_many_join(&self, join: &'m Join) -> Vec<Result<DataCheck, QueryError>> {
        let (target, relationship) = (join.target, join.relationship);
        let own: Vec<&ColumnName> = equalities(&join.on, target)
            .into_iter()
            .flatten()
            .filter_map(|[_, side]| match side {
                JoinOperand::Column(_, name) => Some(name),
                JoinOperand::Dimension(id) => match &self.model.dimension(id).sql.parts[..] {
                    [SqlPart::Column { cube, name }] if *cube == self.cube.id => Some(name),
                    _ => None,
                },
            })
            .collect();
        match holds_key(self.cube, &own) {
            true => Vec::new(),
            false => vec![self.joined(join, Claim::IsFoundOnce { target, relationship }, None)],
        }
    }

    /// Returns whether the compared columns contain the target's primary key, which has a check of its own, or were
    /// already checked for another join.
    fn is_proven(
        &self,
        pairs: &[[JoinOperand<'m>; 2]],
        target: CubeId,
        proven: &mut HashSet<(CubeId, Vec<&'m ColumnName>)>,
    ) -> bool {
        let cube = self.model.cube(target);
        let mut columns = Vec::with_capacity(pairs.len());
        for [side, _] in pairs {
            match side {
                JoinOperand::Column(_, name) => columns.push(*name),
                JoinOperand::Dimension(id) => match &self.model.dimension(*id).sql.parts[..] {
                    [SqlPart::Column { cube, name }] if *cube == target => columns.push(name),
                    _ => return false,
                },
            }
        }
        columns.sort_by(|a, b| a.text.cmp(&b.text));
        holds_key(cube, &columns) || !proven.insert((cube.alias_of.unwrap_or(target), columns))
    }

    fn target_is_unique(&self, join: &'m Join, pairs: &[[JoinOperand<'m>; 2]]) -> Result<DataCheck, QueryError> {
        let target = self.model.cube(join.target);
        let of_target = OfCube { cube: target, ..*self };
        let dimensions = pairs.iter().filter_map(|[side, _]| match side {
            JoinOperand::Dimension(id) => Some(&self.model.dimension(*id).sql),
            JoinOperand::Column(..) => None,
        });
        let tree = joins_for(self.model, join.target, dimensions)?;
        let protection = Protection::default();
        let scope = of_target.scope(&tree, &protection);
        let key: Vec<_> = pairs.iter().map(|[side, _]| of_target.value(&scope, 0, *side)).collect();
        let filters = key.iter().map(|(value, _)| SqlExpr::op(Op::IsNotNull, vec![value.clone()])).collect();
        let joins = of_target.joins(&scope, &tree);
        let from = of_target.rows(scope.alias(0));
        let claim = Claim::TargetIsUnique { target: join.target, relationship: join.relationship };
        let parts = Parts { key, columns: Vec::new(), row: None, from, joins, filters, is_repeated: true };
        self.check(claim, join.span.clone(), parts)
    }

    /// Creates a claim about pairs of rows. Its key consists of the columns that the condition reads from the offending
    /// row.
    fn joined(
        &self,
        join: &'m Join,
        claim: Claim,
        equalities: Option<&[[JoinOperand<'m>; 2]]>,
    ) -> Result<DataCheck, QueryError> {
        let tree = joins_over(self.model, self.cube.id, join)?;
        let protection = Protection::default();
        let scope = self.scope(&tree, &protection);
        let node = tree.joins.len();
        let (own, found) = (scope.alias(0), scope.alias(node));
        let shows_target = matches!(claim, Claim::IsFoundOnce { .. });
        let shown = operands(&join.on).into_iter().filter(|side| (side.cube() == join.target) == shows_target);
        let mut seen = HashSet::new();
        let key: Vec<_> = shown
            .map(|side| self.value(&scope, if shows_target { node } else { 0 }, side))
            .filter(|(_, name)| seen.insert(Arc::clone(name)))
            .collect();
        let number = |alias| SqlExpr::Added { alias, column: ROW_NUMBER };
        let mut joins = self.joins(&scope, &tree);
        let last = joins.last_mut();
        let (mut row, mut filters) = (None, Vec::new());
        let mut from = self.rows(own);
        match claim {
            Claim::FindsOne { .. } => {
                // An equality holds only for operands that are not null, so a null operand means that no row was found.
                let compared = equalities.and_then(|pairs| pairs.first()).map(|[side, _]| *side);
                let missing = match compared {
                    Some(JoinOperand::Column(_, name)) => SqlExpr::Column { alias: found, name },
                    _ => {
                        if let Some(last) = last {
                            last.source = numbered(self.model.cube(join.target), found);
                        }
                        number(found)
                    }
                };
                filters.push(SqlExpr::op(Op::IsNull, vec![missing]));
            }
            _ => {
                if let Some(last) = last {
                    last.kind = JoinKind::Inner;
                    if shows_target {
                        last.source = numbered(self.model.cube(join.target), found);
                    }
                }
                if !shows_target {
                    from = numbered(self.cube, own);
                }
                row = Some(number(if shows_target { found } else { own }));
            }
        }
        let is_repeated = row.is_some();
        let parts = Parts { key, columns: Vec::new(), row, from, joins, filters, is_repeated };
        self.check(claim, join.span.clone(), parts)
    }

    fn check(&self, claim: Claim, span: Option<Span>, parts: Parts<'_>) -> Result<DataCheck, QueryError> {
        let mut items = Vec::with_capacity(parts.key.len() + 4);
        let mut key = Vec::with_capacity(parts.key.len());
        for (index, (value, name)) in parts.key.into_iter().enumerate() {
            items.push((value, Name::Numbered('k', index)));
            key.push(name);
        }
        items.extend(parts.row.map(|row| (row, Name::Fixed(ROW_NUMBER))));
        let counts_at = items.len();
        let all_rows =
            SqlExpr::SumOver { argument: Box::new(SqlExpr::CountRows), partition: Vec::new(), order: Vec::new() };
        items.push((SqlExpr::CountRows, Name::Fixed(ROW_COUNT)));
        items.push((SqlExpr::CountOverAll, Name::Fixed(KEY_COUNT)));
        items.push((all_rows, Name::Fixed(ALL_ROWS)));
        let mut select = Select::new(items, parts.from);
        select.joins = parts.joins;
        select.filters = parts.filters;
        select.group_by = counts_at;
        if parts.is_repeated {
            select.having = vec![SqlExpr::op(Op::Gt, vec![SqlExpr::CountRows, SqlExpr::Integer(1)])];
        }
        let by = |item, descending| OrderItem { by: OrderBy::Item(item), descending };
        select.order = std::iter::once(by(counts_at + 1, true)).chain((1..=counts_at).map(|n| by(n, false))).collect();
        select.page = Some(Page { limit: FOUND_KEYS, offset: 0 });
        let text = self.print(select)?;
        Ok(DataCheck { claim, cube: self.cube.id, span, key, counts_at, columns: parts.columns, text })
    }

    fn print(&self, select: Select<'_>) -> Result<String, QueryError> {
        let lowered = Lowered { query: Query::Select(Box::new(select)), total_column: None, added_column: None };
        Ok(print(&lowered, self.profile, Parameters::Inline)?.0)
    }

    fn scope<'a>(&self, tree: &'a JoinTree<'a>, protection: &'a Protection<'a>) -> RowScope<'a>
    where
        'm: 'a,
    {
        RowScope::new(self.model, tree, protection, Texts::default())
    }

    fn rows<'a>(&self, alias: &'a str) -> Source<'a>
    where
        'm: 'a,
    {
        Source::Cube { cube: self.cube, alias }
    }

    fn joins<'a>(&self, scope: &RowScope<'a>, tree: &'a JoinTree<'a>) -> Vec<JoinClause<'a>>
    where
        'm: 'a,
    {
        let joins = tree.joins.iter().enumerate();
        joins
            .map(|(index, planned)| JoinClause {
                source: Source::Cube { cube: self.model.cube(planned.join.target), alias: &planned.alias },
                kind: JoinKind::Left,
                on: vec![scope.join_condition(index + 1)],
            })
            .collect()
    }

    /// Returns the value of one side of a comparison in the scope of `owner`, and its name.
    fn value<'a>(&self, scope: &RowScope<'a>, owner: usize, side: JoinOperand<'a>) -> (SqlExpr<'a>, Arc<str>)
    where
        'm: 'a,
    {
        match side {
            JoinOperand::Dimension(id) => {
                let own = scope.tree.cube_of(owner) == id.cube;
                let dimension = self.model.dimension(id);
                let value = if own { scope.snippet(owner, &dimension.sql) } else { scope.dimension(0, id) };
                (value, Arc::clone(&dimension.name))
            }
            JoinOperand::Column(cube, name) => {
                let node = if scope.tree.cube_of(owner) == cube { Some(owner) } else { None };
                let node = node.or_else(|| scope.tree.find(self.model, 0, cube)).unwrap_or(0);
                (SqlExpr::Column { alias: scope.alias(node), name }, Arc::clone(&name.text))
            }
        }
    }
}

fn numbered<'a>(cube: &'a Cube, alias: &'a str) -> Source<'a> {
    Source::Numbered { source: Box::new(Source::Cube { cube, alias }), alias, column: ROW_NUMBER }
}

fn result_column(dimension: &Dimension) -> ResultColumn {
    let format = match (dimension.ty, dimension.time) {
        (DimensionType::Time, TimeKind::Utc) => ColumnFormat::Instant(jiff::tz::TimeZone::UTC),
        (DimensionType::Time, TimeKind::WallClock) => ColumnFormat::WallClock,
        _ => ColumnFormat::Plain,
    };
    ResultColumn { key: Arc::clone(&dimension.name), is_measure: false, ty: dimension.ty, format }
}

fn any(mut tests: Vec<SqlExpr<'_>>) -> SqlExpr<'_> {
    if tests.len() == 1 { tests.remove(0) } else { SqlExpr::Or(tests) }
}
