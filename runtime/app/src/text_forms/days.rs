//! Forms of dates and timestamps.
//!
//! A pattern matches only days that exist, so that no value ends its conversion with an error: 2024-02-30 does not
//! match.

use super::TextForm;

/// A leap year, with four digits or with the last two.
macro_rules! leap {
    (4) => {
        "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)"
    };
    (2) => {
        "([02468][048]|[13579][26])"
    };
}

/// A day such as 2024-01-31.
macro_rules! iso_day {
    () => {
        concat!(
            "([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)\
             |02-(0[1-9]|1[0-9]|2[0-8]))|",
            leap!(4),
            "-02-29)"
        )
    };
}

/// A day with the year first and any separator. The zero before a digit may be absent.
macro_rules! year_first {
    ($separator:literal) => {
        concat!(
            "([0-9]{4}",
            $separator,
            "((0?[1-9]|1[0-2])",
            $separator,
            "(0?[1-9]|1[0-9]|2[0-8])|(0?[13-9]|1[0-2])",
            $separator,
            "(29|30)|(0?[13578]|1[02])",
            $separator,
            "31)|",
            leap!(4),
            $separator,
            "0?2",
            $separator,
            "29)"
        )
    };
}

/// A day with the day first, the separator between its parts, and a year of `$digits` digits.
macro_rules! day_first {
    ($separator:literal, $digits:tt) => {
        concat!(
            "(((0?[1-9]|1[0-9]|2[0-8])",
            $separator,
            "(0?[1-9]|1[0-2])|(29|30)",
            $separator,
            "(0?[13-9]|1[0-2])|31",
            $separator,
            "(0?[13578]|1[02]))",
            $separator,
            "[0-9]{",
            $digits,
            "}|29",
            $separator,
            "0?2",
            $separator,
            leap!($digits),
            ")"
        )
    };
}

/// The same with the month first.
macro_rules! month_first {
    ($separator:literal, $digits:tt) => {
        concat!(
            "(((0?[1-9]|1[0-2])",
            $separator,
            "(0?[1-9]|1[0-9]|2[0-8])|(0?[13-9]|1[0-2])",
            $separator,
            "(29|30)|(0?[13578]|1[02])",
            $separator,
            "31)",
            $separator,
            "[0-9]{",
            $digits,
            "}|0?2",
            $separator,
            "29",
            $separator,
            leap!($digits),
            ")"
        )
    };
}

/// Names of months: those with 31 days, the others except February, and February.
macro_rules! months {
    (31, short) => {
        "[Jj][Aa][Nn]|[Mm][Aa][RrYy]|[Jj][Uu][Ll]|[Aa][Uu][Gg]|[Oo][Cc][Tt]|[Dd][Ee][Cc]"
    };
    (30, short) => {
        "[Aa][Pp][Rr]|[Jj][Uu][Nn]|[Ss][Ee][Pp]|[Nn][Oo][Vv]"
    };
    (28, short) => {
        "[Ff][Ee][Bb]"
    };
    (31, long) => {
        "[Jj]anuary|[Mm]arch|[Mm]ay|[Jj]uly|[Aa]ugust|[Oo]ctober|[Dd]ecember"
    };
    (30, long) => {
        "[Aa]pril|[Jj]une|[Ss]eptember|[Nn]ovember"
    };
    (28, long) => {
        "[Ff]ebruary"
    };
}

/// A day such as 05-Jan-2024 or 5 January 2024.
macro_rules! day_and_name {
    ($names:tt, $digits:tt) => {
        concat!(
            "((0?[1-9]|1[0-9]|2[0-8])[-/ ](",
            months!(31, $names),
            "|",
            months!(30, $names),
            "|",
            months!(28, $names),
            ")|(29|30)[-/ ](",
            months!(31, $names),
            "|",
            months!(30, $names),
            ")|31[-/ ](",
            months!(31, $names),
            "))[-/ ][0-9]{",
            $digits,
            "}|29[-/ ]",
            months!(28, $names),
            "[-/ ]",
            leap!($digits)
        )
    };
}

/// A day such as Jan 3, 2024 or January 3 2024.
macro_rules! name_and_day {
    ($names:tt) => {
        concat!(
            "((",
            months!(31, $names),
            "|",
            months!(30, $names),
            "|",
            months!(28, $names),
            ") (0?[1-9]|1[0-9]|2[0-8])|(",
            months!(31, $names),
            "|",
            months!(30, $names),
            ") (29|30)|(",
            months!(31, $names),
            ") 31),? [0-9]{4}|",
            months!(28, $names),
            " 29,? ",
            leap!(4)
        )
    };
}

/// A time of day after a day.
macro_rules! time {
    () => {
        "[ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,9})?)?"
    };
}

/// A time of day behind a day, whose hour may have one digit.
macro_rules! short_time {
    () => {
        " ([01]?[0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,9})?)?"
    };
}

/// A time of day with AM or PM.
macro_rules! half_day_time {
    () => {
        " (0?[1-9]|1[0-2]):[0-5][0-9](:[0-5][0-9])? [AaPp][Mm]"
    };
}

/// The SQL of a day in the form of ISO 8601, from the parts of another form with their positions.
macro_rules! iso {
    ($column:literal, $separator:literal, $year:literal, $month:literal, $day:literal) => {
        concat!(
            "split_part(",
            $column,
            ", '",
            $separator,
            "', ",
            $year,
            ") || '-' || split_part(",
            $column,
            ", '",
            $separator,
            "', ",
            $month,
            ") || '-' || split_part(",
            $column,
            ", '",
            $separator,
            "', ",
            $day,
            ")"
        )
    };
}

macro_rules! date_sql {
    ($separator:literal, $month:literal, $day:literal) => {
        concat!("CAST(", iso!("$column", $separator, 3, $month, $day), " AS DATE)")
    };
}

/// The conversion of a day with a year of two digits.
macro_rules! short_year_sql {
    ($separator:literal, $month:literal, $day:literal) => {
        concat!(
            "CAST(CASE WHEN split_part($column, '",
            $separator,
            "', 3) < '70' THEN '20' ELSE '19' END || ",
            iso!("$column", $separator, 3, $month, $day),
            " AS DATE)"
        )
    };
}

macro_rules! timestamp_sql {
    ($separator:literal, $month:literal, $day:literal) => {
        concat!(
            "CAST(",
            iso!("split_part($column, ' ', 1)", $separator, 3, $month, $day),
            " || ' ' || split_part($column, ' ', 2) AS TIMESTAMP)"
        )
    };
}

/// The conversion of a timestamp with AM or PM on PostgreSQL.
macro_rules! half_day_sql {
    ($month:literal, $day:literal) => {
        concat!(
            "CAST(",
            iso!("split_part($column, ' ', 1)", "/", 3, $month, $day),
            " || ' ' || split_part($column, ' ', 2) || ' ' || split_part($column, ' ', 3) AS TIMESTAMP)"
        )
    };
}

const IF_MONTH: &str = "the month is first";
const IF_DAY: &str = "the day is first";
const CENTURY: &str = "years below 70 count as 2000 to 2069, and the others as 1970 to 1999";

const MONTH_FIRST: &str = "dates with the month first";
const MONTH_FIRST_HYPHENS: &str = "dates with hyphens and the month first";
const MONTH_FIRST_SHORT: &str = "dates with the month first and years of two digits";
const MONTH_FIRST_TIMES: &str = "timestamps with the month first";
const MONTH_FIRST_HYPHEN_TIMES: &str = "timestamps with hyphens and the month first";
const DAY_FIRST_HALF_DAYS: &str = "timestamps with AM or PM and the day first";

const fn time(what: &'static str, pattern: &'static str, sql: &'static str) -> TextForm {
    TextForm::new(what, false, pattern, sql)
}

/// The forms of ISO 8601 without a time zone.
pub(super) const ISO: [TextForm; 2] = [
    time("dates", iso_day!(), "CAST($column AS DATE)"),
    time("timestamps", concat!(iso_day!(), time!()), "CAST($column AS TIMESTAMP)"),
];

pub(super) const DAYS: [TextForm; 23] = [
    time(
        "timestamps with a time zone",
        concat!(iso_day!(), time!(), "(Z|[-+]([01][0-9]|2[0-3])(:?[0-5][0-9])?)"),
        "CAST($column AS TIMESTAMP WITH TIME ZONE)",
    ),
    time("dates with the year first", year_first!("[-/.]"), "CAST(translate($column, '/.', '--') AS DATE)"),
    time(
        "timestamps with the year first",
        concat!(year_first!("[-/]"), short_time!()),
        "CAST(replace($column, '/', '-') AS TIMESTAMP)",
    ),
    time("dates with points", day_first!("[.]", 4), date_sql!(".", 2, 1)),
    time("dates with the day first", day_first!("/", 4), date_sql!("/", 2, 1)).or(MONTH_FIRST, IF_MONTH),
    time(MONTH_FIRST, month_first!("/", 4), date_sql!("/", 1, 2)),
    time("dates with hyphens and the day first", day_first!("-", 4), date_sql!("-", 2, 1))
        .or(MONTH_FIRST_HYPHENS, IF_MONTH),
    time(MONTH_FIRST_HYPHENS, month_first!("-", 4), date_sql!("-", 1, 2)),
    time("dates with points and years of two digits", day_first!("[.]", 2), short_year_sql!(".", 2, 1)).caveat(CENTURY),
    time("dates with the day first and years of two digits", day_first!("/", 2), short_year_sql!("/", 2, 1))
        .or(MONTH_FIRST_SHORT, IF_MONTH)
        .caveat(CENTURY),
    time(MONTH_FIRST_SHORT, month_first!("/", 2), short_year_sql!("/", 1, 2)).caveat(CENTURY),
    time("timestamps with points", concat!(day_first!("[.]", 4), short_time!()), timestamp_sql!(".", 2, 1)),
    time("timestamps with the day first", concat!(day_first!("/", 4), short_time!()), timestamp_sql!("/", 2, 1))
        .or(MONTH_FIRST_TIMES, IF_MONTH),
    time(MONTH_FIRST_TIMES, concat!(month_first!("/", 4), short_time!()), timestamp_sql!("/", 1, 2)),
    time(
        "timestamps with hyphens and the day first",
        concat!(day_first!("-", 4), short_time!()),
        timestamp_sql!("-", 2, 1),
    )
    .or(MONTH_FIRST_HYPHEN_TIMES, IF_MONTH),
    time(MONTH_FIRST_HYPHEN_TIMES, concat!(month_first!("-", 4), short_time!()), timestamp_sql!("-", 1, 2)),
    // Countries that write AM and PM mostly write the month first.
    time(
        "timestamps with AM or PM and the month first",
        concat!(month_first!("/", 4), half_day_time!()),
        "coalesce(try_strptime($column, '%m/%d/%Y %I:%M %p'), try_strptime($column, '%m/%d/%Y %I:%M:%S %p'))",
    )
    .on_postgres(half_day_sql!(1, 2))
    .or(DAY_FIRST_HALF_DAYS, IF_DAY),
    time(
        DAY_FIRST_HALF_DAYS,
        concat!(day_first!("/", 4), half_day_time!()),
        "coalesce(try_strptime($column, '%d/%m/%Y %I:%M %p'), try_strptime($column, '%d/%m/%Y %I:%M:%S %p'))",
    )
    .on_postgres(half_day_sql!(2, 1)),
    time(
        "dates with short names of months",
        day_and_name!(short, 4),
        "CAST(strptime(translate($column, '-/', '  '), '%d %b %Y') AS DATE)",
    )
    .on_postgres("to_date(translate($column, '-/', '  '), 'DD Mon YYYY')"),
    time(
        "dates with names of months",
        day_and_name!(long, 4),
        "CAST(strptime(translate($column, '-/', '  '), '%d %B %Y') AS DATE)",
    )
    .on_postgres("to_date(translate($column, '-/', '  '), 'DD Month YYYY')"),
    time(
        "dates with short names of months and years of two digits",
        day_and_name!(short, 2),
        "CAST(strptime(translate($column, '-/', '  '), '%d %b %y') AS DATE)",
    )
    .on_postgres("to_date(translate($column, '-/', '  '), 'DD Mon YY')")
    .caveat("years below 69 count as 2000 to 2068, and those from 70 as 1970 to 1999"),
    time(
        "dates with a short name of the month first",
        name_and_day!(short),
        "CAST(strptime(replace($column, ',', ''), '%b %d %Y') AS DATE)",
    )
    .on_postgres("to_date(replace($column, ',', ''), 'Mon DD YYYY')"),
    time(
        "dates with the name of the month first",
        name_and_day!(long),
        "CAST(strptime(replace($column, ',', ''), '%B %d %Y') AS DATE)",
    )
    .on_postgres("to_date(replace($column, ',', ''), 'Month DD YYYY')"),
];
