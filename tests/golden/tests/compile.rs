//! Resolves, plans, secures, lowers and prints every file in `cases/`, and compares the result with its snapshot.

use serde_json::json;
use terrane_compiler::{Authorized, compile_totals};
use terrane_golden_tests::case::{cases, environment, models, read_caller, read_query, stages};
use terrane_golden_tests::duckdb_profile;

#[test]
fn every_stage_matches_its_snapshot() {
    let (models, profile) = (models(), duckdb_profile());
    let cases = cases();
    assert!(cases.len() >= 360, "cases went missing");
    for case in cases {
        let model = &models[&case.project];
        let made = match &case.queries[..] {
            [query] => stages(model, &profile, query, &case.caller),
            queries => {
                let each =
                    queries.iter().map(|query| format!("## {query}\n{}", stages(model, &profile, query, &case.caller)));
                each.collect::<Vec<_>>().join("\n")
            }
        };
        insta::with_settings!({ description => case.about, omit_expression => true, snapshot_path => "../snapshots", prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(case.name.as_str(), made);
        });
    }
}

#[test]
fn totals_of_a_running_total_leave_out_rows_without_a_time() {
    let (models, profile) = (models(), duckdb_profile());
    let totals = |project: &str, query: serde_json::Value, caller: serde_json::Value| {
        let (query, caller) = (read_query(&query).unwrap(), read_caller(&caller));
        let authorized = Authorized::without_hooks(&models[project], &caller);
        compile_totals(&profile, &query, &authorized, &environment()).unwrap().unwrap().text
    };
    let by_month = |measures: serde_json::Value| {
        json!({"measures": measures, "totals": true,
               "time_dimensions": [{"dimension": "orders.created_at", "granularity": "month"}]})
    };
    let anonymous = json!({});
    let snapshot = totals("shop", by_month(json!(["orders.revenue_to_date", "orders.count"])), anonymous.clone());
    insta::with_settings!({ omit_expression => true, snapshot_path => "../snapshots", prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("totals_of_a_running_total", snapshot);
    });
    // A date range already excludes rows without a time, and measures without a rolling window count every row.
    let mut ranged = by_month(json!(["orders.revenue_to_date"]));
    ranged["time_dimensions"][0]["date_range"] = json!(["2024-01-01", "2024-06-30"]);
    assert!(!totals("shop", ranged, anonymous.clone()).contains("IS NOT NULL"));
    assert!(!totals("shop", by_month(json!(["orders.count"])), anonymous).contains("IS NOT NULL"));
}
