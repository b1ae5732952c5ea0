//! Tests the client packages and the extension for VS Code in `sdk`: their own tests run against a real server or the
//! language server over the flights example.
//!
//! In: tools that `cargo xtask setup` installs. The tests of a package whose tools are missing report themselves as
//! skipped, and fail in CI. The tests run in a copy, so that they do not change the clone.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;
use terrane_system_tests::{FLIGHTS, Program, Server, path};

use crate::BINARY;
use crate::clients::{prepared, tool};

const USER: &str = "ada";
const PASSWORD: &str = "correct horse battery";

/// A server with a key and a user.
struct Service {
    server: Server,
    key: String,
    _state: TempDir,
}

impl Service {
    fn start() -> Service {
        let state = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", state.path().join("state.db").display());
        let program = |call: &[&str]| {
            Program::new(BINARY, call, &path(FLIGHTS))
                .variable("SERVICE_STATE__URL", &url)
                .variable("SERVICE_CACHE__ENABLED", "true")
                .variable("SERVICE_JOBS__PATH", &state.path().join("jobs").display().to_string())
                .variable("SERVICE_SECURITY__JWT_SECRET", "a secret of the tests of client packages")
        };
        let key = program(&["auth", "create-key"]).arguments(&["--name", "client", "--scopes", "read,write", "--json"]);
        let key: Value = serde_json::from_str(&key.run().unwrap().stdout).unwrap();
        let user = program(&["auth", "create-user", USER]).arguments(&["--password-stdin", "--scopes", "read,write"]);
        user.input(PASSWORD).run().unwrap();
        let server = program(&["serve"]).arguments(&["--port", "0"]).serve().unwrap();
        Service { server, key: key["key"].as_str().unwrap().to_owned(), _state: state }
    }

    /// Runs a command with the address and the credentials, and fails with its output.
    fn passes(&self, command: &mut Command) {
        let command = command
            .env("TERRANE_URL", format!("http://{}", self.server.address))
            .env("TERRANE_KEY", &self.key)
            .env("TERRANE_USERNAME", USER)
            .env("TERRANE_PASSWORD", PASSWORD);
        let output = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
    }
}

/// Copies the files of a package, without the files that its tools have created.
pub(crate) fn copy(from: &Path, to: &Path) {
    const MADE: [&str; 6] = ["node_modules", "dist", "build", "__pycache__", ".pytest_cache", ".venv"];
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if MADE.iter().any(|made| entry.file_name() == *made) {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn python_package_passes_its_tests() {
    let Some(python) = tool("python-client/bin/python") else {
        return crate::skip("httpx, mypy and pytest", "`cargo xtask setup` installs them with Python's pip");
    };
    let folder = tempfile::tempdir().unwrap();
    copy(&path("sdk/python"), folder.path());
    let service = Service::start();
    let mut tests = Command::new(python);
    tests.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).current_dir(folder.path());
    service.passes(tests.env("PYTHONPATH", folder.path().join("src")));
}

#[test]
fn typescript_package_passes_its_tests() {
    let Some(modules) = prepared("typescript-client/node_modules") else {
        return crate::skip("typescript", "`cargo xtask setup` installs it with npm");
    };
    let folder = tempfile::tempdir().unwrap();
    copy(&path("sdk/typescript"), folder.path());
    std::os::unix::fs::symlink(modules, folder.path().join("node_modules")).unwrap();
    let service = Service::start();
    service.passes(Command::new("npm").args(["test", "--silent"]).current_dir(folder.path()));
}

#[test]
fn vscode_extension_passes_its_tests() {
    let Some(modules) = prepared("vscode-extension/node_modules") else {
        return crate::skip("vscode-languageclient", "`cargo xtask setup` installs it with npm");
    };
    let folder = tempfile::tempdir().unwrap();
    let (extension, project) = (folder.path().join("vscode"), folder.path().join("flights"));
    copy(&path("sdk/vscode"), &extension);
    copy(&path(FLIGHTS), &project);
    std::os::unix::fs::symlink(modules, extension.join("node_modules")).unwrap();
    let mut tests = Command::new("npm");
    tests.args(["test", "--silent"]).current_dir(&extension);
    let output = tests.env("TERRANE_BINARY", BINARY).env("TERRANE_PROJECT", &project).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
    assert!(printed.contains(" skipped 0"), "{printed}");
}
