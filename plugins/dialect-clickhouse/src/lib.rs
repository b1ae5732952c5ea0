//! ClickHouse's SQL as a list of exceptions to the standard.
//!
//! Out: the profile that the host uses to print SQL. Sources: the documentation of ClickHouse (functions, syntax,
//! system.errors), and the behavior of version 26.9. Aggregates have the suffix `OrNull`, because the plain ones return
//! 0 for no rows; types are `Nullable`, because a cast of null to a plain type fails.

use terrane_sdk::dialect::{
    CaseFolding, Classified, Dialect, ErrorClass, Feature, LogicalType, NullOrder, Op, PlaceholderStyle, Profile,
    ProfileBuilder, Sign, TimeTemplate, WarehouseError, base_type, classify,
};
use terrane_sdk::{CallContext, PluginError, PluginInfo};

/// The dialect component.
pub struct ClickHouse;

/// The templates of operators. Strings are compared by code point. `sum` of 64-bit integers wraps around, so integers
/// are converted to a wider type first.
const OPS: &[(Op, &str)] = &[
    (Op::NullSafeEq, "isNotDistinctFrom({0}, {1})"),
    (Op::Contains, "position({0}, {1}) > 0"),
    (Op::StartsWith, "startsWith({0}, {1})"),
    (Op::EndsWith, "endsWith({0}, {1})"),
    (Op::Div, "toFloat64({0}) / NULLIF(toFloat64({1}), 0)"),
    (Op::Modulo, "{0} % {1}"),
    (Op::Concat, "concat({*})"),
    (Op::ApproxDistinct, "uniq({0})"),
    (Op::Sum, "sumOrNull({0})"),
    (Op::Avg, "avgOrNull(toFloat64({0}))"),
    (Op::Min, "minOrNull({0})"),
    (Op::Max, "maxOrNull({0})"),
    (Op::Stddev, "stddevPopOrNull({0})"),
    (Op::Percentile, "quantileExactInclusiveOrNull({1})({0})"),
    (Op::CurrentTimestamp, "now64(6, 'UTC')"),
];

/// The local time of a zone as a time in UTC, because ClickHouse has no times without a zone.
const IN_ZONE: &str = "addSeconds(toTimeZone({0}, 'UTC'), timeZoneOffset(toTimeZone({0}, {1})))";

const TYPES: &[(LogicalType, &str)] = &[
    (LogicalType::Text, "Nullable(String)"),
    // Counts are UInt64. Int128 represents all of their values and all signed integers.
    (LogicalType::Integer, "Nullable(Int128)"),
    (LogicalType::Decimal, "Nullable(Decimal(38, 9))"),
    (LogicalType::Float, "Nullable(Float64)"),
    (LogicalType::Boolean, "Nullable(Bool)"),
    (LogicalType::Date, "Nullable(Date32)"),
    (LogicalType::Timestamp, "Nullable(DateTime64(6, 'UTC'))"),
    (LogicalType::TimestampTz, "Nullable(DateTime64(6, 'UTC'))"),
    (LogicalType::Binary, "Nullable(String)"),
];

/// Words that have a special meaning in an expression or after a table.
const RESERVED: &str = "\
    add all alter and anti any array as asc asof between both by case cast check collate column constraint create \
    cross cube current_date current_time current_timestamp current_user database date datetime default delete desc \
    describe distinct div drop else end except exists explain extract false fetch filter final first following format \
    for from full function global grant group grouping having id if ilike in index inf inner insert intersect interval \
    into is join key last lateral leading left like limit local materialized mod nan natural not null nulls of offset \
    on optimize or order outer over paste partition populate position preceding prewhere primary qualify range \
    recursive replace respect right rollup row rows sample select semi session_user set settings show substring table \
    temporary then ties timestamp to top totals trailing treat trim true truncate unbounded union update use user \
    using values view when where window with";

/// Returns the profile. Native tests call this function as well.
pub fn profile() -> Profile {
    ProfileBuilder::ansi("clickhouse")
        .quoting(|quoting| {
            quoting.ident_open = "`".to_owned();
            quoting.ident_close = "`".to_owned();
            quoting.ident_escape = "\\`".to_owned();
            quoting.string_escape_backslash = true;
            quoting.folding = CaseFolding::Keep;
            quoting.max_ident_bytes = 65_535;
        })
        .reserved(RESERVED)
        .placeholders(PlaceholderStyle::None, 0)
        .null_order(NullOrder::NullsLast)
        .with_features(Feature::ILIKE | Feature::QUALIFY)
        .ops(OPS)
        .function("var_pop", 1, "varPopOrNull({0})")
        // Both return NaN for a single value; the contract requires null.
        .function("stddev_samp", 1, "if(count({0}) > 1, stddevSampOrNull({0}), NULL)")
        .function("var_samp", 1, "if(count({0}) > 1, varSampOrNull({0}), NULL)")
        .function("mask_hash", 1, "lower(hex(SHA256({0})))")
        .function("sample_order", 1, "cityHash64({0})")
        .function("mask_partial", 2, "concat(substringUTF8({0}, 1, 1), {1})")
        .op_for(Op::Sum, LogicalType::Integer, "sumOrNull(toInt128({0}))")
        .op_for(Op::ToTimeZone, LogicalType::TimestampTz, IN_ZONE)
        .op_for(Op::ToTimeZone, LogicalType::Timestamp, IN_ZONE)
        .op_for(Op::Literal, LogicalType::Decimal, "toDecimal128({0}, 9)")
        .times(time)
        .type_names(TYPES)
        .literals("toDate32({0})", "toDateTime64({0}, 6, 'UTC')", "parseDateTime64BestEffort({0}, 6, 'UTC')")
        .booleans("true", "false")
        .explain("EXPLAIN {0}")
        .build()
}

/// Sets the templates of a unit. They use `Date32` and `DateTime64`, because `date_trunc` returns types that begin in
/// 1970.
fn time(unit: &str, time: &mut TimeTemplate) {
    let day = "toDate32({0})";
    let back = |seconds: &str| format!("toStartOfSecond(toDateTime64({{0}}, 6, 'UTC')) - toIntervalSecond({seconds})");
    time.trunc = match unit {
        "second" => "toStartOfSecond(toDateTime64({0}, 6, 'UTC'))".to_owned(),
        "minute" => back("toSecond({0})"),
        "hour" => back("toMinute({0}) * 60 + toSecond({0})"),
        "day" => day.to_owned(),
        "week" => format!("{day} - toIntervalDay(toDayOfWeek({{0}}) - 1)"),
        "month" => format!("{day} - toIntervalDay(toDayOfMonth({{0}}) - 1)"),
        "quarter" => format!("addMonths({day} - toIntervalDay(toDayOfMonth({{0}}) - 1), -((toMonth({{0}}) - 1) % 3))"),
        _ => format!("{day} - toIntervalDay(toDayOfYear({{0}}) - 1)"),
    };
    if let Some(instant) = &mut time.trunc_instant {
        let seconds = match unit {
            "second" => "0 * toSecond({1})",
            "minute" => "toSecond({1})",
            _ => "toMinute({1}) * 60 + toSecond({1})",
        };
        *instant = back(seconds);
    }
    let capital: String = unit[..1].to_uppercase() + &unit[1..];
    time.add = format!("{{0}} + toInterval{capital}({{1}})");
    time.diff = format!("dateDiff('{unit}', {{0}}, {{1}})");
    time.part = match unit {
        "day" => "toDayOfMonth({0})".to_owned(),
        "week" => "toISOWeek({0})".to_owned(),
        _ => format!("to{capital}({{0}})"),
    };
}

/// The names of the errors in `system.errors`.
const ERRORS: &[(Sign, ErrorClass)] = &[
    (Sign::Message("SYNTAX_ERROR"), ErrorClass::Syntax),
    (Sign::Message("UNKNOWN_TABLE"), ErrorClass::MissingObject),
    (Sign::Message("UNKNOWN_DATABASE"), ErrorClass::MissingObject),
    (Sign::Message("UNKNOWN_IDENTIFIER"), ErrorClass::MissingObject),
    (Sign::Message("UNKNOWN_FUNCTION"), ErrorClass::MissingObject),
    (Sign::Message("ACCESS_DENIED"), ErrorClass::Permission),
    (Sign::Message("AUTHENTICATION_FAILED"), ErrorClass::Permission),
    (Sign::Message("TIMEOUT_EXCEEDED"), ErrorClass::Timeout),
    (Sign::Message("QUERY_WAS_CANCELLED"), ErrorClass::Cancelled),
    (Sign::Message("MEMORY_LIMIT_EXCEEDED"), ErrorClass::Quota),
    (Sign::Message("QUOTA_EXCEEDED"), ErrorClass::Quota),
    (Sign::Message("TOO_MANY_"), ErrorClass::Quota),
    (Sign::Message("NETWORK_ERROR"), ErrorClass::Connection),
    (Sign::Message("SOCKET_TIMEOUT"), ErrorClass::Connection),
    (Sign::Message("CANNOT_PARSE_"), ErrorClass::Data),
    (Sign::Message("DECIMAL_OVERFLOW"), ErrorClass::Data),
    (Sign::Message("VALUE_IS_OUT_OF_RANGE"), ErrorClass::Data),
];

impl Dialect for ClickHouse {
    const INFO: PluginInfo = PluginInfo::new("dialect-clickhouse", env!("CARGO_PKG_VERSION"), "ClickHouse");

    fn profile(_: &CallContext) -> Result<Profile, PluginError> {
        Ok(profile())
    }

    fn classify_error(error: &WarehouseError) -> Classified {
        classify(error, ERRORS)
    }

    fn map_type(native: &str) -> LogicalType {
        let wrapped =
            ["Nullable(", "LowCardinality("].iter().find_map(|open| native.strip_prefix(open)?.strip_suffix(')'));
        if let Some(inner) = wrapped {
            return Self::map_type(inner);
        }
        match base_type(native).as_str() {
            "STRING" | "FIXEDSTRING" | "UUID" | "ENUM8" | "ENUM16" => LogicalType::Text,
            "INT8" | "INT16" | "INT32" | "INT64" | "INT128" | "INT256" | "UINT8" | "UINT16" | "UINT32" | "UINT64"
            | "UINT128" | "UINT256" => LogicalType::Integer,
            "DECIMAL" | "DECIMAL32" | "DECIMAL64" | "DECIMAL128" | "DECIMAL256" => LogicalType::Decimal,
            "FLOAT32" | "FLOAT64" => LogicalType::Float,
            "BOOL" => LogicalType::Boolean,
            "DATE" | "DATE32" => LogicalType::Date,
            // Both types store instants; their zone only affects how a value is displayed.
            "DATETIME" | "DATETIME64" => LogicalType::TimestampTz,
            _ => LogicalType::Unknown,
        }
    }
}

terrane_sdk::export_dialect!(ClickHouse);

#[cfg(test)]
mod tests;
