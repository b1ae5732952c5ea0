//! Tests monitors on a real warehouse: planted anomalies, alerts and their lifecycle, root causes, callers with
//! different policies, and invalid definitions.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};
use terrane_app::ports::audit::AuditEntry;
use terrane_app::ports::monitors::MonitorRecords as _;
use terrane_store::StateStore;
use terrane_system_tests::{GraphQlSocket, Program, Scratch, Server, request_as, request_with};

use crate::BINARY;

const SETTINGS: &str = "name: shop\nwarehouse: {type: duckdb}\ncache: {enabled: false}\n";
pub(crate) const CUBE: &str = r#"cubes:
  - name: orders
    sql: "SELECT * FROM read_csv('orders.csv')"
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: region, type: string, sql: region}
      - {name: channel, type: string, sql: channel}
      - {name: secret, type: string, sql: secret}
      - {name: day, type: time, sql: day, primary_time: true}
    measures:
      - {name: count, type: count}
      - {name: revenue, type: sum, sql: amount}
      - {name: average, type: avg, sql: amount}
"#;
pub(crate) const POLICIES: &str = r#"policies:
  - {name: region, cubes: [orders], when: {roles: [seller]}, row_filter: "{orders}.region = {{ user.attributes.region }}"}
  - {name: secret, cubes: [orders], when: {roles: [seller]}, deny: [secret]}
"#;
pub(crate) const MONITORS: &str = "/api/v1/anomaly/monitors";
const CALLERS: [(&str, &str, &str); 4] =
    [("boss", "boss", "-"), ("eu", "seller", "EU"), ("us", "seller", "US"), ("eu2", "seller", "EU")];
/// The day on which the web channel of the EU sells nothing.
pub(crate) const BAD_DAY: &str = "2024-03-20";

/// Returns three months of orders. Each day, region and channel has about the same number of orders.
pub(crate) fn rows() -> String {
    let mut rows = "id,region,channel,secret,day,amount\n".to_owned();
    let (mut id, mut number) = (0, 7_u64);
    let first: jiff::civil::Date = "2024-01-01".parse().unwrap();
    for (day, date) in first.series(jiff::Span::new().days(1)).take(90).enumerate() {
        for region in ["EU", "US"] {
            for channel in ["web", "shop"] {
                number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let usual = 10 + (number >> 60) % 3;
                let is_bad = date.to_string() == BAD_DAY && (region, channel) == ("EU", "web");
                for _ in 0..if is_bad { 0 } else { usual } {
                    id += 1;
                    writeln!(rows, "{id},{region},{channel},s{},{date},{}", day % 7, 20 + id % 5).unwrap();
                }
            }
        }
    }
    rows
}

struct Shop {
    server: Server,
    project: Scratch,
    keys: BTreeMap<&'static str, String>,
}

/// A cube that orders are joined with, and that some callers may not see.
const CHANNELS: &str = r#"cubes:
  - name: channels
    sql: "SELECT * FROM (VALUES ('web', 'online', 'Berlin'), ('shop', 'on site', 'Paris')) AS c(name, kind, place)"
    dimensions:
      - {name: name, type: string, sql: name, primary_key: true}
      - {name: kind, type: string, sql: kind}
      - {name: place, type: string, sql: place}
policies:
  - {name: place, cubes: [channels], when: {roles: [seller]}, deny: [place]}
"#;

impl Shop {
    fn new() -> Shop {
        Shop::of(Scratch::empty().with("cubes/orders.yml", CUBE))
    }

    fn of(project: Scratch) -> Shop {
        let project = project.with("service_project.yml", SETTINGS);
        let project = project.with("policies/orders.yml", POLICIES).with("orders.csv", rows().as_str());
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

    fn list(&self, caller: &str, what: &str) -> Vec<Value> {
        let (status, list) = self.ask(caller, "GET", &format!("/api/v1/anomaly/{what}"), None);
        assert_eq!(status, 200, "{list}");
        list[what].as_array().unwrap().clone()
    }
}

pub(crate) fn key(project: &Scratch, name: &str, role: &str, region: &str) -> String {
    let attribute = format!("region={region}");
    let arguments = ["--name", name, "--roles", role, "--attribute", &attribute, "--scopes", "read,write", "--json"];
    let made = Program::new(BINARY, &["auth", "create-key"], project.path()).arguments(&arguments).run().unwrap();
    let key: Value = serde_json::from_str(&made.stdout).unwrap_or_else(|_| panic!("{}", made.stderr));
    key["key"].as_str().unwrap().to_owned()
}

pub(crate) fn definition() -> Value {
    json!({
        "name": "Orders of a day", "cube_name": "orders", "measure_name": "count", "schedule": "0 6 * * *",
        "timezone": "Europe/Berlin", "training_size": 50, "sensitivity": 4,
        "alert_config": {"min_severity": "LOW", "escalation_rules": [{"after_minutes": 30}]},
    })
}

#[test]
fn planted_anomaly_is_detected_and_explained() {
    let shop = Shop::new();
    let id = shop.monitor("boss", &definition());
    let detections = shop.list("boss", "detections");
    let [detection] = &detections[..] else { panic!("{detections:?}") };
    assert_eq!((&detection["time"], &detection["monitor_id"]), (&json!(BAD_DAY), &json!(id)));
    let path = format!("/api/v1/anomaly/detections/{}/root-cause", detection["id"].as_str().unwrap());
    let (status, cause) = shop.ask("boss", "GET", &path, None);
    assert_eq!((status, &cause["kind"]), (200, &json!("slices")), "{cause}");
    let slices = cause["slices"].as_array().unwrap();
    assert_eq!(slices.len(), 1, "{cause}");
    assert_eq!(slices[0]["filters"], json!({"orders.region": "EU", "orders.channel": "web"}));
    assert_eq!(slices[0]["after"], 0.0);
    let shares = |list: &str| -> f64 {
        cause[list].as_array().unwrap().iter().map(|slice| slice["share"].as_f64().unwrap()).sum()
    };
    let all = shares("slices") + shares("moved_against") + cause["rest_share"].as_f64().unwrap();
    assert!((all - 1.0).abs() < 1e-6, "{cause}");
    // Each day has its own value of `secret`, so this dimension would explain the whole gap.
    let left_out = json!({"dimension": "orders.secret", "reason": "its values follow from the time"});
    assert!(cause["left_out"].as_array().unwrap().contains(&left_out), "{cause}");
    // The query of the slice returns its value.
    let (status, answer) = shop.ask("boss", "POST", "/api/v1/query", Some(&slices[0]["query"]));
    assert_eq!((status, &answer["data"][0]["orders.count"]), (200, &json!(0)), "{answer}");
}

#[test]
fn dimensions_of_joined_cubes_explain_within_the_rights_of_the_reader() {
    let join =
        "    joins: [{name: channels, relationship: many_to_one, sql: \"{orders}.channel = {channels}.name\"}]\n";
    let cube = CUBE.replace("      - {name: channel, type: string, sql: channel}\n", "");
    let cube = cube.replace("    measures:\n", &format!("{join}    measures:\n"));
    let project = Scratch::empty().with("cubes/orders.yml", cube.as_str()).with("cubes/channels.yml", CHANNELS);
    let shop = Shop::of(project);
    for (caller, sees_place) in [("boss", true), ("eu", false)] {
        shop.monitor(caller, &definition());
        let detections = shop.list(caller, "detections");
        let path = format!("/api/v1/anomaly/detections/{}/root-cause", detections[0]["id"].as_str().unwrap());
        let (status, cause) = shop.ask(caller, "GET", &path, None);
        assert_eq!((status, &cause["kind"]), (200, &json!("slices")), "{cause}");
        let looked_at = cause["looked_at"].as_array().unwrap();
        assert!(looked_at.contains(&json!("channels.kind")), "{cause}");
        assert_eq!(looked_at.contains(&json!("channels.place")), sees_place, "{caller}: {cause}");
        assert_eq!(cause.to_string().contains("channels.place"), sees_place, "{caller}: {cause}");
        let filters = &cause["slices"][0]["filters"];
        assert!(filters.get("channels.name").is_some_and(|name| name == "web"), "{cause}");
        let (status, answer) = shop.ask(caller, "POST", "/api/v1/query", Some(&cause["slices"][0]["query"]));
        assert_eq!((status, &answer["data"][0]["orders.count"]), (200, &json!(0)), "{answer}");
    }
}

#[test]
fn measures_that_do_not_add_up_are_explained_by_rows() {
    let shop = Shop::new();
    let average = json!({
        "name": "Average", "cube_name": "orders", "measure_name": "average", "schedule": "0 6 * * *",
        "training_size": 50, "sensitivity": 0.01,
    });
    shop.monitor("boss", &average);
    let detections = shop.list("boss", "detections");
    let path = format!("/api/v1/anomaly/detections/{}/root-cause", detections[0]["id"].as_str().unwrap());
    let (status, cause) = shop.ask("boss", "GET", &path, None);
    assert_eq!((status, &cause["exact"]), (200, &json!(false)), "{cause}");
    assert!(!cause["looked_at"].as_array().unwrap().is_empty(), "{cause}");
}

#[test]
fn alerts_are_moved_through_their_lifecycle() {
    let shop = Shop::new();
    let id = shop.monitor("boss", &definition());
    let alerts = shop.list("boss", "alerts");
    let [alert] = &alerts[..] else { panic!("{alerts:?}") };
    // Normal days have resolved the alert.
    assert_eq!((&alert["status"], &alert["detections"]), (&json!("RESOLVED"), &json!(1)), "{alert}");
    let path = format!("/api/v1/anomaly/alerts/{}", alert["id"].as_str().unwrap());
    let (status, refused) = shop.ask("boss", "POST", &format!("{path}/acknowledge"), None);
    assert_eq!((status, &refused["error"]["details"]["allowed_moves"]), (409, &json!([])), "{refused}");
    // A repeated round changes nothing.
    let range = json!({"from": "2024-03-01", "to": "2024-03-30"});
    shop.ask("boss", "POST", &format!("{MONITORS}/{id}/run"), Some(&range));
    assert_eq!(shop.list("boss", "alerts"), alerts);
    let before = shop.list("boss", "detections");
    assert_eq!(before.len(), 1);

    let until_bad_day = json!({"from": "2024-03-01", "to": BAD_DAY});
    let other = json!({"name": "Open", "cube_name": "orders", "measure_name": "revenue", "schedule": "0 6 * * *",
                       "training_size": 50, "sensitivity": 4});
    let (_, open) = shop.ask("boss", "POST", MONITORS, Some(&other));
    let open = open["id"].as_str().unwrap().to_owned();
    shop.ask("boss", "POST", &format!("{MONITORS}/{open}/run"), Some(&until_bad_day));
    let triggered = shop.list("boss", "alerts");
    let alert = triggered.iter().find(|alert| alert["monitor_id"] == open.as_str()).unwrap();
    assert_eq!(alert["status"], "TRIGGERED", "{alert}");
    let path = format!("/api/v1/anomaly/alerts/{}", alert["id"].as_str().unwrap());
    for (step, state) in [("acknowledge", "ACKNOWLEDGED"), ("investigate", "INVESTIGATING"), ("resolve", "RESOLVED")] {
        let (status, moved) = shop.ask("boss", "POST", &format!("{path}/{step}"), None);
        assert_eq!((status, &moved["status"]), (200, &json!(state)), "{moved}");
    }
    let listed =
        Program::new(BINARY, &["anomaly", "alerts"], shop.project.path()).arguments(&["--json"]).run().unwrap();
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed["alerts"].as_array().unwrap().len(), 2, "{listed}");
    let (status, _) = shop.ask("boss", "DELETE", &format!("{MONITORS}/{open}"), None);
    assert_eq!(status, 204);
    assert_eq!(shop.list("boss", "alerts").len(), 1);
}

/// Governance has its own walk, over records in every state.
#[test]
fn every_changing_route_refuses_a_stale_version() {
    let shop = Shop::new();
    let arguments = ["--name", "root", "--scopes", "read,write,admin", "--json"];
    let made = Program::new(BINARY, &["auth", "create-key"], shop.project.path()).arguments(&arguments).run().unwrap();
    let key: Value = serde_json::from_str(&made.stdout).unwrap();
    let bearer = format!("Bearer {}", key["key"].as_str().unwrap());
    let send = |method: &str, path: &str, body: Option<&Value>, tag: Option<&str>| {
        let mut headers = vec![("Authorization", bearer.as_str())];
        headers.extend(tag.map(|tag| ("If-Match", tag)));
        let body = body.map(Value::to_string);
        let answer = request_with(shop.server.address, &headers, method, path, body.as_deref()).unwrap();
        (answer.status, answer.json().unwrap_or_default())
    };
    let (_, monitor) = send("POST", MONITORS, Some(&definition()), None);
    let monitor = monitor["id"].as_str().unwrap();
    let range = json!({"from": "2024-03-01", "to": BAD_DAY});
    assert_eq!(send("POST", &format!("{MONITORS}/{monitor}/run"), Some(&range), None).0, 200);
    let (_, alerts) = send("GET", "/api/v1/anomaly/alerts", None, None);
    let alert = alerts["alerts"][0]["id"].as_str().unwrap();

    let (_, description) = send("GET", "/openapi.json", None, None);
    let has_header = |operation: &Value| {
        let parameters = operation["parameters"].as_array().map_or(&[][..], Vec::as_slice);
        parameters.iter().any(|parameter| parameter["name"] == "If-Match")
    };
    let mut walked = 0;
    for (path, methods) in description["paths"].as_object().unwrap() {
        let concrete = path.replace("{monitor_id}", monitor).replace("{alert_id}", alert);
        let concrete = concrete.replace("{user_id}", "ada").replace("{role}", "analysts");
        let methods = methods.as_object().unwrap().iter().filter(|(_, operation)| has_header(operation));
        for (method, _) in methods.filter(|_| !path.starts_with("/api/v1/governance/")) {
            assert!(!concrete.contains('{'), "{path} has no value here");
            let body = match method.as_str() {
                "put" if concrete.starts_with(MONITORS) => Some(definition()),
                "put" => Some(json!({})),
                _ => None,
            };
            let (status, answer) = send(&method.to_uppercase(), &concrete, body.as_ref(), Some("\"99\""));
            assert_eq!((status, &answer["error"]["code"]), (412, &json!("PRECONDITION_FAILED")), "{method} {path}");
            walked += 1;
        }
    }
    // Replacing and deleting monitors and guardrails of users and groups, and three moves of alerts.
    assert_eq!(walked, 2 + 4 + 3, "the description lists these routes");
}

/// Returns the next alert that a subscription sends.
fn next_alert(socket: &mut GraphQlSocket) -> Value {
    loop {
        let message = socket.receive().unwrap();
        if message["type"] == "next" {
            assert_eq!(message["payload"]["errors"], Value::Null, "{message}");
            return message["payload"]["data"]["alerts"].clone();
        }
        assert!(message["type"] == "ping" || message["type"] == "pong", "{message}");
    }
}

#[test]
fn alerts_are_sent_to_subscribers_who_may_see_them() {
    const ALERTS: &str = "subscription { alerts { id status monitorName version } }";
    let shop = Shop::new();
    let open = |caller: &str, document: &str| {
        let mut socket = GraphQlSocket::acknowledged(shop.server.address, &shop.keys[caller]).unwrap();
        socket.subscribe("a", document).unwrap();
        socket
    };
    let (mut boss, mut stranger) = (open("boss", ALERTS), open("us", ALERTS));
    let until_bad_day = json!({"from": "2024-03-01", "to": BAD_DAY});
    let (_, monitor) = shop.ask("boss", "POST", MONITORS, Some(&definition()));
    let path = format!("{MONITORS}/{}/run", monitor["id"].as_str().unwrap());
    shop.ask("boss", "POST", &path, Some(&until_bad_day));
    let triggered = next_alert(&mut boss);
    assert_eq!((&triggered["status"], &triggered["version"]), (&json!("TRIGGERED"), &json!(1)), "{triggered}");
    // A new subscriber receives an open alert at once.
    assert_eq!(next_alert(&mut open("boss", ALERTS)), triggered);
    let path = format!("/api/v1/anomaly/alerts/{}", triggered["id"].as_str().unwrap());
    for (step, state) in [("acknowledge", "ACKNOWLEDGED"), ("resolve", "RESOLVED")] {
        shop.ask("boss", "POST", &format!("{path}/{step}"), None);
        let moved = next_alert(&mut boss);
        assert_eq!((&moved["status"], &moved["id"]), (&json!(state), &triggered["id"]), "{moved}");
    }
    // A caller with another view receives no alert, so its first message is the refusal of an unknown monitor.
    stranger.subscribe("b", r#"subscription { alerts(monitorId: "none") { id } }"#).unwrap();
    let refused = stranger.receive().unwrap();
    assert_eq!(refused["id"], "b", "{refused}");
    assert!(refused.to_string().contains(r#""code":"NOT_FOUND""#), "{refused}");
}

#[test]
fn callers_see_what_their_own_view_shows() {
    let shop = Shop::new();
    let id = shop.monitor("eu", &definition());
    for (caller, is_seen) in [("eu", true), ("eu2", true), ("us", false), ("boss", false)] {
        let count = usize::from(is_seen);
        assert_eq!(shop.list(caller, "monitors").len(), count, "{caller}");
        assert_eq!(shop.list(caller, "detections").len(), count, "{caller}");
        assert_eq!(shop.list(caller, "alerts").len(), count, "{caller}");
        let status = if is_seen { 200 } else { 404 };
        assert_eq!(shop.ask(caller, "GET", &format!("{MONITORS}/{id}"), None).0, status, "{caller}");
    }
    let detection = shop.list("eu", "detections").remove(0);
    let path = format!("/api/v1/anomaly/detections/{}/root-cause", detection["id"].as_str().unwrap());
    for caller in ["eu", "eu2"] {
        let (status, cause) = shop.ask(caller, "GET", &path, None);
        assert_eq!(status, 200, "{cause}");
        assert!(!cause.to_string().contains("secret"), "{cause}");
    }
    for caller in ["us", "boss"] {
        assert_eq!(shop.ask(caller, "GET", &path, None).0, 404, "{caller}");
    }
    // Another caller with the same view sees the monitor, but may not change it.
    let (status, refused) = shop.ask("eu2", "DELETE", &format!("{MONITORS}/{id}"), None);
    assert_eq!((status, &refused["error"]["code"]), (403, &json!("FORBIDDEN")), "{refused}");
    // A denied member cannot be watched.
    let mut denied = definition();
    denied["dimensions"] = json!(["secret"]);
    let (status, refused) = shop.ask("eu", "POST", MONITORS, Some(&denied));
    assert!(status >= 400 && !refused.to_string().contains("HIDDEN"), "{refused}");
}

#[test]
fn masked_dimensions_do_not_split_monitors() {
    const MASKED: &str =
        "policies:\n  - {name: masked, cubes: [orders], when: {roles: [seller]}, mask: {channel: \"null\"}}\n";
    let shop = Shop::of(Scratch::empty().with("cubes/orders.yml", CUBE).with("policies/masked.yml", MASKED));
    let mut split = definition();
    split["dimensions"] = json!(["channel"]);
    let (status, refused) = shop.ask("eu", "POST", MONITORS, Some(&split));
    let error = &refused["error"];
    assert_eq!((status, &error["code"]), (400, &json!("INVALID_QUERY")), "{refused}");
    assert_eq!(error["details"]["field"], "dimensions", "{refused}");
    assert!(error["message"].as_str().unwrap().contains("`orders.channel`"), "{refused}");
    assert_eq!(shop.ask("boss", "POST", MONITORS, Some(&split)).0, 201);
    split["dimensions"] = json!(["region"]);
    assert_eq!(shop.ask("eu", "POST", MONITORS, Some(&split)).0, 201);
}

#[test]
fn monitors_without_a_stored_sensitivity_have_the_default() {
    let shop = Shop::new();
    let mut plain = definition();
    plain["sensitivity"] = Value::Null;
    let (status, monitor) = shop.ask("boss", "POST", MONITORS, Some(&plain));
    assert_eq!(status, 201, "{monitor}");
    let default = monitor["sensitivity"].as_f64().unwrap();
    let id = monitor["id"].as_str().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = StateStore::open("sqlite://.terrane/state.db", shop.project.path()).await.unwrap();
        let mut stored = store.monitor(id).await.unwrap().unwrap();
        (stored.definition.sensitivity, stored.version) = (None, stored.version + 1);
        assert!(store.replace_monitor(&stored, AuditEntry::default()).await.unwrap());
    });
    let (_, one) = shop.ask("boss", "GET", &format!("{MONITORS}/{id}"), None);
    assert_eq!((&one["version"], one["sensitivity"].as_f64()), (&json!(2), Some(default)), "{one}");
    assert_eq!(shop.list("boss", "monitors")[0]["sensitivity"].as_f64(), Some(default));
}

#[test]
fn monitor_pauses_when_its_owner_loses_a_member() {
    const NARROWED: &str =
        "policies:\n  - {name: narrowed, cubes: [orders], when: {roles: [narrowed]}, deny: [revenue, secret]}\n";
    let shop = Shop::of(Scratch::empty().with("cubes/orders.yml", CUBE).with("policies/narrowed.yml", NARROWED));
    let mut of_revenue = definition();
    (of_revenue["measure_name"], of_revenue["sensitivity"]) = (json!("revenue"), Value::Null);
    let mut by_secret = definition();
    by_secret["dimensions"] = json!(["secret"]);
    let ids = [of_revenue, by_secret, definition()].map(|definition| {
        let (status, monitor) = shop.ask("boss", "POST", MONITORS, Some(&definition));
        assert_eq!(status, 201, "{monitor}");
        // A monitor answers the sensitivity that it uses.
        assert!(monitor["sensitivity"].is_number(), "{monitor}");
        monitor["id"].as_str().unwrap().to_owned()
    });
    let auth = |command: &[&str], arguments: &[&str]| {
        Program::new(BINARY, command, shop.project.path()).arguments(arguments).run().unwrap()
    };
    let keys: Value = serde_json::from_str(&auth(&["auth", "list-keys"], &["--json"]).stdout).unwrap();
    let keys = keys.as_array().or(keys["keys"].as_array()).unwrap();
    let key = keys.iter().find(|key| key["name"] == "boss").unwrap();
    let id = key["id"].as_str().or(key["key_id"].as_str()).unwrap();
    let changed = auth(&["auth", "change-key", id], &["--roles", "narrowed"]);
    assert_eq!(changed.code, Some(0), "{changed:?}");
    let range = json!({"from": "2024-03-01", "to": "2024-03-30"});
    for (id, outcome, member) in
        [(&ids[0], "paused", "`orders.revenue`"), (&ids[1], "paused", "`orders.secret`"), (&ids[2], "scored", "")]
    {
        let path = format!("{MONITORS}/{id}/run");
        // The server reads credentials again after some seconds.
        let run = (0..100)
            .map(|_| {
                std::thread::sleep(std::time::Duration::from_millis(100));
                shop.ask("boss", "POST", &path, Some(&range)).1
            })
            .find(|run| run["outcome"] == outcome);
        let run = run.unwrap_or_else(|| panic!("{outcome}: {}", shop.ask("boss", "POST", &path, Some(&range)).1));
        assert!(run["message"].as_str().unwrap_or_default().contains(member), "{run}");
    }
}

#[test]
fn invalid_definitions_name_their_field() {
    let shop = Shop::new();
    let cases = [
        ("schedule", json!("every day"), "schedule"),
        ("schedule", json!("0 0 31 2 *"), "schedule"),
        ("timezone", json!("Mars/Olympus"), "timezone"),
        ("sensitivity", json!(-1), "sensitivity"),
        ("training_size", json!(0), "training_size"),
        ("detector_type", json!("zscore"), "detector_type"),
        ("name", json!(" "), "name"),
        ("dimensions", json!(["region", "region"]), "dimensions"),
        ("granularity", json!("decade"), "granularity"),
        ("alert_config", json!({"escalation_rules": [{"after_minutes": 0}]}), "alert_config.escalation_rules"),
    ];
    for (field, value, named) in cases {
        let mut definition = definition();
        definition[field] = value.clone();
        let (status, refused) = shop.ask("boss", "POST", MONITORS, Some(&definition));
        assert!(matches!(status, 400 | 404), "{field} {value}: {refused}");
        assert_eq!(refused["error"]["details"]["field"], named, "{value}: {refused}");
    }
    for (field, value) in [("cube_name", "orderz"), ("measure_name", "revenu")] {
        let mut definition = definition();
        definition[field] = json!(value);
        let (status, refused) = shop.ask("boss", "POST", MONITORS, Some(&definition));
        assert_eq!(status, 400, "{refused}");
    }
    let (_, monitor) = shop.ask("boss", "POST", MONITORS, Some(&definition()));
    let path = format!("{MONITORS}/{}", monitor["id"].as_str().unwrap());
    for range in [json!({"from": "yesterday"}), json!({"from": "2024-03-02", "to": "2024-03-01"}), json!({"form": 1})] {
        let (status, refused) = shop.ask("boss", "POST", &format!("{path}/run"), Some(&range));
        assert_eq!((status, &refused["error"]["code"]), (400, &json!("INVALID_QUERY")), "{range}: {refused}");
    }
    let mut changed = definition();
    changed["enabled"] = json!(false);
    let (status, replaced) = shop.ask("boss", "PUT", &path, Some(&changed));
    assert_eq!((status, &replaced["version"], &replaced["next_run_at"]), (200, &json!(2), &Value::Null), "{replaced}");
}
