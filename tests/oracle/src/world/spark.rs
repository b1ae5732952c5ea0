//! The tables of a world in Spark.
//!
//! In: a [`World`]. Out: statements that create its tables in the current schema, and temporary views over them with the
//! generated names. Tables of Spark's own catalog can have plain names only, so the views have the others. Absent:
//! foreign keys, which this catalog does not have.

use super::tables::{clock, literal};
use super::{Cell, ColumnType, Cube, World};

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Returns the statements that replace the tables and the views of the session.
pub fn statements(world: &World) -> Vec<String> {
    world.cubes.iter().enumerate().flat_map(|(at, cube)| of_cube(&format!("generated_{at}"), cube)).collect()
}

fn of_cube(table: &str, cube: &Cube) -> Vec<String> {
    let columns = cube.columns.iter().enumerate().map(|(at, column)| format!("c{at} {}", type_name(column.ty)));
    let renamed = cube.columns.iter().enumerate().map(|(at, column)| format!("c{at} AS {}", quoted(&column.name)));
    let (columns, renamed) = (columns.collect::<Vec<_>>().join(", "), renamed.collect::<Vec<_>>().join(", "));
    let mut all = vec![
        format!("DROP TABLE IF EXISTS {table}"),
        format!("CREATE TABLE {table} ({columns}) USING parquet"),
        format!("CREATE OR REPLACE TEMPORARY VIEW {} AS SELECT {renamed} FROM {table}", quoted(&cube.table)),
    ];
    if !cube.rows.is_empty() {
        let cells = |row: &Vec<Cell>| {
            let cells = row.iter().zip(&cube.columns).map(|(cell, column)| typed_literal(cell, column.ty));
            format!("({})", cells.collect::<Vec<_>>().join(", "))
        };
        let rows: Vec<String> = cube.rows.iter().map(cells).collect();
        all.push(format!("INSERT INTO {table} VALUES {}", rows.join(", ")));
    }
    all
}

fn type_name(ty: ColumnType) -> &'static str {
    match ty {
        ColumnType::Text => "STRING",
        ColumnType::Small => "INT",
        ColumnType::Big => "BIGINT",
        ColumnType::Decimal => "DECIMAL(18, 2)",
        ColumnType::Double => "DOUBLE",
        ColumnType::Boolean => "BOOLEAN",
        ColumnType::Date => "DATE",
        ColumnType::Timestamp => "TIMESTAMP_NTZ",
        ColumnType::TimestampTz => "TIMESTAMP",
    }
}

fn typed_literal(cell: &Cell, ty: ColumnType) -> String {
    match (cell, ty) {
        (Cell::Text(text), _) => format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'")),
        (Cell::Micros(micros), ColumnType::TimestampTz) => format!("TIMESTAMP '{}+00:00'", clock(*micros)),
        (Cell::Micros(micros), _) => format!("TIMESTAMP_NTZ '{}'", clock(*micros)),
        _ => literal(cell),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_stay_in_their_literals() {
        let cell = Cell::Text("it's \\' --".to_owned());
        assert_eq!(typed_literal(&cell, ColumnType::Text), r"'it\'s \\\' --'");
    }
}
