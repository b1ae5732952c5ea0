//! Forms of numbers: separators, signs, percentages and currencies.
//!
//! Numbers with leading zeros have no form, because they are codes.

use super::TextForm;

/// Digits without separators.
macro_rules! plain {
    () => {
        "(0|[1-9][0-9]{0,14})"
    };
}

/// Digits with or without a separator between thousands. `$separators` is a class of characters.
macro_rules! grouped {
    ($separators:literal) => {
        concat!("([1-9][0-9]{0,2}(", $separators, "[0-9]{3})+|0|[1-9][0-9]{0,14})")
    };
}

/// An optional fraction.
macro_rules! fraction {
    ($mark:literal) => {
        concat!("(", $mark, "[0-9]{1,9})?")
    };
}

/// The sign or the code of a currency. Other codes of three letters, such as those of airlines, are no currency.
macro_rules! currency {
    () => {
        "([$€£¥]|AED|AUD|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|HKD|HUF|IDR|ILS|INR|JPY|KRW|MXN|MYR|NOK|NZD|PHP|PLN|RON|SAR|SEK\
         |SGD|THB|TRY|USD|ZAR)"
    };
}

/// An amount with a currency before or behind it. A sign stands before the currency or before the number.
macro_rules! amount {
    ($separators:literal, $mark:literal) => {
        concat!(
            "[-+]?",
            currency!(),
            "[ \u{a0}\u{202f}]?[-+]?",
            grouped!($separators),
            fraction!($mark),
            "|[-+]?",
            grouped!($separators),
            fraction!($mark),
            "[ \u{a0}\u{202f}]?",
            currency!()
        )
    };
}

/// The conversion of a number with a decimal point. All other characters are dropped.
const POINT: &str = "CAST(regexp_replace($column, '[^0-9.-]', '', 'g') AS DECIMAL(24, 9))";
/// The conversion of a number with a decimal comma.
const COMMA: &str = "CAST(replace(regexp_replace($column, '[^0-9,-]', '', 'g'), ',', '.') AS DECIMAL(24, 9))";
/// The condition for a number with a decimal comma.
const IF_COMMA: &str = "the comma is the decimal mark";
const ONE_CURRENCY: &str = "the currency is dropped, so check that all rows have the same one";

const AMOUNTS_WITH_COMMA: &str = "amounts with a currency and a decimal comma";
const WITH_COMMA: &str = "numbers with a decimal comma";

const fn number(what: &'static str, pattern: &'static str, sql: &'static str) -> TextForm {
    TextForm::new(what, true, pattern, sql)
}

pub(super) const NUMBERS: [TextForm; 13] = [
    number("numbers", concat!("[-+]?", plain!(), fraction!("[.]")), "CAST($column AS DECIMAL(24, 9))"),
    number(
        "numbers with commas between thousands",
        concat!("[-+]?", grouped!(","), fraction!("[.]")),
        "CAST(replace($column, ',', '') AS DECIMAL(24, 9))",
    )
    .or(WITH_COMMA, IF_COMMA),
    number(WITH_COMMA, concat!("[-+]?", plain!(), ",[0-9]{1,9}"), "CAST(replace($column, ',', '.') AS DECIMAL(24, 9))"),
    number(
        "numbers with points between thousands and a decimal comma",
        "[-+]?[1-9][0-9]{0,2}([.][0-9]{3})+,[0-9]{1,9}|[-+]?(0|[1-9][0-9]{0,2}),[0-9]{1,9}",
        "CAST(replace(replace($column, '.', ''), ',', '.') AS DECIMAL(24, 9))",
    ),
    number(
        "numbers with spaces between thousands",
        concat!("[-+]?", grouped!("[ \u{a0}\u{202f}]"), fraction!("[.,]")),
        "CAST(replace(regexp_replace($column, '[^0-9,.-]', '', 'g'), ',', '.') AS DECIMAL(24, 9))",
    ),
    number("numbers with apostrophes between thousands", concat!("[-+]?", grouped!("['’]"), fraction!("[.]")), POINT),
    number(
        "numbers with negative ones in parentheses",
        concat!("[-+]?", grouped!(","), fraction!("[.]"), "|[(]", grouped!(","), fraction!("[.]"), "[)]"),
        "CAST(replace(regexp_replace($column, '[^0-9.(-]', '', 'g'), '(', '-') AS DECIMAL(24, 9))",
    ),
    number(
        "numbers with the sign behind",
        concat!(grouped!(","), fraction!("[.]"), "[-+]?"),
        "CAST(regexp_replace(regexp_replace($column, '[^0-9.-]', '', 'g'), '^(.*)-$', '-\\1') AS DECIMAL(24, 9))",
    ),
    number(
        "numbers with a decimal comma and the sign behind",
        concat!(grouped!("[.]"), fraction!(","), "[-+]?"),
        "CAST(replace(regexp_replace(regexp_replace($column, '[^0-9,-]', '', 'g'), '^(.*)-$', '-\\1'), ',', '.') \
         AS DECIMAL(24, 9))",
    ),
    number(
        "percentages",
        concat!("[-+]?", plain!(), fraction!("[.]"), " ?[%]"),
        "CAST(replace($column, '%', '') AS DECIMAL(24, 9)) / 100",
    ),
    number(
        "percentages with a decimal comma",
        concat!("[-+]?", plain!(), fraction!(","), "[ \u{a0}\u{202f}]?[%]"),
        "CAST(replace(regexp_replace($column, '[^0-9,-]', '', 'g'), ',', '.') AS DECIMAL(24, 9)) / 100",
    ),
    number("amounts with a currency", amount!("[,'’ \u{a0}\u{202f}]", "[.]"), POINT)
        .or(AMOUNTS_WITH_COMMA, IF_COMMA)
        .caveat(ONE_CURRENCY),
    number(AMOUNTS_WITH_COMMA, amount!("[.'’ \u{a0}\u{202f}]", ","), COMMA).caveat(ONE_CURRENCY),
];
