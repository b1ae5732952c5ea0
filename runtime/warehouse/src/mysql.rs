//! MySQL and MariaDB: sessions that only read, in UTC.
//!
//! In: the URL of a server, then statements with `?` placeholders. Out: Arrow batches, decoded from the binary
//! protocol. The SQL mode of a session makes `||` concatenate strings, as in standard SQL. A backslash escapes in a
//! literal, as the dialect's profile declares. If a statement's caller has disconnected, `KILL QUERY` on another
//! connection ends the statement.

mod bind;
mod catalog;
mod cell;
mod rollups;

use std::time::Duration;

use async_trait::async_trait;
use sqlx::error::DatabaseError;
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection, MySqlDatabaseError};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, SqlSafeStr as _};
use terrane_app::ports::rollup_tables::{RollupPlace, RollupTables};
use terrane_app::ports::warehouse::{RefusalCause, Statement, Warehouse, WarehouseError, WarehouseErrorKind};

use rollups::MySqlRollups;

use crate::catalog::Lookup;
use crate::columns::Columns;
use crate::sessions::{
    ColumnKinds, ConnectError, Engine, Failed, Reader, ServerSettings, WarehouseSession, WritableEngine, open_sessions,
    within,
};

const NAME: &str = "mysql";
const FAILED: Failed = Failed { warehouse: NAME, kind_of, cause_of };
const READER: Reader<sqlx::MySql> = Reader { failed: FAILED, kind_of: cell::kind_of, append: cell::append };

/// The settings of sessions that read. sqlx sets the time zone `+00:00` and the character set utf8mb4. `ANSI_QUOTES`
/// stays off, so that `"x"` is a string for the server as it is for the compiler. If the server read `"x"` as a column,
/// the query would bypass the column's mask.
const READING: &str = "\
    SET SESSION sql_mode = 'PIPES_AS_CONCAT,STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'; \
    SET SESSION TRANSACTION READ ONLY";

/// The settings of connections that may write. They equal `READING`, except for the transactions and the lock timeout.
const WRITING: &str = "\
    SET SESSION sql_mode = 'PIPES_AS_CONCAT,STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'; \
    SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; SET SESSION lock_wait_timeout = 10";

struct Server {
    options: MySqlConnectOptions,
    connect_timeout: Duration,
}

/// Runs `init` in the server's own SQL mode, and checks that the server answers.
///
/// # Errors
/// [`ConnectError`] names the statement that failed. No error shows the URL.
pub async fn connect(settings: &ServerSettings) -> Result<impl Warehouse + use<>, ConnectError> {
    open_sessions(Server::new(settings)?, settings).await
}

/// Returns the port to the tables of pre-aggregations, with the privileges of the URL's user. Each build opens its own
/// connection.
///
/// # Errors
/// The URL does not name a MySQL or MariaDB server.
pub fn rollups(settings: &ServerSettings, place: RollupPlace) -> Result<impl RollupTables + use<>, ConnectError> {
    Ok(MySqlRollups::new(Server::new(settings)?, place))
}

fn options(url: &str) -> Result<MySqlConnectOptions, ConnectError> {
    let wrong = |message: String| ConnectError::Url { warehouse: NAME, message };
    if !["mysql://", "mariadb://"].iter().any(|scheme| url.starts_with(scheme)) {
        return Err(wrong("write `mysql://user:password@host:3306/database`".to_owned()));
    }
    let options: MySqlConnectOptions = url.parse().map_err(|error: sqlx::Error| wrong(error.to_string()))?;
    let options = options.pipes_as_concat(false).no_engine_substitution(false).charset("utf8mb4");
    Ok(options.statement_cache_capacity(0).disable_statement_logging())
}

impl Server {
    fn new(settings: &ServerSettings) -> Result<Self, ConnectError> {
        Ok(Server { options: options(&settings.url)?, connect_timeout: settings.connect_timeout })
    }
}

#[async_trait]
impl Engine for Server {
    const FAILED: Failed = FAILED;
    type Connection = MySqlConnection;
    /// The id of the connection.
    type Handle = u64;

    fn lookup(name: &[&str]) -> Option<Lookup> {
        catalog::lookup(name)
    }

    async fn connect(&self) -> Result<WarehouseSession<Self>, WarehouseError> {
        let mut connection = self.open().await?;
        let setting_up = async {
            connection.execute(sqlx::raw_sql(READING)).await?;
            connection_id(&mut connection).await
        };
        let connecting = async { setting_up.await.map_err(|error| FAILED.connecting(&error)) };
        let handle = within(NAME, self.connect_timeout, connecting).await?;
        Ok(WarehouseSession { connection, handle })
    }

    async fn rows(
        &self,
        connection: &mut MySqlConnection,
        statement: Statement<'_>,
    ) -> Result<Option<Columns>, WarehouseError> {
        let arguments = bind::arguments(statement.params).map_err(|error| FAILED.refused(error.to_string()))?;
        let query = sqlx::query_with(AssertSqlSafe(statement.text), arguments).persistent(false);
        READER.read(connection.fetch(query), statement).await
    }

    async fn describe(
        &self,
        connection: &mut MySqlConnection,
        statement: Statement<'_>,
    ) -> Result<ColumnKinds, WarehouseError> {
        let text = AssertSqlSafe(statement.text).into_sql_str();
        let prepared = connection.prepare(text).await.map_err(|error| FAILED.because(&error))?;
        READER.described(sqlx::Statement::columns(&prepared))
    }

    async fn ping(&self, connection: &mut MySqlConnection) -> Result<(), sqlx::Error> {
        connection.ping().await
    }

    async fn cancel(&self, handle: &u64) -> Result<(), WarehouseError> {
        let mut other = self.open().await?;
        // `KILL QUERY` accepts no placeholder. The number is safe, because it comes from the server.
        let kill = sqlx::raw_sql(AssertSqlSafe(format!("KILL QUERY {handle}")));
        other.execute(kill).await.map(drop).map_err(|error| FAILED.because(&error))
    }
}

#[async_trait]
impl WritableEngine for Server {
    async fn open(&self) -> Result<MySqlConnection, WarehouseError> {
        let connecting = async { self.options.connect().await.map_err(|error| FAILED.connecting(&error)) };
        within(NAME, self.connect_timeout, connecting).await
    }

    async fn connect_to_write(&self) -> Result<WarehouseSession<Self>, WarehouseError> {
        let mut connection = self.open().await?;
        let setting_up = async {
            connection.execute(sqlx::raw_sql(WRITING)).await?;
            connection_id(&mut connection).await
        };
        let handle = setting_up.await.map_err(|error| FAILED.connecting(&error))?;
        Ok(WarehouseSession { connection, handle })
    }
}

async fn connection_id(connection: &mut MySqlConnection) -> Result<u64, sqlx::Error> {
    sqlx::query_scalar("SELECT CAST(connection_id() AS UNSIGNED)").fetch_one(connection).await
}

/// Classifies an error by the server's error number.
fn kind_of(error: &dyn DatabaseError) -> WarehouseErrorKind {
    match error.try_downcast_ref::<MySqlDatabaseError>().map(MySqlDatabaseError::number) {
        // An interrupted statement, and the time limits of MariaDB and of MySQL.
        Some(1317 | 1969 | 3024) => WarehouseErrorKind::Timeout,
        // Too many connections, shutting down, a killed connection, gone away, lost.
        Some(1040 | 1053 | 1152..=1161 | 1203 | 1226 | 1927 | 2006 | 2013) => WarehouseErrorKind::Unavailable,
        _ => WarehouseErrorKind::Refused,
    }
}

/// Returns the cause of a refusal by the server's error number. The numbers of `Function` mean an unknown function or a
/// wrong number of arguments; those of `Value` mean a value out of range, a division by zero or a failed conversion.
fn cause_of(error: &dyn DatabaseError) -> RefusalCause {
    match error.try_downcast_ref::<MySqlDatabaseError>().map(MySqlDatabaseError::number) {
        Some(1128 | 1305 | 1318 | 1582 | 1583 | 1630) => RefusalCause::Function,
        Some(1264 | 1292 | 1365 | 1366 | 1690) => RefusalCause::Value,
        _ => RefusalCause::Other,
    }
}
