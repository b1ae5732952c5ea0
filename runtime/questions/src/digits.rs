//! Reads numbers and dates in digits as a language writes them: `1.500,5`, `03.05.2024`.
//!
//! In: a word that begins with a digit. Out: the number with a point before its fraction, or the day. The signs and the
//! order of a date are data of the language.

use jiff::civil::Date;

use crate::language::Language;

/// The number of digits between two separators of thousands.
const GROUP: usize = 3;
/// The century of a year with two digits.
const CENTURY: i16 = 2000;

/// Returns whether the comma at a place belongs to a number.
pub(crate) fn has_comma(text: &[char], at: usize, language: &Language) -> bool {
    let is_digit = |at: usize| text.get(at).is_some_and(char::is_ascii_digit);
    let end = (at + 1..).find(|at| !is_digit(*at)).unwrap_or(at + 1);
    if at == 0 || !is_digit(at - 1) || !is_digit(at + 1) {
        return false;
    }
    if language.thousands_sign() == ',' {
        return end - at - 1 == GROUP;
    }
    // `1,2,3` is a list.
    let is_comma = |at: usize| text.get(at) == Some(&',');
    let start = (0..at).rev().find(|at| !is_digit(*at) && text[*at] != '.');
    let is_list = (is_comma(end) && is_digit(end + 1)) || start.is_some_and(is_comma);
    language.decimal_sign() == ',' && !is_list
}

/// Returns a word with a number at its beginning as `1500.5`: without separators of thousands, and with a point before the
/// fraction. Other words are unchanged.
pub(crate) fn plain(word: &str, language: &Language) -> String {
    let is_sign = |c: char| c == language.decimal_sign() || c == language.thousands_sign();
    let length = word.find(|c: char| !c.is_ascii_digit() && !is_sign(c)).unwrap_or(word.len());
    let (number, rest) = word.split_at(length);
    let (whole, fraction) = number.split_once(language.decimal_sign()).unwrap_or((number, ""));
    let mut groups = whole.split(language.thousands_sign());
    let first = groups.next().unwrap_or_default();
    let is_grouped = (1..=GROUP).contains(&first.len()) && groups.all(|group| group.len() == GROUP);
    let is_number = fraction.chars().all(|c| c.is_ascii_digit()) && word.starts_with(|c: char| c.is_ascii_digit());
    if !is_number || (whole.contains(language.thousands_sign()) && !is_grouped) {
        return word.to_owned();
    }
    let whole = whole.replace(language.thousands_sign(), "");
    if fraction.is_empty() { format!("{whole}{rest}") } else { format!("{whole}.{fraction}{rest}") }
}

/// Returns whether a word is a number with letters behind it, such as `1.5h`.
pub(crate) fn has_suffix(word: &str) -> bool {
    let length = word.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(word.len());
    let (number, rest) = word.split_at(length);
    let is_number = number.starts_with(|c: char| c.is_ascii_digit()) && number.ends_with(|c: char| c.is_ascii_digit());
    is_number && number.parse::<f64>().is_ok() && !rest.is_empty() && rest.chars().all(char::is_alphabetic)
}

/// A day in digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Day {
    Date(Date),
    /// A month and a day without a year.
    OfMonth(i8, i8),
}

/// Parses a day such as `03.05.2024` or `3.5.`. Returns `None` if the language does not write dates with points.
pub(crate) fn day(word: &str, language: &Language) -> Option<Day> {
    if !language.has_dates_with_points() {
        return None;
    }
    let parts: Vec<&str> = word.split('.').collect();
    let [day, month, year] = match parts[..] {
        [day, month, year] | [day, month, year, ""] => [day, month, year],
        _ => return None,
    };
    let number = |part: &str| part.parse::<i8>().ok().filter(|_| (1..=2).contains(&part.len()));
    let (day, month) = (number(day)?, number(month)?);
    match year.len() {
        // Every day of a leap year is valid.
        0 => Date::new(CENTURY, month, day).ok().map(|_| Day::OfMonth(month, day)),
        2 => Some(Day::Date(Date::new(CENTURY + year.parse::<i16>().ok()?, month, day).ok()?)),
        4 => Some(Day::Date(Date::new(year.parse().ok()?, month, day).ok()?)),
        _ => None,
    }
}
