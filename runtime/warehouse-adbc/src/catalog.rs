//! Looks up tables in the catalog of PostgreSQL.
//!
//! In: the parts of a name. Out: the table with its full name. The parts are string literals in a statement over the
//! catalog, so a name can only refer to an entry of the catalog. Not here: the catalogs of other databases, which were
//! never tried; they list no tables. As in the PostgreSQL adapter, foreign tables, temporary tables, relations of
//! extensions and system catalogs are not found.

use arrow::array::AsArray as _;
use terrane_app::ports::warehouse::{CatalogTable, ResultSet};

/// The largest length of a name that is looked up, in bytes over all its parts.
const MAX_NAME_BYTES: usize = 1_024;

const COLUMNS: &str = "\
    SELECT current_database()::text, n.nspname::text, c.relname::text, a.attname::text \
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped \
    WHERE c.relkind IN ('r', 'p', 'v', 'm') AND c.relpersistence <> 't' \
    AND n.nspname <> 'information_schema' AND left(n.nspname, 3) <> 'pg_' \
    AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_depend d WHERE d.objid = c.oid \
    AND d.classid = 'pg_catalog.pg_class'::regclass AND d.deptype = 'e')";

/// Returns the statement that lists the columns of a table. Unquoted names are folded to lower case. Returns `None` for
/// a name that the catalog cannot contain.
pub(crate) fn lookup(name: &[&str]) -> Option<String> {
    let is_name = |part: &&str| !part.is_empty() && !part.contains('\0');
    let length: usize = name.iter().map(|part| part.len()).sum();
    if length > MAX_NAME_BYTES || !name.iter().all(is_name) {
        return None;
    }
    let parts: Vec<String> = name.iter().map(|part| literal(&part.to_ascii_lowercase())).collect();
    let condition = match parts.as_slice() {
        [table] => format!("c.relname = {table} AND pg_catalog.pg_table_is_visible(c.oid)"),
        [schema, table] => format!("c.relname = {table} AND n.nspname = {schema}"),
        [database, schema, table] => {
            format!("c.relname = {table} AND n.nspname = {schema} AND current_database() = {database}")
        }
        _ => return None,
    };
    Some(format!("{COLUMNS} AND {condition} ORDER BY a.attnum"))
}

/// Quotes a string. The form `E''` does not depend on the session's `standard_conforming_strings`.
fn literal(text: &str) -> String {
    format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// Returns the table that the rows of [`lookup`] describe; `None` without rows.
pub(crate) fn table(rows: &ResultSet) -> Option<CatalogTable> {
    let mut found: Option<CatalogTable> = None;
    for batch in &rows.batches {
        let columns: Vec<_> = batch.columns().iter().map(|column| column.as_string_opt::<i32>()).collect();
        let [Some(database), Some(schema), Some(table), Some(column)] = columns[..] else { return None };
        for row in 0..batch.num_rows() {
            let name = [database, schema, table].map(|part| part.value(row).to_owned()).to_vec();
            let table = found.get_or_insert_with(|| CatalogTable { name, columns: Vec::new() });
            table.columns.push(column.value(row).to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_literals() {
        let statement = lookup(&["Raw", "x' OR true --\\"]).unwrap();
        assert!(statement.contains(r"c.relname = E'x'' or true --\\' AND n.nspname = E'raw' ORDER"), "{statement}");
    }

    #[test]
    fn names_of_other_forms_are_not_looked_up() {
        let long = "x".repeat(MAX_NAME_BYTES + 1);
        for name in [&[][..], &[""], &["a", ""], &["a\0b"], &["a", "b", "c", "d"], &[&long]] {
            assert_eq!(lookup(name), None, "{name:?}");
        }
    }
}
