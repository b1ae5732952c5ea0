//! Looks up tables in PostgreSQL's catalog: ordinary and partitioned tables, views and materialized views in the
//! schemas of users. Foreign tables are left out, because their rows belong to other servers. Relations of an extension
//! are left out, because they belong to the server.

use crate::catalog::Lookup;

macro_rules! lookup {
    ($name:literal, $place:literal) => {
        concat!(
            "SELECT current_database()::text, n.nspname::text, c.relname::text, a.attname::text \
             FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
             JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped \
             WHERE c.relname = ",
            $name,
            " AND ",
            $place,
            " AND c.relkind IN ('r', 'p', 'v', 'm') AND c.relpersistence <> 't' \
             AND n.nspname <> 'information_schema' AND left(n.nspname, 3) <> 'pg_' \
             AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_depend d WHERE d.objid = c.oid \
             AND d.classid = 'pg_catalog.pg_class'::regclass AND d.deptype = 'e') \
             ORDER BY a.attnum"
        )
    };
}

/// Finds a name without a schema by the search path.
const NAME: &str = lookup!("$1", "pg_catalog.pg_table_is_visible(c.oid)");
const IN_SCHEMA: &str = lookup!("$2", "n.nspname = $1");
const IN_DATABASE: &str = lookup!("$3", "n.nspname = $2 AND current_database() = $1");

/// Returns the lookup of a name, whose unquoted parts are already folded to lower case. Returns `None` for a number of
/// parts that names of tables cannot have.
pub(super) fn lookup(name: &[&str]) -> Option<Lookup> {
    let text = match name.len() {
        1 => NAME,
        2 => IN_SCHEMA,
        3 => IN_DATABASE,
        _ => return None,
    };
    let folded: Vec<String> = name.iter().map(|part| part.to_ascii_lowercase()).collect();
    Some(Lookup::new(text, &folded.iter().map(String::as_str).collect::<Vec<_>>()))
}
