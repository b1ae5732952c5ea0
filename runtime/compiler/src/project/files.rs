//! Detection of SQL that may read files.
//!
//! In: the files of a project, or the SQL of a view. Out: whether any of them may name a file. The check searches
//! characters before anything is parsed or rendered, so it also covers SQL that cannot be parsed. It reports too much
//! rather than too little, for example a column `t.json` or a file's name in a description. It does not find a name
//! that Jinja puts together from parts.

use super::registered::RegisteredCube;
use super::{Inputs, SourceTree, settings};
use crate::snippet::allowed;

/// The extensions of files that an engine can read, in lower case.
const ENDINGS: &[&str] = &[
    "arrow", "avro", "bz2", "csv", "db", "ddb", "duckdb", "feather", "geojson", "gz", "ipc", "json", "jsonl", "ndjson",
    "orc", "parq", "parquet", "sqlite", "tsv", "txt", "xls", "xlsx", "zst",
];
/// Functions that read the files that their arguments name. Names that begin with `read_` or end with `_scan` also
/// count.
const FUNCTIONS: &[&str] = &[
    "copy",
    "glob",
    "parquet_bloom_probe",
    "parquet_file_metadata",
    "parquet_kv_metadata",
    "parquet_metadata",
    "parquet_schema",
    "query",
    "query_table",
    "sniff_csv",
    "st_drivers",
    "st_read",
    "st_read_meta",
];

/// Returns whether the SQL of a project may read files. The statements of `warehouse.init` do not count, because they
/// run before the engine is locked.
pub fn project_may_read_files(tree: &SourceTree, inputs: &Inputs) -> bool {
    let texts = tree.files.iter().filter(|(path, text)| {
        // Only the variables of the project file become SQL.
        &***path != settings::FILE || text.contains("vars")
    });
    texts.map(|(_, text)| text).any(|text| may_read_files(text))
        || inputs.env.values().any(|value| may_read_files(value))
        || inputs.registered.iter().any(|cube| registered_may_read_files(cube, &inputs.warehouse))
}

/// Returns whether a registered cube may read files. A plain table name cannot: it is looked up in the catalog.
fn registered_may_read_files(cube: &RegisteredCube, warehouse: &str) -> bool {
    let is_plain = cube.sql_table().is_some_and(|table| allowed::is_looked_up(&table, warehouse));
    !is_plain && may_read_files(&cube.entry)
}

/// Returns whether SQL or YAML may name a file.
pub fn may_read_files(text: &str) -> bool {
    let text = text.to_lowercase();
    names_ending(&text) || calls_reader(&text) || takes_text_for_table(&text)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns whether a string contains a name with the ending of a data file, such as `customers.csv` or `'*.json'`.
fn names_ending(text: &str) -> bool {
    text.match_indices('.').any(|(at, _)| {
        // The name after the dot may be quoted: `"customers"."csv"`. A name that comes from Jinja may be any name.
        let rest = text[at + 1..].trim_start().trim_start_matches(['"', '`', '[', '\\']);
        let word: &str = rest.split(|c| !is_word(c)).next().unwrap_or_default();
        ENDINGS.contains(&word) || rest.starts_with("{{")
    })
}

/// Returns whether SQL calls a reader such as `read_csv(…)`, even with spaces before the parenthesis.
fn calls_reader(text: &str) -> bool {
    text.match_indices('(').any(|(at, _)| {
        let before = text[..at].trim_end().trim_end_matches('"');
        let name = before.rsplit(|c| !is_word(c)).next().unwrap_or_default();
        // A name that ends with Jinja may be any name.
        FUNCTIONS.contains(&name) || name.starts_with("read_") || name.ends_with("_scan") || before.ends_with("}}")
    })
}

/// Returns whether SQL contains a string where a table is expected, such as `FROM 'data/orders'`.
fn takes_text_for_table(text: &str) -> bool {
    ["from", "join"].iter().any(|word| {
        text.match_indices(word).any(|(at, _)| {
            let is_whole = !text[..at].ends_with(is_word);
            let rest = text[at + word.len()..].trim_start_matches(|c: char| c.is_whitespace() || c == '(' || c == '\\');
            is_whole && rest.starts_with('\'')
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_found() {
        for text in [
            "SELECT * FROM customers.csv",
            "SELECT * FROM \"data/customers.CSV\"",
            "sql_table: '\"customers.tsv\"'",
            "SELECT * FROM \"customers\".\"csv\"",
            "SELECT * FROM 'x.parquet' AS x",
            "SELECT * FROM 'data/orders'",
            "select a from b join\n ('x')",
            "SELECT * FROM read_csv_auto(['a', 'b'])",
            "SELECT * FROM READ_TEXT ('x')",
            "SELECT * FROM \"read_blob\"('x')",
            "SELECT * FROM sqlite_scan('x', 't')",
            "SELECT * FROM glob('*')",
            "SELECT * FROM query('SELECT 1')",
            "SELECT * FROM query_table(x)",
            "SELECT * FROM x.json.gz",
            "SELECT * FROM 's3://bucket/x'",
            "SELECT * FROM 'x.{{ var(\"ending\") }}'",
            "SELECT * FROM {{ reader }}(x)",
        ] {
            assert!(may_read_files(text), "{text}");
        }
    }

    #[test]
    fn tables_and_row_functions_are_not_files() {
        for text in [
            "SELECT * FROM raw.orders AS o JOIN raw.customers c ON o.customer_id = c.id",
            "SELECT json_extract(o.payload, '$.a') FROM {{ source('raw', 'orders') }} AS o",
            "SELECT * FROM {{ ref('orders') }} WHERE note = 'a/b' AND rate > 0.5",
            "cubes:\n  - name: orders\n    sql_table: raw.orders\n    measures: [{name: count, type: count}]\n",
            "SELECT EXTRACT(year FROM created_at), trim(name) FROM t",
        ] {
            assert!(!may_read_files(text), "{text}");
        }
    }

    #[test]
    fn registered_cube_over_a_plain_table_reads_no_file() {
        let reads = |entry: &str| {
            let registered = vec![RegisteredCube::new("c", entry)];
            let inputs = Inputs { warehouse: "duckdb".into(), registered, ..Inputs::default() };
            project_may_read_files(&SourceTree::default(), &inputs)
        };
        assert!(!reads(r#"{"name": "c", "sql_table": "customers.csv", "description": "of customers.csv"}"#));
        assert!(reads(r#"{"name": "c", "sql_table": "\"data/customers.csv\""}"#));
        assert!(reads(r#"{"name": "c", "sql_table": "\"customers\".\"csv\""}"#));
    }

    #[test]
    fn only_variables_of_the_project_file_can_name_files() {
        let reads = |text: &str| {
            let mut tree = SourceTree::default();
            tree.files.insert(settings::FILE.into(), text.into());
            project_may_read_files(&tree, &Inputs::default())
        };
        assert!(!reads("name: p\nwarehouse: {path: shop.duckdb}\n"));
        assert!(reads("name: p\nvars: {orders: data/orders.csv}\n"));
    }
}
