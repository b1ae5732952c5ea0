//! Notes about strings that represent dates or numbers.
//!
//! In: the most frequent values of a column. Out: a note, if nearly all of the strings have one form. Integers have no
//! note, because codes such as `10115` are strings on purpose. Not here: the forms, and drafts of projects, which count
//! the forms of sampled rows in the warehouse.

use std::sync::LazyLock;

use regex::RegexSet;
use terrane_compiler::types::Value;

use crate::text_forms::{MOST_PERCENT, TextForm, all};

/// The patterns of all forms, each for a whole value. They are constants, and a test compiles them.
static PATTERNS: LazyLock<RegexSet> = LazyLock::new(|| {
    RegexSet::new(all().map(|form| format!("^(?:{})$", form.pattern))).unwrap_or_else(|_| RegexSet::empty())
});

/// Returns a note about a column whose frequent values are dates or numbers.
pub(super) fn note(column: &str, values: &[(Value, u64)]) -> Option<String> {
    let texts: Vec<&str> = values.iter().filter_map(|(value, _)| text(value)).collect();
    let (form, matching) = most_frequent(&texts)?;
    let (found, all) = (matching.len(), texts.len());
    let example = matching.into_iter().find(|text| !is_integer(text))?;
    if found < 2 || (found as u64) * 100 < (all as u64) * MOST_PERCENT {
        return None;
    }
    let count = if found == all { "its most frequent values".to_owned() } else { format!("{found} of {all} of them") };
    Some(format!(
        "`{column}` is a string, and {count} are {}, such as `{example}`: convert it in the `sql` of the dimension and \
         write `type: {}`",
        form.what,
        form.ty()
    ))
}

/// Returns the form that matches the largest number of strings, with these strings. If several forms match equally
/// many, returns the first of them.
fn most_frequent<'t>(texts: &[&'t str]) -> Option<(&'static TextForm, Vec<&'t str>)> {
    let mut matching: Vec<Vec<&str>> = vec![Vec::new(); all().len()];
    for text in texts {
        for form in PATTERNS.matches(text) {
            matching[form].push(text);
        }
    }
    all().zip(matching).rev().max_by_key(|(_, matching)| matching.len())
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::Text(text) => Some(text.trim()),
        _ => None,
    }
}

fn is_integer(text: &str) -> bool {
    text.strip_prefix(['-', '+']).unwrap_or(text).bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(texts: &[&str]) -> Option<String> {
        let values: Vec<(Value, u64)> = texts.iter().map(|text| (Value::Text((*text).into()), 1)).collect();
        note("x", &values)
    }

    #[test]
    fn every_pattern_is_valid() {
        assert_eq!(PATTERNS.len(), all().len());
    }

    #[test]
    fn forms_are_recognized() {
        for (text, form) in [
            ("2024-02-29", Some("dates")),
            ("2024-02-30", None),
            ("31.01.2024", Some("dates with points")),
            ("12/31/2024", Some("dates with the month first")),
            ("2024-01-31 10:00:00", Some("timestamps")),
            ("2024-01-31T10:00:00Z", Some("timestamps with a time zone")),
            ("2024-01-31 noon", None),
            ("-12.50", Some("numbers")),
            ("007", None),
            ("1,234", Some("numbers with commas between thousands")),
            ("1.234,50", Some("numbers with points between thousands and a decimal comma")),
            ("12,5", Some("numbers with a decimal comma")),
            ("12.5 %", Some("percentages")),
            ("€ 1,234.50", Some("amounts with a currency")),
            ("1.2.3", None),
            ("v1.2", None),
            ("", None),
        ] {
            let form_of =
                most_frequent(&[text]).filter(|(_, matching)| !matching.is_empty()).map(|(form, _)| form.what);
            assert_eq!(form_of, form, "{text}");
        }
    }

    #[test]
    fn columns_of_dates_and_decimals_have_a_note() {
        let dates = found(&["2024-01-01", "2024-01-02"]).unwrap_or_default();
        assert!(dates.starts_with("`x` is a string, and its most frequent values are dates, such as `2024-01-01`"));
        assert!(dates.ends_with("`type: time`"), "{dates}");
        let mixed = ["1.5", "2", "3", "4", "5", "6", "7", "8", "9", "n/a"];
        let decimals = found(&mixed).unwrap_or_default();
        assert!(decimals.contains("9 of 10 of them are numbers, such as `1.5`"), "{decimals}");
    }

    #[test]
    fn codes_and_words_have_no_note() {
        assert_eq!(found(&["10115", "20095"]), None);
        assert_eq!(found(&["1.5", "2.5", "north"]), None);
        assert_eq!(found(&["2024-01-01"]), None);
        assert_eq!(note("x", &[(Value::Float(1.5), 3), (Value::Float(2.5), 2)]), None);
    }
}
