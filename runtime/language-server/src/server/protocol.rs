//! Messages of the protocol: answers, errors, notifications and the capabilities of both sides.
//!
//! In: data. Out: JSON. Not here: the state of a session.

use lsp_types::{
    ClientCapabilities, CompletionOptions, MarkupKind, OneOf, RenameOptions, SaveOptions, ServerCapabilities,
    TextDocumentSyncKind, TextDocumentSyncOptions, TextDocumentSyncSaveOptions,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::hover::Format;

const PARSE_ERROR: i64 = -32700;
pub(super) const INVALID_REQUEST: i64 = -32600;
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
pub(super) const INTERNAL_ERROR: i64 = -32603;
pub(super) const SERVER_NOT_INITIALIZED: i64 = -32002;
const REQUEST_CANCELLED: i64 = -32800;
pub(super) const REQUEST_FAILED: i64 = -32803;

/// The error of one request.
pub(super) struct Failure {
    pub(super) code: i64,
    pub(super) message: String,
}

pub(super) type Answer = Result<Value, Failure>;

/// Returns the answer to content that is not JSON.
pub(super) fn parse_error(reason: &str) -> Value {
    error(Value::Null, &Failure { code: PARSE_ERROR, message: format!("cannot parse the message: {reason}") })
}

/// Returns the answer to a request that the client cancelled before it was handled.
pub(super) fn cancelled(id: Value) -> Value {
    error(id, &Failure { code: REQUEST_CANCELLED, message: "the request was cancelled".to_owned() })
}

pub(super) fn error(id: Value, failure: &Failure) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": failure.code, "message": failure.message}})
}

pub(super) fn notification(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

/// Reads the parameters of a message.
pub(super) fn params<T: DeserializeOwned>(value: Value) -> Result<T, Failure> {
    serde_json::from_value(value).map_err(|error| Failure { code: INVALID_PARAMS, message: error.to_string() })
}

pub(super) fn value(of: impl serde::Serialize) -> Answer {
    serde_json::to_value(of).map_err(|error| Failure { code: INTERNAL_ERROR, message: error.to_string() })
}

/// The optional features of the protocol that a client supports.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ClientFeatures {
    /// Watching files for the server.
    pub(super) watches_files: bool,
    /// Edits with versions of documents.
    pub(super) versioned_edits: bool,
    /// Diagnostics with versions of documents.
    pub(super) versioned_diagnostics: bool,
    pub(super) hover: Format,
    pub(super) completion: Format,
}

impl ClientFeatures {
    pub(super) fn of(capabilities: ClientCapabilities) -> ClientFeatures {
        let workspace = capabilities.workspace.unwrap_or_default();
        let document = capabilities.text_document.unwrap_or_default();
        let watched = workspace.did_change_watched_files.and_then(|watched| watched.dynamic_registration);
        let edits = workspace.workspace_edit.and_then(|edit| edit.document_changes);
        let diagnostics = document.publish_diagnostics.and_then(|diagnostics| diagnostics.version_support);
        let items = document.completion.and_then(|completion| completion.completion_item);
        ClientFeatures {
            watches_files: watched.unwrap_or(false),
            versioned_edits: edits.unwrap_or(false),
            versioned_diagnostics: diagnostics.unwrap_or(false),
            hover: format(document.hover.and_then(|hover| hover.content_format)),
            completion: format(items.and_then(|items| items.documentation_format)),
        }
    }
}

/// Returns the format of descriptions. A client that names no format receives Markdown.
fn format(accepted: Option<Vec<MarkupKind>>) -> Format {
    match accepted {
        Some(kinds) if !kinds.is_empty() && !kinds.contains(&MarkupKind::Markdown) => Format::PlainText,
        _ => Format::Markdown,
    }
}

/// Returns the answer to `initialize`.
pub(super) fn initialized() -> Answer {
    let capabilities = ServerCapabilities {
        text_document_sync: Some(
            TextDocumentSyncOptions {
                open_close: Some(true),
                change: Some(TextDocumentSyncKind::FULL),
                save: Some(TextDocumentSyncSaveOptions::SaveOptions(SaveOptions { include_text: Some(false) })),
                ..TextDocumentSyncOptions::default()
            }
            .into(),
        ),
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

/// Returns a request to the client to watch the files of projects.
pub(super) fn watch_files() -> Value {
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
