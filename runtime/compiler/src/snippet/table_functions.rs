//! The tables and files that function calls in FROM read.
//!
//! In: a call. Out: [`Reads`], by the function's name, the same for all engines. A function that is not listed may read
//! anything. Not here: a warehouse's own macros and functions with the names of listed ones.

use sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Value};

/// The tables and files that a call in FROM reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reads {
    /// No tables and no files: the function uses only its arguments.
    Nothing,
    /// The files at the paths of its first argument. `is_directory`: the path of a folder.
    Files {
        is_directory: bool,
    },
    /// A table in a database file: `sqlite_scan('shop.db', 'orders')`.
    TableInFile,
    /// A table on another server. The last argument names the table.
    RemoteTable,
    /// The tables that its first argument names.
    Tables,
    /// The tables of the queries in its arguments.
    Query,
    Anything,
}

/// The functions that read no table, in lower case.
const NOTHING: &[&str] = &[
    "array_join",
    "arrayjoin",
    "explode",
    "explode_outer",
    "flatten",
    "generate_array",
    "generate_date_array",
    "generate_random",
    "generate_series",
    "generate_subscripts",
    "generate_timestamp_array",
    "generaterandom",
    "generator",
    "inline",
    "inline_outer",
    "json_array_elements",
    "json_array_elements_text",
    "json_each",
    "json_each_text",
    "json_object_keys",
    "json_populate_recordset",
    "json_table",
    "json_to_record",
    "json_to_recordset",
    "json_tree",
    "jsonb_array_elements",
    "jsonb_array_elements_text",
    "jsonb_each",
    "jsonb_each_text",
    "jsonb_object_keys",
    "jsonb_populate_recordset",
    "jsonb_to_record",
    "jsonb_to_recordset",
    "numbers",
    "numbers_mt",
    "openjson",
    "posexplode",
    "posexplode_outer",
    "range",
    "regexp_matches",
    "regexp_split_to_table",
    "repeat_row",
    "sequence",
    "split_to_table",
    "stack",
    "string_split",
    "string_to_table",
    "strtok_split_to_table",
    "unnest",
    "values",
    "xmltable",
    "zeros",
    "zeros_mt",
];
const FILES: &[&str] = &[
    "arrow_scan",
    "azureblobstorage",
    "file",
    "gcs",
    "glob",
    "hdfs",
    "parquet_bloom_probe",
    "parquet_file_metadata",
    "parquet_kv_metadata",
    "parquet_metadata",
    "parquet_scan",
    "parquet_schema",
    "read_arrow",
    "read_avro",
    "read_blob",
    "read_csv",
    "read_csv_auto",
    "read_json",
    "read_json_auto",
    "read_json_objects",
    "read_json_objects_auto",
    "read_ndjson",
    "read_ndjson_auto",
    "read_ndjson_objects",
    "read_parquet",
    "read_text",
    "read_xlsx",
    "s3",
    "sniff_csv",
    "st_read",
    "st_read_meta",
    "url",
];
const DIRECTORIES: &[&str] = &[
    "delta_scan",
    "deltalake",
    "hudi",
    "iceberg",
    "iceberg_metadata",
    "iceberg_scan",
    "iceberg_snapshots",
    "read_files",
];
const QUERIES: &[&str] = &["external_query", "mysql_query", "postgres_query", "query", "sqlite_query"];
const REMOTE_TABLES: &[&str] = &["mysql_scan", "postgres_scan", "postgres_scan_pushdown"];
/// Functions that read more than their arguments and are allowed in any expression, in lower case.
const READING_SCALARS: &[&str] = &[
    "cursor_to_xml",
    "database_to_xml",
    "database_to_xml_and_xmlschema",
    "dblink",
    "file",
    "joinget",
    "joingetornull",
    "lo_get",
    "lo_import",
    "load_file",
    "pg_ls_dir",
    "pg_read_binary_file",
    "pg_read_file",
    "query_to_xml",
    "query_to_xml_and_xmlschema",
    "readfile",
    "schema_to_xml",
    "schema_to_xml_and_xmlschema",
    "table_to_xml",
    "table_to_xml_and_xmlschema",
];

impl Reads {
    /// Returns the tables and files of a function, by the last part of its name in lower case.
    pub(crate) fn of(function: &str) -> Reads {
        let is_in = |list: &[&str]| list.contains(&function);
        match function {
            "query_table" => Reads::Tables,
            "sqlite_scan" => Reads::TableInFile,
            _ if is_in(NOTHING) => Reads::Nothing,
            _ if is_in(FILES) => Reads::Files { is_directory: false },
            _ if is_in(DIRECTORIES) => Reads::Files { is_directory: true },
            _ if is_in(QUERIES) => Reads::Query,
            _ if is_in(REMOTE_TABLES) => Reads::RemoteTable,
            _ => Reads::Anything,
        }
    }
}

/// Returns whether a function in an expression may read any table or file. The name is in lower case.
pub(crate) fn is_reading_scalar(function: &str) -> bool {
    READING_SCALARS.contains(&function) || function.starts_with("dictget")
}

/// Returns the string literals of each argument; `None` for a computed argument.
pub(crate) fn texts(args: &[FunctionArg]) -> Vec<Option<Vec<String>>> {
    args.iter().map(|arg| value(arg).and_then(literals)).collect()
}

/// Returns the string literals of the first positional argument and of the named arguments for paths and queries.
/// `None` if one of them is computed, or if there are none.
pub(crate) fn main_texts(args: &[FunctionArg]) -> Option<Vec<String>> {
    let is_main =
        |name: &str| ["file", "files", "filename", "location", "path", "paths", "query", "uri", "url"].contains(&name);
    let mut found = Vec::new();
    let mut has_first = false;
    for arg in args {
        let is_wanted = match arg {
            FunctionArg::Unnamed(_) => !std::mem::replace(&mut has_first, true),
            FunctionArg::Named { name, .. } => is_main(&name.value.to_lowercase()),
            FunctionArg::ExprNamed { name, .. } => is_main(&name.to_string().to_lowercase()),
        };
        if is_wanted {
            found.extend(literals(value(arg)?)?);
        }
    }
    (!found.is_empty()).then_some(found)
}

fn value(arg: &FunctionArg) -> Option<&Expr> {
    let (FunctionArg::Unnamed(arg) | FunctionArg::Named { arg, .. } | FunctionArg::ExprNamed { arg, .. }) = arg;
    match arg {
        FunctionArgExpr::Expr(expr) => Some(expr),
        _ => None,
    }
}

/// Returns the string literals of an expression that is one literal or a list of them.
pub(crate) fn literals(expr: &Expr) -> Option<Vec<String>> {
    let all = |parts: Vec<Option<Vec<String>>>| {
        let texts: Option<Vec<Vec<String>>> = parts.into_iter().collect();
        texts.map(|texts| texts.concat())
    };
    match expr {
        Expr::Value(value) => match &value.value {
            // The meaning of the escapes in such a literal depends on the engine.
            Value::EscapedStringLiteral(_) | Value::UnicodeStringLiteral(_) => None,
            Value::Placeholder(_) | Value::Number(..) | Value::Null | Value::Boolean(_) => None,
            text => text.clone().into_string().map(|text| vec![text]),
        },
        Expr::Nested(inner) => literals(inner),
        Expr::Array(list) => all(list.elem.iter().map(literals).collect()),
        Expr::Tuple(list) => all(list.iter().map(literals).collect()),
        Expr::Function(call) => {
            let name = call.name.to_string().to_lowercase();
            match &call.args {
                FunctionArguments::List(list) if ["list_value", "list_pack", "array"].contains(&&*name) => {
                    all(texts(&list.args))
                }
                _ => None,
            }
        }
        _ => None,
    }
}
