//! Builds tables of pre-aggregations in a separate database, each on a connection that may write.
//!
//! In: a statement for the rows, and statements for totals. Out: a table whose totals equal the totals of the rows.
//! These engines commit before and after `CREATE TABLE`, and under REPEATABLE READ, a statement that copies rows locks
//! these rows. Therefore the table is created under READ COMMITTED by one statement, which reads one snapshot without
//! locks. The totals of the rows are read before and after. If they are equal, the rows did not change in the meantime,
//! and the table must have these totals. If rows change during each of a few attempts, the build fails and is retried
//! later. A killed process leaves a table behind. No query reads this table, and the next builder drops it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sqlx::mysql::MySqlConnection;
use sqlx::{AssertSqlSafe, Executor as _};
use terrane_app::ports::rollup_tables::{BuiltTable, NewRollupTable, RollupPlace, RollupTableError, RollupTables};
use terrane_app::ports::rollup_totals::compare_unchanged;
use terrane_app::ports::warehouse::WarehouseError;

use super::{FAILED, Server};
use crate::rollups::{indexes, owned};
use crate::sessions::{PROBE_TIMEOUT, WarehouseSession, Writers, all_rows};

const TABLES: &str = "\
    SELECT CAST(table_name AS CHAR) AS name FROM information_schema.tables \
    WHERE table_schema = ? AND table_type = 'BASE TABLE' ORDER BY table_name";

const SIZE: &str = "\
    SELECT CAST(coalesce(data_length, 0) + coalesce(index_length, 0) AS SIGNED) AS size \
    FROM information_schema.tables WHERE table_schema = ? AND table_name = ?";

/// The number of attempts after which a build fails because rows change during each of them.
const ATTEMPTS: u32 = 3;
/// The error numbers of a missing privilege, on a database and on a table.
const DENIED: [u16; 2] = [1044, 1142];

/// Builds tables with the privileges of the URL's user.
pub(super) struct MySqlRollups {
    writers: Writers<Server>,
    place: RollupPlace,
}

impl MySqlRollups {
    pub(super) fn new(server: Server, place: RollupPlace) -> Self {
        MySqlRollups { writers: Writers::new(server), place }
    }
}

#[async_trait]
impl RollupTables for MySqlRollups {
    fn target(&self) -> &str {
        &self.place.target
    }

    fn relation(&self, table: &str) -> Vec<String> {
        vec![self.place.schema.clone(), table.to_owned()]
    }

    async fn prepare(&self) -> Result<(), RollupTableError> {
        let schema = &*self.place.schema;
        self.writers
            .run(PROBE_TIMEOUT, async |WarehouseSession { connection, .. }, _| {
                let known = sqlx::query("SELECT 1 FROM information_schema.schemata WHERE schema_name = ?");
                let known = known.persistent(false).bind(schema).fetch_optional(&mut *connection).await;
                if known.map_err(|error| FAILED.because(&error))?.is_some() {
                    return Ok(());
                }
                let make = format!("CREATE DATABASE IF NOT EXISTS {}", quoted(schema));
                run(connection, &make).await.map(drop).map_err(|error| denied(error, schema))
            })
            .await
    }

    async fn build(&self, table: &NewRollupTable, timeout: Duration) -> Result<BuiltTable, RollupTableError> {
        let place = &self.place;
        self.writers
            .run(timeout, async |WarehouseSession { connection, .. }, server| {
                for _ in 0..ATTEMPTS {
                    if let Some(built) = attempt(connection, server, place, table).await? {
                        return Ok(built);
                    }
                }
                Err(RollupTableError::Changing { attempts: ATTEMPTS })
            })
            .await
    }

    async fn tables(&self) -> Result<Vec<Arc<str>>, RollupTableError> {
        let place = &self.place;
        self.writers
            .run(PROBE_TIMEOUT, async |WarehouseSession { connection, .. }, _| {
                let rows = sqlx::query(TABLES).persistent(false).bind(&place.schema).fetch_all(connection).await;
                Ok(rows.and_then(|rows| owned(place, &rows)).map_err(|error| FAILED.because(&error))?)
            })
            .await
    }

    async fn drop_tables(&self, tables: &[Arc<str>]) -> Result<(), RollupTableError> {
        let place = &self.place;
        // `DROP TABLE` waits for statements that read the table, for at most `lock_wait_timeout`.
        let timeout = PROBE_TIMEOUT * 2;
        self.writers
            .run(timeout, async |WarehouseSession { connection, .. }, _| {
                for table in tables.iter().filter(|table| place.owns(table)) {
                    drop_table(connection, &relation(place, table)).await?;
                }
                Ok(())
            })
            .await
    }

    async fn settle(&self) {
        self.writers.settle().await;
    }
}

/// Builds a table and reads the totals of its rows before and after. If these totals differ, drops the table and
/// returns `None`.
async fn attempt(
    connection: &mut MySqlConnection,
    server: &Server,
    place: &RollupPlace,
    table: &NewRollupTable,
) -> Result<Option<BuiltTable>, RollupTableError> {
    let (relation, columns) = (relation(place, &table.name), &table.totals.columns);
    let before = all_rows(server, connection, &table.totals.base).await?;
    let made = run(connection, &format!("CREATE TABLE {relation} AS\n{}", table.query)).await;
    let rows = made.map_err(|error| denied(error, &place.schema))?;
    let checked = async {
        let stored = all_rows(server, connection, &table.totals.stored).await?;
        let after = all_rows(server, connection, &table.totals.base).await?;
        if !compare_unchanged(columns, &before, &after, &stored)? {
            return Ok(None);
        }
        for index in indexes(table, &relation, quoted) {
            run(connection, &index).await.map_err(|error| FAILED.because(&error))?;
        }
        run(connection, &format!("ANALYZE TABLE {relation}")).await.map_err(|error| FAILED.because(&error))?;
        let size = sqlx::query_scalar(SIZE).persistent(false).bind(&place.schema).bind(&*table.name);
        let size: Option<i64> = size.fetch_optional(&mut *connection).await.map_err(|error| FAILED.because(&error))?;
        Ok(Some(BuiltTable { rows, bytes: size.and_then(|size| u64::try_from(size).ok()) }))
    };
    let built: Result<Option<BuiltTable>, RollupTableError> = checked.await;
    if !matches!(built, Ok(Some(_))) {
        // A table that cannot be dropped now is dropped by the next builder. The first error is reported.
        let dropped = drop_table(connection, &relation).await;
        if built.is_ok() {
            dropped?;
        }
    }
    built
}

async fn drop_table(connection: &mut MySqlConnection, relation: &str) -> Result<(), WarehouseError> {
    run(connection, &format!("DROP TABLE IF EXISTS {relation}")).await.map(drop).map_err(|error| FAILED.because(&error))
}

async fn run(connection: &mut MySqlConnection, text: &str) -> Result<u64, sqlx::Error> {
    connection.execute(sqlx::raw_sql(AssertSqlSafe(text))).await.map(|done| done.rows_affected())
}

fn denied(error: sqlx::Error, schema: &str) -> RollupTableError {
    let number =
        error.as_database_error().and_then(|error| error.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>());
    match number {
        Some(error) if DENIED.contains(&error.number()) => RollupTableError::NotAllowed { schema: schema.to_owned() },
        _ => FAILED.because(&error).into(),
    }
}

fn relation(place: &RollupPlace, table: &str) -> String {
    [quoted(&place.schema), quoted(table)].join(".")
}

/// Quotes a name for a session without `ANSI_QUOTES`.
fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}
