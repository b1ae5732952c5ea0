//! Tests the history of executed queries on SQLite.

#![allow(clippy::unwrap_used, reason = "a test stops at its first fault")]

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use terrane_app::ports::executed_queries::{
    ExecutedQueries as _, ExecutedQuery, HistoryFilter, HistoryPosition, PlanSize, PredictedTime, QueryOwner,
};
use terrane_app::ports::leases::Leases as _;
use terrane_store::StateStore;

async fn store(folder: &tempfile::TempDir) -> StateStore {
    StateStore::open("sqlite://state.db", folder.path()).await.unwrap()
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn query(id: &str, second: i64, user: &str) -> ExecutedQuery {
    ExecutedQuery {
        id: id.into(),
        queries: 1,
        at: at(second),
        query_hash: "aa".into(),
        cube: "orders".into(),
        user_id: user.into(),
        tenant: None,
        kind: "rest".into(),
        surface: "graphql".into(),
        duration: Duration::from_millis(30),
        warehouse: Duration::from_millis(20),
        rows: 7,
        scan_bytes: None,
        cost_micros: Some(10),
        is_cached: false,
        pre_aggregation: None,
        filters: None,
        members: None,
        predicted: None,
        size: None,
    }
}

fn page(limit: u32) -> HistoryFilter {
    HistoryFilter { limit, ..HistoryFilter::default() }
}

fn ids(queries: &[ExecutedQuery]) -> Vec<&str> {
    queries.iter().map(|query| &*query.id).collect()
}

#[tokio::test]
async fn records_are_returned_as_they_were_appended_and_only_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder).await;
    let full = ExecutedQuery {
        tenant: Some("acme".into()),
        scan_bytes: Some(1 << 40),
        is_cached: true,
        pre_aggregation: Some("orders.daily".into()),
        cost_micros: None,
        filters: Some("orders.ordered_at,orders.status".into()),
        members: Some("mean_amount,orders.revenue".into()),
        predicted: Some(PredictedTime { median: Duration::from_millis(7), high: Duration::from_millis(9) }),
        size: Some(PlanSize {
            table_bytes: Some(1 << 41),
            table_rows: None,
            facts: 2,
            joins: 3,
            groups: 4,
            range_seconds: Some(86_400),
            row_bytes: 40,
        }),
        ..query("b", 2, "ada")
    };
    let queries = [query("a", 1, ""), full];
    store.append_executed(&queries).await.unwrap();
    store.append_executed(&queries).await.unwrap();
    store.append_executed(&[]).await.unwrap();
    let found = store.executed(&page(10)).await.unwrap();
    assert_eq!(found, [queries[1].clone(), queries[0].clone()]);
}

#[tokio::test]
async fn pages_have_each_record_once_also_at_one_time() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder).await;
    let queries: Vec<ExecutedQuery> =
        (0..1_201).map(|number| query(&format!("{number:05}"), number / 4, "ada")).collect();
    store.append_executed(&queries).await.unwrap();
    let mut found = Vec::new();
    let mut filter = page(7);
    loop {
        let next = store.executed(&filter).await.unwrap();
        let Some(last) = next.last() else { break };
        filter.before = Some(HistoryPosition { at: last.at, id: Arc::clone(&last.id) });
        found.extend(next);
    }
    let newest_first: Vec<ExecutedQuery> = queries.into_iter().rev().collect();
    assert_eq!(found, newest_first);
}

#[tokio::test]
async fn owners_are_a_user_and_a_tenant() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder).await;
    let of_tenant = ExecutedQuery { tenant: Some("acme".into()), ..query("c", 3, "ada") };
    store.append_executed(&[query("a", 1, "ada"), query("b", 2, "bob"), of_tenant]).await.unwrap();
    let owned = |tenant: Option<&str>| HistoryFilter {
        owner: Some(QueryOwner { user_id: "ada".into(), tenant: tenant.map(Into::into) }),
        ..page(10)
    };
    assert_eq!(ids(&store.executed(&owned(None)).await.unwrap()), ["a"]);
    assert_eq!(ids(&store.executed(&owned(Some("acme"))).await.unwrap()), ["c"]);
    let of_user = HistoryFilter { user_id: Some("ada".into()), ..page(10) };
    assert_eq!(ids(&store.executed(&of_user).await.unwrap()), ["c", "a"]);
    let between = HistoryFilter { since: Some(at(1)), until: Some(at(3)), ..page(10) };
    assert_eq!(ids(&store.executed(&between).await.unwrap()), ["b", "a"]);
    let of_statement = HistoryFilter { query_hash: Some("bb".into()), ..page(10) };
    assert_eq!(store.executed(&of_statement).await.unwrap(), []);
}

#[tokio::test]
async fn totals_are_per_statement_with_the_costliest_first() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder).await;
    let slow = |id: &str, millis: u64| ExecutedQuery {
        query_hash: "bb".into(),
        warehouse: Duration::from_millis(millis),
        cost_micros: None,
        ..query(id, 5, "bob")
    };
    let cached = ExecutedQuery { queries: 4, is_cached: true, warehouse: Duration::ZERO, ..query("c", 4, "ada") };
    store
        .append_executed(&[query("a", 1, "ada"), query("b", 3, "ada"), cached, slow("d", 100), slow("e", 50)])
        .await
        .unwrap();
    let totals = store.statement_totals(at(2), 10).await.unwrap();
    let facts: Vec<_> = totals
        .iter()
        .map(|totals| (&*totals.query_hash, totals.queries, totals.cached, totals.rows, totals.cost_micros))
        .collect();
    assert_eq!(facts, [("bb", 2, 0, 14, None), ("aa", 5, 4, 14, Some(20))]);
    let times = (totals[0].warehouse, totals[0].longest, totals[0].last_at);
    assert_eq!(times, (Duration::from_millis(150), Duration::from_millis(100), at(5)));
    assert_eq!(store.statement_totals(at(2), 1).await.unwrap().len(), 1);
}

#[tokio::test]
async fn totals_of_filters_leave_out_answers_that_read_no_rows() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder).await;
    let by = |id: &str, second: i64, user: &str, filters: Option<&str>| ExecutedQuery {
        filters: filters.map(Into::into),
        warehouse: Duration::from_secs(1),
        ..query(id, second, user)
    };
    let cached = ExecutedQuery { is_cached: true, ..by("c", 3, "ada", Some("orders.status")) };
    let table = ExecutedQuery { pre_aggregation: Some("orders.daily".into()), ..by("d", 4, "ada", Some("")) };
    let queries = [
        by("a", 1, "ada", Some("orders.status")),
        by("b", 2, "bob", Some("orders.status")),
        cached,
        table,
        by("e", 5, "ada", Some("")),
        by("f", 6, "ada", None),
    ];
    store.append_executed(&queries).await.unwrap();
    let totals = async |filter: HistoryFilter| {
        let found = store.filter_totals(&filter).await.unwrap();
        found.into_iter().map(|group| (group.filters, group.queries, group.warehouse)).collect::<Vec<_>>()
    };
    let second = Duration::from_secs(1);
    assert_eq!(totals(page(10)).await, [("orders.status".into(), 2, 2 * second), ("".into(), 1, second)]);
    assert_eq!(totals(page(1)).await.len(), 1);
    let of_ada = HistoryFilter { user_id: Some("ada".into()), since: Some(at(2)), ..page(10) };
    assert_eq!(totals(of_ada).await, [("".into(), 1, second)]);
}

#[tokio::test]
async fn old_records_are_pruned_by_the_holder_of_the_lease() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder).await;
    store.append_executed(&[query("a", 1, "ada"), query("b", 2, "ada")]).await.unwrap();
    let lease = store.acquire("prune_query_history", "one", Duration::ZERO).await.unwrap().unwrap();
    assert_eq!(store.prune_executed(at(2), &lease).await.unwrap(), Some(1));
    assert_eq!(ids(&store.executed(&page(10)).await.unwrap()), ["b"]);
    store.acquire("prune_query_history", "two", Duration::from_secs(60)).await.unwrap().unwrap();
    assert_eq!(store.prune_executed(at(9), &lease).await.unwrap(), None);
    assert_eq!(ids(&store.executed(&page(10)).await.unwrap()), ["b"]);
}
