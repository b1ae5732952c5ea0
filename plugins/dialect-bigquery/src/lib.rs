//! BigQuery's SQL as a list of exceptions to the standard.
//!
//! Out: the profile that the host uses to print SQL. Source: the GoogleSQL reference (lexical structure, functions,
//! data types). BigQuery estimates a query with a dry run, not with a statement.

use terrane_sdk::dialect::{
    CaseFolding, Classified, Dialect, ErrorClass, Feature, LogicalType, NullOrder, Op, PlaceholderStyle, Profile,
    ProfileBuilder, Sign, TimeTemplate, WarehouseError, base_type, classify,
};
use terrane_sdk::{CallContext, PluginError, PluginInfo};

/// The dialect component.
pub struct BigQuery;

/// The templates of operators. `NUMERIC` has nine digits after the decimal point, so `/` is computed in doubles. Exact
/// percentiles are omitted, because BigQuery supports them only as window functions.
const OPS: &[(Op, &str)] = &[
    (Op::Contains, "STRPOS({0}, {1}) > 0"),
    (Op::StartsWith, "STARTS_WITH({0}, {1})"),
    (Op::EndsWith, "ENDS_WITH({0}, {1})"),
    (Op::Div, "CAST({0} AS FLOAT64) / NULLIF({1}, 0)"),
    (Op::Concat, "CONCAT({*})"),
    (Op::Collate, "COLLATE({0}, '')"),
    (Op::ApproxDistinct, "APPROX_COUNT_DISTINCT({0})"),
    (Op::Avg, "AVG(CAST({0} AS FLOAT64))"),
    (Op::CurrentTimestamp, "CURRENT_TIMESTAMP()"),
];

const TYPES: &[(LogicalType, &str)] = &[
    (LogicalType::Text, "STRING"),
    (LogicalType::Integer, "INT64"),
    (LogicalType::Decimal, "BIGNUMERIC"),
    (LogicalType::Float, "FLOAT64"),
    (LogicalType::Boolean, "BOOL"),
    (LogicalType::Timestamp, "DATETIME"),
    (LogicalType::TimestampTz, "TIMESTAMP"),
    (LogicalType::Geo, "GEOGRAPHY"),
    (LogicalType::Binary, "BYTES"),
];

/// "Reserved keywords" of the reference, and words that parsers of this SQL treat as keywords. Quoting more words than
/// necessary is harmless.
const RESERVED: &str = "\
    all alter and any array as asc assert_rows_modified at between by case cast collate contains create cross cube \
    current default define delete desc distinct drop else end enum escape except exclude exists extract false fetch \
    following for from full glob grant graph_table group grouping groups hash having if ignore ilike in inner insert \
    intersect interval into is join lateral left like limit lookup match_recognize merge natural new no not notnull \
    null nulls of offset on or order outer over partition pivot preceding proto qualify range recursive regexp \
    respect returning revoke right rlike rollback rollup rows select set some struct tablesample then to treat true \
    unbounded union unnest unpivot update using when where window with within xor";

/// Returns the profile. Native tests call this function as well.
pub fn profile() -> Profile {
    ProfileBuilder::ansi("bigquery")
        .quoting(|quoting| {
            quoting.ident_open = "`".to_owned();
            quoting.ident_close = "`".to_owned();
            quoting.ident_escape = "\\`".to_owned();
            // In BigQuery, `''` does not escape a quote, and a string on one line contains no line feed.
            quoting.string_escape = "\\u0027".to_owned();
            quoting.string_escape_backslash = true;
            quoting.folding = CaseFolding::Keep;
            quoting.max_ident_bytes = 300;
        })
        .reserved(RESERVED)
        .placeholders(PlaceholderStyle::Question, 10_000)
        .null_order(NullOrder::NullsLow)
        .without_features(Feature::FILTER_CLAUSE | Feature::PUNCTUATED_NAMES)
        .with_features(Feature::QUALIFY)
        .ops(OPS)
        .function("mask_hash", 1, "TO_HEX(SHA256({0}))")
        .function("sample_order", 1, "FARM_FINGERPRINT({0})")
        .function("mask_partial", 2, "CONCAT(SUBSTR({0}, 1, 1), {1})")
        .function("percentile_approx", 2, "APPROX_QUANTILES({0}, 1000)[OFFSET(CAST({1} * 1000 AS INT64))]")
        .without_op(Op::Percentile)
        .op_for(Op::Sum, LogicalType::Integer, "SUM(CAST({0} AS BIGNUMERIC))")
        .op_for(Op::Sum, LogicalType::Decimal, "SUM(CAST({0} AS BIGNUMERIC))")
        .op_for(Op::ToTimeZone, LogicalType::TimestampTz, "DATETIME({0}, {1})")
        .op_for(Op::ToTimeZone, LogicalType::Timestamp, "DATETIME(TIMESTAMP({0}, 'UTC'), {1})")
        .op_for(Op::Literal, LogicalType::Decimal, "BIGNUMERIC {0}")
        .times(time)
        .type_names(TYPES)
        .literals("DATE {0}", "DATETIME {0}", "TIMESTAMP {0}")
        .build()
}

/// Sets the templates of a unit. BigQuery has different functions for dates, times and instants, so the templates
/// convert all three to DATETIME and use one set of functions.
fn time(unit: &str, time: &mut TimeTemplate) {
    let part = unit.to_uppercase();
    let week = if unit == "week" { "ISOWEEK" } else { &part };
    time.trunc = format!("DATETIME_TRUNC(CAST({{0}} AS DATETIME), {week})");
    if let Some(instant) = &mut time.trunc_instant {
        *instant = format!("{{0}} - ({{1}} - DATETIME_TRUNC({{1}}, {part}))");
    }
    time.add = format!("DATETIME_ADD(CAST({{0}} AS DATETIME), INTERVAL {{1}} {part})");
    time.diff = format!("DATETIME_DIFF(CAST({{1}} AS DATETIME), CAST({{0}} AS DATETIME), {week})");
    time.part = format!("EXTRACT({week} FROM {{0}})");
}

/// The error reasons in BigQuery's error table. `invalidQuery` is classified by its message.
const ERRORS: &[(Sign, ErrorClass)] = &[
    (Sign::Code("accessDenied"), ErrorClass::Permission),
    (Sign::Code("notFound"), ErrorClass::MissingObject),
    (Sign::Code("quotaExceeded"), ErrorClass::Quota),
    (Sign::Code("rateLimitExceeded"), ErrorClass::Quota),
    (Sign::Code("resourcesExceeded"), ErrorClass::Quota),
    (Sign::Code("bytesBilledLimitExceeded"), ErrorClass::Quota),
    (Sign::Code("responseTooLarge"), ErrorClass::Quota),
    (Sign::Code("stopped"), ErrorClass::Cancelled),
    (Sign::Code("timeout"), ErrorClass::Timeout),
    (Sign::Code("backendError"), ErrorClass::Connection),
    (Sign::Code("internalError"), ErrorClass::Connection),
    (Sign::Message("syntax error"), ErrorClass::Syntax),
    (Sign::Message("unrecognized name"), ErrorClass::MissingObject),
    (Sign::Message("not found"), ErrorClass::MissingObject),
    (Sign::Message("bad "), ErrorClass::Data),
    (Sign::Message("overflow"), ErrorClass::Data),
    (Sign::Message("division by zero"), ErrorClass::Data),
];

impl Dialect for BigQuery {
    const INFO: PluginInfo = PluginInfo::new("dialect-bigquery", env!("CARGO_PKG_VERSION"), "BigQuery");

    fn profile(_: &CallContext) -> Result<Profile, PluginError> {
        Ok(profile())
    }

    fn classify_error(error: &WarehouseError) -> Classified {
        classify(error, ERRORS)
    }

    fn map_type(native: &str) -> LogicalType {
        match base_type(native).as_str() {
            "STRING" => LogicalType::Text,
            "INT64" | "INTEGER" | "INT" | "BIGINT" | "SMALLINT" | "TINYINT" | "BYTEINT" => LogicalType::Integer,
            "NUMERIC" | "DECIMAL" | "BIGNUMERIC" | "BIGDECIMAL" => LogicalType::Decimal,
            "FLOAT64" | "FLOAT" => LogicalType::Float,
            "BOOL" | "BOOLEAN" => LogicalType::Boolean,
            "DATE" => LogicalType::Date,
            "DATETIME" => LogicalType::Timestamp,
            "TIMESTAMP" => LogicalType::TimestampTz,
            "GEOGRAPHY" => LogicalType::Geo,
            "BYTES" => LogicalType::Binary,
            _ => LogicalType::Unknown,
        }
    }
}

terrane_sdk::export_dialect!(BigQuery);

#[cfg(test)]
mod tests;
