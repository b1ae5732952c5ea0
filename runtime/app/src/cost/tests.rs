//! Tests the history of executed queries over a fake state database.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::execution_log::MAX_WAITING;
use super::{Execution, ExecutionLog, HistoryRetention, Prices, Usage};
use crate::domain::{QueryKind, Surface};
use crate::ports::clock::Clock;
use crate::ports::executed_queries::{ExecutedQueries, ExecutedQuery, FilterTotals, HistoryFilter, StatementTotals};
use crate::ports::leases::Lease;
use crate::ports::store::StoreError;
use crate::ports::tokens::Randomness;
use crate::worker::{Progress, Task as _, TaskError};

struct Noon;

impl Clock for Noon {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_707_912_000).unwrap()
    }
    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
}

struct Sevens;

impl Randomness for Sevens {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
}

/// A history that accepts batches unless it is down. `left` is the number of records that remain to be pruned.
#[derive(Default)]
struct FakeHistory {
    is_down: AtomicBool,
    batches: Mutex<Vec<Vec<ExecutedQuery>>>,
    left: Mutex<Option<u64>>,
    pruned_before: Mutex<Vec<Timestamp>>,
}

#[async_trait]
impl ExecutedQueries for FakeHistory {
    async fn append_executed(&self, queries: &[ExecutedQuery]) -> Result<(), StoreError> {
        if self.is_down.load(Ordering::SeqCst) {
            return Err(StoreError { message: "down".to_owned() });
        }
        self.batches.lock().unwrap().push(queries.to_vec());
        Ok(())
    }
    async fn executed(&self, _: &HistoryFilter) -> Result<Vec<ExecutedQuery>, StoreError> {
        Ok(self.batches.lock().unwrap().concat())
    }
    async fn statement_totals(&self, _: Timestamp, _: u32) -> Result<Vec<StatementTotals>, StoreError> {
        Ok(Vec::new())
    }
    async fn filter_totals(&self, _: &HistoryFilter) -> Result<Vec<FilterTotals>, StoreError> {
        Ok(Vec::new())
    }
    async fn prune_executed(&self, before: Timestamp, _: &Lease) -> Result<Option<u64>, StoreError> {
        self.pruned_before.lock().unwrap().push(before);
        let mut left = self.left.lock().unwrap();
        let step = left.map(|left| left.min(10));
        *left = left.map(|left| left - left.min(10));
        Ok(step)
    }
}

fn record(log: &ExecutionLog, warehouse: Duration, is_cached: bool) {
    let (cube, user_id) = ("orders".into(), "ada".into());
    log.record(&Execution {
        query_hash: "0123456789abcdef",
        cube: &cube,
        user_id: &user_id,
        tenant: None,
        kind: QueryKind::Export,
        surface: Surface::Xmla,
        duration: warehouse * 2,
        warehouse,
        rows: 3,
        is_cached,
        pre_aggregation: None,
        filters: None,
        members: None,
        plan: None,
    });
}

fn log(history: &Arc<FakeHistory>, second: Option<f64>) -> ExecutionLog {
    ExecutionLog::new(history.clone(), Arc::new(Noon), &Sevens, Prices::of_second(second))
}

#[tokio::test]
async fn queries_are_written_once_with_their_cost() {
    let history = Arc::new(FakeHistory::default());
    let log = log(&history, Some(0.25));
    record(&log, Duration::from_millis(1_500), false);
    record(&log, Duration::ZERO, true);
    log.flush().await.unwrap();
    log.flush().await.unwrap();
    let written = history.batches.lock().unwrap().concat();
    let costs: Vec<_> = written.iter().map(|query| (query.cost_micros, query.is_cached)).collect();
    assert_eq!(costs, [(Some(375_000), false), (Some(0), true)]);
    assert_eq!((&*written[0].kind, &*written[0].surface, written[0].rows), ("export", "xmla", 3));
    assert_ne!(written[0].id, written[1].id);
}

#[tokio::test]
async fn cached_answers_share_a_record_until_it_is_written() {
    let history = Arc::new(FakeHistory::default());
    let log = log(&history, None);
    for is_cached in [true, false, true, true] {
        record(&log, Duration::ZERO, is_cached);
    }
    log.flush().await.unwrap();
    record(&log, Duration::ZERO, true);
    log.flush().await.unwrap();
    let written = history.batches.lock().unwrap().concat();
    let counts: Vec<_> = written.iter().map(|query| (query.is_cached, query.queries, query.rows)).collect();
    assert_eq!(counts, [(true, 3, 9), (false, 1, 3), (true, 1, 3)]);
}

#[tokio::test]
async fn answers_are_counted_once_if_a_write_fails() {
    let history = Arc::new(FakeHistory::default());
    let log = log(&history, None);
    record(&log, Duration::ZERO, true);
    history.is_down.store(true, Ordering::SeqCst);
    assert!(log.flush().await.is_err());
    history.is_down.store(false, Ordering::SeqCst);
    record(&log, Duration::ZERO, true);
    log.flush().await.unwrap();
    let written = history.batches.lock().unwrap().concat();
    assert_eq!(written.iter().map(|query| query.queries).collect::<Vec<_>>(), [1, 1]);
}

#[tokio::test]
async fn cost_is_unknown_without_prices() {
    let history = Arc::new(FakeHistory::default());
    let log = log(&history, None);
    record(&log, Duration::from_secs(1), false);
    record(&log, Duration::ZERO, true);
    log.flush().await.unwrap();
    let costs: Vec<_> = history.batches.lock().unwrap().concat().iter().map(|query| query.cost_micros).collect();
    assert_eq!(costs, [None, Some(0)]);
}

#[test]
fn costs_are_rounded_up() {
    let prices = Prices::of_second(Some(0.000_001));
    assert_eq!(prices.cost_micros(Usage::of_time(Duration::from_millis(1))), Some(1));
    assert_eq!(prices.cost_micros(Usage::of_time(Duration::ZERO)), Some(0));
}

#[tokio::test]
async fn queries_stay_while_the_state_database_is_down() {
    let history = Arc::new(FakeHistory::default());
    let log = log(&history, None);
    history.is_down.store(true, Ordering::SeqCst);
    (0..5).for_each(|_| record(&log, Duration::ZERO, false));
    assert!(log.flush().await.is_err());
    history.is_down.store(false, Ordering::SeqCst);
    log.flush().await.unwrap();
    assert_eq!(history.batches.lock().unwrap().concat().len(), 5);
}

#[tokio::test]
async fn surplus_queries_are_counted_and_dropped() {
    let history = Arc::new(FakeHistory::default());
    let log = log(&history, None);
    (0..MAX_WAITING + 3).for_each(|_| record(&log, Duration::ZERO, false));
    assert_eq!(log.dropped(), 3);
    log.flush().await.unwrap();
    let batches = history.batches.lock().unwrap();
    assert_eq!(batches.iter().map(Vec::len).sum::<usize>(), MAX_WAITING);
    assert!(batches.iter().all(|batch| batch.len() <= 2_000));
}

#[tokio::test]
async fn old_records_are_pruned_until_none_is_left() {
    let history = Arc::new(FakeHistory::default());
    *history.left.lock().unwrap() = Some(25);
    let days = |days: u64| Duration::from_secs(days * 86_400);
    let retention = |length| HistoryRetention::new(history.clone(), Arc::new(Noon), length, TimeZone::UTC);
    let lease = Lease { name: "prune_query_history".into(), holder: "one".into(), fence: 1 };
    assert_eq!(retention(days(60)).run(&lease).await.unwrap(), Progress::Complete);
    let before = std::mem::take(&mut *history.pruned_before.lock().unwrap());
    assert_eq!(before, vec![Timestamp::from_second(1_707_912_000 - 60 * 86_400).unwrap(); 4]);
    // Budgets need the queries of the current month.
    assert_eq!(retention(days(1)).run(&lease).await.unwrap(), Progress::Complete);
    let month = "2024-02-01T00:00:00Z".parse::<Timestamp>().unwrap();
    assert_eq!(*history.pruned_before.lock().unwrap(), [month]);
    *history.left.lock().unwrap() = None;
    assert!(matches!(retention(days(1)).run(&lease).await, Err(TaskError::LeaseLost)));
}
