//! FORMAT: numbers, dates and Booleans in the named and custom formats of DAX.
//!
//! In: a value and a format. Out: a string, with English names of months and days, `.` as decimal point, and commas
//! between thousands. A custom format of numbers has up to three sections: for positive numbers, negative ones and
//! zero.

mod dates;

use super::Datum;

/// An element of a section of a custom format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Literal(char),
    /// `0`: a digit that is always written.
    Zero,
    /// `#`: a digit that is written only if it is significant.
    Digit,
    Point,
    Comma,
    Percent,
    /// An exponent. `E+` always writes the exponent's sign, while `E-` writes it only for a negative exponent. `digits`
    /// is the least number of digits of the exponent.
    Exponent {
        has_plus: bool,
        digits: usize,
    },
}

/// Formats a value. BLANK becomes an empty string, and a string that is not a number is unchanged.
pub(super) fn format(value: &Datum, format: &str) -> String {
    let value = match value {
        Datum::Blank => return String::new(),
        Datum::Text(text) => match text.trim().parse::<f64>() {
            Ok(number) if number.is_finite() => Datum::Double(number),
            _ => return text.to_string(),
        },
        other => other.clone(),
    };
    let name = format.trim().to_ascii_lowercase();
    match (&value, &*name) {
        (_, "yes/no" | "true/false" | "on/off") => {
            let is_true = value.number().is_some_and(|number| number != 0.0);
            let words = match &*name {
                "yes/no" => ["No", "Yes"],
                "on/off" => ["Off", "On"],
                _ => ["False", "True"],
            };
            words[usize::from(is_true)].to_owned()
        }
        (Datum::Boolean(value), _) => if *value { "True" } else { "False" }.to_owned(),
        (Datum::DateTime(_), _) => of_date(&value, format, &name),
        (_, "" | "general number") => value.text().unwrap_or_default(),
        (_, "currency") => number(&value, "$#,##0.00;($#,##0.00)"),
        (_, "fixed") => number(&value, "0.00"),
        (_, "standard") => number(&value, "#,##0.00"),
        (_, "percent") => number(&value, "0.00%"),
        (_, "scientific") => number(&value, "0.00E+00"),
        _ if dates::is_format(format, &name) => of_date(&value, format, &name),
        _ => number(&value, format),
    }
}

fn of_date(value: &Datum, format: &str, name: &str) -> String {
    value.moment().map(|moment| dates::format(moment, format, name)).unwrap_or_default()
}

fn number(value: &Datum, format: &str) -> String {
    let Some(number) = value.number() else { return String::new() };
    if !number.is_finite() {
        return value.text().unwrap_or_default();
    }
    // A decimal is formatted from its exact digits.
    let text = match value {
        Datum::Decimal(decimal) => decimal.to_string(),
        _ => number.to_string(),
    };
    let digits = text.trim_start_matches('-');
    let sections = sections(format);
    let section = |at: usize| sections.get(at).filter(|section| !section.is_empty());
    let (parts, has_sign) = match number.partial_cmp(&0.0) {
        Some(std::cmp::Ordering::Less) => match section(1) {
            Some(parts) => (parts, false),
            None => (&sections[0], true),
        },
        Some(std::cmp::Ordering::Equal) => (section(2).unwrap_or(&sections[0]), false),
        _ => (&sections[0], false),
    };
    let written = in_section(digits, parts);
    let is_zero = !written.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    if has_sign && !is_zero { format!("-{written}") } else { written }
}

/// Splits a format at its semicolons.
fn sections(format: &str) -> Vec<Vec<Part>> {
    let mut sections: Vec<Vec<Part>> = vec![Vec::new()];
    let mut characters = format.chars().peekable();
    while let Some(character) = characters.next() {
        let parts = sections.len() - 1;
        let parts = &mut sections[parts];
        match character {
            '\\' => parts.extend(characters.next().map(Part::Literal)),
            '"' => parts.extend(characters.by_ref().take_while(|c| *c != '"').map(Part::Literal)),
            '0' => parts.push(Part::Zero),
            '#' => parts.push(Part::Digit),
            '.' => parts.push(Part::Point),
            ',' => parts.push(Part::Comma),
            '%' => parts.push(Part::Percent),
            'E' | 'e' if matches!(characters.peek(), Some('+' | '-')) => {
                let has_plus = characters.next() == Some('+');
                let digits = std::iter::from_fn(|| characters.next_if(|c| matches!(c, '0' | '#'))).count();
                parts.push(Part::Exponent { has_plus, digits });
            }
            ';' => sections.push(Vec::new()),
            other => parts.push(Part::Literal(other)),
        }
    }
    sections
}

fn is_digit(part: &Part) -> bool {
    matches!(part, Part::Zero | Part::Digit)
}

/// Formats a number without a sign in the elements of one section.
fn in_section(digits: &str, parts: &[Part]) -> String {
    let point = parts.iter().position(|part| *part == Part::Point);
    let end = parts.iter().position(|part| matches!(part, Part::Exponent { .. })).unwrap_or(parts.len());
    let (whole, rest) = parts.split_at(point.unwrap_or(end).min(end));
    let fraction: Vec<Part> = rest.iter().take(end - whole.len()).copied().filter(is_digit).collect();
    // Each comma after the last digit divides the number by a thousand. Other commas separate thousands.
    let last = whole.iter().rposition(is_digit);
    let commas = |parts: &[Part]| parts.iter().filter(|part| **part == Part::Comma).count();
    let commas_behind = commas(&whole[last.map_or(0, |at| at + 1)..]) + commas(&rest[..end - whole.len()]);
    let has_groups = last.is_some_and(|last| whole[..last].contains(&Part::Comma));
    let percents = parts.iter().filter(|part| **part == Part::Percent).count() as i32;
    let mut scaled = Scaled::of(digits).shifted(2 * percents - 3 * commas_behind as i32);
    let least = whole.iter().filter(|part| **part == Part::Zero).count();
    let mut exponent = 0;
    if parts.iter().any(|part| matches!(part, Part::Exponent { .. })) && !scaled.is_zero() {
        let places = whole.iter().filter(|part| is_digit(part)).count().max(1) as i32;
        exponent = scaled.exponent() + 1 - places;
        scaled = scaled.shifted(-exponent);
    }
    let (whole_digits, fraction_digits) = scaled.rounded(fraction.len(), least);
    let shown = fraction.iter().rposition(|part| *part == Part::Zero).map_or(0, |at| at + 1);
    let shown = shown.max(fraction_digits.trim_end_matches('0').len());
    let mut out = String::new();
    write_whole(&whole_digits, whole, has_groups, &mut out);
    let mut fraction_digits = fraction_digits.chars().take(shown);
    let (mut has_point, mut is_behind) = (false, false);
    for part in rest {
        match part {
            Part::Literal(character) => out.push(*character),
            Part::Percent => out.push('%'),
            Part::Point if !has_point => {
                has_point = true;
                out.push('.');
            }
            Part::Zero | Part::Digit if !is_behind => out.extend(fraction_digits.next()),
            Part::Exponent { has_plus, digits } => {
                is_behind = true;
                let sign = if exponent < 0 {
                    "-"
                } else if *has_plus {
                    "+"
                } else {
                    ""
                };
                out.push_str(&format!("E{sign}{:0digits$}", exponent.unsigned_abs()));
            }
            _ => {}
        }
    }
    out
}

/// Writes the digits before the point into the digit elements of a section. If there are more digits than elements, the
/// first element takes the additional digits.
fn write_whole(digits: &str, parts: &[Part], has_groups: bool, out: &mut String) {
    let places = parts.iter().filter(|part| is_digit(part)).count();
    let mut left = digits.len();
    let mut written = 0;
    let write = |count: usize, left: &mut usize, out: &mut String| {
        for _ in 0..count {
            let digit = &digits[digits.len() - *left..][..1];
            out.push_str(digit);
            *left -= 1;
            if has_groups && *left > 0 && left.is_multiple_of(3) {
                out.push(',');
            }
        }
    };
    for part in parts {
        match part {
            Part::Literal(character) => out.push(*character),
            Part::Percent => out.push('%'),
            Part::Zero | Part::Digit => {
                written += 1;
                // One digit is left for each of the following elements.
                let behind = places - written;
                write(left.saturating_sub(behind), &mut left, out);
            }
            _ => {}
        }
    }
    if places == 0 && !digits.is_empty() && parts.is_empty() {
        let count = left;
        write(count, &mut left, out);
    }
}

/// Decimal digits, and the position of their point.
#[derive(Debug, Clone)]
struct Scaled {
    digits: Vec<u8>,
    /// The number of digits before the point. It may be negative, or larger than the number of digits.
    point: i32,
}

impl Scaled {
    fn of(text: &str) -> Scaled {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|byte| byte.wrapping_sub(b'0')).collect();
        let zeros = digits.iter().take_while(|digit| **digit == 0).count();
        Scaled { digits: digits[zeros..].to_vec(), point: whole.len() as i32 - zeros as i32 }
    }

    fn is_zero(&self) -> bool {
        self.digits.iter().all(|digit| *digit == 0)
    }

    /// Returns the number multiplied by `10^places`.
    fn shifted(mut self, places: i32) -> Scaled {
        self.point += places;
        self
    }

    /// Returns the decimal exponent of the first digit.
    fn exponent(&self) -> i32 {
        self.point - 1
    }

    fn digit(&self, at: i32) -> u8 {
        usize::try_from(at).ok().and_then(|at| self.digits.get(at)).copied().unwrap_or(0)
    }

    /// Rounds half away from zero to `decimals` digits after the point. Returns the digits before the point, at least
    /// `least` of them, and the digits after it.
    fn rounded(&self, decimals: usize, least: usize) -> (String, String) {
        let end = self.point + decimals as i32;
        let mut digits: Vec<u8> = (self.point.min(0)..end).map(|at| self.digit(at)).collect();
        let mut carry = self.digit(end) >= 5;
        for digit in digits.iter_mut().rev() {
            if !carry {
                break;
            }
            carry = *digit == 9;
            *digit = if carry { 0 } else { *digit + 1 };
        }
        if carry {
            digits.insert(0, 1);
        }
        let split = digits.len().saturating_sub(decimals);
        let text = |digits: &[u8]| digits.iter().map(|digit| char::from(b'0' + digit)).collect::<String>();
        let (before, behind) = (text(&digits[..split]), text(&digits[split..]));
        let before = before.trim_start_matches('0');
        (format!("{before:0>least$}"), behind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_formats() {
        let decimal = |text: &str| Datum::Decimal(text.parse().unwrap());
        for (value, pattern, expected) in [
            (Datum::Double(1234.567), "#,##0.00", "1,234.57"),
            (Datum::Double(-1234.567), "#,##0.00", "-1,234.57"),
            (Datum::Integer(1_234_567), "#,##0", "1,234,567"),
            (Datum::Integer(0), "#,##0", "0"),
            (Datum::Integer(0), "#", ""),
            (Datum::Double(0.5), "#.0", ".5"),
            (Datum::Double(2.5), "0", "3"),
            (Datum::Double(0.125), "0.00", "0.13"),
            (decimal("2.345"), "0.00", "2.35"),
            (Datum::Double(9.995), "0.00", "10.00"),
            (Datum::Double(0.004), "0.00", "0.00"),
            (Datum::Double(-0.004), "0.00", "0.00"),
            (Datum::Double(1.5), "0.0##", "1.5"),
            (Datum::Double(1.0), "0.##", "1."),
            (Datum::Double(0.256), "0.0%", "25.6%"),
            (Datum::Integer(5), "000", "005"),
            (Datum::Integer(1_234_567), "000-0000", "123-4567"),
            (Datum::Integer(1_234_567), "0,,", "1"),
            (Datum::Integer(1_234_567), "#,##0,", "1,235"),
            (Datum::Integer(1_500_000), "0.0,,\"M\"", "1.5M"),
            (Datum::Integer(-5), "0;(0);zero", "(5)"),
            (Datum::Integer(0), "0;(0);zero", "zero"),
            (Datum::Integer(7), "0;(0);zero", "7"),
            (Datum::Integer(7), "\"n = \"0\\!", "n = 7!"),
            (Datum::Integer(7), "0 EUR", "7 EUR"),
            (Datum::Double(12345.678), "0.00E+00", "1.23E+04"),
            (Datum::Double(0.00012), "0.0E-0", "1.2E-4"),
            (Datum::Double(1234.5), "Currency", "$1,234.50"),
            (Datum::Double(-1234.5), "currency", "($1,234.50)"),
            (Datum::Double(1234.5), "Fixed", "1234.50"),
            (Datum::Double(1234.5), "Standard", "1,234.50"),
            (Datum::Double(0.5), "Percent", "50.00%"),
            (Datum::Double(1234.5), "Scientific", "1.23E+03"),
            (Datum::Double(1234.5), "General Number", "1234.5"),
            (Datum::Integer(1), "Yes/No", "Yes"),
            (Datum::Boolean(false), "On/Off", "Off"),
            (Datum::Boolean(true), "", "True"),
            (Datum::Text("7.5".into()), "0.00", "7.50"),
            (Datum::Text("abc".into()), "0.00", "abc"),
            (Datum::Blank, "0.00", ""),
            (Datum::Double(f64::INFINITY), "0", "inf"),
        ] {
            assert_eq!(format(&value, pattern), expected, "{value:?} {pattern}");
        }
    }

    #[test]
    fn dates_have_their_formats() {
        let moment = Datum::of_moment(jiff::civil::datetime(2024, 2, 9, 15, 4, 5, 0));
        for (pattern, expected) in [
            ("yyyy-MM-dd", "2024-02-09"),
            ("d/m/yy", "9/2/24"),
            ("dddd, d mmmm yyyy", "Friday, 9 February 2024"),
            ("ddd dd mmm", "Fri 09 Feb"),
            ("hh:mm:ss", "15:04:05"),
            ("h:nn AM/PM", "3:04 PM"),
            ("h:mm am/pm", "3:04 pm"),
            ("\"Q\"q yyyy", "Q1 2024"),
            ("y", "40"),
            ("w", "6"),
            ("ww", "6"),
            ("c", "2/9/2024 3:04:05 PM"),
            ("ddddd", "2/9/2024"),
            ("dddddd", "Friday, February 9, 2024"),
            ("ttttt", "3:04:05 PM"),
            ("Short Date", "2/9/2024"),
            ("Long Date", "Friday, February 9, 2024"),
            ("General Date", "2/9/2024 3:04:05 PM"),
            ("Long Time", "3:04:05 PM"),
            ("Short Time", "15:04"),
            ("", "2/9/2024 3:04:05 PM"),
        ] {
            assert_eq!(format(&moment, pattern), expected, "{pattern}");
        }
        assert_eq!(format(&Datum::Integer(45_331), "yyyy-mm-dd"), "2024-02-09");
        let midnight = Datum::of_moment(jiff::civil::datetime(2024, 2, 9, 0, 0, 0, 0));
        assert_eq!(format(&midnight, "General Date"), "2/9/2024");
        assert_eq!(format(&midnight, "h AM/PM"), "12 AM");
    }
}
