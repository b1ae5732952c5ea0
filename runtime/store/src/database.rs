//! One interface to both database engines: a pool, a transaction, a row.
//!
//! In: a [`Statement`]. Out: rows, or the number of affected rows. Most statements are the same for both engines. This
//! module contains the differences: how a transaction begins, and the current time. Both engines have one writer at a
//! time, so that the audit chain has a single end.

use std::time::Duration;

use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, PgPool, Postgres, Row as _, Sqlite, SqlitePool};
use terrane_app::ports::store::StoreError;

use crate::statement::{Bound, Statement};

/// Acquires the lock of writers until the transaction ends. The key of the lock is the object id of a table, so that
/// databases on the same server use different locks.
const ONE_WRITER: &str = "SELECT pg_advisory_xact_lock('audit_log'::regclass::oid::bigint)";
/// Removes the limit for idle transactions, because a reader of many pages may pause between them.
const PATIENT: &str = "SET LOCAL idle_in_transaction_session_timeout = 0";

/// The time limit of a call. It exceeds the engines' own limits, whose errors are more precise.
const CALL_TIMEOUT: Duration = Duration::from_secs(12);

#[derive(Debug, Clone)]
pub(crate) enum Database {
    Sqlite(SqlitePool),
    Postgres(PgPool),
}

/// A transaction. If it is dropped, it is rolled back.
#[derive(Debug)]
pub(crate) enum Transaction {
    Sqlite(sqlx::Transaction<'static, Sqlite>),
    Postgres(sqlx::Transaction<'static, Postgres>),
}

#[derive(Debug)]
pub(crate) enum Row {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

fn failed(error: sqlx::Error) -> StoreError {
    StoreError { message: error.to_string() }
}

/// Fails after [`CALL_TIMEOUT`], so that a silent server does not block the caller.
async fn in_time<T>(asking: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, StoreError> {
    match tokio::time::timeout(CALL_TIMEOUT, asking).await {
        Ok(answer) => answer.map_err(failed),
        Err(_) => Err(StoreError { message: format!("no response within {} s", CALL_TIMEOUT.as_secs()) }),
    }
}

/// Returns the statement for one engine. Its text consists only of constants of this program.
macro_rules! query {
    ($engine:ty, $statement:expr) => {{
        let Statement { sql, values } = $statement;
        values.into_iter().fold(sqlx::query::<$engine>(AssertSqlSafe(sql)), |query, value| match value {
            Bound::Text(text) => query.bind(text),
            Bound::Integer(integer) => query.bind(integer),
        })
    }};
}

/// Makes a call on the engine in use. `$on` is the sqlx executor.
macro_rules! on_either {
    ($this:expr, $kind:ident, $on:ident => $executor:expr, $statement:expr, $call:ident, $outcome:ident => $sqlite:expr, $postgres:expr) => {
        match $this {
            $kind::Sqlite($on) => {
                let $outcome = in_time(query!(Sqlite, $statement).$call($executor)).await?;
                Ok($sqlite)
            }
            $kind::Postgres($on) => {
                let $outcome = in_time(query!(Postgres, $statement).$call($executor)).await?;
                Ok($postgres)
            }
        }
    };
}

impl Database {
    pub(crate) async fn optional(&self, statement: Statement) -> Result<Option<Row>, StoreError> {
        on_either!(self, Database, pool => pool, statement, fetch_optional, row => row.map(Row::Sqlite), row.map(Row::Postgres))
    }

    pub(crate) async fn all(&self, statement: Statement) -> Result<Vec<Row>, StoreError> {
        on_either!(self, Database, pool => pool, statement, fetch_all, rows =>
            rows.into_iter().map(Row::Sqlite).collect(), rows.into_iter().map(Row::Postgres).collect())
    }

    /// Runs a statement and returns the number of affected rows.
    pub(crate) async fn execute(&self, statement: Statement) -> Result<u64, StoreError> {
        on_either!(self, Database, pool => pool, statement, execute, done => done.rows_affected(), done.rows_affected())
    }

    /// Starts a transaction that writes. Other writers wait until it ends.
    pub(crate) async fn change(&self) -> Result<Transaction, StoreError> {
        let mut transaction = self.begin().await?;
        if let Transaction::Postgres(_) = transaction {
            transaction.execute(Statement::new(ONE_WRITER)).await?;
        }
        Ok(transaction)
    }

    /// Starts a transaction that writes. Does not require the table of the audit log to exist.
    pub(crate) async fn begin(&self) -> Result<Transaction, StoreError> {
        match self {
            // `BEGIN IMMEDIATE` takes the write lock at once, so no other writer can come between.
            Database::Sqlite(pool) => {
                in_time(async { pool.begin_with("BEGIN IMMEDIATE").await }).await.map(Transaction::Sqlite)
            }
            Database::Postgres(pool) => in_time(pool.begin()).await.map(Transaction::Postgres),
        }
    }

    /// Starts a transaction that reads one snapshot.
    pub(crate) async fn read(&self) -> Result<Transaction, StoreError> {
        match self {
            Database::Sqlite(pool) => in_time(async { pool.begin_with("BEGIN").await }).await.map(Transaction::Sqlite),
            Database::Postgres(pool) => {
                let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY";
                let transaction = in_time(async { pool.begin_with(begin).await }).await?;
                let mut transaction = Transaction::Postgres(transaction);
                transaction.execute(Statement::new(PATIENT)).await?;
                Ok(transaction)
            }
        }
    }

    /// Returns an SQL expression for the database's time in microseconds. Clocks of several servers may differ.
    pub(crate) fn now(&self) -> &'static str {
        match self {
            Database::Sqlite(_) => "CAST(unixepoch('subsec') * 1000000 AS INTEGER)",
            Database::Postgres(_) => "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
        }
    }
}

impl Transaction {
    pub(crate) async fn optional(&mut self, statement: Statement) -> Result<Option<Row>, StoreError> {
        on_either!(self, Transaction, open => &mut **open, statement, fetch_optional, row => row.map(Row::Sqlite), row.map(Row::Postgres))
    }

    pub(crate) async fn all(&mut self, statement: Statement) -> Result<Vec<Row>, StoreError> {
        on_either!(self, Transaction, open => &mut **open, statement, fetch_all, rows =>
            rows.into_iter().map(Row::Sqlite).collect(), rows.into_iter().map(Row::Postgres).collect())
    }

    /// Runs a statement and returns the number of affected rows.
    pub(crate) async fn execute(&mut self, statement: Statement) -> Result<u64, StoreError> {
        on_either!(self, Transaction, open => &mut **open, statement, execute, done => done.rows_affected(), done.rows_affected())
    }

    /// Commits the transaction. Its changes are on disk when this function returns.
    pub(crate) async fn commit(self) -> Result<(), StoreError> {
        match self {
            Transaction::Sqlite(open) => in_time(open.commit()).await,
            Transaction::Postgres(open) => in_time(open.commit()).await,
        }
    }

    pub(crate) async fn rollback(self) -> Result<(), StoreError> {
        match self {
            Transaction::Sqlite(open) => in_time(open.rollback()).await,
            Transaction::Postgres(open) => in_time(open.rollback()).await,
        }
    }
}

impl Row {
    pub(crate) fn maybe_text(&self, column: &str) -> Result<Option<String>, StoreError> {
        match self {
            Row::Sqlite(row) => row.try_get(column),
            Row::Postgres(row) => row.try_get(column),
        }
        .map_err(failed)
    }

    pub(crate) fn maybe_integer(&self, column: &str) -> Result<Option<i64>, StoreError> {
        match self {
            Row::Sqlite(row) => row.try_get(column),
            Row::Postgres(row) => row.try_get(column),
        }
        .map_err(failed)
    }

    pub(crate) fn text(&self, column: &str) -> Result<String, StoreError> {
        self.maybe_text(column)?.ok_or_else(|| missing(column))
    }

    pub(crate) fn integer(&self, column: &str) -> Result<i64, StoreError> {
        self.maybe_integer(column)?.ok_or_else(|| missing(column))
    }
}

fn missing(column: &str) -> StoreError {
    StoreError { message: format!("a row has no `{column}`") }
}
