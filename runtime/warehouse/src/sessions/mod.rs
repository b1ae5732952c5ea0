//! What the engines reached through sqlx share: a bounded number of sessions, and statements that
//! nobody waits for any more.
//!
//! In: an [`Engine`] and requests with a time limit. Out: the answer, or a timeout at its time. Three
//! invariants: a caller never waits longer than it was given, a statement without a caller is cancelled
//! from outside and keeps its place until that is done, and a session that broke is never used again.
//! Not here: anything that one engine does differently.

mod failure;
mod open;
mod pool;
mod rows;

use std::time::Duration;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use terrane_app::ports::warehouse::{ResultSet, Statement, WarehouseError};

use pool::Pool;

pub(crate) use failure::{Failed, within};
pub(crate) use open::init_failed;
pub use open::{ConnectError, ServerSettings};
pub(crate) use rows::{CellError, Reader};

/// How long a probe or a description may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// One kind of database, and where it is.
#[async_trait]
pub(crate) trait Engine: Send + Sync + 'static {
    /// The warehouse's type in a project file.
    const NAME: &'static str;
    /// A connection that is set up for reading.
    type Connection: Send + 'static;
    /// Names what a session runs, for whoever wants to stop it.
    type Handle: Send + Sync + 'static;

    /// # Errors
    /// `Unavailable`, within the operator's time limit.
    async fn connect(&self) -> Result<Session<Self>, WarehouseError>;

    /// # Errors
    /// `Unavailable` says that the connection is lost; after any other error it can be used again.
    async fn answer(&self, connection: &mut Self::Connection, request: Request<'_>) -> Result<Answer, WarehouseError>;

    /// Stops what the session runs. Its connection is closed afterwards, whatever became of this.
    async fn cancel(&self, handle: &Self::Handle) -> Result<(), WarehouseError>;
}

/// A connection and the name by which it can be interrupted.
pub(crate) struct Session<E: Engine + ?Sized> {
    pub(crate) connection: E::Connection,
    pub(crate) handle: E::Handle,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Request<'a> {
    /// All rows.
    Execute(Statement<'a>),
    /// The columns alone; nothing runs.
    Describe(Statement<'a>),
    /// A sign of life.
    Probe,
}

/// What a request is answered with: no batches but for a statement that ran.
pub(crate) type Answer = ResultSet;

/// The port's calls over a pool of sessions.
pub(crate) struct Sessions<E: Engine> {
    pool: Pool<E>,
}

impl<E: Engine> Sessions<E> {
    /// `first` is the connection that proved the settings right.
    pub(crate) fn new(engine: E, first: Session<E>, connections: usize) -> Self {
        Sessions { pool: Pool::new(engine, first, connections) }
    }

    pub(crate) async fn execute(
        &self,
        statement: Statement<'_>,
        timeout: Duration,
    ) -> Result<ResultSet, WarehouseError> {
        self.pool.run(Request::Execute(statement), timeout).await
    }

    pub(crate) async fn describe(&self, statement: Statement<'_>) -> Result<SchemaRef, WarehouseError> {
        Ok(self.pool.run(Request::Describe(statement), PROBE_TIMEOUT).await?.schema)
    }

    pub(crate) async fn ping(&self) -> Result<(), WarehouseError> {
        self.pool.run(Request::Probe, PROBE_TIMEOUT).await.map(drop)
    }
}

/// The answer to a probe.
pub(crate) fn alive() -> Answer {
    ResultSet { schema: SchemaRef::new(arrow::datatypes::Schema::empty()), batches: Vec::new() }
}
