//! Tests the runs of data tests on both engines.

use std::time::Duration;

use terrane_app::ports::data_tests::{DataTestRecords as _, DataTestRun, TestOutcome, TestResult};
use terrane_app::ports::leases::Leases as _;

use super::{at, entry, on_both};

fn run(id: &str, second: i64, requested_by: Option<&str>) -> DataTestRun {
    DataTestRun {
        id: id.into(),
        requested_by: requested_by.map(Into::into),
        created_at: at(second),
        started_at: None,
        ended_at: None,
        results: Vec::new(),
    }
}

fn ended(run: DataTestRun) -> DataTestRun {
    let result = |name: &str, outcome, message: Option<&str>| TestResult {
        name: name.into(),
        file: Some("cubes/orders.yml".into()),
        line: Some(7),
        outcome,
        message: message.map(Into::into),
        duration: Duration::from_micros(1_234),
    };
    let results = vec![
        result("orders.id: unique", TestOutcome::Passed, None),
        result("orders.day: not_null", TestOutcome::Failed, Some("`orders.day` is null in 2 rows: \"\u{0}é\"")),
    ];
    DataTestRun { started_at: Some(at(50)), ended_at: Some(at(51)), results, ..run }
}

#[test]
fn requests_wait_until_their_run_is_written() {
    on_both(|place| async move {
        let store = place.open().await;
        assert_eq!(store.waiting_data_tests().await.unwrap(), None);
        let first = run("a", 1, Some("ada"));
        assert_eq!(store.request_data_tests(&first, entry("request")).await.unwrap(), first);
        // A second request returns the run that is already waiting.
        assert_eq!(store.request_data_tests(&run("b", 2, Some("bob")), entry("request")).await.unwrap(), first);
        assert_eq!(store.waiting_data_tests().await.unwrap(), Some(first.clone()));
        let lease = store.acquire("data_tests", "one", Duration::from_secs(60)).await.unwrap().unwrap();
        assert!(store.write_data_tests(&ended(first.clone()), 100, &lease).await.unwrap());
        assert_eq!(store.waiting_data_tests().await.unwrap(), None);
        let stored = store.data_test_run("a").await.unwrap().unwrap();
        assert_eq!(stored.count(TestOutcome::Failed), 1);
        assert_eq!(stored.results[0], ended(first).results[0]);
        // A server that has lost its lease writes nothing.
        let mut stale = lease.clone();
        stale.fence -= 1;
        assert!(!store.write_data_tests(&ended(run("c", 3, None)), 100, &stale).await.unwrap());
        assert_eq!(store.data_test_run("c").await.unwrap(), None);
    });
}

#[test]
fn oldest_runs_are_deleted() {
    on_both(|place| async move {
        let store = place.open().await;
        let lease = store.acquire("data_tests", "one", Duration::from_secs(60)).await.unwrap().unwrap();
        assert_eq!(store.last_scheduled_data_tests().await.unwrap(), None);
        for (id, second, requested_by) in [("a", 1, None), ("b", 2, None), ("c", 3, Some("ada"))] {
            assert!(store.write_data_tests(&ended(run(id, second, requested_by)), 2, &lease).await.unwrap());
        }
        let runs = store.data_test_runs(10).await.unwrap();
        assert_eq!(runs.iter().map(|run| &*run.id).collect::<Vec<_>>(), ["c", "b"]);
        assert_eq!(store.last_scheduled_data_tests().await.unwrap(), Some(at(2)));
    });
}
