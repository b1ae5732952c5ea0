//! Builds models, each in its own session.
//!
//! In: a relation and its query. Out: a view with the relation's name, which replaces the previous one. The rows of a
//! table are written to a new table first ([`STORE`]); the last statement replaces the view, and is the only one with an
//! effect for readers. A build that fails, is interrupted or killed can leave an unused table, which the next build of
//! the model drops. The table of the previous build stays until the next build, for the queries that still read it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use terrane_app::ports::builder::{BuildError, CantBuild, Marker, ModelBuilder, NewRelation, NotReady};
use terrane_app::ports::warehouse::{Statement, WarehouseError};

use crate::built::{Published, STORE, record, record_name};
use crate::failure::NAME;
use crate::listing::{Listed, first_number, list_tables, listed_tables, literal, quoted, unless_missing};
use crate::pool::{CATALOG_TIMEOUT, Pool};
use crate::session::{query, random_id};
use crate::writers::{Writer, Writers};

/// Builds models with the privileges of the URL's user.
pub(crate) struct SparkBuilder {
    /// The sessions of queries, which must find what is built.
    readers: Pool,
    writers: Arc<Writers>,
}

impl SparkBuilder {
    pub(crate) fn new(readers: Pool, writers: Arc<Writers>) -> Self {
        SparkBuilder { readers, writers }
    }
}

#[async_trait]
impl ModelBuilder for SparkBuilder {
    async fn prepare(&self, schemas: &[&str]) -> Result<(), NotReady> {
        let made: Result<(), WarehouseError> =
            self.writers.run(CATALOG_TIMEOUT, async |writer| make_schemas(writer, schemas).await).await;
        made?;
        match unless_missing(self.readers.run(list_tables(&[STORE], None), CATALOG_TIMEOUT).await)? {
            Some(_) => Ok(()),
            None => Err(CantBuild::CatalogOfSession { warehouse: NAME.to_owned() }.into()),
        }
    }

    async fn build(&self, relation: &NewRelation<'_>, timeout: Duration) -> Result<Option<u64>, BuildError> {
        self.writers.run(timeout, async |writer| replace(writer, relation).await).await
    }

    async fn settle(&self) {
        self.writers.settle().await;
    }
}

async fn make_schemas(writer: &mut Writer, schemas: &[&str]) -> Result<(), WarehouseError> {
    for schema in schemas.iter().chain([&STORE]) {
        make_schema(writer, schema).await?;
    }
    let store = entries(writer, STORE, None).await?.unwrap_or_default();
    for schema in schemas {
        if !store.iter().any(|listed| listed.is_called(&record_name(schema))) {
            writer.write(&record(schema)).await?;
        }
    }
    Ok(())
}

/// Creates a schema if it is missing. The right to create schemas is not needed for one that exists.
pub(crate) async fn make_schema(writer: &mut Writer, schema: &str) -> Result<(), WarehouseError> {
    match entries(writer, schema, Some(STORE)).await? {
        Some(_) => Ok(()),
        None => writer.write(&format!("CREATE SCHEMA IF NOT EXISTS {}", quoted(&[schema]))).await,
    }
}

/// Returns the tables and views of a schema, at least those with `name`; `None` if the schema does not exist.
async fn entries(writer: &mut Writer, schema: &str, name: Option<&str>) -> Result<Option<Vec<Listed>>, WarehouseError> {
    let rows = unless_missing(writer.run(list_tables(&[schema], name)).await)?;
    let permanent = |rows| listed_tables(&rows).into_iter().filter(|listed| !listed.is_temporary).collect();
    Ok(rows.map(permanent))
}

async fn replace(writer: &mut Writer, new: &NewRelation<'_>) -> Result<Option<u64>, BuildError> {
    // This is also checked before the build, so that no caller waits for a build that will be refused.
    existing(writer, new).await?;
    if new.is_view {
        publish(writer, new, None, new.query).await?;
        return Ok(None);
    }
    let table = format!("m_{}", random_id()?.replace('-', ""));
    let relation = quoted(&[STORE, &table]);
    let comment = literal(&new.marker.to_string());
    writer.write(&format!("CREATE TABLE {relation} COMMENT {comment} AS\n{}", new.query)).await?;
    let published = async {
        let rows = count(writer, &relation).await?;
        publish(writer, new, Some(table), &format!("SELECT * FROM {relation}")).await.map(|()| Some(rows))
    };
    let published = published.await;
    if published.is_err() {
        // A table that cannot be dropped now is dropped by the next build. The first error is reported.
        let _ = drop_table(writer, &relation).await;
    }
    published
}

/// Replaces the view with the relation's name, and drops the tables that only earlier builds used.
async fn publish(
    writer: &mut Writer,
    new: &NewRelation<'_>,
    table: Option<String>,
    query: &str,
) -> Result<(), BuildError> {
    let old = existing(writer, new).await?;
    let create = if old.is_some() { "CREATE OR REPLACE VIEW" } else { "CREATE VIEW" };
    let now = Published { marker: new.marker.clone(), table };
    let (view, comment) = (quoted(&[new.schema, new.name]), literal(&now.comment()));
    writer.write(&format!("{create} {view} COMMENT {comment} AS\n{query}")).await?;
    let used = [now.table, old.and_then(|old| old.table)];
    if let Err(error) = drop_unused(writer, new.marker, &used).await {
        tracing::warn!(event = "old_rows_not_dropped", relation = %new, error_message = %error);
    }
    Ok(())
}

/// Returns the built relation with the name of the new one.
async fn existing(writer: &mut Writer, new: &NewRelation<'_>) -> Result<Option<Published>, BuildError> {
    let listed = entries(writer, new.schema, Some(new.name)).await?.unwrap_or_default();
    let Some(found) = listed.iter().find(|listed| listed.is_called(new.name)) else { return Ok(None) };
    let published = Published::of(found);
    new.may_replace(published.as_ref().map(|published| published.marker.to_string()).as_deref())?;
    Ok(published)
}

/// Drops the tables with rows of a model, except those in `used`.
async fn drop_unused(writer: &mut Writer, model: &Marker, used: &[Option<String>]) -> Result<(), WarehouseError> {
    for listed in entries(writer, STORE, None).await?.unwrap_or_default() {
        let Some(name) = listed.name.last() else { continue };
        let marker = listed.comment.as_deref().and_then(Marker::parse);
        let is_of = marker.is_some_and(|marker| marker.project == model.project && marker.model == model.model);
        if is_of && !used.iter().flatten().any(|used| listed.is_called(used)) {
            drop_table(writer, &quoted(&[STORE, name])).await?;
        }
    }
    Ok(())
}

/// Returns the number of rows of a table.
pub(crate) async fn count(writer: &mut Writer, relation: &str) -> Result<u64, WarehouseError> {
    let rows = writer.run(query(Statement::plain(&format!("SELECT count(*) FROM {relation}")))?).await?;
    first_number(&rows)
}

pub(crate) async fn drop_table(writer: &mut Writer, relation: &str) -> Result<(), WarehouseError> {
    writer.write(&format!("DROP TABLE IF EXISTS {relation}")).await
}
