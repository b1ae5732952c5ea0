//! Runs one request on one connection.
//!
//! In: a request. Out: rows as Arrow, or columns without rows. Not here: the choice of the connection, and time limits.

use arrow::datatypes::{Schema, SchemaRef};
use terrane_app::ports::warehouse::{ResultSet, Statement, WarehouseError};

use super::{Answer, Engine, Request};
use crate::columns::{Columns, described, meanings};

/// Runs a request.
///
/// # Errors
/// `Unavailable` means that the connection is lost. After any other error, the connection can be used again.
pub(super) async fn answer<E: Engine>(
    engine: &E,
    connection: &mut E::Connection,
    request: Request<'_>,
) -> Result<Answer, WarehouseError> {
    match request {
        Request::Execute(statement) => {
            let columns = match engine.rows(connection, statement).await? {
                Some(columns) => columns,
                None => Columns::new(engine.describe(connection, statement).await?, &meanings(statement)),
            };
            columns.finish().map_err(|error| E::FAILED.refused(error.to_string()))
        }
        Request::Describe(statement) => {
            let columns = engine.describe(connection, statement).await?;
            Ok(ResultSet { schema: described(columns), batches: Vec::new() })
        }
        Request::Probe => {
            engine.ping(connection).await.map_err(|error| E::FAILED.because(&error))?;
            Ok(ResultSet { schema: SchemaRef::new(Schema::empty()), batches: Vec::new() })
        }
    }
}

/// Runs a statement without parameters and returns all of its rows.
///
/// # Errors
/// Returns the same errors as [`Engine::rows`].
pub(crate) async fn all_rows<E: Engine>(
    engine: &E,
    connection: &mut E::Connection,
    text: &str,
) -> Result<ResultSet, WarehouseError> {
    answer(engine, connection, Request::Execute(Statement::plain(text))).await
}
