//! Checks that the warehouse has the tables and columns that sources declare.
//!
//! In: a snapshot and the warehouse. Out: a warning for each missing table and column. The warehouse describes the
//! tables without reading rows. Not here: tables that no source declares. Cubes and models are checked by their own
//! columns (`introspection`).

mod readers;

use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt as _};
use terrane_compiler::diagnostic::{Code, Diagnostic};
use terrane_compiler::sql::{SourceProbe, source_probes};
use terrane_compiler::text::nearest::suggest;

use self::readers::ReportedReaders;
use crate::catalog::Snapshot;
use crate::introspection::{hint_to, without_excerpt};
use crate::ports::warehouse::{RefusalCause, Statement, Warehouse, WarehouseErrorKind};

/// The code of a missing table or column.
const NOT_FOUND: Code = Code::SourceNotFound;
/// The largest number of tables that are described.
const MAX_TABLES: usize = 500;
/// The time limit for all tables.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The largest number of concurrent statements.
const AT_ONCE: usize = 4;

/// Returns a warning for each table and column that sources declare and that the warehouse lacks, in the order of the
/// files. Tables and columns are left out if one of their readers has a problem in `reported`.
pub async fn absent(snapshot: &Snapshot, warehouse: &dyn Warehouse, reported: &[Diagnostic]) -> Vec<Diagnostic> {
    let readers = ReportedReaders::new(&snapshot.definitions, &snapshot.model, reported);
    let probes = source_probes(&snapshot.definitions, &snapshot.profile);
    let first = probes.iter().take(MAX_TABLES);
    let asked: Vec<BoxFuture<'_, _>> = first.map(|probe| absent_of(probe, warehouse, &readers).boxed()).collect();
    let (mut found, mut answered) = (Vec::new(), 0);
    let mut answers = stream::iter(asked).buffered(AT_ONCE);
    let gather = async {
        while let Some(diagnostics) = answers.next().await {
            found.extend(diagnostics);
            answered += 1;
        }
    };
    // After the timeout, the answers that have arrived are used.
    let _ = tokio::time::timeout(TIMEOUT, gather).await;
    if answered < probes.len() {
        let message = format!("of {} tables of sources {answered} were looked up in the warehouse", probes.len());
        found.push(Diagnostic::warning(Code::SourcesNotAsked, message));
    }
    found
}

async fn absent_of(probe: &SourceProbe<'_>, warehouse: &dyn Warehouse, readers: &ReportedReaders) -> Vec<Diagnostic> {
    let (name, table) = (&probe.name, probe.table);
    let schema = match warehouse.describe(Statement::plain(&probe.text)).await {
        Ok(schema) => schema,
        Err(error) if error.kind == WarehouseErrorKind::Refused && !readers.have(name, None) => {
            // The warehouse has the table, but one of its columns has an unsupported type.
            if error.cause == RefusalCause::UnsupportedType {
                return Vec::new();
            }
            let message = format!("the warehouse cannot read the table of source `{name}`");
            let hint = hint_to(error.cause, "Check its name, `schema` and `database`, and that it may be read.");
            let diagnostic = Diagnostic::warning(NOT_FOUND, message).detail(without_excerpt(&error.message));
            return vec![diagnostic.hint(hint).at(table.name.span())];
        }
        Err(_) => return Vec::new(),
    };
    // Names are compared case-insensitively, because warehouses differ in the case of unquoted names.
    let columns: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let is_there = |column: &str| columns.iter().any(|known| known.to_lowercase() == column.to_lowercase());
    let is_missing = |column: &str| !is_there(column) && !readers.have(name, Some(column));
    let missing = table.columns.iter().filter(|column| is_missing(&column.name.value));
    let diagnostics = missing.map(|column| {
        let message = format!("the warehouse's table of source `{name}` has no column `{}`", column.name.value);
        let hint = suggest(&column.name.value, "columns", columns.iter().copied());
        Diagnostic::warning(NOT_FOUND, message).hint(hint).at(column.name.span())
    });
    diagnostics.collect()
}
