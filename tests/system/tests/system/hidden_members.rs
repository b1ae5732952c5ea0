//! Tests that hidden members, metrics, pre-aggregations and rows look like missing ones to a caller: two projects
//! that differ only in what is hidden from the caller give equal answers.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use serde_json::{Value, json};
use terrane_system_tests::{Answer, Program, Scratch, Server, request_as};

use crate::BINARY;
use crate::preaggregations::{are_ready, wait_until};

/// A cube whose `cost` and `tax` are hidden from sellers, with the pre-aggregation `secret` of a hidden measure.
const HIDDEN_MEASURES: &str = "\n      - {name: cost, type: sum, sql: id}\n      - {name: paid, type: max, sql: tax}\n      \
    - {name: margin, type: number, sql: \"{revenue} - {cost}\"}";
const HIDDEN_DIMENSIONS: &str = "\n      - {name: tax, type: number, sql: tax}";
const HIDDEN_ROLLUPS: &str = "\n      - {name: secret, measures: [cost], refresh: {every: 1 hour}}";
const HIDDEN_METRICS: &str = "  - {name: cost_rate, type: ratio, numerator: orders.cost, denominator: orders.count}\n  \
    - {name: nested, type: derived, expression: \"cost_rate * 2\"}\n  - {name: taxes, type: simple, expression: orders.paid}\n  \
    - {name: taxed, type: simple, expression: orders.count, filters: [{member: orders.tax, operator: gt, value: 5}]}\n";

pub(crate) struct Shop {
    server: Server,
    seller: String,
    _project: Scratch,
}

impl Shop {
    fn new(has_hidden: bool) -> Shop {
        Shop::with(has_hidden, "")
    }

    /// Starts the server of a project with further settings.
    pub(crate) fn with(has_hidden: bool, further: &str) -> Shop {
        let or = |text: &'static str| if has_hidden { text } else { "" };
        let hidden_rows = if has_hidden { 1_500 } else { 0 };
        let table = format!(
            "CREATE TABLE orders AS SELECT i AS id, 'EU' AS region, i % 100 AS amount, i % 7 AS tax, \
             TIMESTAMP '2026-01-01' + INTERVAL (i) HOUR AS placed_at FROM range(1000) t(i) UNION ALL \
             SELECT 5000 + i, 'US', 1, 1, TIMESTAMP '2025-10-01' + INTERVAL (i) HOUR FROM range({hidden_rows}) t(i)"
        );
        let settings = format!(
            "name: shop\nsecurity: {{anonymous: {{scopes: [read]}}, outgoing: {{allow: [127.0.0.1]}}}}\npre_aggregations: {{enabled: true}}\n\
             warehouse: {{type: duckdb, init: [\"{table}\"]}}\n{further}"
        );
        let cube = format!(
            "cubes:\n  - name: orders\n    sql_table: orders\n    measures:\n      - {{name: count, type: count}}\n      \
             - {{name: revenue, type: sum, sql: amount}}{}\n    dimensions:\n      \
             - {{name: id, type: number, sql: id, primary_key: true}}\n      - {{name: region, type: string, sql: region, meta: {{searchable: true}}}}\n      \
             - {{name: placed_at, type: time, sql: placed_at}}{}\n    pre_aggregations:\n      \
             - {{name: daily, measures: [count], dimensions: [region], time_dimension: placed_at, granularity: day, \
             partition_granularity: month, refresh: {{every: 1 hour}}}}{}\n",
            or(HIDDEN_MEASURES),
            or(HIDDEN_DIMENSIONS),
            or(HIDDEN_ROLLUPS)
        );
        let metrics = format!(
            "metrics:\n  - {{name: mean_amount, type: ratio, numerator: orders.revenue, denominator: orders.count}}\n{}",
            or(HIDDEN_METRICS)
        );
        let deny = if has_hidden { ", deny: [cost, tax]" } else { "" };
        let policies = format!(
            "policies:\n  - {{name: own, cubes: [orders], when: {{roles: [seller]}}, row_filter: \"{{orders}}.region = 'EU'\"{deny}}}\n"
        );
        let project = Scratch::empty().with("service_project.yml", &settings).with("cubes/orders.yml", &cube);
        let project = project.with("metrics/m.yml", &metrics).with("policies/p.yml", &policies);
        let arguments = ["--name", "ada", "--roles", "seller", "--scopes", "read,write", "--json"];
        let made = Program::new(BINARY, &["auth", "create-key"], project.path()).arguments(&arguments).run().unwrap();
        let made: Value = serde_json::from_str(&made.stdout).unwrap_or_else(|_| panic!("{}", made.stderr));
        let seller = made["key"].as_str().unwrap().to_owned();
        let server = Program::new(BINARY, &["serve"], project.path()).arguments(&["--port", "0"]).serve().unwrap();
        Shop { server, seller, _project: project }
    }

    pub(crate) fn ask(&self, method: &str, path: &str, body: &Value) -> Answer {
        let body = (*body != Value::Null).then(|| body.to_string());
        request_as(self.server.address, Some(&self.seller), method, path, body.as_deref()).unwrap()
    }

    /// Returns the status and the body of an answer without what differs between equal requests.
    fn comparable(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let answer = self.ask(method, path, body);
        let mut body = answer.json().unwrap();
        without_noise(&mut body);
        (answer.status, body)
    }
}

fn without_noise(value: &mut Value) {
    const NOISE: [&str; 21] = [
        "correlation_id",
        "correlationId",
        "id",
        "job_id",
        "poll_url",
        "created_at",
        "created_by",
        "updated_at",
        "due_at",
        "started_at",
        "ended_at",
        "published_at",
        "checked_at",
        "next_refresh_at",
        "built_at",
        "as_of",
        "cache_key",
        "load_time_ms",
        "compile_time_ms",
        "sql",
        "query",
    ];
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !NOISE.contains(&name.as_str()) && !name.ends_with("_ms"));
            fields.values_mut().for_each(without_noise);
        }
        Value::Array(items) => items.iter_mut().for_each(without_noise),
        _ => {}
    }
}

/// Returns one query for each place in which a metric can be named.
fn queries(name: &str) -> Vec<Value> {
    vec![
        json!({"metrics": [name]}),
        json!({"measures": [name]}),
        json!({"metrics": [name], "dimensions": ["orders.nothing"]}),
        json!({"dimensions": [name], "measures": ["orders.count"]}),
        json!({"measures": ["orders.count"], "order_by": [{"field": name}]}),
        json!({"measures": ["orders.count"], "filters": [{"member": name, "operator": "gt", "value": 1}]}),
        json!({"cube": "orders", "measures": [name]}),
    ]
}

#[test]
fn hidden_names_are_answered_as_unknown_ones() {
    let (with, without) = (Shop::new(true), Shop::new(false));
    let names = ["cost_rate", "nested", "taxes", "taxed", "orders.margin", "orders.cost"];
    for query in names.into_iter().flat_map(queries) {
        for path in ["/api/v1/query", "/api/v1/query/sql", "/api/v1/query/explain", "/api/v1/query/async"] {
            let (own, other) = (with.comparable("POST", path, &query), without.comparable("POST", path, &query));
            assert_eq!(own, other, "{path} {query}");
            assert_eq!(own.0, 400, "{path} {query}: {}", own.1);
        }
    }
    for name in names {
        for path in ["/api/v1/optimization/predict-cost", "/api/v1/optimization/check-guardrails"] {
            for body in [json!({"query": {"metrics": [name]}}), json!({"metrics": [name]})] {
                let (own, other) = (with.comparable("POST", path, &body), without.comparable("POST", path, &body));
                assert_eq!(own, other, "{path} {body}");
            }
        }
        for document in ["{ query(metrics: [\"N\"]) { data } }", "{ explain(metrics: [\"N\"]) }"] {
            let body = json!({"query": document.replace('N', name)});
            let (own, other) =
                (with.comparable("POST", "/graphql", &body), without.comparable("POST", "/graphql", &body));
            assert_eq!(own, other, "{body}");
            assert!(own.1["errors"].is_array(), "{}", own.1);
        }
        // A formula is accepted and read back like one with an unknown word.
        if !name.contains('.') {
            let term = json!({"name": name, "definition": "d", "formula": format!("{{{name}}}")});
            let path = "/api/v1/governance/glossary/terms";
            let (own, other) = (with.comparable("POST", path, &term), without.comparable("POST", path, &term));
            assert_eq!((own.0, &own.1["formula"]), (201, &term["formula"]), "{}", own.1);
            assert_eq!(own, other);
        }
    }
}

#[test]
fn hidden_rows_and_members_change_no_status_and_no_count() {
    let (with, without) = (Shop::new(true), Shop::new(false));
    for shop in [&with, &without] {
        wait_until(shop.server.address, are_ready);
    }
    let statuses =
        [&with, &without].map(|shop| shop.comparable("GET", "/api/v1/preaggregations/status", &Value::Null).1);
    assert_eq!(statuses[0], statuses[1]);
    let daily = &statuses[0]["pre_aggregations"][0];
    assert_eq!((&daily["name"], &daily["state"]), (&json!("daily"), &json!("ready")), "{daily}");
    assert_eq!((&daily["partitions"], &daily["build"]["partitions_total"]), (&json!([]), &Value::Null), "{daily}");
    let document = json!({"query": "{ preAggregations { name partitions { start } build { partitionsTotal } } }"});
    let answers = [&with, &without].map(|shop| shop.comparable("POST", "/graphql", &document).1);
    assert_eq!(answers[0], answers[1]);
    // Callers without a row filter see the partitions of all rows.
    let whole = wait_until(with.server.address, are_ready);
    assert!(whole[0]["partitions"].as_array().unwrap().len() > 3, "{whole:?}");
    for query in [json!({"measures": ["orders.revenue"]}), json!({"measures": ["orders.count"]})] {
        for path in ["/api/v1/query", "/api/v1/query/explain"] {
            let (own, other) = (with.comparable("POST", path, &query), without.comparable("POST", path, &query));
            assert_eq!(own.0, 200, "{}", own.1);
            assert_eq!(own.1["meta"]["pre_aggregation"], other.1["meta"]["pre_aggregation"], "{path} {query}");
            assert!(!own.1.to_string().contains("secret"), "{path} {query}: {}", own.1);
        }
    }
    for path in ["/api/v1/unified/compile", "/api/v1/unified/load"] {
        let (own, other) = (with.comparable("POST", path, &json!({})), without.comparable("POST", path, &json!({})));
        for field in ["metric_count", "cube_count", "graph_nodes", "graph_edges", "cubes"] {
            assert_eq!(own.1[field], other.1[field], "{path} {field}");
        }
    }
}
