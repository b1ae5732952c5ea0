//! Reads the columns of tables from the warehouse if the project does not declare them completely.
//!
//! In: the tables that lineage found. Out: [`KnownColumns`] with the warehouse's columns. When lineage is first needed,
//! the warehouse describes one statement for each table, without running it. If an answer does not arrive in time, the
//! declared columns remain, and lineage marks names that it cannot resolve. Not here: the origins of columns.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt as _};
use terrane_compiler::sql::columns_probe;
use terrane_compiler::sql::dialect_profile::DialectProfile;
use terrane_lineage::{IncompleteTable, KnownColumns};

use crate::ports::warehouse::{Statement, Warehouse};

/// The largest number of tables that are described. Further tables have their declared columns only.
const MAX_TABLES: usize = 500;
/// The time limit for all tables.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The largest number of concurrent statements. The limit leaves the warehouse free for queries.
const AT_ONCE: usize = 4;

/// The columns of a table, in their order.
type Columns = Arc<[Arc<str>]>;

/// The columns of tables, by the statement that described them. Successive snapshots share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Inspected {
    tables: Arc<Mutex<HashMap<Arc<str>, Columns>>>,
}

impl Inspected {
    /// Adds the columns of the incomplete tables to `known`.
    pub(crate) async fn add_to(
        &self,
        known: &mut KnownColumns,
        incomplete: &[IncompleteTable],
        profile: &DialectProfile,
        warehouse: &dyn Warehouse,
    ) {
        let probes = incomplete.iter().take(MAX_TABLES).filter_map(|table| {
            let probe = columns_probe(&table.written, profile).ok()?;
            Some((Arc::clone(&table.name), Arc::<str>::from(probe)))
        });
        let probes: Vec<(Arc<str>, Arc<str>)> = probes.collect();
        let before = self.tables.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut found: HashMap<Arc<str>, Columns> = HashMap::new();
        let mut asked: Vec<BoxFuture<'_, _>> = Vec::new();
        for (_, probe) in &probes {
            match before.get(probe) {
                Some(columns) => _ = found.insert(Arc::clone(probe), Arc::clone(columns)),
                None => asked.push(ask(warehouse, Arc::clone(probe))),
            }
        }
        let mut answers = stream::iter(asked).buffer_unordered(AT_ONCE);
        let gather = async {
            while let Some(answer) = answers.next().await {
                found.extend(answer);
            }
        };
        // After the timeout, the answers that have arrived are used.
        let _ = tokio::time::timeout(TIMEOUT, gather).await;
        for (name, probe) in &probes {
            if let Some(columns) = found.get(probe) {
                known.inspected(name, columns.to_vec());
            }
        }
        *self.tables.lock().unwrap_or_else(PoisonError::into_inner) = found;
    }
}

/// Asks the warehouse for the columns of a statement; `None` if it reports none.
fn ask(warehouse: &dyn Warehouse, probe: Arc<str>) -> BoxFuture<'_, Option<(Arc<str>, Columns)>> {
    async move {
        let schema = warehouse.describe(Statement::plain(&probe)).await.ok()?;
        let columns: Columns = schema.fields().iter().map(|field| Arc::from(field.name().as_str())).collect();
        (!columns.is_empty()).then_some((probe, columns))
    }
    .boxed()
}
