//! Looks up tables in the catalogs of MySQL and MariaDB: views, and tables of engines that store the rows themselves.
//! Tables of engines that read files (CSV, CONNECT), other servers (FEDERATED, SPIDER, S3) or other tables (MERGE) are
//! left out, and so are tables of unknown engines.

use crate::catalog::Lookup;

// Both catalog tables are filtered by the schema's and the table's name, so that the server opens one table, not all.
macro_rules! lookup {
    ($schema:literal) => {
        concat!(
            "SELECT CAST(t.TABLE_SCHEMA AS CHAR), CAST(t.TABLE_NAME AS CHAR), CAST(c.COLUMN_NAME AS CHAR) \
             FROM information_schema.TABLES t JOIN information_schema.COLUMNS c \
             ON c.TABLE_SCHEMA = t.TABLE_SCHEMA AND c.TABLE_NAME = t.TABLE_NAME \
             WHERE t.TABLE_SCHEMA = ",
            $schema,
            " AND t.TABLE_NAME = ? AND c.TABLE_SCHEMA = ",
            $schema,
            " AND c.TABLE_NAME = ? AND (@@lower_case_table_names <> 0 \
             OR CAST(t.TABLE_SCHEMA AS BINARY) = CAST(",
            $schema,
            " AS BINARY) AND CAST(t.TABLE_NAME AS BINARY) = CAST(? AS BINARY)) \
             AND (t.TABLE_TYPE = 'VIEW' OR t.TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED') \
             AND LOWER(t.ENGINE) IN ('innodb', 'myisam', 'aria', 'memory', 'archive', 'rocksdb', 'tokudb', \
             'columnstore', 'ndbcluster')) \
             AND LOWER(t.TABLE_SCHEMA) NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys') \
             AND COALESCE(c.EXTRA, '') NOT LIKE '%INVISIBLE%' \
             ORDER BY c.ORDINAL_POSITION"
        )
    };
}

const NAME: &str = lookup!("DATABASE()");
const IN_SCHEMA: &str = lookup!("?");

/// Returns the lookup of a name. Returns `None` for a number of parts that names of tables cannot have.
pub(super) fn lookup(name: &[&str]) -> Option<Lookup> {
    match name {
        [table] => Some(Lookup::new(NAME, &[table, table, table])),
        [schema, table] => Some(Lookup::new(IN_SCHEMA, &[schema, table, schema, table, schema, table])),
        _ => None,
    }
}
