//! Looks up the tables of registered cubes in the warehouse's catalog.
//!
//! In: registered cubes. Out: the cubes with the full names of their tables. A cube whose table is not in the catalog
//! is left out and causes an error. A caller without `admin` uses plain names of tables, which an engine may interpret
//! as a file, a function or a remote table. So a table that the catalog does not list is never served, whenever its
//! cube was registered. Any other `sql_table` is an operator's SQL and is unchanged. Not here: the definition of a
//! plain name (`snippet::allowed`).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt as _};
use terrane_compiler::diagnostic::{Code, Diagnostic};
use terrane_compiler::project::{Inputs, RegisteredCube};
use terrane_compiler::snippet::allowed;

use crate::introspection::NOT_ASKED;
use crate::ports::warehouse::{CatalogTable, Warehouse, WarehouseErrorKind};

/// The code for a name that no table or view in the warehouse's catalog has.
pub(crate) const UNKNOWN_TABLE: Code = Code::UnknownTable;

/// The largest number of concurrent lookups. The limit leaves the warehouse free for queries.
const AT_ONCE: usize = 4;
/// The time limit for all tables.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The tables that were found, by `sql_table`.
pub(crate) type FoundTables = HashMap<Arc<str>, Arc<CatalogTable>>;

/// The catalog's answer about one name.
enum LookupAnswer {
    Table(Arc<CatalogTable>),
    Absent,
    /// The catalog could not be read. The field is the warehouse's own message.
    Unknown(String),
}

/// Replaces the registered cubes of `inputs` with those that may be served. If the warehouse does not answer, the
/// tables that it listed before (`known`) count as listed.
pub(crate) async fn locate(
    inputs: &Inputs,
    known: &FoundTables,
    warehouse: &dyn Warehouse,
) -> (Inputs, FoundTables, Vec<Diagnostic>) {
    let (mut inputs, mut diagnostics) = (inputs.clone(), Vec::new());
    let registered = std::mem::take(&mut inputs.registered);
    let answers = ask(&registered, &inputs.warehouse, known, warehouse).await;
    for mut cube in registered {
        if inputs.names_reserved_schema(&cube.entry) {
            diagnostics.push(reserved(&cube).at(cube.place()));
            inputs.unread.insert(cube.name);
            continue;
        }
        let Some(table) = looked_up(&cube, &inputs.warehouse) else {
            inputs.registered.push(cube);
            continue;
        };
        let diagnostic = match answers.get(&table) {
            Some(LookupAnswer::Table(found)) => {
                cube.catalog_name = Some(found.name.iter().map(|part| Arc::from(part.as_str())).collect());
                inputs.registered.push(cube);
                continue;
            }
            Some(LookupAnswer::Unknown(message)) => unanswered(&cube, message),
            Some(LookupAnswer::Absent) | None => absent(&cube, &table),
        };
        diagnostics.push(diagnostic.at(cube.place()));
        // References to the left-out cube are not reported as errors.
        inputs.unread.insert(cube.name);
    }
    let found = answers.into_iter().filter_map(|(table, answer)| match answer {
        LookupAnswer::Table(found) => Some((table, found)),
        LookupAnswer::Absent | LookupAnswer::Unknown(_) => None,
    });
    (inputs, found.collect(), diagnostics)
}

/// Returns the name of the table if it must be looked up in the catalog.
fn looked_up(cube: &RegisteredCube, warehouse: &str) -> Option<Arc<str>> {
    let table = cube.sql_table()?;
    allowed::is_looked_up(&table, warehouse).then_some(table)
}

async fn ask(
    registered: &[RegisteredCube],
    kind: &str,
    known: &FoundTables,
    warehouse: &dyn Warehouse,
) -> HashMap<Arc<str>, LookupAnswer> {
    let tables = registered.iter().filter_map(|cube| looked_up(cube, kind));
    let mut answers: HashMap<Arc<str>, LookupAnswer> =
        tables.map(|table| (table, LookupAnswer::Unknown("no response in time".to_owned()))).collect();
    let asked: Vec<BoxFuture<'_, _>> =
        answers.keys().map(|table| answer(Arc::clone(table), warehouse).boxed()).collect();
    let mut coming = stream::iter(asked).buffer_unordered(AT_ONCE);
    let gather = async {
        while let Some((table, answer)) = coming.next().await {
            answers.insert(table, answer);
        }
    };
    // After the timeout, the answers that have arrived are used.
    let _ = tokio::time::timeout(TIMEOUT, gather).await;
    for (table, answer) in &mut answers {
        if let (LookupAnswer::Unknown(_), Some(found)) = (&answer, known.get(table)) {
            *answer = LookupAnswer::Table(Arc::clone(found));
        }
    }
    answers
}

async fn answer(table: Arc<str>, warehouse: &dyn Warehouse) -> (Arc<str>, LookupAnswer) {
    let parts: Vec<&str> = table.split('.').collect();
    let answer = match warehouse.table(&parts).await {
        Ok(Some(found)) => LookupAnswer::Table(Arc::new(found)),
        Ok(None) => LookupAnswer::Absent,
        // The statement of the lookup is always valid, so a refusal means that this engine cannot look up the name.
        Err(error) if error.kind == WarehouseErrorKind::Refused => LookupAnswer::Absent,
        Err(error) => LookupAnswer::Unknown(error.message),
    };
    (table, answer)
}

fn reserved(cube: &RegisteredCube) -> Diagnostic {
    let message = format!("the registered cube `{}` names the schema of pre-aggregations", cube.name);
    Diagnostic::error(Code::ReservedName, message).hint("Read the tables that the pre-aggregations were made of.")
}

fn absent(cube: &RegisteredCube, table: &str) -> Diagnostic {
    let message = format!("table `{table}` of the registered cube `{}` does not exist", cube.name);
    Diagnostic::error(UNKNOWN_TABLE, message).hint(
        "Name a table or a view of the warehouse's catalog. Anything else needs the scope `admin` and a quoted name.",
    )
}

fn unanswered(cube: &RegisteredCube, message: &str) -> Diagnostic {
    let text = format!("the warehouse could not be asked about the table of cube `{}`", cube.name);
    let hint = "Reload the project when the warehouse responds.";
    Diagnostic::error(NOT_ASKED, text).detail(message).hint(hint).about(Arc::clone(&cube.name))
}
