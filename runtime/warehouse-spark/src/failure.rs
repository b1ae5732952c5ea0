//! Converts the server's errors to errors of the port, by SQLSTATE, error condition and gRPC status.
//!
//! Source: `ErrorUtils` of Spark Connect, which sends the condition and the SQLSTATE as details of the status, and the
//! SQLSTATE classes of Spark's error conditions. If a server sends neither, its errors are classified by the status
//! alone.

use std::error::Error as _;

use prost::Message as _;
use terrane_app::ports::warehouse::{RefusalCause, WarehouseError, WarehouseErrorKind};
use tonic::{Code, Status};

use crate::protocol::{ERROR_INFO, ErrorInfo, RpcStatus};

/// The name of the warehouse's type and of its dialect.
pub(crate) const NAME: &str = "spark";

/// The largest length of a message in bytes. Spark appends the plan of the statement to messages.
const MAX_MESSAGE_BYTES: usize = 4_000;

/// A failed call.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) error: WarehouseError,
    /// True if the server rejected the caller's credentials.
    pub(crate) is_credentials: bool,
}

impl Failure {
    pub(crate) fn into_error(self) -> WarehouseError {
        self.error
    }
}

impl From<WarehouseError> for Failure {
    fn from(error: WarehouseError) -> Self {
        Failure { error, is_credentials: false }
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        let info = details(&status);
        let field = |name: &str| info.metadata.get(name).map_or("", String::as_str);
        let (condition, state) = (field("errorClass"), field("sqlState"));
        let is_credentials = matches!(status.code(), Code::Unauthenticated | Code::PermissionDenied);
        // Only this client creates a status with a source, when the connection breaks.
        let kind = match status.source() {
            Some(_) => WarehouseErrorKind::Unavailable,
            None => kind_of(status.code(), condition, state),
        };
        let cause = match state {
            "42883" | "42605" | "42887" => RefusalCause::Function,
            state if state.starts_with("22") => RefusalCause::Value,
            _ => RefusalCause::Other,
        };
        Failure { error: WarehouseError { cause, ..error(kind, message(&status, state)) }, is_credentials }
    }
}

/// Returns the kind of the server's error. `state` is empty if the server did not send an SQLSTATE.
fn kind_of(code: Code, condition: &str, state: &str) -> WarehouseErrorKind {
    // The session was closed or the server was restarted, so another session can be used.
    if condition.starts_with("INVALID_HANDLE") {
        return WarehouseErrorKind::Unavailable;
    }
    match (state, state.get(..2).unwrap_or_default()) {
        ("57014" | "HY008" | "HYT00", _) => WarehouseErrorKind::Timeout,
        (_, "08" | "53" | "57" | "58") => WarehouseErrorKind::Unavailable,
        ("", _) => match code {
            Code::Unavailable | Code::Unauthenticated => WarehouseErrorKind::Unavailable,
            Code::DeadlineExceeded | Code::Cancelled => WarehouseErrorKind::Timeout,
            _ => WarehouseErrorKind::Refused,
        },
        _ => WarehouseErrorKind::Refused,
    }
}

fn details(status: &Status) -> ErrorInfo {
    let details = RpcStatus::decode(status.details()).map(|status| status.details).unwrap_or_default();
    let info = details.iter().find(|detail| detail.type_url == ERROR_INFO);
    info.and_then(|info| ErrorInfo::decode(&*info.value).ok()).unwrap_or_default()
}

/// Returns the message with its SQLSTATE, limited to [`MAX_MESSAGE_BYTES`].
fn message(status: &Status, state: &str) -> String {
    let mut text = match status.source() {
        // The message of the status only states that the transport failed.
        Some(source) => innermost(source),
        None => status.message().trim().to_owned(),
    };
    if text.is_empty() {
        text = status.code().description().to_owned();
    }
    if text.len() > MAX_MESSAGE_BYTES {
        text.truncate(text.floor_char_boundary(MAX_MESSAGE_BYTES));
        text.push('…');
    }
    if !state.is_empty() && !text.contains(state) {
        text.push_str(" SQLSTATE: ");
        text.push_str(state);
    }
    text
}

fn innermost(mut error: &(dyn std::error::Error + 'static)) -> String {
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

fn error(kind: WarehouseErrorKind, message: String) -> WarehouseError {
    WarehouseError { warehouse: NAME.to_owned(), kind, cause: RefusalCause::Other, message, retries: 0 }
}

pub(crate) fn refused(message: String) -> WarehouseError {
    error(WarehouseErrorKind::Refused, message)
}

pub(crate) fn unsupported_type(message: String) -> WarehouseError {
    WarehouseError { cause: RefusalCause::UnsupportedType, ..refused(message) }
}

pub(crate) fn unavailable(message: String) -> WarehouseError {
    error(WarehouseErrorKind::Unavailable, message)
}

pub(crate) fn timeout() -> WarehouseError {
    error(WarehouseErrorKind::Timeout, "the statement exceeded its timeout".to_owned())
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use tonic::metadata::MetadataMap;

    use super::*;
    use crate::protocol::ErrorInfo;

    fn failure(code: Code, condition: &str, state: &str) -> Failure {
        let metadata = [("errorClass", condition), ("sqlState", state)];
        let metadata = metadata.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        let info = ErrorInfo { reason: "AnalysisException".to_owned(), metadata };
        let any = crate::protocol::Any { type_url: ERROR_INFO.to_owned(), value: info.encode_to_vec() };
        let details = RpcStatus { details: vec![any] }.encode_to_vec();
        Status::with_details_and_metadata(code, "no", details.into(), MetadataMap::new()).into()
    }

    #[test]
    fn sqlstate_decides_the_kind() {
        use WarehouseErrorKind::{Refused, Timeout, Unavailable};
        for (code, condition, state, kind) in [
            (Code::Internal, "TABLE_OR_VIEW_NOT_FOUND", "42P01", Refused),
            (Code::Internal, "DIVIDE_BY_ZERO", "22012", Refused),
            (Code::Internal, "OPERATION_CANCELED", "HY008", Timeout),
            (Code::Internal, "CONNECT", "08000", Unavailable),
            (Code::Internal, "INVALID_HANDLE.SESSION_CHANGED", "HY000", Unavailable),
            (Code::Internal, "", "", Refused),
            (Code::Unavailable, "", "", Unavailable),
            (Code::DeadlineExceeded, "", "", Timeout),
            (Code::PermissionDenied, "", "", Refused),
            (Code::ResourceExhausted, "", "", Refused),
        ] {
            assert_eq!(failure(code, condition, state).error.kind, kind, "{code:?} {condition} {state}");
        }
    }

    #[test]
    fn function_is_the_cause_of_its_sqlstate() {
        assert_eq!(failure(Code::Internal, "UNRESOLVED_ROUTINE", "42883").error.cause, RefusalCause::Function);
        assert_eq!(failure(Code::Internal, "ARITHMETIC_OVERFLOW", "22003").error.cause, RefusalCause::Value);
        assert_eq!(failure(Code::Internal, "PARSE_SYNTAX_ERROR", "42601").error.cause, RefusalCause::Other);
    }

    #[test]
    fn refused_credentials_are_known() {
        assert!(failure(Code::Unauthenticated, "", "").is_credentials);
        assert!(!failure(Code::Internal, "", "").is_credentials);
    }

    #[test]
    fn details_that_are_garbage_are_skipped() {
        let status = Status::with_details(Code::Internal, "x".repeat(5_000), vec![0xff; 40].into());
        let failure = Failure::from(status);
        assert_eq!(failure.error.kind, WarehouseErrorKind::Refused);
        assert_eq!(failure.error.message.len(), MAX_MESSAGE_BYTES + '…'.len_utf8());
    }
}
