//! Messages of the WebSocket subprotocol `graphql-transport-ws`.
//!
//! In: a client's text message. Out: a [`ClientMessage`], or an error for a message that the protocol does not define.
//! The server's messages are written here too. Not here: the order in which messages are allowed (server).

use serde_json::{Map, Value as Json, json};

use super::{GraphQlRequest, map, request, string};
use crate::body::parse;
use crate::error::ErrorBody;
use crate::fields::{FieldError, Path};

/// The name of the subprotocol.
pub const SUBPROTOCOL: &str = "graphql-transport-ws";

/// The maximum length of an operation's id.
const MAX_ID_BYTES: usize = 256;
const EXPECTED: &str = "an object like {\"type\": \"ping\"}";
const TYPES: &str = "`connection_init`, `ping`, `pong`, `subscribe` or `complete`";

/// A client's message.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientMessage {
    /// Opens the session. The payload has the client's credential.
    ConnectionInit {
        payload: Map<String, Json>,
    },
    Ping {
        payload: Option<Map<String, Json>>,
    },
    Pong,
    /// Starts an operation. If the interface does not support the request, only this operation fails.
    Subscribe {
        id: Box<str>,
        request: Result<GraphQlRequest, Box<ErrorBody>>,
    },
    /// Ends an operation.
    Complete {
        id: Box<str>,
    },
}

/// Reads a message.
///
/// # Errors
/// The message is not one of the protocol.
pub fn from_client(text: &[u8]) -> Result<ClientMessage, FieldError> {
    let root = Path::ROOT;
    let mut object = match parse(text)? {
        Json::Object(object) => object,
        other => return Err(root.invalid_type(&other, EXPECTED)),
    };
    let kind = string(&mut object, "type", &root)?.ok_or_else(|| root.missing("type"))?;
    match kind.as_str() {
        "connection_init" => Ok(ClientMessage::ConnectionInit { payload: map(&mut object, "payload", &root)? }),
        "ping" => {
            let payload = object.contains_key("payload").then(|| map(&mut object, "payload", &root)).transpose()?;
            Ok(ClientMessage::Ping { payload })
        }
        "pong" => Ok(ClientMessage::Pong),
        "subscribe" => {
            let id = id(&mut object)?;
            let payload = object.remove("payload").unwrap_or_default();
            // A payload without a document violates the protocol. A document that is not supported does not.
            let is_object = payload.is_object();
            match request(payload, &root.field("payload"), Path::missing) {
                Ok(request) => Ok(ClientMessage::Subscribe { id, request: Ok(request) }),
                Err(error) if is_object && error.is_unsupported() => {
                    Ok(ClientMessage::Subscribe { id, request: Err(Box::new(error.into())) })
                }
                Err(error) => Err(error),
            }
        }
        "complete" => Ok(ClientMessage::Complete { id: id(&mut object)? }),
        other => Err(root.field("type").invalid_value(other, TYPES)),
    }
}

fn id(object: &mut Map<String, Json>) -> Result<Box<str>, FieldError> {
    let root = Path::ROOT;
    let id = string(object, "id", &root)?.ok_or_else(|| root.missing("id"))?;
    if id.is_empty() || id.len() > MAX_ID_BYTES {
        return Err(root.field("id").invalid_value(&id, "a string of 1 to 256 bytes"));
    }
    Ok(id.into())
}

/// Writes the answer to `connection_init`.
pub fn connection_ack() -> String {
    json!({ "type": "connection_ack" }).to_string()
}

/// Writes the answer to `ping`, with the same payload.
pub fn pong(payload: Option<Map<String, Json>>) -> String {
    let mut message = json!({ "type": "pong" });
    if let Some(payload) = payload {
        message["payload"] = payload.into();
    }
    message.to_string()
}

/// Writes one result of an operation. `response` is the JSON text of the response.
pub fn next(id: &str, response: &str) -> String {
    // An id may need escapes, so it is serialized, which never fails for a string.
    let id = Json::from(id).to_string();
    let mut message = String::with_capacity(response.len() + id.len() + 40);
    message.push_str("{\"id\":");
    message.push_str(&id);
    message.push_str(",\"type\":\"next\",\"payload\":");
    message.push_str(response);
    message.push('}');
    message
}

/// Writes the errors of an operation that was not executed. This message ends the operation.
pub fn error(id: &str, errors: &Json) -> String {
    json!({ "id": id, "type": "error", "payload": errors }).to_string()
}

/// Writes the end of an operation.
pub fn complete(id: &str) -> String {
    json!({ "id": id, "type": "complete" }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<ClientMessage> {
        from_client(text.as_bytes()).ok()
    }

    #[test]
    fn messages_of_the_protocol_are_read() {
        let init = |payload: Json| ClientMessage::ConnectionInit { payload: payload.as_object().cloned().unwrap() };
        assert_eq!(read(r#"{"type": "connection_init"}"#), Some(init(json!({}))));
        assert_eq!(read(r#"{"type": "connection_init", "payload": null}"#), Some(init(json!({}))));
        assert_eq!(read(r#"{"type": "connection_init", "payload": {"a": 1}}"#), Some(init(json!({"a": 1}))));
        assert_eq!(read(r#"{"type": "ping"}"#), Some(ClientMessage::Ping { payload: None }));
        assert_eq!(read(r#"{"type": "pong", "payload": {}}"#), Some(ClientMessage::Pong));
        assert_eq!(read(r#"{"type": "complete", "id": "1"}"#), Some(ClientMessage::Complete { id: "1".into() }));
        let subscribed =
            read(r#"{"type": "subscribe", "id": "1", "payload": {"query": "{a}", "operationType": "query"}}"#);
        let Some(ClientMessage::Subscribe { id, request: Ok(request) }) = subscribed else { panic!("{subscribed:?}") };
        assert_eq!((&*id, request.query.as_str()), ("1", "{a}"));
    }

    #[test]
    fn other_messages_are_rejected() {
        let long = format!(r#"{{"type": "complete", "id": "{}"}}"#, "x".repeat(257));
        for text in [
            "",
            "[]",
            "{}",
            "nonsense",
            r#"{"type": 1}"#,
            r#"{"type": "start"}"#,
            r#"{"type": "ping", "type": "ping"}"#,
            r#"{"type": "ping", "payload": []}"#,
            r#"{"type": "connection_init", "payload": "key"}"#,
            r#"{"type": "complete"}"#,
            r#"{"type": "complete", "id": ""}"#,
            r#"{"type": "complete", "id": 1}"#,
            r#"{"type": "subscribe", "id": "1"}"#,
            r#"{"type": "subscribe", "id": "1", "payload": {}}"#,
            r#"{"type": "subscribe", "id": "1", "payload": {"query": 1}}"#,
            r#"{"type": "subscribe", "id": "1", "payload": {"query": "{a}", "variables": []}}"#,
            r#"{"type": "subscribe", "id": "1", "payload": [{"query": "{a}"}]}"#,
            r#"{"type": "subscribe", "payload": {"query": "{a}"}}"#,
            &long,
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn persisted_document_is_rejected_for_its_operation() {
        let text = r#"{"type": "subscribe", "id": "1", "payload": {"extensions": {"persistedQuery": {}}}}"#;
        let Some(ClientMessage::Subscribe { request: Err(error), .. }) = read(text) else { panic!("{:?}", read(text)) };
        assert_eq!(error.message, "PersistedQueryNotSupported");
    }

    #[test]
    fn messages_of_the_server_are_json() {
        let parsed = |text: String| serde_json::from_str::<Json>(&text).unwrap();
        let id = "a\"b\u{7}";
        assert_eq!(parsed(next(id, "{\"data\":null}")), json!({"id": id, "type": "next", "payload": {"data": null}}));
        assert_eq!(parsed(complete(id)), json!({"id": id, "type": "complete"}));
        assert_eq!(parsed(error(id, &json!([1]))), json!({"id": id, "type": "error", "payload": [1]}));
        assert_eq!(parsed(pong(None)), json!({"type": "pong"}));
        assert_eq!(parsed(pong(Some(Map::new()))), json!({"type": "pong", "payload": {}}));
        assert_eq!(parsed(connection_ack()), json!({"type": "connection_ack"}));
    }
}
