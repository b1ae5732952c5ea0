//! The statements of DAX queries in a dialect whose engine is not here.
//!
//! In: a suite of queries and a dialect. Out: the statements of each query. The later statements of a query depend on
//! the rows of the earlier ones. These rows come from DuckDB: each query runs there first, and the nth statement in the
//! dialect is answered with the nth result.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use terrane_app::ports::warehouse::{CatalogTable, ResultSet, Statement, Warehouse, WarehouseError};
use terrane_compiler::sql::dialect_profile::DialectProfile;

use super::{Product, Served};
use crate::dax::answers::Suite;
use crate::hooks::WorldHooks;
use crate::oracle::Settings;

/// A query with its statements.
#[derive(Debug)]
pub struct Translated {
    pub query: &'static str,
    pub statements: Vec<String>,
}

/// The statements and results since the last call of `take`, and the results to return instead of new ones.
#[derive(Default)]
struct Records {
    statements: Vec<String>,
    results: Vec<ResultSet>,
    replayed: VecDeque<ResultSet>,
}

/// A warehouse that records statements.
struct Recorder {
    tables: Arc<dyn Warehouse>,
    dialect: String,
    is_replaying: bool,
    records: Mutex<Records>,
}

impl Recorder {
    fn new(tables: &Arc<dyn Warehouse>, dialect: &str, is_replaying: bool) -> Arc<Self> {
        let (tables, dialect) = (Arc::clone(tables), dialect.to_owned());
        Arc::new(Recorder { tables, dialect, is_replaying, records: Mutex::default() })
    }

    fn records<T>(&self, change: impl FnOnce(&mut Records) -> T) -> T {
        change(&mut self.records.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the records, and replaces the results to return.
    fn take(&self, replayed: Vec<ResultSet>) -> Records {
        self.records(|records| std::mem::replace(records, Records { replayed: replayed.into(), ..Records::default() }))
    }
}

#[async_trait]
impl Warehouse for Recorder {
    fn name(&self) -> &str {
        &self.dialect
    }

    fn binds_parameters(&self) -> bool {
        !self.is_replaying
    }

    async fn execute(&self, statement: Statement<'_>, timeout: Duration) -> Result<ResultSet, WarehouseError> {
        let replayed = self.records(|records| {
            records.statements.push(statement.text.to_owned());
            records.replayed.pop_front()
        });
        match replayed {
            Some(result) => Ok(result),
            // DuckDB refuses most statements of other dialects, and this error becomes the difference.
            None => {
                let result = self.tables.execute(statement, timeout).await?;
                self.records(|records| records.results.push(result.clone()));
                Ok(result)
            }
        }
    }

    async fn describe(&self, statement: Statement<'_>) -> Result<SchemaRef, WarehouseError> {
        self.tables.describe(statement).await
    }

    async fn table(&self, name: &[&str]) -> Result<Option<CatalogTable>, WarehouseError> {
        self.tables.table(name).await
    }

    async fn ping(&self) -> Result<(), WarehouseError> {
        Ok(())
    }
}

/// Returns the queries of a suite with their statements, in which values are literals.
///
/// # Errors
/// DuckDB refuses a statement, or the dialect cannot express one.
pub fn translated(settings: &Settings, suite: &Suite, profile: DialectProfile) -> Result<Vec<Translated>> {
    let start = Product::start_with(settings.clone(), None, suite.statements.clone())?;
    let recorder = Recorder::new(&start.warehouse, start.warehouse.name(), false);
    let replaying = Recorder::new(&start.warehouse, &profile.name, true);
    let on_duckdb = Product { warehouse: recorder.clone(), ..start };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let in_dialect = Product::over(settings.clone(), runtime, replaying.clone(), profile)?;
    let (on_duckdb, in_dialect) = (serve(&on_duckdb, suite)?, serve(&in_dialect, suite)?);
    let mut all = Vec::new();
    for (query, _) in suite.answers {
        recorder.take(Vec::new());
        run(&on_duckdb, query)?;
        replaying.take(recorder.take(Vec::new()).results);
        run(&in_dialect, query)?;
        let records = replaying.take(Vec::new());
        if !records.replayed.is_empty() {
            bail!("{query}\n  {} fewer statements than on DuckDB", records.replayed.len());
        }
        all.push(Translated { query, statements: records.statements });
    }
    Ok(all)
}

fn serve<'p>(product: &'p Product, suite: &Suite) -> Result<Served<'p>> {
    product.serve_tree(&suite.tree, WorldHooks::default())
}

/// Runs a query that cannot use cached results of earlier queries.
fn run(served: &Served<'_>, query: &str) -> Result<()> {
    served.invalidate();
    served.run_dax(query).map(|_| ()).map_err(anyhow::Error::msg).with_context(|| query.to_owned())
}
