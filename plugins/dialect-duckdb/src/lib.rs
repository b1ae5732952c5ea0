//! DuckDB's SQL as a list of exceptions to the standard.
//!
//! Out: the profile that the host uses to print SQL. Sources: the manual of DuckDB 1.5 (functions,
//! `duckdb_keywords()`), and the engine's behavior where the manual is silent.

use terrane_sdk::dialect::{
    CaseFolding, Classified, Dialect, ErrorClass, Feature, LogicalType, NullOrder, Op, PlaceholderStyle, Profile,
    ProfileBuilder, WarehouseError,
};
use terrane_sdk::{CallContext, PluginError, PluginInfo};

/// The dialect component.
pub struct DuckDb;

/// The differences from the standard. `/` divides integers to a double, `avg` is a double, sums of integers are HUGEINT
/// and sums of decimals have 38 digits. Strings are compared by code point. `approx_count_distinct` is wrong by up to
/// 25 % in
/// 1.5.6, so the exact count is used.
const OPS: &[(Op, &str)] = &[
    (Op::Contains, "contains({0}, {1})"),
    (Op::StartsWith, "starts_with({0}, {1})"),
    (Op::EndsWith, "ends_with({0}, {1})"),
    (Op::Div, "{0} / NULLIF({1}, 0)"),
    (Op::Modulo, "{0} % {1}"),
    (Op::Concat, "concat({*})"),
    (Op::Avg, "avg({0})"),
    (Op::Percentile, "quantile_cont({0}, {1})"),
];

/// Returns a template for a deviation function. The template returns null if the function would fail: for a NaN or
/// infinite value, or if a square overflows.
fn deviation(function: &str) -> String {
    let has_square = "abs({0}) <= power(10, 150)";
    format!("CASE WHEN bool_and({has_square}) THEN {function}(CASE WHEN {has_square} THEN {{0}} END) END")
}

const TYPES: &[(LogicalType, &str)] = &[
    (LogicalType::Float, "DOUBLE"),
    (LogicalType::TimestampTz, "TIMESTAMPTZ"),
    (LogicalType::Geo, "GEOMETRY"),
    (LogicalType::Binary, "BLOB"),
];

/// The result of `SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category <> 'unreserved'`.
const RESERVED: &str = "\
    all analyse analyze and anti any array as asc asof asymmetric at authorization between bigint binary bit boolean \
    both by case cast char character check coalesce collate collation column columns concurrently constraint create \
    cross dec decimal default deferrable desc describe distinct do else end except exists extract false fetch float \
    for foreign freeze from full generated glob group grouping grouping_id having ilike in initially inner inout int \
    integer intersect interval into is isnull join lambda lateral leading left like limit map national natural nchar \
    none not notnull null nullif numeric offset on only or order out outer overlaps overlay pivot pivot_longer \
    pivot_wider placing position positional precision primary qualify real references returning right row select semi \
    setof show similar smallint some struct substring summarize symmetric table tablesample then time timestamp to \
    trailing treat trim true try_cast union unique unpack unpivot using values varchar variadic verbose when where \
    window with xmlattributes xmlconcat xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot \
    xmlserialize xmltable";

/// Returns the profile. Native tests call this function as well.
pub fn profile() -> Profile {
    ProfileBuilder::ansi("duckdb")
        .quoting(|quoting| {
            quoting.folding = CaseFolding::Keep;
            quoting.max_ident_bytes = 65_535;
        })
        .reserved(RESERVED)
        .placeholders(PlaceholderStyle::DollarN, 65_535)
        .null_order(NullOrder::NullsLast)
        .with_features(Feature::ILIKE | Feature::LATERAL | Feature::QUALIFY | Feature::EXPLAIN_JSON)
        .ops(OPS)
        .op(Op::Stddev, &deviation("stddev_pop"))
        .function("var_pop", 1, &deviation("var_pop"))
        .function("stddev_samp", 1, &deviation("stddev_samp"))
        .function("var_samp", 1, &deviation("var_samp"))
        // A product with more than 38 digits is an error.
        .function("exact_product", 2, "{0} * {1}")
        .function("mask_hash", 1, "sha256(CAST({0} AS VARCHAR))")
        .function("sample_order", 1, "hash({0})")
        .function("mask_partial", 2, "substr({0}, 1, 1) || {1}")
        .times(|unit, time| {
            time.add = format!("{{0}} + INTERVAL ({{1}}) {}", unit.to_uppercase());
            // `date_diff` of two times counts weeks from the first time, not from Monday.
            if unit == "week" {
                time.diff = "date_diff('week', date_trunc('week', {0}), date_trunc('week', {1}))".to_owned();
            }
            time.part = format!("date_part('{unit}', {{0}})");
        })
        .type_names(TYPES)
        .literals("DATE {0}", "TIMESTAMP {0}", "TIMESTAMPTZ {0}")
        .explain("EXPLAIN (FORMAT JSON) {0}")
        .build()
}

/// The kinds of errors, each with its class and the message for the caller. DuckDB's messages begin with the kind.
const ERROR_KINDS: &[(&str, ErrorClass, &str)] = &[
    ("Parser Error", ErrorClass::Syntax, "the warehouse could not parse the statement"),
    ("Binder Error", ErrorClass::MissingObject, "a column or function does not exist in the warehouse"),
    ("Catalog Error", ErrorClass::MissingObject, "a table or function does not exist in the warehouse"),
    ("Permission Error", ErrorClass::Permission, "the warehouse refused access"),
    ("INTERRUPT Error", ErrorClass::Cancelled, "the statement was cancelled"),
    ("Out of Memory Error", ErrorClass::Quota, "the statement needs more memory than it may use"),
    ("TransactionContext Error", ErrorClass::Conflict, "the statement conflicts with another transaction"),
    ("Conversion Error", ErrorClass::Data, "a value in the data does not fit its type"),
    ("Out of Range Error", ErrorClass::Data, "a value in the data is out of range"),
    ("Invalid Input Error", ErrorClass::Data, "a value in the data is invalid for this operation"),
    ("IO Error", ErrorClass::Connection, "the warehouse could not read its data"),
    ("HTTP Error", ErrorClass::Connection, "the warehouse could not read its data"),
];

impl Dialect for DuckDb {
    const INFO: PluginInfo = PluginInfo::new("dialect-duckdb", env!("CARGO_PKG_VERSION"), "DuckDB");

    fn profile(_: &CallContext) -> Result<Profile, PluginError> {
        Ok(profile())
    }

    fn classify_error(error: &WarehouseError) -> Classified {
        let kind = ERROR_KINDS.iter().find(|(prefix, ..)| error.message.starts_with(prefix));
        let (class, message) = kind.map_or((ErrorClass::Other, "the warehouse refused the statement"), |k| (k.1, k.2));
        let retryable = matches!(class, ErrorClass::Conflict);
        Classified { class, retryable, public_message: message.to_owned() }
    }

    fn map_type(native: &str) -> LogicalType {
        // `DECIMAL(18,3)` becomes `DECIMAL`. Lists, structs and maps have no logical type.
        if native.ends_with("[]") {
            return LogicalType::Unknown;
        }
        let name = native.split('(').next().unwrap_or(native).trim();
        match name.to_ascii_uppercase().as_str() {
            "VARCHAR" | "UUID" | "ENUM" | "JSON" => LogicalType::Text,
            "TINYINT" | "SMALLINT" | "INTEGER" | "BIGINT" | "HUGEINT" | "UTINYINT" | "USMALLINT" | "UINTEGER"
            | "UBIGINT" | "UHUGEINT" => LogicalType::Integer,
            "DECIMAL" => LogicalType::Decimal,
            "FLOAT" | "DOUBLE" => LogicalType::Float,
            "BOOLEAN" => LogicalType::Boolean,
            "DATE" => LogicalType::Date,
            "TIMESTAMP" | "TIMESTAMP_S" | "TIMESTAMP_MS" | "TIMESTAMP_NS" => LogicalType::Timestamp,
            "TIMESTAMP WITH TIME ZONE" | "TIMESTAMPTZ" => LogicalType::TimestampTz,
            "GEOMETRY" => LogicalType::Geo,
            "BLOB" => LogicalType::Binary,
            _ => LogicalType::Unknown,
        }
    }
}

terrane_sdk::export_dialect!(DuckDb);

#[cfg(test)]
mod tests;
