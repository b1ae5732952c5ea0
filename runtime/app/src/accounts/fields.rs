//! Rules for the fields of accounts.
//!
//! In: strings of a request. Out: the string, or a [`FieldProblem`]. Not here: the JSON types of fields (server), and
//! the arguments of commands (cli).

use std::sync::Arc;

use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

use super::AccountError;
use crate::security::{MAX_PASSWORD_BYTES, Scopes};

/// The minimum length of a password, in characters.
pub const MIN_PASSWORD_CHARS: usize = 12;
/// The maximum length of a name, role or group, in bytes.
const MAX_TEXT_BYTES: usize = 256;

/// The reason why a field is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldProblem {
    #[error("expected 1 to {MAX_TEXT_BYTES} bytes without control characters")]
    Text,
    #[error("expected at least {MIN_PASSWORD_CHARS} characters, found {found}")]
    ShortPassword { found: usize },
    #[error("expected at most {MAX_PASSWORD_BYTES} bytes, found {found}")]
    LongPassword { found: usize },
    #[error("names of users contain no colon, which separates a provider from its subjects")]
    Colon,
    #[error("expected at least one scope")]
    NoScope,
    #[error("expected a duration such as 365d, 12h, 2w or 1y")]
    Duration,
    #[error("expected a duration that ends in the future")]
    PastDuration,
    #[error("attribute `{name}` contains null")]
    NullAttribute { name: Arc<str> },
    #[error("{found} bytes in all; an access token may contain at most {max}")]
    TooLarge { found: usize, max: usize },
}

impl FieldProblem {
    pub(super) fn of(self, field: &'static str) -> AccountError {
        AccountError::Invalid { field, problem: self }
    }
}

pub(super) fn check_text(field: &'static str, text: &str) -> Result<(), AccountError> {
    let is_good = (1..=MAX_TEXT_BYTES).contains(&text.len()) && !text.chars().any(char::is_control);
    is_good.then_some(()).ok_or_else(|| FieldProblem::Text.of(field))
}

pub(super) fn check_username(username: &str) -> Result<(), AccountError> {
    check_text("username", username)?;
    if username.contains(':') { Err(FieldProblem::Colon.of("username")) } else { Ok(()) }
}

pub(super) fn check_password(password: &str) -> Result<(), AccountError> {
    if password.len() > MAX_PASSWORD_BYTES {
        return Err(FieldProblem::LongPassword { found: password.len() }.of("password"));
    }
    match password.chars().count() {
        found if found < MIN_PASSWORD_CHARS => Err(FieldProblem::ShortPassword { found }.of("password")),
        _ => Ok(()),
    }
}

pub(super) fn check_scopes(scopes: Scopes) -> Result<(), AccountError> {
    if scopes == Scopes::default() { Err(FieldProblem::NoScope.of("scopes")) } else { Ok(()) }
}

/// Reads the lifetime of a key: `365d`, `12h`, `2w`, `1y`.
///
/// # Errors
/// [`FieldProblem::Duration`].
pub fn parse_lifetime(text: &str) -> Result<Span, FieldProblem> {
    text.parse().map_err(|_| FieldProblem::Duration)
}

/// Returns the end of a lifetime that begins now.
pub(super) fn end_of(lifetime: Span, now: Timestamp) -> Result<Timestamp, AccountError> {
    let end = now.to_zoned(TimeZone::UTC).checked_add(lifetime).map_err(|_| FieldProblem::Duration.of("expires"))?;
    let end = end.timestamp();
    if end <= now { Err(FieldProblem::PastDuration.of("expires")) } else { Ok(end) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(result: Result<(), AccountError>) -> Option<FieldProblem> {
        match result {
            Ok(()) => None,
            Err(AccountError::Invalid { problem, .. }) => Some(problem),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn names_are_short_single_lines_without_colons() {
        let longest = "n".repeat(256);
        for (name, expected) in [
            ("ada", None),
            ("Ada Lovelace@example.org", None),
            (longest.as_str(), None),
            ("", Some(FieldProblem::Text)),
            (&format!("{longest}n"), Some(FieldProblem::Text)),
            ("a\nb", Some(FieldProblem::Text)),
            ("a\0", Some(FieldProblem::Text)),
            ("corp:ada", Some(FieldProblem::Colon)),
        ] {
            assert_eq!(problem(check_username(name)), expected, "{name:?}");
        }
    }

    #[test]
    fn passwords_are_long_enough_and_bounded() {
        assert_eq!(problem(check_password("twelve chars")), None);
        assert_eq!(problem(check_password("äöüäöüäöüäöü")), None, "characters count, not bytes");
        assert_eq!(problem(check_password("eleven char")), Some(FieldProblem::ShortPassword { found: 11 }));
        assert_eq!(problem(check_password("")), Some(FieldProblem::ShortPassword { found: 0 }));
        assert_eq!(problem(check_password(&"p".repeat(1_024))), None);
        assert_eq!(problem(check_password(&"p".repeat(1_025))), Some(FieldProblem::LongPassword { found: 1_025 }));
    }

    #[test]
    fn lifetimes_end_in_the_future() {
        let now = Timestamp::UNIX_EPOCH;
        let end = |text: &str| parse_lifetime(text).map(|lifetime| end_of(lifetime, now));
        assert_eq!(end("1h").unwrap().unwrap().as_second(), 3_600);
        assert_eq!(end("2w").unwrap().unwrap().as_second(), 14 * 86_400);
        assert_eq!(end("1y").unwrap().unwrap().as_second(), 365 * 86_400);
        for past in ["0s", "-1d"] {
            assert_eq!(problem(end(past).unwrap().map(drop)), Some(FieldProblem::PastDuration), "{past}");
        }
        assert_eq!(problem(end("19000y").unwrap().map(drop)), Some(FieldProblem::Duration));
        for text in ["", "soon", "365", "1 parsec"] {
            assert_eq!(parse_lifetime(text).err(), Some(FieldProblem::Duration), "{text}");
        }
    }
}
