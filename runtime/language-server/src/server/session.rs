//! The state of one client: its open projects, and the diagnostics that were sent to it.
//!
//! In: messages as JSON. Out: messages as JSON. Not here: reading and writing the messages.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lsp_types::{
    CompletionOptions, CompletionParams, DidChangeTextDocumentParams, DidChangeWatchedFilesParams,
    DidCloseTextDocumentParams, DidOpenTextDocumentParams, DocumentSymbolParams, GotoDefinitionParams, HoverParams,
    InitializeParams, OneOf, Position, PublishDiagnosticsParams, ReferenceParams, RenameOptions, RenameParams,
    ServerCapabilities, TextDocumentPositionParams, TextDocumentSyncCapability, TextDocumentSyncKind, Uri,
    WorkspaceSymbolParams,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::diagnostics;
use crate::ports::Projects;
use crate::uri::{path_of, uri_of};
use crate::workspace::Workspace;
use crate::{completion, hover, navigation, rename};

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const INTERNAL_ERROR: i64 = -32603;
const SERVER_NOT_INITIALIZED: i64 = -32002;
const REQUEST_FAILED: i64 = -32803;

/// The state of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Connected,
    Initialized,
    ShutDown,
    Exited { is_announced: bool },
}

/// The error of one request.
struct Failure {
    code: i64,
    message: String,
}

type Answer = Result<Value, Failure>;

pub(super) struct Session<'p> {
    projects: &'p dyn Projects,
    state: State,
    workspaces: BTreeMap<PathBuf, Workspace>,
    /// The last diagnostics that were sent to the client, by URI.
    published: BTreeMap<String, Value>,
    /// True if the client can watch files for the server.
    watches_files: bool,
}

/// Returns the answer to content that is not JSON.
pub(super) fn parse_error(reason: &str) -> Value {
    error(Value::Null, &Failure { code: PARSE_ERROR, message: format!("cannot parse the message: {reason}") })
}

fn error(id: Value, failure: &Failure) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": failure.code, "message": failure.message}})
}

fn notification(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

/// Reads the parameters of a message.
fn params<T: DeserializeOwned>(value: Value) -> Result<T, Failure> {
    serde_json::from_value(value).map_err(|error| Failure { code: INVALID_PARAMS, message: error.to_string() })
}

fn value(of: impl serde::Serialize) -> Answer {
    serde_json::to_value(of).map_err(|error| Failure { code: INTERNAL_ERROR, message: error.to_string() })
}

impl<'p> Session<'p> {
    pub(super) fn new(projects: &'p dyn Projects, folder: Option<&Path>) -> Session<'p> {
        let mut session = Session {
            projects,
            state: State::Connected,
            workspaces: BTreeMap::new(),
            published: BTreeMap::new(),
            watches_files: false,
        };
        folder.into_iter().for_each(|folder| session.open_project(folder));
        session
    }

    pub(super) fn state(&self) -> State {
        self.state
    }

    /// Returns true if files have changed and their diagnostics are not published yet.
    pub(super) fn is_outdated(&self) -> bool {
        self.state == State::Initialized && self.workspaces.values().any(Workspace::is_unpublished)
    }

    /// Handles one message. Returns the messages to send.
    pub(super) fn handle(&mut self, mut message: Value) -> Vec<Value> {
        let (id, method) = (message.get("id").cloned(), message.get("method").and_then(Value::as_str));
        let (id, method) = match (id, method) {
            (id, Some(method)) => (id, method.to_owned()),
            // A response to a request of this server needs no answer.
            (Some(_), None) if message.get("result").is_some() || message.get("error").is_some() => return Vec::new(),
            (id, None) => {
                let failure = Failure { code: INVALID_REQUEST, message: "the message has no method".to_owned() };
                return vec![error(id.unwrap_or(Value::Null), &failure)];
            }
        };
        let params = message.get_mut("params").map(Value::take).unwrap_or_default();
        let Some(id) = id else { return self.contained(|session| session.notify(&method, params)).unwrap_or_default() };
        let answer = self.contained(|session| session.request(&method, params)).unwrap_or_else(|| {
            Err(Failure { code: INTERNAL_ERROR, message: "internal error; please report it".to_owned() })
        });
        vec![match answer {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(failure) => error(id, &failure),
        }]
    }

    /// Runs a function. Returns `None` if it panics, because one message must not end the server.
    fn contained<T>(&mut self, function: impl FnOnce(&mut Self) -> T) -> Option<T> {
        catch_unwind(AssertUnwindSafe(|| function(self))).ok()
    }

    fn request(&mut self, method: &str, value_of: Value) -> Answer {
        match (self.state, method) {
            (State::Connected, "initialize") => return self.initialize(params(value_of)?),
            (State::Connected, _) => {
                let message = "the first request must be `initialize`".to_owned();
                return Err(Failure { code: SERVER_NOT_INITIALIZED, message });
            }
            (State::Initialized, "shutdown") => {
                self.state = State::ShutDown;
                return Ok(Value::Null);
            }
            (State::Initialized, _) if method != "initialize" => {}
            _ => {
                let message = format!("`{method}` is not allowed in this state of the connection");
                return Err(Failure { code: INVALID_REQUEST, message });
            }
        }
        match method {
            "textDocument/completion" => {
                let params: CompletionParams = params(value_of)?;
                let at = params.text_document_position;
                self.at(&at, |workspace, path, position| value(completion::complete(workspace, path, position)))
            }
            "textDocument/hover" => {
                let params: HoverParams = params(value_of)?;
                self.at(&params.text_document_position_params, |workspace, path, position| {
                    let Some((text, range)) = hover::hover(workspace, path, position) else { return Ok(Value::Null) };
                    value(json!({"contents": {"kind": "markdown", "value": text}, "range": value(range)?}))
                })
            }
            "textDocument/definition" => {
                let params: GotoDefinitionParams = params(value_of)?;
                self.at(&params.text_document_position_params, |workspace, path, position| {
                    value(navigation::definition(workspace, path, position))
                })
            }
            "textDocument/references" => {
                let params: ReferenceParams = params(value_of)?;
                let with_definition = params.context.include_declaration;
                self.at(&params.text_document_position, |workspace, path, position| {
                    value(navigation::references(workspace, path, position, with_definition))
                })
            }
            "textDocument/documentSymbol" => {
                let params: DocumentSymbolParams = params(value_of)?;
                match self.workspace_of(&params.text_document.uri) {
                    Some((workspace, path)) => value(navigation::document_symbols(workspace, &path)),
                    None => Ok(Value::Null),
                }
            }
            "textDocument/prepareRename" => {
                let params: TextDocumentPositionParams = params(value_of)?;
                self.at(&params, |workspace, path, position| match rename::prepare_rename(workspace, path, position) {
                    Ok((range, placeholder)) => value(json!({"range": value(range)?, "placeholder": placeholder})),
                    Err(rename::Refusal::NoName) => Ok(Value::Null),
                    Err(refusal) => Err(Failure { code: REQUEST_FAILED, message: refusal.to_string() }),
                })
            }
            "textDocument/rename" => self.rename(params(value_of)?),
            "workspace/symbol" => {
                let params: WorkspaceSymbolParams = params(value_of)?;
                let found = self.workspaces.values_mut();
                let found: Vec<_> =
                    found.flat_map(|workspace| navigation::workspace_symbols(workspace, &params.query)).collect();
                value(found)
            }
            _ => Err(Failure { code: METHOD_NOT_FOUND, message: format!("unknown method `{method}`") }),
        }
    }

    fn initialize(&mut self, params: InitializeParams) -> Answer {
        #[allow(deprecated, reason = "clients without folders send the root alone")]
        let root = params.root_uri;
        let folders = params.workspace_folders.into_iter().flatten().map(|folder| folder.uri);
        let folders: Vec<PathBuf> = folders.chain(root).filter_map(|uri| path_of(&uri)).collect();
        folders.iter().for_each(|folder| self.open_project(folder));
        let watched = params.capabilities.workspace.and_then(|workspace| workspace.did_change_watched_files);
        self.watches_files = watched.and_then(|watched| watched.dynamic_registration).unwrap_or(false);
        self.state = State::Initialized;
        let capabilities = ServerCapabilities {
            text_document_sync: Some(TextDocumentSyncCapability::Kind(TextDocumentSyncKind::FULL)),
            completion_provider: Some(CompletionOptions {
                trigger_characters: Some(["{", ".", ":", " ", "[", "'", "\""].map(str::to_owned).to_vec()),
                ..CompletionOptions::default()
            }),
            hover_provider: Some(true.into()),
            definition_provider: Some(OneOf::Left(true)),
            references_provider: Some(OneOf::Left(true)),
            document_symbol_provider: Some(OneOf::Left(true)),
            workspace_symbol_provider: Some(OneOf::Left(true)),
            rename_provider: Some(OneOf::Right(RenameOptions {
                prepare_provider: Some(true),
                work_done_progress_options: Default::default(),
            })),
            ..ServerCapabilities::default()
        };
        let version = env!("CARGO_PKG_VERSION");
        value(json!({
            "capabilities": value(capabilities)?,
            "serverInfo": {"name": "terrane", "version": version},
        }))
    }

    /// Runs a feature at a position. The answer is null if the file belongs to no project.
    fn at(
        &mut self,
        at: &TextDocumentPositionParams,
        feature: impl FnOnce(&mut Workspace, &str, Position) -> Answer,
    ) -> Answer {
        match self.workspace_of(&at.text_document.uri) {
            Some((workspace, path)) => feature(workspace, &path, at.position),
            None => Ok(Value::Null),
        }
    }

    fn rename(&mut self, params: RenameParams) -> Answer {
        let at = params.text_document_position;
        self.at(&at, |workspace, path, position| {
            let edits = rename::rename(workspace, path, position, &params.new_name)
                .map_err(|refusal| Failure { code: REQUEST_FAILED, message: refusal.to_string() })?;
            let mut changes = serde_json::Map::new();
            for (file, edits) in edits {
                if let Some(uri) = uri_of(&workspace.root().join(&*file)) {
                    changes.insert(uri.as_str().to_owned(), value(edits)?);
                }
            }
            Ok(json!({"changes": changes}))
        })
    }

    fn notify(&mut self, method: &str, value_of: Value) -> Vec<Value> {
        match method {
            "exit" => self.state = State::Exited { is_announced: self.state == State::ShutDown },
            "initialized" if self.state == State::Initialized && self.watches_files => return vec![watch_files()],
            "textDocument/didOpen" => {
                if let Ok(DidOpenTextDocumentParams { text_document }) = params(value_of) {
                    self.change(&text_document.uri, &text_document.text);
                }
            }
            "textDocument/didChange" => {
                // The client sends the full content, so only the last change counts.
                if let Ok(DidChangeTextDocumentParams { text_document, content_changes }) = params(value_of)
                    && let Some(change) = content_changes.last().filter(|change| change.range.is_none())
                {
                    self.change(&text_document.uri, &change.text);
                }
            }
            "textDocument/didClose" => {
                if let Ok(DidCloseTextDocumentParams { text_document }) = params(value_of)
                    && let Some((workspace, path)) = self.workspace_of(&text_document.uri)
                {
                    workspace.close(&path);
                }
            }
            "workspace/didChangeWatchedFiles" => {
                if let Ok(DidChangeWatchedFilesParams { changes }) = params(value_of) {
                    changes.iter().filter_map(|change| path_of(&change.uri)).for_each(|path| self.reload(&path));
                }
            }
            _ => {}
        }
        Vec::new()
    }

    fn change(&mut self, uri: &Uri, text: &str) {
        if self.state != State::Initialized {
            return;
        }
        if let Some((workspace, path)) = self.workspace_of(uri) {
            workspace.change(&path, text);
        }
    }

    fn reload(&mut self, path: &Path) {
        let Some(root) = self.root_of(path) else { return };
        let Some(workspace) = self.workspaces.get_mut(&root) else { return };
        match workspace.relative(path) {
            Some(path) => workspace.reload(&path),
            // The path is a folder.
            None => workspace.reload_all(),
        }
    }

    fn open_project(&mut self, folder: &Path) {
        if let Some(files) = self.projects.open(folder) {
            let workspace = Workspace::new(files);
            self.workspaces.entry(workspace.root().to_owned()).or_insert(workspace);
        }
    }

    /// Returns the innermost open project that contains a path.
    fn root_of(&self, path: &Path) -> Option<PathBuf> {
        let roots = self.workspaces.keys().filter(|root| path.starts_with(root));
        roots.max_by_key(|root| root.as_os_str().len()).cloned()
    }

    /// Returns the project of a file, and the file's path in the project. Opens the project if necessary.
    fn workspace_of(&mut self, uri: &Uri) -> Option<(&mut Workspace, Arc<str>)> {
        let path = path_of(uri)?;
        if self.root_of(&path).is_none() {
            for folder in path.ancestors().skip(1) {
                self.open_project(folder);
                if self.root_of(&path).is_some() {
                    break;
                }
            }
        }
        let root = self.root_of(&path)?;
        let workspace = self.workspaces.get_mut(&root)?;
        let relative = workspace.relative(&path)?;
        Some((workspace, relative))
    }

    /// Computes diagnostics. Returns messages for the files whose diagnostics changed.
    pub(super) fn publish(&mut self) -> Vec<Value> {
        self.contained(Session::changed_diagnostics).unwrap_or_default()
    }

    fn changed_diagnostics(&mut self) -> Vec<Value> {
        let mut current: BTreeMap<String, Value> = BTreeMap::new();
        for workspace in self.workspaces.values_mut() {
            let found = workspace.take_diagnostics();
            for (file, diagnostics) in diagnostics::by_file(workspace, &found) {
                let Some(uri) = uri_of(&workspace.root().join(&*file)) else { continue };
                let key = uri.as_str().to_owned();
                let params = PublishDiagnosticsParams { uri, diagnostics, version: None };
                current.extend(value(params).ok().map(|params| (key, params)));
            }
        }
        // Files that no longer have problems get an empty list.
        for uri in self.published.keys().filter(|uri| !current.contains_key(*uri)).cloned().collect::<Vec<_>>() {
            let empty = json!({"uri": uri, "diagnostics": []});
            current.insert(uri, empty);
        }
        let is_new = |(uri, params): &(&String, &Value)| self.published.get(*uri) != Some(*params);
        let messages =
            current.iter().filter(is_new).map(|(_, params)| notification("textDocument/publishDiagnostics", params));
        let messages = messages.collect();
        current.retain(|_, params| params["diagnostics"].as_array().is_some_and(|list| !list.is_empty()));
        self.published = current;
        messages
    }
}

/// Asks the client to watch the files of projects.
fn watch_files() -> Value {
    let watcher = json!({"globPattern": "**/*.{yml,yaml,sql}"});
    json!({
        "jsonrpc": "2.0",
        "id": "terrane/watch",
        "method": "client/registerCapability",
        "params": {"registrations": [{
            "id": "terrane/watch",
            "method": "workspace/didChangeWatchedFiles",
            "registerOptions": {"watchers": [watcher]},
        }]},
    })
}
