//! Author's snippets, dimensions, time buckets, aggregates and row filters as SQL expressions.
//!
//! In: nodes of the plan. Out: nodes of the SQL tree, in the scope of one fact's joined rows.

use super::ast::{SqlExpr, TimeFunction};
use super::predicate::{Tested, lower_predicate, lower_test};
use super::profile::{DialectProfile, Op};
use super::template::Segment;
use super::zone::{Reach, Zone, has_zones, in_zone, reach};
use crate::model::{
    AggregateFunction, ColumnName, CubeId, Dimension, DimensionId, DimensionType, Mask, Model, Snippet, SqlPart,
    TimeKind,
};
use crate::plan::{Fact, JoinTree, LogicalPlan, NodeId, PlannedAggregate, Protection, SecuredPlan, Shape};
use crate::query::{Axis, Operand, Predicate};
use crate::types::{Granularity, LogicalType, Value};

pub(super) struct Expressions<'a> {
    plan: &'a LogicalPlan<'a>,
    protection: &'a Protection<'a>,
    pub(super) has_filter_clause: bool,
    /// A decimal without a scale of its own holds any.
    pub(super) has_unbounded_decimals: bool,
    collates: bool,
    /// Whether the dialect has [`LOOKUP`].
    looks_up: bool,
    /// Unless it is UTC.
    zone: Option<Zone<'a>>,
    /// The engine keeps instants in a zone, and is asked for them in UTC.
    has_zones: bool,
    /// Whether the dialect has [`HASH`] and [`PARTIAL`].
    masks: [bool; 2],
}

/// The functions behind masks, as a dialect names its templates, and how many arguments they take.
const HASH: (&str, usize) = ("mask_hash", 1);
const PARTIAL: (&str, usize) = ("mask_partial", 2);
/// A text column as its indexes have it: equal at least where the texts are, by code point.
const LOOKUP: (&str, usize) = ("text_lookup", 1);
/// What a partial mask shows behind the first character.
const VEIL: &str = "***";

impl<'a> Expressions<'a> {
    pub(super) fn new(secured: &'a SecuredPlan<'a>, profile: &DialectProfile) -> Self {
        let plan = secured.plan();
        let has = |(name, arity): (&str, usize)| profile.function(name, arity, None).is_some();
        Expressions {
            plan,
            protection: secured.protection(),
            masks: [HASH, PARTIAL].map(has),
            has_filter_clause: profile.features.filter_clause,
            has_unbounded_decimals: !profile.type_name(LogicalType::Decimal).contains('('),
            collates: profile.op(Op::Collate, 1, None).is_some_and(|t| t.segments != [Segment::Hole(0)]),
            looks_up: has(LOOKUP),
            zone: Zone::of(plan, profile),
            has_zones: has_zones(profile),
        }
    }

    fn scope(&self, fact: &'a Fact<'a>) -> RowScope<'a> {
        self.tree_scope(&fact.tree)
    }

    fn tree_scope(&self, tree: &'a JoinTree<'a>) -> RowScope<'a> {
        RowScope { model: self.plan.model, tree, protection: self.protection, root: None }
    }

    pub(super) fn snippet(&self, fact: &'a Fact<'a>, owner: NodeId, snippet: &'a Snippet) -> SqlExpr<'a> {
        self.scope(fact).snippet(owner, snippet)
    }

    /// A dimension's own value, comparable by code point if it is text.
    pub(super) fn dimension(&self, fact: &'a Fact<'a>, id: DimensionId) -> SqlExpr<'a> {
        self.tree_dimension(&fact.tree, id)
    }

    fn tree_dimension(&self, tree: &'a JoinTree<'a>, id: DimensionId) -> SqlExpr<'a> {
        self.scoped_dimension(self.tree_scope(tree), id)
    }

    fn scoped_dimension(&self, scope: RowScope<'a>, id: DimensionId) -> SqlExpr<'a> {
        let value = scope.dimension(0, id);
        if self.collates && matches!(self.plan.model.dimension(id).ty, DimensionType::String) {
            return SqlExpr::op(Op::Collate, vec![value]);
        }
        value
    }

    /// A dimension as the caller may see it.
    pub(super) fn shown(&self, fact: &'a Fact<'a>, id: DimensionId) -> SqlExpr<'a> {
        let raw = || self.dimension(fact, id);
        let dimension = self.plan.model.dimension(id);
        let ty = dimension.column_type;
        let hidden = || SqlExpr::Null(Some(ty).filter(|ty| !matches!(ty, LogicalType::Decimal | LogicalType::Unknown)));
        // What can't be veiled is hidden.
        let veiled = |is_possible: bool, (name, _), args| match is_possible && ty == LogicalType::Text {
            true => SqlExpr::Call { name, args },
            false => hidden(),
        };
        match self.protection.mask_of(id) {
            None => raw(),
            Some(Mask::Null) => hidden(),
            Some(Mask::Constant(value)) => self.scope(fact).where_joined(id.cube, SqlExpr::Param(value)),
            Some(Mask::Hash) => veiled(self.masks[0], HASH, vec![raw()]),
            Some(Mask::Partial) => veiled(self.masks[1], PARTIAL, vec![raw(), SqlExpr::String(VEIL)]),
            Some(Mask::Truncate(granularity)) => self.truncated(raw(), *granularity, ty),
            Some(Mask::Sql(sql)) => {
                let scope = self.scope(fact);
                scope.where_joined(id.cube, scope.in_cube(id.cube, sql))
            }
        }
    }

    /// The start of a time's bucket, in UTC if it is an instant, as a value of the column's own type.
    fn truncated(&self, value: SqlExpr<'a>, granularity: Granularity, ty: LogicalType) -> SqlExpr<'a> {
        // A day has no hours to hide.
        if ty == LogicalType::Date && granularity.is_sub_day() {
            return value;
        }
        let value = if ty == LogicalType::TimestampTz && self.has_zones { in_zone(value, "UTC", ty) } else { value };
        let bucket = SqlExpr::Time { granularity, function: TimeFunction::Trunc, args: vec![value] };
        if ty == LogicalType::Unknown { bucket } else { bucket.cast(ty) }
    }

    /// A fact's n-th group-by column, moved if the fact is of the other stretch and clamped if what
    /// was before the range counts.
    pub(super) fn group(&self, fact: &'a Fact<'a>, index: usize) -> SqlExpr<'a> {
        let Some(granularity) = self.plan.groups[index].granularity else {
            return self.shown(fact, fact.groups[index]);
        };
        let dimension = self.plan.model.dimension(fact.groups[index]);
        let id = fact.groups[index];
        // A mask puts another value in its place.
        let reach = if self.protection.mask_of(id).is_none() { reach(fact, id) } else { Reach::default() };
        let (value, bucketed) = self.bucketed(fact, id, granularity);
        let mut bucket = self.bucket(value, bucketed, dimension.time, dimension.column_type, reach);
        let ty = self.bucket_type(granularity, dimension);
        let shift = self.plan.shifts.iter().find(|shift| shift.group == index && shift.buckets != 0);
        if let Some(shift) = shift.filter(|_| fact.period.is_previous) {
            bucket = added(granularity, bucket, SqlExpr::Integer(shift.buckets), ty);
        }
        let axis = self.plan.axis.as_ref().filter(|_| fact.period.has_history);
        let first = axis.and_then(|axis| {
            let position = axis.groups.iter().position(|group| *group == index)?;
            Some(self.step(axis.first_buckets.as_ref()?[position], ty))
        });
        match first {
            Some(first) => {
                let is_before = SqlExpr::op(Op::Lt, vec![bucket.clone(), first.clone()]);
                SqlExpr::when(vec![is_before], first, Some(bucket))
            }
            None => bucket,
        }
    }

    /// What is put into buckets, and of which granularity. Under a mask of buckets it is the coarser of the
    /// two, in the query's zone, where buckets of the one are made of those of the other.
    fn bucketed(&self, fact: &'a Fact<'a>, id: DimensionId, asked: Granularity) -> (SqlExpr<'a>, Granularity) {
        if let Some(Mask::Truncate(most)) = self.protection.mask_of(id) {
            let (dimension, coarser) = (self.plan.model.dimension(id), asked.max(*most));
            // A month would tell the parts of a week from one another.
            let is_nested = coarser == *most || *most != Granularity::Week;
            if is_nested && self.bucket_type(coarser, dimension) == self.bucket_type(asked, dimension) {
                return (self.dimension(fact, id), coarser);
            }
        }
        (self.shown(fact, id), asked)
    }

    /// Days and more are local time; hours and finer are stretches of instants, so that the hour that
    /// comes twice in autumn stays two.
    fn bucket(
        &self,
        value: SqlExpr<'a>,
        granularity: Granularity,
        kind: TimeKind,
        column_type: LogicalType,
        reach: Reach,
    ) -> SqlExpr<'a> {
        let time = |function, args| SqlExpr::Time { granularity, function, args };
        match (kind == TimeKind::Utc, self.zone) {
            (true, Some(zone)) if granularity.is_sub_day() => {
                let local = zone.local(value.clone(), column_type, reach);
                time(TimeFunction::TruncInstant, vec![value, local])
            }
            (true, Some(zone)) => time(TimeFunction::Trunc, vec![zone.local(value, column_type, reach)]),
            (true, None) if column_type == LogicalType::TimestampTz && self.has_zones => {
                time(TimeFunction::Trunc, vec![in_zone(value, "UTC", column_type)])
            }
            _ => time(TimeFunction::Trunc, vec![value]),
        }
    }

    /// The type of a time bucket.
    pub(super) fn bucket_type(&self, granularity: Granularity, dimension: &Dimension) -> LogicalType {
        match dimension.column_type {
            LogicalType::Date if !granularity.is_sub_day() => LogicalType::Date,
            LogicalType::TimestampTz
                if granularity.is_sub_day() && dimension.time == TimeKind::Utc && self.zone.is_some() =>
            {
                LogicalType::TimestampTz
            }
            _ => LogicalType::Timestamp,
        }
    }

    /// A coarser bucket of a step that is itself a bucket.
    pub(super) fn bucket_of_step(
        &self,
        step: SqlExpr<'a>,
        granularity: Granularity,
        axis: &Axis,
        dimension: &Dimension,
    ) -> SqlExpr<'a> {
        let of = axis.step;
        let reach = axis.bounds.as_ref().map_or_else(Reach::default, Reach::of_steps);
        let is_instant = dimension.time == TimeKind::Utc && of.is_sub_day();
        let kind = if is_instant { TimeKind::Utc } else { TimeKind::WallClock };
        let ty = self.bucket_type(of, dimension);
        // In UTC a step is a wall clock already.
        let kind = if self.zone.is_none() { TimeKind::WallClock } else { kind };
        self.bucket(step, granularity, kind, ty, reach).cast(self.bucket_type(granularity, dimension))
    }

    /// A step that is known, in microseconds.
    pub(super) fn step(&self, micros: i64, ty: LogicalType) -> SqlExpr<'a> {
        SqlExpr::Value(micros_as(micros, ty)).cast(ty)
    }

    pub(super) fn row_predicate(&self, fact: &'a Fact<'a>, predicate: &'a Predicate) -> SqlExpr<'a> {
        self.tree_predicate(&fact.tree, predicate)
    }

    pub(super) fn tree_predicate(&self, tree: &'a JoinTree<'a>, predicate: &'a Predicate) -> SqlExpr<'a> {
        self.scoped_predicate(self.tree_scope(tree), predicate)
    }

    /// A predicate over the rows of a scope.
    pub(super) fn scoped_predicate(&self, scope: RowScope<'a>, predicate: &'a Predicate) -> SqlExpr<'a> {
        lower_predicate(predicate, false, &mut |on| self.tested(scope, on, true))
    }

    fn tested(&self, scope: RowScope<'a>, on: &'a Operand, by_index: bool) -> Tested<'a> {
        // `plan` keeps groups out of row filters.
        let Operand::Dimension { id, .. } = on else { return Tested::plain(SqlExpr::Null(None)) };
        match self.scoped_dimension(scope, *id) {
            SqlExpr::Op { op: Op::Collate, ty, args } => {
                let bare = args[0].clone();
                let is_column = by_index && self.looks_up && matches!(bare, SqlExpr::Column { .. });
                let lookup = is_column.then(|| SqlExpr::Call { name: LOOKUP.0, args: vec![bare.clone()] });
                Tested { value: SqlExpr::Op { op: Op::Collate, ty, args }, bare: Some(bare), lookup }
            }
            value => Tested::plain(value),
        }
    }

    /// What a row must pass to be aggregated.
    pub(super) fn conditions(&self, fact: &'a Fact<'a>, planned: &'a PlannedAggregate<'a>) -> Vec<SqlExpr<'a>> {
        let own = planned.aggregate.filters.iter().map(|filter| self.snippet(fact, 0, filter));
        let mut conditions: Vec<_> = own.collect();
        for metric in &planned.metrics {
            let filters = self.plan.metric_filters.iter().filter(|(id, _)| id == metric);
            let filters = filters.flat_map(|(_, all)| all);
            // Inside an aggregate no index answers.
            let exact =
                |predicate| lower_predicate(predicate, false, &mut |on| self.tested(self.scope(fact), on, false));
            conditions.extend(filters.map(exact));
        }
        match &planned.shape {
            Shape::Where(predicate) => {
                conditions.push(lower_predicate(predicate, false, &mut |on| self.tested(self.scope(fact), on, false)));
            }
            Shape::Passing(test) => {
                let value = self.argument(fact, planned).unwrap_or(SqlExpr::Null(None));
                conditions.push(lower_test(&Tested::plain(value), test, false));
            }
            _ => {}
        }
        conditions
    }

    pub(super) fn argument(&self, fact: &'a Fact<'a>, planned: &'a PlannedAggregate<'a>) -> Option<SqlExpr<'a>> {
        let value = self.snippet(fact, 0, planned.aggregate.argument.as_ref()?);
        let is_text = planned.aggregate.argument_type == LogicalType::Text;
        Some(match &planned.shape {
            Shape::Moment { about, power } => moment(value, about, *power),
            Shape::Quantile { .. } | Shape::Passing(_) => value.cast(LogicalType::Float),
            _ if self.collates && is_text => SqlExpr::op(Op::Collate, vec![value]),
            _ => value,
        })
    }
}

/// The distance from `about`, as a double, to a power.
fn moment<'a>(value: SqlExpr<'a>, about: &'a Value, power: u32) -> SqlExpr<'a> {
    let distance = SqlExpr::op(Op::Sub, vec![value.cast(LogicalType::Float), SqlExpr::Param(about)]);
    let product = |left, _| SqlExpr::op(Op::Mul, vec![left, distance.clone()]);
    (1..power).fold(distance.clone(), product)
}

/// `bucket` moved by so many buckets.
pub(super) fn added<'a>(
    granularity: Granularity,
    bucket: SqlExpr<'a>,
    count: SqlExpr<'a>,
    ty: LogicalType,
) -> SqlExpr<'a> {
    SqlExpr::Time { granularity, function: TimeFunction::Add, args: vec![bucket, count] }.cast(ty)
}

pub(super) fn micros_as(micros: i64, ty: LogicalType) -> Value {
    const DAY: i64 = 86_400_000_000;
    match ty {
        LogicalType::Date => Value::Date(i32::try_from(micros.div_euclid(DAY)).unwrap_or(i32::MAX)),
        LogicalType::TimestampTz => Value::TimestampTz(micros),
        _ => Value::Timestamp(micros),
    }
}

/// An aggregate function over an argument, or over rows.
pub(super) fn call<'a>(planned: &'a PlannedAggregate<'_>, argument: Option<SqlExpr<'a>>) -> SqlExpr<'a> {
    let aggregate = planned.aggregate;
    let op = match aggregate.function {
        AggregateFunction::Count => Op::Count,
        AggregateFunction::CountDistinct => Op::CountDistinct,
        AggregateFunction::CountDistinctApprox => Op::ApproxDistinct,
        AggregateFunction::Sum => Op::Sum,
        AggregateFunction::Avg => Op::Avg,
        AggregateFunction::Min => Op::Min,
        AggregateFunction::Max => Op::Max,
    };
    let ty = Some(aggregate.argument_type).filter(|ty| *ty != LogicalType::Unknown);
    if let (Shape::Quantile { fraction }, Some(argument)) = (&planned.shape, argument.clone()) {
        let fraction = SqlExpr::Sequence { parts: vec![SqlExpr::Text(fraction)], is_atomic: true };
        return SqlExpr::Op { op: Op::Percentile, ty: None, args: vec![argument, fraction] };
    }
    SqlExpr::Op { op, ty, args: argument.into_iter().collect() }
}

/// The joined rows of one fact: what names in snippets stand for.
#[derive(Clone, Copy)]
pub(super) struct RowScope<'a> {
    pub(super) model: &'a Model,
    pub(super) tree: &'a JoinTree<'a>,
    pub(super) protection: &'a Protection<'a>,
    /// The name of the root's rows, where it isn't the cube's.
    pub(super) root: Option<&'a str>,
}

impl<'a> RowScope<'a> {
    /// The name of a node's rows in SQL.
    pub(super) fn alias(&self, node: NodeId) -> &'a str {
        match node.checked_sub(1) {
            Some(index) => &self.tree.joins[index].alias,
            None => self.root.unwrap_or(&self.model.cube(self.tree.cube).name),
        }
    }

    /// A snippet of a cube that was joined.
    fn in_cube(&self, cube: CubeId, snippet: &'a Snippet) -> SqlExpr<'a> {
        self.snippet(self.tree.find(self.model, 0, cube).unwrap_or(0), snippet)
    }

    /// What stands for a joined cube's value, null where no row of it is joined.
    fn where_joined(&self, cube: CubeId, value: SqlExpr<'a>) -> SqlExpr<'a> {
        match self.tree.find(self.model, 0, cube).unwrap_or(0) {
            0 => value,
            node => SqlExpr::when(vec![self.is_joined(node)], value, None),
        }
    }

    /// A snippet of a member of `owner`'s cube.
    pub(super) fn snippet(&self, owner: NodeId, snippet: &'a Snippet) -> SqlExpr<'a> {
        self.parts(owner, snippet, None)
    }

    pub(super) fn join_condition(&self, node: NodeId) -> SqlExpr<'a> {
        let planned = &self.tree.joins[node - 1];
        self.parts(planned.from, &planned.join.on, Some(node))
    }

    /// `joined`: the node that an `on` condition is about to join.
    fn parts(&self, owner: NodeId, snippet: &'a Snippet, joined: Option<NodeId>) -> SqlExpr<'a> {
        let node_of = |cube| {
            let own = joined.filter(|node| self.tree.cube_of(*node) == cube);
            // `plan` has joined whatever is named.
            own.or_else(|| self.tree.find(self.model, owner, cube)).unwrap_or(owner)
        };
        let part = |part: &'a SqlPart| match part {
            SqlPart::Text(text) => SqlExpr::Text(text),
            SqlPart::Column { cube, name } => SqlExpr::Column { alias: self.alias(node_of(*cube)), name },
            SqlPart::Dimension(id) if joined.is_some_and(|node| self.tree.cube_of(node) == id.cube) => {
                self.snippet(node_of(id.cube), &self.model.dimension(*id).sql)
            }
            SqlPart::Dimension(id) => self.dimension(owner, *id),
            SqlPart::Divide(left, right) => {
                SqlExpr::op(Op::Div, vec![self.parts(owner, left, joined), self.parts(owner, right, joined)])
            }
            SqlPart::User(user) => SqlExpr::ParamList {
                values: self.protection.values(self.model, user),
                is_compared: user.compared.is_some(),
            },
            // Only values are made of these, and they are lowered from the plan's own expressions.
            SqlPart::Measure(_) | SqlPart::Metric(_) | SqlPart::Aggregate(_) => SqlExpr::Null(None),
        };
        match &snippet.parts[..] {
            [single] if !matches!(single, SqlPart::Text(_)) => part(single),
            parts => SqlExpr::Sequence { parts: parts.iter().map(part).collect(), is_atomic: snippet.is_atomic },
        }
    }

    /// A dimension as a member of `owner`'s cube means it. Where nothing was joined it is null,
    /// whatever its SQL makes of nulls.
    pub(super) fn dimension(&self, owner: NodeId, id: DimensionId) -> SqlExpr<'a> {
        let node = self.tree.find(self.model, owner, id.cube).unwrap_or(owner);
        let snippet = &self.model.dimension(id).sql;
        let value = self.snippet(node, snippet);
        if node == owner || matches!(snippet.parts[..], [SqlPart::Column { .. }]) {
            return value;
        }
        SqlExpr::when(vec![self.is_joined(node)], value, None)
    }

    /// True where a row was joined: its key is there, or what it was joined on, or the join's own
    /// condition holds.
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

/// A column of the joined cube that can't be null where the condition holds: the condition consists of
/// equalities alone.
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
