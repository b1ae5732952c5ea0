//! Tests that a real server follows changes of keys and users on the command line, and writes audit records about them.

use std::time::Duration;

use serde_json::{Value, json};
use terrane_system_tests::{Program, Scratch, request_as};

use crate::BINARY;

const SETTINGS: &str = "name: scratch\nwarehouse: {type: duckdb, init: [\"CREATE TABLE t AS SELECT * FROM (VALUES (1, 'EU'), (2, 'US'), (3, 'EU')) AS v(id, region)\"]}\n";
const CUBE: &str = "cubes:\n  - name: t\n    sql_table: t\n    measures: [{name: count, type: count}]\n    \
                    dimensions: [{name: id, type: number, sql: id, primary_key: true}, {name: region, type: string, sql: region}]\n";
const POLICY: &str =
    "policies:\n  - {name: own, cubes: [t], row_filter: \"{region} = {{ user.attributes.region }}\"}\n";
const SECRET: &str = "0123456789abcdef0123456789abcdef";
/// The pause between two attempts. The server reloads credentials from the state database after two seconds.
const PAUSE: Duration = Duration::from_millis(100);
const PASSWORD: &str = "correct horse battery staple";

#[test]
fn callers_see_only_what_their_credential_allows() {
    let project = Scratch::empty().with("service_project.yml", SETTINGS).with("cubes/t.yml", CUBE);
    let project = project.with("policies/t.yml", POLICY);
    let auth = |call: &[&str], arguments: &[&str], input: &str| {
        let called = Program::new(BINARY, call, project.path()).arguments(arguments).input(input);
        let output = called.run().unwrap();
        assert_eq!(output.code, Some(0), "{call:?}: {}", output.stderr);
        output.stdout
    };
    let arguments = ["--name", "eu", "--attribute", "region=EU", "--expires", "365d", "--json"];
    let made: Value = serde_json::from_str(&auth(&["auth", "create-key"], &arguments, "")).unwrap();
    let (id, key) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());
    auth(&["auth", "create-user", "ada"], &["--password-stdin", "--attribute", "region=US"], PASSWORD);

    let server = Program::new(BINARY, &["serve"], project.path()).arguments(&["--port", "0"]);
    let server = server.variable("SERVICE_SECURITY__JWT_SECRET", SECRET).serve().unwrap();
    let count = |bearer: Option<&str>| {
        let body = r#"{"measures": ["t.count"]}"#;
        let answer = request_as(server.address, bearer, "POST", "/api/v1/query", Some(body)).unwrap();
        (answer.status, answer.json().unwrap()["data"][0]["t.count"].clone())
    };
    assert_eq!(count(Some(key)), (200, json!(2)));
    let body = json!({"username": "ada", "password": PASSWORD}).to_string();
    let pair = request_as(server.address, None, "POST", "/api/v1/auth/token", Some(&body)).unwrap();
    let token = pair.json().unwrap()["access_token"].as_str().unwrap().to_owned();
    assert_eq!(count(Some(&token)), (200, json!(1)));
    assert_eq!((count(None).0, count(Some("invalid")).0), (401, 401));

    auth(&["auth", "revoke-key", id], &[], "");
    let is_refused = (0..100).any(|_| {
        std::thread::sleep(PAUSE);
        count(Some(key)).0 == 401
    });
    assert!(is_refused, "a revoked key is still good");
    let (code, log) = server.terminate().unwrap();
    assert_eq!(code, Some(0), "{log}");
    for secret in [key, &token, PASSWORD, SECRET] {
        assert!(!log.contains(secret), "the log holds a secret: {log}");
    }
    let verified = auth(&["audit", "verify"], &[], "");
    assert!(verified.starts_with("the audit log is intact"), "{verified}");
    let verified: Value = serde_json::from_str(&auth(&["audit", "verify"], &["--json"], "")).unwrap();
    assert_eq!(verified["is_whole"], true);
    let lines = auth(&["audit", "list"], &["--event", "access_denied", "--json"], "");
    let records: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!records.is_empty() && records.iter().all(|record| record["event"] == "access_denied"), "{lines}");
    let listed = auth(&["audit", "list"], &["--event", "access_denied"], "");
    assert!(listed.contains("revoked key") && listed.contains("no credentials"), "{listed}");
}

#[test]
fn running_server_applies_changes_of_the_command_line() {
    let project = Scratch::empty().with("service_project.yml", SETTINGS).with("cubes/t.yml", CUBE);
    let project = project.with("policies/t.yml", POLICY);
    let auth = |call: &[&str], arguments: &[&str], input: &str| -> Value {
        let arguments = [arguments, &["--json"]].concat();
        let called = Program::new(BINARY, call, project.path()).arguments(&arguments).input(input);
        let output = called.run().unwrap();
        assert_eq!(output.code, Some(0), "{call:?}: {}", output.stderr);
        serde_json::from_str(&output.stdout).unwrap()
    };
    let key = auth(&["auth", "create-key"], &["--name", "eu", "--attribute", "region=EU"], "");
    let (id, text) = (key["id"].as_str().unwrap(), key["key"].as_str().unwrap());
    auth(&["auth", "create-user", "ada"], &["--password-stdin", "--attribute", "region=US"], PASSWORD);
    let server = Program::new(BINARY, &["serve"], project.path()).arguments(&["--port", "0"]);
    let server = server.variable("SERVICE_SECURITY__JWT_SECRET", SECRET).serve().unwrap();
    let count = |bearer: &str| {
        let body = r#"{"measures": ["t.count"]}"#;
        let answer = request_as(server.address, Some(bearer), "POST", "/api/v1/query", Some(body)).unwrap();
        (answer.status, answer.json().unwrap()["data"][0]["t.count"].clone())
    };
    let sign_in = |password: &str| {
        let body = json!({"username": "ada", "password": password}).to_string();
        let answer = request_as(server.address, None, "POST", "/api/v1/auth/token", Some(&body)).unwrap();
        (answer.status, answer.json().unwrap()["access_token"].as_str().unwrap_or_default().to_owned())
    };
    let becomes = |bearer: &str, expected: (u16, Value)| {
        let is_so = (0..100).any(|_| {
            std::thread::sleep(PAUSE);
            count(bearer) == expected
        });
        assert!(is_so, "{expected:?} was expected, {:?} is answered", count(bearer));
    };
    let (_, token) = sign_in(PASSWORD);
    assert_eq!((count(text), count(&token)), ((200, json!(2)), (200, json!(1))));

    let changed = auth(&["auth", "change-key", id], &["--attribute", "region=US", "--name", "us"], "");
    assert_eq!((&changed["name"], &changed["attributes"]), (&json!("us"), &json!({"region": "US"})));
    becomes(text, (200, json!(1)));
    let changed = auth(&["auth", "change-user", "ada"], &["--attribute", "region=EU", "--roles", "a,b"], "");
    assert_eq!((&changed["roles"], &changed["ended_sessions"]), (&json!(["a", "b"]), &json!(1)));
    becomes(&token, (401, Value::Null));
    let (_, token) = sign_in(PASSWORD);
    assert_eq!(count(&token), (200, json!(2)));
    const OTHER: &str = "another password that is long";
    let changed = auth(&["auth", "change-password", "ada"], &["--password-stdin"], OTHER);
    assert_eq!(changed["ended_sessions"], 1);
    becomes(&token, (401, Value::Null));
    assert_eq!((sign_in(PASSWORD).0, sign_in(OTHER).0), (401, 200));
    auth(&["auth", "disable-user", "ada"], &[], "");
    assert_eq!(sign_in(OTHER).0, 401);
    let cleared = auth(&["auth", "change-user", "ada"], &["--clear", "roles,attributes"], "");
    assert_eq!((&cleared["roles"], &cleared["attributes"]), (&json!([]), &json!({})));
    assert!(cleared["disabled_at"].is_string(), "{cleared}");
    assert_eq!(auth(&["auth", "enable-user", "ada"], &[], "")["disabled_at"], Value::Null);
    let (status, token) = sign_in(OTHER);
    assert_eq!((status, count(&token)), (200, (200, json!(0))), "no region, no rows");

    let listed = Program::new(BINARY, &["audit", "list"], project.path()).arguments(&["--json"]).run().unwrap().stdout;
    let records: Vec<Value> = listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |event: &str| records.iter().filter(|record| record["event"] == event).collect::<Vec<_>>();
    assert_eq!((of("user_changed").len(), of("key_changed").len()), (3, 1), "{listed}");
    assert_eq!((of("user_disabled").len(), of("user_enabled").len()), (1, 1), "{listed}");
    assert_eq!(of("key_changed")[0]["before"]["attributes"], json!({"region": "EU"}));
    assert_eq!(of("key_changed")[0]["after"]["attributes"], json!({"region": "US"}));
    for secret in [text, PASSWORD, OTHER, "argon2"] {
        assert!(!listed.contains(secret), "the audit log holds a secret");
    }
}

#[test]
fn invalid_keys_and_users_are_rejected() {
    let project = Scratch::project();
    for (call, arguments, input, words) in [
        (&["auth", "create-key"][..], &["--name", "a", "--scopes", "raed"][..], "", "unknown scope `raed`"),
        (&["auth", "create-key"], &["--name", "a", "--expires", "soon"], "", "`soon`: expected a duration"),
        (&["auth", "create-key"], &["--name", "a", "--expires=-1d"], "", "ends in the future"),
        (&["auth", "create-key"], &["--name", ""], "", "1 to 256 bytes"),
        (&["auth", "create-key"], &["--name", "a", "--attribute", "EU"], "", "invalid attribute `EU`"),
        (&["auth", "create-key"], &["--name", "a", "--attribute", "a=[1"], "", "invalid attribute `a=[1`"),
        (&["auth", "create-key"], &["--name", "a", "--attribute", "a=null"], "", "invalid attribute `a=null`"),
        (&["auth", "revoke-key", "0123456789abcdef"], &[], "", "list-keys"),
        (&["auth", "create-user", "ada"], &["--password-stdin"], "short", "at least 12"),
        (&["auth", "disable-user", "ada"], &[], "", "list-users"),
        (&["auth", "change-user", "ada"], &["--roles", "a"], "", "list-users"),
        (&["auth", "change-user", "ada"], &[], "", "no field to change"),
        (&["auth", "change-user", "ada"], &["--roles", "a", "--clear", "roles"], "", "both set and cleared"),
        (&["auth", "change-password", "ada"], &["--password-stdin"], PASSWORD, "list-users"),
        (&["auth", "change-key", "0123456789abcdef"], &["--name", "a"], "", "list-keys"),
    ] {
        let output = Program::new(BINARY, call, project.path()).arguments(arguments).input(input).run().unwrap();
        assert_eq!(output.code, Some(1), "{call:?} {arguments:?}: {}", output.stdout);
        assert!(output.stderr.contains(words), "{call:?} {arguments:?}: {}", output.stderr);
    }
}

#[test]
fn denials_and_failed_sign_ins_are_in_the_log_and_the_audit_log() {
    let deny = "policies:\n  - {name: closed, cubes: [t], mask: {region: hash}}\n";
    let project = Scratch::empty().with("service_project.yml", SETTINGS).with("cubes/t.yml", CUBE);
    let project = project.with("policies/t.yml", deny);
    let run = |call: &[&str], arguments: &[&str], input: &str| {
        Program::new(BINARY, call, project.path()).arguments(arguments).input(input).run().unwrap()
    };
    let attributes = ["n=5", "word=EU", "code=007", "quoted=\"5\"", "list=[1,true]", "list=x"];
    let arguments: Vec<&str> = attributes.iter().flat_map(|text| ["--attribute", *text]).collect();
    let arguments = [&["--name", "a", "--json"], &arguments[..]].concat();
    let made: Value = serde_json::from_str(&run(&["auth", "create-key"], &arguments, "").stdout).unwrap();
    let expected = json!({"n": 5, "word": "EU", "code": "007", "quoted": "5", "list": [1, true, "x"]});
    assert_eq!(made["attributes"], expected);
    run(&["auth", "create-user", "ada"], &["--password-stdin"], PASSWORD);
    let server = Program::new(BINARY, &["serve"], project.path()).arguments(&["--port", "0"]);
    let server = server.variable("SERVICE_SECURITY__JWT_SECRET", SECRET).variable("SERVICE_METRICS__ENABLED", "true");
    let server = server.variable("SERVICE_METRICS__PUBLIC", "true").serve().unwrap();
    let post = |bearer: Option<&str>, path: &str, body: Value| {
        request_as(server.address, bearer, "POST", path, Some(&body.to_string())).unwrap().status
    };
    let query = json!({"measures": ["t.count"], "filters": [{"dimension": "t.region", "operator": "set"}]});
    // The query filters by a masked member, which is refused.
    assert_eq!(post(made["key"].as_str(), "/api/v1/query", query), 403);
    let token = "/api/v1/auth/token";
    assert_eq!(post(None, token, json!({"username": "ada", "password": "wrong and long"})), 401);
    assert_eq!(post(None, token, json!({"username": "ada", "password": PASSWORD})), 200);
    let metrics = request_as(server.address, None, "GET", "/metrics", None).unwrap().body;
    assert!(metrics.contains("service_authentications_total{auth_method=\"password\"} 1"), "{metrics}");
    assert!(metrics.contains("service_access_denied_total{reason=\"wrong password\"} 1"), "{metrics}");
    let (_, log) = server.terminate().unwrap();
    assert!(log.contains("\"reason\":\"wrong password\""), "{log}");
    assert!(log.contains("\"auth_method\":\"password\""), "{log}");
    assert!(log.contains("\"reason\":\"policy\""), "{log}");
    let listed = run(&["audit", "list"], &["--event", "access_denied"], "").stdout;
    assert!(listed.contains("policy"), "{listed}");
}

#[test]
fn dependents_of_closed_members_are_not_listed_or_suggested() {
    let cube = "cubes:\n  - name: t\n    sql_table: t\n    measures:\n      - {name: count, type: count}\n      \
                - {name: regions, type: count_distinct, sql: region}\n      \
                - {name: per_region, type: number, sql: \"{count} / {regions}\"}\n      - {name: ids, type: max, sql: id}\n    \
                dimensions: [{name: id, type: number, sql: id, primary_key: true}, {name: region, type: string, sql: region}, \
                {name: region_up, type: string, sql: UPPER(region)}]\n    segments: [{name: eu, sql: \"region = 'EU'\"}]\n";
    let metrics = "metrics:\n  - {name: share, type: ratio, numerator: t.count, denominator: t.per_region}\n  \
                   - {name: all_of_them, type: simple, expression: t.count}\n";
    let policy = "policies:\n  - {name: closed, cubes: [t], when: {unless_roles: [boss]}, deny: [region]}\n";
    let project = Scratch::empty().with("service_project.yml", SETTINGS).with("cubes/t.yml", cube);
    let project = project.with("policies/t.yml", policy).with("metrics/m.yml", metrics);
    let key = |arguments: &[&str]| {
        let made = Program::new(BINARY, &["auth", "create-key"], project.path()).arguments(arguments).run().unwrap();
        let made: Value = serde_json::from_str(&made.stdout).expect(&made.stderr);
        made["key"].as_str().unwrap().to_owned()
    };
    let (clerk, boss) = (key(&["--name", "a", "--json"]), key(&["--name", "b", "--roles", "boss", "--json"]));
    let server = Program::new(BINARY, &["serve"], project.path()).arguments(&["--port", "0"]).serve().unwrap();
    let listed = |bearer: &str| {
        let get = |path: &str| request_as(server.address, Some(bearer), "GET", path, None).unwrap().json().unwrap();
        let cube = get("/api/v1/query/meta/cubes/t");
        let names = |list: &Value| -> Vec<String> {
            let name = |one: &Value| one["name"].as_str().or(one.as_str()).unwrap_or_default().to_owned();
            list.as_array().unwrap().iter().map(name).collect()
        };
        let kinds = ["measures", "dimensions", "segments"].map(|kind| names(&cube[kind]).join(" "));
        (kinds, names(&get("/api/v1/query/meta/metrics")["metrics"]).join(" "))
    };
    let everything = ["count regions per_region ids", "id region region_up", "eu"].map(str::to_owned);
    assert_eq!(listed(&boss), (everything, "share all_of_them".to_owned()));
    assert_eq!(listed(&clerk), (["count ids", "id", ""].map(str::to_owned), "all_of_them".to_owned()));
    let ask = |body: Value| {
        request_as(server.address, Some(&clerk), "POST", "/api/v1/query", Some(&body.to_string())).unwrap().body
    };
    for body in [json!({"measures": ["t.region"]}), json!({"metrics": ["shar"]}), json!({"dimensions": ["t.regio"]})] {
        let refusal: Value = serde_json::from_str(&ask(body.clone())).unwrap();
        let reported = refusal["error"].to_string().replace(&body.to_string(), "");
        assert!(
            !reported.contains("per_region") && !reported.contains("region_up") && !reported.contains("share"),
            "{reported}"
        );
    }
}
