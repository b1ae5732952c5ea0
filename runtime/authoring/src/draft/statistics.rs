//! Reads statistics of numeric columns from a sample of rows.
//!
//! In: a table. Out: [`Statistics`] of its numeric columns. If a statement fails, the statistics are missing and a
//! note says so; names and types still classify the columns.

use terrane_app::ports::warehouse::Warehouse;

use super::catalog::rows;
use super::column_kind::ColumnKind;
use super::statements;
use super::table::{Column, Statistics, Table};

/// The number of columns per statement. PostgreSQL returns at most 1,664 values per row.
const COLUMNS_AT_ONCE: usize = 100;
const VALUES_PER_COLUMN: usize = 5;
/// The largest number up to which doubles represent every integer.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

pub(super) async fn read(warehouse: &dyn Warehouse, table: &mut Table, notes: &mut Vec<String>) {
    let numbers: Vec<usize> = (0..table.columns.len()).filter(|at| table.columns[*at].kind.is_number()).collect();
    for chunk in numbers.chunks(COLUMNS_AT_ONCE) {
        let columns: Vec<&Column> = chunk.iter().map(|at| &table.columns[*at]).collect();
        let statement = statements::statistics(table, &columns);
        let row = match rows(warehouse, &statement).await {
            Ok(rows) => rows.into_iter().next().unwrap_or_default(),
            Err(reason) => {
                notes.push(format!("{}: could not read statistics: {reason}", table.name));
                return;
            }
        };
        for (at, cells) in chunk.iter().zip(row.chunks(VALUES_PER_COLUMN)) {
            let column = &mut table.columns[*at];
            column.statistics = of_cells(cells);
            if let Some(note) = inexact(column) {
                notes.push(format!("{}: {note}", table.name));
            }
        }
    }
}

/// Returns a note about a column of doubles that are too large for exact integers, such as the numbers of accounts that
/// an engine reads from a file.
fn inexact(column: &Column) -> Option<String> {
    let numbers = column.statistics.as_ref().filter(|_| column.kind == ColumnKind::Float)?;
    let is_large = numbers.min.abs().max(numbers.max.abs()) > MAX_EXACT;
    is_large.then(|| {
        let name = &column.name;
        format!(
            "`{name}` has numbers of more than 15 digits as doubles, which lose digits: if they are identifiers, read \
             them as strings, in a CSV file with `types = {{'{name}': 'VARCHAR'}}` in `read_csv`"
        )
    })
}

fn of_cells(cells: &[Option<String>]) -> Option<Statistics> {
    let text = |at: usize| cells.get(at).and_then(Option::as_ref);
    let count = |at: usize| text(at).and_then(|text| text.parse::<u64>().ok());
    let number = |at: usize| text(at).and_then(|text| text.parse::<f64>().ok());
    Some(Statistics {
        values: count(0)?,
        distinct: count(1)?,
        min: number(2)?,
        max: number(3)?,
        max_last_digits: number(4),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(kind: ColumnKind, max: f64) -> Option<String> {
        let statistics = Statistics { values: 2, distinct: 2, min: 0.0, max, max_last_digits: None };
        inexact(&Column {
            name: "account".to_owned(),
            type_name: String::new(),
            kind,
            is_nullable: true,
            comment: None,
            note: None,
            statistics: Some(statistics),
        })
    }

    #[test]
    fn doubles_that_lose_digits_are_noted() {
        let found = note(ColumnKind::Float, 1.2345678901234568e22).unwrap();
        assert!(found.contains("`account`") && found.contains("types = {'account': 'VARCHAR'}"), "{found}");
        assert_eq!(note(ColumnKind::Float, 9e15), None);
        assert_eq!(note(ColumnKind::Integer, 1e17), None);
        assert_eq!(note(ColumnKind::Decimal, 1e22), None);
    }
}
