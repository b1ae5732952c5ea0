//! Converts authors' snippets, dimensions, time buckets, aggregates and row filters to SQL expressions.
//!
//! In: nodes of the plan. Out: nodes of the SQL tree, in the scope of one fact's joined rows.

use super::aggregate_call::AggregateTemplates;
use super::ast::{SqlExpr, TimeFunction};
use super::dialect_profile::{DialectProfile, Op};
use super::predicate::{Tested, lower_test};
use super::scope::{LOOKUP, RowScope, TIME, Texts};
use super::template::Segment;
use super::zone::{InstantRange, Zone, has_zones, in_zone, instant_range};
use crate::model::{Dimension, DimensionId, DimensionType, Mask, Rollup, Snippet, TimeKind};
use crate::plan::{ArgumentForm, Fact, JoinTree, LogicalPlan, NodeId, PlannedAggregate, Protection, SecuredPlan};
use crate::query::{Axis, Predicate};
use crate::types::{Granularity, LogicalType, Value};

#[derive(Clone)]
pub(super) struct Expressions<'a> {
    plan: &'a LogicalPlan<'a>,
    protection: &'a Protection<'a>,
    pub(super) has_filter_clause: bool,
    pub(super) aggregates: AggregateTemplates,
    /// True if a decimal type without a scale can represent any scale.
    pub(super) has_unbounded_decimals: bool,
    /// True if the dialect widens integers by a template of its own.
    pub(super) widens_integers: bool,
    texts: Texts,
    /// The query's time zone; `None` for UTC.
    zone: Option<Zone<'a>>,
    /// True if the engine stores instants with a time zone, and returns them in UTC only on request.
    has_zones: bool,
    /// True, in this order, if the dialect has [`HASH`] and if it has [`PARTIAL`].
    masks: [bool; 2],
    /// The pre-aggregation whose table the expressions read; `None` for rows of cubes.
    stored: Option<&'a Rollup>,
}

/// The functions of masks: the names of their templates and the numbers of their arguments.
const HASH: (&str, usize) = ("mask_hash", 1);
const PARTIAL: (&str, usize) = ("mask_partial", 2);
/// The function that widens an integer before it is added or multiplied. The default is a cast.
pub(super) const WIDE_INTEGER: (&str, usize) = ("wide_integer", 1);
/// The suffix that a partial mask shows after the first character.
const PARTIAL_SUFFIX: &str = "***";

impl<'a> Expressions<'a> {
    pub(super) fn new(secured: &'a SecuredPlan<'a>, profile: &DialectProfile) -> Self {
        let plan = secured.plan();
        let has = |(name, arity): (&str, usize)| profile.function(name, arity, None).is_some();
        Expressions {
            plan,
            protection: secured.protection(),
            masks: [HASH, PARTIAL].map(has),
            has_filter_clause: profile.features.filter_clause,
            aggregates: AggregateTemplates::of(profile),
            has_unbounded_decimals: !profile.type_name(LogicalType::Decimal).contains('('),
            widens_integers: has(WIDE_INTEGER),
            texts: Texts { collates: collates(profile), looks_up: has(LOOKUP), are_times: has(TIME) },
            zone: Zone::of(plan, profile),
            has_zones: has_zones(profile),
            stored: None,
        }
    }

    /// Returns whether a table of groups stores a dimension's comparable form beside its value.
    pub(super) fn stores_key(&self, dimension: &Dimension) -> bool {
        self.texts.collates && dimension.ty == DimensionType::String
    }

    /// Returns the same converter for the rows of a pre-aggregation's table.
    pub(super) fn over(&self, rollup: &'a Rollup) -> Self {
        Expressions { stored: Some(rollup), ..self.clone() }
    }

    /// Returns the scope of the rows of a join tree.
    pub(super) fn scope(&self, tree: &'a JoinTree<'a>) -> RowScope<'a> {
        RowScope::new(self.plan.model, tree, self.protection, self.texts).over(self.stored)
    }

    pub(super) fn snippet(&self, fact: &'a Fact<'a>, owner: NodeId, snippet: &'a Snippet) -> SqlExpr<'a> {
        self.scope(&fact.tree).snippet(owner, snippet)
    }

    /// Returns a dimension's own value. A string is converted so that it compares by code point.
    pub(super) fn dimension(&self, fact: &'a Fact<'a>, id: DimensionId) -> SqlExpr<'a> {
        self.scope(&fact.tree).comparable(id)
    }

    /// Returns a dimension's value as the caller may see it.
    pub(super) fn shown(&self, fact: &'a Fact<'a>, id: DimensionId) -> SqlExpr<'a> {
        self.shown_in(self.scope(&fact.tree), id)
    }

    fn shown_in(&self, scope: RowScope<'a>, id: DimensionId) -> SqlExpr<'a> {
        let raw = || scope.comparable(id);
        let dimension = self.plan.model.dimension(id);
        let ty = dimension.column_type;
        let hidden = || SqlExpr::Null(Some(ty).filter(|ty| !matches!(ty, LogicalType::Decimal | LogicalType::Unknown)));
        // A value that the mask's function cannot convert becomes null.
        let masked = |is_possible: bool, (name, _), args| match is_possible && ty == LogicalType::Text {
            true => SqlExpr::Call { name, args },
            false => hidden(),
        };
        match self.protection.mask_of(id) {
            None => raw(),
            Some(Mask::Null) => hidden(),
            Some(Mask::Constant(value)) => scope.where_joined(id.cube, SqlExpr::Param(value)),
            Some(Mask::Hash) => masked(self.masks[0], HASH, vec![raw()]),
            Some(Mask::Partial) => scope
                .by_code_point(dimension, masked(self.masks[1], PARTIAL, vec![raw(), SqlExpr::String(PARTIAL_SUFFIX)])),
            Some(Mask::Truncate(granularity)) => {
                scope.where_visible(id.cube, |scope| self.truncated(scope.comparable(id), *granularity, ty))
            }
            Some(Mask::Sql(sql)) => {
                let shown = scope.by_code_point(dimension, scope.in_cube(id.cube, sql));
                scope.where_joined(id.cube, shown)
            }
        }
    }

    /// Returns the start of a time's bucket as a value of the column's own type; an instant is truncated in UTC.
    fn truncated(&self, value: SqlExpr<'a>, granularity: Granularity, ty: LogicalType) -> SqlExpr<'a> {
        // A date has no hours that a mask could hide.
        if ty == LogicalType::Date && granularity.is_sub_day() {
            return value;
        }
        let value = if ty == LogicalType::TimestampTz && self.has_zones { in_zone(value, "UTC", ty) } else { value };
        let bucket = SqlExpr::Time { granularity, function: TimeFunction::Trunc, args: vec![value] };
        if ty == LogicalType::Unknown { bucket } else { bucket.cast(ty) }
    }

    /// Returns the n-th group-by column of a fact. For a fact of the compared period, the time bucket is shifted to the
    /// current period. If windows read rows before the first step, these rows belong to the first step.
    pub(super) fn group(&self, fact: &'a Fact<'a>, index: usize) -> SqlExpr<'a> {
        let (scope, id) = (self.scope(&fact.tree), fact.groups[index]);
        match self.plan.groups[index].granularity {
            Some(granularity) => scope.where_visible(id.cube, |scope| self.time_group(fact, scope, index, granularity)),
            None => {
                let value = self.shown_in(scope, id);
                match (self.plan.model.dimension(id).column_type, self.group_type(index)) {
                    (own @ LogicalType::Date, merged) => value.cast_from(own, merged),
                    _ => value,
                }
            }
        }
    }

    fn time_group(
        &self,
        fact: &'a Fact<'a>,
        scope: RowScope<'a>,
        index: usize,
        granularity: Granularity,
    ) -> SqlExpr<'a> {
        let id = fact.groups[index];
        let dimension = self.plan.model.dimension(id);
        // A mask replaces the value, so the range of the column does not limit it.
        let instants =
            if self.protection.mask_of(id).is_none() { instant_range(fact, id) } else { InstantRange::default() };
        let (value, bucketed) = self.bucketed(scope, id, granularity);
        let (kind, column_type) = self.time_of(id);
        let mut bucket = self.bucket(value, bucketed, kind, column_type, instants);
        let own = self.bucket_type(granularity, dimension);
        let ty = self.group_type(index);
        let shift = self.plan.shifts.iter().find(|shift| shift.group == index && shift.buckets != 0);
        // If a fact has windows, the windows are moved instead of its rows.
        if let Some(shift) = shift.filter(|_| fact.period.is_previous && fact.period.window.is_none()) {
            bucket = added(granularity, bucket, SqlExpr::Integer(shift.buckets), own);
        }
        if own == LogicalType::Date {
            bucket = bucket.cast_from(own, ty);
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

    /// Returns the time of a row on the axis: local time for steps of a day or more and for wall-clock times, else the
    /// instant. A masked time is the start of the bucket that the caller sees.
    pub(super) fn row_time(&self, fact: &'a Fact<'a>, index: usize) -> SqlExpr<'a> {
        let (scope, id) = (self.scope(&fact.tree), fact.groups[index]);
        let Some(granularity) = self.plan.groups[index].granularity else { return self.group(fact, index) };
        if self.protection.mask_of(id).is_some() {
            return self.group(fact, index);
        }
        let (kind, column_type) = self.time_of(id);
        scope.where_visible(id.cube, |scope| {
            let value = scope.comparable(id);
            match (kind == TimeKind::Utc, self.zone) {
                (true, Some(zone)) if !granularity.is_sub_day() => {
                    zone.local(value, column_type, instant_range(fact, id))
                }
                (true, None) if column_type == LogicalType::TimestampTz && self.has_zones => {
                    in_zone(value, "UTC", column_type)
                }
                _ => value,
            }
        })
    }

    /// Returns the kind and type of a time in the rows that are read. Stored buckets of a day or more are local times.
    fn time_of(&self, id: DimensionId) -> (TimeKind, LogicalType) {
        let dimension = self.plan.model.dimension(id);
        match self.stored.and_then(|rollup| rollup.bucket_of(id)) {
            Some(time) if time.is_local(self.plan.model) => (TimeKind::WallClock, time.stored_type(self.plan.model)),
            Some(time) => (dimension.time, time.stored_type(self.plan.model)),
            None => (dimension.time, dimension.column_type),
        }
    }

    /// Returns the expression to truncate, and the granularity. If a mask shows only buckets, the coarser of the
    /// requested granularity and the mask's granularity is applied to the time itself, in the query's time zone. This
    /// requires that its buckets consist of whole buckets of the finer granularity. Otherwise the masked time is
    /// truncated.
    fn bucketed(&self, scope: RowScope<'a>, id: DimensionId, requested: Granularity) -> (SqlExpr<'a>, Granularity) {
        if let Some(Mask::Truncate(most)) = self.protection.mask_of(id) {
            let (dimension, coarser) = (self.plan.model.dimension(id), requested.max(*most));
            // If the mask shows weeks, a month would distinguish the parts of a week.
            let is_nested = coarser == *most || *most != Granularity::Week;
            if is_nested && self.bucket_type(coarser, dimension) == self.bucket_type(requested, dimension) {
                return (scope.comparable(id), coarser);
            }
        }
        (self.shown_in(scope, id), requested)
    }

    /// Returns the start of a bucket. Buckets of a day or more are in local time. Shorter buckets are ranges of
    /// instants, so that the hour that occurs twice in autumn has two buckets.
    fn bucket(
        &self,
        value: SqlExpr<'a>,
        granularity: Granularity,
        kind: TimeKind,
        column_type: LogicalType,
        instants: InstantRange,
    ) -> SqlExpr<'a> {
        let time = |function, args| SqlExpr::Time { granularity, function, args };
        match (kind == TimeKind::Utc, self.zone) {
            (true, Some(zone)) if granularity.is_sub_day() => {
                let local = zone.local(value.clone(), column_type, instants);
                time(TimeFunction::TruncInstant, vec![value, local])
            }
            (true, Some(zone)) => time(TimeFunction::Trunc, vec![zone.local(value, column_type, instants)]),
            (true, None) if column_type == LogicalType::TimestampTz && self.has_zones => {
                time(TimeFunction::Trunc, vec![in_zone(value, "UTC", column_type)])
            }
            _ => time(TimeFunction::Trunc, vec![value]),
        }
    }

    /// Returns the type of a group, in which the values of all facts are merged. Times of different types are merged as
    /// timestamps. For example, days of an instant are timestamps, and days of a date are dates.
    fn group_type(&self, index: usize) -> LogicalType {
        let granularity = self.plan.groups[index].granularity;
        let type_in = |fact: &Fact<'_>| {
            let dimension = self.plan.model.dimension(fact.groups[index]);
            granularity.map_or(dimension.column_type, |granularity| self.bucket_type(granularity, dimension))
        };
        let mut types = self.plan.facts.iter().map(type_in);
        let first = types.next().unwrap_or(LogicalType::Unknown);
        if first != LogicalType::Date { first } else { types.find(|ty| *ty != first).unwrap_or(first) }
    }

    /// Returns the type of a time bucket.
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

    /// Returns the bucket of a coarser granularity that contains a step of the axis.
    pub(super) fn bucket_of_step(
        &self,
        step: SqlExpr<'a>,
        granularity: Granularity,
        axis: &Axis,
        dimension: &Dimension,
    ) -> SqlExpr<'a> {
        let of = axis.step;
        let instants = axis.bounds.as_ref().map_or_else(InstantRange::default, InstantRange::of_steps);
        let is_instant = dimension.time == TimeKind::Utc && of.is_sub_day();
        let kind = if is_instant { TimeKind::Utc } else { TimeKind::WallClock };
        let ty = self.bucket_type(of, dimension);
        // In UTC, a step is a wall-clock time already.
        let kind = if self.zone.is_none() { TimeKind::WallClock } else { kind };
        self.bucket(step, granularity, kind, ty, instants).cast(self.bucket_type(granularity, dimension))
    }

    /// Returns a literal for the step that starts at `micros`.
    pub(super) fn step(&self, micros: i64, ty: LogicalType) -> SqlExpr<'a> {
        SqlExpr::Value(micros_as(micros, ty)).cast(ty)
    }

    /// Returns a condition on the rows of a tree of joins.
    pub(super) fn predicate(&self, tree: &'a JoinTree<'a>, predicate: &'a Predicate) -> SqlExpr<'a> {
        self.scope(tree).predicate(predicate, true)
    }

    /// Returns the conditions on rows that are aggregated.
    pub(super) fn conditions(&self, fact: &'a Fact<'a>, planned: &'a PlannedAggregate<'a>) -> Vec<SqlExpr<'a>> {
        let own = planned.aggregate.filters.iter().map(|filter| self.snippet(fact, 0, filter));
        own.chain(self.further_conditions(fact, planned)).collect()
    }

    /// Returns the conditions on aggregated rows without the filters of the aggregate itself.
    pub(super) fn further_conditions(&self, fact: &'a Fact<'a>, planned: &'a PlannedAggregate<'a>) -> Vec<SqlExpr<'a>> {
        let mut conditions = Vec::new();
        for metric in &planned.metrics {
            let filters = self.plan.metric_filters.iter().filter(|(id, _)| id == metric);
            let filters = filters.flat_map(|(_, all)| all);
            // Engines use no index inside an aggregate, so the form for indexes is not added.
            conditions.extend(filters.map(|predicate| self.scope(&fact.tree).predicate(predicate, false)));
        }
        match &planned.shape {
            ArgumentForm::Where(predicate) => {
                conditions.push(self.scope(&fact.tree).predicate(predicate, false));
            }
            ArgumentForm::Passing(test) => {
                let value = self.argument(fact, planned).unwrap_or(SqlExpr::Null(None));
                conditions.push(lower_test(&Tested::plain(value), test, false));
            }
            _ => {}
        }
        conditions
    }

    pub(super) fn argument(&self, fact: &'a Fact<'a>, planned: &'a PlannedAggregate<'a>) -> Option<SqlExpr<'a>> {
        if let ArgumentForm::Row(value) = &planned.shape {
            return Some(self.row_argument(fact, value));
        }
        let mut value = self.snippet(fact, 0, planned.aggregate.argument.as_ref()?);
        if planned.aggregate.is_converted {
            value = value.cast(LogicalType::Text);
        }
        let is_text = planned.aggregate.argument_type == LogicalType::Text;
        Some(match &planned.shape {
            ArgumentForm::Moment { about, power } => moment(value, about, *power),
            ArgumentForm::Quantile { .. } | ArgumentForm::Passing(_) => value.cast(LogicalType::Float),
            _ if planned.aggregate.function.is_of_distribution() => value.cast(LogicalType::Float),
            _ if is_text => self.comparable_text(value),
            _ => value,
        })
    }

    /// Returns a string in the form that compares by code point.
    pub(super) fn comparable_text(&self, value: SqlExpr<'a>) -> SqlExpr<'a> {
        if self.texts.collates { SqlExpr::op(Op::Collate, vec![value]) } else { value }
    }
}

/// Returns whether the dialect has a special form for strings that compare by code point.
pub(crate) fn collates(profile: &DialectProfile) -> bool {
    profile.op(Op::Collate, 1, None).is_some_and(|template| template.segments != [Segment::Hole(0)])
}

/// Returns the distance of a value from `about`, as a double, raised to a power.
fn moment<'a>(value: SqlExpr<'a>, about: &'a Value, power: u32) -> SqlExpr<'a> {
    let distance = SqlExpr::op(Op::Sub, vec![value.cast(LogicalType::Float), SqlExpr::Param(about)]);
    let product = |left, _| SqlExpr::op(Op::Mul, vec![left, distance.clone()]);
    (1..power).fold(distance.clone(), product)
}

/// Returns `bucket` moved by `count` buckets.
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
