//! The templates of the SQL standard, from which a dialect starts.
//!
//! Out: tables as data. A dialect with different SQL replaces an entry; see [`super::ProfileBuilder`].

use super::{Granularity, LogicalType, Op, TimeTemplate};

pub(super) const OPS: &[(Op, &str)] = &[
    (Op::Not, "NOT {0}"),
    (Op::Eq, "{0} = {1}"),
    (Op::Ne, "{0} <> {1}"),
    (Op::Lt, "{0} < {1}"),
    (Op::Le, "{0} <= {1}"),
    (Op::Gt, "{0} > {1}"),
    (Op::Ge, "{0} >= {1}"),
    (Op::NullSafeEq, "{0} IS NOT DISTINCT FROM {1}"),
    (Op::IsNull, "{0} IS NULL"),
    (Op::IsNotNull, "{0} IS NOT NULL"),
    (Op::Contains, "POSITION({1} IN {0}) > 0"),
    (Op::StartsWith, "SUBSTRING({0} FROM 1 FOR CHAR_LENGTH({1})) = {1}"),
    (Op::EndsWith, "SUBSTRING({0} FROM CHAR_LENGTH({0}) - CHAR_LENGTH({1}) + 1) = {1}"),
    (Op::Add, "{0} + {1}"),
    (Op::Sub, "{0} - {1}"),
    (Op::Mul, "{0} * {1}"),
    // In the standard, the quotient of two integers is an integer; the contract requires real division.
    (Op::Div, "CAST({0} AS DOUBLE PRECISION) / NULLIF({1}, 0)"),
    (Op::Modulo, "MOD({0}, {1})"),
    (Op::Negate, "- {0}"),
    (Op::Coalesce, "COALESCE({*})"),
    (Op::Nullif, "NULLIF({0}, {1})"),
    (Op::Cast, "CAST({0} AS {1})"),
    (Op::Collate, "{0}"),
    (Op::CountDistinct, "count(DISTINCT {0})"),
    // An exact result is a valid approximation.
    (Op::ApproxDistinct, "count(DISTINCT {0})"),
    (Op::Sum, "sum({0})"),
    (Op::Avg, "avg(CAST({0} AS DOUBLE PRECISION))"),
    (Op::Min, "min({0})"),
    (Op::Max, "max({0})"),
    (Op::Stddev, "stddev_pop({0})"),
    (Op::Percentile, "percentile_cont({1}) WITHIN GROUP (ORDER BY {0})"),
    (Op::CurrentTimestamp, "CURRENT_TIMESTAMP"),
];

/// The functions that the host calls by name in most engines: the name, the number of arguments and the template.
pub(super) const FUNCTIONS: &[(&str, u32, &str)] =
    &[("var_pop", 1, "var_pop({0})"), ("stddev_samp", 1, "stddev_samp({0})"), ("var_samp", 1, "var_samp({0})")];

/// The templates of `count` by the number of arguments.
pub(super) const COUNTS: &[(u32, &str)] = &[(0, "count(*)"), (1, "count({0})")];

/// The templates of conversions to local time, by the stored type.
pub(super) const TO_TIME_ZONE: &[(LogicalType, &str)] = &[
    (LogicalType::TimestampTz, "{0} AT TIME ZONE {1}"),
    (LogicalType::Timestamp, "({0} AT TIME ZONE 'UTC') AT TIME ZONE {1}"),
];

pub(super) const TYPES: &[(LogicalType, &str)] = &[
    (LogicalType::Text, "VARCHAR"),
    (LogicalType::Integer, "BIGINT"),
    (LogicalType::Decimal, "DECIMAL(38, 9)"),
    (LogicalType::Float, "DOUBLE PRECISION"),
    (LogicalType::Boolean, "BOOLEAN"),
    (LogicalType::Date, "DATE"),
    (LogicalType::Timestamp, "TIMESTAMP"),
    (LogicalType::TimestampTz, "TIMESTAMP WITH TIME ZONE"),
    (LogicalType::Binary, "VARBINARY"),
];

/// The words of SQL:2016 that are reserved in most engines.
pub(super) const RESERVED: &str = "\
    all and any array as asc asymmetric at authorization between both by case cast check collate column constraint \
    create cross current_date current_time current_timestamp current_user default desc distinct do else end except \
    exists extract false fetch for foreign from full grant group having in inner intersect interval into is join \
    lateral leading left like limit localtime localtimestamp natural not null offset on only or order outer overlaps \
    position primary references returning right row select session_user set similar some symmetric table \
    tablesample then to trailing true union unique unnest update user using values when where window with";

pub(super) const GRANULARITIES: [Granularity; 8] = [
    Granularity::Second,
    Granularity::Minute,
    Granularity::Hour,
    Granularity::Day,
    Granularity::Week,
    Granularity::Month,
    Granularity::Quarter,
    Granularity::Year,
];

/// Returns the granularity's name in SQL.
pub(super) fn unit(granularity: Granularity) -> &'static str {
    match granularity {
        Granularity::Second => "second",
        Granularity::Minute => "minute",
        Granularity::Hour => "hour",
        Granularity::Day => "day",
        Granularity::Week => "week",
        Granularity::Month => "month",
        Granularity::Quarter => "quarter",
        Granularity::Year => "year",
    }
}

/// Returns whether the granularity is an hour or finer.
pub(super) fn is_sub_day(granularity: Granularity) -> bool {
    matches!(granularity, Granularity::Second | Granularity::Minute | Granularity::Hour)
}

/// Returns templates with `date_trunc`, which is not in the standard but in most engines, and with intervals of
/// standard units.
pub(super) fn time(granularity: Granularity) -> TimeTemplate {
    let name = unit(granularity);
    let step = match granularity {
        Granularity::Week => "INTERVAL '7' DAY".to_owned(),
        Granularity::Quarter => "INTERVAL '3' MONTH".to_owned(),
        _ => format!("INTERVAL '1' {}", name.to_uppercase()),
    };
    TimeTemplate {
        granularity,
        trunc: format!("date_trunc('{name}', {{0}})"),
        trunc_instant: is_sub_day(granularity).then(|| format!("{{0}} - ({{1}} - date_trunc('{name}', {{1}}))")),
        add: format!("{{0}} + {{1}} * {step}"),
        diff: format!("date_diff('{name}', {{0}}, {{1}})"),
        part: format!("EXTRACT({name} FROM {{0}})"),
        label: None,
    }
}
