//! The columns that a statement reads, as reported by DuckDB.
//!
//! In: SQL. Out: the columns that the plan's scans project, by table. DuckDB omits columns that no expression uses, and
//! whole scans if statistics prove that no row remains. Not here: the lineage of the same SQL.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, anyhow};
use arrow::array::{Array as _, StringArray};
use serde_json::Value as Json;

use crate::product::Product;

/// Returns each scanned column as (table, column) in lower case. The table has neither the database nor the schema
/// `main` in its name; the column includes the fields that are read from it, as in `payload.kind`. `None` if a part of
/// the plan is provably empty.
///
/// # Errors
/// DuckDB refuses the statement, or the plan has an unknown form.
pub fn scanned(product: &Product, sql: &str) -> Result<Option<BTreeSet<(String, String)>>> {
    let answer = product.execute(&format!("EXPLAIN (FORMAT JSON) {sql}"))?;
    let batch = answer.batches.first().context("a plan has a row")?;
    let text = batch.column_by_name("explain_value").context("a plan has no text")?;
    let text = text.as_any().downcast_ref::<StringArray>().context("the plan is not a string")?.value(0);
    let plan: Json = serde_json::from_str(text).map_err(|error| anyhow!("{error}: {text}"))?;
    let mut found = BTreeSet::new();
    let mut open: Vec<&Json> = plan.as_array().into_iter().flatten().collect();
    while let Some(node) = open.pop() {
        if node["name"].as_str().is_some_and(|name| name.trim() == "EMPTY_RESULT") {
            return Ok(None);
        }
        open.extend(node["children"].as_array().into_iter().flatten());
        let Some(table) = node["extra_info"]["Table"].as_str() else { continue };
        let parts: Vec<String> = table.split('.').map(|part| part.trim_matches('"').to_lowercase()).collect();
        let parts: Vec<&str> =
            parts.iter().map(String::as_str).filter(|part| !["memory", "main"].contains(part)).collect();
        let table = parts.join(".");
        let columns = &node["extra_info"]["Projections"];
        let columns: Vec<&str> = match columns {
            Json::Array(columns) => columns.iter().filter_map(Json::as_str).collect(),
            columns => columns.as_str().into_iter().collect(),
        };
        let columns = columns.into_iter().filter(|column| !column.is_empty());
        found.extend(columns.map(|column| (table.clone(), column.replace('"', "").to_lowercase())));
    }
    Ok(Some(found))
}
