//! Looks up tables in the catalogs of the session.
//!
//! In: the parts of a name. Out: the table with its full name. The full name contains the catalog, so it cannot be
//! taken for a path. The parts become arguments of catalog calls, where a name can only refer to an entry of the
//! catalog. A path such as `parquet.x` is therefore looked up in a database `parquet`. Not here: external tables,
//! tables of formats that read other systems, temporary views, and tables of the system.

use arrow::array::{Array as _, AsArray as _, RecordBatch, StringArray};
use terrane_app::ports::warehouse::{CatalogTable, ResultSet, Statement, WarehouseError, WarehouseErrorKind};
use terrane_compiler::types::Value;

use crate::pool::{PROBE_TIMEOUT, Pool};
use crate::protocol::{Catalog, CatalogCall, ListColumns, ListTables, OpType, RelType, Relation};
use crate::session::{plan, query};

/// The formats in which a managed table stores its own rows.
const STORED_FORMATS: &[&str] = &["avro", "csv", "delta", "hive", "hudi", "iceberg", "json", "orc", "parquet", "text"];

/// Databases and catalogs of the system.
const SYSTEM: &[&str] = &["global_temp", "information_schema", "sys", "system"];

/// The largest length of a name that is looked up, in bytes over all its parts.
const MAX_NAME_BYTES: usize = 1_024;

/// The indexes of columns in three kinds of results: the list of tables, the list of columns, and the description.
/// Columns are found by index, because their names differ between servers.
const NAME: usize = 0;
const CATALOG: usize = 1;
const NAMESPACE: usize = 2;
const KIND: usize = 4;
const IS_TEMPORARY: usize = 5;
const DESCRIBED: usize = 1;

/// An entry of the list of tables.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Listed {
    /// The full name, beginning with the catalog. The name alone for an entry without a catalog.
    name: Vec<String>,
    kind: String,
    is_temporary: bool,
}

/// Looks up a table, as [`Warehouse::table`] defines it.
///
/// # Errors
/// Returns the server's error. A refusal is not an error; it means that the table does not exist or may not be read.
///
/// [`Warehouse::table`]: terrane_app::ports::warehouse::Warehouse::table
pub(crate) async fn table(pool: &Pool, name: &[&str]) -> Result<Option<CatalogTable>, WarehouseError> {
    let Some((table, database)) = name.split_last() else { return Ok(None) };
    let is_long = name.iter().map(|part| part.len()).sum::<usize>() > MAX_NAME_BYTES;
    if is_long || database.len() > 2 || name.iter().any(|part| part.is_empty()) {
        return Ok(None);
    }
    let listed = ListTables {
        db_name: (!database.is_empty()).then(|| quoted(database)),
        pattern: is_plain(table).then(|| (*table).to_owned()),
    };
    let Some(rows) = unless_missing(call(pool, CatalogCall::ListTables(listed)).await)? else { return Ok(None) };
    let listed = listed_tables(&rows);
    let mut same = listed.iter().filter(|listed| is_same(listed, table));
    let (Some(found), None) = (same.next(), same.next()) else { return Ok(None) };
    let is_system = found.name.iter().any(|part| SYSTEM.contains(&part.to_lowercase().as_str()));
    if found.is_temporary || is_system || !is_found_kind(pool, found).await? {
        return Ok(None);
    }
    let columns = ListColumns { table_name: quoted(&found.name) };
    let Some(columns) = unless_missing(call(pool, CatalogCall::ListColumns(columns)).await)? else { return Ok(None) };
    let columns: Vec<String> = strings(&columns, NAME).into_iter().flatten().collect();
    Ok((!columns.is_empty()).then(|| CatalogTable { name: found.name.clone(), columns }))
}

/// Returns true for a view, and for a table that stores its own rows.
async fn is_found_kind(pool: &Pool, listed: &Listed) -> Result<bool, WarehouseError> {
    match listed.kind.as_str() {
        "VIEW" | "MATERIALIZED_VIEW" => Ok(true),
        "MANAGED" => {
            let params = [Value::Text(quoted(&listed.name).into())];
            let statement = Statement { text: "DESCRIBE TABLE EXTENDED IDENTIFIER(?)", params: &params, columns: &[] };
            // If the server cannot describe the table in this way, it is unknown where the rows are stored.
            let Some(rows) = unless_missing(pool.run(query(statement)?, PROBE_TIMEOUT).await)? else {
                return Ok(false);
            };
            Ok(format_of(&rows).is_some_and(|format| STORED_FORMATS.contains(&format.as_str())))
        }
        _ => Ok(false),
    }
}

/// Returns the format of a table from its description, in lower case. The description lists the table's columns first.
fn format_of(rows: &ResultSet) -> Option<String> {
    let (keys, values) = (strings(rows, NAME), strings(rows, DESCRIBED));
    let begin = keys.iter().position(|key| key.as_deref().is_some_and(|key| key.starts_with("# Detailed")))?;
    let at = keys.iter().skip(begin).position(|key| key.as_deref() == Some("Provider"))?;
    values.get(begin + at)?.as_ref().map(|format| format.to_lowercase())
}

async fn call(pool: &Pool, call: CatalogCall) -> Result<ResultSet, WarehouseError> {
    let catalog = RelType::Catalog(Catalog { cat_type: Some(call) });
    pool.run(plan(OpType::Root(Relation { rel_type: Some(catalog) })), PROBE_TIMEOUT).await
}

/// Converts a refusal to `None`. A refusal means that a part of the name does not exist or may not be read.
fn unless_missing<T>(outcome: Result<T, WarehouseError>) -> Result<Option<T>, WarehouseError> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind == WarehouseErrorKind::Refused => Ok(None),
        Err(error) => Err(error),
    }
}

fn listed_tables(rows: &ResultSet) -> Vec<Listed> {
    let mut listed = Vec::new();
    for batch in &rows.batches {
        for row in 0..batch.num_rows() {
            let temporary = batch.columns().get(IS_TEMPORARY).and_then(|column| column.as_boolean_opt());
            listed.push(Listed {
                name: full_name(batch, row),
                kind: cell(batch, KIND, row).unwrap_or_default().to_uppercase(),
                is_temporary: temporary.is_none_or(|column| column.value(row)),
            });
        }
    }
    listed
}

/// Returns the catalog, namespace and name of a listed table. Without a catalog, returns only the name.
fn full_name(batch: &RecordBatch, row: usize) -> Vec<String> {
    let mut name: Vec<String> = cell(batch, CATALOG, row).into_iter().collect();
    let namespaces = batch.columns().get(NAMESPACE).and_then(|column| column.as_list_opt::<i32>());
    if let Some(namespaces) = namespaces.filter(|lists| !name.is_empty() && lists.is_valid(row)) {
        let parts = namespaces.value(row);
        let parts = parts.as_string_opt::<i32>().map(|parts| parts.iter().flatten().map(str::to_owned).collect());
        name.extend(parts.unwrap_or_else(Vec::new));
    }
    name.extend(cell(batch, NAME, row));
    name
}

fn is_same(listed: &Listed, table: &str) -> bool {
    listed.name.last().is_some_and(|name| name.to_lowercase() == table.to_lowercase())
}

fn cell(batch: &RecordBatch, column: usize, row: usize) -> Option<String> {
    let column: &StringArray = batch.columns().get(column)?.as_string_opt()?;
    column.is_valid(row).then(|| column.value(row).to_owned())
}

fn strings(rows: &ResultSet, column: usize) -> Vec<Option<String>> {
    let cells = |batch: &RecordBatch| (0..batch.num_rows()).map(|row| cell(batch, column, row)).collect::<Vec<_>>();
    rows.batches.iter().flat_map(cells).collect()
}

/// Quotes the parts of a name for an argument that the server parses as a name.
fn quoted<S: AsRef<str>>(parts: &[S]) -> String {
    let quote = |part: &S| format!("`{}`", part.as_ref().replace('`', "``"));
    parts.iter().map(quote).collect::<Vec<_>>().join(".")
}

/// Returns true if a name has no characters with a special meaning in a pattern.
fn is_plain(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_in_names_are_doubled() {
        assert_eq!(quoted(&["a", "b`.c"]), "`a`.`b``.c`");
    }

    #[test]
    fn special_characters_never_reach_a_pattern() {
        assert!(is_plain("orders_2024"));
        for name in ["a*", "a|b", "a.b", "größe", "a b"] {
            assert!(!is_plain(name), "{name}");
        }
    }
}
