//! MySQL and MariaDB: sessions that only read, in UTC, with standard SQL's quotes.
//!
//! In: the URL of a server, then statements with `?` placeholders. Out: Arrow batches, decoded from the
//! binary protocol. A session's SQL mode makes `"` quote names and `||` join texts, as the standard has
//! it; a backslash escapes in a literal, as the dialect's profile says. A statement without a caller is
//! ended by `KILL QUERY` from another connection.

mod bind;
mod catalog;
mod cell;

use std::time::Duration;

use async_trait::async_trait;
use sqlx::error::DatabaseError;
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection, MySqlDatabaseError};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, SqlSafeStr as _};
use terrane_app::ports::warehouse::{Statement, Warehouse, WarehouseError, WarehouseErrorKind};

use crate::catalog::Lookup;
use crate::columns::Columns;
use crate::sessions::{
    ColumnKinds, ConnectError, Engine, Failed, Reader, ServerSettings, Sessions, WarehouseSession, run_init, within,
};

const NAME: &str = "mysql";
const FAILED: Failed = Failed { warehouse: NAME, kind_of };
const READER: Reader<sqlx::MySql> = Reader { failed: FAILED, kind_of: cell::kind_of, append: cell::append };

/// The zone and the character set are set by sqlx: `+00:00` and utf8mb4. Without `ANSI_QUOTES`, so that `"x"` is
/// a string to the server, as it is to the compiler, and never a column without its mask.
const READING: &str = "\
    SET SESSION sql_mode = 'PIPES_AS_CONCAT,STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'; \
    SET SESSION TRANSACTION READ ONLY";

struct Server {
    options: MySqlConnectOptions,
    connect_timeout: Duration,
}

/// Runs `init`, in the server's own SQL mode, and proves that the server answers.
///
/// # Errors
/// [`ConnectError`] names the statement that failed; no error shows the URL.
pub async fn connect(settings: &ServerSettings) -> Result<impl Warehouse + use<>, ConnectError> {
    let server = Server { options: options(&settings.url)?, connect_timeout: settings.connect_timeout };
    if !settings.init.is_empty() {
        let writer = server.open().await.map_err(ConnectError::Connection)?;
        // The server forgets a connection that is closed without a word, too.
        let _ = run_init(writer, &settings.init).await?.close().await;
    }
    let first = server.connect().await.map_err(ConnectError::Connection)?;
    Ok(Sessions::new(server, first, settings.connections))
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
    /// A connection as the server makes it, in UTC.
    async fn open(&self) -> Result<MySqlConnection, WarehouseError> {
        let connecting = async { self.options.connect().await.map_err(|error| FAILED.connecting(&error)) };
        within(NAME, self.connect_timeout, connecting).await
    }
}

#[async_trait]
impl Engine for Server {
    const FAILED: Failed = FAILED;
    type Connection = MySqlConnection;
    /// The connection's number.
    type Handle = u64;

    fn lookup(name: &[&str]) -> Option<Lookup> {
        catalog::lookup(name)
    }

    async fn connect(&self) -> Result<WarehouseSession<Self>, WarehouseError> {
        let mut connection = self.open().await?;
        let setting_up = async {
            connection.execute(sqlx::raw_sql(READING)).await?;
            sqlx::query_scalar("SELECT CAST(connection_id() AS UNSIGNED)").fetch_one(&mut connection).await
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
        // No placeholder may stand there; the number is the server's own.
        let kill = sqlx::raw_sql(AssertSqlSafe(format!("KILL QUERY {handle}")));
        other.execute(kill).await.map(drop).map_err(|error| FAILED.because(&error))
    }
}

/// By the server's error numbers.
fn kind_of(error: &dyn DatabaseError) -> WarehouseErrorKind {
    match error.try_downcast_ref::<MySqlDatabaseError>().map(MySqlDatabaseError::number) {
        // Interrupted; over MariaDB's and MySQL's own limits of time.
        Some(1317 | 1969 | 3024) => WarehouseErrorKind::Timeout,
        // Too many connections, shutting down, a killed connection, gone away, lost.
        Some(1040 | 1053 | 1152..=1161 | 1203 | 1226 | 1927 | 2006 | 2013) => WarehouseErrorKind::Unavailable,
        _ => WarehouseErrorKind::Refused,
    }
}
