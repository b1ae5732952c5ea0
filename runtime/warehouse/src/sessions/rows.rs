//! Reads a stream of a database's rows into Arrow columns, without creating objects for rows.

use futures_util::TryStreamExt as _;
use futures_util::stream::BoxStream;
use sqlx::{ColumnIndex, Database, Row, ValueRef as _};
use terrane_app::ports::warehouse::{RefusalCause, Statement, WarehouseError};

use super::Failed;
use crate::columns::{Column, Columns, Kind, meanings};

/// The functions that read the cells of one database.
pub(crate) struct Reader<DB: Database> {
    pub(crate) failed: Failed,
    /// Returns the kind of a column's cells, or `None` if cells of its type cannot be read.
    pub(crate) kind_of: fn(&DB::Column) -> Option<Kind>,
    /// Appends a cell that is not null.
    pub(crate) append: for<'r> fn(&mut Column, DB::ValueRef<'r>) -> Result<(), CellError>,
}

/// An error for a cell that does not fit the type of its column.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CellError {
    #[error("invalid length of a value: {0} bytes")]
    Length(usize),
    #[error("invalid value: {0}")]
    Value(String),
    #[error("invalid text: {0}")]
    Text(#[from] std::str::Utf8Error),
    #[error(transparent)]
    Database(#[from] sqlx::error::BoxDynError),
    #[error("the value has another type")]
    Type,
}

impl From<std::array::TryFromSliceError> for CellError {
    fn from(_: std::array::TryFromSliceError) -> Self {
        CellError::Length(0)
    }
}

impl<DB: Database> Reader<DB>
where
    usize: ColumnIndex<DB::Row>,
{
    /// Reads all rows. Returns `None` if there was no row, because the columns are only known from a row.
    pub(crate) async fn read(
        &self,
        mut rows: BoxStream<'_, Result<DB::Row, sqlx::Error>>,
        statement: Statement<'_>,
    ) -> Result<Option<Columns>, WarehouseError> {
        let mut filled: Option<Columns> = None;
        while let Some(row) = rows.try_next().await.map_err(|e| self.failed.because(&e))? {
            let columns = match &mut filled {
                Some(columns) => columns,
                None => filled.insert(Columns::new(self.described(row.columns())?, &meanings(statement))),
            };
            for (index, column) in columns.row().iter_mut().enumerate() {
                let cell = row.try_get_raw(index).map_err(|e| self.failed.because(&e))?;
                if cell.is_null() {
                    column.append_null();
                } else if let Err(error) = (self.append)(column, cell) {
                    let name = sqlx::Column::name(&row.columns()[index]);
                    let refusal = self.failed.refused(format!("column `{name}`: {error}"));
                    return Err(WarehouseError { cause: RefusalCause::Value, ..refusal });
                }
            }
            columns.end_row();
        }
        Ok(filled)
    }

    /// Returns the names and kinds of the columns.
    ///
    /// # Errors
    /// A column has a type that cannot be read. The error contains a hint for the author.
    pub(crate) fn described(&self, columns: &[DB::Column]) -> Result<Vec<(String, Kind)>, WarehouseError> {
        let describe = |column: &DB::Column| {
            let (name, ty) = (sqlx::Column::name(column), sqlx::Column::type_info(column));
            let kind = (self.kind_of)(column);
            let kind = kind.ok_or_else(|| {
                self.failed.unsupported_type(format!(
                    "column `{name}` is of type {ty}, which has no Arrow type: cast it to text"
                ))
            })?;
            Ok((name.to_owned(), kind))
        };
        columns.iter().map(describe).collect()
    }
}
