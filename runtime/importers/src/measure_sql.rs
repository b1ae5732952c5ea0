//! Differences between the SQL of measures in other tools and in a project.
//!
//! In: the translated SQL of a measure. Out: whether its values may differ in a project.

/// Returns true if the SQL divides and nothing before the division makes an operand a fraction. The warehouse of the
/// model may then have divided integers. A fraction after the division, as in `a / b * 1.0`, does not prevent this.
pub(crate) fn may_divide_integers(sql: &str) -> bool {
    let lower = sql.to_ascii_lowercase();
    let is_division = |at: usize| {
        let (before, divisor) = (&lower[..at], lower[at + 1..].trim_start());
        let has_fraction = before.as_bytes().windows(2).any(|pair| pair[0] == b'.' && pair[1].is_ascii_digit());
        let digits = divisor.trim_start_matches(|c: char| c.is_ascii_digit());
        let by_fraction = digits.len() < divisor.len() && digits.starts_with('.');
        let is_cast = ["::", "cast(", "float", "decimal", "avg"].iter().any(|word| before.contains(word));
        !has_fraction && !by_fraction && !is_cast
    };
    lower.match_indices('/').any(|(at, _)| is_division(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fraction_must_precede_the_quotient() {
        for (sql, expected) in [
            ("{a} / {b}", true),
            ("{a} / {b} * 1.0", true),
            ("{a} / NULLIF({b}, 0)::float", true),
            ("1.0 * {a} / {b}", false),
            ("{a}::float / {b}", false),
            ("{a} / 100.0", false),
            ("{a} / 100", true),
            ("1.0 * {a} / {b} - {c}", false),
            ("{a}", false),
        ] {
            assert_eq!(may_divide_integers(sql), expected, "{sql}");
        }
    }
}
