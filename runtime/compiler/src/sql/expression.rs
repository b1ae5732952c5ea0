//! Author's snippets, dimensions, time buckets, aggregates and row filters as SQL expressions.
//!
//! In: nodes of the plan. Out: nodes of the SQL tree, in the scope of one fact's joined rows.

use super::ast::{SqlExpr, TimeFunction};
use super::predicate::lower_predicate;
use super::profile::{DialectProfile, Op};
use super::template::Segment;
use crate::model::{AggregateFunction, DimensionId, DimensionType, Model, Snippet, SqlPart, TimeKind};
use crate::plan::{LogicalPlan, PlannedAggregate};
use crate::query::{Group, Operand, Predicate};
use crate::types::LogicalType;

pub(super) struct Expressions<'a> {
    plan: &'a LogicalPlan<'a>,
    has_filter_clause: bool,
    collates: bool,
    /// The zone's name, unless it is UTC.
    zone: Option<&'a str>,
}

impl<'a> Expressions<'a> {
    pub(super) fn new(plan: &'a LogicalPlan<'a>, profile: &DialectProfile) -> Self {
        Expressions {
            plan,
            has_filter_clause: profile.features.filter_clause,
            collates: profile.op(Op::Collate, 1, None).is_some_and(|t| t.segments != [Segment::Hole(0)]),
            zone: plan.timezone.iana_name().filter(|name| !matches!(*name, "UTC" | "Etc/UTC" | "Etc/GMT")),
        }
    }

    fn model(&self) -> &'a Model {
        self.plan.model
    }

    pub(super) fn snippet(&self, snippet: &'a Snippet) -> SqlExpr<'a> {
        row_snippet(self.model(), snippet)
    }

    /// A dimension's own value, comparable by code point if it is text.
    pub(super) fn dimension(&self, id: DimensionId) -> SqlExpr<'a> {
        let dimension = self.model().dimension(id);
        let value = self.snippet(&dimension.sql);
        if self.collates && matches!(dimension.ty, DimensionType::String) {
            return SqlExpr::op(Op::Collate, vec![value]);
        }
        value
    }

    /// A group-by column. Days and more are local time; hours and finer are stretches of instants, so
    /// that the hour that comes twice in autumn stays two.
    pub(super) fn group(&self, group: &'a Group) -> SqlExpr<'a> {
        let dimension = self.model().dimension(group.dimension);
        let value = self.dimension(group.dimension);
        let Some(granularity) = group.granularity else { return value };
        let is_instant = dimension.time == TimeKind::Utc;
        let time = |function, args| SqlExpr::Time { granularity, function, args };
        match (is_instant, self.zone) {
            (true, Some(zone)) if granularity.is_sub_day() => {
                let local = self.in_zone(value.clone(), zone, dimension.column_type);
                time(TimeFunction::TruncInstant, vec![value, local])
            }
            (true, Some(zone)) => time(TimeFunction::Trunc, vec![self.in_zone(value, zone, dimension.column_type)]),
            (true, None) if dimension.column_type == LogicalType::TimestampTz => {
                time(TimeFunction::Trunc, vec![self.in_zone(value, "UTC", dimension.column_type)])
            }
            _ => time(TimeFunction::Trunc, vec![value]),
        }
    }

    fn in_zone(&self, instant: SqlExpr<'a>, zone: &'a str, column_type: LogicalType) -> SqlExpr<'a> {
        let ty = if column_type == LogicalType::TimestampTz { column_type } else { LogicalType::Timestamp };
        SqlExpr::Op { op: Op::ToTimeZone, ty: Some(ty), args: vec![instant, SqlExpr::String(zone)] }
    }

    pub(super) fn row_predicate(&self, predicate: &'a Predicate) -> SqlExpr<'a> {
        lower_predicate(predicate, false, &mut |operand: &'a Operand| match operand {
            Operand::Dimension { id, .. } => self.dimension(*id),
            // `plan` keeps measures out of row filters.
            Operand::Value(_) => SqlExpr::Null(None),
        })
    }

    pub(super) fn aggregate(&self, planned: &'a PlannedAggregate<'a>) -> SqlExpr<'a> {
        let aggregate = planned.aggregate;
        let mut conditions: Vec<_> = aggregate.filters.iter().map(|filter| self.snippet(filter)).collect();
        for metric in &planned.metrics {
            let filters = self.plan.metric_filters.iter().filter(|(id, _)| id == metric);
            conditions.extend(filters.flat_map(|(_, all)| all).map(|filter| self.row_predicate(filter)));
        }
        let argument = aggregate.argument.as_ref().map(|argument| {
            let value = self.snippet(argument);
            let is_text = aggregate.argument_type == LogicalType::Text;
            if self.collates && is_text { SqlExpr::op(Op::Collate, vec![value]) } else { value }
        });
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
        let call = |args| SqlExpr::Op { op, ty, args };
        if conditions.is_empty() {
            return call(argument.into_iter().collect());
        }
        if self.has_filter_clause {
            let call = Box::new(call(argument.into_iter().collect()));
            return SqlExpr::FilteredAggregate { call, filters: conditions };
        }
        let value = Box::new(argument.unwrap_or(SqlExpr::Integer(1)));
        call(vec![SqlExpr::When { conditions, value }])
    }
}

/// An author's snippet in the scope of joined rows.
pub(super) fn row_snippet<'a>(model: &'a Model, snippet: &'a Snippet) -> SqlExpr<'a> {
    let part = |part: &'a SqlPart| match part {
        SqlPart::Text(text) => SqlExpr::Text(text),
        SqlPart::Column { cube, name } => SqlExpr::Column { cube: model.cube(*cube), name },
        SqlPart::Dimension(id) => row_snippet(model, &model.dimension(*id).sql),
        SqlPart::Divide(left, right) => SqlExpr::op(Op::Div, vec![row_snippet(model, left), row_snippet(model, right)]),
        // Only values are made of these, and they are lowered from the plan's own expressions.
        SqlPart::Measure(_) | SqlPart::Metric(_) | SqlPart::Aggregate(_) => SqlExpr::Null(None),
    };
    match &snippet.parts[..] {
        [single] if !matches!(single, SqlPart::Text(_)) => part(single),
        parts => SqlExpr::Sequence { parts: parts.iter().map(part).collect(), is_atomic: snippet.is_atomic },
    }
}
