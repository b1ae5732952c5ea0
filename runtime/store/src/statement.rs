//! A statement with its values for both engines: strings and integers, bound as `$1`, `$2`, …
//!
//! All SQL is part of this program, and all input is bound. Strings contain no NUL, because SQLite could store it but
//! PostgreSQL could not.

use std::borrow::Cow;

/// The number of rows of one INSERT of many rows. SQLite searches the name of each bound value among all names, so the
/// time of a statement is quadratic in the number of its values.
pub(crate) const INSERTED_ROWS: usize = 20;

/// A value of a parameter or of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Bound {
    Text(Option<String>),
    Integer(Option<i64>),
}

impl From<&str> for Bound {
    fn from(text: &str) -> Self {
        Bound::Text(Some(storable(text).into_owned()))
    }
}

impl From<Option<&str>> for Bound {
    fn from(text: Option<&str>) -> Self {
        Bound::Text(text.map(|text| storable(text).into_owned()))
    }
}

impl From<i64> for Bound {
    fn from(integer: i64) -> Self {
        Bound::Integer(Some(integer))
    }
}

impl From<Option<i64>> for Bound {
    fn from(integer: Option<i64>) -> Self {
        Bound::Integer(integer)
    }
}

/// Replaces NUL in a string, so that both engines can store it.
pub(crate) fn storable(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "\u{fffd}").into() } else { text.into() }
}

/// An SQL statement with its bound values, for SQLite and PostgreSQL.
#[derive(Debug, Clone)]
pub(crate) struct Statement {
    pub(crate) sql: String,
    pub(crate) values: Vec<Bound>,
}

impl Statement {
    pub(crate) fn new(sql: &'static str) -> Self {
        Statement { sql: sql.to_owned(), values: Vec::new() }
    }

    /// Appends SQL.
    pub(crate) fn then(mut self, sql: &'static str) -> Self {
        self.sql.push_str(sql);
        self
    }

    /// Appends SQL, then a placeholder with this value.
    pub(crate) fn and(mut self, sql: &'static str, value: impl Into<Bound>) -> Self {
        self.values.push(value.into());
        self.sql.push_str(sql);
        self.sql.push_str(&format!("${}", self.values.len()));
        self
    }

    /// Binds the value of the next placeholder.
    pub(crate) fn bind(mut self, value: impl Into<Bound>) -> Self {
        self.values.push(value.into());
        self
    }

    /// Creates one INSERT of several rows. `rows` must not be empty.
    pub(crate) fn insert(table: &'static str, columns: &[&'static str], rows: Vec<Vec<Bound>>) -> Self {
        let mut statement = Statement::new("INSERT INTO ").then(table).then(" (");
        statement.sql.push_str(&columns.join(", "));
        statement.sql.push_str(") VALUES ");
        for (index, row) in rows.into_iter().enumerate() {
            statement = statement.then(if index == 0 { "(" } else { ", (" });
            for (place, value) in row.into_iter().enumerate() {
                statement = statement.and(if place == 0 { "" } else { ", " }, value);
            }
            statement = statement.then(")");
        }
        statement
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_counted_and_strings_are_bound() {
        let rows = vec![vec!["a\0".into(), Bound::Integer(None)], vec!["b".into(), 2.into()]];
        let statement = Statement::insert("t", &["x", "y"], rows);
        assert_eq!(statement.sql, "INSERT INTO t (x, y) VALUES ($1, $2), ($3, $4)");
        assert_eq!(statement.values[0], Bound::Text(Some("a\u{fffd}".to_owned())));
        let statement = Statement::new("SELECT 1 WHERE a = $1").bind("'").and(" AND b < ", 1);
        assert_eq!(statement.sql, "SELECT 1 WHERE a = $1 AND b < $2");
    }
}
