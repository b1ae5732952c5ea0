//! The open state database, and its implementation of the port `Store`.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use terrane_app::ports::store::{Store, StoreError};

use crate::database::Database;
use crate::location::Location;
use crate::open::{self, OpenError};
use crate::row;
use crate::statement::Statement;

/// An open state database. Clones share its connections.
#[derive(Debug, Clone)]
pub struct StateStore {
    pub(crate) database: Database,
}

impl StateStore {
    /// Opens or creates the database, and migrates it to this program's version. The path of a relative file begins at
    /// the project's folder.
    ///
    /// # Errors
    /// [`OpenError`], which contains the location without a password.
    pub async fn open(url: &str, project: &Path) -> Result<Self, OpenError> {
        let database = open::open(&Location::of(url, project)?).await?;
        Ok(StateStore { database })
    }

    /// Returns the file of the database at a location; `None` if the database is on a server or the location is invalid.
    pub fn file_of(url: &str, project: &Path) -> Option<PathBuf> {
        match Location::of(url, project).ok()? {
            Location::File(path) => Some(path),
            Location::Server(_) => None,
        }
    }

    /// Returns the secret with a name, which all servers on this database share. The first call stores `random`, which
    /// must be random and secret.
    ///
    /// # Errors
    /// The database is unavailable, or the stored value is not a secret.
    pub async fn server_secret(&self, name: &'static str, random: [u8; 32]) -> Result<[u8; 32], StoreError> {
        let insert = Statement::new("INSERT INTO server_secrets (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING");
        self.database.execute(insert.bind(name).bind(&*row::hex(&random))).await?;
        let found = Statement::new("SELECT value FROM server_secrets WHERE name = $1").bind(name);
        let found = self.database.optional(found).await?;
        let missing = || StoreError { message: "a server secret is missing".to_owned() };
        row::hash_of(&found.ok_or_else(missing)?.text("value")?)
    }
}

#[async_trait]
impl Store for StateStore {
    async fn ping(&self) -> Result<(), StoreError> {
        // On PostgreSQL, the probe does not take the lock of writers, because it must not wait for them.
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
