//! Tests the oracle with small worlds and answers that were computed by hand.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use serde_json::{Value as Json, json};
use terrane_oracle_tests::case::{read, settings};
use terrane_oracle_tests::oracle::{Code, Outcome, Paths, answer};
use terrane_oracle_tests::value::{Number, Value};
use terrane_oracle_tests::world::World;

/// Returns a world in which other semantic layers return wrong rows: orders whose customer is missing, null, or without
/// a region.
fn shop() -> World {
    let column = |name: &str, ty: &str| json!({"name": name, "ty": ty});
    let own = |column: usize| json!({"Column": {"cube": null, "column": column}});
    let int = |value: i64| json!({"Int": value});
    let text = |value: &str| json!({"Text": value});
    let sum = |name: &str, column: usize| json!({"name": name, "kind": {"Aggregate": {"function": "Sum", "argument": own(column)}}});
    let count = json!({"name": "count", "kind": {"Aggregate": {"function": "Count", "argument": null}}});
    let customers = json!({
        "name": "customers", "table": "customers",
        "columns": [column("id", "Small"), column("region", "Text"), column("credit", "Small")],
        "rows": [
            [int(1), text("US"), int(100)], [int(2), text("US"), int(50)], [int(3), text("EU"), int(70)],
            [int(4), "Null", int(30)], [int(5), text("APAC"), int(500)],
        ],
        "dimensions": [
            {"name": "id", "kind": "Number", "sql": own(0), "primary_key": true},
            {"name": "region", "kind": "String", "sql": own(1)},
        ],
        "measures": [count, sum("credit", 2)],
        "segments": [],
        "joins": [{"name": "orders", "cube": null, "relationship": "OneToMany", "left": 0, "right": 1}],
    });
    let orders = json!({
        "name": "orders", "table": "orders",
        "columns": [column("amount", "Small"), column("customer_id", "Small"), column("status", "Text")],
        "rows": [
            [int(10), int(1), text("paid")], [int(20), int(1), text("open")], [int(5), int(3), text("paid")],
            [int(7), int(4), text("open")], [int(9), "Null", text("paid")], [int(11), int(99), text("open")],
        ],
        "dimensions": [{"name": "status", "kind": "String", "sql": own(2)}],
        "measures": [sum("revenue", 0)],
        "segments": [],
        "joins": [{"name": "customers", "cube": null, "relationship": "ManyToOne", "left": 1, "right": 0}],
    });
    serde_json::from_value(json!({"cubes": [customers, orders], "metrics": []})).unwrap()
}

fn rows(query: Json) -> Vec<Vec<Option<String>>> {
    rows_of(&shop(), query)
}

fn rows_of(world: &World, query: Json) -> Vec<Vec<Option<String>>> {
    let query = read(&query).unwrap();
    let Outcome::Rows(answer) = answer(world, &Paths::new(world), &query, &settings()).outcome else {
        panic!("no rows")
    };
    let text = |value: &Value| match value {
        Value::Null => None,
        Value::Text(text) => Some(text.clone()),
        Value::Number(Number::Exact(value, 0)) => Some(value.to_string()),
        other => panic!("{other:?}"),
    };
    answer.rows.iter().map(|row| row.iter().map(text).collect()).collect()
}

fn row(cells: &[&str]) -> Vec<Option<String>> {
    cells.iter().map(|cell| (*cell != "null").then(|| (*cell).to_owned())).collect()
}

#[test]
fn measures_of_two_facts_do_not_multiply() {
    let found = rows(json!({"measures": ["orders.revenue", "customers.credit"], "dimensions": ["customers.region"],
        "order_by": [{"field": "customers.region"}]}));
    let wanted = [["APAC", "null", "500"], ["EU", "5", "70"], ["US", "30", "150"], ["null", "27", "30"]];
    assert_eq!(found, wanted.map(|cells| row(&cells)));
    assert_eq!(rows(json!({"measures": ["orders.revenue", "customers.credit"]})), [row(&["62", "750"])]);
}

#[test]
fn customer_is_counted_once_per_matching_status() {
    let by_status = json!({"measures": ["customers.count", "customers.credit"], "dimensions": ["orders.status"],
        "order_by": [{"field": "orders.status"}]});
    let wanted = [["open", "2", "130"], ["paid", "2", "170"], ["null", "2", "550"]];
    assert_eq!(rows(by_status.clone()), wanted.map(|cells| row(&cells)));
    let mut paid = by_status;
    paid["filters"] = json!([{"member": "orders.status", "operator": "equals", "value": "paid"}]);
    assert_eq!(rows(paid), [row(&["paid", "2", "170"])]);
}

#[test]
fn unreachable_dimension_is_rejected() {
    let mut world = shop();
    world.cubes[0].joins.clear();
    let query = read(&json!({"measures": ["customers.count"], "dimensions": ["orders.status"]})).unwrap();
    let verdict = answer(&world, &Paths::new(&world), &query, &settings());
    assert_eq!(verdict.outcome, Outcome::Refused([Code::NoJoinPath].into()));
}

/// Returns a world of visits and letters, whose cubes have different times.
fn clinic() -> World {
    let column = |name: &str, ty: &str| json!({"name": name, "ty": ty});
    let own = |column: usize| json!({"Column": {"cube": null, "column": column}});
    let day = |text: &str| {
        let first: jiff::civil::Date = "1970-01-01".parse().unwrap();
        json!({"Day": first.until(text.parse::<jiff::civil::Date>().unwrap()).unwrap().get_days()})
    };
    let visit = |at: &str, fee: i64, patient: &str| json!([day(at), {"Int": fee}, {"Text": patient}]);
    let sum = json!({"function": "Sum", "argument": own(1)});
    let count = json!({"name": "count", "kind": {"Aggregate": {"function": "Count", "argument": null}}});
    let time = |name: &str| json!({"name": name, "kind": "Time", "sql": own(0)});
    let visits = json!({
        "name": "visits", "table": "visits",
        "columns": [column("at", "Date"), column("fee", "Small"), column("patient", "Text")],
        "rows": [
            visit("2024-01-31", 1, "Ann"), visit("2024-02-03", 2, "Ann"), visit("2024-02-29", 4, "Bob"),
            visit("2024-03-30", 8, "Bob"), visit("2023-02-28", 16, "Ann"),
        ],
        "dimensions": [time("at"), {"name": "patient", "kind": "String", "sql": own(2)}],
        "measures": [
            count, {"name": "fees", "kind": {"Aggregate": sum}}, {"name": "ever", "kind": {"RunningTotalOfAll": sum}},
            {"name": "patients", "kind": {"Aggregate": {"function": "CountDistinct", "argument": own(2)}}},
            {"name": "fees_28_days", "kind": {"Rolling": [sum, {"trailing": {"Units": [28, "day"]}}]}},
            {"name": "month_before", "kind": {"Rolling": [sum, {"trailing": {"Units": [1, "month"]}, "is_from_start": true}]}},
            {"name": "patients_2_months", "kind": {"Rolling": [
                {"function": "CountDistinct", "argument": own(2)}, {"trailing": {"Units": [2, "month"]}},
            ]}},
        ],
        "segments": [], "joins": [],
    });
    let letters = json!({
        "name": "letters", "table": "letters", "columns": [column("sent", "Date")],
        "rows": [[day("2024-02-10")], [day("2024-05-01")]],
        "dimensions": [time("sent")], "measures": [count], "segments": [], "joins": [],
    });
    serde_json::from_value(json!({"cubes": [visits, letters], "metrics": []})).unwrap()
}

#[test]
fn facts_of_two_cubes_share_one_time_axis() {
    let query = json!({"measures": ["visits.count", "letters.count"], "dimensions": ["metric_time.month"],
        "filters": [{"member": "metric_time", "operator": "gte", "value": "2024-02"}]});
    let wanted = [["2024-02", "2", "1"], ["2024-03", "1", "0"], ["2024-05", "0", "1"]];
    assert_eq!(rows_of(&clinic(), query), wanted.map(|cells| row(&cells)));
}

#[test]
fn comparison_aligns_months_of_the_previous_year() {
    let query = json!({"measures": ["visits.fees"], "compare_range": {"shift": "1 year"}, "time_dimensions":
        [{"dimension": "visits.at", "granularity": "month", "date_range": ["2024-01-01", "2024-02-29"]}]});
    let wanted = [["2024-01", "1", "null"], ["2024-02", "6", "16"]];
    assert_eq!(rows_of(&clinic(), query), wanted.map(|cells| row(&cells)));
    // The longer month has days that the shorter month lacks. They are shown after its last day.
    let query = json!({"measures": ["visits.fees"], "compare_range": ["2024-02-28", "2024-03-31"], "time_dimensions":
        [{"dimension": "visits.at", "granularity": "day", "date_range": ["2024-01-30", "2024-02-03"]}]});
    let wanted = [["2024-01-31", "1", "4"], ["2024-02-03", "2", "null"], ["2024-03-01", "null", "8"]];
    assert_eq!(rows_of(&clinic(), query), wanted.map(|cells| row(&cells)));
}

#[test]
fn running_totals_include_history_before_the_range() {
    let query = json!({"measures": ["visits.ever", "visits.count"], "dimensions": ["visits.patient"], "time_dimensions":
        [{"dimension": "visits.at", "granularity": "month", "date_range": ["2024-02-01", "2024-03-31"]}]});
    let wanted = [
        ["Ann", "2024-02", "19", "1"],
        ["Bob", "2024-02", "4", "1"],
        ["Ann", "2024-03", "19", "0"],
        ["Bob", "2024-03", "12", "1"],
    ];
    assert_eq!(rows_of(&clinic(), query), wanted.map(|cells| row(&cells)));
}

#[test]
fn mask_replaces_a_member_and_closes_others_over_its_column() {
    let mut world = clinic();
    world.mask_policies = serde_json::from_value(json!([
        {"cube": "visits", "masks": [["patient", "Partial"]], "deny": ["fees"]},
    ]))
    .unwrap();
    let shown = json!({"measures": ["visits.count"], "dimensions": ["visits.patient"]});
    let wanted = [["A***", "3"], ["B***", "2"]];
    assert_eq!(rows_of(&world, shown.clone()), wanted.map(|cells| row(&cells)));
    let refused = |world: &World, query: Json| {
        let verdict = answer(world, &Paths::new(world), &read(&query).unwrap(), &settings());
        match verdict.outcome {
            Outcome::Refused(codes) => codes.into_iter().collect::<Vec<_>>(),
            _ => Vec::new(),
        }
    };
    let mut filtered = shown.clone();
    filtered["filters"] = json!([{"member": "visits.patient", "operator": "equals", "value": "Ann"}]);
    let mut ordered = shown;
    ordered["order_by"] = json!([{"field": "visits.patient"}]);
    let aggregated = json!({"measures": ["visits.patients"]});
    for query in [filtered, ordered, aggregated.clone()] {
        assert_eq!(refused(&world, query), [Code::Forbidden]);
    }
    assert_eq!(refused(&world, json!({"measures": ["visits.fees"]})), [Code::InvalidMeasure]);
    world.mask_policies[0].allow_aggregate = true;
    assert_eq!(rows_of(&world, aggregated), [row(&["2"])]);
}

#[test]
fn window_reads_rows_before_the_range() {
    let by = |granularity: &str, range: [&str; 2]| json!([{"dimension": "visits.at", "granularity": granularity, "date_range": range}]);
    // The 28 days before March 1 begin on February 2, and the 28 days before April 1 on March 4.
    let query = json!({"measures": ["visits.fees_28_days"], "dimensions": ["visits.patient"],
        "time_dimensions": by("month", ["2024-02-01", "2024-03-31"])});
    let wanted =
        [["Ann", "2024-02", "2"], ["Bob", "2024-02", "4"], ["Ann", "2024-03", "null"], ["Bob", "2024-03", "8"]];
    assert_eq!(rows_of(&clinic(), query), wanted.map(|cells| row(&cells)));
    // One month before March 30 and before March 31 is February 29.
    let query = json!({"measures": ["visits.month_before"],
        "time_dimensions": by("day", ["2024-03-29", "2024-03-31"])});
    let wanted = [["2024-03-29", "4"], ["2024-03-30", "4"], ["2024-03-31", "12"]];
    assert_eq!(rows_of(&clinic(), query), wanted.map(|cells| row(&cells)));
    // A patient with two visits counts once.
    let query = json!({"measures": ["visits.patients_2_months", "visits.count"],
        "time_dimensions": by("month", ["2024-01-01", "2024-04-30"])});
    let wanted = [["2024-01", "1", "1"], ["2024-02", "2", "2"], ["2024-03", "2", "1"], ["2024-04", "1", "0"]];
    assert_eq!(rows_of(&clinic(), query), wanted.map(|cells| row(&cells)));
}

#[test]
fn windows_without_a_range_end_with_the_last_visit() {
    let query = json!({"measures": ["visits.fees_28_days"], "dimensions": ["visits.patient", "visits.at.quarter"]});
    let wanted = [
        ["Ann", "2023-Q1", "null"],
        ["Ann", "2023-Q2", "null"],
        ["Ann", "2023-Q3", "null"],
        ["Ann", "2023-Q4", "null"],
        ["Ann", "2024-Q1", "null"],
        ["Bob", "2024-Q1", "8"],
    ];
    assert_eq!(rows_of(&clinic(), query), wanted.map(|cells| row(&cells)));
    let query = read(&json!({"measures": ["visits.fees_28_days"]})).unwrap();
    let world = clinic();
    let verdict = answer(&world, &Paths::new(&world), &query, &settings());
    assert_eq!(verdict.outcome, Outcome::Refused([Code::InvalidQuery].into()));
}
