//! Trino's SQL as a list of exceptions to the standard.
//!
//! Out: the profile that the host uses to print SQL. Source: the documentation of Trino 470 (functions, SELECT,
//! keywords, the error codes of its SPI).

use terrane_sdk::dialect::{
    CaseFolding, Classified, Dialect, ErrorClass, Feature, LimitStyle, LogicalType, NullOrder, Op, PlaceholderStyle,
    Profile, ProfileBuilder, Sign, TimeTemplate, WarehouseError, base_type, classify,
};
use terrane_sdk::{CallContext, PluginError, PluginInfo};

/// The dialect component.
pub struct Trino;

/// The templates of operators. Strings are compared by code point. The approximate count has a tolerance of 1 %,
/// because the default of 2.3 % is only its standard deviation. Trino has only approximate percentiles.
const OPS: &[(Op, &str)] = &[
    (Op::Contains, "strpos({0}, {1}) > 0"),
    (Op::StartsWith, "starts_with({0}, {1})"),
    (Op::EndsWith, "substr({0}, length({0}) - length({1}) + 1) = {1}"),
    (Op::Div, "CAST({0} AS DOUBLE) / NULLIF({1}, 0)"),
    (Op::Modulo, "{0} % {1}"),
    (Op::Concat, "concat({*})"),
    (Op::ApproxDistinct, "approx_distinct({0}, 0.01)"),
    (Op::Avg, "avg(CAST({0} AS DOUBLE))"),
];

const TYPES: &[(LogicalType, &str)] = &[
    (LogicalType::Float, "DOUBLE"),
    (LogicalType::Timestamp, "TIMESTAMP(6)"),
    (LogicalType::TimestampTz, "TIMESTAMP(6) WITH TIME ZONE"),
];

/// "Reserved keywords" of trino.io/docs, and words that parsers of this SQL treat as keywords. Quoting more words than
/// necessary is harmless.
const RESERVED: &str = "\
    all alter and any array as asc at auto between by case cast constraint create cross cube current_catalog \
    current_date current_path current_role current_schema current_time current_timestamp current_user deallocate \
    delete desc describe distinct drop else end escape except execute exists extract false fetch filter first for \
    from full glob grant group grouping having if ilike in inner insert intersect interval into is join json_array \
    json_exists json_object json_query json_table json_value last lateral left like limit listagg localtime \
    localtimestamp map match match_recognize measures natural normalize not notnull null nulls of offset on only or \
    order ordinality outer over partition position preceding prepare range recursive regexp returning revoke right \
    rlike rollback rollup row rows select set skip some substring table tablesample then time timestamp to trim true \
    try_cast uescape union unnest update user using values when where window with within xor";

/// Returns the profile. Native tests call this function as well.
pub fn profile() -> Profile {
    ProfileBuilder::ansi("trino")
        .quoting(|quoting| quoting.folding = CaseFolding::ToLower)
        .quoting(|quoting| quoting.max_ident_bytes = 65_535)
        .reserved(RESERVED)
        .placeholders(PlaceholderStyle::None, 0)
        // Trino requires `OFFSET` before `LIMIT`, unlike other engines. The standard's form, `OFFSET … FETCH`, has the
        // same order in every engine that supports it.
        .limit(LimitStyle::FetchFirst)
        .null_order(NullOrder::NullsLast)
        .with_features(Feature::LATERAL | Feature::EXPLAIN_JSON)
        .ops(OPS)
        .function("mask_hash", 1, "lower(to_hex(sha256(to_utf8({0}))))")
        .function("sample_order", 1, "xxhash64(to_utf8({0}))")
        .function("mask_partial", 2, "concat(substr({0}, 1, 1), {1})")
        .function("percentile_approx", 2, "approx_percentile({0}, {1})")
        .without_op(Op::Percentile)
        .op_for(Op::Sum, LogicalType::Integer, "sum(CAST({0} AS DECIMAL(38, 0)))")
        .op_for(Op::ToTimeZone, LogicalType::TimestampTz, "CAST({0} AT TIME ZONE {1} AS TIMESTAMP(6))")
        .op_for(
            Op::ToTimeZone,
            LogicalType::Timestamp,
            "CAST(with_timezone({0}, 'UTC') AT TIME ZONE {1} AS TIMESTAMP(6))",
        )
        .times(time)
        .type_names(TYPES)
        .explain("EXPLAIN (TYPE IO, FORMAT JSON) {0}")
        .build()
}

/// Sets the templates of a unit. Trino computes differences of times in milliseconds at best, so the start of a local
/// bucket is computed by subtracting seconds.
fn time(unit: &str, time: &mut TimeTemplate) {
    if let Some(instant) = &mut time.trunc_instant {
        let seconds = match unit {
            "second" => "0 * second({1})",
            "minute" => "0 - second({1})",
            _ => "0 - minute({1}) * 60 - second({1})",
        };
        *instant = format!("date_add('second', {seconds}, date_trunc('second', {{0}}))");
    }
    time.add = format!("date_add('{unit}', {{1}}, {{0}})");
    // The number of whole units between the starts of the two buckets equals the number of bucket boundaries between
    // the times.
    time.diff = format!("date_diff('{unit}', date_trunc('{unit}', {{0}}), date_trunc('{unit}', {{1}}))");
}

/// The names of Trino's standard error codes.
const ERRORS: &[(Sign, ErrorClass)] = &[
    (Sign::Message("SYNTAX_ERROR"), ErrorClass::Syntax),
    (Sign::Message("TABLE_NOT_FOUND"), ErrorClass::MissingObject),
    (Sign::Message("COLUMN_NOT_FOUND"), ErrorClass::MissingObject),
    (Sign::Message("SCHEMA_NOT_FOUND"), ErrorClass::MissingObject),
    (Sign::Message("CATALOG_NOT_FOUND"), ErrorClass::MissingObject),
    (Sign::Message("FUNCTION_NOT_FOUND"), ErrorClass::MissingObject),
    (Sign::Message("PERMISSION_DENIED"), ErrorClass::Permission),
    (Sign::Message("EXCEEDED_TIME_LIMIT"), ErrorClass::Timeout),
    (Sign::Message("USER_CANCELED"), ErrorClass::Cancelled),
    (Sign::Message("EXCEEDED_"), ErrorClass::Quota),
    (Sign::Message("INSUFFICIENT_RESOURCES"), ErrorClass::Quota),
    (Sign::Message("QUERY_QUEUE_FULL"), ErrorClass::Quota),
    (Sign::Message("TRANSACTION_CONFLICT"), ErrorClass::Conflict),
    (Sign::Message("INVALID_CAST_ARGUMENT"), ErrorClass::Data),
    (Sign::Message("NUMERIC_VALUE_OUT_OF_RANGE"), ErrorClass::Data),
    (Sign::Message("DIVISION_BY_ZERO"), ErrorClass::Data),
    (Sign::Message("REMOTE_TASK_ERROR"), ErrorClass::Connection),
    (Sign::Message("SERVER_SHUTTING_DOWN"), ErrorClass::Connection),
];

impl Dialect for Trino {
    const INFO: PluginInfo = PluginInfo::new("dialect-trino", env!("CARGO_PKG_VERSION"), "Trino");

    fn profile(_: &CallContext) -> Result<Profile, PluginError> {
        Ok(profile())
    }

    fn classify_error(error: &WarehouseError) -> Classified {
        classify(error, ERRORS)
    }

    fn map_type(native: &str) -> LogicalType {
        let is_zoned = native.to_ascii_lowercase().ends_with("with time zone");
        match base_type(native).as_str() {
            "VARCHAR" | "CHAR" | "UUID" => LogicalType::Text,
            "TINYINT" | "SMALLINT" | "INTEGER" | "BIGINT" => LogicalType::Integer,
            "DECIMAL" => LogicalType::Decimal,
            "REAL" | "DOUBLE" => LogicalType::Float,
            "BOOLEAN" => LogicalType::Boolean,
            "DATE" => LogicalType::Date,
            "TIMESTAMP" | "TIMESTAMP WITH TIME ZONE" if is_zoned => LogicalType::TimestampTz,
            "TIMESTAMP" => LogicalType::Timestamp,
            "GEOMETRY" | "SPHERICALGEOGRAPHY" => LogicalType::Geo,
            "VARBINARY" => LogicalType::Binary,
            _ => LogicalType::Unknown,
        }
    }
}

terrane_sdk::export_dialect!(Trino);

#[cfg(test)]
mod tests;
