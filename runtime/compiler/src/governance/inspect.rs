//! The facts of a query that are sent to governance hooks.
//!
//! In: a query and its caller. Out: an [`Inspection`] with the [`QueryFacts`], which turns the hooks' obligations into
//! an [`Authorized`]. The plan is built and secured as for an answer and then dropped: a query that the project's own
//! policies refuse is refused here, before any hook is called.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use super::Obligations;
use super::check::{Checked, ObligationFault, check, merged};
use super::condition::type_of;
use super::facts::{Condition, FilterFact, MemberUse, QueryFacts, Usage};
use crate::access::Authorized;
use crate::environment::Environment;
use crate::model::{
    Aggregate, AggregateFunction, ColumnName, Cube, CubeId, Dimension, DimensionId, DimensionType, Governed, MeasureId,
    MeasureKind, MetricId, Model, SegmentId, Snippet, SqlPart,
};
use crate::plan::{Fact, JoinTree, LogicalPlan, RowGuard, SecuredPlan, plan, secure};
use crate::query::{Operand, OrderTarget, Predicate, QueryError, ResolvedQuery, SemanticQuery, Test, ValueId};
use crate::resolve::resolve;
use crate::security::SecurityContext;
use crate::types::LogicalType;

/// A query that was inspected, before any hook is called.
#[derive(Debug)]
pub struct Inspection<'m> {
    pub(super) model: &'m Model,
    caller: &'m SecurityContext,
    facts: QueryFacts,
    /// The cubes in `facts`.
    read: HashSet<CubeId>,
    /// The cubes that the query reads under their own names. The remaining cubes in `read` are there because they use
    /// the same tables as cubes in `named`.
    named: HashSet<CubeId>,
}

/// Collects the facts of a query for governance hooks.
///
/// # Errors
/// Returns the same errors as `compile` without hooks.
pub fn inspect<'m>(
    model: &'m Model,
    query: &SemanticQuery,
    caller: &'m SecurityContext,
    environment: &Environment,
) -> Result<Inspection<'m>, QueryError> {
    // No SQL is lowered from this authorization, which lacks the obligations of hooks.
    let open = Authorized::without_hooks(model, caller);
    let access = open.access();
    let resolved = resolve(&access, query, environment)?;
    let secured = secure(plan(model, resolved.clone())?, &access)?;
    let mut found = MemberUses::of(model);
    found.query(&resolved, secured.plan());
    found.joins(&secured);
    let (named, read) = found.read(&secured);
    let names: BTreeSet<Arc<str>> = read.iter().map(|id| model.cube(*id).name.clone()).collect();
    let facts = QueryFacts {
        cubes: names.into_iter().collect(),
        members: found.uses,
        filters: filters(model, &resolved),
        limit: resolved.limit,
        without_time_bound: without_time_bound(secured.plan()),
        without_partition_filter: without_partition_filter(secured.plan()),
    };
    Ok(Inspection { model, caller, facts, read, named })
}

impl<'m> Inspection<'m> {
    pub fn facts(&self) -> &QueryFacts {
        &self.facts
    }

    /// Checks one hook's obligations against the model and the query.
    ///
    /// # Errors
    /// Returns the fault of the hook.
    pub fn check(&self, obligations: &Obligations) -> Result<Checked, ObligationFault> {
        check(self, obligations)
    }

    /// Authorizes the query under the merged obligations of all hooks. Each entry is a hook's id and its obligations.
    pub fn authorize(self, obligations: Vec<(Arc<str>, Checked)>) -> Authorized<'m> {
        Authorized::under(self.model, self.caller, merged(obligations))
    }

    /// Returns whether the query reads the cube itself, not only its table by a different name.
    pub(super) fn names(&self, cube: CubeId) -> bool {
        self.named.contains(&cube)
    }

    /// Returns a cube that the query reads, by the cube's own name.
    pub(super) fn cube(&self, name: &Arc<str>) -> Result<&'m Cube, ObligationFault> {
        match self.model.cube_named(name) {
            Some(cube) if cube.alias_of.is_none() && self.read.contains(&cube.id) => Ok(cube),
            Some(cube) if cube.alias_of.is_none() => Err(ObligationFault::NotRead { cube: name.clone() }),
            _ => Err(ObligationFault::UnknownCube { cube: name.clone() }),
        }
    }
}

/// The members that a query uses.
struct MemberUses<'m> {
    model: &'m Model,
    uses: Vec<MemberUse>,
    seen: HashSet<(CubeId, Arc<str>, Usage)>,
    /// The metrics and measures whose parts were collected, by usage.
    values: HashSet<(ValueId, Usage)>,
    /// True if an author's SQL contains a subquery, which may read anything.
    has_subquery: bool,
}

impl<'m> MemberUses<'m> {
    fn of(model: &'m Model) -> Self {
        MemberUses { model, uses: Vec::new(), seen: HashSet::new(), values: HashSet::new(), has_subquery: false }
    }

    fn query(&mut self, query: &ResolvedQuery, plan: &LogicalPlan<'m>) {
        let groups = |index: usize| plan.facts.iter().map(move |fact| fact.groups[index]);
        for index in 0..plan.groups.len() {
            groups(index).for_each(|id| self.dimension(id, Usage::Selected));
        }
        query.values.iter().for_each(|value| self.value(value.value, Usage::Selected));
        for computed in &query.computed {
            computed.value.for_each_dimension(&mut |id, is_condition| {
                self.dimension(id, Usage::Selected);
                if is_condition {
                    self.dimension(id, Usage::Filtered);
                }
            });
        }
        let on_rows = plan.facts.iter().flat_map(|fact| {
            let inside = fact.semi_joins.iter().flat_map(|semi_join| &semi_join.filters);
            fact.row_filters.iter().chain(inside)
        });
        let of_metrics = plan.metric_filters.iter().flat_map(|(_, filters)| filters);
        for predicate in on_rows.chain(of_metrics).chain(&query.group_filters) {
            predicate.for_each_operand(&mut |operand| match *operand {
                Operand::Value(value) => self.value(value, Usage::Filtered),
                Operand::Dimension { id, .. } => self.dimension(id, Usage::Filtered),
                Operand::MetricTime { .. } => {
                    let of_groups = (0..plan.groups.len()).filter(|index| operand.is_group(&plan.groups[*index]));
                    of_groups.flat_map(groups).for_each(|id| self.dimension(id, Usage::Filtered));
                }
            });
        }
        query.segments.iter().for_each(|id| self.segment(*id));
        for key in query.order.iter().filter(|key| key.is_explicit) {
            match key.target {
                OrderTarget::Group(index) => groups(index).for_each(|id| self.dimension(id, Usage::Ordered)),
                OrderTarget::Selected(index) => self.value(query.values[index].value, Usage::Ordered),
                OrderTarget::Value(value) => self.value(value, Usage::Ordered),
            }
        }
    }

    /// Adds the members in conditions of joins and of the project's policies.
    fn joins(&mut self, secured: &SecuredPlan<'m>) {
        for tree in trees(secured) {
            tree.joins.iter().for_each(|planned| self.condition(&planned.join.on));
        }
        for (_, guard) in secured.protection().guards() {
            if let RowGuard::Filters { all, .. } = guard {
                all.iter().for_each(|sql| self.condition(sql));
            }
        }
    }

    /// Adds the dimensions in a snippet, and the dimensions of its columns.
    fn condition(&mut self, sql: &'m Snippet) {
        self.snippet(sql, Usage::Joined);
        let model = self.model;
        let mut over_columns = Vec::new();
        sql.for_each(&mut |part| {
            if let SqlPart::Column { cube, .. } = part {
                let dimensions = (0u32..).zip(&model.cube(*cube).dimensions);
                let same = dimensions.filter(|(_, dimension)| matches!(&dimension.sql.parts[..], [own] if own == part));
                over_columns.extend(same.map(|(index, _)| DimensionId { cube: *cube, index }));
            }
        });
        over_columns.into_iter().for_each(|id| self.dimension(id, Usage::Joined));
    }

    /// Returns two sets of cubes, in which aliases are replaced by their cubes. The first set contains the cubes that
    /// the query reads. The second set also contains all cubes over the same tables.
    fn read(&self, secured: &SecuredPlan<'m>) -> (HashSet<CubeId>, HashSet<CubeId>) {
        let model = self.model;
        let original = |id: CubeId| model.cube(id).alias_of.unwrap_or(id);
        if self.has_subquery {
            let all: HashSet<CubeId> = model.cubes.iter().map(|cube| original(cube.id)).collect();
            return (all.clone(), all);
        }
        let named: HashSet<CubeId> = trees(secured).flat_map(JoinTree::cubes).map(original).collect();
        let tables = named.iter().flat_map(|id| model.shared_rows(*id).protected.iter().copied());
        let read = named.iter().copied().chain(tables).collect();
        (named, read)
    }

    /// Adds the members of other cubes over the same column of the table, because a hook may know the column only by
    /// the name of such a member.
    fn twins(&mut self, cube: CubeId, column: &ColumnName, usage: Usage) {
        let model = self.model;
        let own = model.cube(cube).alias_of.unwrap_or(cube);
        if !model.is_one_table(own) {
            return;
        }
        for other in model.shared_rows(own).protected.iter().filter(|id| model.is_one_table(**id)) {
            for dimension in &model.cube(*other).dimensions {
                let is_same = |part: &SqlPart| matches!(part, SqlPart::Column { name, .. } if name.text.eq_ignore_ascii_case(&column.text));
                if dimension.sql.parts.iter().any(is_same) {
                    let kind = (type_of(dimension), false);
                    self.add(*other, &dimension.name, usage, kind, &dimension.presentation.governed);
                }
            }
        }
    }

    /// Adds the use of a member. Returns false if it is already recorded.
    fn add(
        &mut self,
        cube: CubeId,
        name: &Arc<str>,
        usage: Usage,
        kind: (LogicalType, bool),
        governed: &Governed,
    ) -> bool {
        let cube = self.model.cube(cube);
        let cube = cube.alias_of.map_or(cube, |original| self.model.cube(original));
        if !self.seen.insert((cube.id, name.clone(), usage)) {
            return false;
        }
        let (ty, is_measure) = kind;
        self.uses.push(MemberUse {
            cube: cube.name.clone(),
            member: name.clone(),
            ty,
            is_measure,
            usage,
            tags: governed.tags.clone(),
            pii: governed.pii,
            classification: governed.classification.clone(),
        });
        true
    }

    fn dimension(&mut self, id: DimensionId, usage: Usage) {
        let dimension = self.model.dimension(id);
        let governed = &dimension.presentation.governed;
        if self.add(id.cube, &dimension.name, usage, (type_of(dimension), false), governed) {
            self.snippet(&dimension.sql, usage);
        }
    }

    fn segment(&mut self, id: SegmentId) {
        let segment = self.model.segment(id);
        let governed = &segment.presentation.governed;
        if self.add(id.cube, &segment.name, Usage::Filtered, (LogicalType::Boolean, false), governed) {
            self.snippet(&segment.sql, Usage::Filtered);
        }
    }

    fn value(&mut self, value: ValueId, usage: Usage) {
        if !self.values.insert((value, usage)) {
            return;
        }
        match value {
            ValueId::Metric(id) => self.metric(id, usage),
            ValueId::Measure(id) => self.measure(id, usage),
        }
    }

    fn metric(&mut self, id: MetricId, usage: Usage) {
        self.snippet(&self.model.metric(id).body, usage);
    }

    fn measure(&mut self, id: MeasureId, usage: Usage) {
        let measure = self.model.measure(id);
        self.add(id.cube, &measure.name, usage, (measure_type(&measure.kind), true), &measure.presentation.governed);
        match &measure.kind {
            MeasureKind::Number(snippet) => self.snippet(snippet, usage),
            MeasureKind::Aggregate(aggregate)
            | MeasureKind::RunningTotal { aggregate, .. }
            | MeasureKind::Rolling { aggregate, .. } => {
                self.aggregate(aggregate, usage);
            }
        }
    }

    fn aggregate(&mut self, aggregate: &'m Aggregate, usage: Usage) {
        aggregate.argument.iter().for_each(|sql| self.snippet(sql, usage));
        aggregate.filters.iter().for_each(|sql| self.snippet(sql, Usage::Filtered));
    }

    fn snippet(&mut self, sql: &'m Snippet, usage: Usage) {
        let mut parts = Vec::new();
        sql.for_each(&mut |part| parts.push(part));
        self.has_subquery |= sql.has_query;
        for part in parts {
            match part {
                SqlPart::Dimension(id) => self.dimension(*id, usage),
                SqlPart::Measure(id) => self.value(ValueId::Measure(*id), usage),
                SqlPart::Metric(id) => self.value(ValueId::Metric(*id), usage),
                SqlPart::Aggregate(aggregate) => self.aggregate(aggregate, usage),
                SqlPart::Divide(left, right) => self.has_subquery |= left.has_query || right.has_query,
                SqlPart::Column { cube, name } => self.twins(*cube, name, usage),
                SqlPart::Text(_) | SqlPart::User(_) => {}
            }
        }
    }
}

/// Returns every tree of joins in the SQL.
fn trees<'s, 'm>(secured: &'s SecuredPlan<'m>) -> impl Iterator<Item = &'s JoinTree<'m>> {
    let of_facts =
        secured.plan().facts.iter().flat_map(|fact| {
            std::iter::once(&fact.tree).chain(fact.semi_joins.iter().map(|semi_join| &semi_join.tree))
        });
    let of_guards = secured.protection().guards().filter_map(|(_, guard)| match guard {
        RowGuard::Filters { tree, .. } => Some(tree),
        RowGuard::Never => None,
    });
    of_facts.chain(of_guards)
}

fn measure_type(kind: &MeasureKind) -> LogicalType {
    let (aggregate, ty) = match kind {
        MeasureKind::Number(_) => return LogicalType::Unknown,
        MeasureKind::Aggregate(aggregate)
        | MeasureKind::RunningTotal { aggregate, .. }
        | MeasureKind::Rolling { aggregate, .. } => (aggregate, aggregate.argument_type),
    };
    match aggregate.function {
        AggregateFunction::Count | AggregateFunction::CountDistinct | AggregateFunction::CountDistinctApprox => {
            LogicalType::Integer
        }
        AggregateFunction::Avg
        | AggregateFunction::Percentile(..)
        | AggregateFunction::StdDev(_)
        | AggregateFunction::Variance(_) => LogicalType::Float,
        AggregateFunction::Sum if ty == LogicalType::Integer => LogicalType::Decimal,
        AggregateFunction::Sum | AggregateFunction::Min | AggregateFunction::Max => ty,
    }
}

/// Returns the query's own conditions on rows.
fn filters(model: &Model, query: &ResolvedQuery) -> Vec<Condition> {
    let of_filters = query.row_filters.iter().map(|filter| condition(model, &filter.predicate));
    let of_ranges = query.ranges.iter().map(|range| {
        // The range of a comparison (`compare_range`) is read too.
        let tests = std::iter::once(&range.test).chain(&range.previous);
        let mut tests: Vec<_> = tests.map(|test| Condition::Test(fact(model, range.dimension, test))).collect();
        if tests.len() == 1 { tests.remove(0) } else { Condition::Any(tests) }
    });
    let mut all: Vec<Condition> = Vec::new();
    for condition in of_filters.chain(of_ranges) {
        // `metric_time` means the same condition in cubes that share their time.
        if !all.contains(&condition) {
            all.push(condition);
        }
    }
    all
}

fn condition(model: &Model, predicate: &Predicate) -> Condition {
    let all = |inner: &[Predicate]| inner.iter().map(|predicate| condition(model, predicate)).collect();
    match predicate {
        Predicate::And(inner) => Condition::All(all(inner)),
        Predicate::Or(inner) => Condition::Any(all(inner)),
        Predicate::Not(inner) => Condition::Not(Box::new(condition(model, inner))),
        Predicate::Test { operand: Operand::Dimension { id, .. }, test } => Condition::Test(fact(model, *id, test)),
        // `resolve` keeps values and groups out of conditions on rows.
        Predicate::Test { .. } => Condition::All(Vec::new()),
    }
}

fn fact(model: &Model, id: DimensionId, test: &Test) -> FilterFact {
    let cube = model.cube(id.cube);
    let cube = cube.alias_of.map_or(cube, |original| model.cube(original));
    let dimension = model.dimension(id);
    let member = format!("{}.{}", cube.name, dimension.name).into();
    FilterFact { member, ty: type_of(dimension), test: test.clone() }
}

/// Returns the cubes whose facts have no lower bound on time.
fn without_time_bound(plan: &LogicalPlan<'_>) -> Vec<Arc<str>> {
    let model = plan.model;
    let has_start = |fact: &Fact<'_>| fact.row_filters.iter().any(|filter| starts(model, fact.tree.cube, filter));
    let open = plan.facts.iter().filter(|fact| !has_start(fact));
    let names: BTreeSet<Arc<str>> = open.map(|fact| model.cube(fact.tree.cube).name.clone()).collect();
    names.into_iter().collect()
}

/// Returns the partition dimensions of each cube whose fact filters none of its partition dimensions.
fn without_partition_filter(plan: &LogicalPlan<'_>) -> Vec<Arc<str>> {
    let model = plan.model;
    let is_partition = |dimension: &Dimension| dimension.is_partition;
    let is_filtered = |fact: &Fact<'_>| {
        fact.row_filters.iter().any(|filter| is_bounded(model, fact.tree.cube, filter, &is_partition))
    };
    let open = plan.facts.iter().filter(|fact| !is_filtered(fact)).map(|fact| model.cube(fact.tree.cube));
    let names: BTreeSet<Arc<str>> = open
        .flat_map(|cube| {
            let partitions = cube.dimensions.iter().filter(|dimension| is_partition(dimension));
            partitions.map(|dimension| format!("{}.{}", cube.name, dimension.name).into())
        })
        .collect();
    names.into_iter().collect()
}

/// Returns whether a condition sets a lower bound on a time dimension of the cube.
fn starts(model: &Model, cube: CubeId, predicate: &Predicate) -> bool {
    is_bounded(model, cube, predicate, &|dimension| dimension.ty == DimensionType::Time)
}

/// Returns whether a condition restricts a dimension of the cube to listed values or by a lower bound. `is_wanted`
/// selects the dimensions.
fn is_bounded(model: &Model, cube: CubeId, predicate: &Predicate, is_wanted: &impl Fn(&Dimension) -> bool) -> bool {
    match predicate {
        Predicate::And(all) => all.iter().any(|inner| is_bounded(model, cube, inner, is_wanted)),
        Predicate::Or(all) => !all.is_empty() && all.iter().all(|inner| is_bounded(model, cube, inner, is_wanted)),
        Predicate::Test { operand: Operand::Dimension { id, .. }, test } => {
            id.cube == cube && is_wanted(model.dimension(*id)) && has_start(test)
        }
        Predicate::Test { .. } | Predicate::Not(_) => false,
    }
}

fn has_start(test: &Test) -> bool {
    match test {
        Test::Never | Test::Equals(_) | Test::Range { low: Some(_), .. } => true,
        Test::InList { or_null, .. } => !or_null,
        Test::AnyOf(tests) => tests.iter().all(has_start),
        Test::IsNull | Test::NoRow | Test::Match { .. } | Test::Range { low: None, .. } | Test::Not(_) => false,
    }
}
