//! The adapter of SQLite in this process: one file, read-only sessions.
//!
//! In: a file, then statements with `?` placeholders. Out: Arrow batches. SQLite gives each value its own type, and has
//! no types for dates, booleans and decimals. The type that the query expects for a column decides the meaning of its
//! strings and numbers (`columns::dynamic`). Decimals are doubles. A statement whose caller has disconnected is stopped
//! by a flag, which the engine checks while it runs.

mod bind;
mod catalog;
mod cell;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use sqlx::error::DatabaseError;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Either, Executor as _, SqlSafeStr as _};
use terrane_app::ports::warehouse::{
    EngineVersion, RefusalCause, Statement, Warehouse, WarehouseError, WarehouseErrorKind,
};

use crate::catalog::Lookup;
use crate::columns::Columns;
use crate::file_versions::FileVersions;
use crate::sessions::{ColumnKinds, ConnectError, Engine, Failed, Reader, Sessions, WarehouseSession, run_init};

const NAME: &str = "sqlite";
const FAILED: Failed = Failed { warehouse: NAME, kind_of, cause_of };
const READER: Reader<sqlx::Sqlite> = Reader { failed: FAILED, kind_of: cell::kind_of, append: cell::append };

/// The time for which a reader waits for a writer.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// The number of virtual machine steps between two checks of the flag. They take well under a millisecond.
const STEPS_BETWEEN_LOOKS: i32 = 10_000;
/// The largest number of rows that the engine's thread reads ahead.
const ROWS_AHEAD: usize = 512;

/// The operator's settings.
#[derive(Debug, Clone)]
pub struct SqliteSettings {
    /// The database file. If `None`, the database is in memory, and `init` fills it.
    pub path: Option<PathBuf>,
    /// The statements that run at each start, in order.
    pub init: Vec<String>,
    /// The largest number of statements that run at the same time.
    pub connections: usize,
}

struct File {
    options: SqliteConnectOptions,
    versions: FileVersions,
    /// A connection that keeps an in-memory database alive.
    _writer: Mutex<Option<SqliteConnection>>,
}

/// Opens the file and runs `init`. Without `init`, the file must exist.
///
/// # Errors
/// [`ConnectError`] names the statement that failed.
pub async fn open(settings: &SqliteSettings) -> Result<impl Warehouse + use<>, ConnectError> {
    let failed = |error: sqlx::Error| ConnectError::Connection(FAILED.connecting(&error));
    let options = match &settings.path {
        Some(path) => SqliteConnectOptions::new().filename(path),
        None => "sqlite::memory:".parse().map_err(failed)?,
    };
    let options = options.busy_timeout(BUSY_TIMEOUT).row_buffer_size(ROWS_AHEAD).disable_statement_logging();
    let mut writer = None;
    if settings.path.is_none() || !settings.init.is_empty() {
        let connection = options.clone().create_if_missing(true).connect().await.map_err(failed)?;
        let connection = run_init(connection, &settings.init).await?;
        writer = settings.path.is_none().then_some(connection);
    }
    let reading = options.read_only(settings.path.is_some()).pragma("query_only", "ON");
    let versions = match &settings.path {
        Some(path) => FileVersions::of(vec![path.clone(), with_suffix(path, "-wal")], Vec::new()),
        None => FileVersions::default().in_memory(),
    };
    let file = File { options: reading, versions, _writer: Mutex::new(writer) };
    let first = file.connect().await.map_err(ConnectError::Connection)?;
    Ok(Sessions::new(file, first, settings.connections))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

#[async_trait]
impl Engine for File {
    const FAILED: Failed = FAILED;
    type Connection = SqliteConnection;
    /// A flag that is true until the session's statement is cancelled.
    type Handle = Arc<AtomicBool>;

    fn lookup(name: &[&str]) -> Option<Lookup> {
        catalog::lookup(name)
    }

    async fn connect(&self) -> Result<WarehouseSession<Self>, WarehouseError> {
        let failed = |error: sqlx::Error| FAILED.connecting(&error);
        let mut connection = self.options.connect().await.map_err(failed)?;
        let goes_on = Arc::new(AtomicBool::new(true));
        let flag = Arc::clone(&goes_on);
        let mut locked = connection.lock_handle().await.map_err(failed)?;
        locked.set_progress_handler(STEPS_BETWEEN_LOOKS, move || flag.load(Ordering::Relaxed));
        drop(locked);
        Ok(WarehouseSession { connection, handle: goes_on })
    }

    async fn rows(
        &self,
        connection: &mut SqliteConnection,
        statement: Statement<'_>,
    ) -> Result<Option<Columns>, WarehouseError> {
        let arguments = bind::arguments(statement.params).map_err(|error| FAILED.refused(error.to_string()))?;
        let text = AssertSqlSafe(statement.text).into_sql_str();
        let prepared = connection.prepare(text).await.map_err(|error| FAILED.because(&error))?;
        // A placeholder without a value would be null, and an extra placeholder would take the value of another one.
        let places = match sqlx::Statement::parameters(&prepared) {
            Some(Either::Right(count)) => count,
            Some(Either::Left(types)) => types.len(),
            None => 0,
        };
        if places != statement.params.len() {
            let bound = statement.params.len();
            return Err(FAILED.refused(format!("the statement has {places} placeholders for {bound} values")));
        }
        let query = sqlx::Statement::query_with(&prepared, arguments).persistent(false);
        READER.read(connection.fetch(query), statement).await
    }

    /// Describes the columns by their declared types. Expressions have no declared type.
    async fn describe(
        &self,
        connection: &mut SqliteConnection,
        statement: Statement<'_>,
    ) -> Result<ColumnKinds, WarehouseError> {
        let text = AssertSqlSafe(statement.text).into_sql_str();
        let prepared = connection.prepare(text).await.map_err(|error| FAILED.because(&error))?;
        let columns = sqlx::Statement::columns(&prepared).iter();
        Ok(columns.map(|column| (sqlx::Column::name(column).to_owned(), cell::declared(column))).collect())
    }

    async fn ping(&self, connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        connection.ping().await
    }

    fn data_version(&self) -> Option<EngineVersion> {
        self.versions.read()
    }

    async fn cancel(&self, handle: &Arc<AtomicBool>) -> Result<(), WarehouseError> {
        handle.store(false, Ordering::Relaxed);
        Ok(())
    }
}

/// Returns the kind of an error, by SQLite's primary result codes.
fn kind_of(error: &dyn DatabaseError) -> WarehouseErrorKind {
    const INTERRUPTED: u32 = 9;
    // Busy, locked, a failing disk, a damaged file, a full disk, a file that cannot be opened, a file that is not a
    // database.
    const UNAVAILABLE: [u32; 7] = [5, 6, 10, 11, 13, 14, 26];
    match error.code().and_then(|code| code.parse::<u32>().ok()).map(|code| code & 0xff) {
        Some(INTERRUPTED) => WarehouseErrorKind::Timeout,
        Some(code) if UNAVAILABLE.contains(&code) => WarehouseErrorKind::Unavailable,
        _ => WarehouseErrorKind::Refused,
    }
}

/// Returns the cause of a refusal. SQLite has one code for all errors of a statement, so the message decides.
fn cause_of(error: &dyn DatabaseError) -> RefusalCause {
    const FUNCTION: [&str; 2] = ["no such function", "wrong number of arguments to function"];
    let message = error.message();
    if FUNCTION.iter().any(|words| message.starts_with(words)) {
        RefusalCause::Function
    } else if message.contains("integer overflow") {
        RefusalCause::Value
    } else {
        RefusalCause::Other
    }
}
