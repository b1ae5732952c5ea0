//! Recommends changes that would make costly queries cheaper, from the history.
//!
//! In: a caller, a user and a number of days. Out: pre-aggregations for queries that were computed from rows, cubes
//! whose rows are read without a filter by time, and dimensions to order or index tables by. Each recommendation states
//! the number of queries that it is based on, and what it can save at most. Not here: applying a recommendation.
//!
//! # Rights
//! A caller gets recommendations for its own queries. A caller with `admin` gets recommendations for another user or
//! for all users. Recommended pre-aggregations are based on counts of query shapes, which do not record callers, so
//! they are returned only with recommendations for all users. Cubes and dimensions that the caller may not see are left
//! out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use terrane_compiler::Access;
use terrane_compiler::model::{Cube, Dimension};
use terrane_compiler::types::DimensionType;

use super::prices::Usage;
use super::{CostService, HistoryError};
use crate::domain::{RequestContext, Scope};
use crate::metadata;
use crate::ports::executed_queries::{FilterTotals, HistoryFilter, QueryOwner};
use crate::preaggregations::RecommendedTable;

/// The smallest number of queries on which a recommendation is based.
const MIN_QUERIES: u64 = 3;
/// The largest number of recommendations of one kind.
const MAX_OF_KIND: usize = 10;
/// The largest number of groups that are read from the history, costliest first.
const MAX_TOTALS: u32 = 5_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecommendationKind {
    PreAggregation,
    Filter,
    Index,
}

/// A change that would make queries cheaper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostRecommendation {
    pub kind: RecommendationKind,
    pub cube: Arc<str>,
    /// The dimensions to filter by, or to index, as `cube.dimension`.
    pub members: Vec<Arc<str>>,
    /// The definition of a pre-aggregation.
    pub definition: Option<RecommendedTable>,
    /// The number of queries that the recommendation is based on.
    pub queries: u64,
    /// The time that the warehouse took for these queries.
    pub warehouse: Duration,
    /// The cost of these queries in millionths; `None` if it is unknown.
    pub cost_micros: Option<u64>,
    /// The time that the change would save; `None` if it is unknown.
    pub saving: Option<Saving>,
}

/// The time on the warehouse that a change would have saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Saving {
    pub warehouse: Duration,
    /// True if `warehouse` is the most that can be saved. False if it is an estimate from queries that filter by time.
    pub is_upper_bound: bool,
}

/// Queries of one kind, added up.
#[derive(Debug, Default, Clone, Copy)]
struct Sum {
    queries: u64,
    warehouse: Duration,
    cost_micros: Option<u64>,
}

impl CostService {
    /// Recommends changes for the queries of the last days. Within each kind, changes are sorted by the time that the
    /// warehouse took for their queries, longest first.
    ///
    /// # Errors
    /// `user_id` is not the caller and the caller lacks `admin`, or the state database is unavailable.
    pub async fn recommendations(
        &self,
        request: &RequestContext,
        user_id: Option<Arc<str>>,
        days: u16,
    ) -> Result<Vec<CostRecommendation>, HistoryError> {
        let is_admin = request.scopes.hold(Scope::Admin);
        let own = &request.caller.user_id;
        if user_id.as_ref().is_some_and(|user_id| user_id != own) {
            self.access.require(request, Scope::Admin).await?;
        }
        if !is_admin && own.is_empty() {
            return Ok(Vec::new());
        }
        let length = Duration::from_secs(u64::from(days) * 86_400);
        let since = self.clock.now().checked_sub(length).unwrap_or(Timestamp::MIN);
        let owner = QueryOwner { user_id: Arc::clone(own), tenant: request.tenant.clone() };
        let filter = HistoryFilter {
            owner: (!is_admin).then_some(owner),
            user_id: user_id.clone(),
            since: Some(since),
            limit: MAX_TOTALS,
            ..HistoryFilter::default()
        };
        self.log.flush().await?;
        let totals = self.history.filter_totals(&filter).await?;
        let snapshot = self.catalog.snapshot();
        let access = Access::of(&snapshot.model, &request.caller);
        let mut recommendations = Vec::new();
        if is_admin && user_id.is_none() {
            recommendations.extend(self.tables(&access, since).await?);
        }
        recommendations.extend(filters(&access, &totals));
        recommendations.extend(indexes(&access, &totals));
        Ok(recommendations)
    }

    async fn tables(&self, access: &Access<'_>, since: Timestamp) -> Result<Vec<CostRecommendation>, HistoryError> {
        let Some(preaggregations) = &self.preaggregations else { return Ok(Vec::new()) };
        let recommended = preaggregations.recommend_since(since).await?;
        let visible = recommended.into_iter().filter(|table| metadata::cube(access, &table.cube).is_some());
        let visible = visible.map(|table| CostRecommendation {
            kind: RecommendationKind::PreAggregation,
            cube: table.cube,
            members: Vec::new(),
            definition: Some(table.definition),
            queries: table.queries,
            warehouse: table.warehouse,
            cost_micros: self.log.cost_micros(Usage::of_time(table.warehouse)),
            saving: Some(Saving { warehouse: table.warehouse, is_upper_bound: true }),
        });
        Ok(visible.take(MAX_OF_KIND).collect())
    }
}

/// Recommends a filter by time for cubes whose rows are read without one. Leaves out a cube if its queries with such a
/// filter take as long as its queries without one.
fn filters(access: &Access<'_>, totals: &[FilterTotals]) -> Vec<CostRecommendation> {
    let mut cubes: BTreeMap<&Arc<str>, (Sum, Sum)> = BTreeMap::new();
    for group in totals {
        let Some(cube) = metadata::cube(access, &group.cube) else { continue };
        let times = time_names(access, cube);
        if times.is_empty() {
            continue;
        }
        let (bounded, unbounded) = cubes.entry(&group.cube).or_default();
        let is_bounded = members(group).any(|member| times.iter().any(|time| **time == *member));
        if is_bounded { bounded } else { unbounded }.add(group);
    }
    let mut found = Vec::new();
    for (name, (bounded, unbounded)) in cubes {
        let Some(cube) = metadata::cube(access, name).filter(|_| unbounded.queries >= MIN_QUERIES) else { continue };
        let saving = match bounded.queries >= MIN_QUERIES {
            true => unbounded.saving_at(bounded.mean()).map(|warehouse| Saving { warehouse, is_upper_bound: false }),
            false => None,
        };
        if saving.is_none() && bounded.queries >= MIN_QUERIES {
            continue;
        }
        let times = time_names(access, cube);
        found.push(unbounded.recommendation(RecommendationKind::Filter, name, times, saving));
    }
    costliest(found)
}

/// Recommends the dimensions by which the costliest queries filter.
fn indexes(access: &Access<'_>, totals: &[FilterTotals]) -> Vec<CostRecommendation> {
    let mut dimensions: BTreeMap<&str, Sum> = BTreeMap::new();
    for group in totals {
        for member in members(group) {
            dimensions.entry(member).or_default().add(group);
        }
    }
    let mut found = Vec::new();
    for (member, sum) in dimensions.into_iter().filter(|(_, sum)| sum.queries >= MIN_QUERIES) {
        let Some((cube, name)) = member.split_once('.') else { continue };
        let Some(cube) = metadata::cube(access, cube) else { continue };
        if metadata::dimensions(access, cube).any(|dimension| &*dimension.name == name) {
            let saving = Some(Saving { warehouse: sum.warehouse, is_upper_bound: true });
            found.push(sum.recommendation(RecommendationKind::Index, &cube.name, vec![member.into()], saving));
        }
    }
    costliest(found)
}

fn costliest(mut found: Vec<CostRecommendation>) -> Vec<CostRecommendation> {
    found.sort_by_key(|one| std::cmp::Reverse(one.warehouse));
    found.truncate(MAX_OF_KIND);
    found
}

/// Returns the time dimensions of a cube that the caller may see, as `cube.dimension`, the primary one first.
fn time_names(access: &Access<'_>, cube: &Cube) -> Vec<Arc<str>> {
    let primary = cube.primary_time.and_then(|index| cube.dimensions.get(index as usize));
    let is_primary = |dimension: &Dimension| primary.is_some_and(|primary| primary.name == dimension.name);
    let times = metadata::dimensions(access, cube).filter(|dimension| dimension.ty == DimensionType::Time);
    let mut times: Vec<&Dimension> = times.collect();
    times.sort_by_key(|dimension| !is_primary(dimension));
    times.into_iter().map(|dimension| format!("{}.{}", cube.name, dimension.name).into()).collect()
}

fn members(group: &FilterTotals) -> impl Iterator<Item = &str> {
    group.filters.split(',').filter(|member| !member.is_empty())
}

impl Sum {
    fn add(&mut self, group: &FilterTotals) {
        self.queries += group.queries;
        self.warehouse += group.warehouse;
        let costs = [self.cost_micros, group.cost_micros];
        self.cost_micros = costs.into_iter().flatten().reduce(|one, other| one + other);
    }

    fn mean(&self) -> Duration {
        self.warehouse / u32::try_from(self.queries.max(1)).unwrap_or(u32::MAX)
    }

    /// Returns the time that the queries would have saved if their mean were `mean`; `None` if they would have saved
    /// none.
    fn saving_at(&self, mean: Duration) -> Option<Duration> {
        let other = mean * u32::try_from(self.queries).unwrap_or(u32::MAX);
        self.warehouse.checked_sub(other).filter(|saved| !saved.is_zero())
    }

    fn recommendation(
        &self,
        kind: RecommendationKind,
        cube: &Arc<str>,
        members: Vec<Arc<str>>,
        saving: Option<Saving>,
    ) -> CostRecommendation {
        let Sum { queries, warehouse, cost_micros } = *self;
        let cube = Arc::clone(cube);
        CostRecommendation { kind, cube, members, definition: None, queries, warehouse, cost_micros, saving }
    }
}

impl RecommendationKind {
    pub fn as_str(self) -> &'static str {
        match self {
            RecommendationKind::PreAggregation => "pre_aggregation",
            RecommendationKind::Filter => "filter",
            RecommendationKind::Index => "index",
        }
    }
}
