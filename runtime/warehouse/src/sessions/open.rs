//! The settings of a warehouse on a server, and errors of opening it.

use std::fmt;
use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection, Executor};
use terrane_app::ports::warehouse::WarehouseError;

use super::{Sessions, WritableEngine};

/// The operator's settings for a server.
#[derive(Clone)]
pub struct ServerSettings {
    /// The URL, which may contain a password. It is never logged and never part of an error.
    pub url: String,
    /// Statements that run at each start, in order, on a separate connection that may write.
    pub init: Vec<String>,
    /// The largest number of statements that run at the same time.
    pub connections: usize,
    pub connect_timeout: Duration,
}

impl fmt::Debug for ServerSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSettings")
            .field("url", &"***")
            .field("init", &self.init)
            .field("connections", &self.connections)
            .field("connect_timeout", &self.connect_timeout)
            .finish()
    }
}

/// The reason why a warehouse could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("`warehouse.url` is not a URL of {warehouse}: {message}")]
    Url { warehouse: &'static str, message: String },
    #[error("{} cannot be reached: {}", .0.warehouse, .0.message)]
    Connection(WarehouseError),
    #[error("`warehouse.init[{index}]` failed: {message}\n  in: {statement}")]
    Init { index: usize, statement: String, message: String },
}

/// Runs `init` with the server's own settings, and checks that the server answers.
///
/// # Errors
/// [`ConnectError`] names the statement that failed; no error shows the URL.
pub(crate) async fn open_sessions<E>(engine: E, settings: &ServerSettings) -> Result<Sessions<E>, ConnectError>
where
    E: WritableEngine,
    for<'c> &'c mut E::Connection: Executor<'c, Database = <E::Connection as Connection>::Database>,
{
    if !settings.init.is_empty() {
        let connection = engine.open().await.map_err(ConnectError::Connection)?;
        // An error of `close` is ignored, because the server also ends a session whose connection just closes.
        let _ = run_init(connection, &settings.init).await?.close().await;
    }
    let first = engine.connect().await.map_err(ConnectError::Connection)?;
    Ok(Sessions::new(engine, first, settings.connections))
}

/// Runs `init` on a connection that may write.
pub(crate) async fn run_init<C>(mut connection: C, init: &[String]) -> Result<C, ConnectError>
where
    C: Connection,
    for<'c> &'c mut C: Executor<'c, Database = C::Database>,
{
    for (index, statement) in init.iter().enumerate() {
        let run = connection.execute(sqlx::raw_sql(AssertSqlSafe(statement.as_str()))).await;
        run.map_err(|error| ConnectError::Init {
            index,
            statement: statement.trim().to_owned(),
            message: error.to_string(),
        })?;
    }
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_is_never_shown() {
        let settings = ServerSettings {
            url: "postgres://me:hidden@db/x".to_owned(),
            init: Vec::new(),
            connections: 1,
            connect_timeout: Duration::from_secs(1),
        };
        assert!(!format!("{settings:?}").contains("hidden"));
    }
}
