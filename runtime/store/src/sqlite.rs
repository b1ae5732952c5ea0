//! SQLite in WAL mode, with every commit on disk before it is answered.

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use sqlx::SqlitePool;
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use terrane_app::ports::store::{Store, StoreError};

use crate::location::{StateUrlError, file_of};

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");
const CONNECTIONS: u32 = 4;
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// An open state database.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    pub(crate) pool: SqlitePool,
}

/// Why the state database can't be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Url(#[from] StateUrlError),
    #[error("cannot make the folder {}: {source}", folder.display())]
    Folder { folder: PathBuf, source: std::io::Error },
    #[error("cannot open the state database {}: {source}", file.display())]
    Database { file: PathBuf, source: sqlx::Error },
    #[error(
        "the state database {} was migrated by a newer version of terrane (migration {version}): run that version, or \
         restore an older copy", file.display()
    )]
    Newer { file: PathBuf, version: i64 },
    #[error("cannot migrate the state database {}: {source}", file.display())]
    Migrate { file: PathBuf, source: MigrateError },
}

impl SqliteStore {
    /// Opens or makes the database and brings it to this program's version.
    ///
    /// # Errors
    /// [`OpenError`], with the file.
    pub async fn open(url: &str, project: &Path) -> Result<Self, OpenError> {
        let file = file_of(url, project)?;
        if let Some(folder) = file.parent() {
            make_private_folder(folder).map_err(|source| OpenError::Folder { folder: folder.to_owned(), source })?;
        }
        let options = SqliteConnectOptions::new()
            .filename(&file)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(BUSY_TIMEOUT)
            .foreign_keys(true);
        let pool = SqlitePoolOptions::new().max_connections(CONNECTIONS).connect_with(options).await;
        let pool = pool.map_err(|source| OpenError::Database { file: file.clone(), source })?;
        match MIGRATIONS.run(&pool).await {
            Ok(()) => Ok(SqliteStore { pool }),
            Err(MigrateError::VersionMissing(version)) => Err(OpenError::Newer { file, version }),
            Err(source) => Err(OpenError::Migrate { file, source }),
        }
    }
}

/// Only the server's own user may read what is in it.
fn make_private_folder(folder: &Path) -> std::io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

#[async_trait]
impl Store for SqliteStore {
    async fn ping(&self) -> Result<(), StoreError> {
        let mut transaction = self.pool.begin_with("BEGIN IMMEDIATE").await.map_err(failed)?;
        let touched = sqlx::query("UPDATE server_starts SET version = version WHERE started_at = ''");
        touched.execute(&mut *transaction).await.map_err(failed)?;
        transaction.rollback().await.map_err(failed)
    }

    async fn schema_version(&self) -> Result<i64, StoreError> {
        let version = sqlx::query_scalar("SELECT max(version) FROM _sqlx_migrations WHERE success");
        version.fetch_one(&self.pool).await.map_err(failed)
    }

    async fn record_start(&self, version: &str, started_at: &str) -> Result<(), StoreError> {
        let insert = sqlx::query("INSERT INTO server_starts (version, started_at) VALUES (?, ?)");
        insert.bind(version).bind(started_at).execute(&self.pool).await.map(|_| ()).map_err(failed)
    }
}

fn failed(error: sqlx::Error) -> StoreError {
    StoreError { message: error.to_string() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

    use super::*;

    const URL: &str = "sqlite://.terrane/state.db";

    #[tokio::test]
    async fn what_was_written_is_there_after_a_restart() {
        let project = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(URL, project.path()).await.unwrap();
        store.record_start("0.1.0", "2024-01-01T00:00:00Z").await.unwrap();
        drop(store);
        let store = SqliteStore::open(URL, project.path()).await.unwrap();
        store.ping().await.unwrap();
        assert_eq!(store.schema_version().await.unwrap(), 7);
        let starts: i64 =
            sqlx::query_scalar("SELECT count(*) FROM server_starts").fetch_one(&store.pool).await.unwrap();
        assert_eq!(starts, 1);
    }

    #[tokio::test]
    async fn a_newer_database_is_refused() {
        let project = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(URL, project.path()).await.unwrap();
        sqlx::query(
            "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
             VALUES (9999, 'later', TRUE, x'00', 0)",
        )
        .execute(&store.pool)
        .await
        .unwrap();
        drop(store);
        let error = SqliteStore::open(URL, project.path()).await.unwrap_err();
        assert!(matches!(error, OpenError::Newer { version: 9999, .. }), "{error}");
    }

    #[tokio::test]
    async fn a_file_that_is_no_database_is_named() {
        let project = tempfile::tempdir().unwrap();
        std::fs::write(project.path().join("state.db"), "not a database, but long enough to look like one").unwrap();
        let error = SqliteStore::open("sqlite://state.db", project.path()).await.unwrap_err();
        assert!(error.to_string().contains("state.db"), "{error}");
    }
}
