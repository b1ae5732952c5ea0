//! Sessions in which other programs, or the editor itself, change files that are not open. No watch events are sent.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

#[path = "session/client.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod client;
#[path = "session/disk.rs"]
mod disk;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use client::Client;
use disk::Disk;
use lsp_types::Position;
use serde_json::{Value, json};
use terrane_compiler::diagnostic::Diagnostic;
use terrane_compiler::model::Model;
use terrane_compiler::project::{Definitions, Inputs, SourceTree};
use terrane_language_server::{FileSchemas, ProjectFiles, Projects as _, Refusal, Workspace, rename};

const FLIGHTS: &str = "cubes/flights.yml";
const METRICS: &str = "metrics/metrics.yml";

/// Returns the text at the places of all edits of a file.
fn old_names(answer: &Value, uri: &str, text: &str) -> Vec<String> {
    let edits = answer["result"]["changes"][uri].as_array().unwrap();
    let name = |edit: &Value| {
        let number = |path: &str| edit["range"].pointer(path).unwrap().as_u64().unwrap() as usize;
        let line = text.lines().nth(number("/start/line")).unwrap();
        line[number("/start/character")..number("/end/character")].to_owned()
    };
    edits.iter().map(name).collect()
}

#[test]
fn rename_uses_files_as_they_are_on_disk() {
    let mut client = Client::initialized();
    let rename = |client: &mut Client| {
        client.behind("textDocument/rename", FLIGHTS, "{name: on_t", json!({"newName": "punctual"}))
    };
    // The editor changes, saves and closes a file.
    let (uri, text) = (client.uri(METRICS), client.text(METRICS));
    client.open(METRICS, &text);
    let longer = format!("# one\n# two\n{text}");
    client.change(METRICS, &longer);
    fs::write(client.path(METRICS), &longer).unwrap();
    client.notify("textDocument/didSave", json!({"textDocument": {"uri": uri}}));
    client.notify("textDocument/didClose", json!({"textDocument": {"uri": uri}}));
    let names = old_names(&rename(&mut client), &uri, &longer);
    assert!(names.len() >= 2 && names.iter().all(|name| name == "on_time"), "{names:?}");
    // Another program changes it.
    let longest = format!("# zero\n{longer}");
    fs::write(client.path(METRICS), &longest).unwrap();
    let names = old_names(&rename(&mut client), &uri, &longest);
    assert!(names.len() >= 2 && names.iter().all(|name| name == "on_time"), "{names:?}");
    // A new file uses the name.
    let new = "metrics/more.yml";
    let more = "metrics:\n  - {name: more, type: simple, expression: flights.on_time}\n";
    fs::write(client.path(new), more).unwrap();
    assert_eq!(old_names(&rename(&mut client), &client.uri(new), more), ["on_time"]);
}

#[test]
fn definition_and_references_use_files_as_they_are_on_disk() {
    let mut client = Client::initialized();
    let line = |client: &mut Client| {
        let answer = client.behind("textDocument/definition", METRICS, "numerator: flights.on_t", json!({}));
        answer["result"][0]["range"]["start"]["line"].as_u64().unwrap()
    };
    let before = line(&mut client);
    fs::write(client.path(FLIGHTS), format!("# one\n{}", client.text(FLIGHTS))).unwrap();
    assert_eq!(line(&mut client), before + 1);
}

#[test]
fn saved_and_closed_files_are_checked_as_on_disk() {
    let mut client = Client::initialized();
    let (uri, text) = (client.uri(METRICS), client.text(METRICS));
    client.open(METRICS, &text);
    client.change(METRICS, "metrics: nothing\n");
    assert_eq!(client.next_diagnostics(METRICS), [("wrong-type".to_owned(), 0)]);
    fs::write(client.path(METRICS), "metrics: nothing\n").unwrap();
    client.notify("textDocument/didSave", json!({"textDocument": {"uri": uri}}));
    client.notify("textDocument/didClose", json!({"textDocument": {"uri": uri}}));
    // Another program breaks one more file. The next save makes the server notice.
    fs::write(client.path("cubes/planes.yml"), "cubes: nothing\n").unwrap();
    let uri = client.uri(FLIGHTS);
    client.notify("textDocument/didSave", json!({"textDocument": {"uri": uri}}));
    assert_eq!(client.next_diagnostics("cubes/planes.yml"), [("wrong-type".to_owned(), 0)]);
    assert_eq!(client.codes(METRICS), [("wrong-type".to_owned(), 0)]);
}

#[test]
fn edits_and_diagnostics_have_versions() {
    let mut client = Client::start();
    client.initialize(json!({
        "workspace": {"workspaceEdit": {"documentChanges": true}},
        "textDocument": {"publishDiagnostics": {"versionSupport": true}},
    }));
    let text = client.text(FLIGHTS);
    client.open(FLIGHTS, &text.replace("name: on_time,", "name: in_time,"));
    client.next_diagnostics(FLIGHTS);
    client.change(FLIGHTS, &text);
    let cleared = loop {
        let message = client.receive();
        if message["params"]["uri"] == client.uri(FLIGHTS).as_str() {
            break message;
        }
    };
    assert_eq!((&cleared["params"]["version"], &cleared["params"]["diagnostics"]), (&json!(2), &json!([])));
    let answer = client.behind("textDocument/rename", FLIGHTS, "{name: on_t", json!({"newName": "punctual"}));
    let documents = answer["result"]["documentChanges"].as_array().unwrap();
    let version = |file: &str| {
        let uri = client.uri(file);
        let found = documents.iter().find(|document| document["textDocument"]["uri"] == uri.as_str()).unwrap();
        assert!(!found["edits"].as_array().unwrap().is_empty(), "{found}");
        found["textDocument"]["version"].clone()
    };
    assert_eq!((version(FLIGHTS), version(METRICS)), (json!(1), Value::Null));
}

/// Files, one of which changes while the project is compiled for a rename.
struct Changing {
    files: Box<dyn ProjectFiles>,
    file: PathBuf,
    /// The number of compilations before the change.
    remaining: Arc<AtomicUsize>,
}

impl ProjectFiles for Changing {
    fn root(&self) -> PathBuf {
        self.files.root()
    }

    fn read_all(&self) -> (SourceTree, Vec<Diagnostic>) {
        self.files.read_all()
    }

    fn read(&self, path: &str) -> Option<Arc<str>> {
        self.files.read(path)
    }

    fn inputs(&self, tree: &SourceTree) -> Inputs {
        self.files.inputs(tree)
    }

    fn check(&self, _: &SourceTree, _: &Definitions, _: &Model) -> Vec<Diagnostic> {
        if self.remaining.fetch_sub(1, Ordering::Relaxed) == 0 {
            fs::write(&self.file, format!("# new\n{}", fs::read_to_string(&self.file).unwrap())).unwrap();
        }
        Vec::new()
    }

    fn schemas(&self) -> FileSchemas {
        self.files.schemas()
    }
}

#[test]
fn rename_is_refused_if_a_file_changes_meanwhile() {
    let client = Client::start();
    let root = client.path("");
    let text = client.text(FLIGHTS);
    let at = text.find("{name: on_t").unwrap();
    let line = text[..at].matches('\n').count() as u32;
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let position = Position { line, character: (at - start) as u32 + 8 };
    // The first compilation is the analysis, and the second one checks the edited project.
    let files = |file: &str| Changing {
        files: Disk.open(Path::new(&root)).unwrap(),
        file: root.join(file),
        remaining: Arc::new(AtomicUsize::new(1)),
    };
    let mut workspace = Workspace::new(Box::new(files(METRICS)));
    let refusal = rename(&mut workspace, FLIGHTS, position, "punctual").unwrap_err();
    assert_eq!(refusal, Refusal::FileChanged { path: METRICS.to_owned() });
    assert!(rename(&mut workspace, FLIGHTS, position, "punctual").is_ok(), "the files are reloaded");
    // A file that the rename does not change may change.
    let mut workspace = Workspace::new(Box::new(files("cubes/planes.yml")));
    assert!(rename(&mut workspace, FLIGHTS, position, "punctual").is_ok());
}

#[test]
fn files_without_a_project_file_stay() {
    let mut client = Client::initialized();
    let project = client.path("service_project.yml");
    fs::rename(&project, client.path("moved")).unwrap();
    let labels = |client: &mut Client| {
        let text = "metrics:\n  - {name: x, type: simple, expression: flights.¦}";
        Client::labels(&client.at("textDocument/completion", METRICS, text, json!({}))).len()
    };
    let uri = client.uri("service_project.yml");
    client.notify("workspace/didChangeWatchedFiles", json!({"changes": [{"uri": uri, "type": 3}]}));
    assert!(labels(&mut client) > 10);
    fs::rename(client.path("moved"), &project).unwrap();
    client.notify("workspace/didChangeWatchedFiles", json!({"changes": [{"uri": uri, "type": 1}]}));
    assert!(labels(&mut client) > 10);
}
