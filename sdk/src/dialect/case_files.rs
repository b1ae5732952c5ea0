//! The case files of a dialect, for its native tests: a new case is a new line, no Rust.
//!
//! In: the text of `cases/*.txt`, lines of `left = right`, and of `plugin.toml`. Out: a panic that
//! names the first line that doesn't hold.

use super::{Dialect, WarehouseError};

fn lines(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines.map(|line| line.split_once('=').map_or((line, ""), |(left, right)| (left.trim(), right.trim())))
}

/// `LogicalType::TimestampTz` as the contract writes it.
fn kebab(debug: &str) -> String {
    let name = debug.rsplit("::").next().unwrap_or(debug);
    let mut out = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push('-');
        }
        out.extend(c.to_lowercase());
    }
    out
}

/// Lines `native name = logical type`.
///
/// # Panics
/// Where a name maps to another type.
pub fn check_types<D: Dialect>(text: &str) {
    for (native, expected) in lines(text) {
        assert_eq!(kebab(&format!("{:?}", D::map_type(native))), expected, "{native}");
    }
}

/// Lines `class = message` or `class = CODE: message`, where CODE has no space and at least one digit.
/// The word `secret` stands for what no caller may read.
///
/// # Panics
/// Where a message has another class, or its public text repeats the secret.
pub fn check_errors<D: Dialect>(text: &str) {
    for (class, line) in lines(text) {
        let is_code = |code: &str| !code.contains(' ') && code.contains(|c: char| c.is_ascii_digit());
        let (code, message) = line.split_once(": ").filter(|(code, _)| is_code(code)).unwrap_or(("", line));
        let error = WarehouseError { code: code.to_owned(), message: message.to_owned() };
        let classified = D::classify_error(&error);
        assert_eq!(kebab(&format!("{:?}", classified.class)), class, "{line}");
        assert!(!classified.public_message.contains("secret"), "{line}");
    }
}

/// The manifest says who the component says it is.
///
/// # Panics
/// Where they differ.
pub fn check_manifest<D: Dialect>(toml: &str) {
    crate::manifest::check(D::INFO, toml);
}
