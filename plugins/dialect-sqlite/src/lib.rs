//! SQLite's SQL as a list of exceptions to the standard.
//!
//! Out: the profile that the host uses to print SQL. Dates and times are strings (`2024-01-31`, `2024-01-31 15:00:00`,
//! with an optional fraction), decimals are doubles, and SQLite has no time zones, so the host adds the offsets.
//! Sources: sqlite.org/lang.html, and the behavior of version 3.40.

use terrane_sdk::dialect::{
    CaseFolding, Classified, Dialect, ErrorClass, Feature, LogicalType, NullOrder, Op, PlaceholderStyle, Profile,
    ProfileBuilder, Sign, TimeTemplate, WarehouseError, base_type, classify,
};
use terrane_sdk::{CallContext, PluginError, PluginInfo};

/// The dialect component.
pub struct Sqlite;

const OPS: &[(Op, &str)] = &[
    (Op::NullSafeEq, "{0} IS {1}"),
    (Op::Contains, "instr({0}, {1}) > 0"),
    (Op::StartsWith, "substr({0}, 1, length({1})) = {1}"),
    (Op::EndsWith, "substr({0}, length({0}) - length({1}) + 1) = {1}"),
    (Op::Div, "CAST({0} AS REAL) / NULLIF({1}, 0)"),
    (Op::Modulo, "{0} % {1}"),
    (Op::Collate, "{0} COLLATE BINARY"),
    (Op::Avg, "avg({0})"),
];

/// The names of types in a cast, which are SQLite's affinities.
const TYPES: &[(LogicalType, &str)] = &[
    (LogicalType::Text, "TEXT"),
    (LogicalType::Integer, "INTEGER"),
    (LogicalType::Decimal, "REAL"),
    (LogicalType::Float, "REAL"),
    (LogicalType::Boolean, "INTEGER"),
    (LogicalType::Date, "TEXT"),
    (LogicalType::Timestamp, "TEXT"),
    (LogicalType::TimestampTz, "TEXT"),
    (LogicalType::Binary, "BLOB"),
];

/// Converts a time in a string to the form of literals: `2024-01-31`, `2024-01-31T00:00:00Z` and `2024-01-31
/// 00:00:00.000` are the same time. A number stays a number, and a string that is not a time becomes null.
const TEXT_TIME: &str = "CASE typeof({0}) WHEN 'text' THEN strftime('%Y-%m-%d %H:%M:%S', substr({0}, 1, 19)) || \
    rtrim(rtrim(rtrim(substr({0}, 20, 7), 'Z'), '0'), '.') ELSE {0} END";

/// Interpolates between the two values whose positions in the order are next to a share: a position is the rank less
/// one, and the weight of a value falls from 1 at the position of the share to 0 at the positions next to it.
const PERCENTILE_OF_RANKS: &str =
    "sum(CASE WHEN abs({1} - 1 - {3} * ({2} - 1)) < 1 THEN {0} * (1 - abs({1} - 1 - {3} * ({2} - 1))) END)";

/// All words of sqlite.org/lang_keywords.html. SQLite accepts some of them as names in some places only.
const RESERVED: &str = include_str!("reserved.txt");

/// Returns the profile. Native tests call this function as well.
pub fn profile() -> Profile {
    ProfileBuilder::ansi("sqlite")
        .quoting(|quoting| {
            quoting.folding = CaseFolding::Keep;
            quoting.max_ident_bytes = 65_535;
        })
        .reserved(RESERVED)
        .placeholders(PlaceholderStyle::Question, 32_766)
        .null_order(NullOrder::NullsLow)
        .without_features(Feature::GROUPING_SETS | Feature::INTERVAL_ARITHMETIC)
        .ops(OPS)
        .function("percentile_of_ranks", 4, PERCENTILE_OF_RANKS)
        // Integers have 64 bits. A cast would truncate the fractions that a column of integers may contain.
        .function("wide_integer", 1, "{0}")
        .function("mask_partial", 2, "substr({0}, 1, 1) || {1}")
        .function("text_time", 1, TEXT_TIME)
        // Without the keyword, SQLite 3.51 computes the steps of an axis again for each row that is joined with them.
        .function("materialized", 1, "MATERIALIZED {0}")
        // Converts a date to a timestamp by adding a time of day, because dates and timestamps are compared as strings.
        .op_for(Op::Cast, LogicalType::Date, "CAST({0} || substr(' 00:00:00', length({0}) - 9) AS {1})")
        .op_with(Op::Concat, 2, "{0} || {1}")
        .op_with(Op::Concat, 3, "{0} || {1} || {2}")
        .without_op(Op::ToTimeZone)
        .without_op(Op::Stddev)
        .without_op(Op::Percentile)
        .times(time)
        .type_names(TYPES)
        // Removes trailing zeros of the fraction, because columns store times without them. Otherwise `15:00:00` would
        // sort before the literal `15:00:00.000`.
        .literals("{0}", "rtrim(rtrim({0}, '0'), '.')", "rtrim(rtrim(substr({0}, 1, 26), '0'), '.')")
        .explain("EXPLAIN QUERY PLAN {0}")
        .build()
}

/// Returns the template for the start of a bucket of `hole`. The template removes the fraction first, because SQLite
/// would round `59.9999` up to the next minute. The start of a bucket of a day or more has a time of day if the value
/// has one, because starts, values and bound values are compared as strings.
fn trunc(unit: &str, hole: &str) -> String {
    let time = format!("substr({hole}, 1, 19)");
    let midnight = format!("|| substr(' 00:00:00', 1, length({hole}) - 10)");
    match unit {
        "second" => format!("strftime('%Y-%m-%d %H:%M:%S', {time})"),
        "minute" => format!("strftime('%Y-%m-%d %H:%M:00', {time})"),
        "hour" => format!("strftime('%Y-%m-%d %H:00:00', {time})"),
        "day" => format!("date({time}) {midnight}"),
        "week" => format!("date({time}, '-6 days', 'weekday 1') {midnight}"),
        "quarter" => {
            let months = format!("'-' || ((strftime('%m', {time}) - 1) % 3) || ' months'");
            format!("date({time}, 'start of month', {months}) {midnight}")
        }
        _ => format!("date({time}, 'start of {unit}') {midnight}"),
    }
}

/// Returns a template that adds months to a time. The day is at most the last day of the resulting month. In SQLite,
/// one month after January 31 is a day in March.
fn add_months(months: &str) -> String {
    let start = "substr({0}, 1, 19), 'start of month'";
    let day = "(strftime('%d', substr({0}, 1, 19)) - 1) || ' days'";
    format!(
        "min(date({start}, ({months}) || ' months', {day}), \
         date({start}, ({months} + 1) || ' months', '-1 days')) || substr({{0}}, 11)"
    )
}

fn time(unit: &str, time: &mut TimeTemplate) {
    time.trunc = trunc(unit, "{0}");
    // Subtracts the part of the local time below the unit: `:SS` for a minute, `:MM:SS` for an hour.
    time.trunc_instant = match unit {
        "minute" => Some("datetime(substr({0}, 1, 19), '-00:00' || substr({1}, 17, 3))".to_owned()),
        "hour" => Some("datetime(substr({0}, 1, 19), '-00' || substr({1}, 14, 6))".to_owned()),
        _ => None,
    };
    time.add = match unit {
        "second" | "minute" | "hour" => {
            format!("datetime(substr({{0}}, 1, 19), ({{1}}) || ' {unit}s') || substr({{0}}, 20)")
        }
        "day" => "date({0}, ({1}) || ' days') || substr({0}, 11)".to_owned(),
        "week" => "date({0}, ({1} * 7) || ' days') || substr({0}, 11)".to_owned(),
        "month" => add_months("{1}"),
        "quarter" => add_months("{1} * 3"),
        _ => add_months("{1} * 12"),
    };
    let number = |format: &str, hole: &str| format!("strftime('{format}', {})", trunc("second", hole));
    let (from, to) = (trunc(unit, "{0}"), trunc(unit, "{1}"));
    let seconds = format!("(strftime('%s', {to}) - strftime('%s', {from}))");
    let years = format!("({} - {})", number("%Y", "{1}"), number("%Y", "{0}"));
    let (first, last) = (number("%m", "{0}"), number("%m", "{1}"));
    time.diff = match unit {
        "second" => seconds,
        "minute" => format!("{seconds} / 60"),
        "hour" => format!("{seconds} / 3600"),
        "day" => format!("{seconds} / 86400"),
        "week" => format!("{seconds} / 604800"),
        "month" => format!("{years} * 12 + {last} - {first}"),
        "quarter" => format!("{years} * 4 + ({last} + 2) / 3 - ({first} + 2) / 3"),
        _ => years,
    };
    let part = |format: &str| format!("CAST({} AS INTEGER)", number(format, "{0}"));
    time.part = match unit {
        "second" => part("%S"),
        "minute" => part("%M"),
        "hour" => part("%H"),
        "day" => part("%d"),
        // The Thursday of an ISO week determines the number of the week.
        "week" => "(strftime('%j', date(substr({0}, 1, 19), '-3 days', 'weekday 4')) - 1) / 7 + 1".to_owned(),
        "month" => part("%m"),
        "quarter" => format!("({} + 2) / 3", number("%m", "{0}")),
        _ => part("%Y"),
    };
}

/// Parts of SQLite's messages. SQLite's codes are not used, because each of the few codes covers many errors.
const ERRORS: &[(Sign, ErrorClass)] = &[
    (Sign::Message("syntax error"), ErrorClass::Syntax),
    (Sign::Message("incomplete input"), ErrorClass::Syntax),
    (Sign::Message("no such table"), ErrorClass::MissingObject),
    (Sign::Message("no such column"), ErrorClass::MissingObject),
    (Sign::Message("no such function"), ErrorClass::MissingObject),
    (Sign::Message("not authorized"), ErrorClass::Permission),
    (Sign::Message("readonly database"), ErrorClass::Permission),
    (Sign::Message("interrupted"), ErrorClass::Cancelled),
    (Sign::Message("out of memory"), ErrorClass::Quota),
    (Sign::Message("too many"), ErrorClass::Quota),
    (Sign::Message("is locked"), ErrorClass::Conflict),
    (Sign::Message("integer overflow"), ErrorClass::Data),
    (Sign::Message("malformed"), ErrorClass::Connection),
    (Sign::Message("not a database"), ErrorClass::Connection),
    (Sign::Message("unable to open"), ErrorClass::Connection),
    (Sign::Message("disk i/o"), ErrorClass::Connection),
];

impl Dialect for Sqlite {
    const INFO: PluginInfo = PluginInfo::new("dialect-sqlite", env!("CARGO_PKG_VERSION"), "SQLite");

    fn profile(_: &CallContext) -> Result<Profile, PluginError> {
        Ok(profile())
    }

    fn classify_error(error: &WarehouseError) -> Classified {
        classify(error, ERRORS)
    }

    fn map_type(native: &str) -> LogicalType {
        match base_type(native).as_str() {
            "DATE" => LogicalType::Date,
            "DATETIME" | "TIMESTAMP" => LogicalType::Timestamp,
            "BOOLEAN" | "BOOL" => LogicalType::Boolean,
            "NUMERIC" | "DECIMAL" => LogicalType::Float,
            // The affinities, in the order of sqlite.org/datatype3.html.
            name if name.contains("INT") => LogicalType::Integer,
            name if name.contains("CHAR") || name.contains("CLOB") || name.contains("TEXT") => LogicalType::Text,
            name if name.contains("BLOB") => LogicalType::Binary,
            name if name.contains("REAL") || name.contains("FLOA") || name.contains("DOUB") => LogicalType::Float,
            _ => LogicalType::Unknown,
        }
    }
}

terrane_sdk::export_dialect!(Sqlite);

#[cfg(test)]
mod tests;
