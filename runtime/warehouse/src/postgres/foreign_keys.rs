//! Reads the foreign keys of PostgreSQL's catalog that hold for every row that a statement can read.
//!
//! Some keys are left out, because a row may not find the row that it references:
//! - keys that are not validated or not enforced, and keys with columns whose NOT NULL is not validated;
//! - keys whose triggers are disabled, and all keys of a database that subscribes to another one, because subscriptions
//!   write without checks;
//! - keys of tables with children by inheritance, because a key of the parent does not hold for the rows of children;
//! - keys to tables with row-level security, which hides rows;
//! - all keys of products that have PostgreSQL's protocol but do not enforce keys: Greenplum, Cloudberry, Redshift;
//! - keys with columns that are compared differently than the key compares them: other types, or a nondeterministic
//!   collation.
//!
//! Deferred keys are included, because other sessions see rows only after the commit, which checks the keys.

/// Selects the keys in the form that [`crate::foreign_keys`] reads. On older servers without `conenforced` and without
/// constraints of the type `n`, all keys count as enforced and all NOT NULL as validated.
pub(super) const FOREIGN_KEYS: &str = "\
    SELECT k.oid::text, current_database()::text, tn.nspname::text, t.relname::text, \
    CASE WHEN pg_catalog.pg_table_is_visible(t.oid) THEN 'table' ELSE 'schema' END, a.attname::text, \
    current_database()::text, fn.nspname::text, f.relname::text, \
    CASE WHEN pg_catalog.pg_table_is_visible(f.oid) THEN 'table' ELSE 'schema' END, fa.attname::text \
    FROM pg_catalog.pg_constraint k \
    JOIN pg_catalog.pg_class t ON t.oid = k.conrelid JOIN pg_catalog.pg_namespace tn ON tn.oid = t.relnamespace \
    JOIN pg_catalog.pg_class f ON f.oid = k.confrelid JOIN pg_catalog.pg_namespace fn ON fn.oid = f.relnamespace \
    CROSS JOIN LATERAL unnest(k.conkey, k.confkey) WITH ORDINALITY AS c (own, other, place) \
    JOIN pg_catalog.pg_attribute a ON a.attrelid = t.oid AND a.attnum = c.own \
    JOIN pg_catalog.pg_attribute fa ON fa.attrelid = f.oid AND fa.attnum = c.other \
    WHERE k.contype = 'f' AND k.convalidated AND coalesce(to_jsonb(k) ->> 'conenforced', 'true') = 'true' \
    AND (t.relkind = 'p' OR t.relkind = 'r' AND NOT t.relhassubclass) AND t.relpersistence <> 't' \
    AND f.relkind IN ('r', 'p') AND NOT f.relrowsecurity \
    AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_trigger g JOIN pg_catalog.pg_constraint p ON p.oid = g.tgconstraint \
    WHERE (p.oid = k.oid OR p.conparentid = k.oid) AND g.tgenabled NOT IN ('O', 'A')) \
    AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_subscription_rel) \
    AND version() !~* 'greenplum|cloudberry|redshift' \
    AND NOT EXISTS (SELECT 1 FROM unnest(k.conkey, k.confkey) AS x (own, other) \
    JOIN pg_catalog.pg_attribute o ON o.attrelid = t.oid AND o.attnum = x.own \
    JOIN pg_catalog.pg_attribute r ON r.attrelid = f.oid AND r.attnum = x.other \
    WHERE NOT o.attnotnull \
    OR EXISTS (SELECT 1 FROM pg_catalog.pg_constraint n WHERE n.conrelid = t.oid AND n.contype = 'n' \
    AND NOT n.convalidated AND x.own = ANY (n.conkey)) \
    OR o.atttypid <> r.atttypid \
    AND NOT (o.atttypid = ANY (ARRAY[20, 21, 23]::oid[]) AND r.atttypid = ANY (ARRAY[20, 21, 23]::oid[])) \
    OR EXISTS (SELECT 1 FROM pg_catalog.pg_collation l WHERE l.oid IN (o.attcollation, r.attcollation) \
    AND NOT l.collisdeterministic)) \
    ORDER BY k.oid, c.place";
