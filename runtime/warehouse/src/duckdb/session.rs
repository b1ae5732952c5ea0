//! One connection on a thread of its own, which runs one statement after the other.
//!
//! In: a [`Request`] and where to answer. Out: the answer, when the engine has it. The thread ends
//! when nobody holds its [`Session`] any more.

use std::sync::Arc;
use std::sync::mpsc;
use std::thread;

use arrow::array::RecordBatch;
use duckdb::{Connection, InterruptHandle, params_from_iter};
use terrane_app::ports::warehouse::{ResultSet, Statement, WarehouseError};
use terrane_compiler::types::Value;
use tokio::sync::oneshot;

use super::bind::Bound;
use super::error;
use super::turn::Turn;

/// DuckDB's binder recurses with the depth of an expression.
const STACK_BYTES: usize = 16 << 20;

/// A statement that owns what it needs, so that it can outlive its caller.
#[derive(Debug)]
pub(super) struct Request {
    text: String,
    params: Vec<Value>,
}

impl Request {
    pub(super) fn execute(statement: Statement<'_>) -> Self {
        Request { text: statement.text.to_owned(), params: statement.params.to_vec() }
    }

    /// The same columns and no rows. DuckDB plans it as an empty result and scans nothing.
    pub(super) fn describe(statement: Statement<'_>) -> Self {
        let text = format!("SELECT * FROM ({}\n) AS described LIMIT 0", statement.text);
        Request { text, params: statement.params.to_vec() }
    }

    pub(super) fn probe() -> Self {
        Request { text: "SELECT 1".to_owned(), params: Vec::new() }
    }
}

pub(super) type Answer = Result<ResultSet, WarehouseError>;

struct Job {
    request: Request,
    answer: oneshot::Sender<Answer>,
    turn: Arc<Turn>,
}

/// A handle on the thread. Dropping it lets the thread end after the statement that it is at.
pub(super) struct Session {
    jobs: mpsc::Sender<Job>,
    interrupt: Arc<InterruptHandle>,
}

impl Session {
    pub(super) fn start(connection: Connection) -> std::io::Result<Self> {
        let (jobs, inbox) = mpsc::channel::<Job>();
        let interrupt = connection.interrupt_handle();
        thread::Builder::new().name("duckdb-session".to_owned()).stack_size(STACK_BYTES).spawn(move || {
            while let Ok(job) = inbox.recv() {
                let answer = run(&connection, &job.request);
                job.turn.engine_ends();
                // The caller may be gone; then nobody wants the answer.
                let _ = job.answer.send(answer);
            }
        })?;
        Ok(Session { jobs, interrupt })
    }

    /// Starts a statement.
    pub(super) fn submit(&self, request: Request, turn: Arc<Turn>) -> oneshot::Receiver<Answer> {
        let (answer, receiver) = oneshot::channel();
        // A thread that is gone drops the sender, and the receiver says so.
        let _ = self.jobs.send(Job { request, answer, turn });
        receiver
    }

    /// Asks the engine to stop, which it does when it next looks.
    pub(super) fn interrupt(&self) {
        self.interrupt.interrupt();
    }
}

fn run(connection: &Connection, request: &Request) -> Answer {
    let mut statement = connection.prepare(&request.text).map_err(|e| error::from_engine(&e))?;
    let schema = statement
        .query_arrow(params_from_iter(request.params.iter().map(Bound)))
        .map_err(|e| error::from_engine(&e))?
        .get_schema();
    let mut batches = Vec::new();
    // Not the crate's iterator, which panics where fetching fails.
    while let Some(columns) = statement.step().map_err(|e| error::from_engine(&e))? {
        let (_, arrays, _) = columns.into_parts();
        let batch = RecordBatch::try_new(schema.clone(), arrays).map_err(|e| error::refused(e.to_string()))?;
        batches.push(batch);
    }
    Ok(ResultSet { schema, batches })
}
