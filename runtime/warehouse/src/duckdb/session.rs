//! A connection on its own thread, which runs one statement after another.
//!
//! In: a [`Request`] and a channel for the result. Out: all rows, or batches as a stream. The thread ends when its
//! [`DuckdbSession`] is dropped.
//!
//! If two conditions below a join exclude each other, the optimizer of DuckDB 1.4 can make a plan that its executor
//! refuses ("INTERNAL Error: Failed to bind column reference"). A statement that fails with an internal error before
//! its first row is therefore run once more without the optimizer.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;

use arrow::array::RecordBatch;
use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use duckdb::core::LogicalTypeId;
use duckdb::{Connection, InterruptHandle, Statement, params_from_iter};
use terrane_app::ports::warehouse::{self, ResultSet, SPECIAL_TYPE, WarehouseError};
use terrane_compiler::types::Value;
use tokio::sync::oneshot;

use super::bind::Bound;
use super::error;
use super::permit::StatementPermit;
use super::stream::{Outlet, Unwanted};

/// The size of the thread's stack in bytes. DuckDB's binder recurses as deep as expressions are nested.
pub(super) const STACK_BYTES: usize = 16 << 20;

/// A statement with owned text and values, so that it can outlive its caller.
#[derive(Debug)]
pub(super) struct Request {
    text: String,
    params: Vec<Value>,
    /// True if the schema of the answer marks types that Arrow does not show.
    marks_types: bool,
}

impl Request {
    pub(super) fn execute(statement: warehouse::Statement<'_>) -> Self {
        Request { text: statement.text.to_owned(), params: statement.params.to_vec(), marks_types: false }
    }

    /// Returns a statement with the same columns but without rows. DuckDB plans an empty result and scans nothing.
    pub(super) fn describe(statement: warehouse::Statement<'_>) -> Self {
        let text = format!("SELECT * FROM ({}\n) AS described LIMIT 0", statement.text);
        Request { text, params: statement.params.to_vec(), marks_types: true }
    }

    pub(super) fn probe() -> Self {
        Request { text: "SELECT 1".to_owned(), params: Vec::new(), marks_types: false }
    }
}

pub(super) type Answer = Result<ResultSet, WarehouseError>;

/// The channel on which the rows are returned.
pub(super) enum Reply {
    Whole(oneshot::Sender<Answer>),
    Batches(Outlet),
}

struct Job {
    request: Request,
    reply: Reply,
    turn: Arc<StatementPermit>,
}

/// A handle on the thread. If it is dropped, the thread ends after its current statement.
pub(super) struct DuckdbSession {
    jobs: mpsc::Sender<Job>,
    interrupt: Arc<InterruptHandle>,
}

impl DuckdbSession {
    pub(super) fn start(connection: Connection) -> std::io::Result<Self> {
        let (jobs, inbox) = mpsc::channel::<Job>();
        let interrupt = connection.interrupt_handle();
        thread::Builder::new().name("duckdb-session".to_owned()).stack_size(STACK_BYTES).spawn(move || {
            while let Ok(Job { request, reply, turn }) = inbox.recv() {
                match reply {
                    Reply::Whole(answer) => {
                        let rows = run(&connection, &request);
                        turn.engine_ends();
                        // Sending fails if the caller has gone away, which is fine.
                        let _ = answer.send(rows);
                    }
                    Reply::Batches(mut outlet) => {
                        let outcome = run_in_batches(&connection, &request, &mut outlet);
                        turn.engine_ends();
                        outlet.end(outcome);
                    }
                }
            }
        })?;
        Ok(DuckdbSession { jobs, interrupt })
    }

    /// Starts a statement. If the thread has ended, `reply` is dropped, and its receiver reports an error.
    pub(super) fn submit(&self, request: Request, reply: Reply, turn: Arc<StatementPermit>) {
        let _ = self.jobs.send(Job { request, reply, turn });
    }

    /// Asks the engine to stop the statement. The engine stops at its next check.
    pub(super) fn interrupt(&self) {
        self.interrupt.interrupt();
    }
}

/// Statements that turn the optimizer of one connection off and on. Unlike settings, they are allowed after the lock.
const OPTIMIZER_OFF: &str = "PRAGMA disable_optimizer";
const OPTIMIZER_ON: &str = "PRAGMA enable_optimizer";

/// Runs a statement on a connection and returns all its rows.
pub(super) fn run(connection: &Connection, request: &Request) -> Answer {
    match run_once(connection, request) {
        Err(error) if error::is_internal(&error) => {
            without_optimizer(connection, error, || run_once(connection, request))
        }
        answer => answer,
    }
}

fn run_once(connection: &Connection, request: &Request) -> Answer {
    let mut statement = connection.prepare(&request.text).map_err(|e| error::from_engine(&e))?;
    let schema = statement
        .query_arrow(params_from_iter(request.params.iter().map(Bound)))
        .map_err(|e| error::from_engine(&e))?
        .get_schema();
    let mut batches = Vec::new();
    while let Some(batch) = next_batch(&statement, &schema)? {
        batches.push(batch);
    }
    let schema = if request.marks_types { with_marks(&statement, &schema) } else { schema };
    Ok(ResultSet { schema, batches })
}

/// Returns the schema of a statement, in which fields are marked whose strings come from UUIDs, enums or JSON.
fn with_marks(statement: &Statement<'_>, schema: &Schema) -> SchemaRef {
    let marked = |(index, field): (usize, &FieldRef)| {
        let ty = statement.column_logical_type(index);
        let is_special = matches!(ty.id(), LogicalTypeId::Uuid | LogicalTypeId::Enum | LogicalTypeId::Time)
            || ty.get_alias().is_some_and(|alias| alias == "JSON");
        match is_special {
            true => {
                let mark = HashMap::from([(SPECIAL_TYPE.to_owned(), "true".to_owned())]);
                Arc::new(field.as_ref().clone().with_metadata(mark))
            }
            false => Arc::clone(field),
        }
    };
    Arc::new(Schema::new(schema.fields().iter().enumerate().map(marked).collect::<Vec<_>>()))
}

fn run_in_batches(connection: &Connection, request: &Request, outlet: &mut Outlet) -> Result<(), WarehouseError> {
    match run_in_batches_once(connection, request, outlet) {
        Err(error) if error::is_internal(&error) && !outlet.has_begun() => {
            without_optimizer(connection, error, || run_in_batches_once(connection, request, outlet))
        }
        outcome => outcome,
    }
}

/// Runs a statement and sends its batches. The engine computes only the batches that the reader reads, and stops if the
/// reader disconnects.
fn run_in_batches_once(connection: &Connection, request: &Request, outlet: &mut Outlet) -> Result<(), WarehouseError> {
    let mut statement = connection.prepare(&request.text).map_err(|e| error::from_engine(&e))?;
    let schema = statement
        .stream_arrow(params_from_iter(request.params.iter().map(Bound)))
        .map_err(|e| error::from_engine(&e))?
        .get_schema();
    if let Err(Unwanted) = outlet.begin(schema.clone()) {
        return Ok(());
    }
    while let Some(batch) = next_batch(&statement, &schema)? {
        if let Err(Unwanted) = outlet.send(batch) {
            return Ok(());
        }
    }
    Ok(())
}

/// Runs a statement again without the optimizer. If the optimizer cannot be turned off, returns the first error. If the
/// statement fails again, returns the second error with the number of retries.
fn without_optimizer<T>(
    connection: &Connection,
    first: WarehouseError,
    again: impl FnOnce() -> Result<T, WarehouseError>,
) -> Result<T, WarehouseError> {
    tracing::warn!(event = "optimizer_bypassed", warehouse = error::NAME, error_message = &*first.message);
    if connection.execute_batch(OPTIMIZER_OFF).is_err() {
        return Err(first);
    }
    let answer = again().map_err(|error| WarehouseError { retries: error.retries + 1, ..error });
    if let Err(error) = connection.execute_batch(OPTIMIZER_ON) {
        tracing::error!(event = "optimizer_off", warehouse = error::NAME, error_message = %error);
    }
    answer
}

/// Fetches the next batch. The crate's own iterator would panic on an error.
fn next_batch(statement: &Statement<'_>, schema: &SchemaRef) -> Result<Option<RecordBatch>, WarehouseError> {
    let Some(columns) = statement.step().map_err(|e| error::from_engine(&e))? else { return Ok(None) };
    let (_, arrays, _) = columns.into_parts();
    RecordBatch::try_new(schema.clone(), arrays).map(Some).map_err(|e| error::refused(e.to_string()))
}
