//! Names to ids, texts to typed values, the order made complete.
//!
//! In: a [`SemanticQuery`] and the model. Out: a [`ResolvedQuery`], or the first reason why not.

use std::sync::Arc;

use jiff::tz::TimeZone;

use super::filter::Filters;
use super::names::{Found, Names};
use super::resolved::{Group, Operand, OrderKey, OrderTarget, Predicate, ResolvedQuery, SelectedValue, Test, ValueId};
use super::time::TimeAxis;
use super::{DateRange, MemberRef, OrderBy, QueryError, SemanticQuery, TimeDimension, TimeRange};
use crate::compile::Environment;
use crate::model::{CubeId, DimensionId, DimensionType, MeasureKind, MetricFilter, MetricId, Model, Snippet, SqlPart};
use crate::types::Granularity;

/// Measures, metrics, dimensions and order keys, each.
const MAX_MEMBERS: usize = 500;

/// Resolves a query against a model.
///
/// # Errors
/// The first name that doesn't exist, value that doesn't fit, or limit that is passed.
pub fn resolve(model: &Model, query: &SemanticQuery, environment: &Environment) -> Result<ResolvedQuery, QueryError> {
    check_size(query)?;
    let names = Names::new(model, query)?;
    let zone = match &query.timezone {
        Some(name) => {
            let zone = environment.zones.get(name);
            zone.map_err(|_| QueryError::UnknownTimezone { timezone: name.clone() })?
        }
        None => environment.default_timezone.clone(),
    };
    let resolver = Resolver { names: &names, query, environment, zone: &zone };

    let values = resolver.values()?;
    let groups = resolver.groups(&values)?;
    if values.is_empty() && groups.is_empty() {
        return Err(QueryError::Empty);
    }
    check_time_grain(model, &values, &groups)?;
    let (row_filters, group_filters) = resolver.filters(&groups)?;
    let segments = query.segments.iter().map(|name| names.segment(name)).collect::<Result<_, _>>()?;
    let order = resolver.order(&groups, &values)?;
    let used = used_values(&values, &group_filters, &order);
    let primary_time = resolver.primary_time(&used)?;
    let metric_filters = resolver.metric_filters(&used)?;
    let limit = query.limit.unwrap_or(environment.default_limit);
    if limit > environment.max_limit {
        return Err(QueryError::LimitTooLarge { limit, max: environment.max_limit });
    }
    Ok(ResolvedQuery {
        groups,
        values,
        row_filters,
        group_filters,
        segments,
        primary_time,
        metric_filters,
        order,
        cube: names.cube_id(),
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

    fn groups(&self, values: &[SelectedValue]) -> Result<Vec<Group>, QueryError> {
        let mut groups: Vec<Group> = Vec::new();
        let mut push = |group: Group| {
            if !groups.iter().any(|g| g.key == group.key) {
                groups.push(group);
            }
        };
        for name in &self.query.dimensions {
            let dimension = self.names.dimension(name)?;
            self.names.check_granularity(name, dimension, name.granularity)?;
            push(Group { key: name.text.clone(), dimension, granularity: name.granularity });
        }
        for TimeDimension { member, granularity, range } in &self.query.time_dimensions {
            let dimension = self.time_dimension(member)?;
            let asked = granularity.or(member.granularity);
            self.names.check_granularity(member, dimension, asked)?;
            if asked.is_some() || range.is_none() {
                push(Group { key: keyed(member, asked), dimension, granularity: asked });
            }
        }
        if let Some(TimeRange { member, granularity: Some(granularity), .. }) = &self.query.time_range {
            let (dimension, name) = match member {
                Some(name) => (self.time_dimension(name)?, name.clone()),
                None => self.only_primary_time(values)?,
            };
            self.names.check_granularity(&name, dimension, Some(*granularity))?;
            push(Group { key: keyed(&name, Some(*granularity)), dimension, granularity: Some(*granularity) });
        }
        Ok(groups)
    }

    fn time_dimension(&self, name: &MemberRef) -> Result<DimensionId, QueryError> {
        let id = self.names.dimension(name)?;
        match self.names.model.dimension(id).ty {
            DimensionType::Time => Ok(id),
            _ => Err(QueryError::WrongKind {
                name: name.text.clone(),
                expected: "time dimension",
                found: "dimension of another type",
            }),
        }
    }

    /// The one primary time that all facts share, for `time_range.granularity` without a dimension.
    fn only_primary_time(&self, values: &[SelectedValue]) -> Result<(DimensionId, MemberRef), QueryError> {
        let model = self.names.model;
        let mut facts = Vec::new();
        for value in values {
            fact_cubes(model, value.value, &mut facts);
        }
        facts.extend(self.names.cube_id().filter(|_| facts.is_empty()));
        let [fact] = facts[..] else { return Err(QueryError::AmbiguousTimeRange) };
        let cube = model.cube(fact);
        let index = cube.primary_time.ok_or_else(|| QueryError::NoPrimaryTime { cube: cube.name.clone() })?;
        let id = DimensionId { cube: fact, index };
        let name = format!("{}.{}", cube.name, model.dimension(id).name).parse()?;
        Ok((id, name))
    }

    fn filters(&self, groups: &[Group]) -> Result<(Vec<Predicate>, Vec<Predicate>), QueryError> {
        let context = Filters { names: self.names, zone: self.zone, now: self.environment.now };
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
                filter => rows.push(context.predicate(filter, false)?),
            }
        }
        for TimeDimension { member, range, .. } in &self.query.time_dimensions {
            if let Some(range) = range {
                rows.push(self.range_predicate(member, range)?);
            }
        }
        if let Some(TimeRange { member: Some(member), range, .. }) = &self.query.time_range {
            rows.push(self.range_predicate(member, range)?);
        }
        Ok((rows, on_groups))
    }

    /// A range is never widened to its grain, so the granularity plays no part.
    fn range_predicate(&self, member: &MemberRef, range: &DateRange) -> Result<Predicate, QueryError> {
        let id = self.time_dimension(member)?;
        let test = self.axis(id, &member.text).within(range)?;
        Ok(Predicate::Test { operand: Operand::Dimension { id, granularity: None }, test })
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
        let context = Filters { names: self.names, zone: self.zone, now: self.environment.now };
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
        self.names.dimension(&member)?;
        context.predicate(&super::Filter::Condition { member, operator, values: filter.values.clone() }, false)
    }

    fn primary_time(&self, used: &[ValueId]) -> Result<Vec<(DimensionId, Test)>, QueryError> {
        let Some(TimeRange { member: None, range, .. }) = &self.query.time_range else { return Ok(Vec::new()) };
        let model = self.names.model;
        let mut facts = Vec::new();
        for value in used {
            fact_cubes(model, *value, &mut facts);
        }
        if facts.is_empty() {
            facts.extend(self.names.cube_id());
        }
        if facts.is_empty() {
            return Err(QueryError::AmbiguousTimeRange);
        }
        let mut tests = Vec::with_capacity(facts.len());
        for fact in facts {
            let cube = model.cube(fact);
            let index = cube.primary_time.ok_or_else(|| QueryError::NoPrimaryTime { cube: cube.name.clone() })?;
            let id = DimensionId { cube: fact, index };
            tests.push((id, self.axis(id, &model.dimension(id).name).within(range)?));
        }
        Ok(tests)
    }

    /// The caller's keys or the default, then the remaining groups as ties.
    fn order(&self, groups: &[Group], values: &[SelectedValue]) -> Result<Vec<OrderKey>, QueryError> {
        let mut keys: Vec<OrderKey> = Vec::with_capacity(self.query.order.len() + groups.len());
        for OrderBy { member, descending } in &self.query.order {
            let target = self.order_target(member, groups, values)?;
            if !keys.iter().any(|key| key.target == target) {
                keys.push(OrderKey { target, descending: *descending });
            }
        }
        if keys.is_empty() {
            let is_time = |g: &Group| self.names.model.dimension(g.dimension).ty == DimensionType::Time;
            if let Some(time) = groups.iter().position(is_time) {
                keys.push(OrderKey { target: OrderTarget::Group(time), descending: false });
            } else if !values.is_empty() {
                keys.push(OrderKey { target: OrderTarget::Selected(0), descending: true });
            }
        }
        for index in 0..groups.len() {
            let target = OrderTarget::Group(index);
            if !keys.iter().any(|key| key.target == target) {
                keys.push(OrderKey { target, descending: false });
            }
        }
        Ok(keys)
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
            Found::Dimension(id) => {
                let same =
                    |g: &Group| g.dimension == id && (name.granularity.is_none() || g.granularity == name.granularity);
                let found = groups.iter().position(same).map(OrderTarget::Group);
                found.ok_or_else(|| QueryError::OrderNotSelected { field: name.text.clone() })
            }
            Found::Segment(_) => Err(QueryError::OrderNotSelected { field: name.text.clone() }),
        }
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
        if let Operand::Dimension { id, granularity } = *operand
            && !groups.iter().any(|g| g.dimension == id && g.granularity == granularity)
        {
            missing = Some(id);
        }
    });
    match missing {
        Some(id) => {
            let name = format!("{}.{}", model.cube(id.cube).name, model.dimension(id).name);
            Err(QueryError::GroupFilterNotSelected { dimension: name.into() })
        }
        None => Ok(()),
    }
}

fn check_time_grain(model: &Model, values: &[SelectedValue], groups: &[Group]) -> Result<(), QueryError> {
    for value in values {
        let ValueId::Metric(id) = value.value else { continue };
        let metric = model.metric(id);
        let Some(finest) = metric.time_grain else { continue };
        for group in groups.iter().filter(|g| model.dimension(g.dimension).ty == DimensionType::Time) {
            let asked = group.granularity.unwrap_or(Granularity::Second);
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
pub(crate) fn fact_cubes(model: &Model, value: ValueId, found: &mut Vec<CubeId>) {
    let mut add = |cube: CubeId| {
        if !found.contains(&cube) {
            found.push(cube);
        }
    };
    match value {
        ValueId::Measure(id) => match &model.measure(id).kind {
            MeasureKind::Aggregate(_) | MeasureKind::RunningTotal { .. } => add(id.cube),
            MeasureKind::Number(snippet) => snippet_cubes(model, snippet, Some(id.cube), found),
        },
        ValueId::Metric(id) => snippet_cubes(model, &model.metric(id).body, None, found),
    }
}

fn snippet_cubes(model: &Model, snippet: &Snippet, own: Option<CubeId>, found: &mut Vec<CubeId>) {
    let mut parts = Vec::new();
    snippet.for_each(&mut |part| parts.push(part));
    for part in parts {
        match part {
            SqlPart::Measure(id) => fact_cubes(model, ValueId::Measure(*id), found),
            SqlPart::Metric(id) => fact_cubes(model, ValueId::Metric(*id), found),
            SqlPart::Aggregate(_) => found.extend(own.filter(|own| !found.contains(own))),
            _ => {}
        }
    }
}
