//! DuckDB in process: one database, a bounded pool of connections, a locked engine.
//!
//! Statements run on blocking threads. A timeout is answered at its time: the statement is
//! interrupted, and its connection goes back to the pool only when the engine has let go of it.

mod bind;
mod open;
mod pool;

use std::sync::Arc;
use std::time::Duration;

use ::duckdb::Connection;
use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use async_trait::async_trait;
use terrane_app::ports::warehouse::{ResultSet, Statement, Warehouse, WarehouseError, WarehouseErrorKind};
use terrane_compiler::types::Value;

pub use open::{DuckDbSettings, OpenError};
use pool::{Pool, Running};

const NAME: &str = "duckdb";
/// For statements that only look: types at load, and liveness.
const LOOK_TIMEOUT: Duration = Duration::from_secs(30);

/// An open DuckDB database.
pub struct DuckDb {
    pool: Arc<Pool>,
}

impl DuckDb {
    /// Opens the database, runs the operator's `init`, then locks the engine: no file outside the
    /// project, no extension, no setting can be reached by a statement any more.
    ///
    /// # Errors
    /// [`OpenError`] with the statement of `init` that failed.
    pub fn open(settings: &DuckDbSettings) -> Result<Self, OpenError> {
        let root = open::open(settings)?;
        Ok(DuckDb { pool: Arc::new(Pool::new(root, settings.connections)) })
    }

    async fn run(&self, statement: Statement<'_>, timeout: Duration) -> Result<ResultSet, WarehouseError> {
        let text: Arc<str> = statement.text.into();
        let params = statement.params.to_vec();
        let work = async {
            let mut lease = self.pool.lease().await.map_err(unavailable)?;
            let running = Running::new(lease.interrupt_handle());
            // Dropped with this future, be it by a timeout or by a caller that went away.
            let _interrupts = running.interrupt_on_drop();
            let task = tokio::task::spawn_blocking(move || {
                let outcome = running.run(|| query(lease.connection(), &text, &params));
                // Interrupts stop before the connection can serve somebody else.
                running.finish();
                drop(lease);
                outcome
            });
            match task.await {
                Ok(Some(outcome)) => outcome.map_err(|e| refused(&e)),
                Ok(None) => Err(timed_out()),
                Err(error) => Err(unavailable(error)),
            }
        };
        match tokio::time::timeout(timeout, work).await {
            Ok(outcome) => outcome,
            Err(_) => Err(timed_out()),
        }
    }
}

#[async_trait]
impl Warehouse for DuckDb {
    fn name(&self) -> &str {
        NAME
    }

    async fn execute(&self, statement: Statement<'_>, timeout: Duration) -> Result<ResultSet, WarehouseError> {
        self.run(statement, timeout).await
    }

    /// DuckDB tells a statement's columns when it runs it, so it runs for no rows.
    async fn describe(&self, statement: Statement<'_>) -> Result<SchemaRef, WarehouseError> {
        let text = format!("SELECT * FROM (\n{}\n) AS described LIMIT 0", statement.text);
        let statement = Statement { text: &text, params: statement.params };
        Ok(self.run(statement, LOOK_TIMEOUT).await?.schema)
    }

    async fn ping(&self) -> Result<(), WarehouseError> {
        self.run(Statement { text: "SELECT 1", params: &[] }, LOOK_TIMEOUT).await.map(|_| ())
    }
}

fn query(connection: &Connection, text: &str, params: &[Value]) -> ::duckdb::Result<ResultSet> {
    let mut statement = connection.prepare_cached(text)?;
    let params = params.iter().map(bind::Bound).collect::<Vec<_>>();
    let rows = statement.query_arrow(::duckdb::params_from_iter(params))?;
    let schema = rows.get_schema();
    let batches: Vec<RecordBatch> = rows.collect();
    // The metadata of the engine's own types is of no use outside.
    let fields: Vec<_> = schema.fields().iter().cloned().collect();
    Ok(ResultSet { schema: Arc::new(Schema::new(fields)), batches })
}

fn refused(error: &::duckdb::Error) -> WarehouseError {
    let message = error.to_string();
    let kind = if message.starts_with("INTERRUPT") { WarehouseErrorKind::Timeout } else { WarehouseErrorKind::Refused };
    WarehouseError { warehouse: NAME.to_owned(), kind, message }
}

fn unavailable(error: impl std::fmt::Display) -> WarehouseError {
    WarehouseError { warehouse: NAME.to_owned(), kind: WarehouseErrorKind::Unavailable, message: error.to_string() }
}

fn timed_out() -> WarehouseError {
    WarehouseError {
        warehouse: NAME.to_owned(),
        kind: WarehouseErrorKind::Timeout,
        message: "the statement ran longer than it was given".to_owned(),
    }
}

#[cfg(test)]
mod tests;
