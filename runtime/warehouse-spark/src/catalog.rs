//! Looks up tables in the catalogs of the session.
//!
//! In: the parts of a name. Out: the table with its full name. The full name contains the catalog, so it cannot be
//! taken for a path. The parts become arguments of catalog calls, where a name can only refer to an entry of the
//! catalog. A path such as `parquet.x` is therefore looked up in a database `parquet`. Not here: external tables,
//! tables of formats that read other systems, temporary views, and tables of the system.

use terrane_app::ports::warehouse::{CatalogTable, Statement, WarehouseError};
use terrane_compiler::types::Value;

use crate::listing::{Listed, NAME, catalog, described, list_tables, listed_tables, quoted, strings, unless_missing};
use crate::pool::{PROBE_TIMEOUT, Pool};
use crate::protocol::{CatalogCall, ListColumns};
use crate::session::query;

/// The formats in which a managed table stores its own rows.
const STORED_FORMATS: &[&str] = &["avro", "csv", "delta", "hive", "hudi", "iceberg", "json", "orc", "parquet", "text"];

/// Databases and catalogs of the system.
const SYSTEM: &[&str] = &["global_temp", "information_schema", "sys", "system"];

/// The largest length of a name that is looked up, in bytes over all its parts.
const MAX_NAME_BYTES: usize = 1_024;

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
    let listed = pool.run(list_tables(database, Some(table)), PROBE_TIMEOUT).await;
    let Some(rows) = unless_missing(listed)? else { return Ok(None) };
    let listed = listed_tables(&rows);
    let mut same = listed.iter().filter(|listed| listed.is_called(table));
    let (Some(found), None) = (same.next(), same.next()) else { return Ok(None) };
    let is_system = found.name.iter().any(|part| SYSTEM.contains(&part.to_lowercase().as_str()));
    if found.is_temporary || is_system || !is_found_kind(pool, found).await? {
        return Ok(None);
    }
    let columns = catalog(CatalogCall::ListColumns(ListColumns { table_name: quoted(&found.name) }));
    let Some(columns) = unless_missing(pool.run(columns, PROBE_TIMEOUT).await)? else { return Ok(None) };
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
            let format = described(&rows, "Provider").map(|format| format.to_lowercase());
            Ok(format.is_some_and(|format| STORED_FORMATS.contains(&format.as_str())))
        }
        _ => Ok(false),
    }
}
