//! Reads the foreign keys of DuckDB's catalog. DuckDB checks each key at every change of a row. A key cannot be
//! disabled or left unchecked.
//!
//! A key references a table of the same schema. The keys of databases of a connector are left out, because these
//! databases are other servers.

/// Selects the keys without nullable columns, in the form that [`crate::foreign_keys`] reads.
pub(super) const FOREIGN_KEYS: &str = "\
    SELECT k.key, k.database_name, k.schema_name, k.table_name, k.shortest, k.own, \
    k.database_name AS to_database, k.schema_name AS to_schema, k.referenced_table, k.shortest AS to_shortest, k.other \
    FROM (SELECT c.database_oid || '.' || c.table_oid || '.' || c.constraint_index AS key, \
    c.database_name, c.schema_name, c.table_name, c.referenced_table, \
    CASE WHEN c.database_name <> current_database() THEN 'database' \
    WHEN c.schema_name <> current_schema() THEN 'schema' ELSE 'table' END AS shortest, \
    unnest(c.constraint_column_names) AS own, unnest(c.referenced_column_names) AS other \
    FROM duckdb_constraints() AS c \
    JOIN duckdb_databases() AS d ON d.database_name = c.database_name AND NOT d.internal AND d.type = 'duckdb' \
    WHERE c.constraint_type = 'FOREIGN KEY' \
    AND NOT EXISTS (SELECT 1 FROM duckdb_columns() AS n WHERE n.database_name = c.database_name \
    AND n.schema_name = c.schema_name AND n.table_name = c.table_name AND n.is_nullable \
    AND list_contains(c.constraint_column_names, n.column_name))) AS k ORDER BY k.key";
