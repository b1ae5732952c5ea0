//! Whether the warehouse has the tables and columns that sources declare.
//!
//! In: a snapshot and the warehouse. Out: a warning at each name that it doesn't have. Every table is described, none
//! is read. Not here: tables that nobody declares, whose columns cubes and models are checked by (`described`).

use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt as _};
use terrane_compiler::diagnostic::{Code, Diagnostic};
use terrane_compiler::sql::{SourceProbe, source_probes};
use terrane_compiler::text::nearest::suggest;

use crate::catalog::Snapshot;
use crate::described::{complaint, hint_to};
use crate::ports::warehouse::{Statement, Warehouse, WarehouseErrorKind};

/// A table or a column that a source declares is not there.
const NOT_FOUND: Code = Code::SourceNotFound;
/// How many tables are asked about.
const MAX_TABLES: usize = 500;
/// How long all of it may take.
const TIMEOUT: Duration = Duration::from_secs(20);
/// How many statements run at once.
const AT_ONCE: usize = 4;

/// What sources declare and the warehouse doesn't have, in the order of the files, but for tables and columns that
/// `is_told` of: what reads them was told of already.
pub async fn absent(
    snapshot: &Snapshot,
    warehouse: &dyn Warehouse,
    is_told: impl Fn(&str) -> bool + Sync,
) -> Vec<Diagnostic> {
    let probes = source_probes(&snapshot.definitions, &snapshot.profile);
    let first = probes.iter().take(MAX_TABLES);
    let asked: Vec<BoxFuture<'_, _>> = first.map(|probe| absent_of(probe, warehouse, &is_told).boxed()).collect();
    let (mut found, mut answered) = (Vec::new(), 0);
    let mut answers = stream::iter(asked).buffered(AT_ONCE);
    let gather = async {
        while let Some(told) = answers.next().await {
            found.extend(told);
            answered += 1;
        }
    };
    // What came in time is good.
    let _ = tokio::time::timeout(TIMEOUT, gather).await;
    if answered < probes.len() {
        let message = format!("of {} tables of sources {answered} were looked up in the warehouse", probes.len());
        found.push(Diagnostic::warning(Code::SourcesNotAsked, message));
    }
    found
}

async fn absent_of(
    probe: &SourceProbe<'_>,
    warehouse: &dyn Warehouse,
    is_told: &(dyn Fn(&str) -> bool + Sync),
) -> Vec<Diagnostic> {
    let (name, table) = (&probe.name, probe.table);
    let schema = match warehouse.describe(Statement::plain(&probe.text)).await {
        Ok(schema) => schema,
        Err(error) if error.kind == WarehouseErrorKind::Refused && !is_told(&table.name.value) => {
            // The table is there, with a column of a type that nobody can answer.
            if error.message.contains("has no Arrow type") {
                return Vec::new();
            }
            let message = format!("the warehouse can't read the table of source `{name}`");
            let hint = hint_to(&error.message, "check its name, `schema` and `database`, and that it may be read");
            let diagnostic = Diagnostic::warning(NOT_FOUND, message).detail(complaint(&error.message));
            return vec![diagnostic.hint(hint).at(table.name.span())];
        }
        Err(_) => return Vec::new(),
    };
    // Case is nothing: warehouses disagree about names without quotes.
    let columns: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let is_there = |column: &str| columns.iter().any(|known| known.to_lowercase() == column.to_lowercase());
    let is_missing = |column: &str| !is_there(column) && !is_told(column);
    let missing = table.columns.iter().filter(|column| is_missing(&column.name.value));
    let told = missing.map(|column| {
        let message = format!("the warehouse's table of source `{name}` has no column `{}`", column.name.value);
        let hint = suggest(&column.name.value, "its columns", columns.iter().copied());
        Diagnostic::warning(NOT_FOUND, message).hint(hint).at(column.name.span())
    });
    told.collect()
}
