//! PostgreSQL's SQL as a list of exceptions to the standard.
//!
//! Out: the profile that the host uses to print SQL. Sources: the manual of PostgreSQL 15 (functions,
//! `pg_get_keywords()`, appendix A), and the engine's behavior.

use terrane_sdk::dialect::{
    CaseFolding, Classified, Dialect, ErrorClass, Feature, LogicalType, Op, PlaceholderStyle, Profile, ProfileBuilder,
    Sign, TimeTemplate, WarehouseError, base_type, classify,
};
use terrane_sdk::{CallContext, PluginError, PluginInfo};

/// The dialect component.
pub struct Postgres;

/// The differences from the standard. A sum of integers has a wider type than its values, and a sum of `NUMERIC` has no
/// limit. The collation `C` compares by code point in a UTF-8 database; the cast to text is for `uuid` and enums.
const OPS: &[(Op, &str)] = &[
    (Op::Contains, "strpos({0}, {1}) > 0"),
    (Op::StartsWith, "starts_with({0}, {1})"),
    (Op::EndsWith, "right({0}, length({1})) = {1}"),
    (Op::Modulo, "{0} % {1}"),
    (Op::Concat, "concat({*})"),
    (Op::Collate, "CAST({0} AS TEXT) COLLATE \"C\""),
    (Op::Stddev, "stddev_pop(CAST({0} AS DOUBLE PRECISION))"),
];

/// The names of types in a cast. A `NUMERIC` without a scale represents any scale.
const TYPES: &[(LogicalType, &str)] = &[
    (LogicalType::Text, "TEXT"),
    (LogicalType::Decimal, "NUMERIC"),
    (LogicalType::TimestampTz, "TIMESTAMPTZ"),
    (LogicalType::Binary, "BYTEA"),
];

/// The result of `SELECT word FROM pg_get_keywords() WHERE catcode <> 'U'`.
const RESERVED: &str = "\
    all analyse analyze and any array as asc asymmetric authorization between bigint binary bit boolean both case cast \
    char character check coalesce collate collation column concurrently constraint create cross current_catalog \
    current_date current_role current_schema current_time current_timestamp current_user dec decimal default \
    deferrable desc distinct do else end except exists extract false fetch float for foreign freeze from full grant \
    greatest group grouping having ilike in initially inner inout int integer intersect interval into is isnull join \
    json json_array json_arrayagg json_exists json_object json_objectagg json_query json_scalar json_serialize \
    json_table json_value lateral leading least left like limit localtime localtimestamp merge_action national \
    natural nchar none normalize not notnull null nullif numeric offset on only or order out outer overlaps overlay \
    placing position precision primary real references returning right row select session_user setof similar smallint \
    some substring symmetric system_user table tablesample then time timestamp to trailing treat trim true union \
    unique user using values varchar variadic verbose when where window with xmlattributes xmlconcat xmlelement \
    xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable";

/// Returns the profile. Native tests call this function as well.
pub fn profile() -> Profile {
    ProfileBuilder::ansi("postgres")
        .quoting(|quoting| {
            quoting.folding = CaseFolding::ToLower;
            quoting.max_ident_bytes = 63;
        })
        .reserved(RESERVED)
        .placeholders(PlaceholderStyle::DollarN, 65_535)
        .with_features(Feature::ILIKE | Feature::LATERAL | Feature::EXPLAIN_JSON)
        .ops(OPS)
        .function("text_lookup", 1, "CAST({0} AS TEXT)")
        .function("var_pop", 1, "var_pop(CAST({0} AS DOUBLE PRECISION))")
        .function("stddev_samp", 1, "stddev_samp(CAST({0} AS DOUBLE PRECISION))")
        .function("var_samp", 1, "var_samp(CAST({0} AS DOUBLE PRECISION))")
        .function("exact_product", 2, "{0} * {1}")
        .function("mask_hash", 1, "encode(sha256(convert_to(CAST({0} AS TEXT), 'UTF8')), 'hex')")
        .function("sample_order", 1, "hashtextextended({0}, 0)")
        .function("mask_partial", 2, "substr({0}, 1, 1) || {1}")
        // The sum of a REAL column is a REAL otherwise.
        .op_for(Op::Sum, LogicalType::Float, "sum(CAST({0} AS DOUBLE PRECISION))")
        .op_for(Op::Max, LogicalType::Boolean, "bool_or({0})")
        .op_for(Op::Min, LogicalType::Boolean, "bool_and({0})")
        .times(time)
        .type_names(TYPES)
        .literals("DATE {0}", "TIMESTAMP {0}", "TIMESTAMPTZ {0}")
        .explain("EXPLAIN (FORMAT JSON) {0}")
        .build()
}

/// Sets the templates of a bucket. `date_trunc` turns a date into an instant, so a date is converted to a timestamp
/// first.
fn time(unit: &str, time: &mut TimeTemplate) {
    time.trunc = format!("date_trunc('{unit}', CAST({{0}} AS TIMESTAMP))");
    let step = if unit == "quarter" { "3 month" } else { unit };
    let step = if unit == "week" { "7 day" } else { step };
    let step = if step == unit { format!("1 {unit}") } else { step.to_owned() };
    time.add = format!("{{0}} + {{1}} * INTERVAL '{step}'");
    let of = |part: &str, hole: &str| format!("EXTRACT({part} FROM {hole})");
    let seconds = |hole: &str| format!("EXTRACT(EPOCH FROM date_trunc('{unit}', {hole}))");
    let days = |hole: &str| format!("CAST(date_trunc('{unit}', {hole}) AS DATE)");
    let whole = |difference: String| format!("CAST({difference} AS BIGINT)");
    let (years, months) = (format!("{} - {}", of("YEAR", "{1}"), of("YEAR", "{0}")), |unit: &str| {
        format!("{} - {}", of(unit, "{1}"), of(unit, "{0}"))
    });
    time.diff = match unit {
        "second" => whole(format!("{} - {}", seconds("{1}"), seconds("{0}"))),
        "minute" => whole(format!("({} - {}) / 60", seconds("{1}"), seconds("{0}"))),
        "hour" => whole(format!("({} - {}) / 3600", seconds("{1}"), seconds("{0}"))),
        "day" => format!("{} - {}", days("{1}"), days("{0}")),
        "week" => format!("({} - {}) / 7", days("{1}"), days("{0}")),
        "month" => whole(format!("({years}) * 12 + {}", months("MONTH"))),
        "quarter" => whole(format!("({years}) * 4 + {}", months("QUARTER"))),
        _ => whole(years),
    };
    time.part = match unit {
        // `EXTRACT(SECOND …)` has a fraction.
        "second" => "CAST(EXTRACT(SECOND FROM date_trunc('second', {0})) AS INTEGER)".to_owned(),
        _ => format!("CAST(EXTRACT({unit} FROM {{0}}) AS INTEGER)"),
    };
}

/// SQLSTATE classes and codes (appendix A). A code is listed before its class.
const ERRORS: &[(Sign, ErrorClass)] = &[
    (Sign::Code("42501"), ErrorClass::Permission),
    (Sign::Code("28"), ErrorClass::Permission),
    (Sign::Code("42601"), ErrorClass::Syntax),
    (Sign::Code("42P01"), ErrorClass::MissingObject),
    (Sign::Code("42703"), ErrorClass::MissingObject),
    (Sign::Code("42883"), ErrorClass::MissingObject),
    (Sign::Code("3F"), ErrorClass::MissingObject),
    (Sign::Code("3D"), ErrorClass::MissingObject),
    (Sign::Message("statement timeout"), ErrorClass::Timeout),
    (Sign::Message("lock timeout"), ErrorClass::Conflict),
    (Sign::Code("57014"), ErrorClass::Cancelled),
    (Sign::Code("57P"), ErrorClass::Connection),
    (Sign::Code("08"), ErrorClass::Connection),
    (Sign::Code("58"), ErrorClass::Connection),
    (Sign::Code("53"), ErrorClass::Quota),
    (Sign::Code("54"), ErrorClass::Quota),
    (Sign::Code("40"), ErrorClass::Conflict),
    (Sign::Code("55P03"), ErrorClass::Conflict),
    (Sign::Code("22"), ErrorClass::Data),
    (Sign::Code("42"), ErrorClass::Syntax),
];

impl Dialect for Postgres {
    const INFO: PluginInfo = PluginInfo::new("dialect-postgres", env!("CARGO_PKG_VERSION"), "PostgreSQL");

    fn profile(_: &CallContext) -> Result<Profile, PluginError> {
        Ok(profile())
    }

    fn classify_error(error: &WarehouseError) -> Classified {
        classify(error, ERRORS)
    }

    fn map_type(native: &str) -> LogicalType {
        if native.ends_with("[]") || native.starts_with('_') {
            return LogicalType::Unknown;
        }
        match base_type(native).as_str() {
            "TEXT" | "VARCHAR" | "CHARACTER VARYING" | "CHAR" | "CHARACTER" | "BPCHAR" | "NAME" | "UUID" | "CITEXT" => {
                LogicalType::Text
            }
            "SMALLINT" | "INTEGER" | "BIGINT" | "INT2" | "INT4" | "INT8" | "SMALLSERIAL" | "SERIAL" | "BIGSERIAL"
            | "OID" => LogicalType::Integer,
            "NUMERIC" | "DECIMAL" => LogicalType::Decimal,
            "REAL" | "DOUBLE PRECISION" | "FLOAT4" | "FLOAT8" => LogicalType::Float,
            "BOOLEAN" | "BOOL" => LogicalType::Boolean,
            "DATE" => LogicalType::Date,
            // In `timestamp(3) with time zone`, the time zone follows the parentheses.
            "TIMESTAMP" if native.to_ascii_lowercase().ends_with("with time zone") => LogicalType::TimestampTz,
            "TIMESTAMP" | "TIMESTAMP WITHOUT TIME ZONE" => LogicalType::Timestamp,
            "TIMESTAMPTZ" | "TIMESTAMP WITH TIME ZONE" => LogicalType::TimestampTz,
            "GEOMETRY" | "GEOGRAPHY" => LogicalType::Geo,
            "BYTEA" => LogicalType::Binary,
            _ => LogicalType::Unknown,
        }
    }
}

terrane_sdk::export_dialect!(Postgres);

#[cfg(test)]
mod tests;
