//! A client of the server. It is connected by pipes, and has its own copy of the example project.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead as _, BufReader, PipeReader, PipeWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};
use terrane_language_server::{End, Projects};

use crate::disk::Disk;

pub(crate) struct Client {
    to_server: Option<PipeWriter>,
    from_server: BufReader<PipeReader>,
    server: Option<JoinHandle<io::Result<End>>>,
    next_id: u64,
    folder: tempfile::TempDir,
    /// The last diagnostics of each file.
    pub(crate) diagnostics: BTreeMap<String, Vec<Value>>,
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true if path.ends_with("data") => {}
            true => copy(&path, &target),
            false => _ = fs::copy(&path, &target).unwrap(),
        }
    }
}

impl Client {
    /// Starts a server, and copies the example project to a folder whose name needs escapes in URIs.
    pub(crate) fn start() -> Client {
        Client::with(Disk)
    }

    /// Starts a server with the given port.
    pub(crate) fn with(projects: impl Projects + 'static) -> Client {
        let (input, to_server) = io::pipe().unwrap();
        let (from_server, output) = io::pipe().unwrap();
        let server = thread::Builder::new()
            .spawn(move || terrane_language_server::serve(projects, None, BufReader::new(input), output))
            .unwrap();
        let folder = tempfile::Builder::new().prefix("flüge & more ").tempdir().unwrap();
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/flights");
        copy(&example, &folder.path().join("project"));
        Client {
            to_server: Some(to_server),
            from_server: BufReader::new(from_server),
            server: Some(server),
            next_id: 0,
            folder,
            diagnostics: BTreeMap::new(),
        }
    }

    /// Starts a server and initializes it with the project's folder.
    pub(crate) fn initialized() -> Client {
        let mut client = Client::start();
        client.initialize(json!({}));
        client
    }

    /// Initializes the server with the project's folder and the capabilities of a client.
    pub(crate) fn initialize(&mut self, capabilities: Value) {
        let root = self.uri("");
        let answer = self.request(
            "initialize",
            json!({"processId": null, "rootUri": root.trim_end_matches('/'), "capabilities": capabilities}),
        );
        let sync = &answer["result"]["capabilities"]["textDocumentSync"];
        assert!(sync["change"] == 1 && sync["openClose"] == true && sync["save"].is_object(), "{answer}");
        self.notify("initialized", json!({}));
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join("project").join(file)
    }

    pub(crate) fn uri(&self, file: &str) -> String {
        let path = self.path(file);
        let mut uri = String::from("file://");
        for byte in path.to_str().unwrap().bytes() {
            match byte {
                b'/' | b'.' | b'_' | b'-' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => uri.push(byte as char),
                byte => uri.push_str(&format!("%{byte:02X}")),
            }
        }
        uri
    }

    pub(crate) fn text(&self, file: &str) -> String {
        fs::read_to_string(self.path(file)).unwrap()
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        self.to_server.as_mut().unwrap().write_all(bytes).unwrap();
    }

    pub(crate) fn send(&mut self, message: &Value) {
        let content = message.to_string();
        self.send_bytes(format!("Content-Length: {}\r\n\r\n{content}", content.len()).as_bytes());
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request, and returns its response. Stores the diagnostics that arrive before the response.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let message = self.receive();
            if message["id"] == id {
                return message;
            }
        }
    }

    /// Reads one message.
    pub(crate) fn receive(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(self.from_server.read_line(&mut line).unwrap() > 0, "the server ended");
            match line.trim().strip_prefix("Content-Length: ") {
                Some(number) => length = number.parse().unwrap(),
                None if line.trim().is_empty() => break,
                None => {}
            }
        }
        let mut content = vec![0; length];
        self.from_server.read_exact(&mut content).unwrap();
        let message: Value = serde_json::from_slice(&content).unwrap();
        if message["method"] == "textDocument/publishDiagnostics" {
            let uri = message["params"]["uri"].as_str().unwrap().to_owned();
            self.diagnostics.insert(uri, message["params"]["diagnostics"].as_array().unwrap().clone());
        }
        message
    }

    /// Waits for the next diagnostics of a file. Returns their codes and their lines, counted from 0.
    pub(crate) fn next_diagnostics(&mut self, file: &str) -> Vec<(String, u64)> {
        let uri = self.uri(file);
        loop {
            let message = self.receive();
            if message["params"]["uri"] == uri.as_str() {
                return self.codes(file);
            }
        }
    }

    /// Returns the codes and lines of the last diagnostics of a file.
    pub(crate) fn codes(&self, file: &str) -> Vec<(String, u64)> {
        let found = self.diagnostics.get(&self.uri(file)).into_iter().flatten();
        let code = |found: &Value| {
            (found["code"].as_str().unwrap().to_owned(), found["range"]["start"]["line"].as_u64().unwrap())
        };
        found.map(code).collect()
    }

    pub(crate) fn open(&mut self, file: &str, text: &str) {
        let uri = self.uri(file);
        self.notify(
            "textDocument/didOpen",
            json!({"textDocument": {"uri": uri, "languageId": "yaml", "version": 1, "text": text}}),
        );
    }

    pub(crate) fn change(&mut self, file: &str, text: &str) {
        let uri = self.uri(file);
        self.notify(
            "textDocument/didChange",
            json!({"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": text}]}),
        );
    }

    /// Opens a file with a content in which `¦` marks a position, and sends a request about this position.
    pub(crate) fn at(&mut self, method: &str, file: &str, marked: &str, more: Value) -> Value {
        let at = marked.find('¦').expect("the text has a mark");
        self.open(file, &marked.replace('¦', ""));
        let before = &marked[..at];
        let line = before.matches('\n').count();
        let character = before[before.rfind('\n').map_or(0, |newline| newline + 1)..].encode_utf16().count();
        let mut params =
            json!({"textDocument": {"uri": self.uri(file)}, "position": {"line": line, "character": character}});
        params.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
        self.request(method, params)
    }

    /// Opens a file of the project, and sends a request about the position after the first occurrence of `text`.
    pub(crate) fn behind(&mut self, method: &str, file: &str, text: &str, more: Value) -> Value {
        let of_file = self.text(file);
        let at = of_file.find(text).expect("the text is in the file") + text.len();
        self.at(method, file, &format!("{}¦{}", &of_file[..at], &of_file[at..]), more)
    }

    pub(crate) fn labels(answer: &Value) -> Vec<String> {
        let items = answer["result"].as_array().unwrap();
        items.iter().map(|item| item["label"].as_str().unwrap().to_owned()).collect()
    }

    /// Ends the session with `shutdown` and `exit`. Returns true if the server noticed the `shutdown`.
    pub(crate) fn shut_down(mut self) -> bool {
        assert_eq!(self.request("shutdown", Value::Null)["result"], Value::Null);
        self.exit() == End::ShutDown
    }

    /// Ends the session with `exit`.
    pub(crate) fn exit(mut self) -> End {
        self.notify("exit", Value::Null);
        self.join().unwrap()
    }

    /// Waits for the end of the server.
    pub(crate) fn join(mut self) -> io::Result<End> {
        self.server.take().unwrap().join().unwrap()
    }

    /// Closes the input without sending `shutdown`.
    pub(crate) fn hang_up(mut self) -> io::Result<End> {
        self.to_server = None;
        self.server.take().unwrap().join().unwrap()
    }
}
