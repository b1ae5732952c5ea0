//! Opens the state database and migrates it to this program's version.
//!
//! SQLite runs in WAL mode and writes each commit to disk before it returns; PostgreSQL is configured to do the same.
//! Migrations run in one transaction, for which the writers of all processes wait. If several processes start at once,
//! only one of them migrates. A database that a newer program has migrated is not changed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::migrate::MigrateError;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Executor as _, PgPool, SqlitePool};

use crate::database::Database;
use crate::location::{Location, StateUrlError};
use crate::migrations;

const FILE_CONNECTIONS: u32 = 4;
const SERVER_CONNECTIONS: u32 = 8;
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// The time limit for connecting, and for waiting for a free connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Sets up a session with time limits for calls and for transactions, so that a process that stops in the middle of a
/// change does not block others for long.
const SESSION: &str = "\
    SET synchronous_commit = on; SET statement_timeout = '10s'; SET lock_timeout = '5s'; \
    SET idle_in_transaction_session_timeout = '30s'; SET TIME ZONE 'UTC'";
/// The time to wait while other processes open or migrate the file. [`MIGRATING`] has the same limit for
/// PostgreSQL.
const MIGRATION_PATIENCE: Duration = Duration::from_secs(60);
const RETRY_PAUSE: Duration = Duration::from_millis(20);
/// Sets the limits for the wait while another process migrates.
const MIGRATING: &str = "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '60s'";
/// Acquires the lock of migrations. Its key is an arbitrary constant.
const ONE_MIGRATION: &str = "SELECT pg_advisory_xact_lock(32762643847573093)";

/// The reason why the state database cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Url(#[from] StateUrlError),
    #[error("cannot create the folder {}: {source}", folder.display())]
    Folder { folder: PathBuf, source: std::io::Error },
    #[error("cannot open the state database {place}: {}", said(source))]
    Database { place: String, source: sqlx::Error },
    #[error(
        "the state database {place} was migrated by a newer version of terrane (migration {version}): run that \
         version, or restore an older copy"
    )]
    Newer { place: String, version: i64 },
    #[error("cannot migrate the state database {place}: {source}")]
    Migrate { place: String, source: MigrateError },
}

/// Returns the message of an error. A timeout of the pool does not contain its cause, so it gets its own message.
fn said(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::PoolTimedOut => format!("no connection within {} s", CONNECT_TIMEOUT.as_secs()),
        error => error.to_string(),
    }
}

/// Connects, and migrates the schema to this program's version. A missing file is created.
pub(crate) async fn open(location: &Location) -> Result<Database, OpenError> {
    if let Location::File(file) = location
        && let Some(folder) = file.parent()
    {
        make_private_folder(folder).map_err(|source| OpenError::Folder { folder: folder.to_owned(), source })?;
        make_private_file(file);
    }
    let database = connect(location).await?;
    let place = location.shown();
    match migrate(&database).await {
        Ok(()) => Ok(database),
        Err(MigrateError::VersionMissing(version)) => Err(OpenError::Newer { place, version }),
        Err(source) => Err(OpenError::Migrate { place, source }),
    }
}

/// Creates an empty file, which is an empty database, readable for this user only. Ignores errors, because opening the
/// file reports them.
fn make_private_file(file: &Path) {
    let mut options = std::fs::OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let _ = options.write(true).create_new(true).open(file);
}

/// Connects without migrating the schema.
pub(crate) async fn connect(location: &Location) -> Result<Database, OpenError> {
    let connected = match location {
        Location::File(file) => open_file(file).await.map(Database::Sqlite),
        Location::Server(options) => open_server(options).await.map(Database::Postgres),
    };
    connected.map_err(|source| OpenError::Database { place: location.shown(), source })
}

/// Returns the schema version of this program.
pub(crate) fn own_schema() -> i64 {
    migrations::NEWEST
}

async fn open_file(file: &Path) -> Result<SqlitePool, sqlx::Error> {
    let options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(BUSY_TIMEOUT)
        .foreign_keys(true);
    let pool = || SqlitePoolOptions::new().max_connections(FILE_CONNECTIONS).connect_with(options.clone());
    while_busy(pool).await
}

/// Repeats an attempt while other processes lock the file. `SQLite` refuses a change of the journal mode at once,
/// without waiting for the busy timeout.
async fn while_busy<T, F: Future<Output = Result<T, sqlx::Error>>>(attempt: impl Fn() -> F) -> Result<T, sqlx::Error> {
    for _ in 0..MIGRATION_PATIENCE.as_millis() / RETRY_PAUSE.as_millis() {
        match attempt().await {
            Err(error) if is_busy(&error) => tokio::time::sleep(RETRY_PAUSE).await,
            outcome => return outcome,
        }
    }
    attempt().await
}

/// Returns whether an error has the code `SQLITE_BUSY` or `SQLITE_LOCKED`, or an extended code of these.
fn is_busy(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code()?.parse::<u32>().ok());
    code.is_some_and(|code| matches!(code & 0xff, 5 | 6))
}

/// Creates a folder that only the user of this process can read.
fn make_private_folder(folder: &Path) -> std::io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

async fn open_server(options: &PgConnectOptions) -> Result<PgPool, sqlx::Error> {
    // The first connection is made without the pool. The pool would retry until its timeout and lose the error.
    let first = tokio::time::timeout(CONNECT_TIMEOUT, options.connect()).await;
    sqlx::Connection::close(first.map_err(|_| sqlx::Error::PoolTimedOut)??).await?;
    let pool = PgPoolOptions::new()
        .max_connections(SERVER_CONNECTIONS)
        .acquire_timeout(CONNECT_TIMEOUT)
        .after_connect(|connection, _| Box::pin(async move { connection.execute(SESSION).await.map(|_| ()) }));
    pool.connect_with(options.clone().disable_statement_logging()).await
}

async fn migrate(database: &Database) -> Result<(), MigrateError> {
    match database {
        Database::Sqlite(pool) => {
            let mut change = while_busy(|| pool.begin_with("BEGIN IMMEDIATE")).await?;
            migrations::sqlite().run(&mut *change).await?;
            change.commit().await?;
        }
        Database::Postgres(pool) => {
            let mut change = pool.begin().await?;
            change.execute(MIGRATING).await?;
            change.execute(ONE_MIGRATION).await?;
            migrations::postgres().run(&mut *change).await?;
            change.commit().await?;
        }
    }
    Ok(())
}
