//! Compares a warehouse's cell with the expected value.
//!
//! In: a cell's text. Out: whether the cell contains the value. Engines write a value in different forms (`t`, `1`,
//! `true`; `2.50`, `2.5`), and every form is accepted.

/// The expected value of one cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Expected {
    Null,
    Text(String),
    /// A number as digits. All digits are compared, except trailing zeros.
    Number(String),
    /// A number that is compared with a relative tolerance of 1e-9.
    Float(f64),
    Boolean(bool),
    /// A time such as `2024-01-31 15:00:00.5`. A date is the time of its midnight.
    Time(&'static str),
    /// Any value.
    Any,
}

impl Expected {
    pub(super) fn text(text: &str) -> Expected {
        Expected::Text(text.to_owned())
    }

    pub(super) fn number(number: impl ToString) -> Expected {
        Expected::Number(number.to_string())
    }

    /// Returns whether a cell contains the value.
    pub fn matches(&self, cell: Option<&str>) -> bool {
        match (self, cell) {
            (Expected::Any, _) | (Expected::Null, None) => true,
            (Expected::Null, Some(_)) | (_, None) => false,
            (Expected::Text(text), Some(cell)) => text == cell,
            (Expected::Number(digits), Some(cell)) => plain(digits) == plain(cell),
            (Expected::Float(float), Some(cell)) => {
                cell.trim().parse::<f64>().is_ok_and(|found| (found - float).abs() <= float.abs() * 1e-9)
            }
            (Expected::Boolean(truth), Some(cell)) => match cell.to_ascii_lowercase().as_str() {
                "true" | "t" | "1" => *truth,
                "false" | "f" | "0" => !*truth,
                _ => false,
            },
            (Expected::Time(time), Some(cell)) => moment(time) == moment(cell),
        }
    }
}

/// Returns a number without insignificant digits: `+2.50` becomes `2.5`, `-0.0` becomes `0`.
fn plain(number: &str) -> String {
    let number = number.trim();
    let (sign, digits) = match number.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", number.strip_prefix('+').unwrap_or(number)),
    };
    let digits = if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits };
    let digits = digits.trim_start_matches('0');
    match digits {
        "" => "0".to_owned(),
        fraction if fraction.starts_with('.') => format!("{sign}0{fraction}"),
        digits => format!("{sign}{digits}"),
    }
}

/// Returns a time in one form: `2024-01-31T15:00:00.000Z` becomes `2024-01-31 15:00:00`.
fn moment(time: &str) -> String {
    let time = time.trim().replacen('T', " ", 1);
    let zones = ["Z", "+00:00", "+00", " UTC", "+0000"];
    let time = zones.iter().find_map(|zone| time.strip_suffix(zone)).unwrap_or(&time).trim_end();
    let time = if time.contains('.') { time.trim_end_matches('0').trim_end_matches('.') } else { time };
    if time.contains(' ') { time.to_owned() } else { format!("{time} 00:00:00") }
}
