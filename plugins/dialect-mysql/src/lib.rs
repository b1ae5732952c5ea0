//! The common SQL of MySQL and MariaDB as a list of exceptions to the standard.
//!
//! Out: the profile that the host uses to print SQL. Sources: the manuals of MySQL 8.4 and MariaDB 10.11, and the
//! behavior of MariaDB.

use terrane_sdk::dialect::{
    CaseFolding, Classified, Dialect, ErrorClass, Feature, LogicalType, NullOrder, Op, PlaceholderStyle, Profile,
    ProfileBuilder, Sign, TimeTemplate, WarehouseError, base_type, classify,
};
use terrane_sdk::{CallContext, PluginError, PluginInfo};

/// The dialect component.
pub struct MySql;

/// The differences from the standard, for both engines. Text is compared as UTF-8 bytes, because the collation that
/// compares by code point and respects trailing spaces has different names in the two engines. `/` returns four digits
/// more than its arguments have, so division is computed in doubles.
const OPS: &[(Op, &str)] = &[
    (Op::NullSafeEq, "{0} <=> {1}"),
    (
        Op::Contains,
        "LOCATE(CAST(CONVERT({1} USING utf8mb4) AS BINARY), CAST(CONVERT({0} USING utf8mb4) AS BINARY)) > 0",
    ),
    (
        Op::StartsWith,
        "LOCATE(CAST(CONVERT({1} USING utf8mb4) AS BINARY), CAST(CONVERT({0} USING utf8mb4) AS BINARY)) = 1",
    ),
    (
        Op::EndsWith,
        "RIGHT(CAST(CONVERT({0} USING utf8mb4) AS BINARY), LENGTH(CONVERT({1} USING utf8mb4))) = CAST(CONVERT({1} USING utf8mb4) AS BINARY)",
    ),
    (Op::Div, "CAST({0} AS DOUBLE) / NULLIF({1}, 0)"),
    (Op::Modulo, "{0} % {1}"),
    (Op::Concat, "concat({*})"),
    (Op::Collate, "CAST(CONVERT({0} USING utf8mb4) AS BINARY)"),
    (Op::Avg, "avg(CAST({0} AS DOUBLE))"),
    (Op::Stddev, "stddev_pop(CAST({0} AS DOUBLE))"),
];

/// The names of types in a CAST.
const TYPES: &[(LogicalType, &str)] = &[
    (LogicalType::Text, "CHAR"),
    (LogicalType::Integer, "SIGNED"),
    (LogicalType::Float, "DOUBLE"),
    (LogicalType::Boolean, "SIGNED"),
    (LogicalType::Timestamp, "DATETIME(6)"),
    (LogicalType::TimestampTz, "DATETIME(6)"),
    (LogicalType::Binary, "BINARY"),
];

/// Interpolates between the two values whose positions in the order are next to a share: a position is the rank less
/// one, and the weight of a value falls from 1 at the position of the share to 0 at the positions next to it. Ranks of
/// MySQL are unsigned, so positions are doubles.
const PERCENTILE_OF_RANKS: &str = "sum(CASE WHEN abs(CAST({1} AS DOUBLE) - 1 - {3} * ({2} - 1)) < 1 \
    THEN {0} * (1 - abs(CAST({1} AS DOUBLE) - 1 - {3} * ({2} - 1))) END)";

/// The reserved words of both manuals.
const RESERVED: &str = include_str!("reserved.txt");

/// Returns the profile. Native tests call this function as well.
pub fn profile() -> Profile {
    ProfileBuilder::ansi("mysql")
        .quoting(|quoting| {
            quoting.ident_open = "`".to_owned();
            quoting.ident_close = "`".to_owned();
            quoting.ident_escape = "``".to_owned();
            quoting.string_escape_backslash = true;
            quoting.folding = CaseFolding::Keep;
            quoting.max_ident_bytes = 64;
        })
        .reserved(RESERVED)
        .placeholders(PlaceholderStyle::Question, 65_535)
        .null_order(NullOrder::NullsLow)
        .without_features(
            Feature::NULLS_FIRST_LAST | Feature::FILTER_CLAUSE | Feature::GROUPING_SETS | Feature::FULL_OUTER_JOIN,
        )
        .with_features(Feature::EXPLAIN_JSON)
        .ops(OPS)
        .function("text_lookup", 1, "{0}")
        .function("var_pop", 1, "var_pop(CAST({0} AS DOUBLE))")
        .function("stddev_samp", 1, "stddev_samp(CAST({0} AS DOUBLE))")
        .function("var_samp", 1, "var_samp(CAST({0} AS DOUBLE))")
        .function("percentile_of_ranks", 4, PERCENTILE_OF_RANKS)
        // Exact up to 30 digits after the point.
        .function("exact_product", 2, "{0} * {1}")
        // Integers are computed with 64 bits. A cast would turn large values of an unsigned column negative.
        .function("wide_integer", 1, "{0}")
        .function("mask_hash", 1, "SHA2({0}, 256)")
        .function("sample_order", 1, "crc32({0})")
        .function("mask_partial", 2, "CONCAT(LEFT(CONVERT({0} USING utf8mb4), 1), {1})")
        .without_op(Op::Percentile)
        // CONVERT_TZ returns null if no zones are loaded, and the unchanged time before 1970 and after 2037.
        .without_op(Op::ToTimeZone)
        .times(time)
        .type_names(TYPES)
        .literals("DATE {0}", "TIMESTAMP {0}", "CAST(LEFT({0}, 26) AS DATETIME(6))")
        .explain("EXPLAIN FORMAT=JSON {0}")
        .build()
}

/// Returns the template for the start of a bucket of `time`, a hole such as `{0}`. Buckets of a day or more are dates.
fn trunc(unit: &str, time: &str) -> String {
    match unit {
        "second" => format!("CAST(DATE_FORMAT({time}, '%Y-%m-%d %H:%i:%s') AS DATETIME)"),
        "minute" => format!("CAST(DATE_FORMAT({time}, '%Y-%m-%d %H:%i:00') AS DATETIME)"),
        "hour" => format!("CAST(DATE_FORMAT({time}, '%Y-%m-%d %H:00:00') AS DATETIME)"),
        "day" => format!("DATE({time})"),
        "week" => format!("DATE_SUB(DATE({time}), INTERVAL WEEKDAY({time}) DAY)"),
        "month" => format!("DATE_SUB(DATE({time}), INTERVAL DAYOFMONTH({time}) - 1 DAY)"),
        "quarter" => format!("DATE_ADD(MAKEDATE(YEAR({time}), 1), INTERVAL QUARTER({time}) - 1 QUARTER)"),
        _ => format!("MAKEDATE(YEAR({time}), 1)"),
    }
}

fn time(unit: &str, time: &mut TimeTemplate) {
    time.trunc = trunc(unit, "{0}");
    if let Some(instant) = &mut time.trunc_instant {
        let local = trunc(unit, "{1}");
        *instant = format!("DATE_SUB({{0}}, INTERVAL TIMESTAMPDIFF(MICROSECOND, {local}, {{1}}) MICROSECOND)");
    }
    time.add = format!("DATE_ADD({{0}}, INTERVAL {{1}} {})", unit.to_uppercase());
    // The number of whole units between the starts of the two buckets equals the number of bucket boundaries between
    // the times.
    time.diff = format!("TIMESTAMPDIFF({}, {}, {})", unit.to_uppercase(), trunc(unit, "{0}"), trunc(unit, "{1}"));
    if unit == "week" {
        time.part = "WEEK({0}, 3)".to_owned();
    }
}

/// MySQL's errors, identified by error number or SQLSTATE.
const ERRORS: &[(Sign, ErrorClass)] = &[
    (Sign::Code("1064"), ErrorClass::Syntax),
    (Sign::Code("1146"), ErrorClass::MissingObject),
    (Sign::Code("1054"), ErrorClass::MissingObject),
    (Sign::Code("1305"), ErrorClass::MissingObject),
    (Sign::Code("1049"), ErrorClass::MissingObject),
    (Sign::Code("1044"), ErrorClass::Permission),
    (Sign::Code("1045"), ErrorClass::Permission),
    (Sign::Code("1142"), ErrorClass::Permission),
    (Sign::Code("3024"), ErrorClass::Timeout),
    (Sign::Code("1969"), ErrorClass::Timeout),
    (Sign::Code("1317"), ErrorClass::Cancelled),
    (Sign::Code("1040"), ErrorClass::Quota),
    (Sign::Code("1226"), ErrorClass::Quota),
    (Sign::Code("1205"), ErrorClass::Conflict),
    (Sign::Code("1213"), ErrorClass::Conflict),
    (Sign::Code("2002"), ErrorClass::Connection),
    (Sign::Code("2013"), ErrorClass::Connection),
    (Sign::Code("1264"), ErrorClass::Data),
    (Sign::Code("1292"), ErrorClass::Data),
    (Sign::Code("1690"), ErrorClass::Data),
    (Sign::Code("42S"), ErrorClass::MissingObject),
    (Sign::Code("42000"), ErrorClass::Syntax),
    (Sign::Code("28000"), ErrorClass::Permission),
    (Sign::Code("40001"), ErrorClass::Conflict),
    (Sign::Code("08"), ErrorClass::Connection),
    (Sign::Code("22"), ErrorClass::Data),
];

impl Dialect for MySql {
    const INFO: PluginInfo = PluginInfo::new("dialect-mysql", env!("CARGO_PKG_VERSION"), "MySQL and MariaDB");

    fn profile(_: &CallContext) -> Result<Profile, PluginError> {
        Ok(profile())
    }

    fn classify_error(error: &WarehouseError) -> Classified {
        classify(error, ERRORS)
    }

    fn map_type(native: &str) -> LogicalType {
        let base = base_type(native);
        match base.split(' ').next().unwrap_or_default() {
            "VARCHAR" | "CHAR" | "TEXT" | "TINYTEXT" | "MEDIUMTEXT" | "LONGTEXT" | "ENUM" | "SET" | "UUID" => {
                LogicalType::Text
            }
            "BOOLEAN" | "BOOL" => LogicalType::Boolean,
            // `TINYINT(1)` is the type of columns that were declared as `BOOLEAN`.
            "TINYINT" if native.to_ascii_lowercase().starts_with("tinyint(1)") => LogicalType::Boolean,
            "TINYINT" | "SMALLINT" | "MEDIUMINT" | "INT" | "INTEGER" | "BIGINT" | "YEAR" => LogicalType::Integer,
            "DECIMAL" | "NUMERIC" => LogicalType::Decimal,
            "FLOAT" | "DOUBLE" | "REAL" => LogicalType::Float,
            "DATE" => LogicalType::Date,
            "DATETIME" => LogicalType::Timestamp,
            "TIMESTAMP" => LogicalType::TimestampTz,
            "GEOMETRY" | "POINT" | "LINESTRING" | "POLYGON" => LogicalType::Geo,
            "BINARY" | "VARBINARY" | "BLOB" | "TINYBLOB" | "MEDIUMBLOB" | "LONGBLOB" => LogicalType::Binary,
            _ => LogicalType::Unknown,
        }
    }
}

terrane_sdk::export_dialect!(MySql);

#[cfg(test)]
mod tests;
