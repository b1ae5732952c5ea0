//! Tests a real hook over a real warehouse: data that the hook hides never leaves the server, and queries to which
//! the obligations of the hook cannot be applied are refused.
//!
//! The project's own policies are the oracle: a hook with the filters of a policy must lead to the same answers, byte
//! for byte. Hidden rows contain a string that no answer may contain.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::path::PathBuf;

use serde_json::{Value, json};
use terrane_system_tests::{Program, Scratch, Server, download, path, request};

use crate::{BINARY, program, run};

/// A string that every hidden row contains.
const HIDDEN: &str = "HIDDEN";

const WAREHOUSE: &str = r#"name: shop
security: {anonymous: {scopes: [read]}}
warehouse:
  type: duckdb
  init:
    - "CREATE TABLE customers AS SELECT * FROM (VALUES (1, 'Ada', 'EU', DATE '1990-05-17'), (2, 'Bo HIDDEN', 'US', DATE '1991-06-18'), (3, 'Cyd', 'EU', NULL)) AS t(id, name, region, born)"
    - "CREATE TABLE orders AS SELECT * FROM (VALUES (1, 1, 1, 'EU', 'open', 10, DATE '2024-01-01'), (2, 1, 2, 'EU', 'paid', 20, DATE '2024-02-01'), (3, 2, 1, 'US', 'HIDDEN', 1000, DATE '2024-02-02'), (4, 3, 3, NULL, 'HIDDEN', 2000, DATE '2024-03-01'), (5, 3, NULL, 'EU', 'open', 40, DATE '2024-03-02')) AS t(id, customer_id, giver_id, region, status, amount, day)"
    - "CREATE TABLE lines AS SELECT * FROM (VALUES (1, 1, 'pen'), (2, 1, 'ink'), (3, 2, 'pen'), (4, 3, 'ink'), (5, 4, 'pen'), (6, 5, 'ink')) AS t(id, order_id, product)"
"#;

const CUBES: &str = r#"cubes:
  - name: customers
    sql_table: customers
    joins:
      - {name: orders, relationship: one_to_many, sql: "{customers}.id = {orders}.customer_id"}
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: name, type: string, sql: name}
      - {name: region, type: string, sql: region}
      - {name: born, type: time, timezone: none, sql: born}
      - {name: initial, type: string, sql: "left(name, 1)"}
    measures:
      - {name: count, type: count}
      - {name: names, type: count_distinct, sql: name}
  - name: orders
    sql_table: orders
    joins:
      - {name: customers, relationship: many_to_one, sql: "{orders}.customer_id = {customers}.id"}
      - {name: giver, cube: customers, relationship: many_to_one, sql: "{orders}.giver_id = {giver}.id"}
      - {name: lines, relationship: one_to_many, sql: "{orders}.id = {lines}.order_id"}
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: region, type: string, sql: region}
      - {name: status, type: string, sql: status}
      - {name: day, type: time, timezone: none, sql: day, primary_time: true}
      - {name: buyer, type: string, sql: "{customers}.name"}
    measures:
      - {name: count, type: count}
      - {name: revenue, type: sum, sql: amount}
      - {name: largest, type: max, sql: amount}
      - {name: last_status, type: max, sql: status}
      - {name: to_date, type: running_total, sql: amount}
    segments:
      - {name: open, sql: "{orders}.status = 'open'"}
  - name: lines
    sql_table: lines
    joins:
      - {name: orders, relationship: many_to_one, sql: "{lines}.order_id = {orders}.id"}
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: product, type: string, sql: product}
    measures:
      - {name: count, type: count}
  - name: all_orders
    sql: "SELECT * FROM orders"
    dimensions:
      - {name: status, type: string, sql: status}
    measures:
      - {name: count, type: count}
metrics:
  - {name: average, type: ratio, numerator: orders.revenue, denominator: orders.count}
"#;

/// Policies of the project that equal the obligations of the hook.
const POLICIES: &str = "policies:\n  - {name: orders, cubes: [orders], row_filter: \"{orders}.region = 'EU'\"}\n  \
    - {name: customers, cubes: [customers], row_filter: \"{customers}.region = 'EU'\"}\n";

fn filters() -> Value {
    json!({"filters": [
        {"cube": "orders", "member": "region", "value": "EU"},
        {"cube": "customers", "member": "region", "value": "EU"},
    ]})
}

fn masks(kind: &str) -> Value {
    json!({"masks": [
        {"cube": "customers", "member": "name", "kind": kind},
        {"cube": "orders", "member": "status", "kind": kind},
    ]})
}

fn component() -> PathBuf {
    path(".prepared/components/examples/policy-probe.wasm").canonicalize().expect("`cargo xtask components` makes it")
}

/// Creates the shop with a hook.
fn governed(extra: &Value, config: &Value) -> Scratch {
    let mut plugin = json!({
        "id": "policy-probe", "role": "governance", "source": component(), "enforcement": "required", "config": config,
    });
    plugin.as_object_mut().unwrap().extend(extra.as_object().cloned().unwrap_or_default());
    let settings = format!("{WAREHOUSE}plugins: [{plugin}]\n");
    Scratch::empty().with("service_project.yml", &settings).with("cubes/shop.yml", CUBES)
}

fn serve(project: &Scratch) -> Server {
    program("serve", project.path()).arguments(&["--port", "0"]).serve().expect("the server starts")
}

/// Returns queries of every kind.
fn queries() -> Vec<Value> {
    vec![
        json!({"measures": ["orders.count", "orders.revenue", "orders.largest", "orders.last_status"]}),
        json!({"measures": ["orders.count"], "dimensions": ["orders.status"], "totals": true}),
        json!({"measures": ["orders.count"], "dimensions": ["orders.status"], "limit": 5, "offset": 100}),
        json!({"dimensions": ["orders.status", "orders.region"]}),
        json!({"metrics": ["average"], "dimensions": ["orders.region"], "totals": true}),
        json!({"measures": ["orders.revenue"], "dimensions": ["customers.name"]}),
        json!({"measures": ["orders.revenue"], "dimensions": ["giver.name", "customers.name"]}),
        json!({"measures": ["orders.count"], "dimensions": ["orders.buyer"]}),
        json!({"measures": ["customers.count"], "dimensions": ["orders.status"]}),
        json!({"measures": ["customers.count"], "filters": [{"member": "orders.status", "operator": "equals", "value": HIDDEN}]}),
        json!({"measures": ["lines.count"], "dimensions": ["lines.product"], "filters": [{"member": "orders.region", "operator": "notEquals", "value": "EU"}]}),
        json!({"measures": ["lines.count"], "dimensions": ["orders.status"]}),
        json!({"measures": ["orders.count"], "filters": [{"member": "lines.product", "operator": "equals", "value": "pen"}]}),
        json!({"measures": ["orders.count", "lines.count", "customers.count"], "dimensions": ["customers.region"], "totals": true}),
        json!({"measures": ["orders.revenue"], "dimensions": ["lines.product"]}),
        json!({"dimensions": ["orders.id", "orders.status", "customers.name"], "ungrouped": true, "cube": "orders"}),
        json!({"dimensions": ["customers.name"], "ungrouped": true, "cube": "customers"}),
        json!({"measures": ["orders.revenue"], "time_dimensions": [{"dimension": "orders.day", "granularity": "month", "date_range": ["2024-02-01", "2024-03-31"]}], "compare_range": {"shift": "1 month"}}),
        json!({"measures": ["orders.revenue"], "time_dimensions": [{"dimension": "orders.day", "granularity": "month", "date_range": ["2024-01-01", "2024-04-30"]}], "fill_gaps": true}),
        json!({"measures": ["orders.to_date"], "time_dimensions": [{"dimension": "orders.day", "granularity": "month"}]}),
        json!({"measures": ["orders.count"], "dimensions": ["customers.name"], "order_by": [{"field": "orders.largest", "direction": "desc"}], "limit": 1}),
        json!({"measures": ["orders.count"], "dimensions": ["orders.status"], "filters": [{"member": "orders.revenue", "operator": "gt", "value": 30}]}),
        json!({"measures": ["orders.count"], "segments": ["orders.open"]}),
        json!({"measures": ["orders.count"], "dimensions": ["orders.status"], "filters": [{"member": "customers.count", "operator": "gte", "value": 1}]}),
        json!({"measures": ["customers.count"], "dimensions": ["customers.born.month"]}),
    ]
}

/// Returns the parts of an answer that must be equal: rows and counts.
fn shown(answer: &Value) -> Value {
    json!([answer["data"], answer["meta"]["total_rows"], answer["meta"]["totals"], answer["meta"]["truncated"]])
}

#[test]
fn hook_filters_like_a_policy_on_every_surface() {
    let policies = Scratch::empty().with("service_project.yml", WAREHOUSE).with("cubes/shop.yml", CUBES);
    let by_policy = serve(&policies.with("policies/shop.yml", POLICIES));
    let by_hook = serve(&governed(&json!({}), &filters()));
    let mut compared = 0;
    for query in queries() {
        let text = query.to_string();
        let ask = |server: &Server| request(server.address, "POST", "/api/v1/query", Some(&text)).unwrap();
        let (expected, found) = (ask(&by_policy), ask(&by_hook));
        assert_eq!(expected.status, found.status, "{query}: {} {}", expected.body, found.body);
        assert_eq!(found.status, 200, "{query}: {}", found.body);
        assert_eq!(shown(&expected.json().unwrap()), shown(&found.json().unwrap()), "{query}");
        let address: String = form(&text);
        let by_address = request(by_hook.address, "GET", &format!("/api/v1/query?query={address}"), None).unwrap();
        assert_eq!(shown(&found.json().unwrap()), shown(&by_address.json().unwrap()), "{query}");
        for accept in ["application/json", "text/csv", "application/vnd.apache.arrow.stream"] {
            let [expected, found] = [&by_policy, &by_hook].map(|server| {
                let answer = download(server.address, accept, "/api/v1/query", &text).unwrap();
                let start = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
                answer[start..].to_vec()
            });
            let holds_hidden = found.windows(HIDDEN.len()).any(|window| window == HIDDEN.as_bytes());
            let asks_for_it = accept == "application/json" && text.contains(HIDDEN);
            assert!(!holds_hidden || asks_for_it, "{accept}: {query}");
            if accept != "application/json" {
                assert_eq!(expected, found, "{accept}: {query}");
            }
        }
        for inline in [true, false] {
            let mut asked = query.clone();
            asked["inline"] = inline.into();
            let sql = request(by_hook.address, "POST", "/api/v1/query/sql", Some(&asked.to_string())).unwrap();
            assert!(sql.body.contains("EU"), "{query}: {}", sql.body);
        }
        let explained = request(by_hook.address, "POST", "/api/v1/query/explain", Some(&text)).unwrap();
        assert!(explained.body.contains("EU") && explained.body.contains("policy-probe"), "{}", explained.body);
        compared += 1;
    }
    assert!(compared > 20);
    // This cube is over the same table, and the hook has no obligation for it.
    let around = json!({"measures": ["all_orders.count"], "dimensions": ["all_orders.status"]}).to_string();
    let refused = request(by_hook.address, "POST", "/api/v1/query", Some(&around)).unwrap();
    assert_eq!(refused.status, 403, "{}", refused.body);
}

/// Percent-encodes a string.
fn form(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[test]
fn masked_member_shows_only_its_mask() {
    for (kind, expected) in [
        ("null", Some(json!(null))),
        ("fixed", Some(json!("hidden"))),
        ("partial", Some(json!("A***"))),
        ("named", Some(json!(null))),
        ("year", Some(json!(null))),
        ("drop", None),
    ] {
        let project = governed(&json!({}), &masks(kind));
        let ask = |query: &Value| run("query", project.path(), &[&query.to_string(), "--json"]);
        let shown = ask(
            &json!({"dimensions": ["customers.name"], "filters": [{"member": "customers.id", "operator": "equals", "value": 1}]}),
        );
        match expected {
            Some(expected) => {
                let answer: Value = serde_json::from_str(&shown.stdout).expect(&shown.stderr);
                assert_eq!(answer[0]["customers.name"], expected, "{kind}");
            }
            None => assert_eq!(shown.code, Some(1), "{kind}: {}", shown.stdout),
        }
        for query in [
            json!({"measures": ["customers.count"], "filters": [{"member": "customers.name", "operator": "startsWith", "value": "B"}]}),
            json!({"measures": ["customers.count"], "dimensions": ["customers.initial"]}),
            json!({"measures": ["customers.names"]}),
            json!({"measures": ["orders.last_status"]}),
            json!({"measures": ["orders.count"], "dimensions": ["orders.buyer"]}),
            json!({"measures": ["orders.count"], "segments": ["orders.open"]}),
            json!({"measures": ["customers.count"], "dimensions": ["customers.name"], "order_by": [{"field": "customers.name"}]}),
            json!({"measures": ["orders.count"], "filters": [{"member": "giver.name", "operator": "set"}]}),
            json!({"measures": ["all_orders.count"], "dimensions": ["all_orders.status"]}),
        ] {
            let output = ask(&query);
            assert_eq!(output.code, Some(1), "{kind}: {query}: {}", output.stdout);
            assert!(output.stdout.is_empty(), "{kind}: {query}: {}", output.stdout);
        }
        let all = ask(&json!({"dimensions": ["giver.name"], "measures": ["orders.count"]}));
        assert!(!all.stdout.contains(HIDDEN) && !all.stdout.contains("Ada"), "{kind}: {}", all.stdout);
    }
    let project = governed(&json!({}), &json!({"mask": {"cube": "customers", "member": "born", "kind": "year"}}));
    let query = r#"{"dimensions": ["customers.born"], "filters": [{"member": "customers.id", "operator": "equals", "value": 1}]}"#;
    let output = run("query", project.path(), &[query, "--json"]);
    assert!(output.stdout.contains("1990-01-01") && !output.stdout.contains("05-17"), "{}", output.stdout);
    let query = r#"{"dimensions": ["customers.born.day"], "measures": ["customers.count"]}"#;
    let output = run("query", project.path(), &[query, "--json"]);
    assert!(output.stdout.contains("1990-01-01") && !output.stdout.contains("05-17"), "{}", output.stdout);
}

/// Checks that a query, its SQL and its explanation are refused for the same reason.
#[track_caller]
fn assert_refused(project: &Scratch, reason: &str) {
    let query = json!({"measures": ["orders.count"], "dimensions": ["orders.status"]}).to_string();
    for arguments in [vec![&*query, "--json"], vec![&*query, "--sql"]] {
        let output = run("query", project.path(), &arguments);
        assert_ne!(output.code, Some(0), "{}", output.stdout);
        assert!(output.stdout.is_empty(), "{}", output.stdout);
        assert!(output.stderr.contains(reason), "{reason}: {}", output.stderr);
    }
}

#[test]
fn failing_required_hook_rejects_every_query() {
    for config in [
        json!({"fault": "trap"}),
        json!({"fault": "loop"}),
        json!({"fault": "memory"}),
        json!({"fault": "error"}),
        json!({"two_roots": true, "filters": filters()["filters"]}),
        json!({"filter": {"cube": "nowhere", "member": "x", "value": "y", "always": true}}),
        json!({"filter": {"cube": "lines", "member": "product", "value": "y", "always": true}}),
        json!({"filter": {"cube": "orders", "member": "nothing", "value": "y"}}),
        json!({"filter": {"cube": "orders", "member": "id", "value": "not a number"}}),
        json!({"deny": "NOT A CODE"}),
    ] {
        assert_refused(&governed(&json!({}), &config), "policy_unavailable");
    }
}

#[test]
fn missing_required_hook_rejects_every_query() {
    let missing = governed(&json!({"source": "plugins/nowhere.wasm"}), &json!({}));
    assert_refused(&missing, "");
    let other = governed(&json!({"sha256": "0".repeat(64)}), &json!({}));
    assert_refused(&other, "");
}

#[test]
fn unusable_required_plugin_fails_the_check() {
    let pinned = json!({"sha256": "0".repeat(64)});
    let missing = json!({"source": "plugins/nowhere.wasm"});
    for (extra, advice) in [(&pinned, "Edit `sha256` of this entry"), (&missing, "Check `source`")] {
        let project = governed(extra, &json!({}));
        let output = run("check", project.path(), &[]);
        assert_eq!(output.code, Some(1), "{}", output.stdout);
        for words in ["`policy-probe` is not in use", "every query is refused", advice] {
            assert!(output.stdout.contains(words), "{words}: {}", output.stdout);
        }
        let output = run("doctor", project.path(), &["--json"]);
        let doctor: Value = serde_json::from_str(&output.stdout).unwrap();
        let checks = doctor["checks"].as_array().unwrap();
        let found: Vec<_> = checks.iter().filter(|check| check["check"] == "required plugins").collect();
        assert!(output.code == Some(1) && found.len() == 1, "{doctor:#}");
        assert!(found[0]["outcome"] == "fail" && found[0].to_string().contains("policy-probe"), "{doctor:#}");
    }
    // A missing optional hook is a warning.
    let mut optional = missing;
    optional["enforcement"] = json!("optional");
    let output = run("check", governed(&optional, &json!({})).path(), &[]);
    assert!(output.code == Some(0) && output.stdout.contains("is not in use"), "{}", output.stdout);
}

#[test]
fn fault_of_a_hook_is_reported_to_its_caller() {
    let cases = (0..5).map(|number| {
        format!("  - {{name: n{number}, query: {{measures: [orders.count]}}, rows: [{{orders.count: 1}}]}}\n")
    });
    let cases = format!("tests:\n{}", cases.collect::<String>());
    let project = governed(&json!({}), &json!({"fault": "error"})).with("tests/a.yml", &cases);
    let query = r#"{"measures": ["orders.count"]}"#;
    let asked = run("query", project.path(), &[query]);
    assert!(asked.code == Some(1) && asked.stdout.is_empty(), "{asked:?}");
    for words in ["policy-probe: error: ", "on purpose", "FORBIDDEN", "terrane doctor"] {
        assert!(asked.stderr.contains(words), "{asked:?}");
    }
    // The report has one problem for all cases, and the hook's fault is logged once.
    let checked = run("check", project.path(), &[]);
    assert!(checked.code == Some(1) && checked.stdout.contains("case `n0` and of 4 more"), "{checked:?}");
    assert_eq!(checked.stdout.matches("error[").count(), 1, "{checked:?}");
    insta::assert_snapshot!(checked.messages(project.path()), @"policy-probe: error: refused `on-query`: on purpose");
}

/// Returns the records of an event in the state database.
fn records(project: &Scratch, event: &str) -> Vec<Value> {
    let listed = Program::new(BINARY, &["audit", "list"], project.path()).arguments(&["--event", event, "--json"]);
    let listed = listed.run().unwrap();
    listed.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn hook_records_contain_the_origin_of_the_request() {
    for (config, event) in
        [(json!({"fault": "trap"}), "policy_unavailable"), (json!({"deny": "no_region"}), "policy_denied")]
    {
        let project = governed(&json!({}), &config);
        let server = serve(&project);
        let query = json!({"measures": ["orders.count"]}).to_string();
        assert_eq!(request(server.address, "POST", "/api/v1/query", Some(&query)).unwrap().status, 403);
        server.terminate().unwrap();
        let records = records(&project, event);
        assert_eq!((records.len(), &records[0]["client_ip"]), (1, &json!("127.0.0.1")), "{records:?}");
    }
}

#[test]
fn impossible_obligations_open_the_breaker_like_traps() {
    let project =
        governed(&json!({}), &json!({"filter": {"cube": "nowhere", "member": "x", "value": "y", "always": true}}));
    let server = serve(&project);
    let ready = || request(server.address, "GET", "/health/ready", None).unwrap().status;
    assert_eq!(ready(), 200);
    let query = json!({"measures": ["orders.count"]}).to_string();
    for _ in 0..6 {
        assert_eq!(request(server.address, "POST", "/api/v1/query", Some(&query)).unwrap().status, 403);
    }
    let (_, log) = server.terminate().unwrap();
    let degraded: Vec<&str> = log.lines().filter(|line| line.contains("plugin_degraded")).collect();
    assert!(degraded.len() == 1 && degraded[0].contains("nowhere"), "{log}");
}

#[test]
fn denial_contains_the_code_of_the_hook() {
    let project = governed(&json!({}), &json!({"deny": "no_region"}));
    assert_refused(&project, "no_region");
    let server = serve(&project);
    let query = json!({"measures": ["orders.count"]}).to_string();
    for path in ["/api/v1/query", "/api/v1/query/sql", "/api/v1/query/explain"] {
        let refused = request(server.address, "POST", path, Some(&query)).unwrap();
        let error = &refused.json().unwrap()["error"];
        assert_eq!((refused.status, &error["code"]), (403, &json!("FORBIDDEN")), "{path}");
        assert_eq!(error["details"]["reason"], "no_region");
        assert!(!refused.body.contains("audit log only"), "{}", refused.body);
    }
    let (_, log) = server.terminate().unwrap();
    assert!(log.contains("policy_denied") && log.contains("audit log only"), "{log}");
}

#[test]
fn row_limits_and_time_filters_of_hooks_are_enforced() {
    let project = governed(&json!({}), &json!({"max_rows": 2, "time": true, "warning": "two rows", "note": "seen"}));
    assert_refused(&project, "time_filter_required");
    let query = json!({"dimensions": ["orders.id"], "time_range": {"start": "2024-01-01", "end": "2024-12-31", "dimension": "orders.day"}});
    let server = serve(&project);
    let answer = request(server.address, "POST", "/api/v1/query", Some(&query.to_string())).unwrap().json().unwrap();
    assert_eq!(answer["data"].as_array().map(Vec::len), Some(2), "{answer}");
    assert_eq!(answer["meta"]["truncated"], true, "{answer}");
    assert_eq!(answer["meta"]["warnings"], json!(["two rows", "a policy allows at most 2 rows"]), "{answer}");
    let mut four = query.clone();
    four["limit"] = json!(4);
    let answer = request(server.address, "POST", "/api/v1/query", Some(&four.to_string())).unwrap().json().unwrap();
    assert_eq!(answer["meta"]["warnings"], json!(["two rows", "a policy allows at most 2 rows"]), "{answer}");
    let csv = download(server.address, "text/csv", "/api/v1/query", &query.to_string()).unwrap();
    let csv = String::from_utf8(csv).unwrap();
    assert_eq!(csv.split("\r\n\r\n").nth(1).unwrap().trim().lines().count(), 3, "{csv}");
    let (_, log) = server.terminate().unwrap();
    // The hook received the caller and the interface, but no values of the query.
    assert!(log.contains("policy_audit") && log.contains("anonymous Surface::Rest read"), "{log}");
    assert!(!log.contains("DateDays"), "{log}");

    let project = governed(&json!({}), &json!({"deny": "no_region", "unless_role": "auditor"}));
    std::fs::write(project.path().join("caller.json"), r#"{"user_id": "u1", "roles": ["auditor"]}"#).unwrap();
    let caller = project.path().join("caller.json");
    let query = r#"{"measures": ["orders.count"]}"#;
    let output = run("query", project.path(), &[query, "--json", "--as", caller.to_str().unwrap()]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(output.stdout.contains('5'), "{}", output.stdout);
}

#[test]
fn optional_and_monitored_hooks_reject_nothing() {
    let query = r#"{"measures": ["orders.count"]}"#;
    for (extra, config) in [
        (json!({"enforcement": "optional"}), json!({"fault": "trap"})),
        (json!({"enforcement": "optional", "mode": "monitor"}), json!({"deny": "no_region"})),
        (json!({"enforcement": "optional", "mode": "monitor"}), json!({"fault": "loop"})),
        (json!({"enforcement": "optional", "mode": "monitor"}), filters()),
    ] {
        let output = run("query", governed(&extra, &config).path(), &[query, "--json"]);
        assert_eq!(output.code, Some(0), "{extra} {config}: {}", output.stderr);
        assert!(output.stdout.contains('5'), "{}", output.stdout);
    }
    // The obligations of an optional hook apply if it answers.
    let output = run("query", governed(&json!({"enforcement": "optional"}), &filters()).path(), &[query, "--json"]);
    assert!(output.stdout.contains('3'), "{}", output.stdout);
}
