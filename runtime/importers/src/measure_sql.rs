//! Differences between the SQL of measures in other tools and in a project.
//!
//! In: the translated SQL of a measure. Out: whether its values may differ in a project.

/// Returns true if the SQL divides and nothing in it makes an operand a fraction. The warehouse of the model may then
/// have divided integers.
pub(crate) fn may_divide_integers(sql: &str) -> bool {
    let lower = sql.to_ascii_lowercase();
    let is_fraction = lower.as_bytes().windows(2).any(|pair| pair[0] == b'.' && pair[1].is_ascii_digit());
    lower.contains('/') && !is_fraction && !["::", "cast(", "float", "decimal", "avg"].iter().any(|w| lower.contains(w))
}
