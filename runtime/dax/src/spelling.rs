//! The spelling of names: the characters that names have, and the names that need quotes.

/// The words that must be quoted if they are the name of a table.
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
