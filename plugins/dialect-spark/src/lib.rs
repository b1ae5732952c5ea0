//! Apache Spark's SQL as a list of exceptions to the standard.
//!
//! Out: the profile that the host uses to print SQL. Sources: the SQL reference of Spark 3.5 and 4.0, and the behavior
//! of 4.0. The SQL is correct for both versions: before 4.0, `'it''s'` means `its`.

use terrane_sdk::dialect::{
    CaseFolding, Classified, Dialect, ErrorClass, Feature, LogicalType, NullOrder, Op, PlaceholderStyle, Profile,
    ProfileBuilder, Sign, TimeTemplate, WarehouseError, base_type, classify,
};
use terrane_sdk::{CallContext, PluginError, PluginInfo};

/// The dialect component.
pub struct Spark;

/// The templates of operators. Strings are compared by code point. The second argument of `approx_count_distinct` is
/// the relative standard deviation. Its default of 5 % is too large, because a single result may deviate by more than
/// that.
const OPS: &[(Op, &str)] = &[
    (Op::NullSafeEq, "{0} <=> {1}"),
    (Op::Contains, "contains({0}, {1})"),
    (Op::StartsWith, "startswith({0}, {1})"),
    (Op::EndsWith, "endswith({0}, {1})"),
    (Op::Div, "CAST({0} AS DOUBLE) / NULLIF({1}, 0)"),
    (Op::Modulo, "{0} % {1}"),
    (Op::Concat, "concat({*})"),
    (Op::ApproxDistinct, "approx_count_distinct({0}, 0.01)"),
    (Op::Avg, "avg(CAST({0} AS DOUBLE))"),
    (Op::Percentile, "percentile({0}, {1})"),
    (Op::CurrentTimestamp, "current_timestamp()"),
];

const TYPES: &[(LogicalType, &str)] = &[
    (LogicalType::Text, "STRING"),
    (LogicalType::Float, "DOUBLE"),
    (LogicalType::Timestamp, "TIMESTAMP_NTZ"),
    (LogicalType::TimestampTz, "TIMESTAMP"),
    (LogicalType::Binary, "BINARY"),
];

/// The reserved words of the ANSI mode, and words that cannot be a table's alias in the default mode.
const RESERVED: &str = "\
    all and anti any array as asc at authorization between both by case cast check collate collation column \
    constraint create cross cube current_date current_path current_time current_timestamp current_user default delete \
    desc describe distinct div drop else end escape except exists explain extract false fetch filter for foreign from \
    full function grant group grouping having in inner insert intersect interval into is join lateral leading left \
    like limit localtime localtimestamp map minus natural not null offset on only or order outer overlaps partition \
    percent pivot position primary qualify range recursive references regexp right rlike rollup row rows select semi \
    session_user set some sort struct substring table tablesample then time timestamp to trailing true truncate union \
    unique unknown unpivot update user using values when where window with within";

/// Returns the profile. Native tests call this function as well.
pub fn profile() -> Profile {
    ProfileBuilder::ansi("spark")
        .quoting(|quoting| {
            quoting.ident_open = "`".to_owned();
            quoting.ident_close = "`".to_owned();
            quoting.ident_escape = "``".to_owned();
            quoting.string_escape = "\\u0027".to_owned();
            quoting.string_escape_backslash = true;
            quoting.folding = CaseFolding::Keep;
            quoting.max_ident_bytes = 255;
        })
        .reserved(RESERVED)
        .placeholders(PlaceholderStyle::Question, 10_000)
        .null_order(NullOrder::NullsLow)
        .with_features(Feature::ILIKE | Feature::LATERAL)
        .ops(OPS)
        .function("mask_hash", 1, "sha2({0}, 256)")
        .function("sample_order", 1, "xxhash64({0})")
        .function("mask_partial", 2, "concat(substring({0}, 1, 1), {1})")
        .op_for(Op::Sum, LogicalType::Integer, "sum(CAST({0} AS DECIMAL(38, 0)))")
        .op_for(Op::ToTimeZone, LogicalType::TimestampTz, "convert_timezone('UTC', {1}, CAST({0} AS TIMESTAMP_NTZ))")
        .op_for(Op::ToTimeZone, LogicalType::Timestamp, "convert_timezone('UTC', {1}, CAST({0} AS TIMESTAMP_NTZ))")
        .times(time)
        .type_names(TYPES)
        .literals("DATE {0}", "TIMESTAMP_NTZ {0}", "TIMESTAMP {0}")
        .explain("EXPLAIN FORMATTED {0}")
        .build()
}

/// Sets the templates of a unit. `date_trunc` returns an instant; in a session in UTC, the cast only removes its time
/// zone.
fn time(unit: &str, time: &mut TimeTemplate) {
    let trunc = |hole: &str| format!("CAST(date_trunc('{unit}', {hole}) AS TIMESTAMP_NTZ)");
    time.trunc = trunc("{0}");
    if let Some(instant) = &mut time.trunc_instant {
        *instant = format!("{{0}} - ({{1}} - {})", trunc("{1}"));
    }
    time.add = format!("timestampadd({}, CAST({{1}} AS INT), CAST({{0}} AS TIMESTAMP_NTZ))", unit.to_uppercase());
    // The number of whole units between the starts of the two buckets equals the number of bucket boundaries between
    // the times.
    time.diff = format!("timestampdiff({}, {}, {})", unit.to_uppercase(), trunc("{0}"), trunc("{1}"));
    time.part = match unit {
        "week" => "weekofyear({0})".to_owned(),
        _ => format!("{unit}({{0}})"),
    };
}

/// The error conditions of Spark; the code is the condition or a SQLSTATE.
const ERRORS: &[(Sign, ErrorClass)] = &[
    (Sign::Message("PARSE_SYNTAX_ERROR"), ErrorClass::Syntax),
    (Sign::Message("TABLE_OR_VIEW_NOT_FOUND"), ErrorClass::MissingObject),
    (Sign::Message("UNRESOLVED_COLUMN"), ErrorClass::MissingObject),
    (Sign::Message("UNRESOLVED_ROUTINE"), ErrorClass::MissingObject),
    (Sign::Message("SCHEMA_NOT_FOUND"), ErrorClass::MissingObject),
    (Sign::Message("PERMISSION_DENIED"), ErrorClass::Permission),
    (Sign::Message("ACCESS_DENIED"), ErrorClass::Permission),
    (Sign::Message("OPERATION_TIMEOUT"), ErrorClass::Timeout),
    (Sign::Message("OPERATION_CANCELED"), ErrorClass::Cancelled),
    (Sign::Message("OutOfMemory"), ErrorClass::Quota),
    (Sign::Message("ARITHMETIC_OVERFLOW"), ErrorClass::Data),
    (Sign::Message("NUMERIC_VALUE_OUT_OF_RANGE"), ErrorClass::Data),
    (Sign::Message("CAST_INVALID_INPUT"), ErrorClass::Data),
    (Sign::Message("CONNECT_EXCEPTION"), ErrorClass::Connection),
    (Sign::Code("42601"), ErrorClass::Syntax),
    (Sign::Code("22"), ErrorClass::Data),
    (Sign::Code("08"), ErrorClass::Connection),
];

impl Dialect for Spark {
    const INFO: PluginInfo = PluginInfo::new("dialect-spark", env!("CARGO_PKG_VERSION"), "Apache Spark");

    fn profile(_: &CallContext) -> Result<Profile, PluginError> {
        Ok(profile())
    }

    fn classify_error(error: &WarehouseError) -> Classified {
        classify(error, ERRORS)
    }

    fn map_type(native: &str) -> LogicalType {
        match base_type(native).as_str() {
            "STRING" | "VARCHAR" | "CHAR" => LogicalType::Text,
            "BYTE" | "TINYINT" | "SHORT" | "SMALLINT" | "INT" | "INTEGER" | "LONG" | "BIGINT" => LogicalType::Integer,
            "DECIMAL" | "DEC" | "NUMERIC" => LogicalType::Decimal,
            "FLOAT" | "REAL" | "DOUBLE" => LogicalType::Float,
            "BOOLEAN" => LogicalType::Boolean,
            "DATE" => LogicalType::Date,
            "TIMESTAMP_NTZ" => LogicalType::Timestamp,
            "TIMESTAMP" | "TIMESTAMP_LTZ" => LogicalType::TimestampTz,
            "BINARY" => LogicalType::Binary,
            _ => LogicalType::Unknown,
        }
    }
}

terrane_sdk::export_dialect!(Spark);

#[cfg(test)]
mod tests;
