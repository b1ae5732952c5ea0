//! Tests profiles over HTTP on a real warehouse: callers with different policies, and changes of the data.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::collections::BTreeMap;

use serde_json::{Value, json};
use terrane_system_tests::{Program, Scratch, Server, request_as, request_with};

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
/// A thousand rows, every tenth of which has the region US, and a cube without a key.
const SAMPLED: &str = r#"cubes:
  - name: many
    sql: "SELECT i AS id, CASE WHEN i % 10 = 0 THEN 'US' ELSE 'EU' END AS region FROM range(1000) AS numbers(i)"
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: region, type: string, sql: region}
    measures:
      - {name: count, type: count}
  - name: keyless
    sql: "SELECT i AS number FROM range(40) AS numbers(i)"
    dimensions:
      - {name: number, type: number, sql: number}
    measures:
      - {name: count, type: count}
"#;
/// A cube whose members are all denied to sellers.
const CLOSED: &str = r#"cubes:
  - name: secrets
    sql: "SELECT 1 AS id"
    dimensions: [{name: id, type: number, sql: id, primary_key: true}]
    measures: [{name: hushed, type: count}]
"#;
const POLICIES: &str = r#"policies:
  - {name: closed, cubes: [secrets], when: {roles: [seller]}, deny: [id, hushed]}
  - {name: many, cubes: [many], when: {roles: [seller]}, row_filter: "{many}.region = {{ user.attributes.region }}"}
  - {name: region, cubes: [orders], when: {roles: [seller]}, row_filter: "{orders}.region = {{ user.attributes.region }}"}
  - {name: secret, cubes: [orders], when: {roles: [seller]}, deny: [secret]}
"#;
const ROWS: &str = "id,region,secret,day,amount\n1,EU,HIDDEN-1,2024-01-01,10\n2,EU,HIDDEN-2,2024-01-02,20\n\
                    3,US,HIDDEN-3,2024-02-01,30\n4,US,HIDDEN-4,2024-02-02,\n";

const PROFILE: &str = "/api/v1/profiling/cubes/orders/profile";
const MANY: &str = "/api/v1/profiling/cubes/many/profile";
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
        let project = project.with("cubes/sampled.yml", SAMPLED).with("cubes/closed.yml", CLOSED);
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
    create_key(project, &["--name", name, "--roles", role, "--attribute", &attribute, "--json"])
}

fn create_key(project: &Scratch, arguments: &[&str]) -> String {
    let made = Program::new(BINARY, &["auth", "create-key"], project.path()).arguments(arguments).run().unwrap();
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
fn cube_without_open_members_does_not_exist() {
    let shop = Shop::new();
    let (all, eu) = (shop.key("all"), shop.key("eu"));
    let of = |cube: &str| {
        [
            ("POST", format!("/api/v1/profiling/cubes/{cube}/profile")),
            ("GET", format!("/api/v1/profiling/cubes/{cube}/profile")),
            ("GET", format!("/api/v1/profiling/cubes/{cube}/quality-score")),
            ("POST", format!("/api/v1/profiling/dimensions/{cube}/id/profile")),
        ]
    };
    for ((method, path), (_, unknown)) in of("secrets").into_iter().zip(of("secretx")) {
        let (status, closed) = shop.ask(&eu, method, &path, None);
        assert_eq!((status, &closed["error"]["code"]), (404, &json!("NOT_FOUND")), "{path} {closed}");
        assert!(!closed.to_string().contains("hushed"), "{closed}");
        let (_, unknown) = shop.ask(&eu, method, &unknown, None);
        let without_name = |body: &Value| body["error"]["message"].as_str().unwrap().replace("secretx", "secrets");
        assert_eq!(without_name(&closed), without_name(&unknown));
        let details = |body: &Value| (body["error"]["details"].clone(), body["error"]["code"].clone());
        let (mut of_closed, mut of_unknown) = (details(&closed), details(&unknown));
        for nearest in [&mut of_closed.0["nearest"], &mut of_unknown.0["nearest"]] {
            nearest.as_array_mut().unwrap().sort_by_key(Value::to_string);
        }
        assert_eq!(of_closed, of_unknown);
    }
    for field in ["cubeProfile", "qualityScore", "profileChanges"] {
        let fields = if field == "cubeProfile" { "" } else { " { __typename }" };
        let query = json!({"query": format!("{{ {field}(cube: \"secrets\"){fields} }}")});
        let (_, closed) = shop.ask(&eu, "POST", "/graphql", Some(&query));
        assert_eq!(closed["errors"][0]["extensions"]["code"], json!("NOT_FOUND"), "{closed}");
    }
    assert_eq!(shop.ask(&all, "POST", &of("secrets")[0].1, None).0, 200);
}

#[test]
fn profile_is_compared_with_the_one_before() {
    let shop = Shop::new();
    let key = shop.key("all");
    let range = json!({"filters": {"date_range": {"start": "2024-01-01", "end": "2024-12-31"}}});
    assert_eq!(shop.ask(&key, "POST", PROFILE, Some(&range)).0, 200);
    let rows = format!("{ROWS}5,ASIA,HIDDEN-5,2024-03-01,\n");
    std::fs::write(shop.project.path().join("orders.csv"), rows).unwrap();
    // A profile of a range does not replace the newest profile of the cube.
    assert_eq!(shop.ask(&key, "GET", PROFILE, None).0, 404);
    // The profile of another range has no previous profile for comparison.
    let (_, other) = shop.ask(&key, "POST", PROFILE, None);
    assert_eq!((&other["row_count"], &other["changes"]), (&json!(5), &Value::Null), "{other}");
    let (status, made) = shop.ask(&key, "POST", PROFILE, Some(&range));
    assert_eq!((status, &made["changes"]["row_count"]), (200, &json!({"before": 4, "now": 5})), "{made}");
    let columns = made["changes"]["columns"].as_array().unwrap();
    let region = columns.iter().find(|column| column["name"].as_str().unwrap().ends_with("region")).unwrap();
    assert_eq!((&region["kind"], &region["new_values"]), (&json!("changed"), &json!(["ASIA"])), "{region}");
    assert_eq!(region["distinct_count"], json!({"before": 2, "now": 3}));
    let empty = json!({"filters": {"date_range": {"start": "1999-01-01", "end": "1999-01-02"}}});
    assert_eq!(shop.ask(&key, "POST", PROFILE, Some(&empty)).1["row_count"], 0);
    assert_eq!(shop.ask(&key, "GET", PROFILE, None), (200, other.clone()));
    let score = shop.ask(&key, "GET", SCORE, None).1;
    assert!(score["overall_quality_score"].is_number(), "{score}");
}

#[test]
fn graphql_reads_scores_and_changes() {
    let shop = Shop::new();
    let (all, eu) = (shop.key("all"), shop.key("eu"));
    let field = |key: &str, document: &str| {
        let (_, answer) = shop.ask(key, "POST", "/graphql", Some(&json!({"query": document})));
        assert!(answer.get("errors").is_none(), "{document} {answer}");
        answer["data"].as_object().unwrap().values().next().unwrap().clone()
    };
    let score = "{ qualityScore(cube: \"orders\") \
                 { cube profiledAt dateRange overallQualityScore qualityScores { name score } scoredWeight } }";
    let changes = "{ profileChanges(cube: \"orders\") { since rowCount { before now } \
                   columns { name kind type { before now } nullCount { before now } distinctCount { before now } newValues } } }";
    assert_eq!((field(&all, score), field(&all, changes)), (Value::Null, Value::Null));
    let (_, first) = shop.ask(&all, "POST", PROFILE, None);
    assert_eq!(field(&all, changes), Value::Null);
    let found = field(&all, score);
    let (_, of_rest) = shop.ask(&all, "GET", SCORE, None);
    assert_eq!(found["overallQualityScore"], of_rest["overall_quality_score"], "{found}");
    assert_eq!((&found["cube"], &found["dateRange"]), (&json!("orders"), &json!("")), "{found}");
    let scores = found["qualityScores"].as_array().unwrap();
    assert_eq!(scores.len(), of_rest["quality_scores"].as_object().unwrap().len(), "{found}");
    assert!(scores.iter().all(|one| one["score"] == of_rest["quality_scores"][one["name"].as_str().unwrap()]));

    let rows = format!("{ROWS}5,ASIA,HIDDEN-5,2024-03-01,\n");
    std::fs::write(shop.project.path().join("orders.csv"), rows).unwrap();
    shop.ask(&all, "POST", PROFILE, None);
    let found = field(&all, changes);
    assert_eq!((&found["since"], &found["rowCount"]["now"]), (&first["profiled_at"], &json!(5.0)), "{found}");
    let columns = found["columns"].as_array().unwrap();
    let region = columns.iter().find(|column| column["name"].as_str().unwrap().ends_with("region")).unwrap();
    assert_eq!((&region["kind"], &region["newValues"]), (&json!("changed"), &json!(["ASIA"])), "{region}");
    let whole = field(&all, "{ cubeProfile(cube: \"orders\") }");
    let part = field(&all, "{ cubeProfile(cube: \"orders\", includeHistograms: false, includeInsights: false) }");
    assert_eq!(whole, shop.ask(&all, "GET", PROFILE, None).1);
    let parameters = "?include_histograms=false&include_insights=false";
    assert_eq!(part, shop.ask(&all, "GET", &format!("{PROFILE}{parameters}"), None).1);
    // Profiles of one view are not shown to callers with another.
    assert_eq!((field(&eu, score), field(&eu, changes)), (Value::Null, Value::Null));
    shop.ask(&eu, "POST", PROFILE, None);
    shop.ask(&eu, "POST", PROFILE, None);
    assert!(!field(&eu, changes).to_string().contains("secret"));
}

#[test]
fn column_of_another_type_loses_only_its_own_checks() {
    const DRIFTED: &str = r#"cubes:
  - name: drifted
    sql: "SELECT i AS id, 'x' || i AS word, DATE '2024-01-01' AS day, true AS flag FROM range(30) AS numbers(i)"
    measures: [{name: count, type: count}]
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: number_word, type: number, sql: word}
      - {name: number_day, type: number, sql: day}
      - {name: number_flag, type: number, sql: flag}
      - {name: boolean_word, type: boolean, sql: word}
      - {name: time_word, type: time, sql: word}
      - {name: word, type: string, sql: word}
"#;
    let project = Scratch::empty().with("service_project.yml", SETTINGS).with("cubes/drifted.yml", DRIFTED);
    let run = Program::new(BINARY, &["profile"], project.path()).arguments(&["drifted", "--json"]).run().unwrap();
    let made: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{run:?}"));
    assert!(made["overall_quality_score"].is_number(), "{made}");
    let insights = made["insights"].as_array().unwrap();
    let named = |code: &str| {
        let found = insights.iter().filter(|insight| insight["code"] == code);
        found.map(|insight| insight["column"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    assert!(named("check_unavailable").is_empty(), "{made}");
    let drifted = ["number_word", "number_day", "number_flag", "boolean_word", "time_word"];
    assert_eq!(named("type_drift"), drifted, "{made}");
    for name in drifted {
        let column = dimension(&made, name);
        assert_eq!((&column["null_count"], &column["mean"]), (&json!(0), &Value::Null), "{column}");
    }
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
    assert_eq!((status, &refused["error"]["details"]["nearest"][0]), (404, &json!("orders")), "{refused}");
    assert_eq!(shop.ask(&key, "GET", &format!("{PROFILE}?include_histograms=1"), None).0, 400);
    let (_, sampled) = shop.ask(&key, "POST", PROFILE, Some(&json!({"config": {"sample_size": 10}})));
    // Fewer rows than requested are all read.
    assert_eq!(
        (&sampled["sample_size"], &sampled["sampling"], &sampled["warnings"]),
        (&json!(4), &Value::Null, &json!([]))
    );
    let keyless = json!({"config": {"sample_size": 10}});
    let (_, all) = shop.ask(&key, "POST", "/api/v1/profiling/cubes/keyless/profile", Some(&keyless));
    assert_eq!((&all["sample_size"], &all["sampling"]), (&json!(40), &Value::Null), "{all}");
    assert!(all["warnings"][0].as_str().unwrap().contains("primary key"), "{all}");
    let strata = json!({"config": {"sampling_strategy": "stratified", "stratify_by": "nothing"}});
    assert_eq!(shop.ask(&key, "POST", MANY, Some(&strata)).0, 400);
}

/// Returns a column of a profile without the numbers of the cube.
fn dimension<'p>(profile: &'p Value, name: &str) -> &'p Value {
    let columns = profile["dimension_profiles"].as_array().unwrap();
    columns
        .iter()
        .find(|column| column["name"].as_str().unwrap().ends_with(name))
        .unwrap_or_else(|| panic!("{profile}"))
}

#[test]
fn samples_have_the_requested_size_and_are_the_same_again() {
    let shop = Shop::new();
    let key = shop.key("all");
    let profile = |config: Value| {
        let (status, made) = shop.ask(&key, "POST", MANY, Some(&json!({"config": config})));
        assert_eq!((status, &made["row_count"], &made["warnings"]), (200, &json!(1000), &json!([])), "{made}");
        made
    };
    for strategy in ["random", "systematic", "stratified"] {
        let mut config = json!({"sample_size": 100, "sampling_strategy": strategy, "top_n_values": 20});
        if strategy == "stratified" {
            config["stratify_by"] = json!("region");
        }
        let (made, again) = (profile(config.clone()), profile(config));
        assert_eq!((&made["sample_size"], &made["sampling"]["strategy"]), (&json!(100), &json!(strategy)), "{made}");
        assert_eq!(made["sampling"]["is_estimate"], json!(true));
        assert_eq!(made["dimension_profiles"], again["dimension_profiles"], "{strategy}");
        let id = dimension(&made, "id");
        assert_eq!((&id["total_count"], &id["distinct_count"]), (&json!(100), &json!(100)), "{strategy}: {id}");
        let bins = id["histogram"].as_array().unwrap().iter().map(|bin| bin["count"].as_u64().unwrap());
        assert_eq!(bins.sum::<u64>(), 100, "all statements read the same rows: {id}");
        let parts = dimension(&made, "region")["top_values"].as_array().unwrap();
        let counts: Vec<u64> = parts.iter().map(|part| part["count"].as_u64().unwrap()).collect();
        assert_eq!(counts.iter().sum::<u64>(), 100, "{parts:?}");
        match strategy {
            // Nine of ten rows have the region EU.
            "stratified" => assert_eq!(counts, [90, 10]),
            "systematic" => assert_eq!((&id["min"], &id["max"], &id["mean"]), (&json!(9), &json!(999), &json!(504.0))),
            _ => assert!(id["mean"] != json!(504.0) && id["max"].as_i64() > Some(800), "{id}"),
        }
    }
    let all = profile(json!({"sample_size": 0}));
    assert_eq!((&all["sample_size"], &all["sampling"]), (&json!(1000), &Value::Null));
    // Counts of a sample are not compared with those of all rows.
    let (_, changed) = shop.ask(&key, "POST", MANY, Some(&json!({"config": {"sample_size": 100}})));
    assert_eq!(changed["changes"]["columns"], json!([]), "{changed}");
}

#[test]
fn sample_has_only_rows_that_the_caller_sees() {
    let shop = Shop::new();
    let config = json!({"config": {"sample_size": 50, "top_n_values": 20}});
    let (status, made) = shop.ask(&shop.key("us"), "POST", MANY, Some(&config));
    assert_eq!((status, &made["row_count"], &made["sample_size"]), (200, &json!(100), &json!(50)), "{made}");
    assert_eq!(dimension(&made, "region")["top_values"], json!([{"value": "US", "count": 50}]), "{made}");
    let of = "/api/v1/profiling/dimensions/many/region/profile";
    let (status, region) = shop.ask(&shop.key("us"), "POST", of, Some(&config));
    assert_eq!((status, &region["sample_size"], &region["row_count"]), (200, &json!(50), &json!(100)), "{region}");
}

/// Sends a request for a profile as a job, and returns the status, the head and the body.
fn submit(shop: &Shop, key: &str, path: &str, name: &str, body: &Value) -> (u16, String, Value) {
    let (bearer, body) = (format!("Bearer {key}"), body.to_string());
    let headers = [("Authorization", bearer.as_str()), ("Prefer", "respond-async"), ("Idempotency-Key", name)];
    let answer = request_with(shop.server.address, &headers, "POST", path, Some(&body)).unwrap();
    (answer.status, answer.head.clone(), answer.json().unwrap())
}

#[test]
fn profile_runs_as_a_job_of_its_caller() {
    let shop = Shop::new();
    let (all, eu, other) = (shop.key("all"), shop.key("eu"), shop.key("us"));
    let body = json!({"config": {"sample_size": 0, "top_n_values": 5}});
    let (status, head, job) = submit(&shop, &eu, PROFILE, "first", &body);
    assert_eq!((status, &job["kind"]), (202, &json!("profile")), "{job}");
    let address = job["poll_url"].as_str().unwrap();
    assert!(head.contains(address), "{head}");
    let (status, ended) = shop.ask(&eu, "GET", &format!("{address}?wait=30"), None);
    assert_eq!((status, &ended["status"], ended.get("row_count")), (200, &json!("complete"), None), "{ended}");
    let result = ended["result_url"].as_str().unwrap();
    let (status, made) = shop.ask(&eu, "GET", result, None);
    // The job has the rows and columns of its caller.
    assert_eq!((status, &made["row_count"]), (200, &json!(2)), "{made}");
    assert!(!made.to_string().contains("HIDDEN"), "{made}");
    assert_eq!(shop.ask(&eu, "GET", PROFILE, None), (200, made), "the profile is stored");
    // A repeated request is the same job, and another request with its name is refused.
    let (status, _, again) = submit(&shop, &eu, PROFILE, "first", &body);
    assert_eq!((status, &again["job_id"]), (202, &job["job_id"]), "{again}");
    assert_eq!(submit(&shop, &eu, PROFILE, "first", &json!({})).0, 422);
    // Others do not learn that it exists.
    for key in [&all, &other] {
        assert_eq!(shop.ask(key, "GET", address, None).0, 404);
        assert_eq!(shop.ask(key, "GET", result, None).0, 404);
        assert_eq!(shop.ask(key, "DELETE", address, None).0, 404);
    }
    let (_, listed) = shop.ask(&eu, "GET", "/api/v1/query/async", None);
    assert_eq!(listed["jobs"].as_array().unwrap().len(), 1, "{listed}");
    // Its owner gives up the result.
    assert_eq!(shop.ask(&eu, "DELETE", address, None).1["status"], json!("expired"));
    assert_eq!(shop.ask(&eu, "GET", result, None).0, 410);
}

#[test]
fn jobs_of_dimensions_and_invalid_jobs_answer_like_requests() {
    let shop = Shop::new();
    let key = shop.key("eu");
    let of = |name: &str| format!("/api/v1/profiling/dimensions/orders/{name}/profile");
    let (status, _, job) = submit(&shop, &key, &of("region"), "region", &json!({}));
    assert_eq!(status, 202, "{job}");
    let address = job["poll_url"].as_str().unwrap();
    let (_, ended) = shop.ask(&key, "GET", &format!("{address}?wait=30"), None);
    let (status, region) = shop.ask(&key, "GET", ended["result_url"].as_str().unwrap(), None);
    assert_eq!((status, &region["profile"]["top_values"]), (200, &json!([{"value": "EU", "count": 2}])), "{region}");
    // A denied dimension, an unknown one, and an unknown cube.
    for path in [of("secret"), of("nothing"), "/api/v1/profiling/cubes/order/profile".to_owned()] {
        assert_eq!(submit(&shop, &key, &path, "unknown", &json!({})).0, 404, "{path}");
    }
    let (status, _, refused) = submit(&shop, &key, PROFILE, "bad", &json!({"config": {"histogram_bin": 5}}));
    assert_eq!((status, &refused["error"]["details"]["field"]), (400, &json!("config.histogram_bin")), "{refused}");
}

#[test]
fn changed_policy_closes_the_result_of_a_job() {
    let shop = Shop::new();
    let key = shop.key("eu");
    let (_, _, job) = submit(&shop, &key, PROFILE, "before", &json!({}));
    let address = job["poll_url"].as_str().unwrap();
    let (_, ended) = shop.ask(&key, "GET", &format!("{address}?wait=30"), None);
    let result = ended["result_url"].as_str().unwrap();
    assert_eq!(shop.ask(&key, "GET", result, None).0, 200);
    let policies = POLICIES.replace("deny: [secret]", "deny: [secret, day]");
    std::fs::write(shop.project.path().join("policies/orders.yml"), policies).unwrap();
    let writer = create_key(&shop.project, &["--name", "writer", "--scopes", "read,write", "--json"]);
    let (status, loaded) = shop.ask(&writer, "POST", "/api/v1/unified/load", Some(&json!({})));
    assert_eq!(status, 200, "{loaded}");
    let (status, gone) = shop.ask(&key, "GET", result, None);
    assert_eq!((status, &gone["error"]["details"]["reason"]), (410, &json!("policy_changed")), "{gone}");
}
