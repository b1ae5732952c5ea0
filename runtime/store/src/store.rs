//! The open state database, and what the port `Store` asks of it.

use std::path::Path;

use async_trait::async_trait;
use terrane_app::ports::store::{Store, StoreError};

use crate::database::Database;
use crate::location::Location;
use crate::open::{self, OpenError};
use crate::statement::Statement;

/// An open state database; a clone is the same one.
#[derive(Debug, Clone)]
pub struct StateStore {
    pub(crate) database: Database,
}

impl StateStore {
    /// Opens or makes the database and brings it to this program's version. A relative file is the
    /// project's.
    ///
    /// # Errors
    /// [`OpenError`], with the place and without a password.
    pub async fn open(url: &str, project: &Path) -> Result<Self, OpenError> {
        let database = open::open(&Location::of(url, project)?).await?;
        Ok(StateStore { database })
    }
}

#[async_trait]
impl Store for StateStore {
    async fn ping(&self) -> Result<(), StoreError> {
        // Not `change`: a probe must not wait for whoever writes.
        let touched = Statement::new("UPDATE server_starts SET version = version WHERE started_at = ''");
        match &self.database {
            Database::Sqlite(_) => {
                let mut change = self.database.change().await?;
                change.execute(touched).await?;
                change.rollback().await
            }
            Database::Postgres(_) => self.database.execute(touched).await.map(|_| ()),
        }
    }

    async fn schema_version(&self) -> Result<i64, StoreError> {
        let version = Statement::new("SELECT max(version) AS version FROM _sqlx_migrations WHERE success");
        let row = self.database.optional(version).await?;
        row.map_or(Ok(0), |row| row.integer("version"))
    }

    async fn record_start(&self, version: &str, started_at: &str) -> Result<(), StoreError> {
        let insert = Statement::new("INSERT INTO server_starts (version, started_at) VALUES ($1, $2)");
        self.database.execute(insert.bind(version).bind(started_at)).await.map(|_| ())
    }
}
