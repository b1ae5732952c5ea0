//! Tests clients of the interface: those that openapi-python-client and openapi-typescript generate from
//! `/openapi.json`, and libraries that read Arrow.
//!
//! In: a real server over a real project; tools that `cargo xtask setup` installs. Out: clients are generated without a
//! warning, compiled, and called. A test whose tool is missing reports itself as skipped, and fails in CI.

#![allow(clippy::unwrap_used, reason = "a test stops at its first fault")]

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use terrane_system_tests::{FLIGHTS, Program, Server, path, request_as};

use crate::BINARY;

/// A server that needs a key, and the key.
pub(crate) struct Service {
    server: Server,
    key: String,
    key_id: String,
    folder: tempfile::TempDir,
}

impl Service {
    pub(crate) fn start() -> Self {
        Service::with(&[])
    }

    /// Starts a server that refuses callers without a credential.
    pub(crate) fn start_private() -> Self {
        Service::with(&[("SERVICE_SECURITY__ANONYMOUS", "none")])
    }

    /// Starts a server with settings.
    pub(crate) fn with(variables: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let state_url = format!("sqlite://{}", folder.path().join("state.db").display());
        let program =
            |call: &[&str]| Program::new(BINARY, call, &path(FLIGHTS)).variable("SERVICE_STATE__URL", &state_url);
        let key = program(&["auth", "create-key"]).arguments(&["--name", "client", "--scopes", "read", "--json"]);
        let key: Value = serde_json::from_str(&key.run().unwrap().stdout).unwrap();
        let server = program(&["serve"]).arguments(&["--port", "0"]).variable("SERVICE_METRICS__ENABLED", "true");
        let server = variables.iter().fold(server, |server, (name, value)| server.variable(name, value));
        let server = server.serve().unwrap();
        let text = |field: &str| key[field].as_str().unwrap().to_owned();
        Service { server, key: text("key"), key_id: text("id"), folder }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address
    }

    pub(crate) fn process(&self) -> u32 {
        self.server.process()
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// Revokes the key with the operator's command.
    pub(crate) fn revoke_key(&self) {
        let state_url = format!("sqlite://{}", self.folder.path().join("state.db").display());
        let program = Program::new(BINARY, &["auth", "revoke-key", &self.key_id], &path(FLIGHTS));
        let output = program.variable("SERVICE_STATE__URL", &state_url).run().unwrap();
        assert_eq!(output.code, Some(0), "{output:?}");
    }

    /// Returns the server's folder, which is removed together with the server.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the address and the key as arguments of the scripts.
    pub(crate) fn arguments(&self) -> [String; 2] {
        [self.base(), self.key.clone()]
    }

    fn base(&self) -> String {
        format!("http://{}", self.server.address)
    }

    /// Writes the server's OpenAPI description into its folder.
    fn description(&self) -> PathBuf {
        let file = self.folder.path().join("openapi.json");
        fs::write(&file, request_as(self.server.address, None, "GET", "/openapi.json", None).unwrap().body).unwrap();
        file
    }
}

/// Runs a command and returns its output on both streams.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{command:?}: {stdout}\n{stderr}");
    stdout + &stderr
}

/// Checks the output of the script that queries through a generated client.
fn assert_answers(printed: &str) {
    let answers: Value = serde_json::from_str(printed.trim()).unwrap_or_else(|error| panic!("{error}: {printed}"));
    // The number of flights in January by UA, or by neither UA nor B6.
    assert_eq!(answers["count"], 22_467, "{answers}");
    assert_eq!(answers["total"], 1);
    assert!(answers["sql"].as_str().unwrap().contains("SELECT"), "{answers}");
    assert_eq!(answers["reason"], "fact");
    assert_eq!(answers["nearest"][0], "flights.count");
    assert!(answers["detail"].as_str().unwrap().contains("nothing"), "{answers}");
}

#[test]
fn generated_python_client_queries_a_server() {
    let Some(generator) = tool("openapi-client/bin/openapi-python-client") else {
        return crate::skip("openapi-python-client", "`cargo xtask setup` installs it with Python's pip");
    };
    let service = Service::start();
    let client = service.folder.path().join("client");
    let tools = generator.parent().unwrap();
    let generated = run(Command::new(&generator)
        .args(["generate", "--meta", "none", "--path"])
        .arg(service.description())
        .arg("--output-path")
        .arg(client.join("terrane_client"))
        .env("PATH", tools));
    // The generator prints a warning about each operation or schema that it cannot express, and omits it.
    assert!(!generated.to_lowercase().contains("warning"), "{generated}");
    run(Command::new(tools.join("python")).args(["-m", "compileall", "-q"]).arg(&client));
    let script = path("tests/system/clients/query.py");
    assert_answers(&run(Command::new(tools.join("python"))
        .arg(script)
        .args([service.base(), service.key.clone()])
        .env("PYTHONPATH", &client)));
}

#[test]
fn generated_typescript_client_queries_a_server() {
    let Some(modules) = prepared("generated-clients/node_modules") else {
        return crate::skip("openapi-typescript", "`cargo xtask setup` installs it with npm");
    };
    let service = Service::start();
    let client = service.folder.path().join("client");
    fs::create_dir(&client).unwrap();
    std::os::unix::fs::symlink(&modules, client.join("node_modules")).unwrap();
    fs::write(client.join("package.json"), json!({ "type": "module" }).to_string()).unwrap();
    fs::copy(path("tests/system/clients/query.ts"), client.join("query.ts")).unwrap();
    let node = |program: &str| {
        let mut command = Command::new("node");
        command.arg(modules.join(program)).current_dir(&client);
        command
    };
    run(node("openapi-typescript/bin/cli.js").arg(service.description()).args(["--output", "schema.d.ts"]));
    let options = ["--strict", "--target", "es2022", "--module", "nodenext", "--skipLibCheck", "query.ts"];
    run(node("typescript/bin/tsc").args(options));
    let mut script = Command::new("node");
    assert_answers(&run(script.arg("query.js").args([service.base(), service.key.clone()]).current_dir(&client)));
}

#[test]
fn data_frames_have_integers_and_doubles() {
    let Some(python) = tool("data-frames/bin/python") else {
        return crate::skip("pandas and polars", "`cargo xtask setup` installs them with Python's pip");
    };
    let service = Service::start();
    let script = path("tests/system/clients/frames.py");
    let printed = run(Command::new(python).arg(script).args([service.base(), service.key.clone()]));
    let types: Value = serde_json::from_str(printed.trim()).unwrap_or_else(|error| panic!("{error}: {printed}"));
    for measure in ["flights.count", "flights.total_departure_delay"] {
        assert_eq!(types["plain"][measure], json!(["int64", "int64", "Int64"]), "{types}");
        assert_eq!(types["double"][measure], json!(["double", "float64", "Float64"]), "{types}");
    }
    assert_eq!(types["plain"]["flights.carrier"][2], "String", "{types}");
    assert_eq!(types["sum"], 4_152_200, "{types}");
}

/// Returns the path of a program that `cargo xtask setup` installed with pip; `None` if it is missing.
pub(crate) fn tool(program: &str) -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?;
    Some(target.join("tools").join(program)).filter(|program| program.is_file())
}

/// Returns the path of a folder that `cargo xtask setup` installed with npm; `None` if it is missing.
pub(crate) fn prepared(folder: &str) -> Option<PathBuf> {
    Some(path(".prepared").join(folder)).filter(|folder| folder.is_dir())
}
