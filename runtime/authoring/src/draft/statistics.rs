//! Reads statistics of numeric columns from a sample of rows.
//!
//! In: a table. Out: [`Statistics`] of its numeric columns. If a statement fails, the statistics are missing and a
//! note says so; names and types still classify the columns.

use terrane_app::ports::warehouse::Warehouse;

use super::catalog::rows;
use super::statements;
use super::table::{Column, Statistics, Table};

/// The number of columns per statement. PostgreSQL returns at most 1,664 values per row.
const COLUMNS_AT_ONCE: usize = 100;
const VALUES_PER_COLUMN: usize = 5;

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
            table.columns[*at].statistics = of_cells(cells);
        }
    }
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
