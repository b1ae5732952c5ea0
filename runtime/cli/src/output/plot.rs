//! Bars and lines of the rows of an answer, from block characters.
//!
//! In: rows. Out: a bar for each row by the first measure, and a line for each measure over the first column of time.

use serde_json::Value;
use terrane_app::query::Answer;
use terrane_compiler::sql::ColumnFormat;
use terrane_expectations::Rows;
use terrane_terminal::TerminalText;

/// Characters of the longest bar.
const WIDTH: f64 = 24.0;
/// Steps of a line that a terminal can show.
const MAX_STEPS: usize = 200;
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// Returns a bar for each row by the first measure; `None` without one. Negative values have a bar of `-`.
pub(super) fn bars(rows: &Rows, answer: &Answer) -> Option<Vec<String>> {
    let column = answer.columns.iter().position(|column| column.is_measure)?;
    let values: Vec<Option<f64>> = rows.rows.iter().map(|row| number(row.get(column))).collect();
    let most = values.iter().flatten().fold(0.0_f64, |most, value| most.max(value.abs()));
    Some(values.into_iter().map(|value| bar(value.unwrap_or(0.0), most)).collect())
}

fn bar(value: f64, most: f64) -> String {
    if most <= 0.0 || !most.is_finite() {
        return String::new();
    }
    let length = value.abs() / most * WIDTH;
    if value < 0.0 {
        return "-".repeat(length.round() as usize);
    }
    let whole = length.floor();
    let eighths = ((length - whole) * 8.0).floor() as usize;
    let mut bar = "█".repeat(whole as usize);
    if eighths > 0 {
        bar.push(EIGHTHS[eighths.min(7)]);
    }
    bar
}

/// Returns a line of text for each measure, if the first column is a bucket of time and the only group.
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
        text.push_str(&format!("{name} {}\n", line(&values[values.len().saturating_sub(MAX_STEPS)..])));
    }
    text
}

/// Draws one character for each value; a missing one is a space.
fn line(values: &[Option<f64>]) -> String {
    let present = || values.iter().flatten().copied().filter(|value| value.is_finite());
    let (least, most) = present().fold((f64::MAX, f64::MIN), |(least, most), v| (least.min(v), most.max(v)));
    let level = |value: f64| {
        let share = if most > least { (value - least) / (most - least) } else { 0.5 };
        LEVELS[((share * 7.0).round() as usize).min(7)]
    };
    values.iter().map(|value| value.filter(|value| value.is_finite()).map_or(' ', level)).collect()
}

fn number(value: Option<&Value>) -> Option<f64> {
    match value? {
        Value::Number(number) => number.as_f64(),
        // Numbers beyond 2^53 are strings.
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_in_proportion_to_the_largest_value() {
        assert_eq!(bar(10.0, 10.0).chars().count(), 24);
        assert_eq!(bar(5.0, 10.0).chars().count(), 12);
        assert_eq!(bar(0.0, 10.0), "");
        assert_eq!(bar(-5.0, 10.0), "-".repeat(12));
        assert_eq!(bar(1.0, f64::INFINITY), "");
    }

    #[test]
    fn lines_show_the_least_the_most_and_gaps() {
        assert_eq!(line(&[Some(0.0), None, Some(7.0), Some(3.0)]), "▁ █▄");
        assert_eq!(line(&[Some(2.0), Some(2.0)]), "▅▅");
        assert_eq!(line(&[]), "");
    }
}
