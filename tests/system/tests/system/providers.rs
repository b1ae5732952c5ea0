//! Tests a real identity provider with the real server: sign-in, the provider's tokens, rotated keys, and an
//! unavailable provider.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};
use terrane_system_tests::engines::Missing;
use terrane_system_tests::{Browser, OidcProvider, Program, Scratch, Server, free_port, header, request_as};

use crate::BINARY;

const CUBE: &str = "cubes:\n  - name: t\n    sql_table: t\n    measures: [{name: count, type: count}]\n    \
                    dimensions: [{name: id, type: number, sql: id, primary_key: true}, {name: region, type: string, sql: region}]\n";
const POLICY: &str =
    "policies:\n  - {name: own, cubes: [t], row_filter: \"{region} = {{ user.attributes.region }}\"}\n";
const SECRET: &str = "0123456789abcdef0123456789abcdef";
const CLIENT_SECRET: &str = "a secret: of/the+client";
const PAUSE: Duration = Duration::from_millis(200);

/// The provider and the server of one test, with their ports.
struct House {
    project: Scratch,
    callback: String,
    own_port: u16,
    provider_port: u16,
}

/// Starts the provider, or reports it as missing and returns `None`.
fn house() -> Result<Option<House>> {
    if let Some(Missing(why)) = OidcProvider::missing() {
        note(&why);
        return Ok(None);
    }
    let (own_port, provider_port) = (free_port()?, free_port()?);
    let project = Scratch::empty().with("service_project.yml", &settings(own_port, provider_port));
    let project = project.with("cubes/t.yml", CUBE).with("policies/t.yml", POLICY);
    let callback = format!("http://127.0.0.1:{own_port}/api/v1/auth/oauth/corp/callback");
    Ok(Some(House { project, callback, own_port, provider_port }))
}

/// Returns the settings of a project that accepts the tokens of the provider, with the rows of a table.
fn accepting(provider: &str, rows: &str) -> String {
    format!(
        r#"name: scratch
warehouse: {{type: duckdb, init: ["CREATE TABLE t AS SELECT * FROM (VALUES {rows}) AS v(id, region)"]}}
security:
  outgoing: {{allow: [127.0.0.1]}}
  jwt:
    external_jwks_url: {provider}/jwks
    issuer: {provider}
    audience: terrane-api
"#
    )
}

fn settings(own_port: u16, provider_port: u16) -> String {
    let provider = format!("http://127.0.0.1:{provider_port}");
    let accepting = accepting(&provider, "(1, 'EU'), (2, 'US'), (3, 'EU')");
    format!(
        r#"{accepting}    claims_mapping: {{attributes: terrane, roles: realm_access.roles}}
  oauth:
    public_url: http://127.0.0.1:{own_port}
    providers:
      - name: corp
        client_id: terrane
        client_secret: "${{CLIENT_SECRET}}"
        issuer: {provider}
        authorize_url: {provider}/auth
        token_url: {provider}/token
        jwks_url: {provider}/jwks
        scopes: [openid, email, data]
        claims_mapping: {{attributes: terrane, roles: realm_access.roles}}
        scope_mapping: {{admin: [terrane-admin]}}
"#
    )
}

/// Returns the settings of a project whose provider has a name, client credentials and two URLs. The issuer is in
/// `security.jwt`.
fn five_fields(provider_port: u16) -> String {
    let provider = format!("http://127.0.0.1:{provider_port}");
    let accepting = accepting(&provider, "(1, 'corp:ada'), (2, 'US')");
    format!(
        r#"{accepting}  oauth:
    enabled: true
    providers:
      - name: corp
        client_id: terrane
        client_secret: "${{CLIENT_SECRET}}"
        authorize_url: {provider}/auth
        token_url: {provider}/token
"#
    )
}

fn note(why: &str) {
    crate::skip("the cases of identity providers", why);
}

impl House {
    fn provider(&self, kid: &str) -> Result<OidcProvider> {
        OidcProvider::start(self.provider_port, kid, &self.callback)
    }

    fn serve(&self) -> Result<Server> {
        let server = Program::new(BINARY, &["serve"], self.project.path());
        let server = server.arguments(&["--port", &self.own_port.to_string()]);
        server.variable("SERVICE_SECURITY__JWT_SECRET", SECRET).variable("CLIENT_SECRET", CLIENT_SECRET).serve()
    }

    /// Signs in through all pages of the provider. Returns the status and the body of the callback's answer.
    fn sign_in(&self, provider: &OidcProvider, user: &str) -> Result<(u16, Value)> {
        let mut browser = Browser::default();
        let login = format!("http://127.0.0.1:{}/api/v1/auth/oauth/corp/login", self.own_port);
        let callback = provider.sign_in(&mut browser, &login, user)?;
        let answer = browser.send("GET", &callback, None)?;
        assert_eq!(header(&answer.head, "cache-control"), Some("no-store"), "{}", answer.head);
        Ok((answer.status, answer.json()?))
    }
}

fn count(server: &Server, bearer: &str) -> (u16, Value) {
    let body = r#"{"measures": ["t.count"]}"#;
    let answer = request_as(server.address, Some(bearer), "POST", "/api/v1/query", Some(body)).expect("an answer");
    (answer.status, answer.json().expect("JSON")["data"][0]["t.count"].clone())
}

/// Repeats a request until its answer has the expected status.
fn becomes(what: &str, expected: u16, ask: impl Fn() -> u16) {
    let is_it = (0..100).any(|_| {
        let found = ask() == expected;
        if !found {
            std::thread::sleep(PAUSE);
        }
        found
    });
    assert!(is_it, "{what}: still {}", ask());
}

#[test]
fn claims_of_a_provider_decide_what_callers_see() {
    let Some(house) = house().unwrap() else { return };
    let provider = house.provider("one").unwrap();
    let server = house.serve().unwrap();
    let (status, pair) = house.sign_in(&provider, "ada").unwrap();
    assert_eq!(status, 200, "{pair}");
    let (access, refresh) = (pair["access_token"].as_str().unwrap(), pair["refresh_token"].as_str().unwrap());
    assert_eq!(count(&server, access), (200, json!(1)), "a row filter of the claim `region`");
    let (_, other) = house.sign_in(&provider, "bob").unwrap();
    assert_eq!(count(&server, other["access_token"].as_str().unwrap()), (200, json!(2)));
    let audit = |bearer: &str| request_as(server.address, Some(bearer), "GET", "/api/v1/audit", None).unwrap();
    assert_eq!(audit(access).status, 403);
    let (_, admin) = house.sign_in(&provider, "grace").unwrap();
    let records = audit(admin["access_token"].as_str().unwrap());
    assert_eq!(records.status, 200, "a role that holds the scope");
    let records = records.json().unwrap()["records"].as_array().unwrap().clone();
    let started = records.iter().filter(|record| record["event"] == "session_started");
    let actors: Vec<&str> = started.filter_map(|record| record["actor"].as_str()).collect();
    assert_eq!(actors, ["corp:grace", "corp:bob", "corp:ada"]);

    let body = json!({"refresh_token": refresh}).to_string();
    let refreshed = request_as(server.address, None, "POST", "/api/v1/auth/refresh", Some(&body)).unwrap();
    let refreshed = refreshed.json().unwrap();
    assert_eq!(count(&server, refreshed["access_token"].as_str().unwrap()), (200, json!(1)));
    let ended = Program::new(BINARY, &["auth", "end-sessions", "corp:ada"], house.project.path()).run().unwrap();
    assert_eq!(ended.stdout, "ended 1 session of corp:ada\n", "{}", ended.stderr);
    becomes("an ended session", 401, || count(&server, access).0);

    let (code, log) = server.terminate().unwrap();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains(r#""auth_method":"oauth""#), "{log}");
    for secret in [access, refresh, SECRET, CLIENT_SECRET, "code=", "state="] {
        assert!(!log.contains(secret), "the log holds {secret}: {log}");
    }
}

#[test]
fn provider_with_the_fields_of_the_specification_works() {
    let Some(house) = house().unwrap() else { return };
    let policy = "policies:\n  - {name: own, cubes: [t], row_filter: \"{region} = {{ user.user_id }}\"}\n";
    let settings = five_fields(house.provider_port);
    let project = Scratch::empty().with("service_project.yml", &settings).with("cubes/t.yml", CUBE);
    let house = House { project: project.with("policies/t.yml", policy), ..house };
    let provider = house.provider("one").unwrap();
    let server = house.serve().unwrap();
    let (status, pair) = house.sign_in(&provider, "ada").unwrap();
    assert_eq!(status, 200, "{pair}");
    let access = pair["access_token"].as_str().unwrap();
    assert_eq!(count(&server, access), (200, json!(1)), "the rows of the provider's subject");
    let (_, other) = house.sign_in(&provider, "bob").unwrap();
    assert_eq!(count(&server, other["access_token"].as_str().unwrap()), (200, json!(0)));
    let (code, log) = server.terminate().unwrap();
    assert_eq!(code, Some(0), "{log}");
}

#[test]
fn providers_tokens_are_accepted_and_its_keys_rotate_without_a_restart() {
    let Some(house) = house().unwrap() else { return };
    // The provider is not running when the server starts.
    let server = house.serve().unwrap();
    let login = request_as(server.address, None, "GET", "/api/v1/auth/oauth/corp/login", None).unwrap();
    assert_eq!(login.status, 302, "a browser is sent away whether the provider is up or not");
    let provider = house.provider("one").unwrap();
    let old = provider.robot_token().unwrap();
    becomes("a provider that came up", 200, || count(&server, &old).0);
    assert_eq!(count(&server, &old), (200, json!(2)));

    let port = provider.stop().unwrap();
    assert_eq!(count(&server, &old), (200, json!(2)), "known keys go on");
    let provider = OidcProvider::start(port, "two", &house.callback).unwrap();
    let new = provider.robot_token().unwrap();
    becomes("a token of the new key", 200, || count(&server, &new).0);
    assert_eq!(count(&server, &old).0, 401, "the old key is gone");
    let (status, pair) = house.sign_in(&provider, "ada").unwrap();
    assert_eq!(status, 200, "{pair}");
    assert_eq!(count(&server, pair["access_token"].as_str().unwrap()), (200, json!(1)));

    // The provider stops while a user is on its pages.
    let mut browser = Browser::default();
    let login = format!("http://127.0.0.1:{}/api/v1/auth/oauth/corp/login", house.own_port);
    let callback = provider.sign_in(&mut browser, &login, "bob").unwrap();
    provider.stop().unwrap();
    let answer = browser.send("GET", &callback, None).unwrap();
    assert_eq!((answer.status, &answer.json().unwrap()["error"]["code"]), (503, &json!("STATE_UNAVAILABLE")));
    assert!(header(&answer.head, "retry-after").is_some());
    let (code, log) = server.terminate().unwrap();
    assert_eq!(code, Some(0), "{log}");
}
