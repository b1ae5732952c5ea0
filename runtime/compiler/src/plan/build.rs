//! A resolved query to a logical plan: values to aggregates, aggregates to facts, facts to joins.

use std::sync::Arc;

use super::join_path::{Asker, JoinTree};
use super::{
    Fact, GroupOperand, GroupPredicate, LogicalPlan, PlannedAggregate, PlannedOrder, PlannedTarget, PlannedValue,
    ValueExpr,
};
use crate::model::{Aggregate, CubeId, DimensionId, MeasureKind, MetricId, Model, Snippet, SqlPart};
use crate::query::{Group, Operand, OrderTarget, Predicate, QueryError, ResolvedQuery, ValueId};

/// Nodes that the values of one query may expand to: `number` measures can double at each level.
const MAX_VALUE_NODES: usize = 10_000;

/// Plans a resolved query.
///
/// # Errors
/// A dimension, filter or segment that some measure's cube can't reach.
pub fn plan<'m>(model: &'m Model, query: ResolvedQuery) -> Result<LogicalPlan<'m>, QueryError> {
    let mut values = Values { model, facts: Vec::new(), aggregates: Vec::new(), nodes: 0 };
    let mut selected = Vec::with_capacity(query.values.len());
    for value in &query.values {
        let expression = values.expand(&value.key, value.value)?;
        selected.push(PlannedValue { key: value.key.clone(), expression });
    }
    if query.values.is_empty() {
        let fact = fact_of_dimensions(model, &query)?;
        values.fact(fact, &model.cube(fact).name);
    }
    // What follows is looked up for the groups of the facts so far.
    let selected_facts = values.facts.len();
    let group_filters =
        query.group_filters.iter().map(|p| values.group_predicate(p, &query.groups)).collect::<Result<_, _>>()?;
    let mut order = Vec::with_capacity(query.order.len());
    for key in &query.order {
        let target = match key.target {
            OrderTarget::Group(index) => PlannedTarget::Group(index),
            OrderTarget::Selected(index) => PlannedTarget::Value(index),
            OrderTarget::Value(value) => PlannedTarget::Expression(values.expand(&value_name(model, value), value)?),
        };
        order.push(PlannedOrder { target, descending: key.descending });
    }
    let Values { facts: named_facts, aggregates, .. } = values;
    let mut facts = Vec::with_capacity(named_facts.len());
    for (index, fact) in named_facts.iter().enumerate() {
        let own = aggregates.iter().filter(|a| a.fact == index);
        let mut fact = plan_fact(model, &query, fact, own)?;
        fact.is_selected = index < selected_facts;
        facts.push(fact);
    }
    Ok(LogicalPlan {
        model,
        groups: query.groups,
        facts,
        aggregates,
        values: selected,
        group_filters,
        metric_filters: query.metric_filters,
        order,
        limit: query.limit,
        offset: query.offset,
        timezone: query.timezone,
        wants_total: query.wants_total,
    })
}

/// A fact and the value that first needed it.
struct NamedFact {
    cube: CubeId,
    asked_by: Arc<str>,
}

/// Expands measures and metrics into expressions over aggregates that are shared.
struct Values<'m> {
    model: &'m Model,
    facts: Vec<NamedFact>,
    aggregates: Vec<PlannedAggregate<'m>>,
    nodes: usize,
}

impl<'m> Values<'m> {
    fn fact(&mut self, cube: CubeId, asked_by: &str) -> usize {
        if let Some(index) = self.facts.iter().position(|f| f.cube == cube) {
            return index;
        }
        self.facts.push(NamedFact { cube, asked_by: asked_by.into() });
        self.facts.len() - 1
    }

    fn expand(&mut self, key: &str, value: ValueId) -> Result<ValueExpr<'m>, QueryError> {
        self.value(key, value, &mut Vec::new())
    }

    fn value(&mut self, key: &str, value: ValueId, metrics: &mut Vec<MetricId>) -> Result<ValueExpr<'m>, QueryError> {
        match value {
            ValueId::Measure(id) => match &self.model.measure(id).kind {
                MeasureKind::Aggregate(aggregate) => Ok(self.aggregate(key, id.cube, aggregate, metrics)),
                MeasureKind::Number(snippet) => self.snippet(key, snippet, Some(id.cube), metrics),
                MeasureKind::RunningTotal { .. } => Err(QueryError::RunningTotalAxis { member: key.into() }),
            },
            ValueId::Metric(id) => {
                let metric = self.model.metric(id);
                let is_filtered = !metric.filters.is_empty() && !metrics.contains(&id);
                if is_filtered {
                    metrics.push(id);
                }
                let expression = self.snippet(key, &metric.body, None, metrics);
                if is_filtered {
                    metrics.pop();
                }
                expression
            }
        }
    }

    fn aggregate(&mut self, key: &str, cube: CubeId, aggregate: &'m Aggregate, metrics: &[MetricId]) -> ValueExpr<'m> {
        let same = |a: &PlannedAggregate<'m>| std::ptr::eq(a.aggregate, aggregate) && a.metrics == metrics;
        if let Some(index) = self.aggregates.iter().position(same) {
            return ValueExpr::Aggregate(index);
        }
        let fact = self.fact(cube, key);
        self.aggregates.push(PlannedAggregate { fact, aggregate, metrics: metrics.to_vec() });
        ValueExpr::Aggregate(self.aggregates.len() - 1)
    }

    fn snippet(
        &mut self,
        key: &str,
        snippet: &'m Snippet,
        own: Option<CubeId>,
        metrics: &mut Vec<MetricId>,
    ) -> Result<ValueExpr<'m>, QueryError> {
        let mut parts = Vec::with_capacity(snippet.parts.len());
        for part in &snippet.parts {
            self.nodes += 1;
            if self.nodes > MAX_VALUE_NODES {
                return Err(QueryError::TooMany { what: "parts in its measures' expressions", limit: MAX_VALUE_NODES });
            }
            parts.push(match (part, own) {
                (SqlPart::Text(text), _) => ValueExpr::Text(text),
                (SqlPart::Measure(id), _) => self.value(key, ValueId::Measure(*id), metrics)?,
                (SqlPart::Metric(id), _) => self.value(key, ValueId::Metric(*id), metrics)?,
                (SqlPart::Aggregate(aggregate), Some(cube)) => self.aggregate(key, cube, aggregate, metrics),
                (SqlPart::Divide(left, right), own) => ValueExpr::Divide(
                    Box::new(self.snippet(key, left, own, metrics)?),
                    Box::new(self.snippet(key, right, own, metrics)?),
                ),
                // The model's build lets no column, dimension or ownerless aggregate into a value.
                (SqlPart::Column { .. } | SqlPart::Dimension(_) | SqlPart::Aggregate(_), _) => {
                    return Err(QueryError::WrongKind { name: key.into(), expected: "measure", found: "column" });
                }
            });
        }
        Ok(match <[ValueExpr<'m>; 1]>::try_from(parts) {
            Ok([single]) => single,
            Err(parts) => ValueExpr::Sequence { parts, is_atomic: snippet.is_atomic },
        })
    }

    fn group_predicate(&mut self, predicate: &Predicate, groups: &[Group]) -> Result<GroupPredicate<'m>, QueryError> {
        let mut all =
            |inner: &[Predicate]| inner.iter().map(|p| self.group_predicate(p, groups)).collect::<Result<Vec<_>, _>>();
        Ok(match predicate {
            Predicate::And(inner) => GroupPredicate::And(all(inner)?),
            Predicate::Or(inner) => GroupPredicate::Or(all(inner)?),
            Predicate::Not(inner) => GroupPredicate::Not(Box::new(self.group_predicate(inner, groups)?)),
            Predicate::Test { operand, test } => {
                let operand = match *operand {
                    Operand::Value(value) => GroupOperand::Value(self.expand(&value_name(self.model, value), value)?),
                    Operand::Dimension { id, granularity } => {
                        let same = |g: &Group| g.dimension == id && g.granularity == granularity;
                        let index = groups.iter().position(same);
                        GroupOperand::Group(index.ok_or_else(|| QueryError::GroupFilterNotSelected {
                            dimension: self.model.dimension(id).name.clone(),
                        })?)
                    }
                };
                GroupPredicate::Test { operand, test: test.clone() }
            }
        })
    }
}

/// Dimensions alone: the one cube that owns one of them and reaches everything else by to-one hops.
fn fact_of_dimensions(model: &Model, query: &ResolvedQuery) -> Result<CubeId, QueryError> {
    if let Some(cube) = query.cube {
        return Ok(cube);
    }
    let mut needed: Vec<DimensionId> = query.groups.iter().map(|g| g.dimension).collect();
    for filter in &query.row_filters {
        filter.for_each_operand(&mut |operand| {
            if let Operand::Dimension { id, .. } = operand {
                needed.push(*id);
            }
        });
    }
    let reaches_all = |cube: CubeId| {
        let reach = model.reach(cube);
        needed.iter().all(|id| reach.is_to_one(id.cube)) && query.segments.iter().all(|s| reach.is_to_one(s.cube))
    };
    let owners = query.groups.iter().map(|g| g.dimension.cube);
    owners.into_iter().find(|cube| reaches_all(*cube)).ok_or_else(|| {
        let first = &query.groups[0];
        let owner = first.dimension.cube;
        let blocked = needed.iter().find(|id| !model.reach(owner).is_to_one(id.cube)).unwrap_or(&first.dimension);
        let public = model.reach(owner).order.iter().map(|id| model.cube(*id)).filter(|cube| cube.public);
        let reach = public.map(|cube| cube.name.clone());
        QueryError::NoJoinPath {
            what: format!(
                "no cube of these dimensions reaches all others: name a measure or `cube`; `{}`",
                model.cube(owner).name
            ),
            target: member_name(model, *blocked),
            reachable: std::iter::once(model.cube(owner).name.clone()).chain(reach).take(20).collect(),
        }
    })
}

/// For errors about a value that has no key of its own in the answer.
fn value_name(model: &Model, value: ValueId) -> Arc<str> {
    match value {
        ValueId::Measure(id) => format!("{}.{}", model.cube(id.cube).name, model.measure(id).name).into(),
        ValueId::Metric(id) => model.metric(id).name.clone(),
    }
}

fn member_name(model: &Model, id: DimensionId) -> Arc<str> {
    format!("{}.{}", model.cube(id.cube).name, model.dimension(id).name).into()
}

fn plan_fact<'m>(
    model: &'m Model,
    query: &ResolvedQuery,
    fact: &NamedFact,
    aggregates: impl Iterator<Item = impl std::ops::Deref<Target = PlannedAggregate<'m>>>,
) -> Result<Fact<'m>, QueryError> {
    let mut tree = JoinTree::new(model, fact.cube);
    let value = &*fact.asked_by;
    for group in &query.groups {
        tree.reach_dimension(group.dimension, Asker { value, target: &group.key })?;
    }
    let reach_filter = |tree: &mut JoinTree<'m>, predicate: &Predicate| {
        let mut ids = Vec::new();
        predicate.for_each_operand(&mut |operand| {
            if let Operand::Dimension { id, .. } = operand {
                ids.push(*id);
            }
        });
        ids.into_iter().try_for_each(|id| tree.reach_dimension(id, Asker { value, target: &member_name(model, id) }))
    };
    let mut row_filters = Vec::with_capacity(query.row_filters.len());
    for filter in &query.row_filters {
        reach_filter(&mut tree, filter)?;
        row_filters.push(filter.clone());
    }
    for (id, test) in query.primary_time.iter().filter(|(id, _)| id.cube == fact.cube) {
        let filter = Predicate::Test { operand: Operand::Dimension { id: *id, granularity: None }, test: test.clone() };
        reach_filter(&mut tree, &filter)?;
        row_filters.push(filter);
    }
    let mut segments = Vec::with_capacity(query.segments.len());
    for id in &query.segments {
        let segment = model.segment(*id);
        let name = format!("{}.{}", model.cube(id.cube).name, segment.name);
        let asker = Asker { value, target: &name };
        tree.reach(id.cube, asker)?;
        tree.reach_snippet(&segment.sql, asker)?;
        segments.push(&segment.sql);
    }
    for planned in aggregates {
        let asker = Asker { value, target: value };
        let aggregate: &'m Aggregate = planned.aggregate;
        for snippet in aggregate.argument.iter().chain(&aggregate.filters) {
            tree.reach_snippet(snippet, asker)?;
        }
        for metric in &planned.metrics {
            let filters = query.metric_filters.iter().filter(|(id, _)| id == metric);
            for filter in filters.flat_map(|(_, filters)| filters) {
                reach_filter(&mut tree, filter)?;
            }
        }
    }
    Ok(Fact { cube: fact.cube, joins: tree.joins, row_filters, segments, is_selected: true })
}
