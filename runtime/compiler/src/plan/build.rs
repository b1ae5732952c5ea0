//! Builds a logical plan from a resolved query: values become aggregates, aggregates are assigned to facts, and facts
//! get their joins.

use std::sync::Arc;

use super::join_path::{Asker, JoinTree, path};
use super::semi_join;
use super::window::{MAX_WINDOWS, Windows};
use super::{
    ArgumentForm, Fact, FactSample, GroupOperand, GroupPredicate, LogicalPlan, Period, PlannedAggregate, PlannedOrder,
    PlannedTarget, PlannedValue, RowKey, SampleMethod, ValueExpr,
};
use crate::model::{
    Aggregate, CubeId, DimensionId, MeasureId, MeasureKind, MetricId, Model, RollingWindow, Snippet, SqlPart,
};
use crate::query::{
    ExpectedMember, Group, GroupBy, GroupShift, MAX_STEPS, Operand, OrderTarget, Predicate, QueryError, RangeFilter,
    ResolvedQuery, ResolvedRowAggregate, Test, TypedRowValue, ValueId,
};

/// The largest number of nodes that the values of one query may expand to. `number` measures can double it at each
/// level.
const MAX_VALUE_NODES: usize = 10_000;

/// Plans a resolved query.
///
/// # Errors
/// A dimension, filter or segment that the cube of a measure cannot reach.
pub fn plan<'m>(model: &'m Model, mut query: ResolvedQuery) -> Result<LogicalPlan<'m>, QueryError> {
    let computed = std::mem::take(&mut query.computed);
    let windows = query.axis.as_ref().map(|axis| Windows { axis, groups: &query.groups, timezone: &query.timezone });
    let mut values = Values {
        model,
        facts: Vec::new(),
        aggregates: Vec::new(),
        running: Vec::new(),
        windows: windows.as_ref(),
        leaves_out_undated: query.axis.is_none() && query.running_time.is_some_and(|by| !has_range_along(&query, by)),
        period: Period::default(),
        nodes: 0,
    };
    let mut selected = Vec::with_capacity(query.values.len());
    for value in &query.values {
        let expression = values.expand(&value.key, value.value)?;
        selected.push(PlannedValue { key: value.key.clone(), expression });
    }
    selected.extend(computed.into_iter().map(|one| values.computed(one)));
    if selected.is_empty() {
        let fact = fact_of_dimensions(model, &query)?;
        values.fact(fact, Period::default(), &model.cube(fact).name);
    }
    if query.comparison.is_some() {
        values.period.is_previous = true;
        for value in &query.values {
            let expression = values.expand(&value.key, value.value)?;
            selected.push(PlannedValue { key: format!("{}.previous", value.key).into(), expression });
        }
        values.period.is_previous = false;
    }
    // Facts that are added from here on are only lookups for the groups of the facts so far.
    let selected_facts = values.facts.len();
    let group_filters =
        query.group_filters.iter().map(|p| values.group_predicate(p, &query.groups)).collect::<Result<_, _>>()?;
    let mut order = Vec::with_capacity(query.order.len());
    for key in &query.order {
        let target = match key.target {
            OrderTarget::Group(index) => PlannedTarget::Group(index),
            OrderTarget::Selected(index) => PlannedTarget::Value(index),
            OrderTarget::Value(value) => PlannedTarget::Expression(values.expand(&value.name(model), value)?),
        };
        order.push(PlannedOrder { target, descending: key.descending, is_explicit: key.is_explicit });
    }
    if values.facts.iter().filter(|fact| fact.period.window.is_some()).count() > MAX_WINDOWS {
        return Err(QueryError::TooMany { what: "rolling windows", limit: MAX_WINDOWS });
    }
    let Values { facts: named_facts, aggregates, running, .. } = values;
    let mut facts = Vec::with_capacity(named_facts.len());
    for (index, fact) in named_facts.iter().enumerate() {
        let own = aggregates.iter().filter(|a| a.fact == index);
        let mut fact = plan_fact(model, &query, fact, own)?;
        fact.is_selected = index < selected_facts;
        facts.push(fact);
    }
    if query.ungrouped {
        order_rows(model, &query, &facts[0], &mut order);
    }
    let shifts = query.comparison.unwrap_or_default();
    let mut plan = LogicalPlan {
        model,
        groups: query.groups,
        facts,
        aggregates,
        running,
        values: selected,
        group_filters,
        metric_filters: query.metric_filters,
        order,
        axis: query.axis,
        fill_gaps: query.fill_gaps,
        shifts,
        ungrouped: query.ungrouped,
        limit: query.limit,
        offset: query.offset,
        timezone: query.timezone,
        wants_total: query.wants_total,
    };
    add_compared_steps(&mut plan)?;
    Ok(plan)
}

/// Adds the steps that only the compared period has, if a window of this period needs them.
///
/// # Errors
/// [`QueryError::TooManySteps`].
fn add_compared_steps(plan: &mut LogicalPlan<'_>) -> Result<(), QueryError> {
    let has_window = |fact: &Fact<'_>| fact.period.is_previous && fact.period.window.is_some();
    let excess = plan.step_shift().map_or(0, GroupShift::excess).unsigned_abs();
    if let Some(bounds) = plan.axis.as_mut().and_then(|axis| axis.bounds.as_mut())
        && plan.facts.iter().any(has_window)
    {
        bounds.steps += excess;
        if bounds.steps > MAX_STEPS {
            return Err(QueryError::TooManySteps { limit: MAX_STEPS });
        }
    }
    Ok(())
}

/// Plans statistics of one cube's rows: a value `v0`, `v1`, … for each aggregate. Without groups they are computed over
/// all rows. With groups, the groups are ordered by the first value, the greatest first.
///
/// # Errors
/// The cube cannot reach a member or a filter.
pub(crate) fn plan_statistics<'m>(
    model: &'m Model,
    query: ResolvedQuery,
    cube: CubeId,
    aggregates: Vec<PlannedAggregate<'m>>,
    sample: Option<FactSample>,
) -> Result<LogicalPlan<'m>, QueryError> {
    let named = NamedFact { cube, period: Period::default(), asked_by: model.cube(cube).name.clone() };
    let mut fact = plan_fact(model, &query, &named, aggregates.iter())?;
    // The null group is removed after the sample is taken, which has to be the same for all statements.
    let null_group = sample
        .as_ref()
        .map(|_| GroupPredicate::Test { operand: GroupOperand::Group(0), test: Test::Not(Box::new(Test::IsNull)) });
    if let Some(sample) = &sample {
        reach_sample(model, &mut fact, sample)?;
    }
    fact.sample = sample;
    let value = |index| PlannedValue { key: format!("v{index}").into(), expression: ValueExpr::Aggregate(index) };
    let by = |target, descending| PlannedOrder { target, descending, is_explicit: false };
    let groups = (0..query.groups.len()).map(|index| by(PlannedTarget::Group(index), false));
    Ok(LogicalPlan {
        model,
        facts: vec![fact],
        values: (0..aggregates.len()).map(value).collect(),
        aggregates,
        running: Vec::new(),
        group_filters: null_group.filter(|_| !query.groups.is_empty()).into_iter().collect(),
        metric_filters: Vec::new(),
        order: std::iter::once(by(PlannedTarget::Value(0), true)).chain(groups).collect(),
        groups: query.groups,
        axis: None,
        fill_gaps: false,
        shifts: Vec::new(),
        ungrouped: false,
        limit: query.limit,
        offset: 0,
        timezone: query.timezone,
        wants_total: false,
    })
}

/// Joins the cubes that the keys and the strata of a sample need.
fn reach_sample<'m>(model: &'m Model, fact: &mut Fact<'m>, sample: &FactSample) -> Result<(), QueryError> {
    let stratum = match sample.method {
        SampleMethod::Stratified(id) => Some(id),
        SampleMethod::Random | SampleMethod::Systematic => None,
    };
    let value = &*model.cube(fact.tree.cube).name;
    for id in sample.keys.iter().copied().chain(stratum) {
        let target = member_name(model, id);
        fact.tree.reach_dimension(model, 0, id, Asker { value, target: &target })?;
    }
    // Joins that repeat rows make pairs of a row and a stratum, of which no sample is defined.
    match stratum.filter(|_| fact.distinct.is_none() && fact.tree.joins.iter().any(|join| join.is_to_many)) {
        Some(id) => Err(QueryError::UnknownDimension { name: member_name(model, id), nearest: Vec::new() }),
        None => Ok(()),
    }
}

/// Orders ungrouped rows by their key, or by all their columns if the cube has no key.
fn order_rows(model: &Model, query: &ResolvedQuery, fact: &Fact<'_>, order: &mut Vec<PlannedOrder<'_>>) {
    let cube = model.cube(fact.tree.cube);
    let mut push = |target| order.push(PlannedOrder { target, descending: false, is_explicit: false });
    for index in &cube.primary_key {
        push(PlannedTarget::Dimension(DimensionId { cube: cube.id, index: *index }));
    }
    if cube.primary_key.is_empty() {
        (0..query.groups.len()).for_each(|index| push(PlannedTarget::Group(index)));
    }
}

/// A fact and the value that needed it first.
struct NamedFact {
    cube: CubeId,
    period: Period,
    asked_by: Arc<str>,
}

/// Expands measures and metrics into expressions over aggregates that are shared.
struct Values<'q, 'm> {
    model: &'m Model,
    facts: Vec<NamedFact>,
    aggregates: Vec<PlannedAggregate<'m>>,
    running: Vec<usize>,
    /// The windows of the query; `None` without a time axis, as in totals. A running total is then the sum of all rows.
    windows: Option<&'q Windows<'q>>,
    /// True if a running total without an axis must leave out rows without a time, because no range leaves them out.
    leaves_out_undated: bool,
    /// The period of the value that is being expanded.
    period: Period,
    nodes: usize,
}

impl<'m> Values<'_, 'm> {
    fn fact(&mut self, cube: CubeId, period: Period, asked_by: &str) -> usize {
        if let Some(index) = self.facts.iter().position(|f| f.cube == cube && f.period == period) {
            return index;
        }
        self.facts.push(NamedFact { cube, period, asked_by: asked_by.into() });
        self.facts.len() - 1
    }

    fn expand(&mut self, key: &str, value: ValueId) -> Result<ValueExpr<'m>, QueryError> {
        self.value(key, value, &mut Vec::new())
    }

    fn value(&mut self, key: &str, value: ValueId, metrics: &mut Vec<MetricId>) -> Result<ValueExpr<'m>, QueryError> {
        match value {
            ValueId::Measure(id) => match &self.model.measure(id).kind {
                MeasureKind::Aggregate(aggregate) => {
                    Ok(ValueExpr::Aggregate(self.aggregate(key, id.cube, aggregate, self.period, metrics)))
                }
                MeasureKind::Number(snippet) => self.snippet(key, snippet, Some(id.cube), metrics),
                MeasureKind::RunningTotal { aggregate, from_all } => {
                    let is_dated = self.leaves_out_undated;
                    let is_first = self.is_along_many(id.cube)?;
                    if is_first {
                        // Steps in which all rows occurred before are steps too.
                        self.fact(id.cube, self.period, key);
                    }
                    let period = Period { has_history: *from_all, is_dated, is_first, ..self.period };
                    let index = self.aggregate(key, id.cube, aggregate, period, metrics);
                    Ok(if self.windows.is_some() { self.running_total(index) } else { ValueExpr::Aggregate(index) })
                }
                MeasureKind::Rolling { aggregate, window } => self.rolling(key, id, aggregate, *window, metrics),
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

    /// Returns whether a row of a cube can be in several steps of the axis, because the time is behind a to-many join.
    fn is_along_many(&self, cube: CubeId) -> Result<bool, QueryError> {
        let Some(windows) = self.windows else { return Ok(false) };
        let time = windows.groups[windows.axis.groups[0]].dimension(self.model, cube)?;
        let hops = path(self.model, cube, time.cube).unwrap_or_default();
        Ok(hops.into_iter().any(|(from, join)| !self.model.cube(from).joins[join].relationship.is_to_one()))
    }

    /// Returns the aggregate over the window at each step, or over all rows of the range if there are no steps.
    fn rolling(
        &mut self,
        key: &str,
        id: MeasureId,
        aggregate: &'m Aggregate,
        window: RollingWindow,
        metrics: &[MetricId],
    ) -> Result<ValueExpr<'m>, QueryError> {
        let mut period = self.period;
        match self.windows {
            Some(windows) => {
                let group = &windows.groups[windows.axis.groups[0]];
                let what = ValueId::Measure(id).name(self.model);
                windows.check(self.model, &what, window, group.dimension(self.model, id.cube)?)?;
                if windows.needs_own_rows(window) {
                    self.fact(id.cube, period, key);
                }
                period.window = Some(window);
            }
            None => period.is_dated = self.leaves_out_undated,
        }
        Ok(ValueExpr::Aggregate(self.aggregate(key, id.cube, aggregate, period, metrics)))
    }

    fn running_total(&mut self, aggregate: usize) -> ValueExpr<'m> {
        let index = self.running.iter().position(|a| *a == aggregate).unwrap_or_else(|| {
            self.running.push(aggregate);
            self.running.len() - 1
        });
        ValueExpr::Running(index)
    }

    fn aggregate(
        &mut self,
        key: &str,
        cube: CubeId,
        aggregate: &'m Aggregate,
        period: Period,
        metrics: &[MetricId],
    ) -> usize {
        let fact = self.fact(cube, period, key);
        let same =
            |a: &PlannedAggregate<'m>| a.fact == fact && std::ptr::eq(a.aggregate, aggregate) && a.metrics == metrics;
        if let Some(index) = self.aggregates.iter().position(same) {
            return index;
        }
        self.aggregates.push(PlannedAggregate {
            fact,
            aggregate,
            metrics: metrics.to_vec(),
            shape: ArgumentForm::Measure,
        });
        self.aggregates.len() - 1
    }

    /// Adds an aggregate of a value of each row.
    fn computed(&mut self, computed: ResolvedRowAggregate) -> PlannedValue<'m> {
        let fact = self.fact(computed.fact, self.period, &computed.key);
        let aggregate = computed.aggregate();
        let shape = ArgumentForm::Row(computed.value);
        self.aggregates.push(PlannedAggregate { fact, aggregate, metrics: Vec::new(), shape });
        let expression = ValueExpr::Aggregate(self.aggregates.len() - 1);
        PlannedValue { key: computed.key, expression }
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
                (SqlPart::Aggregate(aggregate), Some(cube)) => {
                    ValueExpr::Aggregate(self.aggregate(key, cube, aggregate, self.period, metrics))
                }
                (SqlPart::Divide(left, right), own) => ValueExpr::Divide(
                    Box::new(self.snippet(key, left, own, metrics)?),
                    Box::new(self.snippet(key, right, own, metrics)?),
                ),
                // The model's build ensures that values contain no column, dimension or aggregate without an owner.
                (SqlPart::Column { .. } | SqlPart::Dimension(_) | SqlPart::Aggregate(_) | SqlPart::User(_), _) => {
                    return Err(QueryError::WrongKind {
                        name: key.into(),
                        expected: ExpectedMember::Measure,
                        found: "column",
                    });
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
                    Operand::Value(value) => GroupOperand::Value(self.expand(&value.name(self.model), value)?),
                    Operand::Dimension { .. } | Operand::MetricTime { .. } => {
                        let index = groups.iter().position(|group| operand.is_group(group));
                        // `resolve` has checked that the group is selected.
                        GroupOperand::Group(index.ok_or(QueryError::Empty)?)
                    }
                };
                GroupPredicate::Test { operand, test: test.clone() }
            }
        })
    }
}

/// Returns the fact of a query of dimensions without measures: the only cube that owns one of the dimensions and
/// reaches all others by to-one joins.
fn fact_of_dimensions(model: &Model, query: &ResolvedQuery) -> Result<CubeId, QueryError> {
    if let Some(cube) = query.cube {
        return Ok(cube);
    }
    let dimensions: Vec<DimensionId> = query
        .groups
        .iter()
        .filter_map(|group| match group.by {
            GroupBy::Dimension(id) => Some(id),
            GroupBy::MetricTime => None,
        })
        .collect();
    let Some(first) = dimensions.first() else { return Err(QueryError::MetricTimeOfNothing) };
    let reaches_all = |cube: CubeId| dimensions.iter().all(|id| model.join_paths(cube).is_to_one(id.cube));
    let mut owners = dimensions.iter().map(|id| id.cube);
    owners.find(|cube| reaches_all(*cube)).ok_or_else(|| {
        let owner = first.cube;
        let blocked = dimensions.iter().find(|id| !model.join_paths(owner).is_to_one(id.cube)).unwrap_or(first);
        let public = model.join_paths(owner).order.iter().map(|id| model.cube(*id)).filter(|cube| cube.public);
        let names = public.map(|cube| cube.name.clone());
        QueryError::NoCommonCube {
            cube: model.cube(owner).name.clone(),
            target: member_name(model, *blocked),
            reachable: std::iter::once(model.cube(owner).name.clone()).chain(names).take(20).collect(),
        }
    })
}

pub(super) fn member_name(model: &Model, id: DimensionId) -> Arc<str> {
    format!("{}.{}", model.cube(id.cube).name, model.dimension(id).name).into()
}

fn plan_fact<'m, 'q>(
    model: &'m Model,
    query: &ResolvedQuery,
    fact: &NamedFact,
    aggregates: impl Iterator<Item = &'q PlannedAggregate<'m>>,
) -> Result<Fact<'m>, QueryError>
where
    'm: 'q,
{
    let mut tree = JoinTree::new(fact.cube);
    let value = &*fact.asked_by;
    let mut groups = Vec::with_capacity(query.groups.len());
    let mut group_behind_to_many = None;
    for group in &query.groups {
        let id = group.dimension(model, fact.cube)?;
        let node = tree.reach_dimension(model, 0, id, Asker { value, target: &group.key })?;
        if tree.is_to_many(node) {
            group_behind_to_many = Some(&group.key);
        }
        groups.push(id);
    }
    let reach_dimensions = |tree: &mut JoinTree<'m>, ids: &[DimensionId]| {
        ids.iter().try_for_each(|id| {
            tree.reach_dimension(model, 0, *id, Asker { value, target: &member_name(model, *id) }).map(|_| ())
        })
    };
    let reach_filter = |tree: &mut JoinTree<'m>, predicate: &Predicate| {
        let mut ids = Vec::new();
        predicate.for_each_operand(&mut |operand| {
            if let Operand::Dimension { id, .. } = operand {
                ids.push(*id);
            }
        });
        reach_dimensions(tree, &ids)
    };
    let mut row_filters = Vec::with_capacity(query.row_filters.len() + query.ranges.len());
    let own = query.row_filters.iter().filter(|filter| filter.fact.is_none_or(|cube| cube == fact.cube));
    row_filters.extend(own.map(|filter| filter.predicate.clone()));
    let own = query.ranges.iter().filter(|range| range.fact.is_none_or(|cube| cube == fact.cube));
    row_filters.extend(own.map(|range| range_predicate(query, range, fact.period)));
    if let Some(by) = query.running_time.filter(|_| fact.period.is_dated) {
        let id = by.dimension(model, fact.cube)?;
        let test = Test::Not(Box::new(Test::IsNull));
        row_filters.push(Predicate::Test { operand: Operand::Dimension { id, granularity: None }, test });
    }
    let mut segments = Vec::with_capacity(query.segments.len());
    for id in &query.segments {
        let segment = model.segment(*id);
        let name = format!("{}.{}", model.cube(id.cube).name, segment.name);
        let asker = Asker { value, target: &name };
        let node = tree.reach(model, 0, id.cube, asker)?;
        tree.reach_snippet(model, node, &segment.sql, asker)?;
        segments.push((node, &segment.sql));
    }
    let mut has_aggregates = false;
    for planned in aggregates {
        has_aggregates = true;
        let asker = Asker { value, target: value };
        let aggregate: &'m Aggregate = planned.aggregate;
        for snippet in aggregate.argument.iter().chain(&aggregate.filters) {
            tree.reach_snippet(model, 0, snippet, asker)?;
        }
        for metric in &planned.metrics {
            let filters = query.metric_filters.iter().filter(|(id, _)| id == metric);
            for filter in filters.flat_map(|(_, filters)| filters) {
                reach_filter(&mut tree, filter)?;
            }
        }
        match &planned.shape {
            ArgumentForm::Where(filter) => reach_filter(&mut tree, filter)?,
            ArgumentForm::Row(value) => reach_dimensions(&mut tree, &dimensions_of(value))?,
            _ => {}
        }
    }
    // If other joins repeat the rows anyway, the filters share the tree of these joins.
    let mut semi_joins = Vec::new();
    if !tree.joins.iter().any(|join| join.is_to_many) {
        semi_joins = semi_join::take(model, &mut tree, &mut row_filters, Asker { value, target: value })?;
    }
    row_filters.iter().try_for_each(|filter| reach_filter(&mut tree, filter))?;
    let repeats_rows = tree.joins.iter().any(|join| join.is_to_many);
    let distinct = match repeats_rows && (has_aggregates || query.ungrouped) {
        true => Some(row_key(model, fact.cube, group_behind_to_many)?),
        false => None,
    };
    if let (true, Some(key)) = (query.ungrouped, group_behind_to_many) {
        return Err(QueryError::Ungrouped { field: key.clone() });
    }
    if distinct.is_some() {
        // The key that distinguishes rows is read as columns.
        for index in &model.cube(fact.cube).primary_key {
            let id = DimensionId { cube: fact.cube, index: *index };
            tree.reach_dimension(model, 0, id, Asker { value, target: value })?;
        }
    }
    Ok(Fact {
        tree,
        period: fact.period,
        groups,
        row_filters,
        segments,
        semi_joins,
        distinct,
        is_selected: true,
        stored: None,
        sample: None,
    })
}

/// Returns the dimensions that a value of a row reads.
fn dimensions_of(value: &TypedRowValue) -> Vec<DimensionId> {
    let mut ids = Vec::new();
    value.for_each_dimension(&mut |id, _| ids.push(id));
    ids
}

/// Returns whether a range restricts the rows by this time, which leaves out rows without a time.
fn has_range_along(query: &ResolvedQuery, by: GroupBy) -> bool {
    query.ranges.iter().any(|range| is_along(range, by))
}

fn is_along(range: &RangeFilter, by: GroupBy) -> bool {
    match by {
        GroupBy::Dimension(id) => id == range.dimension,
        GroupBy::MetricTime => range.fact.is_some(),
    }
}

/// Returns the predicate of a range for a fact: over the fact's own period, with or without the rows before it.
fn range_predicate(query: &ResolvedQuery, range: &RangeFilter, period: Period) -> Predicate {
    let test = match &range.previous {
        Some(previous) if period.is_previous => previous,
        _ => &range.test,
    };
    let is_on_axis = match &query.axis {
        Some(axis) => axis.groups.iter().any(|index| is_along(range, query.groups[*index].by)),
        // Totals have no axis. The totals of a running total need the rows before the range.
        None => true,
    };
    let test = match test {
        test if is_on_axis
            && let Some(window) = period.window
            && let Some(axis) = &query.axis =>
        {
            let windows = Windows { axis, groups: &query.groups, timezone: &query.timezone };
            windows.widened(test, window)
        }
        Test::Range { high, .. } if period.has_history && is_on_axis => match high {
            Some(high) => Test::Range { low: None, high: Some(high.clone()) },
            None => Test::Not(Box::new(Test::IsNull)),
        },
        test => test.clone(),
    };
    Predicate::Test { operand: Operand::Dimension { id: range.dimension, granularity: None }, test }
}

/// Returns the key that identifies a cube's rows after joins have repeated them.
fn row_key(model: &Model, cube: CubeId, group_behind: Option<&Arc<str>>) -> Result<RowKey, QueryError> {
    let definition = model.cube(cube);
    match (&definition.primary_key[..], group_behind) {
        ([], Some(member)) => {
            Err(QueryError::NeedsPrimaryKey { cube: definition.name.clone(), member: member.clone() })
        }
        ([], None) => Ok(RowKey::RowNumber),
        (keys, _) => Ok(RowKey::PrimaryKey(keys.iter().map(|index| DimensionId { cube, index: *index }).collect())),
    }
}
