//! Builds tables of pre-aggregations in an attached file, each in a transaction on its own connection and thread.
//!
//! In: a statement for the rows, and statements for totals. Out: a table whose totals equal the totals of the rows. A
//! transaction reads the rows of the warehouse as of its first statement. Rows in files are read a second time for the
//! totals, so that a change of a file during the build is detected. A failed, interrupted or killed build leaves
//! nothing behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use duckdb::Connection;
use terrane_app::ports::rollup_tables::{BuiltTable, NewRollupTable, RollupPlace, RollupTableError, RollupTables};
use terrane_app::ports::rollup_totals::compare;
use terrane_app::ports::warehouse::{Statement, WarehouseError};

use super::build::DuckDbBuilder;
use super::error;
use super::pool::Pool;
use super::session::{self, Request};
use crate::built::quoted;
use crate::rollups::indexes;

/// The schema of tables inside the attached database.
const SCHEMA: &str = "main";

const TABLES: &str = "\
    SELECT table_name FROM duckdb_tables() WHERE database_name = $1 AND schema_name = 'main' ORDER BY table_name";

/// Selects the number of blocks that contain segments of a table, and the number of segments that are not in a block
/// yet. Columns with a constant value need no block.
const BLOCKS: &str = "\
    SELECT count(DISTINCT block) FILTER (WHERE block >= 0), count(*) FILTER (WHERE NOT persistent) FROM \
    (SELECT persistent, unnest(list_append(coalesce(additional_block_ids, []), block_id)) AS block \
    FROM pragma_storage_info($1))";

const BLOCK_SIZE: &str = "SELECT block_size FROM pragma_database_size() WHERE database_name = $1";

/// Creates tables in the attached database.
pub(super) struct DuckDbRollups {
    builder: DuckDbBuilder,
    /// The place of the tables. Its schema is the name under which the database is attached.
    place: RollupPlace,
}

impl DuckDbRollups {
    pub(super) fn new(pool: Arc<Pool>, place: RollupPlace) -> Self {
        DuckDbRollups { builder: DuckDbBuilder::new(pool), place }
    }
}

#[async_trait]
impl RollupTables for DuckDbRollups {
    fn target(&self) -> &str {
        &self.place.target
    }

    fn relation(&self, table: &str) -> Vec<String> {
        vec![self.place.schema.clone(), SCHEMA.to_owned(), table.to_owned()]
    }

    /// Does nothing, because the database is attached when the warehouse is opened.
    async fn prepare(&self) -> Result<(), RollupTableError> {
        Ok(())
    }

    async fn build(&self, table: &NewRollupTable, timeout: Duration) -> Result<BuiltTable, RollupTableError> {
        let (table, relation, place) = (table.clone(), relation(&self.place, &table.name), self.place.clone());
        let work = move |connection: &Connection, is_unwanted: &AtomicBool| {
            run(connection, "BEGIN TRANSACTION")?;
            let built = make(connection, &table, &relation);
            let is_wanted = !is_unwanted.load(Ordering::SeqCst);
            match built {
                Ok(built) if is_wanted => {
                    run(connection, "COMMIT")?;
                    Ok(BuiltTable { bytes: size(connection, &place, &relation), ..built })
                }
                Ok(_) => {
                    run(connection, "ROLLBACK")?;
                    Err(error::unavailable("the build was stopped").into())
                }
                Err(error) => {
                    // If this fails, closing the connection rolls the transaction back.
                    let _ = run(connection, "ROLLBACK");
                    Err(error)
                }
            }
        };
        self.builder.run(timeout, work).await
    }

    async fn tables(&self) -> Result<Vec<Arc<str>>, RollupTableError> {
        let place = self.place.clone();
        let list = move |connection: &Connection, _: &AtomicBool| {
            let mut statement = connection.prepare(TABLES).map_err(|error| error::from_engine(&error))?;
            let names = statement.query_map([&place.schema], |row| row.get::<_, String>(0));
            let names = names.and_then(Iterator::collect::<Result<Vec<String>, duckdb::Error>>);
            let names = names.map_err(|error| error::from_engine(&error))?;
            Ok(names.into_iter().filter(|name| place.owns(name)).map(Into::into).collect())
        };
        self.builder.run(super::PROBE_TIMEOUT, list).await
    }

    async fn drop_tables(&self, tables: &[Arc<str>]) -> Result<(), RollupTableError> {
        let owned = tables.iter().filter(|table| self.place.owns(table));
        let relations: Vec<String> = owned.map(|table| relation(&self.place, table)).collect();
        let drop = move |connection: &Connection, _: &AtomicBool| {
            relations.iter().try_for_each(|relation| run(connection, &format!("DROP TABLE IF EXISTS {relation}")))
        };
        self.builder.run(super::PROBE_TIMEOUT, drop).await
    }

    async fn settle(&self) {
        self.builder.settle_builds().await;
    }
}

fn relation(place: &RollupPlace, table: &str) -> String {
    [quoted(&place.schema), quoted(SCHEMA), quoted(table)].join(".")
}

fn make(connection: &Connection, table: &NewRollupTable, relation: &str) -> Result<BuiltTable, RollupTableError> {
    run(connection, &format!("CREATE TABLE {relation} AS\n{}", table.query))?;
    let whole = |text: &str| session::run(connection, &Request::execute(Statement::plain(text)));
    let base = whole(&table.totals.base)?;
    let stored = whole(&table.totals.stored)?;
    compare(&table.totals.columns, &base, &stored)?;
    for index in indexes(table, relation, quoted) {
        run(connection, &index)?;
    }
    let rows = connection.query_row(&format!("SELECT count(*) FROM {relation}"), [], |row| row.get::<_, u64>(0));
    let rows = rows.map_err(|error| error::from_engine(&error))?;
    Ok(BuiltTable { rows, bytes: None })
}

/// Estimates the size of a committed table in bytes, as the size of the blocks of the file that contain parts of it.
/// Small tables share blocks. Returns `None` if rows are not in blocks yet, or if one of the statements fails.
fn size(connection: &Connection, place: &RollupPlace, relation: &str) -> Option<u64> {
    // A checkpoint writes rows to blocks. Statements that run at the same time can prevent it.
    run(connection, &format!("CHECKPOINT {}", quoted(&place.schema))).ok()?;
    let (blocks, pending) =
        connection.query_row(BLOCKS, [relation], |row| Ok((row.get::<_, u64>(0)?, row.get::<_, u64>(1)?))).ok()?;
    let block_size = connection.query_row(BLOCK_SIZE, [&place.schema], |row| row.get::<_, u64>(0)).ok()?;
    (pending == 0).then(|| blocks.saturating_mul(block_size))
}

fn run(connection: &Connection, text: &str) -> Result<(), RollupTableError> {
    let done: Result<(), WarehouseError> =
        connection.execute(text, []).map(drop).map_err(|error| error::from_engine(&error));
    Ok(done?)
}
