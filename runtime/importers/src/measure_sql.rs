//! Differences between the SQL of measures in other tools and in a project.
//!
//! In: the translated SQL of a measure. Out: the answer whether its numbers may differ.

/// Returns true if a warehouse may have divided integers: nothing in the SQL makes an operand a fraction.
pub(crate) fn may_divide_integers(sql: &str) -> bool {
    let lower = sql.to_ascii_lowercase();
    let is_fraction = lower.as_bytes().windows(2).any(|pair| pair[0] == b'.' && pair[1].is_ascii_digit());
    lower.contains('/') && !is_fraction && !["::", "cast(", "float", "decimal", "avg"].iter().any(|w| lower.contains(w))
}
