//! Runs a dialect's case files in its native tests. To add a case, add a line to a file.
//!
//! In: the text of `cases/*.txt`, with lines of the form `left = right`, and the text of `plugin.toml`. Out: a panic
//! that names the first failing line.

use super::{Dialect, WarehouseError};

fn lines(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines.map(|line| line.split_once('=').map_or((line, ""), |(left, right)| (left.trim(), right.trim())))
}

/// Returns the contract's name of a logical type from its `Debug` form.
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

/// Checks lines of `native name = logical type`.
///
/// # Panics
/// A name maps to another type.
pub fn check_types<D: Dialect>(text: &str) {
    for (native, expected) in lines(text) {
        assert_eq!(kebab(&format!("{:?}", D::map_type(native))), expected, "{native}");
    }
}

/// Checks lines of `class = message` or `class = CODE: message`, where CODE has no space and at least one digit. In a
/// message, the word `secret` stands for text that callers must not see, so the public message must not contain it.
///
/// # Panics
/// A message has another class, or its public text repeats the secret.
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

/// Checks that the manifest has the plugin's identity.
///
/// # Panics
/// A line is missing.
pub fn check_manifest<D: Dialect>(toml: &str) {
    crate::manifest::check(D::INFO, toml);
}
