//! Decodes SQLite's cells, each of which has its own type, and reads the declared types of columns.

use sqlx::sqlite::{SqliteColumn, SqliteValueRef};
use sqlx::{Column as _, Decode, Sqlite, TypeInfo as _, ValueRef as _};

use crate::columns::{Cell, Column, Kind};
use crate::sessions::CellError;

/// Returns `Dynamic` for every column, because a declared type does not restrict a column's values.
pub(super) fn kind_of(_: &SqliteColumn) -> Option<Kind> {
    Some(Kind::Dynamic)
}

/// Returns the kind of a column's declared type. Expressions and columns of other types are `Dynamic`.
pub(super) fn declared(column: &SqliteColumn) -> Kind {
    match column.type_info().name() {
        "INTEGER" => Kind::Integer,
        "BOOLEAN" => Kind::Boolean,
        "REAL" => Kind::Double,
        "TEXT" => Kind::Text,
        "BLOB" => Kind::Binary,
        "DATE" => Kind::Date,
        "DATETIME" => Kind::Timestamp,
        _ => Kind::Dynamic,
    }
}

pub(super) fn append(column: &mut Column, value: SqliteValueRef<'_>) -> Result<(), CellError> {
    let Column::Dynamic(cells) = column else { return Err(CellError::Type) };
    let ty = value.type_info().into_owned();
    cells.push(match ty.name() {
        "INTEGER" => Cell::Integer(<i64 as Decode<Sqlite>>::decode(value)?),
        "REAL" => Cell::Real(<f64 as Decode<Sqlite>>::decode(value)?),
        "BLOB" => Cell::Binary(<Vec<u8> as Decode<Sqlite>>::decode(value)?),
        _ => Cell::Text(<String as Decode<Sqlite>>::decode(value)?),
    });
    Ok(())
}
