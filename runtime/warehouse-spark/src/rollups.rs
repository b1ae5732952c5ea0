//! Builds tables of pre-aggregations in a separate schema, each in its own session.
//!
//! In: a statement for the rows, and statements for totals. Out: a table whose totals equal the totals of the rows. Spark
//! has no snapshot over several statements. Therefore the totals of the rows are read before and after the table is
//! created. If they are equal, the rows did not change in the meantime, and the table must have these totals. If rows
//! change during each of a few attempts, the build fails and is retried later. A killed process leaves a table behind.
//! No query reads this table, and the next builder drops it. Not here: indexes, which Spark does not have.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use terrane_app::ports::rollup_tables::{BuiltTable, NewRollupTable, RollupPlace, RollupTableError, RollupTables};
use terrane_app::ports::rollup_totals::compare_unchanged;
use terrane_app::ports::warehouse::{ResultSet, Statement, WarehouseError};

use crate::builder::{count, drop_table, make_schema};
use crate::failure::refused;
use crate::listing::{described, list_tables, listed_tables, quoted, unless_missing};
use crate::pool::{CATALOG_TIMEOUT, Pool};
use crate::session::query;
use crate::writers::{Writer, Writers};

/// The number of attempts after which a build fails because rows change during each of them.
const ATTEMPTS: u32 = 3;

/// Builds tables with the privileges of the URL's user.
pub(crate) struct SparkRollups {
    /// The sessions that run queries. A new table is complete only when these sessions can read it.
    readers: Pool,
    writers: Arc<Writers>,
    place: RollupPlace,
}

impl SparkRollups {
    pub(crate) fn new(readers: Pool, writers: Arc<Writers>, place: RollupPlace) -> Self {
        SparkRollups { readers, writers, place }
    }

    fn quoted_relation(&self, table: &str) -> String {
        quoted(&[&self.place.schema, table])
    }
}

#[async_trait]
impl RollupTables for SparkRollups {
    fn target(&self) -> &str {
        &self.place.target
    }

    fn relation(&self, table: &str) -> Vec<String> {
        vec![self.place.schema.clone(), table.to_owned()]
    }

    async fn prepare(&self) -> Result<(), RollupTableError> {
        let schema = &*self.place.schema;
        let made: Result<(), WarehouseError> =
            self.writers.run(CATALOG_TIMEOUT, async |writer| make_schema(writer, schema).await).await;
        made?;
        match unless_missing(self.readers.run(list_tables(&[schema], Some(schema)), CATALOG_TIMEOUT).await)? {
            Some(_) => Ok(()),
            None => Err(refused("each session of this server has its own catalog".to_owned()).into()),
        }
    }

    async fn build(&self, table: &NewRollupTable, timeout: Duration) -> Result<BuiltTable, RollupTableError> {
        let relation = self.quoted_relation(&table.name);
        self.writers
            .run(timeout, async |writer| {
                for _ in 0..ATTEMPTS {
                    if let Some(built) = attempt(writer, &relation, table).await? {
                        return Ok(built);
                    }
                }
                Err(RollupTableError::Changing { attempts: ATTEMPTS })
            })
            .await
    }

    async fn tables(&self) -> Result<Vec<Arc<str>>, RollupTableError> {
        // A refusal is an error, since an empty list would withdraw the published tables.
        let rows = self.readers.run(list_tables(&[&self.place.schema], None), CATALOG_TIMEOUT).await?;
        let mut names: Vec<Arc<str>> = listed_tables(&rows)
            .iter()
            .filter(|listed| !listed.is_temporary && listed.kind != "VIEW")
            .filter_map(|listed| listed.name.last().filter(|name| self.place.owns(name)))
            .map(|name| name.as_str().into())
            .collect();
        names.sort();
        Ok(names)
    }

    async fn drop_tables(&self, tables: &[Arc<str>]) -> Result<(), RollupTableError> {
        let owned = tables.iter().filter(|table| self.place.owns(table));
        let relations: Vec<String> = owned.map(|table| self.quoted_relation(table)).collect();
        self.writers
            .run(CATALOG_TIMEOUT, async |writer| {
                for relation in &relations {
                    drop_table(writer, relation).await?;
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
    writer: &mut Writer,
    relation: &str,
    table: &NewRollupTable,
) -> Result<Option<BuiltTable>, RollupTableError> {
    let columns = &table.totals.columns;
    let before = rows(writer, &table.totals.base).await?;
    writer.write(&format!("CREATE TABLE {relation} AS\n{}", table.query)).await?;
    let checked = async {
        let stored = rows(writer, &table.totals.stored).await?;
        let after = rows(writer, &table.totals.base).await?;
        if !compare_unchanged(columns, &before, &after, &stored)? {
            return Ok(None);
        }
        let rows = count(writer, relation).await?;
        Ok(Some(BuiltTable { rows, bytes: size(writer, relation).await }))
    };
    let built: Result<Option<BuiltTable>, RollupTableError> = checked.await;
    if !matches!(built, Ok(Some(_))) {
        // A table that cannot be dropped now is dropped by the next builder. The first error is reported.
        let dropped = drop_table(writer, relation).await;
        if built.is_ok() {
            dropped?;
        }
    }
    built
}

async fn rows(writer: &mut Writer, text: &str) -> Result<ResultSet, WarehouseError> {
    writer.run(query(Statement::plain(text))?).await
}

/// Returns the size of a table's files in bytes; `None` if the catalog does not store it. The planner uses it as well.
async fn size(writer: &mut Writer, relation: &str) -> Option<u64> {
    writer.write(&format!("ANALYZE TABLE {relation} COMPUTE STATISTICS NOSCAN")).await.ok()?;
    let described_table = rows(writer, &format!("DESCRIBE TABLE EXTENDED {relation}")).await.ok()?;
    bytes(&described(&described_table, "Statistics")?)
}

/// Reads the size in statistics such as `956 bytes, 3 rows`.
fn bytes(statistics: &str) -> Option<u64> {
    statistics.split_once(" bytes")?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_is_read_from_statistics() {
        for (statistics, size) in
            [("956 bytes", Some(956)), ("956 bytes, 3 rows", Some(956)), ("3 rows", None), ("", None)]
        {
            assert_eq!(bytes(statistics), size, "{statistics}");
        }
    }
}
