//! Tables of pre-aggregations: one transaction each, on a connection of its own that may write.
//!
//! In: the statement of the rows and those of the totals. Out: a table that was compared with its rows. A transaction
//! of level REPEATABLE READ sees one snapshot from its first statement on, so table and totals are of the same rows,
//! whatever others commit meanwhile. Of a build that fails, is cancelled or killed nothing is left.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sqlx::postgres::PgConnection;
use terrane_app::ports::builder::{CantBuild, NotReady};
use terrane_app::ports::rollup_tables::{BuiltTable, NewRollupTable, RollupTableError, RollupTables};
use terrane_app::ports::warehouse::{ResultSet, Statement, WarehouseError};

use super::build::{PostgresBuilder, make_schemas, run};
use super::{FAILED, NAME, Server};
use crate::built::quoted;
use crate::rollups::{RollupPlace, compare};
use crate::sessions::{Engine as _, PROBE_TIMEOUT, timeout as too_late};

/// The tables of a schema. Another relation of a target's name is not one of its tables.
const TABLES: &str = "\
    SELECT c.relname::text AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
    WHERE n.nspname = $1 AND c.relkind = 'r' ORDER BY c.relname";

/// Makes tables with the rights of the URL's user.
pub(super) struct PostgresRollups {
    builder: PostgresBuilder,
    place: RollupPlace,
}

impl PostgresRollups {
    pub(super) fn new(server: Server, place: RollupPlace) -> Self {
        PostgresRollups { builder: PostgresBuilder::new(server), place }
    }

    /// Runs something on a connection of its own within a time limit. Dropped early, its statement is cancelled.
    async fn with_connection<T>(
        &self,
        timeout: Duration,
        work: impl AsyncFnOnce(&mut PgConnection, &Server) -> Result<T, RollupTableError>,
    ) -> Result<T, RollupTableError> {
        let working = async {
            let mut session = self.builder.work().await?;
            let server = Arc::clone(&session.server);
            let outcome = match &mut session.connection {
                Some(connection) => work(connection, &server).await,
                None => Err(FAILED.refused("the connection is closed".to_owned()).into()),
            };
            // A transaction that is not committed by now never is.
            session.close().await;
            outcome
        };
        tokio::time::timeout(timeout, working).await.unwrap_or_else(|_| Err(too_late(NAME).into()))
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
        self.with_connection(PROBE_TIMEOUT, async |connection, _| {
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
        self.with_connection(timeout, async |connection, server| make(connection, server, place, table).await).await
    }

    async fn tables(&self) -> Result<Vec<Arc<str>>, RollupTableError> {
        let place = &self.place;
        self.with_connection(PROBE_TIMEOUT, async |connection, _| {
            let rows = sqlx::query(TABLES).persistent(false).bind(&place.schema).fetch_all(connection).await;
            Ok(rows.and_then(|rows| place.owned(&rows)).map_err(|error| FAILED.because(&error))?)
        })
        .await
    }

    async fn drop_tables(&self, tables: &[Arc<str>]) -> Result<(), RollupTableError> {
        let place = &self.place;
        // A table is dropped after the statements that read it, and those wait for nothing here.
        let timeout = PROBE_TIMEOUT * 2;
        self.with_connection(timeout, async |connection, _| {
            for table in tables.iter().filter(|table| place.owns(table)) {
                run(connection, format!("DROP TABLE IF EXISTS {}", place.standard_relation(table))).await?;
            }
            Ok(())
        })
        .await
    }

    async fn settle(&self) {
        self.builder.settle_builds().await;
    }
}

async fn make(
    connection: &mut PgConnection,
    server: &Server,
    place: &RollupPlace,
    table: &NewRollupTable,
) -> Result<BuiltTable, RollupTableError> {
    let relation = place.standard_relation(&table.name);
    run(connection, "BEGIN ISOLATION LEVEL REPEATABLE READ".to_owned()).await?;
    let rows = run(connection, format!("CREATE TABLE {relation} AS\n{}", table.query)).await?;
    let base = whole(connection, server, &table.totals.base).await?;
    let stored = whole(connection, server, &table.totals.stored).await?;
    compare(&table.totals.columns, &base, &stored)?;
    for index in RollupPlace::indexes(table, &relation, quoted) {
        run(connection, index).await?;
    }
    run(connection, format!("ANALYZE {relation}")).await?;
    let size = sqlx::query_scalar("SELECT pg_total_relation_size($1::regclass)").persistent(false);
    let size: i64 = size.bind(&relation).fetch_one(&mut *connection).await.map_err(|error| FAILED.because(&error))?;
    run(connection, "COMMIT".to_owned()).await?;
    Ok(BuiltTable { rows, bytes: u64::try_from(size).ok() })
}

/// Returns all rows of a statement.
async fn whole(connection: &mut PgConnection, server: &Server, text: &str) -> Result<ResultSet, WarehouseError> {
    let rows = server.rows(connection, Statement::plain(text)).await?;
    let rows = rows.ok_or_else(|| FAILED.refused("the totals have no row".to_owned()))?;
    rows.finish().map_err(|error| FAILED.refused(error.to_string()))
}
