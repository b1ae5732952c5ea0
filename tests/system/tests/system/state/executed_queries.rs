//! Tests the history of executed queries on both engines.

use std::time::Duration;

use terrane_app::ports::executed_queries::{
    ExecutedQueries as _, ExecutedQuery, HistoryFilter, HistoryPosition, QueryOwner,
};
use terrane_app::ports::leases::Leases as _;

use super::{at, on_both};

fn query(id: &str, second: i64, tenant: Option<&str>) -> ExecutedQuery {
    ExecutedQuery {
        id: id.into(),
        queries: 1,
        at: at(second),
        query_hash: "aa".into(),
        cube: "orders".into(),
        user_id: "ada".into(),
        tenant: tenant.map(Into::into),
        kind: "rest".into(),
        surface: "xmla".into(),
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

#[test]
fn history_is_read_aggregated_and_pruned() {
    on_both(|place| async move {
        let store = place.open().await;
        let queries = [query("a", 1, None), query("b", 2, None), query("c", 2, Some("acme"))];
        store.append_executed(&queries).await.unwrap();
        store.append_executed(&queries).await.unwrap();
        let page = |before: Option<HistoryPosition>| HistoryFilter { before, limit: 2, ..HistoryFilter::default() };
        let first = store.executed(&page(None)).await.unwrap();
        assert_eq!(first, [queries[2].clone(), queries[1].clone()]);
        let position = HistoryPosition { at: first[1].at, id: first[1].id.clone() };
        assert_eq!(store.executed(&page(Some(position))).await.unwrap(), [queries[0].clone()]);
        let owner = Some(QueryOwner { user_id: "ada".into(), tenant: Some("acme".into()) });
        let owned = HistoryFilter { owner, ..page(None) };
        assert_eq!(store.executed(&owned).await.unwrap(), [queries[2].clone()]);
        let of_tenant = |tenant: Option<&str>| HistoryFilter { tenant: Some(tenant.map(Into::into)), ..page(None) };
        assert_eq!(store.executed(&of_tenant(Some("acme"))).await.unwrap(), [queries[2].clone()]);
        assert_eq!(store.executed(&of_tenant(None)).await.unwrap().len(), 2);
        let of_cube = |cube: &str| HistoryFilter { cube: Some(cube.into()), is_computed: true, ..page(None) };
        assert_eq!(store.executed(&of_cube("orders")).await.unwrap().len(), 2);
        assert_eq!(store.executed(&of_cube("visits")).await.unwrap(), []);
        let totals = store.statement_totals(at(2), 10).await.unwrap();
        assert_eq!((totals.len(), totals[0].queries, totals[0].cost_micros), (1, 2, Some(20)));
        let lease = store.acquire("prune_query_history", "one", Duration::from_secs(60)).await.unwrap().unwrap();
        assert_eq!(store.prune_executed(at(2), &lease).await.unwrap(), Some(1));
        assert_eq!(store.executed(&page(None)).await.unwrap().len(), 2);
    });
}
