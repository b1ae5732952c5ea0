//! Recommendations: the smallest pre-aggregations that would have served the costliest queries.
//!
//! In: shapes of queries that were computed from rows, and the served project. Out: definitions, each with the number
//! of queries that it would have served. Shapes with a measure that cannot be merged into coarser groups, such
//! as a count of distinct values, are left out.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use terrane_compiler::model::{AggregateFunction, MeasureId, MeasureKind, Member, Model, SqlPart};
use terrane_compiler::rollup::RollupOf;
use terrane_compiler::types::Granularity;

use super::Preaggregations;
use crate::ports::preaggregations::{ComputedQueries, QueryShape};
use crate::ports::store::StoreError;
use crate::query::member_named;

/// The largest number of dimensions of a recommendation. It is bounded because each dimension multiplies the rows.
const MAX_DIMENSIONS: usize = 6;
/// The largest number of recommendations.
const MAX_RECOMMENDATIONS: usize = 10;
const MAX_DEPTH: usize = 50;

/// A pre-aggregation that would have served queries.
#[derive(Debug, Clone, PartialEq)]
pub struct Recommendation {
    pub cube: Arc<str>,
    pub definition: RecommendedTable,
    /// The number of queries that the pre-aggregation would have served.
    pub queries: u64,
    /// The time that the warehouse took for these queries.
    pub warehouse: Duration,
}

/// The definition of a recommended pre-aggregation: an entry of `pre_aggregations` of its cube. Members of the cube
/// have no cube in their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecommendedTable {
    pub name: String,
    pub measures: Vec<Arc<str>>,
    pub dimensions: Vec<Arc<str>>,
    pub segments: Vec<Arc<str>>,
    /// The time dimension and the granularity of its buckets.
    pub time: Option<(Arc<str>, Granularity)>,
    /// The time that each partition covers.
    pub partition: Option<Granularity>,
}

/// A pre-aggregation under construction. It grows by the shapes that it serves.
#[derive(Debug, Clone)]
struct Draft {
    cube: Arc<str>,
    measures: BTreeSet<Arc<str>>,
    dimensions: BTreeSet<Arc<str>>,
    segments: BTreeSet<Arc<str>>,
    time: Option<(Arc<str>, Granularity)>,
    queries: u64,
    warehouse: Duration,
}

impl Preaggregations {
    /// Recommends pre-aggregations for the recorded queries that were computed from rows, the costliest first.
    ///
    /// # Errors
    /// The state database cannot be read.
    pub async fn recommend(&self) -> Result<Vec<Recommendation>, StoreError> {
        self.recommend_since(Timestamp::MIN).await
    }

    /// Recommends pre-aggregations for the queries whose shape was last computed from rows after a time.
    ///
    /// # Errors
    /// The state database cannot be read.
    pub async fn recommend_since(&self, since: Timestamp) -> Result<Vec<Recommendation>, StoreError> {
        let Some(backend) = &self.ports.backend else { return Ok(Vec::new()) };
        let mut history = backend.state.computed_queries(backend.target()).await?;
        history.retain(|computed| computed.last_at >= since);
        Ok(recommend(&self.ports.catalog.snapshot().model, history))
    }
}

/// Recommends pre-aggregations of a project for a history of queries.
pub fn recommend(model: &Model, mut history: Vec<ComputedQueries>) -> Vec<Recommendation> {
    history.sort_by(|one, other| other.warehouse.cmp(&one.warehouse).then_with(|| one.shape.cmp(&other.shape)));
    let mut drafts: Vec<Draft> = Vec::new();
    for computed in history.iter().filter(|computed| is_storable(model, &computed.shape)) {
        if let Some(draft) = drafts.iter_mut().find(|draft| draft.can_take(&computed.shape)) {
            draft.take(computed);
        } else if drafts.len() < MAX_RECOMMENDATIONS {
            drafts.push(Draft::of(computed));
        }
    }
    drafts.sort_by_key(|draft| std::cmp::Reverse(draft.warehouse));
    let mut numbers = 1..;
    let mut named = |draft: &Draft| {
        let is_free = |name: &String| RollupOf::named(model, &draft.cube, name).is_none();
        let name = numbers.by_ref().map(|number: u32| format!("recommended_{number}")).find(is_free);
        draft.recommendation(name.unwrap_or_default())
    };
    drafts.iter().map(&mut named).collect()
}

impl Draft {
    fn of(computed: &ComputedQueries) -> Draft {
        let QueryShape { cube, measures, dimensions, segments, time } = &computed.shape;
        Draft {
            cube: Arc::clone(cube),
            measures: measures.iter().cloned().collect(),
            dimensions: dimensions.iter().cloned().collect(),
            segments: segments.iter().cloned().collect(),
            time: time.clone(),
            queries: computed.queries,
            warehouse: computed.warehouse,
        }
    }

    /// Returns whether the draft can also serve a shape without exceeding the limit of dimensions.
    fn can_take(&self, shape: &QueryShape) -> bool {
        let has_same_time = match (&self.time, &shape.time) {
            (Some((own, own_step)), Some((other, step))) => own == other && nest(*own_step, *step).is_some(),
            // A query without a time dimension reads all buckets.
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => true,
        };
        let more = shape.dimensions.iter().filter(|dimension| !self.dimensions.contains(*dimension)).count();
        self.cube == shape.cube && has_same_time && (more == 0 || self.dimensions.len() + more <= MAX_DIMENSIONS)
    }

    fn take(&mut self, computed: &ComputedQueries) {
        self.measures.extend(computed.shape.measures.iter().cloned());
        self.dimensions.extend(computed.shape.dimensions.iter().cloned());
        self.segments.extend(computed.shape.segments.iter().cloned());
        if let (Some((_, own)), Some((_, step))) = (&mut self.time, &computed.shape.time)
            && let Some(finest) = nest(*own, *step)
        {
            *own = finest;
        }
        self.queries += computed.queries;
        self.warehouse += computed.warehouse;
    }

    fn recommendation(&self, name: String) -> Recommendation {
        let own = format!("{}.", self.cube);
        let short = |name: &Arc<str>| name.strip_prefix(&*own).map_or_else(|| Arc::clone(name), Arc::from);
        let list = |names: &BTreeSet<Arc<str>>| names.iter().map(short).collect();
        let is_fine = |(_, granularity): &(_, Granularity)| *granularity <= Granularity::Day;
        let definition = RecommendedTable {
            name,
            measures: list(&self.measures),
            dimensions: list(&self.dimensions),
            segments: list(&self.segments),
            time: self.time.as_ref().map(|(name, granularity)| (short(name), *granularity)),
            partition: self.time.as_ref().filter(|time| is_fine(time)).map(|_| Granularity::Month),
        };
        let (queries, warehouse) = (self.queries, self.warehouse);
        Recommendation { cube: Arc::clone(&self.cube), definition, queries, warehouse }
    }
}

/// Returns the coarsest step from which both granularities can be computed.
fn nest(one: Granularity, other: Granularity) -> Option<Granularity> {
    let (fine, coarse) = (one.min(other), one.max(other));
    match (fine == coarse || fine.nests_in(coarse), fine) {
        (true, fine) => Some(fine),
        // Weeks do not nest in months, but both consist of days.
        (false, _) => Some(Granularity::Day),
    }
}

/// Returns whether all members of a shape exist, and its measures can be merged into coarser groups.
fn is_storable(model: &Model, shape: &QueryShape) -> bool {
    let Some(cube) = model.cube_named(&shape.cube) else { return false };
    let is_additive = |name: &Arc<str>| match cube.member(name) {
        Some(Member::Measure(id)) => is_mergeable(model, id, 0),
        _ => false,
    };
    let is_own_time = |name: &str| {
        let own = name.strip_prefix(&*cube.name).is_some_and(|rest| rest.starts_with('.'));
        own && matches!(member_named(model, name), Some(Member::Dimension(_)))
    };
    cube.alias_of.is_none()
        && !shape.measures.is_empty()
        && shape.measures.iter().all(is_additive)
        && shape.dimensions.iter().all(|name| matches!(member_named(model, name), Some(Member::Dimension(_))))
        && shape.time.as_ref().is_none_or(|(name, _)| is_own_time(name))
}

fn is_mergeable(model: &Model, id: MeasureId, depth: usize) -> bool {
    let can_merge = |function: AggregateFunction| {
        !matches!(function, AggregateFunction::CountDistinct | AggregateFunction::CountDistinctApprox)
            && !function.is_of_distribution()
    };
    match &model.measure(id).kind {
        MeasureKind::Aggregate(aggregate) => can_merge(aggregate.function),
        MeasureKind::RunningTotal { .. } | MeasureKind::Rolling { .. } => false,
        MeasureKind::Number(sql) => {
            let mut is_mergeable_so_far = depth < MAX_DEPTH;
            sql.for_each(&mut |part| match part {
                SqlPart::Aggregate(aggregate) => is_mergeable_so_far &= can_merge(aggregate.function),
                SqlPart::Measure(other) if is_mergeable_so_far => {
                    is_mergeable_so_far = is_mergeable(model, *other, depth + 1);
                }
                _ => {}
            });
            is_mergeable_so_far
        }
    }
}
