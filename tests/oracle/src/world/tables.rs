//! The warehouse's tables, with names and literals in the form of DuckDB's manual.
//!
//! In: a [`World`]. Out: statements that create its tables in the schema [`SCHEMA`], in their order.

use std::fmt::Write as _;

use jiff::civil::{DateTime, date};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

use super::{Cell, ColumnType, Cube, Join, World};
use crate::value::Value;

/// The schema of the tables. Its name has special characters, as other generated names have.
pub(super) const SCHEMA: &str = "Sch\"éma; --";

pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Returns the quoted name of a cube's table.
pub fn table(cube: &Cube) -> String {
    format!("{}.{}", quoted(SCHEMA), quoted(&cube.table))
}

/// Returns the statements that drop an existing schema and create the tables.
pub fn statements(world: &World) -> Vec<String> {
    let mut all =
        vec![format!("DROP SCHEMA IF EXISTS {} CASCADE", quoted(SCHEMA)), format!("CREATE SCHEMA {}", quoted(SCHEMA))];
    for (index, cube) in world.cubes.iter().enumerate() {
        let columns = cube.columns.iter().enumerate().map(|(at, column)| {
            let is_key = |join: &Join| join.left == at && enforced_target(world, index, join).is_some();
            let nullable = if cube.joins.iter().any(is_key) { " NOT NULL" } else { "" };
            format!("{} {}{nullable}", quoted(&column.name), type_name(column.ty))
        });
        let columns: Vec<String> = columns.chain(constraints(world, index)).collect();
        all.push(format!("CREATE TABLE {} ({})", table(cube), columns.join(", ")));
        if cube.rows.is_empty() {
            continue;
        }
        let mut insert = format!("INSERT INTO {} VALUES ", table(cube));
        for (index, row) in cube.rows.iter().enumerate() {
            let cells = row.iter().zip(&cube.columns).map(|(cell, column)| typed_literal(cell, column.ty));
            let comma = if index > 0 { ", " } else { "" };
            // Writing to a String never fails.
            let _ = write!(insert, "{comma}({})", cells.collect::<Vec<_>>().join(", "));
        }
        all.push(insert);
    }
    all
}

/// Returns the foreign keys of a cube's table, and the unique constraints that foreign keys to this table need.
fn constraints(world: &World, index: usize) -> Vec<String> {
    let mut all = Vec::new();
    let mut referenced: Vec<usize> = Vec::new();
    for (from, cube) in world.cubes.iter().enumerate() {
        for (join, to) in cube.joins.iter().filter_map(|join| Some((join, enforced_target(world, from, join)?))) {
            if to == index && !referenced.contains(&join.right) {
                referenced.push(join.right);
            }
            if from == index {
                let own = quoted(&cube.columns[join.left].name);
                let target = &world.cubes[to];
                let other = quoted(&target.columns[join.right].name);
                all.push(format!("FOREIGN KEY ({own}) REFERENCES {} ({other})", table(target)));
            }
        }
    }
    let unique =
        referenced.iter().map(|column| format!("UNIQUE ({})", quoted(&world.cubes[index].columns[*column].name)));
    all.extend(unique);
    all
}

/// Returns the position of the table to which a join's foreign key refers; `None` if the join has no foreign key, or if
/// some row finds no joined row.
fn enforced_target(world: &World, from: usize, join: &Join) -> Option<usize> {
    let cube = &world.cubes[from];
    // Tables are created in their order, so the referenced table must come first.
    let to = world.cubes.iter().position(|target| target.name == join.target()).filter(|to| *to < from)?;
    let found: Vec<&Cell> = world.cubes[to].rows.iter().map(|row| &row[join.right]).collect();
    let are_unique = found.iter().enumerate().all(|(at, cell)| **cell != Cell::Null && !found[..at].contains(cell));
    let is_found = |row: &Vec<Cell>| row[join.left] != Cell::Null && found.contains(&&row[join.left]);
    let holds = join.is_enforced && are_unique && cube.rows.iter().all(is_found);
    holds.then_some(to)
}

/// Returns whether a foreign key refers to a cube's table, so that its rows cannot be removed.
pub fn is_referenced(world: &World, cube: &Cube) -> bool {
    let mut joins = world.cubes.iter().flat_map(|other| &other.joins);
    joins.any(|join| join.is_enforced && join.target() == cube.name)
}

/// Returns a statement that removes the first half of a table's rows.
pub fn removal(cube: &Cube) -> String {
    format!("DELETE FROM {} WHERE rowid < {}", table(cube), cube.rows.len().div_ceil(2))
}

fn type_name(ty: ColumnType) -> &'static str {
    match ty {
        ColumnType::Text => "VARCHAR",
        ColumnType::Small => "INTEGER",
        ColumnType::Big => "BIGINT",
        ColumnType::Decimal => "DECIMAL(18, 2)",
        ColumnType::Double => "DOUBLE",
        ColumnType::Boolean => "BOOLEAN",
        ColumnType::Date => "DATE",
        ColumnType::Timestamp => "TIMESTAMP",
        ColumnType::TimestampTz => "TIMESTAMPTZ",
    }
}

fn typed_literal(cell: &Cell, ty: ColumnType) -> String {
    match (cell, ty) {
        (Cell::Micros(micros), ColumnType::TimestampTz) => format!("TIMESTAMPTZ '{}+00'", clock(*micros)),
        _ => literal(cell),
    }
}

pub(super) fn literal(cell: &Cell) -> String {
    match cell {
        Cell::Null => "NULL".to_owned(),
        Cell::Bool(value) => value.to_string(),
        // The smallest integer has no literal, because its sign is an operator.
        Cell::Int(i64::MIN) => "(-9223372036854775807 - 1)".to_owned(),
        Cell::Int(value) => value.to_string(),
        Cell::Cents(value) => {
            let sign = if *value < 0 { "-" } else { "" };
            format!("{sign}{}.{:02}", value.unsigned_abs() / 100, value.unsigned_abs() % 100)
        }
        Cell::Double(value) => format!("CAST({value:e} AS DOUBLE)"),
        Cell::Text(text) => format!("'{}'", text.replace('\'', "''")),
        Cell::Day(days) => format!("DATE '{}'", day(*days)),
        Cell::Micros(micros) => format!("TIMESTAMP '{}'", clock(*micros)),
    }
}

fn day(days: i32) -> jiff::civil::Date {
    date(1970, 1, 1).saturating_add(days.days())
}

pub(super) fn clock(micros: i64) -> String {
    let at: DateTime = Timestamp::from_microsecond(micros).map_or(DateTime::MAX, |at| TimeZone::UTC.to_datetime(at));
    at.strftime("%Y-%m-%d %H:%M:%S%.6f").to_string()
}

/// Converts a value back to a cell, for filters on existing values.
pub fn cell_of(value: &Value) -> Option<Cell> {
    Some(match value {
        Value::Bool(value) => Cell::Bool(*value),
        Value::Text(text) => Cell::Text(text.clone()),
        Value::Day(days) => Cell::Day(*days),
        Value::Local(micros) | Value::Instant(micros) => Cell::Micros(*micros),
        _ => return None,
    })
}
