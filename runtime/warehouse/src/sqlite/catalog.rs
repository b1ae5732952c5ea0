//! Looks up tables in SQLite's catalog: tables and views of the database file. Virtual tables, their shadow tables, and
//! functions that can be read like tables are left out. Databases that `init` attaches are not found, because `init`
//! runs on a separate connection.

use crate::catalog::Lookup;

const MAIN: &str = "main";

const TABLE: &str = "\
    SELECT t.schema, t.name, c.name FROM pragma_table_list(?) AS t, pragma_table_xinfo(t.name, 'main') AS c \
    WHERE t.schema = 'main' AND t.type IN ('table', 'view') AND t.name NOT LIKE 'sqlite~_%' ESCAPE '~' \
    AND c.hidden <> 1 ORDER BY c.cid";

/// Returns the lookup of a name. Returns `None` if no table can have such a name.
pub(super) fn lookup(name: &[&str]) -> Option<Lookup> {
    match name {
        [table] => Some(Lookup::new(TABLE, &[table])),
        [schema, table] if schema.eq_ignore_ascii_case(MAIN) => Some(Lookup::new(TABLE, &[table])),
        _ => None,
    }
}
