//! Decides whether two spellings of a name are the same column.
//!
//! In: names in SQL, and names that a warehouse or an author gives. Out: keys that are equal if the engine treats both
//! as one column, and the spelling to show. Not here: names of tables, which are compared in lower case.

use std::sync::Arc;

use terrane_compiler::snippet::ColumnName;

/// The folding of names' case by an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spelling {
    /// Case is ignored, also in quoted names: DuckDB, SQLite, columns of MySQL and BigQuery, Spark, Trino, Redshift.
    Ignored,
    /// ClickHouse: every letter as written.
    Exact,
    /// PostgreSQL: lower case unless quoted.
    FoldedToLower,
    /// Snowflake: upper case unless quoted. Keys of names that fold to upper case are in lower case.
    FoldedToUpper,
}

impl Spelling {
    pub(super) fn of(warehouse: &str) -> Spelling {
        match warehouse {
            "postgres" | "postgresql" => Spelling::FoldedToLower,
            "snowflake" => Spelling::FoldedToUpper,
            "clickhouse" => Spelling::Exact,
            _ => Spelling::Ignored,
        }
    }

    /// Returns the key of a name in SQL.
    pub(super) fn key(self, name: &ColumnName) -> Arc<str> {
        let text = &name.text;
        match self {
            Spelling::Exact => Arc::clone(text),
            Spelling::Ignored => text.to_lowercase().into(),
            _ if !name.quoted => text.to_lowercase().into(),
            Spelling::FoldedToLower => Arc::clone(text),
            Spelling::FoldedToUpper if !text.contains(char::is_lowercase) => text.to_lowercase().into(),
            // No unquoted name means it: kept apart from `AMOUNT`.
            Spelling::FoldedToUpper if !text.contains(char::is_uppercase) => format!("\"{text}\"").into(),
            Spelling::FoldedToUpper => Arc::clone(text),
        }
    }

    /// Returns the key of a name that an author declared or a warehouse reported. Authors write Snowflake's columns
    /// in lower case, so those count as unquoted.
    pub(super) fn key_of_known(self, name: &str) -> Arc<str> {
        match self {
            Spelling::Ignored => name.to_lowercase().into(),
            Spelling::FoldedToUpper if !name.contains(char::is_lowercase) => name.to_lowercase().into(),
            _ => name.into(),
        }
    }

    /// Returns the name of an output column as the engine reports it: unchanged, or with folded case.
    pub(super) fn shown(self, name: &ColumnName) -> Arc<str> {
        match self {
            Spelling::Ignored | Spelling::Exact => Arc::clone(&name.text),
            Spelling::FoldedToLower | Spelling::FoldedToUpper => self.key(name),
        }
    }
}
