//! The tables of a world in Spark.
//!
//! In: a [`World`], and its files. Out: statements that create its tables in the current schema, temporary views over
//! them with the generated names, and files whose SQL has the quotes of Spark. Tables of Spark's own catalog can only
//! have plain names, so the views have the generated names. Not here: foreign keys, which this catalog does not
//! support.

use serde_json::Value as Json;

use super::tables::{clock, literal};
use super::{Cell, ColumnType, Cube, World};

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Returns the statements that replace the tables and the views of the session.
pub fn statements(world: &World) -> Vec<String> {
    world.cubes.iter().enumerate().flat_map(|(at, cube)| of_cube(&format!("generated_{at}"), cube)).collect()
}

fn of_cube(table: &str, cube: &Cube) -> Vec<String> {
    let columns = cube.columns.iter().enumerate().map(|(at, column)| format!("c{at} {}", type_name(column.ty)));
    let renamed = cube.columns.iter().enumerate().map(|(at, column)| format!("c{at} AS {}", quoted(&column.name)));
    let (columns, renamed) = (columns.collect::<Vec<_>>().join(", "), renamed.collect::<Vec<_>>().join(", "));
    let mut all = vec![
        format!("DROP TABLE IF EXISTS {table}"),
        format!("CREATE TABLE {table} ({columns}) USING parquet"),
        format!("CREATE OR REPLACE TEMPORARY VIEW {} AS SELECT {renamed} FROM {table}", quoted(&cube.table)),
    ];
    if !cube.rows.is_empty() {
        let cells = |row: &Vec<Cell>| {
            let cells = row.iter().zip(&cube.columns).map(|(cell, column)| typed_literal(cell, column.ty));
            format!("({})", cells.collect::<Vec<_>>().join(", "))
        };
        let rows: Vec<String> = cube.rows.iter().map(cells).collect();
        all.push(format!("INSERT INTO {table} VALUES {}", rows.join(", ")));
    }
    all
}

fn type_name(ty: ColumnType) -> &'static str {
    match ty {
        ColumnType::Text => "STRING",
        ColumnType::Small => "INT",
        ColumnType::Big => "BIGINT",
        ColumnType::Decimal => "DECIMAL(18, 2)",
        ColumnType::Double => "DOUBLE",
        ColumnType::Boolean => "BOOLEAN",
        ColumnType::Date => "DATE",
        ColumnType::Timestamp => "TIMESTAMP_NTZ",
        ColumnType::TimestampTz => "TIMESTAMP",
    }
}

fn text_literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

fn typed_literal(cell: &Cell, ty: ColumnType) -> String {
    match (cell, ty) {
        (Cell::Text(text), _) => text_literal(text),
        (Cell::Micros(micros), ColumnType::TimestampTz) => format!("TIMESTAMP '{}+00:00'", clock(*micros)),
        (Cell::Micros(micros), _) => format!("TIMESTAMP_NTZ '{}'", clock(*micros)),
        _ => literal(cell),
    }
}

/// The keys of a project whose values are SQL.
const SQL_KEYS: [&str; 3] = ["sql", "sql_table", "row_filter"];

/// Writes the SQL in a file with the quotes of Spark.
pub(super) fn requote(file: &mut Json) {
    match file {
        Json::Array(items) => items.iter_mut().for_each(requote),
        Json::Object(members) => members.iter_mut().for_each(|(key, value)| match value {
            Json::String(sql) if SQL_KEYS.contains(&key.as_str()) => *sql = requoted(sql),
            other => requote(other),
        }),
        _ => {}
    }
}

/// Returns SQL with the quotes of Spark. Members in braces are unchanged.
fn requoted(sql: &str) -> String {
    let (mut written, mut rest) = (String::new(), sql);
    while let Some(at) = rest.find(['"', '\'', '{']) {
        let (before, quote, inner) = (&rest[..at], &rest[at..=at], &rest[at + 1..]);
        written.push_str(before);
        let end = if quote == "{" { inner.find('}').unwrap_or(inner.len()) } else { end_of_quoted(inner, quote) };
        let text = inner[..end].replace(&quote.repeat(2), quote);
        match quote {
            "{" => written.push_str(&rest[at..at + end + 2]),
            // The compiler reads two quotes as one in every dialect.
            "'" => written.push_str(&format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))),
            _ => written.push_str(&quoted(&text)),
        }
        rest = &inner[end + 1..];
    }
    written + rest
}

/// Returns the position of the quote that ends a quoted part. Two quotes are one escaped quote.
fn end_of_quoted(inner: &str, quote: &str) -> usize {
    let mut at = 0;
    while let Some(found) = inner[at..].find(quote) {
        at += found;
        if !inner[at + 1..].starts_with(quote) {
            return at;
        }
        at += 2;
    }
    inner.len() - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_of_sql_become_those_of_spark() {
        let sql = r#"{CUBE}."a ""b`" = 'it''s \' AND {x"y}."c" > 1"#;
        assert_eq!(requoted(sql), r#"{CUBE}.`a "b``` = 'it''s \\' AND {x"y}.`c` > 1"#);
        assert_eq!(requoted("count(*)"), "count(*)");
    }

    #[test]
    fn special_characters_stay_in_their_literals() {
        let cell = Cell::Text("it's \\' --".to_owned());
        assert_eq!(typed_literal(&cell, ColumnType::Text), r"'it\'s \\\' --'");
    }
}
