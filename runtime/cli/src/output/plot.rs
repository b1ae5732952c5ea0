//! Draws the rows of an answer as bars and lines of block characters.
//!
//! In: rows. Out: a bar for each row by the first measure, and a line for each measure over the first column of time.

use serde_json::Value;
use terrane_app::query::Answer;
use terrane_compiler::sql::ColumnFormat;
use terrane_expectations::Rows;
use terrane_pictures::{Glyphs, bar, sparkline};
use terrane_terminal::TerminalText;

/// The largest number of steps of a line that a terminal can show.
const MAX_STEPS: usize = 200;

/// Returns a bar for each row by the first measure, or `None` without a measure. Bars of negative values consist of
/// `-`.
pub(super) fn bars(rows: &Rows, answer: &Answer) -> Option<Vec<String>> {
    let column = answer.columns.iter().position(|column| column.is_measure)?;
    let values: Vec<Option<f64>> = rows.rows.iter().map(|row| number(row.get(column))).collect();
    let most = values.iter().flatten().fold(0.0_f64, |most, value| most.max(value.abs()));
    Some(values.into_iter().map(|value| bar(value.unwrap_or(0.0), most, Glyphs::Blocks)).collect())
}

/// Returns a line of text for each measure, if the first column is a bucket of time and no other column groups rows.
pub(super) fn lines(rows: &Rows, answer: &Answer) -> String {
    let is_bucket = |format: &ColumnFormat| {
        matches!(format, ColumnFormat::Date(_) | ColumnFormat::Clock(_) | ColumnFormat::InstantBucket(..))
    };
    let groups = answer.columns.iter().filter(|column| !column.is_measure).count();
    if groups != 1 || !answer.columns.first().is_some_and(|first| is_bucket(&first.format)) {
        return String::new();
    }
    let mut in_time: Vec<&Vec<Value>> = rows.rows.iter().collect();
    in_time.sort_by_key(|row| row.first().map(Value::to_string));
    let mut text = String::new();
    for (index, column) in answer.columns.iter().enumerate().filter(|(_, column)| column.is_measure) {
        let values: Vec<Option<f64>> = in_time.iter().map(|row| number(row.get(index))).collect();
        let name = TerminalText::line(&column.key).into_string();
        text.push_str(&format!(
            "{name} {}\n",
            sparkline(&values[values.len().saturating_sub(MAX_STEPS)..], Glyphs::Blocks)
        ));
    }
    text
}

fn number(value: Option<&Value>) -> Option<f64> {
    match value? {
        Value::Number(number) => number.as_f64(),
        // Numbers beyond 2^53 are strings.
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}
