//! The oracle itself against the examples that the semantics states in words.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use serde_json::{Value as Json, json};
use terrane_oracle_tests::case::{read, settings};
use terrane_oracle_tests::oracle::{Code, Outcome, Paths, answer};
use terrane_oracle_tests::value::{Number, Value};
use terrane_oracle_tests::world::World;

/// The table that peers fail: orders of customers who are missing, null, or without a region.
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
    let world = shop();
    let query = read(&query).unwrap();
    let Outcome::Rows(answer) = answer(&world, &Paths::new(&world), &query, &settings()).outcome else {
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
fn the_table_that_peers_fail() {
    let found = rows(json!({"measures": ["orders.revenue", "customers.credit"], "dimensions": ["customers.region"],
        "order_by": [{"field": "customers.region"}]}));
    let wanted = [["APAC", "null", "500"], ["EU", "5", "70"], ["US", "30", "150"], ["null", "27", "30"]];
    assert_eq!(found, wanted.map(|cells| row(&cells)));
    assert_eq!(rows(json!({"measures": ["orders.revenue", "customers.credit"]})), [row(&["62", "750"])]);
}

#[test]
fn a_customer_counts_once_in_each_status_and_not_at_all_where_none_passes() {
    let by_status = json!({"measures": ["customers.count", "customers.credit"], "dimensions": ["orders.status"],
        "order_by": [{"field": "orders.status"}]});
    let wanted = [["open", "2", "130"], ["paid", "2", "170"], ["null", "2", "550"]];
    assert_eq!(rows(by_status.clone()), wanted.map(|cells| row(&cells)));
    let mut paid = by_status;
    paid["filters"] = json!([{"member": "orders.status", "operator": "equals", "value": "paid"}]);
    assert_eq!(rows(paid), [row(&["paid", "2", "170"])]);
}

#[test]
fn a_dimension_out_of_reach_is_refused() {
    let mut world = shop();
    world.cubes[0].joins.clear();
    let query = read(&json!({"measures": ["customers.count"], "dimensions": ["orders.status"]})).unwrap();
    let verdict = answer(&world, &Paths::new(&world), &query, &settings());
    assert_eq!(verdict.outcome, Outcome::Refused([Code::NoJoinPath].into()));
}
