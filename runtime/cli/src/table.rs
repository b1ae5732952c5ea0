//! Draws rows as a table.
//!
//! In: the rows of a result. Out: text for a terminal, one line per row.

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use serde_json::Value;
use terrane_expectations::Rows;
use terrane_terminal::TerminalText;

/// Draws a table, with a bar at the end of each row if there are bars. Numeric columns are aligned to the right.
pub(crate) fn draw(rows: &Rows, bars: Option<&Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Disabled);
    let alignments: Vec<CellAlignment> = (0..rows.columns.len()).map(|column| alignment(rows, column)).collect();
    let cells = |texts: Vec<TerminalText>| -> Vec<Cell> {
        texts.into_iter().zip(&alignments).map(|(text, side)| Cell::new(text).set_alignment(*side)).collect()
    };
    let mut header = cells(rows.columns.iter().map(|name| TerminalText::line(name)).collect());
    header.extend(bars.map(|_| Cell::new("")));
    table.set_header(header);
    for (index, row) in rows.rows.iter().enumerate() {
        let mut row = cells(row.iter().map(cell).collect());
        row.extend(bars.and_then(|bars| bars.get(index)).map(Cell::new));
        table.add_row(row);
    }
    table.to_string()
}

fn alignment(rows: &Rows, column: usize) -> CellAlignment {
    if is_numeric(rows, column) { CellAlignment::Right } else { CellAlignment::Left }
}

/// Returns whether all values of a column are numbers, formatted ones included.
pub(crate) fn is_numeric(rows: &Rows, column: usize) -> bool {
    let is_formatted = |text: &str| {
        let digits = text.strip_suffix(" %").unwrap_or(text).strip_prefix('-').unwrap_or(text);
        digits.starts_with(|c: char| c.is_ascii_digit())
            && digits.chars().all(|c| c.is_ascii_digit() || matches!(c, ' ' | '.' | '%'))
    };
    let is_number = |value: &Value| value.is_number() || value.as_str().is_some_and(is_formatted);
    let mut values = rows.rows.iter().filter_map(|row| row.get(column)).filter(|value| !value.is_null()).peekable();
    values.peek().is_some() && values.all(is_number)
}

/// Returns the text of a value: a string without quotes, and `null` for a missing value.
fn cell(value: &Value) -> TerminalText {
    match value {
        Value::String(text) => TerminalText::line(text),
        other => TerminalText::line(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_right_aligned_and_escape_codes_are_replaced() {
        let rows = Rows {
            columns: vec!["name".to_owned(), "count".to_owned()],
            is_double: vec![false, false],
            rows: vec![vec![json!("a\u{1b}[2J"), json!(1)], vec![json!(null), json!(1000)]],
        };
        let drawn = draw(&rows, None);
        assert!(drawn.contains("a\u{fffd}[2J") && !drawn.contains('\u{1b}'), "{drawn}");
        assert!(drawn.contains("     1 │") && drawn.contains("null"), "{drawn}");
    }
}
