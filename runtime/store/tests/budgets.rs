//! Tests budgets on SQLite: two servers with many concurrent queries, and a server that died.

#![allow(clippy::unwrap_used, reason = "a test stops at its first fault")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use terrane_app::cost::{BudgetLedger, BudgetPeriod, Execution, ExecutionLog, Guardrails, Prices};
use terrane_app::domain::{QueryKind, Surface};
use terrane_app::ports::budgets::{BudgetClaim, Budgets as _};
use terrane_app::ports::clock::Clock;
use terrane_app::ports::executed_queries::QueryOwner;
use terrane_app::ports::tokens::Randomness;
use terrane_store::StateStore;

const COST: u64 = 1_000_000;
const LIMIT: u64 = 100 * COST;

struct Noon;

impl Clock for Noon {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap()
    }
    fn elapsed(&self) -> Duration {
        Duration::from_secs(1)
    }
}

struct Counter(AtomicU64);

impl Randomness for Counter {
    fn fill(&self, bytes: &mut [u8]) {
        let number = self.0.fetch_add(1, Ordering::Relaxed).to_le_bytes();
        bytes.iter_mut().zip(number).for_each(|(byte, part)| *byte = part);
    }
}

fn ada() -> QueryOwner {
    QueryOwner { user_id: "ada".into(), tenant: None }
}

fn record(log: &ExecutionLog) -> u64 {
    let second = Duration::from_secs(1);
    let recorded = log.record(&Execution {
        query_hash: "aa",
        cube: &"orders".into(),
        user_id: &"ada".into(),
        tenant: None,
        kind: QueryKind::Rest,
        surface: Surface::Rest,
        duration: second,
        warehouse: second,
        rows: 1,
        is_cached: false,
        pre_aggregation: None,
        filters: None,
        members: None,
        plan: None,
    });
    recorded.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_queries_of_two_servers_do_not_overshoot_a_budget() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(StateStore::open("sqlite://state.db", folder.path()).await.unwrap());
    let randomness = Counter(AtomicU64::new(1));
    let limits = Guardrails { daily_budget_micros: Some(LIMIT), ..Guardrails::default() };
    let mut servers = Vec::new();
    for name in ["one", "two"] {
        let log = ExecutionLog::new(store.clone(), Arc::new(Noon), &randomness, Prices::of_second(Some(1.0)));
        let log = Arc::new(log);
        let ledger = BudgetLedger::new(store.clone(), log.clone(), Arc::new(Noon), TimeZone::UTC, name.into());
        servers.push((Arc::new(ledger), log));
    }
    let queries = (0..1_000).map(|number| {
        let (ledger, log) = servers[number % 2].clone();
        tokio::spawn(async move {
            // Every tenth query has an unknown cost, and every seventh fails.
            let estimate = (number % 10 != 0).then_some(COST);
            let Ok(mut reservations) = ledger.reserve(&ada(), &limits, estimate).await else { return 0 };
            tokio::task::yield_now().await;
            if number % 7 == 0 {
                return 0;
            }
            let cost = record(&log);
            reservations.iter_mut().for_each(|reservation| reservation.settle(cost));
            1_u64
        })
    });
    let queries: Vec<_> = queries.collect();
    let mut answered = 0;
    for query in queries {
        answered += query.await.unwrap();
    }
    for (_, log) in &servers {
        log.flush().await.unwrap();
    }
    let account = BudgetPeriod::Day.account(ada(), Noon.now(), &TimeZone::UTC);
    let used = store.budget_use(&account).await.unwrap();
    assert_eq!((used.queries, used.spent_micros), (answered, answered * COST));
    let part = LIMIT / 20;
    assert!(used.spent_micros <= LIMIT + part, "{used:?}");
    // Each server may be left with a part of the budget that is too small for a query.
    assert!(used.spent_micros >= LIMIT - 2 * part, "{used:?}");
}

#[tokio::test]
async fn reservation_of_a_dead_server_ends_with_its_lease() {
    let folder = tempfile::tempdir().unwrap();
    let store = StateStore::open("sqlite://state.db", folder.path()).await.unwrap();
    let account = BudgetPeriod::Month.account(ada(), Noon.now(), &TimeZone::UTC);
    let claim = |holder: &str, used: u64, wanted: u64, ttl: Duration| BudgetClaim {
        account: account.clone(),
        holder: holder.into(),
        limit_micros: LIMIT,
        used_micros: used,
        wanted_micros: wanted,
        ttl,
    };
    let hour = Duration::from_secs(3_600);
    let granted = async |claim: BudgetClaim| store.claim_budget(&claim).await.unwrap().granted_micros;
    assert_eq!(granted(claim("one", 0, LIMIT, hour)).await, LIMIT);
    assert_eq!(granted(claim("two", 0, COST, hour)).await, 0);
    // A claim replaces the lease of its own server.
    assert_eq!(granted(claim("one", 10 * COST, 0, Duration::ZERO)).await, 0);
    assert_eq!(granted(claim("two", 0, LIMIT, hour)).await, LIMIT);
    assert!(store.record_budget_alert(&account, 80).await.unwrap());
    assert!(!store.record_budget_alert(&account, 80).await.unwrap());
    assert!(store.record_budget_alert(&account, 90).await.unwrap());
}
