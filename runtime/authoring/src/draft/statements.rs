//! SQL statements that inspect tables: catalogs, counts, samples.
//!
//! In: names from the catalog, which are quoted here and nowhere else. Out: statements for DuckDB and PostgreSQL,
//! with one set of catalog statements for each. Values from rows never become SQL.

use terrane_app::text_forms::TextForm;

use super::column_kind::ColumnKind;
use super::table::{Column, Table};
use crate::names::quoted;

/// The number of rows in a sample. The first rows are taken, since a random sample would read the whole table on
/// both engines.
pub(super) const SAMPLE_ROWS: u32 = 100_000;
/// The number of rows whose values decide which forms are counted in the sample.
const FIRST_ROWS: u32 = 10_000;
/// The number of values among them, the most frequent first.
const FREQUENT_VALUES: u32 = 500;
/// The number of distinct sampled values that are looked up in another table.
const SAMPLE_VALUES: u32 = 10_000;

/// The catalog of one engine, as statements with the same columns:
/// tables: schema, name, is view, comment;
/// columns: schema, table, name, type, is nullable, comment;
/// keys: schema, table, constraint, `p`/`u`/`f`, column, target schema, target table, target column.
#[derive(Debug)]
pub(super) struct CatalogQueries {
    pub(super) tables: &'static str,
    pub(super) columns: &'static str,
    pub(super) keys: &'static str,
}

pub(super) const DUCKDB: CatalogQueries = CatalogQueries {
    tables: "SELECT schema_name, table_name, false, comment FROM duckdb_tables() \
             WHERE database_name = current_database() AND NOT internal AND NOT temporary \
             UNION ALL SELECT schema_name, view_name, true, comment FROM duckdb_views() \
             WHERE database_name = current_database() AND NOT internal AND NOT temporary ORDER BY 1, 2",
    columns: "SELECT schema_name, table_name, column_name, data_type, is_nullable, comment FROM duckdb_columns() \
              WHERE database_name = current_database() AND NOT internal ORDER BY schema_name, table_name, column_index",
    keys: "SELECT schema_name, table_name, CAST(constraint_index AS VARCHAR), kind, column_name, schema_name, \
           referenced_table, target_column FROM (SELECT schema_name, table_name, constraint_index, \
           CASE constraint_type WHEN 'PRIMARY KEY' THEN 'p' WHEN 'UNIQUE' THEN 'u' ELSE 'f' END AS kind, \
           unnest(constraint_column_names) AS column_name, referenced_table, \
           unnest(referenced_column_names) AS target_column, \
           generate_subscripts(constraint_column_names, 1) AS position FROM duckdb_constraints() \
           WHERE database_name = current_database() \
           AND constraint_type IN ('PRIMARY KEY', 'UNIQUE', 'FOREIGN KEY')) AS k \
           WHERE column_name IS NOT NULL ORDER BY schema_name, table_name, constraint_index, position",
};

pub(super) const POSTGRES: CatalogQueries = CatalogQueries {
    tables: "SELECT n.nspname::text, c.relname::text, c.relkind IN ('v', 'm'), obj_description(c.oid, 'pg_class') \
             FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
             WHERE c.relkind IN ('r', 'p', 'f', 'v', 'm') AND NOT c.relispartition AND c.relpersistence <> 't' \
             AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_%' \
             AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT') ORDER BY 1, 2",
    // Enum types are recognized by their `typtype`, because each enum type has a name of its own.
    columns: "SELECT n.nspname::text, c.relname::text, a.attname::text, \
              CASE WHEN t.typtype = 'e' THEN 'enum' ELSE format_type(a.atttypid, a.atttypmod) END, \
              NOT a.attnotnull, col_description(c.oid, a.attnum) \
              FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
              JOIN pg_type t ON t.oid = a.atttypid \
              WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p', 'f', 'v', 'm') \
              AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_%' \
              ORDER BY n.nspname, c.relname, a.attnum",
    // A constraint that was never checked (`NOT VALID`) proves nothing.
    keys: "SELECT n.nspname::text, c.relname::text, k.oid::text, k.contype::text, a.attname::text, fn.nspname::text, \
           fc.relname::text, fa.attname::text \
           FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
           CROSS JOIN LATERAL unnest(k.conkey, k.confkey) WITH ORDINALITY AS u(col, target, position) \
           JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.col \
           LEFT JOIN pg_class fc ON fc.oid = k.confrelid LEFT JOIN pg_namespace fn ON fn.oid = fc.relnamespace \
           LEFT JOIN pg_attribute fa ON fa.attrelid = k.confrelid AND fa.attnum = u.target \
           WHERE k.contype IN ('p', 'u', 'f') AND k.convalidated AND NOT c.relispartition \
           AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_%' \
           ORDER BY n.nspname, c.relname, k.conname, u.position",
};

/// Returns a statement for expressions over a sample of rows with the given columns.
fn sampled(of: &Table, columns: &[&Column], expressions: impl Iterator<Item = String>) -> String {
    let wanted: Vec<String> = columns.iter().map(|column| quoted(&column.name)).collect();
    format!(
        "SELECT {} FROM (SELECT {} FROM {} LIMIT {SAMPLE_ROWS}) AS s",
        expressions.collect::<Vec<_>>().join(", "),
        wanted.join(", "),
        table(of)
    )
}

/// Returns the quoted name of a table, such as `"shop"."orders"`.
pub(super) fn table(table: &Table) -> String {
    format!("{}.{}", quoted(&table.schema), quoted(&table.name))
}

/// Returns a statement for these statistics of each column, in this order: the number of values, the number of distinct
/// values, the minimum, the maximum, and the largest last two digits.
pub(super) fn statistics(of: &Table, columns: &[&Column]) -> String {
    let each = columns.iter().map(|column| {
        let name = quoted(&column.name);
        let digits = match column.kind {
            ColumnKind::Integer => format!("CAST(max({name} % 100) AS VARCHAR)"),
            _ => "NULL".to_owned(),
        };
        format!(
            "count({name}), count(DISTINCT {name}), CAST(min({name}) AS VARCHAR), CAST(max({name}) AS VARCHAR), {digits}"
        )
    });
    sampled(of, columns, each)
}

/// Returns the condition for a value of a form.
fn is_of(form: &TextForm, name: &str) -> String {
    format!("trim({name}) SIMILAR TO '{}'", form.pattern.replace('\'', "''"))
}

/// Returns a statement for these numbers of each column, in one row for each: the position of the column, values,
/// distinct values, distinct values ignoring case and surrounding spaces, and values with surrounding spaces. The third
/// number counts at most `most_folded` distinct values. Values are grouped first, because engines count the distinct ones
/// of a group by sorting.
pub(super) fn texts(of: &Table, columns: &[&Column], most_folded: u64) -> String {
    let from = table(of);
    let each = columns.iter().enumerate().map(|(at, column)| {
        let name = quoted(&column.name);
        format!(
            "SELECT {at}, sum(n), count(*), count(DISTINCT CASE WHEN number <= {most_folded} THEN lower(trim(v)) END), \
             sum(CASE WHEN trim(v) <> v THEN n ELSE 0 END) \
             FROM (SELECT v, n, row_number() OVER () AS number \
             FROM (SELECT v, count(*) AS n FROM (SELECT {name} AS v FROM {from} LIMIT {SAMPLE_ROWS}) AS s \
             WHERE v IS NOT NULL GROUP BY v) AS g) AS d"
        )
    });
    each.collect::<Vec<_>>().join(" UNION ALL ")
}

/// Returns a statement for the most frequent values in the first rows of each column. It returns a row for each column:
/// its position, the number of these values, and for each form the number of these values that have the form.
pub(super) fn frequent_forms(of: &Table, columns: &[&Column], forms: &[&TextForm]) -> String {
    let from = table(of);
    let counts: String =
        forms.iter().map(|form| format!(", count(CASE WHEN {} THEN 1 END)", is_of(form, "v"))).collect();
    let each = columns.iter().enumerate().map(|(at, column)| {
        let name = quoted(&column.name);
        format!(
            "SELECT {at}, count(*){counts} FROM (SELECT v FROM (SELECT {name} AS v FROM {from} LIMIT {FIRST_ROWS}) AS s \
             WHERE v IS NOT NULL GROUP BY v ORDER BY count(*) DESC, v LIMIT {FREQUENT_VALUES}) AS d"
        )
    });
    each.collect::<Vec<_>>().join(" UNION ALL ")
}

/// Returns a statement that counts, for each column and each form, the values that have the form.
pub(super) fn forms(of: &Table, columns: &[&Column], forms: &[&TextForm]) -> String {
    let each = columns.iter().flat_map(|column| {
        let name = quoted(&column.name);
        forms.iter().map(move |form| format!("count(CASE WHEN {} THEN 1 END)", is_of(form, &name)))
    });
    sampled(of, columns, each)
}

/// Returns a statement for the values of a column that do not have a form, without surrounding spaces. It returns at
/// most `limit` values.
pub(super) fn exceptions(of: &Table, column: usize, form: &TextForm, limit: usize) -> String {
    let name = quoted(&of.columns[column].name);
    format!(
        "SELECT DISTINCT trim({name}) FROM (SELECT {name} FROM {} LIMIT {SAMPLE_ROWS}) AS s \
         WHERE {name} IS NOT NULL AND NOT ({}) ORDER BY 1 LIMIT {limit}",
        table(of),
        is_of(form, &name)
    )
}

/// Returns a statement for two spellings of one value. Of the values with several spellings, it selects the value with
/// the most rows.
pub(super) fn spellings(of: &Table, column: usize) -> String {
    let name = quoted(&of.columns[column].name);
    format!(
        "SELECT min({name}), max({name}) FROM (SELECT {name} FROM {} LIMIT {SAMPLE_ROWS}) AS s \
         WHERE {name} IS NOT NULL GROUP BY lower(trim({name})) HAVING count(DISTINCT {name}) > 1 \
         ORDER BY count(*) DESC, 1 LIMIT 1",
        table(of)
    )
}

/// Returns a statement for the value that most rows of a column share, and the number of these rows. The statement
/// returns no row if all values differ.
pub(super) fn repeated(of: &Table, column: usize) -> String {
    let name = quoted(&of.columns[column].name);
    format!(
        "SELECT CAST({name} AS VARCHAR), count(*) FROM {} WHERE {name} IS NOT NULL GROUP BY {name} \
         HAVING count(*) > 1 ORDER BY count(*) DESC, 1 LIMIT 1",
        table(of)
    )
}

/// Returns a statement for the number of rows, and the numbers of values and distinct values of each column, in a
/// sample or in all rows.
pub(super) fn uniqueness(of: &Table, columns: &[usize], is_sampled: bool) -> String {
    let from = match is_sampled {
        true => {
            let names: Vec<String> = columns.iter().map(|column| quoted(&of.columns[*column].name)).collect();
            format!("(SELECT {} FROM {} LIMIT {SAMPLE_ROWS}) AS s", names.join(", "), table(of))
        }
        false => table(of),
    };
    let counts = columns.iter().map(|column| {
        let name = quoted(&of.columns[*column].name);
        format!("count({name}), count(DISTINCT {name})")
    });
    let counts: Vec<String> = std::iter::once("count(*)".to_owned()).chain(counts).collect();
    format!("SELECT {} FROM {from}", counts.join(", "))
}

/// Returns a statement for two numbers: the distinct sampled values of a column, and those of these values that another
/// table's key contains.
pub(super) fn containment(of: &Table, column: usize, target: &Table, key: usize) -> String {
    let (column, key) = (quoted(&of.columns[column].name), quoted(&target.columns[key].name));
    format!(
        "SELECT count(*), count(t.{key}) FROM (SELECT DISTINCT s.v FROM (SELECT {column} AS v FROM {} \
         LIMIT {SAMPLE_ROWS}) AS s WHERE s.v IS NOT NULL LIMIT {SAMPLE_VALUES}) AS d \
         LEFT JOIN {} AS t ON t.{key} = d.v",
        table(of),
        table(target)
    )
}

#[cfg(test)]
mod tests {
    use super::super::table::Evidence;
    use super::*;

    fn column(name: &str, kind: ColumnKind) -> Column {
        Column {
            name: name.to_owned(),
            type_name: String::new(),
            kind,
            is_nullable: true,
            comment: None,
            note: None,
            statistics: None,
        }
    }

    fn orders() -> Table {
        Table {
            schema: "main".to_owned(),
            name: "or\"ders".to_owned(),
            comment: None,
            columns: vec![column("id", ColumnKind::Integer), column("a\" FROM secrets --", ColumnKind::Decimal)],
            key: Vec::new(),
            key_evidence: Evidence::Declared,
            unique: Vec::new(),
            references: Vec::new(),
        }
    }

    #[test]
    fn names_are_quoted_whatever_they_contain() {
        let orders = orders();
        assert_eq!(table(&orders), "\"main\".\"or\"\"ders\"");
        assert_eq!(
            uniqueness(&orders, &[1], false),
            "SELECT count(*), count(\"a\"\" FROM secrets --\"), count(DISTINCT \"a\"\" FROM secrets --\") \
             FROM \"main\".\"or\"\"ders\""
        );
    }

    #[test]
    fn samples_of_columns_are_read_one_by_one() {
        let orders = orders();
        let columns: Vec<&Column> = orders.columns.iter().collect();
        let forms: Vec<&TextForm> = terrane_app::text_forms::all().take(2).collect();
        for statement in [texts(&orders, &columns, 7), frequent_forms(&orders, &columns, &forms)] {
            assert_eq!(statement.matches(" UNION ALL ").count(), 1, "{statement}");
            assert!(statement.starts_with("SELECT 0, ") && statement.contains(" UNION ALL SELECT 1, "), "{statement}");
            assert!(statement.contains("(SELECT \"a\"\" FROM secrets --\" AS v FROM"), "{statement}");
        }
        assert!(
            uniqueness(&orders, &[0], true)
                .ends_with("FROM (SELECT \"id\" FROM \"main\".\"or\"\"ders\" LIMIT 100000) AS s")
        );
    }

    #[test]
    fn only_integers_have_last_digits() {
        let orders = orders();
        let columns: Vec<&Column> = orders.columns.iter().collect();
        let statement = statistics(&orders, &columns);
        assert_eq!(statement.matches("% 100").count(), 1, "{statement}");
        assert!(statement.contains("CAST(max(\"id\" % 100) AS VARCHAR)"), "{statement}");
        assert!(statement.contains(&format!("LIMIT {SAMPLE_ROWS}")), "{statement}");
    }

    #[test]
    fn containment_reads_a_sample_of_distinct_values() {
        let orders = orders();
        let statement = containment(&orders, 1, &orders, 0);
        assert!(statement.starts_with("SELECT count(*), count(t.\"id\")"), "{statement}");
        assert!(statement.ends_with("ON t.\"id\" = d.v"), "{statement}");
        assert!(statement.contains(&format!("LIMIT {SAMPLE_VALUES}")), "{statement}");
    }
}
