//! Names to ids, texts to typed values, the order made complete.
//!
//! In: a [`SemanticQuery`] and the model. Out: a [`ResolvedQuery`], or the first reason why not.

use std::collections::HashSet;
use std::sync::Arc;

use jiff::tz::TimeZone;

use super::axis::{Clock, axis, moved_back, shifts};
use super::filter::Filters;
use super::names::{Found, Names};
use super::resolved::{
    Group, GroupBy, GroupShift, Operand, OrderKey, OrderTarget, Predicate, RangeFilter, ResolvedQuery, RowFilter,
    SelectedValue, ValueId, primary_time,
};
use super::time::TimeAxis;
use super::{
    CompareRange, DateRange, METRIC_TIME, MemberRef, OrderBy, QueryError, SemanticQuery, TimeDimension, TimeRange,
};
use crate::compile::Environment;
use crate::model::{
    CubeId, DimensionId, DimensionType, MeasureKind, MetricFilter, MetricId, Model, Snippet, SqlPart, TimeKind,
};
use crate::security::Access;
use crate::types::{Granularity, LogicalType};

/// Measures, metrics, dimensions and order keys, each.
const MAX_MEMBERS: usize = 500;
/// Rows that a page may skip; engines refuse much larger numbers.
const MAX_OFFSET: u64 = 1 << 40;

/// Resolves a query against what a caller sees of a model.
///
/// # Errors
/// The first name that doesn't exist, value that doesn't fit, or limit that is passed.
pub fn resolve(
    access: &Access<'_>,
    query: &SemanticQuery,
    environment: &Environment,
) -> Result<ResolvedQuery, QueryError> {
    check_size(query)?;
    let model = access.model();
    let names = Names::new(access, query)?;
    let zone = match &query.timezone {
        Some(name) => {
            let zone = environment.zones.get(name);
            zone.map_err(|_| QueryError::UnknownTimezone { timezone: name.clone() })?
        }
        None => environment.default_timezone.clone(),
    };
    let resolver = Resolver { names: &names, query, environment, zone: &zone };

    let values = resolver.values()?;
    let mut facts = Vec::new();
    values.iter().for_each(|value| fact_cubes(model, value.value, &mut facts));
    facts.extend(names.cube_id().filter(|_| facts.is_empty()));
    let groups = resolver.groups(&facts)?;
    if values.is_empty() && groups.is_empty() {
        return Err(QueryError::Empty);
    }
    let (row_conjuncts, group_filters) = resolver.split_filters(&groups, &facts)?;
    let order = resolver.order(&groups, &values)?;
    let used = used_values(&values, &group_filters, &order);
    if let (true, Some(value)) = (query.ungrouped, used.first()) {
        return Err(QueryError::Ungrouped { field: value.name(model) });
    }
    check_time_grain(model, &used, &groups)?;
    used.iter().for_each(|value| fact_cubes(model, *value, &mut facts));
    let row_filters = resolver.row_filters(&row_conjuncts, &facts)?;
    let mut ranges = resolver.ranges(&facts)?;
    let clock = Clock { kind: resolver.time_kind(&groups, &facts), zone: &zone };
    let comparison = match &query.compare {
        Some(compare) => Some(resolver.compare(compare, &groups, &mut ranges)?),
        None => None,
    };
    let runs = used.iter().find_map(|value| running_total_in(model, *value));
    let axis = match (runs, query.fill_gaps) {
        (None, false) => None,
        (runs, _) => {
            let is_time = |group: &Group| resolver.is_time(group);
            Some(axis(runs.as_deref().unwrap_or("fill_gaps"), &groups, is_time, &ranges, clock)?)
        }
    };
    let segments = query.segments.iter().map(|name| names.segment(name)).collect::<Result<_, _>>()?;
    let metric_filters = resolver.metric_filters(&used)?;
    let limit = query.limit.unwrap_or(environment.default_limit);
    if limit > environment.max_limit {
        return Err(QueryError::LimitTooLarge { limit, max: environment.max_limit });
    }
    if query.offset > MAX_OFFSET {
        return Err(QueryError::TooMany { what: "rows to skip", limit: MAX_OFFSET as usize });
    }
    Ok(ResolvedQuery {
        groups,
        values,
        row_filters,
        ranges,
        group_filters,
        segments,
        metric_filters,
        order,
        cube: names.cube_id(),
        axis,
        fill_gaps: query.fill_gaps,
        comparison,
        ungrouped: query.ungrouped,
        limit,
        offset: query.offset,
        timezone: zone,
        wants_total: !query.skip_total,
    })
}

fn check_size(query: &SemanticQuery) -> Result<(), QueryError> {
    let sizes = [
        ("measures and metrics", query.values.len()),
        ("dimensions", query.dimensions.len() + query.time_dimensions.len()),
        ("order keys", query.order.len()),
        ("segments", query.segments.len()),
    ];
    match sizes.into_iter().find(|(_, size)| *size > MAX_MEMBERS) {
        Some((what, _)) => Err(QueryError::TooMany { what, limit: MAX_MEMBERS }),
        None => Ok(()),
    }
}

struct Resolver<'a> {
    names: &'a Names<'a>,
    query: &'a SemanticQuery,
    environment: &'a Environment,
    zone: &'a TimeZone,
}

impl Resolver<'_> {
    fn values(&self) -> Result<Vec<SelectedValue>, QueryError> {
        let mut values: Vec<SelectedValue> = Vec::with_capacity(self.query.values.len());
        for name in &self.query.values {
            let value = self.names.value(name)?;
            if !values.iter().any(|v| v.key == name.text) {
                values.push(SelectedValue { key: name.text.clone(), value });
            }
        }
        Ok(values)
    }

    fn groups(&self, facts: &[CubeId]) -> Result<Vec<Group>, QueryError> {
        let mut groups: Vec<Group> = Vec::new();
        let mut push = |group: Group| {
            if !groups.iter().any(|g| g.key == group.key) {
                groups.push(group);
            }
        };
        for name in &self.query.dimensions {
            let by = self.names.group_by(name)?;
            self.check_granularity(name, by, name.granularity, facts)?;
            push(Group { key: name.text.clone(), by, granularity: name.granularity });
        }
        for TimeDimension { member, granularity, range } in &self.query.time_dimensions {
            let by = self.time_dimension(member)?;
            let asked = granularity.or(member.granularity);
            self.check_granularity(member, by, asked, facts)?;
            if asked.is_some() || range.is_none() {
                push(Group { key: keyed(member, asked), by, granularity: asked });
            }
        }
        if let Some(TimeRange { member, granularity: Some(granularity), .. }) = &self.query.time_range {
            let name = match member {
                Some(name) => name.clone(),
                None => self.shared_time(facts)?,
            };
            let by = self.time_dimension(&name)?;
            self.check_granularity(&name, by, Some(*granularity), facts)?;
            push(Group { key: keyed(&name, Some(*granularity)), by, granularity: Some(*granularity) });
        }
        self.check_metric_time(&groups, facts)?;
        Ok(groups)
    }

    fn time_dimension(&self, name: &MemberRef) -> Result<GroupBy, QueryError> {
        let by = self.names.group_by(name)?;
        match by {
            GroupBy::Dimension(id) if self.names.model.dimension(id).ty != DimensionType::Time => {
                Err(QueryError::WrongKind {
                    name: name.text.clone(),
                    expected: "time dimension",
                    found: "dimension of another type",
                })
            }
            by => Ok(by),
        }
    }

    fn check_granularity(
        &self,
        name: &MemberRef,
        by: GroupBy,
        granularity: Option<Granularity>,
        facts: &[CubeId],
    ) -> Result<(), QueryError> {
        match by {
            GroupBy::Dimension(id) => self.names.check_granularity(name, id, granularity),
            GroupBy::MetricTime if facts.is_empty() => Err(QueryError::MetricTimeOfNothing),
            GroupBy::MetricTime => facts.iter().try_for_each(|fact| {
                self.names.check_granularity(name, primary_time(self.names.model, *fact)?, granularity)
            }),
        }
    }

    /// Instants and wall clocks meet in days, and not in anything finer.
    fn check_metric_time(&self, groups: &[Group], facts: &[CubeId]) -> Result<(), QueryError> {
        let is_fine = |g: &Group| g.by == GroupBy::MetricTime && g.granularity.is_none_or(Granularity::is_sub_day);
        if !groups.iter().any(is_fine) {
            return Ok(());
        }
        let model = self.names.model;
        let of_kind = |kind: TimeKind| {
            let mut of_kind = facts
                .iter()
                .filter(|fact| primary_time(model, **fact).is_ok_and(|id| model.dimension(id).time == kind));
            of_kind.next().map(|fact| model.cube(*fact).name.clone())
        };
        match (of_kind(TimeKind::Utc), of_kind(TimeKind::WallClock)) {
            (Some(instant), Some(wall_clock)) => Err(QueryError::MixedMetricTime { instant, wall_clock }),
            _ => Ok(()),
        }
    }

    fn is_time(&self, group: &Group) -> bool {
        match group.by {
            GroupBy::Dimension(id) => self.names.model.dimension(id).ty == DimensionType::Time,
            GroupBy::MetricTime => true,
        }
    }

    /// How the first time group is meant.
    fn time_kind(&self, groups: &[Group], facts: &[CubeId]) -> TimeKind {
        let model = self.names.model;
        let time = groups.iter().find(|group| group.granularity.is_some());
        let dimension = time.zip(facts.first()).and_then(|(group, fact)| group.dimension(model, *fact).ok());
        dimension.map_or(TimeKind::Utc, |id| model.dimension(id).time)
    }

    /// What `time_range.granularity` without a dimension groups by: the one fact's primary time under
    /// its own name, or the time that several share.
    fn shared_time(&self, facts: &[CubeId]) -> Result<MemberRef, QueryError> {
        let model = self.names.model;
        match facts {
            [] => Err(QueryError::AmbiguousTimeRange),
            [fact] => {
                let id = primary_time(model, *fact)?;
                format!("{}.{}", model.cube(*fact).name, model.dimension(id).name).parse()
            }
            _ => METRIC_TIME.parse(),
        }
    }

    fn filters_of(&self, fact: Option<CubeId>) -> Filters<'_> {
        let metric_time = fact.and_then(|fact| primary_time(self.names.model, fact).ok());
        Filters { names: self.names, metric_time, zone: self.zone, now: self.environment.now }
    }

    /// The conjuncts for rows as they are, and those for groups resolved.
    fn split_filters<'q>(
        &'q self,
        groups: &[Group],
        facts: &[CubeId],
    ) -> Result<(Vec<&'q super::Filter>, Vec<Predicate>), QueryError> {
        let context = self.filters_of(facts.first().copied());
        context.check_size(&self.query.filters)?;
        let (mut rows, mut on_groups) = (Vec::new(), Vec::new());
        let mut conjuncts: Vec<&super::Filter> = self.query.filters.iter().rev().collect();
        while let Some(filter) = conjuncts.pop() {
            match filter {
                // The top-level AND is split, so that what can be tested on rows is.
                super::Filter::And(all) => conjuncts.extend(all.iter().rev()),
                filter if context.has_value(filter)? => {
                    let predicate = context.predicate(filter, true)?;
                    check_selected(self.names.model, &predicate, groups)?;
                    on_groups.push(predicate);
                }
                filter => rows.push(filter),
            }
        }
        Ok((rows, on_groups))
    }

    fn row_filters(&self, conjuncts: &[&super::Filter], facts: &[CubeId]) -> Result<Vec<RowFilter>, QueryError> {
        let mut filters = Vec::with_capacity(conjuncts.len());
        for conjunct in conjuncts {
            if !Filters::has_metric_time(conjunct) {
                let predicate = self.filters_of(None).predicate(conjunct, false)?;
                filters.push(RowFilter { fact: None, predicate });
                continue;
            }
            if facts.is_empty() {
                return Err(QueryError::MetricTimeOfNothing);
            }
            for fact in facts {
                primary_time(self.names.model, *fact)?;
                let predicate = self.filters_of(Some(*fact)).predicate(conjunct, false)?;
                filters.push(RowFilter { fact: Some(*fact), predicate });
            }
        }
        Ok(filters)
    }

    /// A range is never widened to its grain, so the granularity plays no part.
    fn ranges(&self, facts: &[CubeId]) -> Result<Vec<RangeFilter>, QueryError> {
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
                None => self.range(GroupBy::MetricTime, METRIC_TIME, range, facts, &mut ranges)?,
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
            GroupBy::MetricTime => {
                facts.iter().try_for_each(|fact| push(Some(*fact), primary_time(self.names.model, *fact)?))
            }
        }
    }

    /// The stretch that the query's one range is compared with, and how its groups are moved to meet.
    fn compare(
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

    /// The filters of every metric that the query computes, also of metrics inside metrics.
    fn metric_filters(&self, used: &[ValueId]) -> Result<Vec<(MetricId, Vec<Predicate>)>, QueryError> {
        let model = self.names.model;
        let names = Names::internal(self.names.access);
        let context = Filters { names: &names, ..self.filters_of(None) };
        let mut metrics = Vec::new();
        used.iter().for_each(|value| metrics_of(model, *value, &mut metrics));
        let filtered = metrics.into_iter().filter(|id| !model.metric(*id).filters.is_empty());
        let resolve = |id: MetricId| {
            let filters = model.metric(id).filters.iter().map(|f| self.metric_filter(&context, f));
            Ok((id, filters.collect::<Result<_, _>>()?))
        };
        filtered.map(resolve).collect()
    }

    fn metric_filter(&self, context: &Filters<'_>, filter: &MetricFilter) -> Result<Predicate, QueryError> {
        let member: MemberRef = filter.member.parse()?;
        let operator = filter.operator.parse()?;
        // A metric speaks of rows: what it filters by is a dimension.
        context.names.dimension(&member)?;
        context.predicate(&super::Filter::Condition { member, operator, values: filter.values.clone() }, false)
    }

    /// The caller's keys or the default, then the remaining groups as ties.
    fn order(&self, groups: &[Group], values: &[SelectedValue]) -> Result<Vec<OrderKey>, QueryError> {
        let mut keys: Vec<OrderKey> = Vec::with_capacity(self.query.order.len() + groups.len());
        for OrderBy { member, descending } in &self.query.order {
            let target = self.order_target(member, groups, values)?;
            if !keys.iter().any(|key| key.target == target) {
                keys.push(OrderKey { target, descending: *descending, is_explicit: true });
            }
        }
        // Plain rows come in the order of their key, which `plan` knows.
        if self.query.ungrouped {
            return Ok(keys);
        }
        if keys.is_empty() {
            if let Some(time) = groups.iter().position(|group| self.is_time(group)) {
                keys.push(OrderKey { target: OrderTarget::Group(time), descending: false, is_explicit: false });
            } else if !values.is_empty() {
                keys.push(OrderKey { target: OrderTarget::Selected(0), descending: true, is_explicit: false });
            }
        }
        for index in 0..groups.len() {
            let target = OrderTarget::Group(index);
            if !keys.iter().any(|key| key.target == target) {
                keys.push(OrderKey { target, descending: false, is_explicit: false });
            }
        }
        Ok(keys)
    }

    fn group_target(&self, name: &MemberRef, by: GroupBy, groups: &[Group]) -> Result<OrderTarget, QueryError> {
        let same = |g: &Group| g.by == by && (name.granularity.is_none() || g.granularity == name.granularity);
        let found = groups.iter().position(same).map(OrderTarget::Group);
        found.ok_or_else(|| QueryError::OrderNotSelected { field: name.text.clone() })
    }

    fn order_target(
        &self,
        name: &MemberRef,
        groups: &[Group],
        values: &[SelectedValue],
    ) -> Result<OrderTarget, QueryError> {
        if let Some(index) = groups.iter().position(|g| g.key == name.text) {
            return Ok(OrderTarget::Group(index));
        }
        if let Some(index) = values.iter().position(|v| v.key == name.text) {
            return Ok(OrderTarget::Selected(index));
        }
        match self.names.operand(name)? {
            Found::Value(value) => Ok(match values.iter().position(|v| v.value == value) {
                Some(index) => OrderTarget::Selected(index),
                None => OrderTarget::Value(value),
            }),
            Found::Dimension(id) => self.group_target(name, GroupBy::Dimension(id), groups),
            Found::MetricTime => self.group_target(name, GroupBy::MetricTime, groups),
            Found::Segment(_) => Err(QueryError::OrderNotSelected { field: name.text.clone() }),
        }
    }
}

/// The name of the first running total that a value is made of.
fn running_total_in(model: &Model, value: ValueId) -> Option<Arc<str>> {
    let within = |snippet: &Snippet| {
        let mut inner = Vec::new();
        snippet.for_each(&mut |part| match part {
            SqlPart::Measure(id) => inner.push(ValueId::Measure(*id)),
            SqlPart::Metric(id) => inner.push(ValueId::Metric(*id)),
            _ => {}
        });
        inner.into_iter().find_map(|value| running_total_in(model, value))
    };
    match value {
        ValueId::Measure(id) => match &model.measure(id).kind {
            MeasureKind::RunningTotal { .. } => {
                Some(format!("{}.{}", model.cube(id.cube).name, model.measure(id).name).into())
            }
            MeasureKind::Number(snippet) => within(snippet),
            MeasureKind::Aggregate(_) => None,
        },
        ValueId::Metric(id) => within(&model.metric(id).body),
    }
}

/// `orders.created_at` by month is `orders.created_at.month`, whichever way it was asked for.
fn keyed(member: &MemberRef, granularity: Option<Granularity>) -> Arc<str> {
    match granularity {
        Some(granularity) if member.granularity != Some(granularity) => {
            let cube = member.cube().map(|cube| format!("{cube}.")).unwrap_or_default();
            format!("{cube}{}.{granularity}", member.member()).into()
        }
        _ => member.text.clone(),
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
        Some(Operand::MetricTime { .. }) => METRIC_TIME.into(),
        Some(Operand::Dimension { id, .. }) => {
            format!("{}.{}", model.cube(id.cube).name, model.dimension(id).name).into()
        }
    };
    Err(QueryError::GroupFilterNotSelected { dimension })
}

/// Also of metrics inside metrics.
fn check_time_grain(model: &Model, used: &[ValueId], groups: &[Group]) -> Result<(), QueryError> {
    let mut metrics = Vec::new();
    used.iter().for_each(|value| metrics_of(model, *value, &mut metrics));
    for metric in metrics.into_iter().map(|id| model.metric(id)) {
        let Some(finest) = metric.time_grain else { continue };
        for group in groups {
            let ungrouped = match group.by {
                GroupBy::Dimension(id) => match model.dimension(id) {
                    dimension if dimension.ty != DimensionType::Time => continue,
                    dimension if dimension.column_type == LogicalType::Date => Granularity::Day,
                    _ => Granularity::Second,
                },
                GroupBy::MetricTime => Granularity::Second,
            };
            let asked = group.granularity.unwrap_or(ungrouped);
            if asked < finest {
                return Err(QueryError::FinerThanTimeGrain { metric: metric.name.clone(), finest, asked });
            }
        }
    }
    Ok(())
}

/// Selected, filtered by, or ordered by.
fn used_values(values: &[SelectedValue], filters: &[Predicate], order: &[OrderKey]) -> Vec<ValueId> {
    let mut used: Vec<ValueId> = values.iter().map(|v| v.value).collect();
    for filter in filters {
        filter.for_each_operand(&mut |operand| {
            if let Operand::Value(value) = operand {
                used.push(*value);
            }
        });
    }
    used.extend(order.iter().filter_map(|key| match key.target {
        OrderTarget::Value(value) => Some(value),
        _ => None,
    }));
    used
}

fn metrics_of(model: &Model, value: ValueId, found: &mut Vec<MetricId>) {
    let ValueId::Metric(id) = value else { return };
    if found.contains(&id) {
        return;
    }
    found.push(id);
    let mut inner = Vec::new();
    model.metric(id).body.for_each(&mut |part| {
        if let SqlPart::Metric(id) = part {
            inner.push(*id);
        }
    });
    inner.into_iter().for_each(|id| metrics_of(model, ValueId::Metric(id), found));
}

/// The cubes whose rows a value is computed from, each once, in the order of first use.
fn fact_cubes(model: &Model, value: ValueId, found: &mut Vec<CubeId>) {
    collect_facts(model, value, &mut HashSet::new(), found);
}

/// Each value is visited once: `number` measures may name one another many times over.
fn collect_facts(model: &Model, value: ValueId, seen: &mut HashSet<ValueId>, found: &mut Vec<CubeId>) {
    if !seen.insert(value) {
        return;
    }
    let (snippet, own) = match value {
        ValueId::Measure(id) => match &model.measure(id).kind {
            MeasureKind::Number(snippet) => (snippet, Some(id.cube)),
            MeasureKind::Aggregate(_) | MeasureKind::RunningTotal { .. } => {
                found.extend(Some(id.cube).filter(|own| !found.contains(own)));
                return;
            }
        },
        ValueId::Metric(id) => (&model.metric(id).body, None),
    };
    let mut parts = Vec::new();
    snippet.for_each(&mut |part| parts.push(part));
    for part in parts {
        match part {
            SqlPart::Measure(id) => collect_facts(model, ValueId::Measure(*id), seen, found),
            SqlPart::Metric(id) => collect_facts(model, ValueId::Metric(*id), seen, found),
            SqlPart::Aggregate(_) => found.extend(own.filter(|own| !found.contains(own))),
            _ => {}
        }
    }
}
