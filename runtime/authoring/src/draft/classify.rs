//! Decides which measures a column of numbers gets.
//!
//! In: a column's name, type and statistics. Out: whether sums and averages are drafted, and their format. Keys, codes,
//! years, flags and coordinates become dimensions. In doubt a measure is drafted, since removing a measure is easier
//! than noticing that it is missing.

use super::column_kind::ColumnKind;
use super::table::{Column, Table};
use crate::names::{singular, snake};

/// The measures of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct DraftMeasures {
    pub(super) sum: bool,
    pub(super) average: bool,
    pub(super) format: Option<&'static str>,
}

/// The last words of the names of columns whose numbers are labels, positions in an order, or parts of a date.
const LABELS: &[&str] = &[
    "id",
    "ids",
    "key",
    "code",
    "no",
    "nr",
    "number",
    "num",
    "zip",
    "zipcode",
    "postcode",
    "postal",
    "phone",
    "fax",
    "year",
    "yr",
    "month",
    "day",
    "hour",
    "minute",
    "second",
    "week",
    "quarter",
    "weekday",
    "dow",
    "doy",
    "date",
    "lat",
    "latitude",
    "lon",
    "lng",
    "long",
    "longitude",
    "coordinate",
    "x",
    "y",
    "z",
    "flag",
    "version",
    "seq",
    "sequence",
    "pos",
    "position",
    "rank",
    "order",
    "sort",
    "index",
    "idx",
    "line",
    "row",
    "status",
    "state",
    "type",
    "kind",
    "class",
    "category",
    "level",
    "priority",
    "tier",
    "fips",
    "isbn",
    "ean",
    "upc",
    "gtin",
    "sku",
    "ssn",
    "hash",
    "port",
    "tz",
    "timezone",
    "offset",
    "epoch",
    "timestamp",
    "ts",
    "at",
    "batch",
    "serial",
    "channel",
    "dir",
    "direction",
    "degrees",
    "heading",
    "bearing",
    "group",
    "segment",
    "cluster",
    "bucket",
    "generation",
];
/// The first words of the names of flags.
const FLAGS: &[&str] = &["is", "has", "was", "can", "did", "should"];
/// The first words of the names of counts.
const COUNTS: &[&str] = &["num", "n", "number", "count", "total", "nb", "qty"];
/// The last words of the names of numbers whose sum has no meaning.
const RATES: &[&str] = &[
    "price",
    "rate",
    "ratio",
    "pct",
    "percent",
    "percentage",
    "share",
    "score",
    "rating",
    "stars",
    "age",
    "temperature",
    "temp",
    "dewp",
    "humidity",
    "humid",
    "pressure",
    "speed",
    "velocity",
    "gust",
    "altitude",
    "alt",
    "elevation",
    "height",
    "width",
    "depth",
    "size",
    "average",
    "avg",
    "mean",
    "median",
    "probability",
    "confidence",
    "visibility",
    "visib",
    "msrp",
    "salary",
    "tenure",
    "density",
    "factor",
    "multiplier",
    "per",
];
/// Words for parts of a whole. They may be at any position in a name: the sum of `percent_off` has no meaning.
const PARTS: &[&str] = &["pct", "percent", "percents", "percentage", "percentages", "ratio", "ratios", "share"];
/// The last words of the names of columns with numbers from 0 to 1.
const PERCENTS: &[&str] = &["ratio", "share", "probability", "rate"];
/// Words for amounts of money.
const MONEY: &[&str] = &[
    "price", "amount", "revenue", "cost", "costs", "fee", "fees", "tax", "taxes", "subtotal", "sales", "payment",
    "payments", "salary", "profit", "spend", "spending", "charge", "charges", "fare", "refund", "refunds", "discount",
    "msrp", "gmv", "turnover", "income", "expense", "expenses", "budget", "balance", "usd", "eur", "gbp",
];
/// Words that show that a column is not an amount in the unit of the currency, although its name has a word for money.
const NO_MONEY: &[&str] =
    &["rate", "ratio", "pct", "percent", "percentage", "count", "qty", "quantity", "cents", "score", "index", "days"];

/// The meaning of a column's numbers, with the reason for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NumberRole {
    /// The column has no numbers, or they are keys.
    None,
    /// The numbers are labels.
    Label(String),
    /// The sum of the numbers has no meaning.
    Rate(String),
    /// The numbers are parts of 1.
    Share,
    Amount,
}

pub(super) fn classify(table: &Table, at: usize) -> DraftMeasures {
    let format = format(&words_of(&table.columns[at].name).iter().map(String::as_str).collect::<Vec<_>>());
    match role(table, at) {
        NumberRole::None | NumberRole::Label(_) => DraftMeasures::default(),
        NumberRole::Share => DraftMeasures { sum: false, average: true, format: Some("percent") },
        NumberRole::Rate(_) => DraftMeasures { sum: false, average: true, format },
        NumberRole::Amount => DraftMeasures { sum: true, average: true, format },
    }
}

fn words_of(name: &str) -> Vec<String> {
    snake(name).split('_').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn format(words: &[&str]) -> Option<&'static str> {
    let is_money = words.iter().any(|word| MONEY.contains(word)) && !words.iter().any(|word| NO_MONEY.contains(word));
    is_money.then_some("currency")
}

/// Returns the role of a column's numbers.
pub(super) fn role(table: &Table, at: usize) -> NumberRole {
    let column = &table.columns[at];
    let words = words_of(&column.name);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let is_part_of_key = table.key.contains(&at) || table.references.iter().any(|r| r.columns.contains(&at));
    if !column.kind.is_number() || is_part_of_key {
        return NumberRole::None;
    }
    // The numbers of a column with the name of its table are labels: `flights.flight` is the number of a flight.
    if snake(&column.name) == singular(&snake(&table.name)) {
        return NumberRole::Label("it has the name of its table".to_owned());
    }
    if let Some(reason) = label_reason(column, &words) {
        return NumberRole::Label(reason);
    }
    let last = words.last().copied().unwrap_or_default();
    let is_share =
        column.statistics.as_ref().is_some_and(|s| s.min >= 0.0 && s.max <= 1.0) && column.kind != ColumnKind::Integer;
    if is_share && (last == "discount" || PERCENTS.contains(&last)) {
        return NumberRole::Share;
    }
    let is_count = COUNTS.contains(&last) || last == "quantity";
    // `share_of_total` ends in a word for counts, but it is a part of a whole.
    let part = words.iter().find(|word| PARTS.contains(word)).filter(|_| !is_count || last == "total");
    let rate = Some(&last).filter(|last| RATES.contains(*last)).or(part);
    match rate.or(words.iter().find(|word| **word == "per")) {
        Some(word) => NumberRole::Rate(format!("its name has the word `{word}`")),
        None => NumberRole::Amount,
    }
}

/// Returns whether a name implies that its numbers are labels, such as `zip_code` and `is_paid`.
pub(super) fn is_label_name(name: &str) -> bool {
    let name = snake(name);
    let words: Vec<&str> = name.split('_').filter(|word| !word.is_empty()).collect();
    label_word(&words).is_some()
}

/// Returns the reason for which the words of a name imply labels.
fn label_word(words: &[&str]) -> Option<String> {
    let (first, last) = (words.first().copied().unwrap_or_default(), words.last().copied().unwrap_or_default());
    if FLAGS.contains(&first) {
        return Some(format!("its name begins with `{first}`"));
    }
    let is_label = LABELS.contains(&last) && !(words.len() > 1 && COUNTS.contains(&first));
    is_label.then(|| match words.len() {
        1 => "by its name".to_owned(),
        _ => format!("its name ends in `{last}`"),
    })
}

/// Returns the reason for which the numbers of a column are labels, if they are.
fn label_reason(column: &Column, words: &[&str]) -> Option<String> {
    let last = words.last().copied().unwrap_or_default();
    if let Some(reason) = label_word(words) {
        return Some(reason);
    }
    let numbers = column.statistics.as_ref().filter(|_| column.kind == ColumnKind::Integer)?;
    let is_flag = numbers.distinct <= 2 && numbers.min >= 0.0 && numbers.max <= 1.0;
    let is_year = (words.contains(&"year") || words.contains(&"yr")) && numbers.min >= 1000.0 && numbers.max <= 2999.0;
    // A clock time may be a number, such as 1745 for 17:45. Its last two digits never exceed 59, unlike the last two
    // digits of counts and durations.
    let is_clock = last == "time"
        && numbers.min >= 0.0
        && numbers.max > 100.0
        && numbers.max <= 2400.0
        && numbers.max_last_digits.is_some_and(|digits| digits < 60.0);
    let reasons = [
        (is_flag, "only 0 and 1 occur"),
        (is_year, "its values are years"),
        (is_clock, "its values are clock times, such as 1745"),
    ];
    reasons.iter().find(|(holds, _)| *holds).map(|(_, reason)| (*reason).to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::table::{Evidence, Statistics};
    use super::*;

    fn of(table: &str, name: &str, kind: ColumnKind, statistics: Option<(f64, f64, f64)>) -> String {
        let statistics = statistics.map(|(min, max, digits)| Statistics {
            values: 100,
            distinct: if max - min <= 1.0 { 2 } else { 50 },
            min,
            max,
            max_last_digits: Some(digits),
        });
        let column = Column {
            name: name.to_owned(),
            type_name: String::new(),
            kind,
            is_nullable: true,
            comment: None,
            note: None,
            statistics,
        };
        let table = Table {
            schema: "main".to_owned(),
            name: table.to_owned(),
            comment: None,
            columns: vec![column],
            key: Vec::new(),
            key_evidence: Evidence::Declared,
            unique: Vec::new(),
            references: Vec::new(),
        };
        let DraftMeasures { sum, average, format } = classify(&table, 0);
        let mut words: Vec<&str> = Vec::new();
        words.extend(sum.then_some("sum"));
        words.extend(average.then_some("avg"));
        words.extend(format);
        words.join(" ")
    }

    #[test]
    fn sums_are_drafted_for_additive_columns() {
        let cases = [
            ("orders", "amount", ColumnKind::Decimal, None, "sum avg currency"),
            ("orders", "totalRevenue", ColumnKind::Float, None, "sum avg currency"),
            ("orders", "quantity", ColumnKind::Integer, Some((1.0, 9.0, 9.0)), "sum avg"),
            ("orders", "unit_price", ColumnKind::Decimal, None, "avg currency"),
            ("orders", "tax_rate", ColumnKind::Float, Some((0.0, 0.25, 0.0)), "avg percent"),
            ("orders", "discount", ColumnKind::Float, Some((0.0, 0.4, 0.0)), "avg percent"),
            ("orders", "discount", ColumnKind::Decimal, Some((0.0, 40.0, 0.0)), "sum avg currency"),
            ("orders", "percent_off", ColumnKind::Float, None, "avg"),
            ("orders", "share_of_total", ColumnKind::Float, None, "avg"),
            ("orders", "percent_count", ColumnKind::Integer, None, "sum avg"),
            ("orders", "amount_cents", ColumnKind::Integer, None, "sum avg"),
            ("orders", "line_number", ColumnKind::Integer, None, ""),
            ("orders", "number_of_items", ColumnKind::Integer, None, "sum avg"),
            ("orders", "zip_code", ColumnKind::Integer, None, ""),
            ("orders", "is_paid", ColumnKind::Integer, None, ""),
            ("orders", "rush", ColumnKind::Integer, Some((0.0, 1.0, 1.0)), ""),
            ("orders", "status", ColumnKind::Integer, None, ""),
            ("orders", "created_at", ColumnKind::Integer, None, ""),
            ("flights", "flight", ColumnKind::Integer, None, ""),
            ("flights", "dep_time", ColumnKind::Integer, Some((1.0, 2400.0, 59.0)), ""),
            ("flights", "air_time", ColumnKind::Integer, Some((20.0, 695.0, 99.0)), "sum avg"),
            ("flights", "dep_delay", ColumnKind::Float, None, "sum avg"),
            ("planes", "year_built", ColumnKind::Integer, Some((1956.0, 2013.0, 99.0)), ""),
            ("planes", "seats", ColumnKind::Integer, Some((2.0, 450.0, 99.0)), "sum avg"),
            ("airports", "lat", ColumnKind::Float, None, ""),
            ("airports", "alt", ColumnKind::Integer, None, "avg"),
            ("weather", "wind_dir", ColumnKind::Integer, None, ""),
            ("weather", "wind_speed", ColumnKind::Float, None, "avg"),
            ("weather", "precip", ColumnKind::Float, None, "sum avg"),
            ("customers", "name", ColumnKind::Text, None, ""),
        ];
        for (table, name, kind, statistics, measured) in cases {
            assert_eq!(of(table, name, kind, statistics), measured, "{table}.{name}");
        }
    }
}
