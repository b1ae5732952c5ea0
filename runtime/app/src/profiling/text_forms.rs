//! Strings that represent dates or decimal numbers.
//!
//! In: the most frequent values of a column. Out: a note, if nearly all of the strings have one form. Integers are no
//! form, because codes such as `10115` are strings on purpose. Not here: drafts of projects, which count the forms of
//! sampled rows in the warehouse.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use terrane_compiler::types::Value;

/// The percentage of the values that must have one form.
const MOST_PERCENT: usize = 90;

/// A form of strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextForm {
    Date,
    Timestamp,
    /// A number with a decimal point, or an integer in a column with such numbers.
    Decimal,
    /// A number with commas, points or spaces between thousands, or with a decimal comma.
    Separated,
    Percentage,
    Amount,
}

impl TextForm {
    const ALL: [TextForm; 6] = [
        TextForm::Date,
        TextForm::Timestamp,
        TextForm::Decimal,
        TextForm::Separated,
        TextForm::Percentage,
        TextForm::Amount,
    ];

    fn of(text: &str) -> Option<TextForm> {
        let text = text.trim();
        if is_date(text) {
            return Some(TextForm::Date);
        }
        if text.len() > 10 && text.is_char_boundary(10) && is_date(&text[..10]) {
            let is_time = text.parse::<DateTime>().is_ok() || text.parse::<Timestamp>().is_ok();
            return is_time.then_some(TextForm::Timestamp);
        }
        let number = text.strip_prefix(['-', '+']).unwrap_or(text);
        if let Some(amount) = number.strip_prefix(['$', '€', '£']) {
            let amount = amount.trim_start();
            return (is_plain(amount) || is_separated(amount)).then_some(TextForm::Amount);
        }
        if let Some(share) = number.strip_suffix('%') {
            return is_plain(share.trim_end()).then_some(TextForm::Percentage);
        }
        match number {
            number if is_plain(number) => Some(TextForm::Decimal),
            number if is_separated(number) => Some(TextForm::Separated),
            _ => None,
        }
    }

    fn plural(self) -> &'static str {
        match self {
            TextForm::Date => "dates",
            TextForm::Timestamp => "timestamps",
            TextForm::Decimal => "decimal numbers",
            TextForm::Separated => "numbers with separators",
            TextForm::Percentage => "percentages",
            TextForm::Amount => "amounts with the sign of a currency",
        }
    }

    /// Returns the type of a dimension of such values.
    fn ty(self) -> &'static str {
        if matches!(self, TextForm::Date | TextForm::Timestamp) { "time" } else { "number" }
    }
}

/// Returns a note about a column whose frequent values are dates or decimal numbers.
pub(super) fn note(column: &str, values: &[(Value, u64)]) -> Option<String> {
    let texts = || {
        values.iter().filter_map(|(value, _)| match value {
            Value::Text(text) => Some(&**text),
            _ => None,
        })
    };
    let of = |form| texts().filter(move |text| TextForm::of(text) == Some(form));
    let form = TextForm::ALL.into_iter().max_by_key(|form| of(*form).count())?;
    let (found, all) = (of(form).count(), texts().count());
    // Numbers without a fraction are codes.
    let has_fraction = form != TextForm::Decimal || of(form).any(|text| text.contains('.'));
    let example = of(form).find(|text| form != TextForm::Decimal || text.contains('.'))?;
    if found < 2 || found * 100 < all * MOST_PERCENT || !has_fraction {
        return None;
    }
    let count = if found == all { "its most frequent values".to_owned() } else { format!("{found} of {all} of them") };
    Some(format!(
        "`{column}` is a string, and {count} are {}, such as `{example}`: convert it in the `sql` of the dimension and \
         write `type: {}`",
        form.plural(),
        form.ty()
    ))
}

/// Returns true for `2024-01-31`, `31.01.2024` and dates with slashes in either order.
fn is_date(text: &str) -> bool {
    let parts = |separator: char| -> Option<[&str; 3]> {
        let parts: Vec<&str> = text.split(separator).collect();
        let parts: [&str; 3] = parts.try_into().ok()?;
        parts.iter().all(|part| part.bytes().all(|b| b.is_ascii_digit())).then_some(parts)
    };
    let is_day = |year: &str, month: &str, day: &str| {
        (year.len(), month.len(), day.len()) == (4, 2, 2)
            && matches!((year.parse(), month.parse(), day.parse()), (Ok(year), Ok(month), Ok(day))
                if Date::new(year, month, day).is_ok())
    };
    if let Some([year, month, day]) = parts('-') {
        return is_day(year, month, day);
    }
    if let Some([day, month, year]) = parts('.') {
        return is_day(year, month, day);
    }
    parts('/').is_some_and(|[one, other, year]| is_day(year, other, one) || is_day(year, one, other))
}

/// Returns true for digits with at most one point between them. Digits with a leading zero are a code.
fn is_plain(text: &str) -> bool {
    let (before, after) = text.split_once('.').map_or((text, None), |(before, after)| (before, Some(after)));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    is_digits(before) && (before == "0" || !before.starts_with('0')) && after.is_none_or(is_digits)
}

/// Returns true for `1,234.50`, `1.234,50`, `1 234,50` and `12,5`.
fn is_separated(text: &str) -> bool {
    let grouped = |separator: char, decimal: char| {
        let (whole, fraction) = text.split_once(decimal).map_or((text, None), |(whole, rest)| (whole, Some(rest)));
        let mut groups = whole.split(separator);
        let first = groups.next().unwrap_or_default();
        let rest: Vec<&str> = groups.collect();
        let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let has_mark = !rest.is_empty() || (decimal == ',' && fraction.is_some());
        has_mark
            && is_digits(first)
            && (rest.is_empty() || first.len() <= 3)
            && (first == "0" || !first.starts_with('0'))
            && rest.iter().all(|group| group.len() == 3 && is_digits(group))
            && fraction.is_none_or(is_digits)
    };
    grouped(',', '.') || grouped('.', ',') || grouped(' ', ',')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(texts: &[&str]) -> Option<String> {
        let values: Vec<(Value, u64)> = texts.iter().map(|text| (Value::Text((*text).into()), 1)).collect();
        note("x", &values)
    }

    #[test]
    fn forms_are_recognized() {
        for (text, form) in [
            ("2024-02-29", Some(TextForm::Date)),
            ("2024-02-30", None),
            ("31.01.2024", Some(TextForm::Date)),
            ("12/31/2024", Some(TextForm::Date)),
            ("2024-01-31 10:00:00", Some(TextForm::Timestamp)),
            ("2024-01-31T10:00:00Z", Some(TextForm::Timestamp)),
            ("2024-01-31 noon", None),
            ("-12.50", Some(TextForm::Decimal)),
            ("007", None),
            ("1,234", Some(TextForm::Separated)),
            ("1.234,50", Some(TextForm::Separated)),
            ("12,5", Some(TextForm::Separated)),
            ("12.5 %", Some(TextForm::Percentage)),
            ("€ 1,234.50", Some(TextForm::Amount)),
            ("1.2.3", None),
            ("v1.2", None),
            ("", None),
        ] {
            assert_eq!(TextForm::of(text), form, "{text}");
        }
    }

    #[test]
    fn columns_of_dates_and_decimals_have_a_note() {
        let dates = found(&["2024-01-01", "2024-01-02"]).unwrap_or_default();
        assert!(dates.starts_with("`x` is a string, and its most frequent values are dates, such as `2024-01-01`"));
        assert!(dates.ends_with("`type: time`"), "{dates}");
        let mixed = ["1.5", "2", "3", "4", "5", "6", "7", "8", "9", "n/a"];
        let decimals = found(&mixed).unwrap_or_default();
        assert!(decimals.contains("9 of 10 of them are decimal numbers, such as `1.5`"), "{decimals}");
    }

    #[test]
    fn codes_and_words_have_no_note() {
        assert_eq!(found(&["10115", "20095"]), None);
        assert_eq!(found(&["1.5", "2.5", "north"]), None);
        assert_eq!(found(&["2024-01-01"]), None);
        assert_eq!(note("x", &[(Value::Float(1.5), 3), (Value::Float(2.5), 2)]), None);
    }
}
