//! The conditions on rows: filters, ranges, the period that a range is compared with, and the filters of metrics.

use std::sync::Arc;

use super::Resolver;
use super::axis::{Clock, moved_back, shifts};
use super::filter::{FilterTarget, Filters};
use super::names::Names;
use super::time::TimeAxis;
use super::values::metrics_of;
use crate::access::ColumnUse;
use crate::model::{CubeId, DimensionId, Member, MetricFilter, MetricId, Model};
use crate::query::resolved::{
    Group, GroupBy, GroupShift, Operand, Predicate, RangeFilter, RowFilter, ValueId, primary_time,
};
use crate::query::{CompareRange, DateRange, Filter, MemberRef, QueryError, TimeDimension, TimeRange};
use crate::types::{Granularity, METRIC_TIME};

impl Resolver<'_> {
    pub(super) fn filters_of(&self, fact: Option<CubeId>) -> Filters<'_> {
        let metric_time = fact.and_then(|fact| primary_time(self.names.model, fact).ok());
        Filters { names: self.names, metric_time, zone: self.zone, now: self.environment.now }
    }

    /// Splits filters into filters on rows, which stay unresolved, and filters on groups, which are resolved.
    pub(super) fn split_filters<'q>(
        &'q self,
        groups: &[Group],
        facts: &[CubeId],
    ) -> Result<(Vec<&'q Filter>, Vec<Predicate>), QueryError> {
        let context = self.filters_of(facts.first().copied());
        context.check_size(&self.query.filters)?;
        let (mut rows, mut on_groups) = (Vec::new(), Vec::new());
        let mut conjuncts: Vec<&Filter> = self.query.filters.iter().rev().collect();
        while let Some(filter) = conjuncts.pop() {
            match filter {
                // An AND at the top level is split, so that its conditions without a measure are tested on rows.
                Filter::And(all) => conjuncts.extend(all.iter().rev()),
                filter if context.has_value(filter)? => {
                    let predicate = context.predicate(filter, FilterTarget::Groups)?;
                    check_selected(self.names.model, &predicate, groups)?;
                    on_groups.push(predicate);
                }
                filter => rows.push(filter),
            }
        }
        Ok((rows, on_groups))
    }

    pub(super) fn row_filters(&self, conjuncts: &[&Filter], facts: &[CubeId]) -> Result<Vec<RowFilter>, QueryError> {
        let mut filters = Vec::with_capacity(conjuncts.len());
        for conjunct in conjuncts {
            if !Filters::has_metric_time(conjunct) {
                let predicate = self.filters_of(None).predicate(conjunct, FilterTarget::Rows)?;
                filters.push(RowFilter { fact: None, predicate });
                continue;
            }
            if facts.is_empty() {
                return Err(QueryError::MetricTimeOfNothing);
            }
            for fact in facts {
                self.own_time(*fact)?;
                let predicate = self.filters_of(Some(*fact)).predicate(conjunct, FilterTarget::Rows)?;
                filters.push(RowFilter { fact: Some(*fact), predicate });
            }
        }
        Ok(filters)
    }

    /// Resolves the ranges of the query. A range is never widened to whole buckets, so the granularity has no effect
    /// here.
    pub(super) fn ranges(&self, facts: &[CubeId]) -> Result<Vec<RangeFilter>, QueryError> {
        let mut ranges = Vec::new();
        for TimeDimension { member, range, .. } in &self.query.time_dimensions {
            if let Some(range) = range {
                self.range(self.time_dimension(member)?, &member.text, range, facts, &mut ranges)?;
            }
        }
        if let Some(TimeRange { member, range, .. }) = &self.query.time_range {
            match member {
                Some(member) => self.range(self.time_dimension(member)?, &member.text, range, facts, &mut ranges)?,
                None if facts.is_empty() => return Err(QueryError::AmbiguousTimeRange),
                None => self.range(GroupBy::MetricTime, "time_range", range, facts, &mut ranges)?,
            }
        }
        Ok(ranges)
    }

    fn range(
        &self,
        by: GroupBy,
        name: &str,
        range: &DateRange,
        facts: &[CubeId],
        ranges: &mut Vec<RangeFilter>,
    ) -> Result<(), QueryError> {
        let mut push = |fact, dimension| {
            let test = self.axis(dimension, name).within(range)?;
            ranges.push(RangeFilter { fact, dimension, test, previous: None });
            Ok(())
        };
        match by {
            GroupBy::Dimension(id) => push(None, id),
            GroupBy::MetricTime if facts.is_empty() => Err(QueryError::MetricTimeOfNothing),
            GroupBy::MetricTime => facts.iter().try_for_each(|fact| push(Some(*fact), self.own_time(*fact)?)),
        }
    }

    /// Resolves the period that the query's range is compared with, and the shifts of its groups.
    pub(super) fn compare(
        &self,
        compare: &CompareRange,
        groups: &[Group],
        ranges: &mut [RangeFilter],
    ) -> Result<Vec<GroupShift>, QueryError> {
        let is_one = match ranges {
            [] => false,
            [_] => true,
            [first, rest @ ..] => {
                first.fact.is_some() && rest.iter().all(|r| r.fact.is_some_and(|f| Some(f) != first.fact))
            }
        };
        if !is_one {
            return Err(QueryError::CompareNeedsRange);
        }
        for range in ranges.iter_mut() {
            let axis = self.axis(range.dimension, "compare_range");
            range.previous = Some(match compare {
                CompareRange::Range(given) => axis.within(given)?,
                CompareRange::Shift(shift) => {
                    let (start, end) = moved_back(&range.test, shift, self.clock(range.dimension))?;
                    axis.between(start, end)
                }
            });
        }
        match &ranges[0] {
            range @ RangeFilter { previous: Some(previous), .. } => {
                shifts(groups, range, previous, self.clock(range.dimension))
            }
            _ => Err(QueryError::CompareNeedsRange),
        }
    }

    fn clock(&self, id: DimensionId) -> Clock<'_> {
        Clock { kind: self.names.model.dimension(id).time, zone: self.zone }
    }

    fn axis<'s>(&'s self, id: DimensionId, member: &'s str) -> TimeAxis<'s> {
        let dimension = self.names.model.dimension(id);
        TimeAxis {
            member,
            kind: dimension.time,
            column_type: dimension.column_type,
            granularity: None,
            zone: self.zone,
            now: self.environment.now,
        }
    }

    /// Returns the filters of every metric that the query computes, including metrics inside other metrics.
    pub(super) fn metric_filters(&self, used: &[ValueId]) -> Result<Vec<(MetricId, Vec<Predicate>)>, QueryError> {
        let model = self.names.model;
        let names = Names::internal(self.names.access);
        let context = Filters { names: &names, ..self.filters_of(None) };
        let mut metrics = Vec::new();
        used.iter().for_each(|value| metrics_of(model, *value, &mut metrics));
        let filtered = metrics.into_iter().filter(|id| !model.metric(*id).filters.is_empty());
        let resolve = |id: MetricId| {
            let filters = model.metric(id).filters.iter().map(|f| self.metric_filter(&context, f));
            let filters = filters.collect::<Result<Vec<Predicate>, QueryError>>()?;
            // Later errors name the members of filters, which this caller may not know.
            match filters.iter().all(|filter| self.may_filter_by(filter)) {
                true => Ok((id, filters)),
                false => Err(QueryError::Covered { member: model.metric(id).name.clone() }),
            }
        };
        filtered.map(resolve).collect()
    }

    /// Returns whether the caller may filter by every dimension of a predicate.
    fn may_filter_by(&self, predicate: &Predicate) -> bool {
        let Names { access, model, .. } = *self.names;
        let mut is_allowed = true;
        predicate.for_each_operand(&mut |operand| {
            if let Operand::Dimension { id, .. } = *operand {
                let is_open =
                    access.mask(id).is_none() && access.check(&model.dimension(id).sql, ColumnUse::Row).is_ok();
                is_allowed &= is_open && access.sees(Member::Dimension(id));
            }
        });
        is_allowed
    }

    fn metric_filter(&self, context: &Filters<'_>, filter: &MetricFilter) -> Result<Predicate, QueryError> {
        let member: MemberRef = filter.member.parse()?;
        let operator = filter.operator.parse()?;
        // A metric filters rows, so the member must be a dimension.
        context.names.dimension(&member)?;
        context.predicate(&Filter::Condition { member, operator, values: filter.values.clone() }, FilterTarget::Rows)
    }
}

fn check_selected(model: &Model, predicate: &Predicate, groups: &[Group]) -> Result<(), QueryError> {
    let mut missing = None;
    predicate.for_each_operand(&mut |operand| {
        if !matches!(operand, Operand::Value(_)) && !groups.iter().any(|group| operand.is_group(group)) {
            missing = Some(*operand);
        }
    });
    let dimension = match missing {
        None | Some(Operand::Value(_)) => return Ok(()),
        Some(Operand::MetricTime { granularity }) => with_granularity(METRIC_TIME.to_owned(), granularity),
        Some(Operand::Dimension { id, granularity }) => {
            with_granularity(format!("{}.{}", model.cube(id.cube).name, model.dimension(id).name), granularity)
        }
    };
    Err(QueryError::GroupFilterNotSelected { dimension })
}

fn with_granularity(member: String, granularity: Option<Granularity>) -> Arc<str> {
    match granularity {
        Some(granularity) => format!("{member}.{granularity}").into(),
        None => member.into(),
    }
}
