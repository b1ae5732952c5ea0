//! The opening handshake of a WebSocket (RFC 6455, section 4.2).
//!
//! In: a request with `Upgrade: websocket`. Out: the response that accepts it, and the socket. Not here: the origin of
//! the page and the caller (`socket`), and the messages of the session (`session`).

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use terrane_wire::Code;
use terrane_wire::graphql::messages::SUBPROTOCOL;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::opening::OpeningLimit;
use crate::edge::ApiError;

/// A WebSocket with a lower limit on messages until its session is open.
pub(super) type SocketStream = WebSocketStream<OpeningLimit<TokioIo<Upgraded>>>;

/// The version of the protocol.
const VERSION: HeaderValue = HeaderValue::from_static("13");
/// The number of bytes of the random value in `Sec-WebSocket-Key`.
const NONCE_BYTES: usize = 16;
/// The number of bytes that are read at once. Each socket has a buffer of this size, even while it is idle.
const READ_BUFFER_BYTES: usize = 4 * 1024;

/// A handshake that is valid.
pub(super) struct Handshake {
    accept: HeaderValue,
    /// True if the client supports `graphql-transport-ws`.
    pub(super) has_subprotocol: bool,
    upgrade: OnUpgrade,
}

impl Handshake {
    /// Reads a request with `Upgrade: websocket`.
    ///
    /// # Errors
    /// Names the header that is missing or invalid.
    pub(super) fn read(mut request: Request) -> Result<Self, ApiError> {
        let invalid = |message: &str| ApiError::new(Code::InvalidQuery, message);
        let headers = request.headers();
        if !has_token(headers, &CONNECTION, "upgrade") {
            return Err(invalid("expected `Upgrade` in the header `Connection`"));
        }
        if headers.get(SEC_WEBSOCKET_VERSION) != Some(&VERSION) {
            let error = invalid("expected `13` in the header `Sec-WebSocket-Version`");
            return Err(error.header(SEC_WEBSOCKET_VERSION, VERSION));
        }
        let key = headers.get(SEC_WEBSOCKET_KEY).map(HeaderValue::as_bytes).unwrap_or_default();
        if !STANDARD.decode(key).is_ok_and(|nonce| nonce.len() == NONCE_BYTES) {
            return Err(invalid("expected 16 bytes in Base64 in the header `Sec-WebSocket-Key`"));
        }
        let accept = HeaderValue::try_from(derive_accept_key(key));
        let has_subprotocol = has_token(headers, &SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL);
        let upgrade = request.extensions_mut().remove::<OnUpgrade>();
        match (accept, upgrade) {
            (Ok(accept), Some(upgrade)) => Ok(Handshake { accept, has_subprotocol, upgrade }),
            _ => Err(invalid("this connection cannot become a WebSocket")),
        }
    }

    /// Returns the response that accepts the handshake.
    pub(super) fn response(&self) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_ACCEPT, self.accept.clone());
        if self.has_subprotocol {
            headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(SUBPROTOCOL));
        }
        response
    }

    /// Returns the socket as soon as the response is sent. `limit` is the maximum length of a message, and `opening` is
    /// the maximum before the session is open.
    ///
    /// # Errors
    /// The client is gone.
    pub(super) async fn socket(self, limit: usize, opening: usize) -> Result<SocketStream, hyper::Error> {
        let stream = OpeningLimit::new(TokioIo::new(self.upgrade.await?), opening);
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER_BYTES)
            .max_message_size(Some(limit))
            .max_frame_size(Some(limit));
        Ok(WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await)
    }
}

/// Returns whether the list of tokens in a header contains `token`, in upper or lower case.
fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    let mut values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.any(|value| value.split(',').any(|own| own.trim().eq_ignore_ascii_case(token)))
}
