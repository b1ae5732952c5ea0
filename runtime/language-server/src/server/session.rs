//! The state of one client: its open projects, and the diagnostics that were sent to it.
//!
//! In: messages as JSON. Out: messages as JSON. Not here: reading and writing the messages, and their form.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lsp_types::{
    CompletionParams, DidChangeTextDocumentParams, DidChangeWatchedFilesParams, DidCloseTextDocumentParams,
    DidOpenTextDocumentParams, DidSaveTextDocumentParams, DocumentSymbolParams, GotoDefinitionParams, HoverParams,
    InitializeParams, Position, PublishDiagnosticsParams, ReferenceParams, RenameParams, TextDocumentPositionParams,
    TextEdit, Uri, WorkspaceSymbolParams,
};
use serde_json::{Value, json};

use super::diagnostics;
use super::protocol::{
    self, Answer, ClientFeatures, Failure, INTERNAL_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, REQUEST_FAILED,
    SERVER_NOT_INITIALIZED, error, notification, params, value, watch_files,
};
use crate::ports::Projects;
use crate::uri::{path_of, uri_of};
use crate::workspace::Workspace;
use crate::{completion, hover, navigation, rename};

/// The state of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Connected,
    Initialized,
    ShutDown,
}

pub(super) struct Session<'p> {
    projects: &'p dyn Projects,
    state: State,
    workspaces: BTreeMap<PathBuf, Workspace>,
    /// The last diagnostics that were sent to the client, by URI.
    published: BTreeMap<String, Value>,
    client: ClientFeatures,
    /// The number of the client's process.
    client_process: Option<u32>,
}

impl<'p> Session<'p> {
    pub(super) fn new(projects: &'p dyn Projects, folder: Option<&Path>) -> Session<'p> {
        let mut session = Session {
            projects,
            state: State::Connected,
            workspaces: BTreeMap::new(),
            published: BTreeMap::new(),
            client: ClientFeatures::default(),
            client_process: None,
        };
        folder.into_iter().for_each(|folder| session.open_project(folder));
        session
    }

    /// Returns the number of the client's process, if the client named it.
    pub(super) fn client_process(&self) -> Option<u32> {
        self.client_process
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
                let format = self.client.completion;
                self.at(&at, |workspace, path, position| value(completion::complete(workspace, path, position, format)))
            }
            "textDocument/hover" => {
                let params: HoverParams = params(value_of)?;
                let format = self.client.hover;
                self.at(&params.text_document_position_params, |workspace, path, position| {
                    let found = hover::hover(workspace, path, position, format);
                    let Some((text, range)) = found else { return Ok(Value::Null) };
                    let contents = json!({"kind": value(format.kind())?, "value": text});
                    Ok(json!({"contents": contents, "range": value(range)?}))
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
        self.client = ClientFeatures::of(params.capabilities);
        self.client_process = params.process_id;
        self.state = State::Initialized;
        protocol::initialized()
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
        let client = self.client;
        self.at(&at, |workspace, path, position| {
            let edits = rename::rename(workspace, path, position, &params.new_name)
                .map_err(|refusal| Failure { code: REQUEST_FAILED, message: refusal.to_string() })?;
            workspace_edit(workspace, edits, client)
        })
    }

    fn notify(&mut self, method: &str, value_of: Value) -> Vec<Value> {
        match method {
            "initialized" if self.state == State::Initialized && self.client.watches_files => {
                return vec![watch_files()];
            }
            "textDocument/didOpen" => {
                if let Ok(DidOpenTextDocumentParams { text_document }) = params(value_of) {
                    self.change(&text_document.uri, &text_document.text, text_document.version);
                }
            }
            "textDocument/didChange" => {
                // The client sends the full content, so only the last change counts.
                if let Ok(DidChangeTextDocumentParams { text_document, content_changes }) = params(value_of)
                    && let Some(change) = content_changes.last().filter(|change| change.range.is_none())
                {
                    self.change(&text_document.uri, &change.text, text_document.version);
                }
            }
            "textDocument/didClose" => {
                if let Ok(DidCloseTextDocumentParams { text_document }) = params(value_of)
                    && let Some((workspace, path)) = self.workspace_of(&text_document.uri)
                {
                    workspace.close(&path);
                }
            }
            "textDocument/didSave" => {
                if let Ok(DidSaveTextDocumentParams { text_document, .. }) = params(value_of)
                    && let Some((workspace, _)) = self.workspace_of(&text_document.uri)
                {
                    workspace.mark_stale();
                }
            }
            "workspace/didChangeWatchedFiles" => {
                if let Ok(DidChangeWatchedFilesParams { changes }) = params(value_of) {
                    changes.iter().filter_map(|change| path_of(&change.uri)).for_each(|path| self.mark_stale(&path));
                }
            }
            _ => {}
        }
        Vec::new()
    }

    fn change(&mut self, uri: &Uri, text: &str, version: i32) {
        if self.state != State::Initialized {
            return;
        }
        if let Some((workspace, path)) = self.workspace_of(uri) {
            workspace.change(&path, text, Some(version));
        }
    }

    fn mark_stale(&mut self, path: &Path) {
        let root = self.root_of(path);
        if let Some(workspace) = root.and_then(|root| self.workspaces.get_mut(&root)) {
            workspace.mark_stale();
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
        let is_versioned = self.client.versioned_diagnostics;
        let mut current: BTreeMap<String, Value> = BTreeMap::new();
        for workspace in self.workspaces.values_mut() {
            let found = workspace.take_diagnostics();
            let mut files = diagnostics::by_file(workspace, &found);
            // A client may ignore diagnostics of an older version, so each version gets its own, even if they are empty.
            for path in workspace.open_files().filter(|_| is_versioned) {
                files.entry(Arc::clone(path)).or_default();
            }
            for (file, diagnostics) in files {
                let Some(uri) = uri_of(&workspace.root().join(&*file)) else { continue };
                let key = uri.as_str().to_owned();
                let version = workspace.version(&file).filter(|_| is_versioned);
                let params = PublishDiagnosticsParams { uri, diagnostics, version };
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
        let has_content = |params: &Value| params["diagnostics"].as_array().is_some_and(|list| !list.is_empty());
        current.retain(|_, params| has_content(params) || params.get("version").is_some());
        self.published = current;
        messages
    }
}

/// Returns the edits of a rename. Versions let the client refuse edits of a document that has changed meanwhile.
fn workspace_edit(workspace: &Workspace, edits: BTreeMap<Arc<str>, Vec<TextEdit>>, client: ClientFeatures) -> Answer {
    let (mut changes, mut document_changes) = (serde_json::Map::new(), Vec::new());
    for (file, edits) in edits {
        let Some(uri) = uri_of(&workspace.root().join(&*file)) else { continue };
        let edits = value(edits)?;
        if client.versioned_edits {
            let document = json!({"uri": uri.as_str(), "version": workspace.version(&file)});
            document_changes.push(json!({"textDocument": document, "edits": edits}));
        } else {
            changes.insert(uri.as_str().to_owned(), edits);
        }
    }
    Ok(match client.versioned_edits {
        true => json!({"documentChanges": document_changes}),
        false => json!({"changes": changes}),
    })
}
