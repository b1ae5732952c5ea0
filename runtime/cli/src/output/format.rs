//! Formats numbers by the `format` of their member.
//!
//! In: rows, and a format for each column. Out: rows whose numbers are formatted strings. Numbers stay exact, because
//! they are shifted and rounded as decimal digits, never as doubles. A space separates thousands in all locales.

use serde_json::Value;
use terrane_expectations::Rows;

/// The largest number of decimal places of a double without a format.
const PLACES: usize = 6;

/// The form of a column's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumberFormat {
    Unchanged,
    /// A number with thousands separators.
    Number,
    /// Two decimal places.
    Currency,
    /// A share in percent with two decimal places.
    Percent,
    /// A number with this many decimal places.
    Places(usize),
}

impl NumberFormat {
    /// Returns the form that the `format` of a member names: `currency`, `percent`, `integer`, `decimal` or
    /// `decimal_N`.
    pub(crate) fn named(name: Option<&str>) -> NumberFormat {
        match name.unwrap_or_default() {
            "currency" => NumberFormat::Currency,
            "percent" | "percentage" => NumberFormat::Percent,
            "integer" => NumberFormat::Places(0),
            "decimal" => NumberFormat::Places(2),
            name => match name.strip_prefix("decimal_").and_then(|places| places.parse().ok()) {
                Some(places) if places <= 12 => NumberFormat::Places(places),
                _ => NumberFormat::Number,
            },
        }
    }

    /// Formats a number in decimal digits. Returns `None` if the text is not such a number, or the form is `Unchanged`.
    pub(crate) fn text(self, digits: &str, is_double: bool) -> Option<String> {
        match self {
            NumberFormat::Unchanged => None,
            NumberFormat::Number if is_double => {
                let rounded = rounded(digits, 0, PLACES)?;
                let shortened = rounded.trim_end_matches('0').trim_end_matches('.');
                Some(if rounded.contains('.') { shortened.to_owned() } else { rounded })
            }
            NumberFormat::Number => grouped(digits),
            NumberFormat::Currency => rounded(digits, 0, 2),
            NumberFormat::Percent => Some(format!("{} %", rounded(digits, 2, 2)?)),
            NumberFormat::Places(places) => rounded(digits, 0, places),
        }
    }
}

/// Returns rows whose numbers have the formats of their columns.
pub(super) fn apply(rows: &Rows, formats: &[NumberFormat]) -> Rows {
    let cell = |value: &Value, column: usize| {
        let format = formats.get(column).copied().unwrap_or(NumberFormat::Unchanged);
        let is_double = rows.is_double.get(column).copied().unwrap_or(false);
        let text = value.is_number().then(|| format.text(&value.to_string(), is_double)).flatten();
        text.map_or_else(|| value.clone(), Value::String)
    };
    let row = |row: &Vec<Value>| row.iter().enumerate().map(|(column, value)| cell(value, column)).collect();
    Rows { columns: rows.columns.clone(), is_double: rows.is_double.clone(), rows: rows.rows.iter().map(row).collect() }
}

/// Splits a number into its sign, its digits, and the number of digits after the point; `None` for other strings.
fn parts(text: &str) -> Option<(bool, Vec<u8>, i64)> {
    let (text, exponent) = match text.split_once(['e', 'E']) {
        Some((text, exponent)) => (text, exponent.parse::<i64>().ok().filter(|e| e.abs() < 400)?),
        None => (text, 0),
    };
    let (is_negative, text) = text.strip_prefix('-').map_or((false, text), |text| (true, text));
    let (whole, behind) = text.split_once('.').unwrap_or((text, ""));
    let digits: Vec<u8> = whole.bytes().chain(behind.bytes()).collect();
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    is_number.then_some((is_negative, digits, behind.len() as i64 - exponent))
}

/// Moves the decimal point to the right by `moved` digits, then rounds to `places` decimal places, half away from zero.
fn rounded(text: &str, moved: i64, places: usize) -> Option<String> {
    let (is_negative, mut digits, behind) = parts(text)?;
    let behind = behind - moved;
    let surplus = behind - places as i64;
    if surplus > 0 {
        let left = digits.len().saturating_sub(surplus as usize);
        let is_up = surplus as usize <= digits.len() && digits.get(left).is_some_and(|digit| *digit >= b'5');
        digits.truncate(left);
        if is_up {
            increment(&mut digits);
        }
    } else {
        digits.extend(std::iter::repeat_n(b'0', surplus.unsigned_abs() as usize));
    }
    let is_zero = digits.iter().all(|digit| *digit == b'0');
    let missing = (places + 1).saturating_sub(digits.len());
    let digits: Vec<u8> = std::iter::repeat_n(b'0', missing).chain(digits).collect();
    let (whole, behind) = digits.split_at(digits.len() - places);
    let sign = if is_negative && !is_zero { "-" } else { "" };
    let whole = thousands(whole);
    let behind = String::from_utf8_lossy(behind);
    Some(if places == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{behind}") })
}

fn increment(digits: &mut Vec<u8>) {
    for digit in digits.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return;
        }
        *digit = b'0';
    }
    digits.insert(0, b'1');
}

/// Separates the thousands of a number and changes nothing else.
fn grouped(text: &str) -> Option<String> {
    let (_, _, behind) = parts(text)?;
    rounded(text, 0, usize::try_from(behind).unwrap_or(0))
}

fn thousands(digits: &[u8]) -> String {
    let first = digits.iter().position(|digit| *digit != b'0').unwrap_or(digits.len().saturating_sub(1));
    let digits = &digits[first..];
    let mut text = String::new();
    for (index, digit) in digits.iter().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(char::from(*digit));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_format_of_their_member() {
        let cases = [
            (Some("currency"), false, "1234567.5", "1 234 567.50"),
            (Some("currency"), false, "-0.005", "-0.01"),
            (Some("currency"), false, "-0.004", "0.00"),
            (Some("currency"), true, "1e21", "1 000 000 000 000 000 000 000.00"),
            (Some("percent"), true, "0.12345", "12.35 %"),
            (Some("percent"), false, "1", "100.00 %"),
            (Some("integer"), true, "999.5", "1 000"),
            (Some("decimal_3"), false, "2", "2.000"),
            (
                None,
                false,
                "12345678901234567890123456789012345678",
                "12 345 678 901 234 567 890 123 456 789 012 345 678",
            ),
            (None, false, "1000.50", "1 000.50"),
            (None, true, "0.30000000000000004", "0.3"),
            (None, true, "1e-7", "0"),
            (None, true, "1200.0", "1 200"),
            (None, false, "-999", "-999"),
            (Some("emoji"), false, "5", "5"),
        ];
        for (format, is_double, digits, expected) in cases {
            let text = NumberFormat::named(format).text(digits, is_double);
            assert_eq!(text.as_deref(), Some(expected), "{format:?} {digits}");
        }
        assert_eq!(NumberFormat::Unchanged.text("2013", false), None);
        assert_eq!(NumberFormat::Number.text("NaN", true), None);
    }
}
