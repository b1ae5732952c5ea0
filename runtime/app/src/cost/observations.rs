//! The newest queries whose sizes and times are known, from which the time of other queries is predicted.
//!
//! In: executed queries. Out: a [`TimeModel`] for a caller. Queries of other tenants never count. Memory is bounded.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::time_model::TimeModel;
use crate::ports::executed_queries::{ExecutedQuery, PlanSize, PredictedTime, QueryOwner};

/// The largest number of queries in memory.
const MAX_QUERIES: usize = 5_000;
/// The largest number of queries that a model is fitted to, the newest ones.
const MAX_FITTED: usize = 2_000;

/// The newest queries with a known size, the oldest first.
#[derive(Default)]
pub(super) struct Observations(Mutex<VecDeque<Observation>>);

struct Observation {
    owner: QueryOwner,
    size: PlanSize,
    seconds: f64,
    has_table: bool,
}

/// The queries from which a model is fitted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Fitted {
    pub(super) tenant: Option<Arc<str>>,
    /// The only user whose queries count; `None` for all users.
    pub(super) user_id: Option<Arc<str>>,
    /// True for queries that read a pre-aggregation.
    pub(super) has_table: bool,
    /// True for queries whose scanned bytes are known.
    pub(super) has_bytes: bool,
}

impl Observations {
    /// Adds a query of the history, unless the cache answered it, or its size is unknown.
    pub(super) fn add(&self, query: &ExecutedQuery) {
        let Some(size) = query.size.filter(|_| !query.is_cached) else { return };
        let mut queries = self.queries();
        if queries.len() >= MAX_QUERIES {
            queries.pop_front();
        }
        queries.push_back(Observation {
            owner: QueryOwner { user_id: Arc::clone(&query.user_id), tenant: query.tenant.clone() },
            size,
            seconds: query.warehouse.as_secs_f64(),
            has_table: query.pre_aggregation.is_some(),
        });
    }

    /// Fits a model; `None` if too few queries ran.
    pub(super) fn fit(&self, fitted: &Fitted) -> Option<TimeModel> {
        let counts = |query: &&Observation| {
            query.owner.tenant == fitted.tenant
                && fitted.user_id.as_ref().is_none_or(|user_id| *user_id == query.owner.user_id)
                && query.has_table == fitted.has_table
                && query.size.table_bytes.is_some() == fitted.has_bytes
        };
        let queries = self.queries();
        let newest = queries.iter().rev().filter(counts).take(MAX_FITTED);
        let newest: Vec<(PlanSize, f64)> = newest.map(|query| (query.size, query.seconds)).collect();
        drop(queries);
        TimeModel::fit(&newest)
    }

    /// Adds predicted times to queries of known size that have none. The models know none of these queries.
    pub(super) fn predict(&self, queries: &mut [ExecutedQuery]) {
        let mut models: HashMap<Fitted, Option<TimeModel>> = HashMap::new();
        for query in queries.iter_mut().filter(|query| query.predicted.is_none() && !query.is_cached) {
            let Some(size) = query.size else { continue };
            let fitted = Fitted {
                tenant: query.tenant.clone(),
                user_id: None,
                has_table: query.pre_aggregation.is_some(),
                has_bytes: size.table_bytes.is_some(),
            };
            let model = models.entry(fitted).or_insert_with_key(|fitted| self.fit(fitted));
            query.predicted = model.as_ref().and_then(|model| {
                let range = model.predict(&size);
                let duration = |seconds: f64| Duration::try_from_secs_f64(seconds).ok();
                Some(PredictedTime { median: duration(range.median)?, high: duration(range.high?)? })
            });
        }
    }

    fn queries(&self) -> MutexGuard<'_, VecDeque<Observation>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
