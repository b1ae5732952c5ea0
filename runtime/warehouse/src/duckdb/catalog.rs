//! Looks up tables in DuckDB's catalog.
//!
//! DuckDB databases that `init` attached are searched like the main database, because they belong to the operator too.
//! Databases of a connector (`postgres`, `mysql`, `sqlite`) are other servers and files, and are not searched.

use crate::catalog::Lookup;

macro_rules! lookup {
    ($name:literal, $place:literal) => {
        concat!(
            "SELECT t.database_name, t.schema_name, t.table_name, c.column_name FROM (\
             SELECT database_name, schema_name, table_name FROM duckdb_tables() WHERE NOT internal AND NOT temporary \
             UNION ALL SELECT database_name, schema_name, view_name FROM duckdb_views() \
             WHERE NOT internal AND NOT temporary) AS t \
             JOIN duckdb_databases() AS d ON d.database_name = t.database_name AND NOT d.internal \
             AND d.type = 'duckdb' \
             JOIN duckdb_columns() AS c ON c.database_name = t.database_name AND c.schema_name = t.schema_name \
             AND c.table_name = t.table_name \
             WHERE lower(t.table_name) = lower(",
            $name,
            ") AND (",
            $place,
            ") ORDER BY c.column_index"
        )
    };
}

const NAME: &str = lookup!("$1", "t.database_name = current_database() AND t.schema_name = current_schema()");
/// The lookup of a name with two parts. The first part is a schema of the main database, or the name of a database
/// whose default schema is searched.
const IN_SCHEMA: &str = lookup!(
    "$2",
    "t.database_name = current_database() AND lower(t.schema_name) = lower($1) \
     OR lower(t.database_name) = lower($1) AND t.schema_name = 'main'"
);
const IN_DATABASE: &str = lookup!("$3", "lower(t.database_name) = lower($1) AND lower(t.schema_name) = lower($2)");

/// Returns the lookup of a name. Returns `None` for a number of parts that names of tables cannot have.
pub(super) fn lookup(name: &[&str]) -> Option<Lookup> {
    let text = match name.len() {
        1 => NAME,
        2 => IN_SCHEMA,
        3 => IN_DATABASE,
        _ => return None,
    };
    Some(Lookup::new(text, name))
}
