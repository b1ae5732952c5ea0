//! What a sample of a table's numbers says of them.
//!
//! In: a table. Out: [`Statistics`] of its columns of numbers. A statement that fails costs the statistics
//! and is noted; names and types still say something.

use terrane_app::ports::warehouse::Warehouse;

use super::catalog::rows;
use super::statements;
use super::table::{Column, Statistics, Table};

/// Columns that one statement looks at; PostgreSQL answers 1,664 at most.
const COLUMNS_AT_ONCE: usize = 100;
const NUMBERS_OF_A_COLUMN: usize = 5;

pub(super) async fn read(warehouse: &dyn Warehouse, table: &mut Table, notes: &mut Vec<String>) {
    let numbers: Vec<usize> = (0..table.columns.len()).filter(|at| table.columns[*at].kind.is_number()).collect();
    for chunk in numbers.chunks(COLUMNS_AT_ONCE) {
        let columns: Vec<&Column> = chunk.iter().map(|at| &table.columns[*at]).collect();
        let statement = statements::statistics(table, &columns);
        let row = match rows(warehouse, &statement).await {
            Ok(rows) => rows.into_iter().next().unwrap_or_default(),
            Err(why) => {
                notes.push(format!("{}: its values were not looked at: {why}", table.name));
                return;
            }
        };
        for (at, cells) in chunk.iter().zip(row.chunks(NUMBERS_OF_A_COLUMN)) {
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
