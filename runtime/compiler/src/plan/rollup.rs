//! The plan of a statement that builds, checks or watches a pre-aggregation.
//!
//! In: a rollup and a range of its time. Out: a [`LogicalPlan`] of one fact: the cube's rows within the range that pass
//! the rollup's own filters. Not here: policies, which apply when the stored rows are read.

use super::join_path::Asker;
use super::{ArgumentForm, Fact, JoinTree, LogicalPlan, Period, PlannedAggregate};
use crate::model::{Aggregate, Cube, Model, Rollup, Snippet};
use crate::query::{Bound, Group, GroupBy, Operand, Predicate, QueryError, Test};
use crate::types::{Granularity, Value};

/// The rows of a statement about a rollup, and their grouping.
pub(crate) struct RollupRows<'m> {
    pub(crate) cube: &'m Cube,
    pub(crate) rollup: &'m Rollup,
    /// The first value of the time, and the first value after the range, in the type of the column. `None` selects all
    /// rows.
    pub(crate) stretch: Option<[Value; 2]>,
    /// The granularity of the groups by time; `None` without such groups.
    pub(crate) step: Option<Granularity>,
    /// True if the rows are also grouped by the dimensions and segments.
    pub(crate) has_dimensions: bool,
    pub(crate) aggregates: &'m [Aggregate],
}

/// Plans the statement over these rows.
///
/// # Errors
/// A cube cannot be reached. Loading a project leaves out rollups with such a cube.
pub(crate) fn plan_rollup<'m>(model: &'m Model, rows: &RollupRows<'m>) -> Result<LogicalPlan<'m>, QueryError> {
    let RollupRows { cube, rollup, .. } = rows;
    let asker = Asker { value: &rollup.name, target: &rollup.name };
    let mut tree = JoinTree::new(cube.id);
    let mut groups = Vec::new();
    let mut ids = Vec::new();
    let mut group = |id, granularity| {
        groups.push(Group { key: rollup.name.clone(), by: GroupBy::Dimension(id), granularity });
        ids.push(id);
    };
    if let (Some(time), Some(step)) = (&rollup.time, rows.step) {
        group(time.dimension, Some(step));
    }
    if rows.has_dimensions {
        rollup.dimensions.iter().for_each(|id| group(*id, None));
    }
    for id in ids.iter().chain(rollup.time.iter().map(|time| &time.dimension)) {
        tree.reach_dimension(model, 0, *id, asker)?;
    }
    let mut reach = |sql: &'m Snippet| tree.reach_snippet(model, 0, sql, asker);
    rows.aggregates.iter().flat_map(|own| own.argument.iter().chain(&own.filters)).try_for_each(&mut reach)?;
    rollup.filters.iter().try_for_each(&mut reach)?;
    if rows.has_dimensions {
        for id in &rollup.segments {
            let node = tree.reach(model, 0, id.cube, asker)?;
            tree.reach_snippet(model, node, &model.segment(*id).sql, asker)?;
        }
    }
    let stretch = rollup.time.as_ref().zip(rows.stretch.clone());
    let row_filters = stretch.map(|(time, [start, end])| Predicate::Test {
        operand: Operand::Dimension { id: time.dimension, granularity: None },
        test: Test::Range {
            low: Some(Bound { value: start, inclusive: true }),
            high: Some(Bound { value: end, inclusive: false }),
        },
    });
    let planned =
        |aggregate| PlannedAggregate { fact: 0, aggregate, metrics: Vec::new(), shape: ArgumentForm::default() };
    Ok(LogicalPlan {
        model,
        facts: vec![Fact {
            tree,
            period: Period::default(),
            groups: ids,
            row_filters: row_filters.into_iter().collect(),
            segments: rollup.filters.iter().map(|sql| (0, sql)).collect(),
            semi_joins: Vec::new(),
            distinct: None,
            is_selected: true,
            stored: None,
            sample: None,
        }],
        groups,
        aggregates: rows.aggregates.iter().map(planned).collect(),
        running: Vec::new(),
        values: Vec::new(),
        group_filters: Vec::new(),
        metric_filters: Vec::new(),
        order: Vec::new(),
        axis: None,
        fill_gaps: false,
        shifts: Vec::new(),
        ungrouped: false,
        limit: u64::MAX,
        offset: 0,
        timezone: rollup.time.as_ref().map_or(jiff::tz::TimeZone::UTC, |time| time.zone.clone()),
        wants_total: false,
    })
}
