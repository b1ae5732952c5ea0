//! The adapter of PostgreSQL: read-only sessions in UTC.
//!
//! In: the URL of a server, then statements with `$n` placeholders. Out: Arrow batches, decoded from the binary
//! protocol. Prepared statements are not stored on the server: there are too many different ones, a change of a table
//! may invalidate them, and connection poolers do not support them. If a statement's caller has disconnected,
//! `pg_cancel_backend` on another connection ends the statement.

mod bind;
mod build;
mod catalog;
mod cell;
mod foreign_keys;
mod numeric;
mod rollups;
mod scan_size;

use std::time::Duration;

use async_trait::async_trait;
use sqlx::error::DatabaseError;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, SqlSafeStr as _};
use terrane_app::ports::builder::ModelBuilder;
use terrane_app::ports::rollup_tables::{RollupPlace, RollupTables};
use terrane_app::ports::warehouse::{RefusalCause, Statement, Warehouse, WarehouseError, WarehouseErrorKind};

use build::PostgresBuilder;
use rollups::PostgresRollups;

use crate::catalog::Lookup;
use crate::columns::Columns;
use crate::sessions::{
    ColumnKinds, ConnectError, Engine, Failed, Reader, ServerSettings, SizeQueries, WarehouseSession, WritableEngine,
    open_sessions, within,
};

const NAME: &str = "postgres";
const FAILED: Failed = Failed { warehouse: NAME, kind_of, cause_of };
const READER: Reader<sqlx::Postgres> = Reader { failed: FAILED, kind_of: cell::kind_of, append: cell::append };

/// The settings of sessions that read. No function that a statement calls can write, and times and doubles have the
/// same form on every server.
const READING: &str = "\
    SET default_transaction_read_only = on; SET TIME ZONE 'UTC'; SET extra_float_digits = 3; \
    SET standard_conforming_strings = on";

/// The settings of connections that may write. The server ends a statement if its client has disconnected.
const WRITING: &str = "\
    SET TIME ZONE 'UTC'; SET extra_float_digits = 3; SET standard_conforming_strings = on; \
    SET lock_timeout = '10s'; SET client_connection_check_interval = '2s'";

struct Server {
    options: PgConnectOptions,
    connect_timeout: Duration,
}

/// Runs `init` and checks that the server answers.
///
/// # Errors
/// [`ConnectError`] names the statement that failed. No error shows the URL.
pub async fn connect(settings: &ServerSettings) -> Result<impl Warehouse + use<>, ConnectError> {
    open_sessions(Server::new(settings)?, settings).await
}

/// Returns the builder of models, with the privileges of the URL's user. Each build opens its own connection.
///
/// # Errors
/// The URL does not name a PostgreSQL server.
pub fn builder(settings: &ServerSettings) -> Result<impl ModelBuilder + use<>, ConnectError> {
    Ok(PostgresBuilder::new(Server::new(settings)?))
}

/// Returns the port to the tables of pre-aggregations, with the privileges of the URL's user. Each build opens its own
/// connection.
///
/// # Errors
/// The URL does not name a PostgreSQL server.
pub fn rollups(settings: &ServerSettings, place: RollupPlace) -> Result<impl RollupTables + use<>, ConnectError> {
    Ok(PostgresRollups::new(Server::new(settings)?, place))
}

fn options(url: &str) -> Result<PgConnectOptions, ConnectError> {
    let wrong = |message: String| ConnectError::Url { warehouse: NAME, message };
    if !["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
        return Err(wrong("write `postgres://user:password@host:5432/database`".to_owned()));
    }
    let options: PgConnectOptions = url.parse().map_err(|error: sqlx::Error| wrong(error.to_string()))?;
    Ok(options.application_name("terrane").statement_cache_capacity(0).disable_statement_logging())
}

impl Server {
    fn new(settings: &ServerSettings) -> Result<Self, ConnectError> {
        Ok(Server { options: options(&settings.url)?, connect_timeout: settings.connect_timeout })
    }
}

#[async_trait]
impl Engine for Server {
    const FAILED: Failed = FAILED;
    const BUILT: Option<&'static str> = Some(build::BUILT);
    const FOREIGN_KEYS: Option<&'static str> = Some(foreign_keys::FOREIGN_KEYS);
    const SIZES: Option<SizeQueries> = Some(scan_size::QUERIES);
    type Connection = PgConnection;
    /// The id of the server process that serves the connection.
    type Handle = i32;

    fn lookup(name: &[&str]) -> Option<Lookup> {
        catalog::lookup(name)
    }

    async fn connect(&self) -> Result<WarehouseSession<Self>, WarehouseError> {
        let mut connection = self.open().await?;
        let setting_up = async {
            connection.execute(sqlx::raw_sql(READING)).await?;
            process_id(&mut connection).await
        };
        let connecting = async { setting_up.await.map_err(|error| FAILED.connecting(&error)) };
        let handle = within(NAME, self.connect_timeout, connecting).await?;
        Ok(WarehouseSession { connection, handle })
    }

    async fn rows(
        &self,
        connection: &mut PgConnection,
        statement: Statement<'_>,
    ) -> Result<Option<Columns>, WarehouseError> {
        let arguments = bind::arguments(statement.params).map_err(|error| FAILED.refused(error.to_string()))?;
        let query = sqlx::query_with(AssertSqlSafe(statement.text), arguments).persistent(false);
        READER.read(connection.fetch(query), statement).await
    }

    async fn describe(
        &self,
        connection: &mut PgConnection,
        statement: Statement<'_>,
    ) -> Result<ColumnKinds, WarehouseError> {
        let types = bind::types(statement.params);
        let text = AssertSqlSafe(statement.text).into_sql_str();
        let prepared = connection.prepare_with(text, &types).await.map_err(|error| FAILED.because(&error))?;
        READER.described(sqlx::Statement::columns(&prepared))
    }

    async fn ping(&self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        connection.ping().await
    }

    async fn cancel(&self, handle: &i32) -> Result<(), WarehouseError> {
        let mut other = self.open().await?;
        let cancel = sqlx::query("SELECT pg_cancel_backend($1)").bind(*handle);
        cancel.execute(&mut other).await.map(drop).map_err(|error| FAILED.because(&error))
    }
}

#[async_trait]
impl WritableEngine for Server {
    async fn open(&self) -> Result<PgConnection, WarehouseError> {
        let connecting = async { self.options.connect().await.map_err(|error| FAILED.connecting(&error)) };
        within(NAME, self.connect_timeout, connecting).await
    }

    async fn connect_to_write(&self) -> Result<WarehouseSession<Self>, WarehouseError> {
        let mut connection = self.open().await?;
        let setting_up = async {
            // Servers before version 14 do not support the last setting, which checks whether clients are connected.
            if connection.execute(sqlx::raw_sql(WRITING)).await.is_err() {
                let known = WRITING.rsplit_once(';').map_or(WRITING, |(known, _)| known);
                connection.execute(sqlx::raw_sql(known)).await?;
            }
            process_id(&mut connection).await
        };
        let handle = setting_up.await.map_err(|error| FAILED.connecting(&error))?;
        Ok(WarehouseSession { connection, handle })
    }
}

async fn process_id(connection: &mut PgConnection) -> Result<i32, sqlx::Error> {
    sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(connection).await
}

/// Classifies an error by its SQLSTATE. A cancelled statement ends with 57014.
fn kind_of(error: &dyn DatabaseError) -> WarehouseErrorKind {
    match error.code().as_deref() {
        Some("57014") => WarehouseErrorKind::Timeout,
        Some(code) if ["08", "53", "57", "58"].contains(&code.get(..2).unwrap_or_default()) => {
            WarehouseErrorKind::Unavailable
        }
        _ => WarehouseErrorKind::Refused,
    }
}

/// Returns the cause of a refusal by its SQLSTATE: 42883 is a function that does not exist for these arguments, and
/// class 22 has the errors of values.
fn cause_of(error: &dyn DatabaseError) -> RefusalCause {
    match error.code().as_deref() {
        Some("42883") => RefusalCause::Function,
        Some(code) if code.starts_with("22") => RefusalCause::Value,
        _ => RefusalCause::Other,
    }
}
