//! Draws rows as a table.
//!
//! In: the rows of a result. Out: text for a terminal, one line per row.

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use serde_json::Value;
use terrane_expectations::Rows;
use terrane_terminal::TerminalText;

/// Draws a table. Numeric columns are aligned to the right.
pub(crate) fn draw(rows: &Rows) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Disabled);
    let alignments: Vec<CellAlignment> = (0..rows.columns.len()).map(|column| alignment(rows, column)).collect();
    let cells = |texts: Vec<TerminalText>| -> Vec<Cell> {
        texts.into_iter().zip(&alignments).map(|(text, side)| Cell::new(text).set_alignment(*side)).collect()
    };
    table.set_header(cells(rows.columns.iter().map(|name| TerminalText::line(name)).collect()));
    for row in &rows.rows {
        table.add_row(cells(row.iter().map(cell).collect()));
    }
    table.to_string()
}

fn alignment(rows: &Rows, column: usize) -> CellAlignment {
    let mut values = rows.rows.iter().filter_map(|row| row.get(column)).filter(|value| !value.is_null()).peekable();
    if values.peek().is_some() && values.all(Value::is_number) { CellAlignment::Right } else { CellAlignment::Left }
}

/// Returns a string without quotes, and `null` for a missing value.
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
        let drawn = draw(&rows);
        assert!(drawn.contains("a\u{fffd}[2J") && !drawn.contains('\u{1b}'), "{drawn}");
        assert!(drawn.contains("     1 │") && drawn.contains("null"), "{drawn}");
    }
}
