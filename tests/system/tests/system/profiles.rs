//! Tests profiles over HTTP on a real warehouse: callers with different policies, and changes of the data.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::collections::BTreeMap;

use serde_json::{Value, json};
use terrane_system_tests::{Program, Scratch, Server, request_as};

use crate::BINARY;

const SETTINGS: &str = "name: shop\nwarehouse: {type: duckdb}\ncache: {enabled: false}\n";
const CUBE: &str = r#"cubes:
  - name: orders
    sql: "SELECT * FROM read_csv('orders.csv')"
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: region, type: string, sql: region}
      - {name: secret, type: string, sql: secret}
      - {name: day, type: time, sql: day, primary_time: true}
    measures:
      - {name: count, type: count}
      - {name: revenue, type: sum, sql: amount}
"#;
const POLICIES: &str = r#"policies:
  - {name: region, cubes: [orders], when: {roles: [seller]}, row_filter: "{orders}.region = {{ user.attributes.region }}"}
  - {name: secret, cubes: [orders], when: {roles: [seller]}, deny: [secret]}
"#;
const ROWS: &str = "id,region,secret,day,amount\n1,EU,HIDDEN-1,2024-01-01,10\n2,EU,HIDDEN-2,2024-01-02,20\n\
                    3,US,HIDDEN-3,2024-02-01,30\n4,US,HIDDEN-4,2024-02-02,\n";

const PROFILE: &str = "/api/v1/profiling/cubes/orders/profile";
const SCORE: &str = "/api/v1/profiling/cubes/orders/quality-score";

/// The callers: a name, a role and a region.
const CALLERS: [(&str, &str, &str); 4] =
    [("all", "boss", "-"), ("eu", "seller", "EU"), ("us", "seller", "US"), ("eu2", "seller", "EU")];

struct Shop {
    server: Server,
    project: Scratch,
    keys: BTreeMap<&'static str, String>,
}

impl Shop {
    fn new() -> Shop {
        let project = Scratch::empty().with("service_project.yml", SETTINGS).with("cubes/orders.yml", CUBE);
        let project = project.with("policies/orders.yml", POLICIES).with("orders.csv", ROWS);
        let keys = CALLERS.into_iter().map(|(name, role, region)| (name, key(&project, name, role, region))).collect();
        let server = Program::new(BINARY, &["serve"], project.path()).arguments(&["--port", "0"]).serve().unwrap();
        Shop { server, project, keys }
    }

    fn key(&self, name: &str) -> String {
        self.keys[name].clone()
    }

    fn ask(&self, key: &str, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let body = body.map(Value::to_string);
        let answer = request_as(self.server.address, Some(key), method, path, body.as_deref()).unwrap();
        (answer.status, answer.json().unwrap())
    }
}

fn key(project: &Scratch, name: &str, role: &str, region: &str) -> String {
    let attribute = format!("region={region}");
    let arguments = ["--name", name, "--roles", role, "--attribute", &attribute, "--json"];
    let made = Program::new(BINARY, &["auth", "create-key"], project.path()).arguments(&arguments).run().unwrap();
    let key: Value = serde_json::from_str(&made.stdout).unwrap_or_else(|_| panic!("{}", made.stderr));
    key["key"].as_str().unwrap().to_owned()
}

fn names(profile: &Value) -> Vec<&str> {
    profile["dimension_profiles"].as_array().unwrap().iter().map(|column| column["name"].as_str().unwrap()).collect()
}

#[test]
fn callers_read_profiles_of_their_own_view_only() {
    let shop = Shop::new();
    let (all, eu, us) = (shop.key("all"), shop.key("eu"), shop.key("us"));
    let (status, body) = shop.ask(&all, "GET", PROFILE, None);
    assert_eq!((status, &body["error"]["code"]), (404, &json!("NOT_FOUND")), "{body}");
    assert!(body["error"]["message"].as_str().unwrap().contains("POST /api/v1/profiling"), "{body}");

    let (status, made) = shop.ask(&all, "POST", PROFILE, None);
    assert_eq!((status, &made["row_count"], &made["changes"]), (200, &json!(4), &Value::Null), "{made}");
    assert!(names(&made).iter().any(|name| name.ends_with("secret")), "{made}");
    assert_eq!(shop.ask(&all, "GET", PROFILE, None), (200, made.clone()));
    // A profile of all rows is not shown to callers with policies.
    assert_eq!(shop.ask(&eu, "GET", PROFILE, None).0, 404);
    assert_eq!(shop.ask(&us, "GET", SCORE, None).0, 404);

    let (status, of_eu) = shop.ask(&eu, "POST", PROFILE, Some(&json!({})));
    assert_eq!((status, &of_eu["row_count"]), (200, &json!(2)), "{of_eu}");
    assert!(!of_eu.to_string().contains("HIDDEN") && !names(&of_eu).iter().any(|name| name.ends_with("secret")));
    assert_eq!(shop.ask(&us, "GET", PROFILE, None).0, 404);
    assert_eq!(shop.ask(&all, "GET", PROFILE, None), (200, made.clone()));
    let again = shop.key("eu2");
    assert_eq!(shop.ask(&again, "GET", PROFILE, None), (200, of_eu));

    let (_, less) = shop.ask(&all, "GET", &format!("{PROFILE}?include_histograms=false&include_insights=false"), None);
    let mut columns = less["dimension_profiles"].as_array().unwrap().iter();
    assert!(columns.all(|column| column["histogram"] == json!([])) && less["insights"] == json!([]), "{less}");
    let (status, score) = shop.ask(&all, "GET", SCORE, None);
    // A number may differ in its last digit after it was written as JSON and parsed.
    let quality = |body: &Value| body["overall_quality_score"].as_f64().unwrap();
    assert!(status == 200 && (quality(&score) - quality(&made)).abs() < 1e-9, "{score}");

    let of = |name: &str| format!("/api/v1/profiling/dimensions/orders/{name}/profile");
    let (status, region) = shop.ask(&eu, "POST", &of("region"), Some(&json!({"config": {"top_n_values": 5}})));
    assert_eq!((status, &region["profile"]["top_values"]), (200, &json!([{"value": "EU", "count": 2}])), "{region}");
    // A denied dimension, and a dimension that does not exist, have the same answer.
    for name in ["secret", "nothing"] {
        let (status, refused) = shop.ask(&eu, "POST", &of(name), None);
        assert_eq!((status, &refused["error"]["code"]), (404, &json!("NOT_FOUND")), "{refused}");
        assert!(!refused["error"]["details"].to_string().contains("secret"), "{refused}");
    }
}

#[test]
fn a_profile_is_compared_with_the_one_before() {
    let shop = Shop::new();
    let key = shop.key("all");
    let range = json!({"filters": {"date_range": {"start": "2024-01-01", "end": "2024-12-31"}}});
    assert_eq!(shop.ask(&key, "POST", PROFILE, Some(&range)).0, 200);
    let rows = format!("{ROWS}5,ASIA,HIDDEN-5,2024-03-01,\n");
    std::fs::write(shop.project.path().join("orders.csv"), rows).unwrap();
    // The profile of another range has no previous profile for comparison.
    let (_, other) = shop.ask(&key, "POST", PROFILE, None);
    assert_eq!((&other["row_count"], &other["changes"]), (&json!(5), &Value::Null), "{other}");
    let (status, made) = shop.ask(&key, "POST", PROFILE, Some(&range));
    assert_eq!((status, &made["changes"]["row_count"]), (200, &json!({"before": 4, "now": 5})), "{made}");
    let columns = made["changes"]["columns"].as_array().unwrap();
    let region = columns.iter().find(|column| column["name"].as_str().unwrap().ends_with("region")).unwrap();
    assert_eq!((&region["kind"], &region["new_values"]), (&json!("changed"), &json!(["ASIA"])), "{region}");
    assert_eq!(region["distinct_count"], json!({"before": 2, "now": 3}));
}

#[test]
fn invalid_requests_of_profiles_name_the_field() {
    let shop = Shop::new();
    let key = shop.key("all");
    for (body, field) in [
        (json!({"config": {"histogram_bin": 5}}), "config.histogram_bin"),
        (json!({"config": {"percentile_list": [101]}}), "config.percentile_list"),
        (json!({"config": {"sampling_strategy": "first"}}), "config.sampling_strategy"),
        (
            json!({"config": {"quality_thresholds": {"validity_warning": 2}}}),
            "config.quality_thresholds.validity_warning",
        ),
        (json!({"filters": {"date_range": {}}}), "filters.date_range"),
        (json!({"filter": {}}), "filter"),
    ] {
        let (status, refused) = shop.ask(&key, "POST", PROFILE, Some(&body));
        let error = &refused["error"];
        assert_eq!((status, &error["code"], &error["details"]["field"]), (400, &json!("INVALID_QUERY"), &json!(field)));
    }
    let (status, refused) = shop.ask(&key, "POST", "/api/v1/profiling/cubes/order/profile", None);
    assert_eq!((status, &refused["error"]["details"]["nearest"]), (404, &json!(["orders"])), "{refused}");
    assert_eq!(shop.ask(&key, "GET", &format!("{PROFILE}?include_histograms=1"), None).0, 400);
    let (_, sampled) = shop.ask(&key, "POST", PROFILE, Some(&json!({"config": {"sample_size": 10}})));
    assert_eq!(sampled["warnings"].as_array().unwrap().len(), 1, "{sampled}");
}
