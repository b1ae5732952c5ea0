//! Bare words for units of time in calls: `date_trunc(day, created_at)`.

/// Returns whether an argument of the function may be a bare word such as `day`. The function's name is in lower case.
pub fn takes_unit(function: &str) -> bool {
    TAKES_UNIT.contains(&function)
}

/// Functions whose first or last argument may be a bare word such as `day`, in lower case.
const TAKES_UNIT: &[&str] = &[
    "date_add",
    "date_diff",
    "date_part",
    "date_sub",
    "date_trunc",
    "dateadd",
    "datediff",
    "datename",
    "datepart",
    "datetime_add",
    "datetime_diff",
    "datetime_sub",
    "datetime_trunc",
    "last_day",
    "time_diff",
    "time_trunc",
    "timestamp_add",
    "timestamp_diff",
    "timestamp_sub",
    "timestamp_trunc",
    "timestampadd",
    "timestampdiff",
];

/// Returns whether a word names a unit of time, such as `day` or `days`.
pub fn is_unit(word: &str) -> bool {
    const UNITS: &[&str] = &[
        "microsecond",
        "millisecond",
        "second",
        "minute",
        "hour",
        "day",
        "dayofweek",
        "dayofyear",
        "week",
        "isoweek",
        "month",
        "quarter",
        "year",
        "isoyear",
        "decade",
        "century",
    ];
    let lower = word.to_ascii_lowercase();
    UNITS.contains(&lower.as_str()) || UNITS.contains(&lower.trim_end_matches('s'))
}
