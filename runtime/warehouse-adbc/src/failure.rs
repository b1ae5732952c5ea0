//! Converts errors of drivers to errors of the port, by SQLSTATE and by the status of ADBC.
//!
//! Some drivers report the SQLSTATE only in their text: `[SQLSTATE: 42P01]`, or Snowflake's `000904 (42000)`. Sources:
//! `adbc.h` for the statuses, and the SQLSTATE classes of the SQL standard and of PostgreSQL.

use std::sync::Arc;

use adbc_core::error::{Error, Status};
use terrane_app::ports::warehouse::{RefusalCause, WarehouseError, WarehouseErrorKind};

/// The largest length of a message in bytes.
const MAX_MESSAGE_BYTES: usize = 4_000;

/// The text before the statement, which the driver of PostgreSQL appends to its messages. The statement contains the
/// values of the query.
const STATEMENT: &str = "\n\nQuery was: ";

/// The errors of one warehouse.
#[derive(Debug, Clone)]
pub(crate) struct Failures {
    /// The name of the warehouse's dialect.
    pub(crate) warehouse: Arc<str>,
}

impl Failures {
    /// Converts the error of a driver.
    pub(crate) fn of(&self, error: &Error) -> WarehouseError {
        let state = state_of(error);
        let kind = kind_of(state.as_deref(), error.status);
        let cause = match state.as_deref() {
            Some("42883" | "42605" | "42887") => RefusalCause::Function,
            Some(state) if state.starts_with("22") => RefusalCause::Value,
            None if is_about_value(&error.message) => RefusalCause::Value,
            _ => RefusalCause::Other,
        };
        WarehouseError { cause, ..self.of_kind(kind, message(error, state.as_deref())) }
    }

    /// Converts the error of a driver that could not open a connection.
    pub(crate) fn connecting(&self, error: &Error) -> WarehouseError {
        WarehouseError { kind: WarehouseErrorKind::Unavailable, ..self.of(error) }
    }

    pub(crate) fn refused(&self, message: String) -> WarehouseError {
        self.of_kind(WarehouseErrorKind::Refused, message)
    }

    pub(crate) fn unsupported_type(&self, column: &str) -> WarehouseError {
        let message = format!("column `{column}` is of a type that has no Arrow type: cast it to text");
        WarehouseError { cause: RefusalCause::UnsupportedType, ..self.refused(message) }
    }

    pub(crate) fn unavailable(&self, message: String) -> WarehouseError {
        self.of_kind(WarehouseErrorKind::Unavailable, message)
    }

    pub(crate) fn timeout(&self) -> WarehouseError {
        self.of_kind(WarehouseErrorKind::Timeout, "the statement exceeded its timeout".to_owned())
    }

    fn of_kind(&self, kind: WarehouseErrorKind, message: String) -> WarehouseError {
        let warehouse = self.warehouse.as_ref().to_owned();
        WarehouseError { warehouse, kind, cause: RefusalCause::Other, message, retries: 0 }
    }
}

/// Returns true if the database rejected the caller's credentials.
pub(crate) fn is_credentials(error: &Error) -> bool {
    matches!(error.status, Status::Unauthenticated | Status::Unauthorized)
        || state_of(error).is_some_and(|state| state.starts_with("28"))
}

/// Returns true if an error may have been caused by a lost connection, and does not state its cause.
pub(crate) fn is_unclear(error: &Error) -> bool {
    let status = matches!(error.status, Status::IO | Status::Internal | Status::Unknown | Status::InvalidState);
    status && state_of(error).is_none()
}

/// Returns true if the database refused the statement's syntax.
pub(crate) fn is_syntax(error: &Error) -> bool {
    state_of(error).as_deref() == Some("42601")
}

/// Returns whether a message without SQLSTATE reports a value that an operation cannot compute with.
fn is_about_value(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    ["overflow", "out of range"].iter().any(|words| message.contains(words))
}

fn kind_of(state: Option<&str>, status: Status) -> WarehouseErrorKind {
    match (state, state.and_then(|state| state.get(..2))) {
        (Some("57014" | "HY008" | "HYT00"), _) => WarehouseErrorKind::Timeout,
        (_, Some("08" | "53" | "57" | "58")) => WarehouseErrorKind::Unavailable,
        (Some(_), _) => WarehouseErrorKind::Refused,
        (None, _) => match status {
            Status::Timeout | Status::Cancelled => WarehouseErrorKind::Timeout,
            Status::IO | Status::Unauthenticated => WarehouseErrorKind::Unavailable,
            _ => WarehouseErrorKind::Refused,
        },
    }
}

/// Returns the SQLSTATE of an error: its own, or that in its text.
fn state_of(error: &Error) -> Option<String> {
    let own: String = error.sqlstate.iter().map(|byte| char::from(*byte as u8)).collect();
    if is_state(&own) && own != "00000" { Some(own) } else { state_in_text(&error.message) }
}

fn state_in_text(message: &str) -> Option<String> {
    const MARK: &str = "SQLSTATE";
    if let Some(at) = message.find(MARK) {
        let rest = message[at + MARK.len()..].trim_start_matches([':', '=', ' ', '\'', '"']);
        return rest.get(..5).filter(|state| is_state(state)).map(str::to_owned);
    }
    // Snowflake's error number is followed by the state in parentheses.
    let (before, rest) = message.split_once(" (")?;
    let number = before.rsplit(' ').next().unwrap_or_default();
    let (state, _) = rest.split_once(')')?;
    let is_number = number.len() == 6 && number.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && is_state(state)).then(|| state.to_owned())
}

fn is_state(text: &str) -> bool {
    text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

/// Returns the message without the statement, limited to [`MAX_MESSAGE_BYTES`], with its SQLSTATE.
fn message(error: &Error, state: Option<&str>) -> String {
    let end = error.message.find(STATEMENT).unwrap_or(error.message.len());
    let mut text = error.message[..end].trim().to_owned();
    if text.is_empty() {
        text = format!("{:?}", error.status);
    }
    if text.len() > MAX_MESSAGE_BYTES {
        text.truncate(text.floor_char_boundary(MAX_MESSAGE_BYTES));
        text.push('…');
    }
    match state.filter(|state| !text.contains(state)) {
        Some(state) => format!("{text} SQLSTATE: {state}"),
        None => text,
    }
}

/// Replaces the values of options in a message of a driver. Drivers repeat unknown options.
pub(crate) fn without_values(error: Error, options: &[(String, String)]) -> Error {
    let mut values: Vec<&str> = options.iter().flat_map(|(_, value)| secrets_of(value)).collect();
    values.sort_by_key(|value| std::cmp::Reverse(value.len()));
    let message = values.into_iter().fold(error.message, |message, value| message.replace(value, "***"));
    Error { message, ..error }
}

/// Returns the value of an option, and the password if the value is a URL.
fn secrets_of(value: &str) -> impl Iterator<Item = &str> {
    let authority = value.split_once("://").and_then(|(_, rest)| rest.rsplit_once('@'));
    let password = authority.and_then(|(user, _)| user.split_once(':')).map(|(_, password)| password);
    [Some(value), password].into_iter().flatten().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(message: &str, status: Status, state: &str) -> Error {
        let mut error = Error::with_message_and_status(message, status);
        for (byte, character) in error.sqlstate.iter_mut().zip(state.bytes()) {
            *byte = character as std::ffi::c_char;
        }
        error
    }

    fn failures() -> Failures {
        Failures { warehouse: "postgres".into() }
    }

    #[test]
    fn state_decides_before_the_status() {
        use WarehouseErrorKind::{Refused, Timeout, Unavailable};
        for (status, state, kind) in [
            (Status::NotFound, "42P01", Refused),
            (Status::IO, "22012", Refused),
            (Status::Internal, "57014", Timeout),
            (Status::Internal, "57P01", Unavailable),
            (Status::Internal, "08006", Unavailable),
            (Status::Internal, "53300", Unavailable),
            (Status::IO, "", Unavailable),
            (Status::IO, "00000", Unavailable),
            (Status::Cancelled, "", Timeout),
            (Status::Timeout, "", Timeout),
            (Status::Unauthenticated, "", Unavailable),
            (Status::Unauthorized, "", Refused),
            (Status::InvalidArguments, "", Refused),
        ] {
            assert_eq!(failures().of(&error("no", status, state)).kind, kind, "{status:?} {state}");
        }
    }

    #[test]
    fn state_is_found_in_the_text() {
        for (message, state) in [
            ("[FlightSQL] relation t does not exist (SQLSTATE: 42P01)", Some("42P01")),
            ("error, SQLSTATE=22012, at 1", Some("22012")),
            ("[Snowflake] 000904 (42000): SQL compilation error: error line 1 at position 7", Some("42000")),
            ("000606 (57P03): No active warehouse selected", Some("57P03")),
            ("SQLSTATE", None),
            ("SQLSTATE: äöüßx", None),
            ("expected (42000) and found x", None),
            ("000904 (4200)", None),
            ("", None),
        ] {
            assert_eq!(state_in_text(message).as_deref(), state, "{message}");
        }
        let failure = failures().of(&error("000606 (57P03): No active warehouse", Status::InvalidState, ""));
        assert_eq!(failure.kind, WarehouseErrorKind::Unavailable);
    }

    #[test]
    fn function_is_the_cause_of_its_state() {
        assert_eq!(failures().of(&error("no", Status::NotFound, "42883")).cause, RefusalCause::Function);
        assert_eq!(failures().of(&error("no", Status::IO, "22003")).cause, RefusalCause::Value);
        assert_eq!(failures().of(&error("int64 overflow: 9 * 9", Status::Unknown, "")).cause, RefusalCause::Value);
        assert_eq!(failures().of(&error("out of memory", Status::Unknown, "")).cause, RefusalCause::Other);
        assert_eq!(failures().of(&error("no", Status::NotFound, "42601")).cause, RefusalCause::Other);
    }

    #[test]
    fn refused_credentials_are_known() {
        assert!(is_credentials(&error("no", Status::Unauthenticated, "")));
        assert!(is_credentials(&error("no", Status::IO, "28P01")));
        assert!(!is_credentials(&error("no", Status::IO, "08006")));
    }

    #[test]
    fn message_is_short_and_without_the_statement() {
        let failure = failures().of(&error("overflow\n\nQuery was: SELECT 'hidden'", Status::IO, "22012"));
        assert_eq!(failure.message, "overflow SQLSTATE: 22012");
        let failure = failures().of(&error(&"ä".repeat(5_000), Status::IO, ""));
        assert_eq!(failure.message.len(), MAX_MESSAGE_BYTES + '…'.len_utf8());
        assert_eq!(failures().of(&error(" ", Status::Internal, "")).message, "Internal");
    }

    #[test]
    fn values_of_options_are_replaced() {
        let options = [
            ("uri".to_owned(), "postgresql://me:pass:word@h/db".to_owned()),
            ("private_key".to_owned(), "abc".to_owned()),
            ("empty".to_owned(), String::new()),
        ];
        let shown = |message: &str| without_values(error(message, Status::IO, ""), &options).message;
        assert_eq!(shown("unknown option private_key=abc"), "unknown option private_key=***");
        assert_eq!(shown("cannot parse postgresql://me:pass:word@h/db"), "cannot parse ***");
        assert_eq!(shown("the password pass:word is wrong"), "the password *** is wrong");
    }
}
