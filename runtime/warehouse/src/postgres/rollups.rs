//! Builds tables of pre-aggregations, each in a transaction on its own connection, which may write.
//!
//! In: a statement for the rows, and statements for totals. Out: a table whose totals equal the totals of the rows. A
//! transaction of level REPEATABLE READ reads one snapshot from its first statement on. The table and the totals are
//! therefore computed from the same rows, even if others commit in the meantime. A build that fails, is cancelled or is
//! killed leaves nothing behind.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sqlx::postgres::PgConnection;
use terrane_app::ports::builder::{CantBuild, NotReady};
use terrane_app::ports::rollup_tables::{BuiltTable, NewRollupTable, RollupPlace, RollupTableError, RollupTables};
use terrane_app::ports::rollup_totals::compare;

use super::build::{make_schemas, run};
use super::{FAILED, Server};
use crate::built::quoted;
use crate::rollups::{indexes, owned, standard_relation};
use crate::sessions::{PROBE_TIMEOUT, WarehouseSession, Writers, all_rows};

/// Selects the tables of a schema. Other kinds of relations are not selected, even if they have the name of a target's
/// table.
const TABLES: &str = "\
    SELECT c.relname::text AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
    WHERE n.nspname = $1 AND c.relkind = 'r' ORDER BY c.relname";

/// Builds tables with the privileges of the URL's user.
pub(super) struct PostgresRollups {
    writers: Writers<Server>,
    place: RollupPlace,
}

impl PostgresRollups {
    pub(super) fn new(server: Server, place: RollupPlace) -> Self {
        PostgresRollups { writers: Writers::new(server), place }
    }
}

#[async_trait]
impl RollupTables for PostgresRollups {
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
                make_schemas(connection, &[schema]).await.map_err(|error| match error {
                    NotReady::Warehouse(error) => error.into(),
                    NotReady::Cant(CantBuild::NotAllowed { schema }) => RollupTableError::NotAllowed { schema },
                    NotReady::Cant(why) => FAILED.refused(why.to_string()).into(),
                })
            })
            .await
    }

    async fn build(&self, table: &NewRollupTable, timeout: Duration) -> Result<BuiltTable, RollupTableError> {
        let place = &self.place;
        self.writers
            .run(timeout, async |WarehouseSession { connection, .. }, server| {
                make(connection, server, place, table).await
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
        // `DROP TABLE` waits for statements that read the table, for at most `lock_timeout`.
        let timeout = PROBE_TIMEOUT * 2;
        self.writers
            .run(timeout, async |WarehouseSession { connection, .. }, _| {
                for table in tables.iter().filter(|table| place.owns(table)) {
                    run(connection, format!("DROP TABLE IF EXISTS {}", standard_relation(place, table))).await?;
                }
                Ok(())
            })
            .await
    }

    async fn settle(&self) {
        self.writers.settle().await;
    }
}

async fn make(
    connection: &mut PgConnection,
    server: &Server,
    place: &RollupPlace,
    table: &NewRollupTable,
) -> Result<BuiltTable, RollupTableError> {
    let relation = standard_relation(place, &table.name);
    run(connection, "BEGIN ISOLATION LEVEL REPEATABLE READ".to_owned()).await?;
    let rows = run(connection, format!("CREATE TABLE {relation} AS\n{}", table.query)).await?;
    let base = all_rows(server, connection, &table.totals.base).await?;
    let stored = all_rows(server, connection, &table.totals.stored).await?;
    compare(&table.totals.columns, &base, &stored)?;
    for index in indexes(table, &relation, quoted) {
        run(connection, index).await?;
    }
    run(connection, format!("ANALYZE {relation}")).await?;
    let size = sqlx::query_scalar("SELECT pg_total_relation_size($1::regclass)").persistent(false);
    let size: i64 = size.bind(&relation).fetch_one(&mut *connection).await.map_err(|error| FAILED.because(&error))?;
    run(connection, "COMMIT".to_owned()).await?;
    Ok(BuiltTable { rows, bytes: u64::try_from(size).ok() })
}
