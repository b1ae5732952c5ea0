//! Cases for literals: values of every kind, and strings that must not end the literal that contains them.

use super::{Expected, Suite};

/// Strings that end, hide or continue a statement in some engine if they are quoted incorrectly.
const HOSTILE: [&str; 29] = [
    "",
    " ",
    "it's",
    "''",
    "'",
    "\"",
    "`",
    "\\",
    "\\\\",
    "\\'",
    "'\\",
    "a\\nb",
    "\\0",
    "\\%",
    "\\u0041",
    "'; SELECT 2 --",
    "' OR '1'='1",
    "-- no comment",
    "# no comment",
    "/* no comment */",
    "$$ $1 $tag$",
    "? ?? :name ::int @name @@version %s %(name)s %%",
    "{0} {{x}} {x:String} ${x} #{x}",
    "line\nline\r\n\ttab",
    "日本語 naïve",
    "e\u{301} \u{202e}right to left\u{feff}",
    "👩‍👩‍👧 😀",
    "NULL",
    "0x41",
];

pub(super) fn cases(suite: &mut Suite<'_>) {
    let w = suite.writer;
    suite.group = "text literals";
    for text in HOSTILE {
        suite.value(format!("{text:?}"), Some(w.text_literal(text)), Expected::text(text));
    }
    let long = "x'\\".repeat(700);
    suite.value("2,100 characters", Some(w.text_literal(&long)), Expected::text(&long));

    suite.group = "literals";
    for integer in [0, -1, i64::MAX, i64::MIN + 1] {
        let literal = super::Expr::closed(integer.to_string());
        suite.value(format!("integer {integer}"), Some(literal), Expected::number(integer));
    }
    for float in [0.0, 1.5, -2.5e-10, 1e300, 1.797_693_134_862_315_7e308, 123_456_789.123] {
        let literal = super::Expr::closed(format!("{float:e}"));
        suite.value(format!("double {float:e}"), Some(literal), Expected::Float(float));
    }
    for digits in ["0.1", "-1.25", "12345678901234567890.123456789", "10000000000000000000"] {
        suite.value(format!("decimal {digits}"), Some(w.decimal_literal(digits)), Expected::number(digits));
    }
    suite.value("true", Some(w.boolean(true)), Expected::Boolean(true));
    suite.value("false", Some(w.boolean(false)), Expected::Boolean(false));
    for day in ["2024-02-29", "1970-01-01", "1969-12-31", "1900-01-01", "2199-12-31", "0001-01-01", "9999-12-31"] {
        suite.value(format!("date {day}"), Some(w.date(day)), Expected::Time(day));
    }
    for time in [
        "2024-02-29 23:59:59",
        "2024-02-29 23:59:59.123456",
        "2024-03-31 02:30:00",
        "1969-12-31 23:59:59",
        "1900-01-01 00:00:00",
        "2199-12-31 23:59:59",
    ] {
        suite.value(format!("time {time}"), Some(w.timestamp(time)), Expected::Time(time));
        suite.value(format!("instant {time}"), Some(w.timestamp_tz(time)), Expected::Time(time));
    }
}
