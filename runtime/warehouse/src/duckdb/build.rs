//! Builds models, each in a transaction on its own connection and thread.
//!
//! In: a relation and its query. Out: the new relation, which replaces the old one. DuckDB's transactions include
//! definitions: until the commit, readers see the old relation, and running statements finish with it. A build that
//! fails, is interrupted or killed leaves nothing behind. Builds do not use the connections of queries.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use async_trait::async_trait;
use duckdb::{Connection, InterruptHandle, OptionalExt as _};
use terrane_app::ports::builder::{BuildError, CantBuild, ModelBuilder, NewRelation, NotReady};
use terrane_app::ports::warehouse::WarehouseError;
use tokio::sync::oneshot;

use super::error;
use super::pool::Pool;
use super::session::STACK_BYTES;
use crate::built::{Running, literal, quoted};

/// Selects the relations that Terrane built, which have a marker in their comment.
pub(super) const BUILT: &str = "\
    SELECT schema_name, table_name, 'table', comment FROM duckdb_tables() \
    WHERE database_name = current_database() AND starts_with(comment, 'Built by Terrane') \
    UNION ALL SELECT schema_name, view_name, 'view', comment FROM duckdb_views() \
    WHERE database_name = current_database() AND starts_with(comment, 'Built by Terrane')";

/// Selects the kind and comment of the relation with a name, ignoring case.
const EXISTING: &str = "\
    SELECT 'TABLE', comment FROM duckdb_tables() WHERE database_name = current_database() \
    AND lower(schema_name) = lower($1) AND lower(table_name) = lower($2) \
    UNION ALL SELECT 'VIEW', comment FROM duckdb_views() WHERE database_name = current_database() \
    AND lower(schema_name) = lower($1) AND lower(view_name) = lower($2)";

const IS_DATABASE: &str = "SELECT count(*) FROM duckdb_databases() WHERE lower(database_name) = lower($1)";

/// Builds models in a database that is open for writing.
pub(super) struct DuckDbBuilder {
    pool: Arc<Pool>,
    running: Running,
}

impl DuckDbBuilder {
    pub(super) fn new(pool: Arc<Pool>) -> Self {
        DuckDbBuilder { pool, running: Running::new() }
    }

    /// Waits until no build runs, for a limited time.
    pub(super) async fn settle_builds(&self) {
        self.running.settle().await;
    }

    /// Runs a function on a connection of its own. If the future is dropped or the time limit is reached, the function
    /// is interrupted.
    pub(super) async fn run<T, E>(
        &self,
        timeout: Duration,
        work: impl FnOnce(&Connection, &AtomicBool) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<WarehouseError> + Send + 'static,
    {
        let permit = self.running.begin().await;
        let connection = self.pool.connection()?;
        let is_unwanted = Arc::new(AtomicBool::new(false));
        let is_over = Arc::new(AtomicBool::new(false));
        let interrupt = Some(connection.interrupt_handle());
        let mut stop = Stop { interrupt, is_unwanted: is_unwanted.clone(), is_over: is_over.clone() };
        let (answer, answered) = oneshot::channel();
        let thread = thread::Builder::new().name("duckdb-build".to_owned()).stack_size(STACK_BYTES);
        let started = thread.spawn(move || {
            let outcome = work(&connection, &is_unwanted);
            is_over.store(true, Ordering::SeqCst);
            drop((connection, permit));
            // The receiver may have been dropped.
            let _ = answer.send(outcome);
        });
        started.map_err(|error| error::unavailable(&format!("cannot start a thread for a build: {error}")))?;
        let outcome = match tokio::time::timeout(timeout, answered).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(error::unavailable("the build ended before it answered").into()),
            Err(_) => return Err(error::timeout().into()),
        };
        stop.interrupt = None;
        outcome
    }
}

/// The pause between two interrupts of a build that has not stopped yet.
const PAUSE: Duration = Duration::from_millis(20);

/// Stops a build whose caller has disconnected. An interrupt between two statements has no effect. Therefore a flag is
/// set as well, and the interrupt is repeated until the build has ended.
struct Stop {
    interrupt: Option<Arc<InterruptHandle>>,
    is_unwanted: Arc<AtomicBool>,
    is_over: Arc<AtomicBool>,
}

impl Drop for Stop {
    fn drop(&mut self) {
        if let Some(interrupt) = self.interrupt.take() {
            self.is_unwanted.store(true, Ordering::SeqCst);
            interrupt.interrupt();
            let is_over = Arc::clone(&self.is_over);
            let again = move || {
                while !is_over.load(Ordering::SeqCst) {
                    interrupt.interrupt();
                    thread::sleep(PAUSE);
                }
            };
            // If the thread cannot be started, the single interrupt must suffice.
            let _ = thread::Builder::new().name("duckdb-stop".to_owned()).spawn(again);
        }
    }
}

#[async_trait]
impl ModelBuilder for DuckDbBuilder {
    async fn prepare(&self, schemas: &[&str]) -> Result<(), NotReady> {
        let schemas: Vec<String> = schemas.iter().map(ToString::to_string).collect();
        let make = move |connection: &Connection, _: &AtomicBool| {
            for schema in schemas {
                let refused = |error: duckdb::Error| NotReady::from(error::from_engine(&error));
                let databases: i64 = connection.query_row(IS_DATABASE, [&schema], |row| row.get(0)).map_err(refused)?;
                if databases > 0 {
                    return Err(CantBuild::NameOfDatabase { schema }.into());
                }
                let text = format!("CREATE SCHEMA IF NOT EXISTS {}", quoted(&schema));
                connection.execute_batch(&text).map_err(refused)?;
            }
            Ok(())
        };
        self.run(super::PROBE_TIMEOUT, make).await
    }

    async fn build(&self, relation: &NewRelation<'_>, timeout: Duration) -> Result<Option<u64>, BuildError> {
        let owned = Owned {
            schema: relation.schema.to_owned(),
            name: relation.name.to_owned(),
            is_view: relation.is_view,
            query: relation.query.to_owned(),
            marker: relation.marker.clone(),
        };
        self.run(timeout, move |connection, is_unwanted| replace(connection, is_unwanted, &owned.as_new())).await
    }

    async fn settle(&self) {
        self.running.settle().await;
    }
}

/// The inputs of a build, as owned values for its thread.
struct Owned {
    schema: String,
    name: String,
    is_view: bool,
    query: String,
    marker: terrane_app::ports::builder::Marker,
}

impl Owned {
    fn as_new(&self) -> NewRelation<'_> {
        let Owned { schema, name, is_view, query, marker } = self;
        NewRelation { schema, name, is_view: *is_view, query, marker }
    }
}

fn replace(
    connection: &Connection,
    is_unwanted: &AtomicBool,
    new: &NewRelation<'_>,
) -> Result<Option<u64>, BuildError> {
    run(connection, "BEGIN TRANSACTION")?;
    let built = replace_within(connection, new);
    let is_wanted = !is_unwanted.load(Ordering::SeqCst);
    match built {
        Ok(rows) if is_wanted => run(connection, "COMMIT").map(|_| rows),
        Ok(_) => {
            run(connection, "ROLLBACK")?;
            Err(error::unavailable("the build was stopped").into())
        }
        Err(error) => {
            // If this fails, closing the connection rolls the transaction back.
            let _ = run(connection, "ROLLBACK");
            Err(error)
        }
    }
}

fn replace_within(connection: &Connection, new: &NewRelation<'_>) -> Result<Option<u64>, BuildError> {
    let kind = if new.is_view { "VIEW" } else { "TABLE" };
    let relation = [quoted(new.schema), quoted(new.name)].join(".");
    let old: Option<(String, Option<String>)> = connection
        .query_row(EXISTING, [new.schema, new.name], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
        .map_err(|error| error::from_engine(&error))?;
    if let Some((old_kind, comment)) = old {
        new.may_replace(comment.as_deref())?;
        if old_kind != kind {
            run(connection, &format!("DROP {old_kind} {relation}"))?;
        }
    }
    run(connection, &format!("CREATE OR REPLACE {kind} {relation} AS\n{}", new.query))?;
    run(connection, &format!("COMMENT ON {kind} {relation} IS {}", literal(&new.marker.to_string())))?;
    if new.is_view {
        return Ok(None);
    }
    // DuckDB does not return the number of rows for `CREATE TABLE … AS`, so the rows are counted.
    let rows = connection.query_row(&format!("SELECT count(*) FROM {relation}"), [], |row| row.get::<_, u64>(0));
    rows.map(Some).map_err(|error| error::from_engine(&error).into())
}

fn run(connection: &Connection, text: &str) -> Result<(), BuildError> {
    connection.execute(text, []).map(drop).map_err(|error| error::from_engine(&error).into())
}
