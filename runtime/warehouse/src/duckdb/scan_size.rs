//! The bytes that a scan reads in DuckDB.
//!
//! In: a statement that selects columns of a relation. Out: the stored bytes of the columns that its plan reads: sums
//! of column chunks from the metadata of Parquet files, and sums of segments of DuckDB's own tables. Nothing but
//! metadata is read. Row groups that a range of time excludes do not count. The plan names the columns and the tables,
//! but no files: these are found in the SQL of the scan and of views. Not here: files of other formats, and tables of
//! other databases, whose sizes are unknown.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow::array::AsArray as _;
use arrow::datatypes::Int64Type;
use jiff::Timestamp;
use serde_json::Value as Json;
use terrane_app::ports::warehouse::{ResultSet, ScanSize, SizeBasis, Statement, WarehouseError, WarehouseErrorKind};
use terrane_compiler::snippet::parquet_reads;
use terrane_compiler::sql::ScannedRange;
use terrane_compiler::types::Value;

use super::PROBE_TIMEOUT;
use super::pool::Pool;
use super::session::Request;
use crate::plan_json::{for_each_node, plan_of};

/// The statement before which a scan's plan is returned as JSON instead of its rows.
const EXPLAIN: &str = "EXPLAIN (FORMAT JSON) ";

const VIEWS: &str =
    "SELECT sql FROM duckdb_views() WHERE NOT internal AND NOT temporary AND sql IS NOT NULL LIMIT 1000";

/// The compressed bytes and the rows of each column of Parquet files. A nested column has several chunks in each row
/// group, so its number of rows is too high.
const OF_FILES: &str = "\
    SELECT split_part(path_in_schema, ', ', 1) AS name, CAST(sum(total_compressed_size) AS BIGINT) AS bytes, \
    CAST(sum(row_group_num_rows) AS BIGINT) AS n FROM parquet_metadata(string_split($1, chr(10))) GROUP BY 1";

/// Like [`OF_FILES`], without the row groups in which all values of a column are outside a range of time. An end that
/// is null, and values that are no times, leave out nothing.
const IN_RANGE: &str = "\
    WITH chunks AS (SELECT * FROM parquet_metadata(string_split($1, chr(10)))), \
    skipped AS (SELECT file_name, row_group_id FROM chunks WHERE lower(path_in_schema) = $2 \
    AND (TRY_CAST(stats_max_value AS TIMESTAMP) < TRY_CAST($3 AS TIMESTAMP) \
    OR TRY_CAST(stats_min_value AS TIMESTAMP) > TRY_CAST($4 AS TIMESTAMP))) \
    SELECT split_part(path_in_schema, ', ', 1) AS name, CAST(sum(total_compressed_size) AS BIGINT) AS bytes, \
    CAST(sum(row_group_num_rows) AS BIGINT) AS n FROM chunks ANTI JOIN skipped USING (file_name, row_group_id) \
    GROUP BY 1";

/// The bytes and the rows of each column of a table. A segment ends where the next one in its block begins; the last
/// one in a block counts up to the block's end. Constants are stored outside blocks. Segments that were never written
/// to a file have the width of their type; strings are estimated.
const OF_TABLE: &str = "\
    SELECT column_name, CAST(sum(bytes) AS BIGINT), CAST(sum(n) AS BIGINT) FROM (\
    SELECT column_name, CASE \
    WHEN persistent AND block_id >= 0 THEN \
    coalesce(lead(block_offset) OVER (PARTITION BY block_id ORDER BY block_offset), 262144) - block_offset \
    + 262144 * coalesce(len(additional_block_ids), 0) \
    WHEN persistent THEN 0 \
    WHEN segment_type = 'VALIDITY' THEN count // 8 \
    WHEN segment_type IN ('BOOLEAN', 'TINYINT', 'UTINYINT') THEN count \
    WHEN segment_type IN ('SMALLINT', 'USMALLINT') THEN 2 * count \
    WHEN segment_type IN ('INTEGER', 'UINTEGER', 'FLOAT', 'DATE') THEN 4 * count \
    WHEN segment_type IN ('VARCHAR', 'BLOB', 'HUGEINT', 'UHUGEINT', 'UUID', 'INTERVAL') THEN 16 * count \
    ELSE 8 * count END AS bytes, \
    CASE WHEN segment_type = 'VALIDITY' THEN 0 ELSE count END AS n \
    FROM pragma_storage_info($1)) GROUP BY column_name";

/// Operators without inputs that read no stored rows.
const WITHOUT_STORAGE: &[&str] = &[
    "COLUMN_DATA_SCAN",
    "CTE_SCAN",
    "DELIM_SCAN",
    "DUMMY_SCAN",
    "EMPTY_RESULT",
    "EXPRESSION_SCAN",
    "GENERATE_SERIES",
    "RANGE",
    "REC_CTE_SCAN",
    "UNNEST",
];
const PARQUET: &[&str] = &["PARQUET_SCAN", "READ_PARQUET"];
const TABLE: &[&str] = &["INDEX_SCAN", "SEQ_SCAN", "TABLE_SCAN"];

/// An operator that reads stored rows.
#[derive(Debug, PartialEq)]
struct Leaf {
    source: LeafSource,
    columns: BTreeSet<String>,
    /// The conditions in the plan, which may read more columns, and may skip rows.
    filters: String,
}

#[derive(Debug, PartialEq)]
enum LeafSource {
    Parquet,
    /// A table, by its full name.
    Table(String),
}

/// The stored columns of a table or of files: the bytes and rows of each by its name in lower case.
type StoredColumns = HashMap<String, (u64, u64)>;

/// Returns the size of a scan; `None` if the plan reads anything whose size is unknown.
pub(super) async fn scan_size(
    pool: &Arc<Pool>,
    scan: &str,
    range: Option<&ScannedRange>,
) -> Result<Option<ScanSize>, WarehouseError> {
    let explain = [EXPLAIN, scan].concat();
    let Some(plan) = known(run(pool, Statement::plain(&explain)).await)?.as_ref().and_then(plan_of) else {
        return Ok(None);
    };
    let Some(leaves) = leaves(&plan) else { return Ok(None) };
    let files = match leaves.iter().any(|leaf| leaf.source == LeafSource::Parquet) {
        true => {
            let range = match range {
                Some(range) if leaves.len() == 1 && is_column_of_files(pool, scan, range).await? => Some(range),
                _ => None,
            };
            files_of(pool, scan, range).await?
        }
        false => Vec::new(),
    };
    let mut total = ScanSize { bytes: 0, rows: Some(0), basis: SizeBasis::Exact };
    for leaf in &leaves {
        let size = match &leaf.source {
            LeafSource::Parquet => leaf.size_in(&files, SizeBasis::Exact),
            LeafSource::Table(name) => {
                let Some(columns) = stored(pool, OF_TABLE, name).await? else { return Ok(None) };
                leaf.size_in(&[columns], SizeBasis::Statistics)
            }
        };
        let Some(size) = size else { return Ok(None) };
        total = ScanSize {
            bytes: total.bytes + size.bytes,
            rows: total.rows.zip(size.rows).map(|(one, other)| one + other),
            basis: total.basis.max(size.basis),
        };
    }
    Ok(Some(total))
}

/// Returns the columns of each place where the scan reads Parquet files.
async fn files_of(
    pool: &Arc<Pool>,
    scan: &str,
    range: Option<&ScannedRange>,
) -> Result<Vec<StoredColumns>, WarehouseError> {
    let views = known(run(pool, Statement::plain(VIEWS)).await)?;
    let views: Vec<String> = views.iter().flat_map(|rows| &rows.batches).flat_map(texts).collect();
    let mut files = Vec::new();
    for paths in parquet_reads(scan, &views).unwrap_or_default() {
        // A path with a line break cannot be part of the list.
        let is_listed = paths.iter().all(|path| !path.contains('\n'));
        let list = paths.join("\n");
        let Some(mut columns) = (if is_listed { stored(pool, OF_FILES, &list).await? } else { None }) else {
            return Ok(Vec::new());
        };
        if let Some(range) = range
            && let Some(read) = in_range(pool, &list, range).await?
        {
            columns.iter_mut().for_each(|(name, size)| *size = read.get(name).copied().unwrap_or_default());
        }
        files.push(columns);
    }
    Ok(files)
}

/// Returns whether the column of a range is a column of Parquet files, unchanged and under the same name: a statement
/// that selects only this column from the scan is then a scan of the files without a further operator.
async fn is_column_of_files(pool: &Arc<Pool>, scan: &str, range: &ScannedRange) -> Result<bool, WarehouseError> {
    let explain = format!("{EXPLAIN}SELECT c{} FROM ({scan}) AS probed", range.place);
    let Some(plan) = known(run(pool, Statement::plain(&explain)).await)?.as_ref().and_then(plan_of) else {
        return Ok(false);
    };
    let is_scan = PARQUET.contains(&plan[0]["name"].as_str().unwrap_or_default().trim());
    let column = BTreeSet::from([range.column.text.to_lowercase()]);
    Ok(is_scan && leaves(&plan).is_some_and(|leaves| leaves.iter().all(|leaf| leaf.columns == column)))
}

/// Returns the columns of the row groups that may have values in a range.
async fn in_range(
    pool: &Arc<Pool>,
    paths: &str,
    range: &ScannedRange,
) -> Result<Option<StoredColumns>, WarehouseError> {
    let end = |micros: Option<i64>| {
        let time = micros.and_then(|micros| Timestamp::from_microsecond(micros).ok());
        time.map_or(Value::Null, |time| Value::Text(time.to_string().into()))
    };
    let column = Value::Text(range.column.text.to_lowercase().into());
    let params = [Value::Text(paths.into()), column, end(range.low), end(range.high)];
    let rows = known(run(pool, Statement { text: IN_RANGE, params: &params, columns: &[] }).await)?;
    Ok(rows.map(|rows| columns_in(&rows)))
}

fn texts(batch: &arrow::array::RecordBatch) -> Vec<String> {
    let texts = batch.columns().first().and_then(|column| column.as_string_opt::<i32>());
    texts.into_iter().flatten().flatten().map(str::to_owned).collect()
}

async fn stored(pool: &Arc<Pool>, text: &str, name: &str) -> Result<Option<StoredColumns>, WarehouseError> {
    let params = [Value::Text(name.into())];
    let rows = known(run(pool, Statement { text, params: &params, columns: &[] }).await)?;
    Ok(rows.map(|rows| columns_in(&rows)))
}

fn columns_in(rows: &ResultSet) -> StoredColumns {
    let mut found = StoredColumns::new();
    for batch in &rows.batches {
        let [names, bytes, counts] = batch.columns() else { continue };
        let (Some(names), Some(bytes), Some(counts)) = (
            names.as_string_opt::<i32>(),
            bytes.as_primitive_opt::<Int64Type>(),
            counts.as_primitive_opt::<Int64Type>(),
        ) else {
            continue;
        };
        for ((name, bytes), count) in names.iter().zip(bytes).zip(counts) {
            let number = |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok()).unwrap_or(0);
            found.insert(name.unwrap_or_default().to_lowercase(), (number(bytes), number(count)));
        }
    }
    found
}

async fn run(pool: &Arc<Pool>, statement: Statement<'_>) -> Result<ResultSet, WarehouseError> {
    pool.run(Request::execute(statement), PROBE_TIMEOUT).await
}

/// Returns `None` if the engine refused a statement, because it does not know what the statement names.
fn known(rows: Result<ResultSet, WarehouseError>) -> Result<Option<ResultSet>, WarehouseError> {
    match rows {
        Ok(rows) => Ok(Some(rows)),
        Err(error) if error.kind == WarehouseErrorKind::Refused => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the operators that read stored rows; `None` if the plan has an operator whose reads are unknown.
fn leaves(plan: &Json) -> Option<Vec<Leaf>> {
    let (mut found, mut is_known) = (Vec::new(), true);
    let mut visit = |node: &Json| {
        let name = node["name"].as_str().unwrap_or_default().trim();
        let is_leaf = node["children"].as_array().is_none_or(Vec::is_empty);
        if PARQUET.contains(&name) {
            found.push(leaf(node, LeafSource::Parquet));
        } else if TABLE.contains(&name) {
            let table = node["extra_info"]["Table"].as_str();
            is_known &= table.is_some();
            found.extend(table.map(|table| leaf(node, LeafSource::Table(table.to_owned()))));
        } else if is_leaf && !WITHOUT_STORAGE.contains(&name) {
            is_known = false;
        }
    };
    let mut is_whole = true;
    for root in plan.as_array()? {
        is_whole &= for_each_node(root, "children", &mut visit);
    }
    (is_known && is_whole).then_some(found)
}

fn leaf(node: &Json, source: LeafSource) -> Leaf {
    let info = &node["extra_info"];
    let listed = |field: &Json| -> Vec<String> {
        match field {
            Json::String(one) => vec![one.clone()],
            Json::Array(all) => all.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect(),
            _ => Vec::new(),
        }
    };
    // A field of a structure is written as `column.field`.
    let column = |name: String| name.split('.').next().unwrap_or_default().to_lowercase();
    let columns = listed(&info["Projections"]).into_iter().map(column).filter(|name| !name.is_empty()).collect();
    Leaf { source, columns, filters: listed(&info["Filters"]).join(" ").to_lowercase() }
}

impl Leaf {
    /// Returns the size of the columns that are read. The plan of a scan of files does not name them. If several of the
    /// `stored` sources have all projected columns, returns the largest size.
    fn size_in(&self, stored: &[StoredColumns], basis: SizeBasis) -> Option<ScanSize> {
        let has_all = |columns: &&StoredColumns| self.columns.iter().all(|name| columns.contains_key(name));
        let mut possible: Vec<&StoredColumns> = stored.iter().filter(has_all).collect();
        // Columns that are not stored, such as those of partitioned paths, are computed.
        if possible.is_empty() && stored.len() == 1 {
            possible.extend(stored);
        }
        let sizes = possible.iter().map(|columns| {
            let is_read = |name: &String| self.columns.contains(name) || has_word(&self.filters, name);
            columns.iter().filter(|(name, _)| is_read(name)).map(|(_, (bytes, _))| *bytes).sum::<u64>()
        });
        let bytes = sizes.max()?;
        let rows = possible.iter().filter_map(|columns| columns.values().map(|(_, rows)| *rows).min()).max();
        let is_bound = possible.len() > 1 || !self.filters.is_empty();
        let basis = if is_bound { basis.max(SizeBasis::UpperBound) } else { basis };
        Some(ScanSize { bytes, rows, basis })
    }
}

/// Returns whether SQL has a name that is not a part of a longer name.
fn has_word(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

    use serde_json::json;

    use super::*;

    #[test]
    fn plans_name_tables_and_columns() {
        let plan = json!([{"name": "HASH_JOIN", "children": [
            {"name": "READ_PARQUET", "children": [],
                "extra_info": {"Projections": ["I", "s.a"], "Filters": "day < '2023-06-01'"}},
            {"name": "SEQ_SCAN ", "children": [], "extra_info": {"Table": "t.main.t", "Projections": "i"}},
        ]}]);
        let mut found = leaves(&plan).unwrap();
        found.sort_by_key(|leaf| leaf.columns.len());
        assert_eq!(found[0].source, LeafSource::Table("t.main.t".to_owned()));
        assert_eq!(found[1].columns, BTreeSet::from(["i".to_owned(), "s".to_owned()]));
        let unknown = json!([{"name": "READ_CSV", "children": [], "extra_info": {}}]);
        assert_eq!(leaves(&unknown), None);
    }

    #[test]
    fn only_read_columns_count() {
        let stored =
            HashMap::from([("a", 10), ("b", 20), ("day", 40)].map(|(name, bytes)| (name.to_owned(), (bytes, 100))));
        let leaf = |filters: &str| Leaf {
            source: LeafSource::Parquet,
            columns: BTreeSet::from(["a".to_owned()]),
            filters: filters.to_owned(),
        };
        let size = |leaf: Leaf, stored: &[StoredColumns]| leaf.size_in(stored, SizeBasis::Exact).unwrap();
        let all = size(leaf(""), std::slice::from_ref(&stored));
        assert_eq!(all, ScanSize { bytes: 10, rows: Some(100), basis: SizeBasis::Exact });
        let filtered = size(leaf("day<'2023'"), std::slice::from_ref(&stored));
        assert_eq!((filtered.bytes, filtered.basis), (50, SizeBasis::UpperBound));
        let other = HashMap::from([("a".to_owned(), (70, 100))]);
        let ambiguous = size(leaf(""), &[stored, other]);
        assert_eq!((ambiguous.bytes, ambiguous.basis), (70, SizeBasis::UpperBound));
        assert_eq!(leaf("").size_in(&[], SizeBasis::Exact), None);
    }
}
