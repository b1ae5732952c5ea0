//! Which columns DuckDB itself says that a statement reads.
//!
//! In: SQL. Out: the columns that the plan's scans project, by table. All optimisers are off but those that
//! leave out columns that nobody uses, so that neither statistics nor folded constants hide one. Not here:
//! what lineage says of the same text.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, anyhow};
use arrow::array::{Array as _, StringArray};
use serde_json::Value as Json;

use crate::product::Product;

/// All of DuckDB 1.5's but `unused_columns`, and two without which some plans can't be made.
const OTHER_OPTIMISERS: &str = "expression_rewriter,filter_pullup,filter_pushdown,empty_result_pullup,\
    cte_filter_pusher,regex_range,in_clause,join_order,statistics_propagation,common_subexpressions,\
    common_aggregate,column_lifetime,limit_pushdown,row_group_pruner,top_n,top_n_window_elimination,\
    build_side_probe_side,compressed_materialization,duplicate_groups,reorder_filter,sampling_pushdown,\
    join_filter_pushdown,extension,materialized_cte,sum_rewriter,late_materialization,cte_inlining,\
    common_subplan,join_elimination,window_self_join";

/// What an engine has to be started with.
pub fn init() -> Vec<String> {
    vec![format!("SET disabled_optimizers = '{OTHER_OPTIMISERS}'")]
}

/// `(table, column)` in small letters, the table without database and schema `main`, the column with the fields
/// that are read of it: `payload.kind`.
///
/// # Errors
/// A statement that DuckDB refuses, or a plan that can't be read.
pub fn scanned(product: &Product, sql: &str) -> Result<BTreeSet<(String, String)>> {
    let answer = product.execute(&format!("EXPLAIN (FORMAT JSON) {sql}"))?;
    let batch = answer.batches.first().context("a plan has a row")?;
    let text = batch.column_by_name("explain_value").context("a plan has a text")?;
    let text = text.as_any().downcast_ref::<StringArray>().context("the plan is a text")?.value(0);
    let plan: Json = serde_json::from_str(text).map_err(|error| anyhow!("{error}: {text}"))?;
    let mut found = BTreeSet::new();
    let mut open: Vec<&Json> = plan.as_array().into_iter().flatten().collect();
    while let Some(node) = open.pop() {
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
    Ok(found)
}
