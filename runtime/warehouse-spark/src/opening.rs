//! Opens sessions, each with the statements of `init`.
//!
//! In: the operator's settings. Out: a session that is ready for statements. Sessions run `init` one after the other,
//! for queries and for builds alike. Not here: the number of sessions.

use std::sync::Arc;
use std::time::Duration;

use terrane_app::ports::warehouse::WarehouseError;

use crate::failure::unavailable;
use crate::rows::Rows;
use crate::running::release;
use crate::session::{Server, Session, command, random_id};
use crate::settings::ConnectError;

#[derive(Debug)]
pub(crate) struct Opener {
    pub(crate) server: Server,
    pub(crate) init: Vec<String>,
    pub(crate) connect_timeout: Duration,
    /// The lock of `init`. Two sessions that replace the same view at the same time may collide.
    init_turn: tokio::sync::Mutex<()>,
}

impl Opener {
    pub(crate) fn new(server: Server, init: Vec<String>, connect_timeout: Duration) -> Self {
        Opener { server, init, connect_timeout, init_turn: tokio::sync::Mutex::new(()) }
    }

    /// Opens a session and runs `init` in it.
    ///
    /// # Errors
    /// [`ConnectError`] names the statement that failed.
    pub(crate) async fn open(&self) -> Result<Arc<Session>, ConnectError> {
        let seconds = self.connect_timeout.as_secs_f64();
        let opened = tokio::time::timeout(self.connect_timeout, Session::open(&self.server)).await;
        let opened =
            opened.unwrap_or_else(|_| Err(unavailable(format!("no connection within {seconds} seconds")).into()));
        let session = Arc::new(opened.map_err(ConnectError::of)?);
        let _turn = self.init_turn.lock().await;
        for (index, statement) in self.init.iter().enumerate() {
            run_command(&session, statement).await.map_err(|error| ConnectError::Init {
                index,
                statement: statement.trim().to_owned(),
                error,
            })?;
        }
        Ok(session)
    }
}

/// Runs a statement that returns no rows.
async fn run_command(session: &Arc<Session>, text: &str) -> Result<(), WarehouseError> {
    let operation = random_id()?;
    let mut rows = Rows::start(session, &operation, command(text)).await?;
    while rows.next().await?.is_some() {}
    release(session, operation);
    Ok(())
}
