//! Tests anomalies of metrics on a real warehouse: each kind of metric, callers with different policies, invalid
//! definitions, root causes, and metrics that a reload removes.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::collections::BTreeMap;

use serde_json::{Value, json};
use terrane_system_tests::{Program, Scratch, Server, request_as};

use crate::BINARY;
use crate::monitors::{BAD_DAY, MONITORS, key, rows};

const SETTINGS: &str = "name: shop\nwarehouse: {type: duckdb}\ncache: {enabled: false}\n";
const CUBES: &str = r#"cubes:
  - name: orders
    sql: "SELECT * FROM read_csv('orders.csv')"
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: region, type: string, sql: region}
      - {name: channel, type: string, sql: channel}
      - {name: day, type: time, sql: day, primary_time: true}
    measures:
      - {name: count, type: count}
      - {name: revenue, type: sum, sql: amount}
      - {name: profit, type: sum, sql: amount * 0.2}
      - {name: so_far, type: running_total, sql: amount}
      - {name: newest, type: max, sql: day}
      - {name: first_channel, type: min, sql: channel}
  - name: returns
    sql: "SELECT * FROM read_csv('orders.csv') WHERE id % 10 = 0"
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: day, type: time, sql: day, primary_time: true}
    measures:
      - {name: count, type: count}
  - name: shelves
    sql: "SELECT 1 AS id, 5 AS items"
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
    measures:
      - {name: items, type: sum, sql: items}
"#;
const METRICS: &str = r#"metrics:
  - {name: all_orders, type: simple, expression: orders.count}
  - name: web_orders
    type: simple
    expression: orders.count
    filters: [{member: orders.channel, operator: equals, value: web}]
  - {name: revenue_per_order, type: ratio, numerator: orders.revenue, denominator: orders.count}
  - {name: web_share, type: ratio, numerator: web_orders, denominator: all_orders}
  - {name: net_orders, type: derived, expression: "orders.count - returns.count"}
  - {name: revenue_so_far, type: simple, expression: orders.so_far}
  - {name: margin, type: derived, expression: "orders.profit / orders.revenue"}
  - {name: shelf_items, type: simple, expression: shelves.items}
  - {name: newest_order, type: simple, expression: orders.newest}
"#;
const POLICIES: &str = r#"policies:
  - {name: region, cubes: [orders], when: {roles: [seller]}, row_filter: "{orders}.region = {{ user.attributes.region }}"}
  - {name: profit, cubes: [orders], when: {roles: [seller]}, deny: [profit]}
"#;
const CALLERS: [(&str, &str, &str); 3] = [("boss", "boss", "-"), ("eu", "seller", "EU"), ("us", "seller", "US")];

struct Shop {
    server: Server,
    project: Scratch,
    keys: BTreeMap<&'static str, String>,
}

impl Shop {
    fn new() -> Shop {
        let project = Scratch::empty().with("service_project.yml", SETTINGS).with("cubes/orders.yml", CUBES);
        let project = project.with("metrics/orders.yml", METRICS).with("policies/orders.yml", POLICIES);
        let project = project.with("orders.csv", rows().as_str());
        let keys = CALLERS.into_iter().map(|(name, role, region)| (name, key(&project, name, role, region))).collect();
        let server = Program::new(BINARY, &["serve"], project.path()).arguments(&["--port", "0"]).serve().unwrap();
        Shop { server, project, keys }
    }

    fn ask(&self, caller: &str, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let body = body.map(Value::to_string);
        let key = Some(self.keys[caller].as_str());
        let answer = request_as(self.server.address, key, method, path, body.as_deref()).unwrap();
        (answer.status, answer.json().unwrap_or_default())
    }

    /// Creates a monitor and evaluates March. Returns the monitor's id.
    fn monitor(&self, caller: &str, definition: &Value) -> String {
        let (status, monitor) = self.ask(caller, "POST", MONITORS, Some(definition));
        assert_eq!(status, 201, "{monitor}");
        let id = monitor["id"].as_str().unwrap().to_owned();
        let range = json!({"from": "2024-03-01", "to": "2024-03-30"});
        let (status, run) = self.ask(caller, "POST", &format!("{MONITORS}/{id}/run"), Some(&range));
        assert_eq!((status, &run["outcome"]), (200, &json!("scored")), "{run}");
        id
    }

    fn detections(&self, caller: &str, monitor: &str) -> Vec<Value> {
        let path = format!("/api/v1/anomaly/detections?monitor_id={monitor}");
        let (status, list) = self.ask(caller, "GET", &path, None);
        assert_eq!(status, 200, "{list}");
        list["detections"].as_array().unwrap().clone()
    }

    fn root_cause(&self, caller: &str, detection: &Value) -> (u16, Value) {
        let path = format!("/api/v1/anomaly/detections/{}/root-cause", detection["id"].as_str().unwrap());
        self.ask(caller, "GET", &path, None)
    }
}

fn definition(metric: &str) -> Value {
    json!({"name": metric, "metric_name": metric, "schedule": "0 6 * * *", "training_size": 50, "sensitivity": 4})
}

#[test]
fn simple_metric_is_detected_and_explained() {
    let shop = Shop::new();
    let id = shop.monitor("boss", &definition("all_orders"));
    let (_, monitor) = shop.ask("boss", "GET", &format!("{MONITORS}/{id}"), None);
    assert_eq!((&monitor["metric_name"], &monitor["cube_name"]), (&json!("all_orders"), &Value::Null), "{monitor}");
    let detections = shop.detections("boss", &id);
    let [detection] = &detections[..] else { panic!("{detections:?}") };
    assert_eq!((&detection["time"], &detection["metric_name"]), (&json!(BAD_DAY), &json!("all_orders")));
    let (status, cause) = shop.root_cause("boss", detection);
    assert_eq!((status, &cause["kind"], &cause["exact"]), (200, &json!("slices"), &json!(true)), "{cause}");
    let slices = cause["slices"].as_array().unwrap();
    assert_eq!(slices[0]["filters"], json!({"orders.region": "EU", "orders.channel": "web"}), "{cause}");
    assert!(cause["summary"].as_str().unwrap().starts_with("`all_orders` was"), "{cause}");
    // The query of the slice returns its value.
    let (status, answer) = shop.ask("boss", "POST", "/api/v1/query", Some(&slices[0]["query"]));
    assert_eq!((status, &answer["data"][0]["all_orders"]), (200, &json!(0)), "{answer}");
    let document = json!({"query": "{ monitors { metric cube measure } alerts { metric status } }"});
    let (_, answer) = shop.ask("boss", "POST", "/graphql", Some(&document));
    let found = &answer["data"]["monitors"][0];
    assert_eq!(*found, json!({"metric": "all_orders", "cube": null, "measure": null}), "{answer}");
    assert_eq!(answer["data"]["alerts"][0]["metric"], "all_orders", "{answer}");
}

impl Shop {
    /// Runs a GraphQL document of one field. Returns the value of the field and the code of the error.
    fn field(&self, caller: &str, document: &str) -> (Value, Value) {
        let (_, answer) = self.ask(caller, "POST", "/graphql", Some(&json!({"query": document})));
        let value = answer["data"].as_object().and_then(|fields| fields.values().next().cloned()).unwrap_or_default();
        (value, answer["errors"][0]["extensions"]["code"].clone())
    }
}

#[test]
fn graphql_reads_what_rest_reads() {
    let shop = Shop::new();
    let mut watched = definition("margin");
    watched["alert_config"] = json!({
        "channels": [{"type": "webhook", "target": "https://example.com/hook"}],
        "escalation_rules": [{"after_minutes": 5, "notify": "webhook"}],
    });
    watched["sensitivity"] = json!(0.01);
    let id = shop.monitor("boss", &watched);
    let detection = shop.detections("boss", &id)[0]["id"].as_str().unwrap().to_owned();
    let document = format!(
        "{{ monitor(id: \"{id}\") {{ name metric dimensions granularity trainingSize version createdAt lastRunAt \
         alertConfig {{ channels {{ type target }} minSeverity escalationRules {{ afterMinutes notify {{ target }} }} }} }} }}"
    );
    let (monitor, _) = shop.field("boss", &document);
    let (_, of_rest) = shop.ask("boss", "GET", &format!("{MONITORS}/{id}"), None);
    assert_eq!((&monitor["metric"], &monitor["granularity"]), (&json!("margin"), &json!("day")), "{monitor}");
    assert_eq!(monitor["createdAt"], of_rest["created_at"], "{monitor}");
    assert_eq!(monitor["lastRunAt"], of_rest["last_run"]["at"], "{monitor}");
    assert_eq!(monitor["trainingSize"], of_rest["training_size"], "{monitor}");
    assert_eq!(monitor["alertConfig"]["channels"], of_rest["alert_config"]["channels"], "{monitor}");
    let (_, alerts) = shop.ask("boss", "GET", "/api/v1/anomaly/alerts", None);
    let alert = alerts["alerts"][0]["id"].as_str().unwrap();
    let alert_document = format!("{{ alert(id: \"{alert}\") {{ id monitorName status version }} }}");
    let (found, _) = shop.field("boss", &alert_document);
    assert_eq!((&found["id"], &found["monitorName"]), (&json!(alert), &json!("margin")), "{found}");
    let (detectors, _) = shop.field("boss", "{ detectors { detectors { kind minPoints } } }");
    assert!(detectors.to_string().contains("z_score"), "{detectors}");
    // Sellers are denied the profit, which the metric is computed from.
    let cause = format!("{{ rootCause(detectionId: \"{detection}\") {{ summary }} }}");
    for document in [&document, &alert_document, &cause] {
        assert_eq!(shop.field("eu", document), (Value::Null, json!("NOT_FOUND")), "{document}");
    }
}

#[test]
fn graphql_reads_the_root_cause_of_rest() {
    let shop = Shop::new();
    let id = shop.monitor("boss", &definition("all_orders"));
    let detection = &shop.detections("boss", &id)[0];
    let (_, of_rest) = shop.root_cause("boss", detection);
    let document = format!(
        "{{ rootCause(detectionId: {}) {{ detection {{ id }} summary kind exact gap restShare lookedAt \
         leftOut {{ dimension reason }} slices {{ filters share direction query }} warnings }} }}",
        detection["id"]
    );
    let (cause, _) = shop.field("boss", &document);
    for (field, name) in
        [("summary", "summary"), ("kind", "kind"), ("exact", "exact"), ("gap", "gap"), ("lookedAt", "looked_at")]
    {
        assert_eq!(cause[field], of_rest[name], "{cause}");
    }
    assert_eq!((&cause["leftOut"], &cause["warnings"]), (&of_rest["left_out"], &of_rest["warnings"]), "{cause}");
    let (slice, rest_slice) = (&cause["slices"][0], &of_rest["slices"][0]);
    assert_eq!((&slice["filters"], &slice["query"]), (&rest_slice["filters"], &rest_slice["query"]), "{cause}");
    assert_eq!(cause["detection"]["id"], detection["id"]);
}

#[test]
fn filters_of_a_metric_apply_to_its_root_cause() {
    let shop = Shop::new();
    let id = shop.monitor("boss", &definition("web_orders"));
    let detections = shop.detections("boss", &id);
    let [detection] = &detections[..] else { panic!("{detections:?}") };
    let (status, cause) = shop.root_cause("boss", detection);
    assert_eq!((status, &cause["slices"][0]["filters"]), (200, &json!({"orders.region": "EU"})), "{cause}");
    let (_, answer) = shop.ask("boss", "POST", "/api/v1/query", Some(&cause["slices"][0]["query"]));
    assert_eq!(answer["data"][0]["web_orders"], 0, "{answer}");
}

#[test]
fn ratios_are_weighed_by_their_denominator() {
    let shop = Shop::new();
    for metric in ["revenue_per_order", "web_share"] {
        let mut definition = definition(metric);
        definition["sensitivity"] = json!(0.01);
        let id = shop.monitor("boss", &definition);
        let detections = shop.detections("boss", &id);
        let (status, cause) = shop.root_cause("boss", &detections[0]);
        assert_eq!((status, &cause["exact"], &cause["warnings"]), (200, &json!(false), &json!([])), "{cause}");
        assert!(!cause["looked_at"].as_array().unwrap().is_empty(), "{cause}");
    }
}

#[test]
fn other_kinds_of_metrics_are_judged_and_not_explained() {
    let shop = Shop::new();
    for (metric, reason, measures) in [
        ("net_orders", "neither one measure nor a ratio", json!(["orders.count", "returns.count"])),
        ("revenue_so_far", "neither one measure nor a ratio", json!(["orders.so_far"])),
    ] {
        let mut definition = definition(metric);
        definition["sensitivity"] = json!(0.01);
        let id = shop.monitor("boss", &definition);
        let detections = shop.detections("boss", &id);
        assert!(!detections.is_empty(), "{metric}");
        let (status, refused) = shop.root_cause("boss", &detections[0]);
        assert_eq!((status, &refused["error"]["details"]["measures"]), (400, &measures), "{refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains(reason), "{refused}");
        assert!(refused["error"]["details"]["hint"].is_string(), "{refused}");
    }
}

#[test]
fn metrics_are_split_by_dimensions_of_a_cube() {
    let shop = Shop::new();
    let mut split = definition("all_orders");
    split["dimensions"] = json!(["orders.region", "orders.channel"]);
    let id = shop.monitor("boss", &split);
    let detections = shop.detections("boss", &id);
    let [detection] = &detections[..] else { panic!("{detections:?}") };
    assert_eq!(detection["dimensions"], json!({"orders.region": "EU", "orders.channel": "web"}));
    let (status, cause) = shop.root_cause("boss", detection);
    assert_eq!((status, &cause["looked_at"]), (200, &json!([])), "{cause}");
    split["dimensions"] = json!(["region"]);
    let (status, refused) = shop.ask("boss", "POST", MONITORS, Some(&split));
    assert_eq!(status, 400, "{refused}");
    assert!(refused.to_string().contains("region"), "{refused}");
}

#[test]
fn hidden_metrics_are_unknown() {
    let shop = Shop::new();
    let id = shop.monitor("boss", &definition("margin"));
    let refusal = |caller: &str, metric: &str| {
        let (status, refused) = shop.ask(caller, "POST", MONITORS, Some(&definition(metric)));
        assert_eq!(status, 400, "{refused}");
        refused["error"].clone()
    };
    // The answers to a hidden name and to an unknown name differ only in the name itself.
    let (mut hidden, mut unknown) = (refusal("eu", "margin"), refusal("eu", "mergin"));
    for error in [&mut hidden, &mut unknown] {
        let error = error.as_object_mut().unwrap();
        error.remove("correlation_id");
        let message = error["message"].as_str().unwrap().replace("mergin", "margin");
        error.insert("message".to_owned(), message.into());
        // The order of the names depends on the requested name, so they are sorted.
        let names = error["details"]["available_metrics"].as_array_mut().unwrap();
        names.sort_by_key(|name| name.to_string());
    }
    assert_eq!(hidden, unknown);
    assert!(hidden["message"].as_str().unwrap().contains("`margin`"), "{hidden}");
    assert!(!hidden["details"]["available_metrics"].to_string().contains("margin"), "{hidden}");
    // A caller who may see the metric gets its name as the nearest one.
    let near = refusal("boss", "mergin");
    assert_eq!(near["details"]["available_metrics"][0], "margin", "{near}");
    assert_eq!(shop.ask("eu", "GET", &format!("{MONITORS}/{id}"), None).0, 404);
    // Each seller evaluates its own rows.
    let of_eu = shop.monitor("eu", &definition("all_orders"));
    assert_eq!(shop.detections("eu", &of_eu).len(), 1);
    assert_eq!(shop.ask("us", "GET", &format!("{MONITORS}/{of_eu}"), None).0, 404);
    let of_us = shop.monitor("us", &definition("all_orders"));
    assert_eq!(shop.detections("us", &of_us), Vec::<Value>::new());
}

#[test]
fn invalid_definitions_are_refused() {
    let shop = Shop::new();
    let mut both = definition("all_orders");
    both["measure_name"] = json!("count");
    let mut with_cube = definition("all_orders");
    with_cube["cube_name"] = json!("orders");
    let mut none = definition("all_orders");
    none.as_object_mut().unwrap().remove("metric_name");
    for (body, text) in [
        (both, "both `measure_name` and `metric_name`"),
        (with_cube, "both `cube_name` and `metric_name`"),
        (none, "lacks `measure_name` or `metric_name`"),
        (definition("orders.count"), "unknown metric `orders.count`"),
        (
            definition("shelf_items"),
            "metric `shelf_items` has no time axis: cube `shelves` has no primary time dimension",
        ),
        (definition("newest_order"), "the values of `newest_order` are of type time, and detectors need numbers"),
        (
            json!({"name": "first", "cube_name": "orders", "measure_name": "first_channel", "schedule": "0 6 * * *"}),
            "the values of `orders.first_channel` are of type string, and detectors need numbers",
        ),
    ] {
        let (status, refused) = shop.ask("boss", "POST", MONITORS, Some(&body));
        assert_eq!((status, &refused["error"]["code"]), (400, &json!("INVALID_QUERY")), "{refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains(text), "{text}: {refused}");
    }
}

#[test]
fn removed_metrics_fail_the_round() {
    let shop = Shop::new();
    let id = shop.monitor("boss", &definition("all_orders"));
    std::fs::write(shop.project.path().join("metrics/orders.yml"), "metrics: []\n").unwrap();
    let path = format!("{MONITORS}/{id}/run");
    let (status, loaded) = shop.ask("boss", "POST", "/api/v1/unified/load", Some(&json!({})));
    assert_eq!(status, 200, "{loaded}");
    let (status, run) = shop.ask("boss", "POST", &path, None);
    assert_eq!((status, &run["outcome"]), (200, &json!("failed")), "{run}");
    assert!(run["message"].as_str().unwrap().contains("`all_orders`"), "{run}");
    // The owner of the monitor may still change it.
    let (status, _) = shop.ask("boss", "PUT", &format!("{MONITORS}/{id}"), Some(&definition("all_orders")));
    assert_eq!(status, 400);
    assert_eq!(shop.ask("boss", "DELETE", &format!("{MONITORS}/{id}"), None).0, 204);
}

#[test]
fn command_line_judges_metrics() {
    let project = Scratch::empty().with("service_project.yml", SETTINGS).with("cubes/orders.yml", CUBES);
    let project = project.with("metrics/orders.yml", METRICS).with("orders.csv", rows().as_str());
    let run = |arguments: &[&str]| {
        let shared = ["--from", "2024-03-01", "--to", "2024-03-30", "--training-size", "50", "--json"];
        let all: Vec<&str> = arguments.iter().chain(&shared).copied().collect();
        Program::new(BINARY, &["anomaly", "run"], project.path()).arguments(&all).run().unwrap()
    };
    let found = run(&["--metric", "web_orders", "--sensitivity", "4"]);
    let found: Value = serde_json::from_str(&found.stdout).unwrap_or_else(|_| panic!("{}", found.stderr));
    let points = found["series"][0]["points"].as_array().unwrap();
    let bad: Vec<&Value> = points.iter().filter(|point| point["anomalous"] == true).collect();
    assert_eq!((bad.len(), &bad[0]["time"]), (1, &json!(BAD_DAY)), "{found}");
    assert_eq!((&found["metric_name"], &found["time_dimension"]), (&json!("web_orders"), &json!("metric_time")));
    for (arguments, text) in [
        (&["--metric", "web_order"][..], "web_orders"),
        (&["--metric", "web_orders", "--cube", "orders"], "--metric"),
        (&["--cube", "orders"], "--measure"),
        (&[], "--measure"),
        (&["--metric", "shelf_items"], "no time axis"),
        (&["--metric", "newest_order"], "are of type time"),
        (&["--cube", "orders", "--measure", "first_channel"], "are of type string"),
    ] {
        let refused = run(arguments);
        assert!(refused.stdout.is_empty() && refused.stderr.contains(text), "{arguments:?}: {}", refused.stderr);
    }
}
