//! The warehouse's tables: names and literals as DuckDB's manual writes them.
//!
//! In: a [`World`]. Out: statements that make its tables in the schema [`SCHEMA`], one after the other.

use std::fmt::Write as _;

use jiff::civil::{DateTime, date};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

use super::{Cell, ColumnType, Cube, World};
use crate::value::Value;

/// Hostile like the rest.
pub(super) const SCHEMA: &str = "Sch\"éma; --";

pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The quoted name of a cube's table.
pub fn table(cube: &Cube) -> String {
    format!("{}.{}", quoted(SCHEMA), quoted(&cube.table))
}

/// Drops what was there before.
pub fn statements(world: &World) -> Vec<String> {
    let mut all =
        vec![format!("DROP SCHEMA IF EXISTS {} CASCADE", quoted(SCHEMA)), format!("CREATE SCHEMA {}", quoted(SCHEMA))];
    for cube in &world.cubes {
        let columns = cube.columns.iter().map(|column| format!("{} {}", quoted(&column.name), type_name(column.ty)));
        all.push(format!("CREATE TABLE {} ({})", table(cube), columns.collect::<Vec<_>>().join(", ")));
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

/// Removes the first half of a table's rows.
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
        // The smallest has no literal of its own: the sign is an operator.
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

fn clock(micros: i64) -> String {
    let at: DateTime = Timestamp::from_microsecond(micros).map_or(DateTime::MAX, |at| TimeZone::UTC.to_datetime(at));
    at.strftime("%Y-%m-%d %H:%M:%S%.6f").to_string()
}

/// A value as a cell again, for filters on what is in the data.
pub fn cell_of(value: &Value) -> Option<Cell> {
    Some(match value {
        Value::Bool(value) => Cell::Bool(*value),
        Value::Text(text) => Cell::Text(text.clone()),
        Value::Day(days) => Cell::Day(*days),
        Value::Local(micros) | Value::Instant(micros) => Cell::Micros(*micros),
        _ => return None,
    })
}
