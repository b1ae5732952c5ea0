//! A project whose callers have keys and passwords. Each test serves it with a separate state database.

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use terrane_system_tests::{Answer, Program, Scratch, Server, request_as};

use crate::BINARY;

pub(super) const PASSWORD: &str = "correct horse battery staple";
const SECRET: &str = "0123456789abcdef0123456789abcdef";
const SETTINGS: &str =
    "name: scratch\nwarehouse: {type: duckdb, init: [\"CREATE TABLE t AS SELECT 1 AS id\"]}\nlog: {requests: false}\n";
const PAUSE: Duration = Duration::from_millis(100);

/// A project and the URL of its state database.
pub(super) struct World {
    pub(super) project: Scratch,
    pub(super) state_url: String,
}

impl World {
    pub(super) fn over(state_url: &str) -> Self {
        let project = Scratch::project().with("service_project.yml", SETTINGS);
        World { project, state_url: state_url.to_owned() }
    }

    pub(super) fn command(&self, call: &[&str]) -> Program {
        let program = Program::new(BINARY, call, self.project.path());
        program.variable("SERVICE_STATE__URL", &self.state_url).variable("SERVICE_SECURITY__JWT_SECRET", SECRET)
    }

    pub(super) fn serve(&self) -> Server {
        let server = self.command(&["serve"]).arguments(&["--port", "0"]).serve();
        server.expect("the server starts")
    }

    pub(super) fn add_user(&self, username: &str) {
        let made = self.command(&["auth", "create-user", username]).arguments(&["--password-stdin"]).input(PASSWORD);
        let output = made.run().expect("it runs to its end");
        assert_eq!(output.code, Some(0), "{}", output.stderr);
    }

    /// Creates a key and returns its id and text; `None` if it could not be created.
    pub(super) fn try_key(&self, scopes: &str) -> Option<(String, String)> {
        let made = self.command(&["auth", "create-key"]).arguments(&["--name", "a", "--scopes", scopes, "--json"]);
        let output = made.run().ok()?;
        let json: Value = serde_json::from_str(&output.stdout).ok()?;
        Some((json["id"].as_str()?.to_owned(), json["key"].as_str()?.to_owned()))
    }

    pub(super) fn key(&self, scopes: &str) -> (String, String) {
        self.try_key(scopes).expect("a key")
    }
}

pub(super) fn post(server: &Server, bearer: Option<&str>, path: &str, body: &Value) -> anyhow::Result<Answer> {
    request_as(server.address, bearer, "POST", path, Some(&body.to_string()))
}

pub(super) fn get(server: &Server, bearer: Option<&str>, path: &str) -> Answer {
    request_as(server.address, bearer, "GET", path, None).expect("an answer")
}

pub(super) fn code_of(answer: &Answer) -> String {
    let body = answer.json().unwrap_or_default();
    body["error"]["code"].as_str().unwrap_or_default().to_owned()
}

/// Signs in and returns the access token and the refresh token; `None` if the sign-in is refused.
pub(super) fn sign_in(server: &Server, username: &str) -> anyhow::Result<Option<(String, String)>> {
    let body = json!({"username": username, "password": PASSWORD});
    pair(&post(server, None, "/api/v1/auth/token", &body)?)
}

pub(super) fn pair(answer: &Answer) -> anyhow::Result<Option<(String, String)>> {
    if answer.status != 200 {
        return Ok(None);
    }
    let json = answer.json()?;
    let text = |name: &str| json[name].as_str().unwrap_or_default().to_owned();
    Ok(Some((text("access_token"), text("refresh_token"))))
}

/// Waits until `is_so` returns true, for at most `seconds`.
pub(super) fn eventually(what: &str, seconds: u64, mut is_so: impl FnMut() -> bool) {
    let mut waited = Duration::ZERO;
    while !is_so() {
        assert!(waited < Duration::from_secs(seconds), "not within {seconds} s: {what}");
        thread::sleep(PAUSE);
        waited += PAUSE;
    }
}
