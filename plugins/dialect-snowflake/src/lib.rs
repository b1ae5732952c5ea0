//! Snowflake's SQL as a list of exceptions to the standard.
//!
//! Out: the profile that the host uses to print SQL. Source: Snowflake's SQL reference. The SQL does not depend on the
//! session's WEEK_START.

use terrane_sdk::dialect::{
    Classified, Dialect, ErrorClass, Feature, LogicalType, Op, PlaceholderStyle, Profile, ProfileBuilder, Sign,
    TimeTemplate, WarehouseError, base_type, classify,
};
use terrane_sdk::{CallContext, PluginError, PluginInfo};

/// The dialect component.
pub struct Snowflake;

/// The templates of operators. Strings are compared by code point, unless a column has a collation. Sums of integers
/// have 38 digits. `/` returns six digits after the decimal point, so division is computed in doubles.
const OPS: &[(Op, &str)] = &[
    (Op::Contains, "CONTAINS({0}, {1})"),
    (Op::StartsWith, "STARTSWITH({0}, {1})"),
    (Op::EndsWith, "ENDSWITH({0}, {1})"),
    (Op::Div, "CAST({0} AS DOUBLE) / NULLIF({1}, 0)"),
    (Op::Modulo, "{0} % {1}"),
    (Op::Concat, "CONCAT({*})"),
    (Op::Avg, "avg(CAST({0} AS DOUBLE))"),
    (Op::CurrentTimestamp, "CURRENT_TIMESTAMP()"),
];

const TYPES: &[(LogicalType, &str)] = &[
    (LogicalType::Integer, "NUMBER(38, 0)"),
    (LogicalType::Decimal, "NUMBER(38, 9)"),
    (LogicalType::Float, "DOUBLE"),
    (LogicalType::Timestamp, "TIMESTAMP_NTZ"),
    (LogicalType::TimestampTz, "TIMESTAMP_TZ"),
    (LogicalType::Geo, "GEOGRAPHY"),
    (LogicalType::Binary, "BINARY"),
];

/// "Reserved & limited keywords" of the reference, and words that parsers of this SQL treat as keywords. Quoting more
/// words than necessary is harmless.
const RESERVED: &str = "\
    account all alter and anti any as asc asof at authorization between binary by case cast check collation column \
    concurrently connect connection constraint create cross current current_date current_time current_timestamp \
    current_user database delete desc describe distinct drop else end exists false fetch following for freeze from \
    full glob grant group gscluster having ilike in increment inner insert intersect into is isnull issue join \
    lateral left like limit localtime localtimestamp match_condition minus natural not notnull null of offset on or \
    order organization outer overlaps pivot qualify regexp returning revoke right rlike row rows sample schema select \
    semi set show similar some start summarize table tablesample then to top trigger true try_cast union unique \
    unpivot update using values verbose view when whenever where window with xor";

/// Returns the profile. Native tests call this function as well.
pub fn profile() -> Profile {
    ProfileBuilder::ansi("snowflake")
        .quoting(|quoting| {
            quoting.string_escape_backslash = true;
            quoting.max_ident_bytes = 255;
        })
        .reserved(RESERVED)
        .placeholders(PlaceholderStyle::Question, 16_384)
        .without_features(Feature::FILTER_CLAUSE)
        .with_features(Feature::ILIKE | Feature::LATERAL | Feature::QUALIFY | Feature::EXPLAIN_JSON)
        .ops(OPS)
        .function("mask_hash", 1, "SHA2({0}, 256)")
        .function("sample_order", 1, "HASH({0})")
        .function("mask_partial", 2, "CONCAT(SUBSTR({0}, 1, 1), {1})")
        .op_for(Op::ToTimeZone, LogicalType::TimestampTz, "CAST(CONVERT_TIMEZONE({1}, {0}) AS TIMESTAMP_NTZ)")
        .op_for(Op::ToTimeZone, LogicalType::Timestamp, "CONVERT_TIMEZONE('UTC', {1}, {0})")
        .times(time)
        .type_names(TYPES)
        .literals("DATE {0}", "CAST({0} AS TIMESTAMP_NTZ)", "CAST({0} AS TIMESTAMP_TZ)")
        .explain("EXPLAIN USING JSON {0}")
        .build()
}

fn time(unit: &str, time: &mut TimeTemplate) {
    let monday = |hole: &str| format!("DATEADD(day, 1 - DAYOFWEEKISO({hole}), DATE_TRUNC('day', {hole}))");
    time.trunc = if unit == "week" { monday("{0}") } else { format!("DATE_TRUNC('{unit}', {{0}})") };
    // Times cannot be subtracted with `-`.
    if let Some(instant) = &mut time.trunc_instant {
        let seconds = match unit {
            "second" => "0 * SECOND({1})",
            "minute" => "0 - SECOND({1})",
            _ => "0 - MINUTE({1}) * 60 - SECOND({1})",
        };
        *instant = format!("DATEADD(second, {seconds}, DATE_TRUNC('second', {{0}}))");
    }
    time.add = format!("DATEADD({unit}, {{1}}, {{0}})");
    time.diff = match unit {
        "week" => format!("CAST(DATEDIFF(day, {}, {}) / 7 AS NUMBER(38, 0))", monday("{0}"), monday("{1}")),
        _ => format!("DATEDIFF({unit}, {{0}}, {{1}})"),
    };
    time.part = match unit {
        "week" => "WEEKISO({0})".to_owned(),
        _ => format!("{}({{0}})", unit.to_uppercase()),
    };
}

/// The error numbers of Snowflake, and parts of messages for errors without a number.
const ERRORS: &[(Sign, ErrorClass)] = &[
    (Sign::Code("001003"), ErrorClass::Syntax),
    (Sign::Message("syntax error"), ErrorClass::Syntax),
    (Sign::Code("003001"), ErrorClass::Permission),
    (Sign::Message("insufficient privileges"), ErrorClass::Permission),
    // Snowflake does not say whether the object is missing or the role lacks access, so that names are not revealed.
    (Sign::Message("does not exist or not authorized"), ErrorClass::MissingObject),
    (Sign::Code("002003"), ErrorClass::MissingObject),
    (Sign::Code("000904"), ErrorClass::MissingObject),
    (Sign::Code("000606"), ErrorClass::Connection),
    (Sign::Code("000630"), ErrorClass::Timeout),
    (Sign::Message("statement timeout"), ErrorClass::Timeout),
    (Sign::Code("000604"), ErrorClass::Cancelled),
    (Sign::Message("canceled"), ErrorClass::Cancelled),
    (Sign::Message("resource monitor"), ErrorClass::Quota),
    (Sign::Code("000625"), ErrorClass::Conflict),
    (Sign::Code("25000"), ErrorClass::Conflict),
    (Sign::Code("100"), ErrorClass::Data),
    (Sign::Code("22"), ErrorClass::Data),
];

impl Dialect for Snowflake {
    const INFO: PluginInfo = PluginInfo::new("dialect-snowflake", env!("CARGO_PKG_VERSION"), "Snowflake");

    fn profile(_: &CallContext) -> Result<Profile, PluginError> {
        Ok(profile())
    }

    fn classify_error(error: &WarehouseError) -> Classified {
        classify(error, ERRORS)
    }

    fn map_type(native: &str) -> LogicalType {
        match base_type(native).as_str() {
            "VARCHAR" | "TEXT" | "STRING" | "CHAR" => LogicalType::Text,
            // `NUMBER(38,0)` is an integer, `NUMBER(18,2)` a decimal.
            "NUMBER" | "FIXED" | "DECIMAL" | "NUMERIC" => match native.split([',', ')']).nth(1).map(str::trim) {
                Some(scale) if scale != "0" => LogicalType::Decimal,
                _ => LogicalType::Integer,
            },
            "INT" | "INTEGER" | "BIGINT" | "SMALLINT" | "TINYINT" => LogicalType::Integer,
            "FLOAT" | "DOUBLE" | "REAL" => LogicalType::Float,
            "BOOLEAN" => LogicalType::Boolean,
            "DATE" => LogicalType::Date,
            "TIMESTAMP_NTZ" | "DATETIME" => LogicalType::Timestamp,
            "TIMESTAMP_TZ" | "TIMESTAMP_LTZ" => LogicalType::TimestampTz,
            "GEOGRAPHY" | "GEOMETRY" => LogicalType::Geo,
            "BINARY" | "VARBINARY" => LogicalType::Binary,
            _ => LogicalType::Unknown,
        }
    }
}

terrane_sdk::export_dialect!(Snowflake);

#[cfg(test)]
mod tests;
