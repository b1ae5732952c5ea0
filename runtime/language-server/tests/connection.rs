//! Sessions that end or are cancelled while the server works, and clients with few features.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

#[path = "session/client.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod client;
#[path = "session/disk.rs"]
mod disk;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};

use client::Client;
use disk::Disk;
use serde_json::{Value, json};
use terrane_compiler::diagnostic::Diagnostic;
use terrane_compiler::model::Model;
use terrane_compiler::project::{Definitions, Inputs, SourceTree};
use terrane_language_server::{End, FileSchemas, ProjectFiles, Projects};

const METRICS: &str = "metrics/metrics.yml";

/// A door that analyses wait at.
#[derive(Default)]
struct Door {
    is_open: Mutex<bool>,
    opened: Condvar,
}

/// Projects whose analyses wait at a door.
struct Slow(Arc<Door>);

struct SlowFiles(Box<dyn ProjectFiles>, Arc<Door>);

impl Projects for Slow {
    fn open(&self, folder: &Path) -> Option<Box<dyn ProjectFiles>> {
        Some(Box::new(SlowFiles(Disk.open(folder)?, Arc::clone(&self.0))))
    }

    fn is_process_alive(&self, process: u32) -> bool {
        Disk.is_process_alive(process)
    }
}

impl ProjectFiles for SlowFiles {
    fn root(&self) -> PathBuf {
        self.0.root()
    }

    fn read_all(&self) -> (SourceTree, Vec<Diagnostic>) {
        self.0.read_all()
    }

    fn read(&self, path: &str) -> Option<Arc<str>> {
        self.0.read(path)
    }

    fn inputs(&self, tree: &SourceTree) -> Inputs {
        self.0.inputs(tree)
    }

    fn check(&self, _: &SourceTree, _: &Definitions, _: &Model) -> Vec<Diagnostic> {
        let is_open = self.1.is_open.lock().unwrap();
        drop(self.1.opened.wait_while(is_open, |is_open| !*is_open).unwrap());
        Vec::new()
    }

    fn schemas(&self) -> FileSchemas {
        self.0.schemas()
    }
}

/// Returns a client whose server is in an analysis.
fn in_analysis() -> (Client, Arc<Door>) {
    let door = Arc::new(Door::default());
    let mut client = Client::with(Slow(Arc::clone(&door)));
    client.initialize(json!({}));
    client.send(&json!({"jsonrpc": "2.0", "id": "slow", "method": "workspace/symbol", "params": {"query": ""}}));
    (client, door)
}

#[test]
fn waiting_requests_are_cancelled() {
    let (mut client, door) = in_analysis();
    for id in ["a", "b"] {
        client.send(&json!({"jsonrpc": "2.0", "id": id, "method": "workspace/symbol", "params": {"query": ""}}));
    }
    client.notify("$/cancelRequest", json!({"id": "a"}));
    client.notify("$/cancelRequest", json!({"id": "unknown"}));
    client.notify("$/cancelRequest", json!({}));
    let answer = client.receive();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("a"), &json!(-32800)), "{answer}");
    *door.is_open.lock().unwrap() = true;
    door.opened.notify_all();
    let results =
        [client.receive(), client.receive()].map(|answer| (answer["id"].clone(), answer["result"].is_array()));
    assert_eq!(results, [(json!("slow"), true), (json!("b"), true)]);
    assert!(client.shut_down());
}

#[test]
fn slow_analysis_does_not_delay_the_end() {
    // The doors stay closed, so that a server that waits for the analysis never ends.
    let (mut client, _door) = in_analysis();
    client.send(&json!({"jsonrpc": "2.0", "id": "end", "method": "shutdown"}));
    assert_eq!(client.exit(), End::ShutDown);
    let (client, _door) = in_analysis();
    assert_eq!(client.exit(), End::Exit);
    let (client, _door) = in_analysis();
    assert_eq!(client.hang_up().unwrap(), End::EndOfInput);
}

#[test]
fn input_that_ends_within_a_message_is_reported() {
    let mut client = Client::initialized();
    client.send_bytes(b"Content-Length: 900000000\r\n\r\n{");
    let error = client.hang_up().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof, "{error}");
    insta::assert_snapshot!(error, @"the input ends after 1 of 900000000 bytes of a message");
}

#[test]
fn server_ends_after_its_client() {
    let mut process = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut client = Client::start();
    client.request("initialize", json!({"processId": process.id(), "rootUri": null, "capabilities": {}}));
    process.kill().unwrap();
    process.wait().unwrap();
    assert_eq!(client.join().unwrap(), End::ClientEnded);
}

#[test]
fn unknown_process_does_not_end_the_server() {
    let mut client = Client::start();
    client.request("initialize", json!({"processId": u32::MAX, "rootUri": null, "capabilities": {}}));
    assert!(client.shut_down());
}

#[test]
fn plain_text_is_sent_to_clients_without_markdown() {
    let mut client = Client::start();
    client.initialize(json!({"textDocument": {
        "hover": {"contentFormat": ["plaintext"]},
        "completion": {"completionItem": {"documentationFormat": ["plaintext"]}},
    }}));
    let answer = client.behind("textDocument/hover", METRICS, "numerator: flights.on_t", json!({}));
    let contents = &answer["result"]["contents"];
    assert_eq!(contents["kind"], "plaintext");
    let text = contents["value"].as_str().unwrap();
    assert!(text.starts_with("On time\nflights.on_time (measure, count)\n\n"), "{text}");
    assert!(text.contains("{flights}.arr_delay < 15") && !text.contains("```"), "{text}");
    for (file, text) in [
        (METRICS, "metrics:\n  - {name: x, type: simple, expression: flights.¦}"),
        ("cubes/x.yml", "cubes:\n  - name: x\n    measures:\n      - {¦"),
    ] {
        let answer = client.at("textDocument/completion", file, text, json!({}));
        let kinds: Vec<&Value> =
            answer["result"].as_array().unwrap().iter().map(|item| &item["documentation"]["kind"]).collect();
        assert!(kinds.iter().any(|kind| *kind == "plaintext"), "{kinds:?}");
        assert!(kinds.iter().all(|kind| kind.is_null() || *kind == "plaintext"), "{kinds:?}");
    }
}
