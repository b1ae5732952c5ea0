//! The newest durations of statements on the warehouse, in memory.
//!
//! In: each query that the warehouse answered. Out: the median time of a statement, for the guardrail
//! `max_cost_per_query`, computed without a read of the state database. Memory is bounded: the model holds the newest
//! times of each statement, and the statements that ran last. A server loads the newest records of the history when it
//! starts; afterwards it adds only the queries that it answers itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::prices::{Prices, Usage};
use crate::ports::executed_queries::{ExecutedQuery, PredictedTime, QueryOwner};

/// The largest number of statements in the model.
const MAX_STATEMENTS: usize = 20_000;
/// The maximum number of execution times that are held for each statement.
const MAX_TIMES: usize = 25;
/// The minimum number of execution times from which a median is computed.
const MIN_TIMES: usize = 3;

/// The newest execution times of statements.
pub struct CostModel {
    prices: Prices,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    statements: HashMap<Arc<str>, Statement>,
    /// The number of additions so far. `Statement::last` is this number at the last addition to the statement.
    now: u64,
}

struct Statement {
    /// The runs, oldest first.
    runs: Vec<(QueryOwner, Run)>,
    last: u64,
}

/// The use of the warehouse by one query.
#[derive(Clone, Copy)]
struct Run {
    time: Duration,
    usage: Usage,
}

impl CostModel {
    pub fn new(prices: Prices) -> Self {
        CostModel { prices, known: Mutex::default() }
    }

    /// Adds a query of the history, unless the cache answered it.
    pub(super) fn add(&self, query: &ExecutedQuery) {
        if query.is_cached {
            return;
        }
        let owner = QueryOwner { user_id: Arc::clone(&query.user_id), tenant: query.tenant.clone() };
        let mut known = self.known();
        known.now += 1;
        let now = known.now;
        if known.statements.len() >= MAX_STATEMENTS && !known.statements.contains_key(&query.query_hash) {
            known.forget_oldest();
        }
        let new = || Statement { runs: Vec::new(), last: now };
        let statement = known.statements.entry(Arc::clone(&query.query_hash)).or_insert_with(new);
        statement.last = now;
        if statement.runs.len() >= MAX_TIMES {
            statement.runs.remove(0);
        }
        statement.runs.push((owner, Run { time: query.warehouse, usage: usage_of(query) }));
    }

    /// Returns the median cost of a statement in millionths, if it ran often enough. Queries of other tenants never
    /// count. Queries of other callers count only if `is_open`, which means that no policy hides anything from the
    /// caller.
    pub(crate) fn cost_micros(&self, query_hash: &str, caller: &QueryOwner, is_open: bool) -> Option<u64> {
        if !self.prices.is_known() {
            return None;
        }
        let known = self.known();
        let runs = &known.statements.get(query_hash)?.runs;
        let counts = |owner: &QueryOwner| owner.tenant == caller.tenant && (is_open || owner.user_id == caller.user_id);
        let counted = runs.iter().filter(|(owner, _)| counts(owner));
        let mut costs: Vec<u64> = counted.filter_map(|(_, run)| self.prices.cost_micros(run.usage)).collect();
        drop(known);
        costs.sort_unstable();
        (costs.len() >= MIN_TIMES).then(|| costs[costs.len() / 2])
    }

    /// Returns the highest cost of a statement's newest queries in the caller's tenant, in millionths; `None` if
    /// unknown.
    pub(crate) fn highest_micros(&self, query_hash: &str, caller: &QueryOwner) -> Option<u64> {
        let known = self.known();
        let runs = &known.statements.get(query_hash)?.runs;
        let of_tenant = runs.iter().filter(|(owner, _)| owner.tenant == caller.tenant);
        of_tenant.filter_map(|(_, run)| self.prices.cost_micros(run.usage)).max()
    }

    /// Returns the median and the ninetieth percentile of a statement's times, if it ran often enough for the tenant.
    pub(super) fn time(&self, query_hash: &str, tenant: Option<&Arc<str>>) -> Option<PredictedTime> {
        let known = self.known();
        let runs = &known.statements.get(query_hash)?.runs;
        let of_tenant = runs.iter().filter(|(owner, _)| owner.tenant.as_ref() == tenant);
        let mut counted: Vec<Duration> = of_tenant.map(|(_, run)| run.time).collect();
        drop(known);
        counted.sort_unstable();
        let at = |tenths: usize| counted.get((counted.len() * tenths / 10).min(counted.len() - 1)).copied();
        let is_enough = counted.len() >= MIN_TIMES;
        is_enough.then(|| Some(PredictedTime { median: at(5)?, high: at(9)? })).flatten()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// Removes half of the statements: those that have not run for the longest time.
    fn forget_oldest(&mut self) {
        let mut last: Vec<u64> = self.statements.values().map(|statement| statement.last).collect();
        let middle = last.len() / 2;
        let (_, median, _) = last.select_nth_unstable(middle);
        let median = *median;
        self.statements.retain(|_, statement| statement.last > median);
    }
}

/// Returns the use of the warehouse by an executed query. The stored size of what it read is an upper bound of the
/// bytes that the warehouse does not report.
pub(super) fn usage_of(query: &ExecutedQuery) -> Usage {
    let size = query.size.unwrap_or_default();
    Usage {
        seconds: Some(query.warehouse.as_secs_f64()),
        scan_bytes: query.scan_bytes.or(size.table_bytes).map(|bytes| bytes as f64),
        egress_bytes: query.size.map(|size| query.rows.saturating_mul(size.row_bytes) as f64),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn query(hash: &str, user: &str, seconds: u64, is_cached: bool) -> ExecutedQuery {
        ExecutedQuery {
            id: "1".into(),
            queries: 1,
            at: Timestamp::UNIX_EPOCH,
            query_hash: hash.into(),
            cube: "orders".into(),
            user_id: user.into(),
            tenant: None,
            kind: "rest".into(),
            surface: "rest".into(),
            duration: Duration::from_secs(seconds),
            warehouse: Duration::from_secs(seconds),
            rows: 1,
            scan_bytes: None,
            cost_micros: None,
            is_cached,
            pre_aggregation: None,
            filters: None,
            members: None,
            predicted: None,
            size: None,
        }
    }

    fn owner(user: &str, tenant: Option<&str>) -> QueryOwner {
        QueryOwner { user_id: user.into(), tenant: tenant.map(Into::into) }
    }

    #[test]
    fn predictions_need_several_visible_times() {
        let model = CostModel::new(Prices::of_second(Some(0.5)));
        let cost = |user: &str, is_open| model.cost_micros("aa", &owner(user, None), is_open);
        for seconds in [2, 90] {
            model.add(&query("aa", "ada", seconds, false));
        }
        model.add(&query("aa", "ada", 1, true));
        assert_eq!(cost("ada", true), None);
        model.add(&query("aa", "bob", 4, false));
        assert_eq!(cost("ada", true), Some(2_000_000));
        assert_eq!(cost("ada", false), None);
        assert_eq!(model.cost_micros("aa", &owner("ada", Some("acme")), true), None);
        assert_eq!(model.cost_micros("bb", &owner("ada", None), true), None);
        let unpriced = CostModel::new(Prices::default());
        (0..5).for_each(|_| unpriced.add(&query("aa", "ada", 2, false)));
        assert_eq!(unpriced.cost_micros("aa", &owner("ada", None), true), None);
    }

    #[test]
    fn times_are_predicted_without_a_price() {
        let model = CostModel::new(Prices::default());
        for seconds in [5, 1] {
            model.add(&query("aa", "ada", seconds, false));
        }
        assert_eq!(model.time("aa", None), None);
        for seconds in [4, 3, 2] {
            model.add(&query("aa", "bob", seconds, false));
        }
        let (median, high) = (Duration::from_secs(3), Duration::from_secs(5));
        assert_eq!(model.time("aa", None), Some(PredictedTime { median, high }));
        assert_eq!(model.time("aa", Some(&"acme".into())), None);
    }

    #[test]
    fn memory_is_bounded_and_the_newest_times_count() {
        let model = CostModel::new(Prices::of_second(Some(1.0)));
        for seconds in 0..100 {
            model.add(&query("aa", "ada", seconds, false));
        }
        // The median of 75 to 99.
        assert_eq!(model.cost_micros("aa", &owner("ada", None), true), Some(87_000_000));
        for number in 0..2 * MAX_STATEMENTS {
            model.add(&query(&number.to_string(), "ada", 1, false));
        }
        assert!(model.known().statements.len() <= MAX_STATEMENTS);
        assert_eq!(model.cost_micros("aa", &owner("ada", None), true), None);
    }
}
