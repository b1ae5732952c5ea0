//! The spelling of names: which characters they have, and which of them need quotes.

/// Words that a table cannot be named by without quotes.
const RESERVED: [&str; 12] =
    ["AT", "BY", "DEFINE", "EVALUATE", "FALSE", "IN", "MEASURE", "NOT", "ORDER", "RETURN", "TRUE", "VAR"];

pub(crate) fn is_name_start(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

pub(crate) fn is_name_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns whether a name can be written without quotes.
pub(crate) fn is_plain_name(name: &str) -> bool {
    let is_reserved = RESERVED.iter().any(|word| word.eq_ignore_ascii_case(name));
    name.starts_with(is_name_start) && name.chars().all(is_name_part) && !is_reserved
}
