//! Inspects a state database without changing it.
//!
//! In: `state.url`. Out: the place and the condition of the database. Not here: creation and migration (`open`).

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use terrane_app::ports::store::StoreError;
use terrane_app::security::chain;

use crate::audit::stored_details;
use crate::database::Database;
use crate::location::{Location, StateUrlError};
use crate::open::{self, OpenError};
use crate::row::audit_record;
use crate::statement::Statement;

/// The number of records at the end of the audit chain that are checked.
const TAIL: i64 = 1_000;

/// The location that `state.url` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whereabouts {
    File(PathBuf),
    /// The URL of a server, without user and password.
    Server(String),
}

/// The condition of a state database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// The schema version of the database. `None` before the first start of a server, which creates the schema.
    pub schema: Option<i64>,
    /// The schema version of this program.
    pub own_schema: i64,
    /// The message of the database if it refuses to write.
    pub unwritable: Option<String>,
    pub clock: Timestamp,
    /// The time of the newest audit record.
    pub last_record: Option<Timestamp>,
    /// The number of checked records at the end of the audit chain.
    pub looked_at: u64,
    /// The sequence number of the first checked record that does not follow its predecessor or has a wrong hash.
    pub broken: Option<u64>,
}

/// Returns the location of the state database.
///
/// # Errors
/// The URL does not name a state database.
pub fn whereabouts(url: &str, project: &Path) -> Result<Whereabouts, StateUrlError> {
    Ok(match Location::of(url, project)? {
        Location::File(file) => Whereabouts::File(file),
        location @ Location::Server(_) => Whereabouts::Server(location.shown()),
    })
}

/// Inspects a state database.
///
/// # Errors
/// The database cannot be reached or read.
pub async fn inspect(url: &str, project: &Path) -> Result<Condition, InspectError> {
    let database = open::connect(&Location::of(url, project).map_err(OpenError::Url)?).await?;
    let schema = schema(&database).await?;
    let mut condition = Condition {
        schema,
        own_schema: open::own_schema(),
        unwritable: unwritable(&database).await,
        clock: clock(&database).await?,
        last_record: None,
        looked_at: 0,
        broken: None,
    };
    if schema.is_some() {
        look_at_tail(&database, &mut condition).await?;
    }
    Ok(condition)
}

/// The reason why a state database cannot be inspected.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

async fn schema(database: &Database) -> Result<Option<i64>, StoreError> {
    let table = match database {
        Database::Sqlite(_) => "SELECT count(*) AS tables FROM sqlite_master WHERE name = '_sqlx_migrations'",
        Database::Postgres(_) => "SELECT count(to_regclass('_sqlx_migrations')) AS tables",
    };
    let found = database.optional(Statement::new(table)).await?;
    if found.map_or(Ok(0), |row| row.integer("tables"))? == 0 {
        return Ok(None);
    }
    let version = Statement::new("SELECT max(version) AS version FROM _sqlx_migrations WHERE success");
    database.optional(version).await?.map_or(Ok(None), |row| row.maybe_integer("version"))
}

/// Returns the message of the database if it refuses to create a table. The table is rolled back in any case.
async fn unwritable(database: &Database) -> Option<String> {
    let probe = async {
        let mut change = database.begin().await?;
        change.execute(Statement::new("CREATE TABLE terrane_probe (id BIGINT)")).await?;
        change.rollback().await
    };
    probe.await.err().map(|error: StoreError| error.message)
}

async fn clock(database: &Database) -> Result<Timestamp, StoreError> {
    let now = Statement::new("SELECT ").then(database.now()).then(" AS now");
    let micros = database.optional(now).await?.map_or(Ok(0), |row| row.integer("now"))?;
    Timestamp::from_microsecond(micros).map_err(|error| StoreError { message: error.to_string() })
}

async fn look_at_tail(database: &Database, condition: &mut Condition) -> Result<(), StoreError> {
    let tail = Statement::new("SELECT * FROM audit_log ORDER BY sequence DESC").and(" LIMIT ", TAIL);
    let mut records = database.all(tail).await?.iter().map(audit_record).collect::<Result<Vec<_>, _>>()?;
    records.reverse();
    condition.looked_at = records.len() as u64;
    condition.last_record = records.last().map(|record| record.entry.at);
    let mut before: Option<(u64, std::sync::Arc<str>)> = None;
    for record in records {
        let follows =
            before.as_ref().is_none_or(|(sequence, hash)| record.sequence == sequence + 1 && record.previous == *hash);
        if !follows
            || chain::hash(&record.previous, record.sequence, &record.entry, stored_details(&record.entry))
                != record.hash
        {
            condition.broken = Some(record.sequence);
            return Ok(());
        }
        before = Some((record.sequence, record.hash));
    }
    Ok(())
}
