//! Skips tests for which a tool is missing on this machine.

/// Reports that tests are skipped. In CI, this is a failure.
///
/// # Panics
/// The variable `CI` is set to a value other than `0` or `false`.
pub fn skip(cases: &str, reason: &str) {
    #[allow(clippy::disallowed_methods, reason = "tests are configured by their environment")]
    let variable = std::env::var("CI").ok();
    assert!(!is_ci(variable.as_deref()), "{cases} must run in CI: {reason}");
    eprintln!("skipped: {cases}: {reason}");
}

/// Returns whether the value of the variable `CI` means that the tests run in CI.
fn is_ci(variable: Option<&str>) -> bool {
    variable.is_some_and(|value| !matches!(value, "" | "0" | "false"))
}

#[cfg(test)]
mod tests {
    use super::is_ci;

    #[test]
    fn ci_is_enabled_by_any_value_except_false() {
        assert_eq!(["true", "1", "yes"].map(|value| is_ci(Some(value))), [true; 3]);
        assert_eq!([None, Some(""), Some("0"), Some("false")].map(is_ci), [false; 4]);
    }
}
