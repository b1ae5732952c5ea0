//! Compares the answers of the product and of the oracle to one query.
//!
//! In: both answers. Out: nothing, or a description of the first difference. Integers and decimals are compared with
//! all their digits, doubles with a tolerance of 1e-9. Doubles within 1e-12 of zero count as zero, because the
//! difference of a variance and an equal number may be a rounding error.

use serde_json::Value as Json;

use crate::oracle::{Answer, Outcome};
use crate::product::Answered;
use crate::value::{Number, Value, is_near};

/// Returns the first difference; `None` if the answers agree, or if the semantics allow both answers.
pub fn difference(answered: &Answered, outcome: &Outcome) -> Option<String> {
    match (answered, outcome) {
        (_, Outcome::Open(_)) => None,
        (Answered::Broken(why), _) => Some(format!("broken: {why}")),
        (Answered::Refused(code), Outcome::Refused(codes)) if code.is_subset(codes) => None,
        (Answered::Refused(code), Outcome::Refused(codes)) => {
            Some(format!("refused with {code:?}, and should be with one of {codes:?}"))
        }
        (Answered::Refused(code), Outcome::Rows(_)) => Some(format!("refused with {code:?}, and has an answer")),
        (Answered::Rows { .. }, Outcome::Refused(codes)) => {
            Some(format!("answered, and should be refused with one of {codes:?}"))
        }
        (Answered::Rows { keys, rows, total_rows, totals }, Outcome::Rows(answer)) => {
            rows_differ(keys, rows, *total_rows, answer).or_else(|| totals_differ(totals.as_deref(), answer))
        }
    }
}

fn rows_differ(keys: &[String], rows: &[Vec<Json>], total_rows: Option<u64>, answer: &Answer) -> Option<String> {
    if keys != answer.keys {
        return Some(format!("columns {keys:?}, and should be {:?}", answer.keys));
    }
    let details = || format!("\n  product: {}\n  oracle:  {}", shown(rows), oracle_shown(&answer.rows));
    if rows.len() != answer.rows.len() {
        return Some(format!("{} rows, and should be {}{}", rows.len(), answer.rows.len(), details()));
    }
    for (index, (row, wanted)) in rows.iter().zip(&answer.rows).enumerate() {
        for (column, (cell, wanted)) in row.iter().zip(wanted).enumerate() {
            if !is_same(cell, wanted, answer.approximate[column]) {
                return Some(format!(
                    "row {index}, {}: {cell}, and should be {}{}",
                    keys[column],
                    one_shown(wanted),
                    details()
                ));
            }
        }
    }
    match total_rows {
        Some(total) if total != answer.total_rows as u64 => {
            Some(format!("total_rows {total}, and should be {}{}", answer.total_rows, details()))
        }
        _ => None,
    }
}

fn totals_differ(totals: Option<&[Json]>, answer: &Answer) -> Option<String> {
    let first = answer.approximate.len() - answer.totals.as_ref().map_or(0, Vec::len);
    let is_alike = match (totals, &answer.totals) {
        (None, None) => true,
        (Some(totals), Some(wanted)) => {
            let mut pairs = totals.iter().zip(wanted).zip(&answer.approximate[first..]);
            totals.len() == wanted.len() && pairs.all(|((cell, wanted), near)| is_same(cell, wanted, *near))
        }
        _ => false,
    };
    let wanted = || answer.totals.as_ref().map(|row| row.iter().map(one_shown).collect::<Vec<_>>());
    (!is_alike).then(|| format!("totals {totals:?}, and should be {:?}", wanted()))
}

fn is_same(cell: &Json, wanted: &Value, is_approximate: bool) -> bool {
    match (cell, wanted) {
        (Json::Null, Value::Null) => true,
        (Json::Bool(cell), Value::Bool(wanted)) => cell == wanted,
        (Json::String(cell), Value::Text(wanted)) => cell == wanted,
        (Json::Number(cell), Value::Number(wanted)) => {
            let text = cell.to_string();
            match (Number::parse(&text), wanted) {
                (Some(exact), Number::Exact(..)) if !is_approximate => exact == *wanted,
                _ => text
                    .parse()
                    .is_ok_and(|cell: f64| is_near(cell, wanted.as_f64(), if is_approximate { 0.05 } else { 1e-9 })),
            }
        }
        _ => false,
    }
}

/// Returns whether two results of the product are equal.
pub fn is_equal(a: &Answered, b: &Answered) -> bool {
    match (a, b) {
        (Answered::Rows { rows: a, total_rows: left, .. }, Answered::Rows { rows: b, total_rows: right, .. }) => {
            left == right && a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_equal_row(a, b))
        }
        (a, b) => a == b,
    }
}

pub fn is_equal_row(a: &[Json], b: &[Json]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_equal_cell(a, b))
}

pub fn is_equal_cell(a: &Json, b: &Json) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(left), Some(right)) => a == b || is_near(left, right, 1e-9),
        _ => a == b,
    }
}

fn shown(rows: &[Vec<Json>]) -> String {
    let rows: Vec<String> = rows.iter().take(12).map(|row| Json::Array(row.clone()).to_string()).collect();
    rows.join(" ")
}

fn oracle_shown(rows: &[Vec<Value>]) -> String {
    let row = |row: &Vec<Value>| format!("[{}]", row.iter().map(one_shown).collect::<Vec<_>>().join(","));
    rows.iter().take(12).map(row).collect::<Vec<_>>().join(" ")
}

fn one_shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Text(text) => Json::String(text.clone()).to_string(),
        Value::Number(Number::Double(value)) => value.to_string(),
        Value::Number(Number::Exact(value, 0)) => value.to_string(),
        Value::Number(Number::Exact(value, scale)) => format!("{value}e-{scale}"),
        other => format!("{other:?}"),
    }
}
