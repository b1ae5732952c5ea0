//! The bytes that a scan reads in PostgreSQL.
//!
//! In: a statement that selects columns of a relation. Out: the size of the tables in its plan, because PostgreSQL
//! stores rows, not columns; an index may let it read less. The numbers of rows come from the statistics of the
//! catalog. Not here: foreign tables and functions, whose sizes are unknown.

use arrow::array::AsArray as _;
use arrow::datatypes::Int64Type;
use serde_json::Value as Json;
use terrane_app::ports::warehouse::{ResultSet, ScanSize, SizeBasis};
use terrane_compiler::types::Value;

use crate::plan_json::for_each_node;
use crate::sessions::SizeQueries;

/// The largest number of tables and partitions in a plan.
const MAX_TABLES: usize = 200;

/// The size and the estimated rows of a table, by its schema and its name. Rows that were never counted are null.
const OF_TABLE: &str = "\
    SELECT pg_catalog.pg_relation_size(c.oid)::bigint, nullif(c.reltuples, -1)::bigint \
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE n.nspname = $1 AND c.relname = $2";

pub(super) const QUERIES: SizeQueries =
    SizeQueries { explain: "EXPLAIN (VERBOSE, FORMAT JSON) ", of_table: OF_TABLE, tables, size };

/// Nodes that read rows, but not those of a table.
const UNKNOWN: &[&str] = &["Custom Scan", "Foreign Scan", "Function Scan", "Table Function Scan"];

/// Returns the tables of a plan; `None` if it reads anything else, or too many.
fn tables(plan: &Json) -> Option<Vec<Vec<Value>>> {
    let (mut found, mut is_known) = (Vec::new(), true);
    let mut visit = |node: &Json| {
        is_known &= !UNKNOWN.contains(&node["Node Type"].as_str().unwrap_or_default());
        if let (Some(schema), Some(name)) = (node["Schema"].as_str(), node["Relation Name"].as_str()) {
            found.push(vec![Value::Text(schema.into()), Value::Text(name.into())]);
        }
    };
    let is_whole = for_each_node(&plan[0]["Plan"], "Plans", &mut visit);
    (is_known && is_whole && found.len() <= MAX_TABLES).then_some(found)
}

fn size(rows: &ResultSet) -> Option<ScanSize> {
    let batch = rows.batches.iter().find(|batch| batch.num_rows() > 0)?;
    let number = |column: usize| {
        let numbers = batch.columns().get(column)?.as_primitive_opt::<Int64Type>()?;
        u64::try_from(numbers.iter().next()??).ok()
    };
    Some(ScanSize { bytes: number(0)?, rows: number(1), basis: SizeBasis::UpperBound })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn plans_name_tables() {
        let scan = |schema: &str, name: &str| json!({"Node Type": "Seq Scan", "Schema": schema, "Relation Name": name});
        let plan = json!([{"Plan": {"Node Type": "Append", "Plans": [scan("raw", "a"), scan("raw", "b")]}}]);
        assert_eq!(tables(&plan).map(|tables| tables.len()), Some(2));
        let foreign = json!([{"Plan": {"Node Type": "Foreign Scan", "Schema": "raw", "Relation Name": "f"}}]);
        assert_eq!(tables(&foreign), None);
    }
}
