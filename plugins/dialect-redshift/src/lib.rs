//! Amazon Redshift's SQL as a list of exceptions to the standard.
//!
//! Out: the profile that the host uses to print SQL. Source: the Redshift developer guide (functions, reserved words,
//! names and identifiers). Redshift uses PostgreSQL's protocol but not its SQL: it has no FILTER clause and no IS NOT
//! DISTINCT FROM, and a backslash in a string is an escape.

use terrane_sdk::dialect::{
    CaseFolding, Classified, Dialect, ErrorClass, Feature, LogicalType, Op, PlaceholderStyle, Profile, ProfileBuilder,
    Sign, TimeTemplate, WarehouseError, base_type, classify,
};
use terrane_sdk::{CallContext, PluginError, PluginInfo};

/// The dialect component.
pub struct Redshift;

/// Sums of BIGINT are NUMERIC(38, 0), sums of decimals have 38 digits.
const OPS: &[(Op, &str)] = &[
    (Op::NullSafeEq, "COALESCE({0} = {1}, ({0} IS NULL) AND ({1} IS NULL))"),
    (Op::Contains, "STRPOS({0}, {1}) > 0"),
    (Op::StartsWith, "LEFT({0}, LEN({1})) = {1}"),
    (Op::EndsWith, "RIGHT({0}, LEN({1})) = {1}"),
    (Op::Modulo, "{0} % {1}"),
    (Op::Collate, "COLLATE({0}, 'case_sensitive')"),
    (Op::CurrentTimestamp, "GETDATE()"),
];

const TYPES: &[(LogicalType, &str)] = &[
    // Without a length, a cast would truncate the string to 256 bytes.
    (LogicalType::Text, "VARCHAR(65535)"),
    (LogicalType::TimestampTz, "TIMESTAMPTZ"),
    (LogicalType::Geo, "GEOMETRY"),
    (LogicalType::Binary, "VARBYTE"),
];

/// "Reserved words" of the developer guide, and words that parsers of this SQL treat as keywords. Quoting more words
/// than necessary is harmless.
const RESERVED: &str = "\
    aes128 aes256 all allowoverwrite alter analyse analyze and any array as asc authorization az64 backup between \
    binary blanksasnull both bytedict bzip2 case cast check collate column connect constraint create credentials \
    cross current_date current_time current_timestamp current_user current_user_id default deferrable deflate defrag \
    delete delta delta32k desc disable distinct do drop else emptyasnull enable encode encrypt encryption end except \
    explicit false fetch for foreign freeze from full glob globaldict256 globaldict64k grant group gzip having \
    identity ignore ilike in initially inner insert intersect interval into is isnull join lateral leading left like \
    limit localtime localtimestamp lun luns lzo lzop minus mostly16 mostly32 mostly8 natural new not notnull null \
    nulls off offline offset oid old on only open or order outer overlaps parallel partition percent permissions \
    pivot placing primary qualify raw readratio recover references regexp rejectlog resort respect restore returning \
    revoke right rlike rollback select session_user similar snapshot some sysdate system table tablesample tag tdes \
    text255 text32k then timestamp to top trailing true truncatecolumns union unique unnest unpivot update user using \
    variadic verbose wallet when where with without xor";

/// Returns the profile. Native tests call this function as well.
pub fn profile() -> Profile {
    ProfileBuilder::ansi("redshift")
        .quoting(|quoting| {
            quoting.string_escape_backslash = true;
            quoting.folding = CaseFolding::ToLower;
            quoting.max_ident_bytes = 127;
        })
        .reserved(RESERVED)
        .placeholders(PlaceholderStyle::DollarN, 32_767)
        .without_features(Feature::FILTER_CLAUSE)
        .with_features(Feature::ILIKE | Feature::QUALIFY)
        .ops(OPS)
        .function("mask_hash", 1, "SHA2({0}, 256)")
        .function("sample_order", 1, "FNV_HASH({0})")
        .function("mask_partial", 2, "SUBSTRING({0}, 1, 1) || {1}")
        .op_for(Op::Max, LogicalType::Boolean, "bool_or({0})")
        .op_for(Op::Min, LogicalType::Boolean, "bool_and({0})")
        .times(time)
        .type_names(TYPES)
        .literals("DATE {0}", "TIMESTAMP {0}", "TIMESTAMPTZ {0}")
        .explain("EXPLAIN {0}")
        .build()
}

/// Sets the templates of a unit. `DATEDIFF` counts weeks from Sundays, so weeks are counted in days.
fn time(unit: &str, time: &mut TimeTemplate) {
    time.add = format!("DATEADD({unit}, CAST({{1}} AS INTEGER), {{0}})");
    time.diff = match unit {
        "week" => "DATEDIFF(day, DATE_TRUNC('week', {0}), DATE_TRUNC('week', {1})) / 7".to_owned(),
        _ => format!("DATEDIFF({unit}, {{0}}, {{1}})"),
    };
    time.part = format!("CAST(DATE_PART({unit}, {{0}}) AS INTEGER)");
    if unit == "second" {
        time.part = "CAST(DATE_PART(second, DATE_TRUNC('second', {0})) AS INTEGER)".to_owned();
    }
}

/// SQLSTATE classes and codes, which are PostgreSQL's. A code is listed before its class.
const ERRORS: &[(Sign, ErrorClass)] = &[
    (Sign::Code("42501"), ErrorClass::Permission),
    (Sign::Code("28"), ErrorClass::Permission),
    (Sign::Code("42601"), ErrorClass::Syntax),
    (Sign::Code("42P01"), ErrorClass::MissingObject),
    (Sign::Code("42703"), ErrorClass::MissingObject),
    (Sign::Code("42883"), ErrorClass::MissingObject),
    (Sign::Code("3F"), ErrorClass::MissingObject),
    (Sign::Message("statement timeout"), ErrorClass::Timeout),
    (Sign::Code("57014"), ErrorClass::Cancelled),
    (Sign::Code("57P"), ErrorClass::Connection),
    (Sign::Code("08"), ErrorClass::Connection),
    (Sign::Code("53"), ErrorClass::Quota),
    (Sign::Message("disk full"), ErrorClass::Quota),
    (Sign::Message("serializable isolation violation"), ErrorClass::Conflict),
    (Sign::Code("40"), ErrorClass::Conflict),
    (Sign::Code("22"), ErrorClass::Data),
    (Sign::Code("42"), ErrorClass::Syntax),
];

impl Dialect for Redshift {
    const INFO: PluginInfo = PluginInfo::new("dialect-redshift", env!("CARGO_PKG_VERSION"), "Amazon Redshift");

    fn profile(_: &CallContext) -> Result<Profile, PluginError> {
        Ok(profile())
    }

    fn classify_error(error: &WarehouseError) -> Classified {
        classify(error, ERRORS)
    }

    fn map_type(native: &str) -> LogicalType {
        match base_type(native).as_str() {
            "VARCHAR" | "CHARACTER VARYING" | "NVARCHAR" | "TEXT" | "CHAR" | "CHARACTER" | "BPCHAR" => {
                LogicalType::Text
            }
            "SMALLINT" | "INTEGER" | "BIGINT" | "INT2" | "INT4" | "INT8" => LogicalType::Integer,
            "NUMERIC" | "DECIMAL" => LogicalType::Decimal,
            "REAL" | "DOUBLE PRECISION" | "FLOAT4" | "FLOAT8" => LogicalType::Float,
            "BOOLEAN" | "BOOL" => LogicalType::Boolean,
            "DATE" => LogicalType::Date,
            "TIMESTAMP" | "TIMESTAMP WITHOUT TIME ZONE" => LogicalType::Timestamp,
            "TIMESTAMPTZ" | "TIMESTAMP WITH TIME ZONE" => LogicalType::TimestampTz,
            "GEOMETRY" | "GEOGRAPHY" => LogicalType::Geo,
            "VARBYTE" | "VARBINARY" => LogicalType::Binary,
            _ => LogicalType::Unknown,
        }
    }
}

terrane_sdk::export_dialect!(Redshift);

#[cfg(test)]
mod tests;
