//! Evaluates the groups of one cube: which rows pass the filters, and in which groups they count.
//!
//! In: a cube, group-by columns and filters. Out: for each group, its rows with the inputs of all aggregates.

use std::collections::{BTreeMap, BTreeSet};

use terrane_compiler::query::Filter;

use super::calc::{Calculation, Wanted};
use super::filters::{self, RowFilter};
use super::names::Named;
use super::periods::{self, Period};
use super::rows::{Tree, Tuple};
use super::{Code, Evaluation, Group, labels, masking};
use crate::value::Value;
use crate::world::{Expr, Rows as _};

pub(crate) struct Grouped {
    pub(crate) groups: BTreeMap<Vec<Value>, Vec<Measured>>,
}

/// The groups of each cube, by the cube's name.
pub(crate) type Facts = BTreeMap<String, Grouped>;

/// One row, and the input of each aggregate; `None` if the aggregate does not use the row.
#[derive(Debug, Clone)]
pub(crate) struct Measured {
    /// The position of the row in its table.
    pub(crate) row: usize,
    pub(crate) inputs: Vec<Option<Value>>,
}

/// Returns the cube that owns one of the dimensions and reaches the cubes of all others by to-one
/// joins.
pub(crate) fn owner_of_dimensions(evaluation: &Evaluation<'_>, groups: &[Group]) -> Option<String> {
    if let Some(cube) = &evaluation.query.cube {
        return Some(cube.to_string());
    }
    let has_metric_time = |filter: &Filter| filters::mentions(filter, &|named| named == Named::MetricTime, evaluation);
    if groups.iter().any(|group| group.is_metric_time) || evaluation.query.filters.iter().any(has_metric_time) {
        evaluation.leave_open("a time of no measure");
        return None;
    }
    let reaches = |owner: &str| groups.iter().all(|group| evaluation.paths.is_to_one(owner, &group.cube));
    let mut owners: Vec<&str> = Vec::new();
    for group in groups.iter().filter(|group| reaches(&group.cube)) {
        if !owners.contains(&group.cube.as_str()) {
            owners.push(&group.cube);
        }
    }
    match owners.as_slice() {
        [] => {
            evaluation.refuse(Code::NoJoinPath);
            None
        }
        [owner] => Some((*owner).to_owned()),
        _ => {
            evaluation.leave_open("several cubes could own the dimensions");
            None
        }
    }
}

/// The inputs of rolling aggregates, by aggregate and group.
#[derive(Default)]
pub(crate) struct Windows {
    pub(crate) inputs: BTreeMap<usize, BTreeMap<Vec<Value>, Vec<Value>>>,
    /// The indexes of the group-by columns of the axis.
    pub(crate) columns: Vec<usize>,
}

impl Windows {
    /// Returns the values in the window of a group; `None` for a group without a time.
    pub(crate) fn inputs(&self, index: usize, key: &[Value]) -> Option<Vec<Value>> {
        if self.columns.iter().any(|column| key[*column].is_null()) {
            return None;
        }
        Some(self.inputs.get(&index).and_then(|groups| groups.get(key)).cloned().unwrap_or_default())
    }

    /// Returns the groups whose window contains rows.
    pub(crate) fn keys(&self, index: usize) -> impl Iterator<Item = &Vec<Value>> {
        self.inputs.get(&index).into_iter().flat_map(BTreeMap::keys)
    }
}

/// A row that passes the filters, with the groups in which it counts.
pub(crate) struct Placed {
    /// The keys of the groups. For rolling windows, a key has only the columns outside the axis, and the second value
    /// is the local time on the axis.
    pub(crate) places: BTreeSet<(Vec<Value>, Option<i64>)>,
    pub(crate) measured: Measured,
}

pub(crate) fn grouped<'w>(
    evaluation: &Evaluation<'w>,
    fact: &str,
    groups: &[Group],
    filters: &[RowFilter],
    period: Period<'_>,
    calculation: &Calculation<'_, 'w>,
) -> Grouped {
    let mut found: BTreeMap<Vec<Value>, Vec<Measured>> = BTreeMap::new();
    for row in placed(evaluation, fact, groups, filters, period, calculation) {
        for (key, _) in row.places {
            found.entry(key).or_default().push(row.measured.clone());
        }
    }
    Grouped { groups: found }
}

/// Returns the rows of a cube that pass the filters, each with its groups.
pub(crate) fn placed<'w>(
    evaluation: &Evaluation<'w>,
    fact: &str,
    groups: &[Group],
    filters: &[RowFilter],
    period: Period<'_>,
    calculation: &Calculation<'_, 'w>,
) -> Vec<Placed> {
    let nothing = Vec::new();
    let Some(mut tree) = Tree::new(evaluation, fact) else { return nothing };
    let groups = &own_groups(evaluation, fact, groups);
    let filters = &own_filters(evaluation, fact, filters, period);
    let own: Vec<&Wanted<'w>> = calculation.wanted.iter().filter(|wanted| wanted.cube == fact).collect();
    let segments = segments(evaluation);
    reach_all(&mut tree, groups, filters, &segments, &own);
    for (cube, _) in own.iter().flat_map(|wanted| &wanted.filters).flat_map(RowFilter::dimensions) {
        // The semantics do not define which of the joined rows the metric's filter tests.
        if tree.is_behind_to_many(&cube) {
            evaluation.leave_open("a metric's filter behind a to-many hop");
        }
    }
    let is_multiplied = groups.iter().any(|group| tree.is_behind_to_many(&group.cube));
    if is_multiplied && !tree.fact().dimensions.iter().any(|dimension| dimension.primary_key) {
        evaluation.refuse(Code::InvalidQuery);
    }
    // A total has no groups, so the column may be missing.
    let is_behind = |column: usize| groups.get(column).is_some_and(|group| tree.is_behind_to_many(&group.cube));
    if period.is_history(is_behind) {
        evaluation.leave_open("history along a time behind a to-many hop");
    }
    if !evaluation.problems.borrow().is_empty() {
        return nothing;
    }
    let mut found = Vec::new();
    for row in 0..tree.fact().rows.len() {
        let mut places = BTreeSet::new();
        let tuples = tree.tuples(row);
        for tuple in &tuples {
            // If no row joins, a condition is evaluated on a row of nulls.
            let in_segments = segments.iter().all(|(cube, sql)| sql.passes(&*tree.view(tuple).of(Some(cube))));
            if in_segments && filters.iter().all(|filter| filter.passes(evaluation, &tree, tuple)) {
                places.insert(place(evaluation, &tree, tuple, groups, period));
            }
        }
        if places.is_empty() {
            continue;
        }
        // A measure reads columns through to-one hops only, so its input is the same in every tuple.
        let inputs = inputs(evaluation, &tree, &tuples[0], fact, calculation);
        found.push(Placed { places, measured: Measured { row, inputs } });
    }
    found
}

fn place(
    evaluation: &Evaluation<'_>,
    tree: &Tree<'_, '_>,
    tuple: &Tuple,
    groups: &[Group],
    period: Period<'_>,
) -> (Vec<Value>, Option<i64>) {
    let Period::Windows(along) = period else {
        return (groups.iter().map(|group| group_value(evaluation, tree, tuple, group)).collect(), None);
    };
    let columns = along.columns();
    let others = groups.iter().enumerate().filter(|(index, _)| !columns.contains(index));
    let others = others.map(|(_, group)| group_value(evaluation, tree, tuple, group)).collect();
    let axis = &groups[columns[0]];
    // The time of a masked dimension is the start of its visible bucket.
    if evaluation.world.mask(&axis.cube, &axis.dimension).is_some() {
        return (others, group_value(evaluation, tree, tuple, axis).micros());
    }
    let time = dimension_value(evaluation, tree, tuple, &axis.cube, &axis.dimension);
    (others, labels::local(&time, &evaluation.zone))
}

/// Returns one output row for each row of a cube that passes the filters, in the order of the primary key.
pub(crate) fn listed(
    evaluation: &Evaluation<'_>,
    fact: &str,
    groups: &[Group],
    filters: &[RowFilter],
) -> Option<Vec<Vec<Value>>> {
    let mut tree = Tree::new(evaluation, fact)?;
    let groups = &own_groups(evaluation, fact, groups);
    let filters = &own_filters(evaluation, fact, filters, Period::Now);
    let segments = segments(evaluation);
    reach_all(&mut tree, groups, filters, &segments, &[]);
    if groups.iter().any(|group| tree.is_behind_to_many(&group.cube)) {
        evaluation.leave_open("rows ungrouped, behind a to-many hop");
        return None;
    }
    let key = tree.fact().dimensions.iter().find(|dimension| dimension.primary_key);
    let Some(key) = key else {
        evaluation.leave_open("rows without a key, ungrouped");
        return None;
    };
    if evaluation.world.mask(fact, &key.name).is_some() {
        evaluation.leave_open("rows ungrouped, in the order of a masked key");
        return None;
    }
    if !evaluation.problems.borrow().is_empty() {
        return None;
    }
    let mut found: Vec<(Value, Vec<Value>)> = Vec::new();
    for row in 0..tree.fact().rows.len() {
        let tuples = tree.tuples(row);
        let passes = |tuple: &&Tuple| {
            segments.iter().all(|(cube, sql)| sql.passes(&*tree.view(tuple).of(Some(cube))))
                && filters.iter().all(|filter| filter.passes(evaluation, &tree, tuple))
        };
        if let Some(tuple) = tuples.iter().find(passes) {
            let cells = groups.iter().map(|group| group_value(evaluation, &tree, tuple, group)).collect();
            found.push((key.sql.eval(&tree.view(tuple)), cells));
        }
    }
    found.sort();
    Some(found.into_iter().map(|(_, cells)| cells).collect())
}

fn reach_all<'w>(
    tree: &mut Tree<'_, 'w>,
    groups: &[Group],
    filters: &[RowFilter],
    segments: &[(String, &'w Expr)],
    own: &[&Wanted<'w>],
) {
    groups.iter().for_each(|group| tree.reach_dimension(&group.cube, &group.dimension));
    for (cube, name) in filters.iter().flat_map(RowFilter::dimensions) {
        tree.reach_dimension(&cube, &name);
    }
    segments.iter().for_each(|(cube, sql)| tree.reach_segment(cube, sql));
    for wanted in own {
        for sql in wanted.aggregate.argument.iter().chain(&wanted.aggregate.filters) {
            tree.reach_expression(0, sql);
        }
        for (cube, name) in wanted.filters.iter().flat_map(RowFilter::dimensions) {
            tree.reach_dimension(&cube, &name);
        }
    }
}

fn segments<'w>(evaluation: &Evaluation<'w>) -> Vec<(String, &'w Expr)> {
    let mut found = Vec::new();
    for member in &evaluation.query.segments {
        if let Some(Named::Segment { cube, name }) = evaluation.named(member) {
            let segment = evaluation.world.behind(&cube).and_then(|of| of.segment(&name));
            found.extend(segment.map(|segment| (cube, &segment.sql)));
        }
    }
    found
}

/// Returns the groups of a fact. `metric_time` becomes the primary time of the fact.
fn own_groups(evaluation: &Evaluation<'_>, fact: &str, groups: &[Group]) -> Vec<Group> {
    groups.iter().filter_map(|group| group.of_fact(evaluation, fact)).collect()
}

fn own_filters(evaluation: &Evaluation<'_>, fact: &str, filters: &[RowFilter], period: Period<'_>) -> Vec<RowFilter> {
    let ranges = periods::filters(evaluation, fact, period);
    filters.iter().map(|filter| filter.of_fact(evaluation, fact)).chain(ranges).collect()
}

pub(crate) fn group_value(evaluation: &Evaluation<'_>, tree: &Tree<'_, '_>, tuple: &Tuple, group: &Group) -> Value {
    let value = dimension_value(evaluation, tree, tuple, &group.cube, &group.dimension);
    let value = match evaluation.world.mask(&group.cube, &group.dimension) {
        Some(mask) if tree.view(tuple).row(Some(&group.cube)).is_some() => masking::masked(mask, value),
        _ => value,
    };
    match group.granularity {
        Some(granularity) => labels::bucket(&value, granularity, &evaluation.zone),
        None => value,
    }
}

/// Returns the value of a dimension. It is null if no row joins, even if the SQL replaces null.
pub(crate) fn dimension_value(
    evaluation: &Evaluation<'_>,
    tree: &Tree<'_, '_>,
    tuple: &Tuple,
    cube: &str,
    name: &str,
) -> Value {
    let view = tree.view(tuple);
    if view.row(Some(cube)).is_none() {
        return Value::Null;
    }
    evaluation.dimension(cube, name).map_or(Value::Null, |dimension| dimension.sql.eval(&*view.of(Some(cube))))
}

fn inputs(
    evaluation: &Evaluation<'_>,
    tree: &Tree<'_, '_>,
    tuple: &Tuple,
    fact: &str,
    calculation: &Calculation<'_, '_>,
) -> Vec<Option<Value>> {
    let input = |wanted: &Wanted<'_>| {
        if wanted.cube != fact {
            return None;
        }
        let view = tree.view(tuple);
        let is_measured = wanted.aggregate.filters.iter().all(|filter| filter.passes(&view))
            && wanted.filters.iter().all(|filter| filter.passes(evaluation, tree, tuple));
        // An aggregate without an argument counts rows.
        let value = || wanted.aggregate.argument.as_ref().map_or(Value::Bool(true), |argument| argument.eval(&view));
        is_measured.then(value)
    };
    calculation.wanted.iter().map(input).collect()
}
