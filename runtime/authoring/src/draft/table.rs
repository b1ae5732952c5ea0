//! The tables of a warehouse, with the facts that cubes are drafted from.

use super::column_kind::ColumnKind;

#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) schema: String,
    pub(super) name: String,
    pub(super) comment: Option<String>,
    pub(super) columns: Vec<Column>,
    /// The indexes of the columns that identify a row. Empty if there are none.
    pub(super) key: Vec<usize>,
    pub(super) key_evidence: Evidence,
    /// The sets of columns, except the key, that are unique and not null.
    pub(super) unique: Vec<Vec<usize>>,
    pub(super) references: Vec<Reference>,
}

#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) name: String,
    /// The type in the warehouse's notation.
    pub(super) type_name: String,
    pub(super) kind: ColumnKind,
    pub(super) is_nullable: bool,
    pub(super) comment: Option<String>,
    /// A note for the author about the column's values.
    pub(super) note: Option<String>,
    /// Statistics of a numeric column.
    pub(super) statistics: Option<Statistics>,
}

/// Statistics of a numeric column, from a sample of rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Statistics {
    pub(super) values: u64,
    pub(super) distinct: u64,
    pub(super) min: f64,
    pub(super) max: f64,
    /// The maximum of `value % 100`, for a column of integers.
    pub(super) max_last_digits: Option<f64>,
}

/// Columns that contain another table's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) columns: Vec<usize>,
    /// The index of the target table.
    pub(super) target: usize,
    pub(super) target_columns: Vec<usize>,
    pub(super) evidence: Evidence,
}

/// The evidence for a key or a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// The database enforces the key or the reference.
    Declared,
    /// `found` of `of` sampled values occur in the target. For a key, both are the number of rows: all rows were read,
    /// and their values are distinct.
    Sampled { found: u64, of: u64 },
}

impl Table {
    pub(super) fn column_index(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}
