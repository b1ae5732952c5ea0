//! Compares numbers in JSON notation.

/// The relative difference below which doubles are equal.
const RELATIVE: f64 = 1e-9;

/// Compares two numbers by value, with all digits: `1.50` equals `15e-1`. Doubles may differ by [`RELATIVE`].
pub(super) fn same(left: &str, right: &str, is_double: bool) -> bool {
    if matches!((Digits::read(left), Digits::read(right)), (Some(a), Some(b)) if a == b) {
        return true;
    }
    match (is_double, left.parse::<f64>(), right.parse::<f64>()) {
        (true, Ok(a), Ok(b)) => (a - b).abs() <= RELATIVE * a.abs().max(b.abs()),
        _ => false,
    }
}

/// A number as `digits × 10^exponent`, whose digits neither begin nor end with a zero.
#[derive(PartialEq, Eq)]
struct Digits {
    is_negative: bool,
    digits: String,
    exponent: i64,
}

impl Digits {
    fn read(text: &str) -> Option<Digits> {
        let (is_negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.trim_start_matches('+').parse().ok()?),
            None => (rest, 0i64),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{fraction}");
        if all.is_empty() || !all.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let shorter = all.trim_end_matches('0');
        let dropped = (all.len() - shorter.len()) as i64;
        let digits = shorter.trim_start_matches('0').to_owned();
        if digits.is_empty() {
            return Some(Digits { is_negative: false, digits, exponent: 0 });
        }
        Some(Digits { is_negative, digits, exponent: exponent.checked_add(dropped - fraction.len() as i64)? })
    }
}

#[cfg(test)]
mod tests {
    use super::same;

    #[test]
    fn numbers_are_compared_by_value() {
        for (left, right) in [("1", "1.0"), ("1.50", "15e-1"), ("0", "-0.00"), ("1e3", "1000"), ("0.010", "1E-2")] {
            assert!(same(left, right, false), "{left} {right}");
        }
        for (left, right) in
            [("1", "-1"), ("10", "1"), ("0.1", "0.10000000001"), ("9007199254740993", "9007199254740992")]
        {
            assert!(!same(left, right, false), "{left} {right}");
        }
    }

    #[test]
    fn doubles_may_differ_in_their_last_digits() {
        assert!(same("0.30000000000000004", "0.3", true));
        assert!(!same("0.30000001", "0.3", true));
        assert!(!same("0.30000000000000004", "0.3", false));
        assert!(!same("1e-20", "0", true));
    }
}
