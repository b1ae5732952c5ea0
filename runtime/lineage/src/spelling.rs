//! Decides whether two spellings of a name refer to the same column.
//!
//! In: names in SQL, and names that a warehouse or an author gives. Out: keys, which are equal if the engine treats two
//! names as one column, and the spelling to show. Not here: names of tables, which are compared in lower case.

use std::sync::Arc;

use terrane_compiler::snippet::ColumnName;

/// The rules by which an engine compares the case of column names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spelling {
    /// Case is ignored, even in quoted names: DuckDB, SQLite, columns of MySQL and BigQuery, Spark, Trino, Redshift.
    Ignored,
    /// Case matters in all names: ClickHouse.
    Exact,
    /// Unquoted names are folded to lower case: PostgreSQL.
    FoldedToLower,
    /// Unquoted names are folded to upper case: Snowflake. The keys of unquoted names are nevertheless in lower case.
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
            // A quoted `amount` differs from an unquoted one, which means `AMOUNT` and has the key `amount`.
            Spelling::FoldedToUpper if !text.contains(char::is_uppercase) => format!("\"{text}\"").into(),
            Spelling::FoldedToUpper => Arc::clone(text),
        }
    }

    /// Returns the key of a name that an author declared or a warehouse reported. Authors write Snowflake's columns in
    /// lower case, so a name in lower case counts as unquoted.
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
