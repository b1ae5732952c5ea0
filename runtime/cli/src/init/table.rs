//! What is known of a table before a cube is made of it.

use super::kind::Kind;

#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) schema: String,
    pub(super) name: String,
    pub(super) comment: Option<String>,
    pub(super) columns: Vec<Column>,
    /// Columns that tell rows apart, by index; empty where nothing does.
    pub(super) key: Vec<usize>,
    pub(super) key_evidence: Evidence,
    /// Other sets of columns that are unique and never null.
    pub(super) unique: Vec<Vec<usize>>,
    pub(super) references: Vec<Reference>,
}

#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) name: String,
    /// As the warehouse writes it.
    pub(super) type_name: String,
    pub(super) kind: Kind,
    pub(super) is_nullable: bool,
    pub(super) comment: Option<String>,
    /// Of numbers, over a sample of rows.
    pub(super) statistics: Option<Statistics>,
}

/// What a sample of a column's numbers says.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Statistics {
    pub(super) values: u64,
    pub(super) distinct: u64,
    pub(super) min: f64,
    pub(super) max: f64,
    /// The largest of the last two digits; of integers.
    pub(super) max_last_digits: Option<f64>,
}

/// Columns that hold another table's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) columns: Vec<usize>,
    /// Index of the table.
    pub(super) target: usize,
    pub(super) target_columns: Vec<usize>,
    pub(super) evidence: Evidence,
}

/// How a key or a reference is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// The database holds rows to it.
    Declared,
    /// So many of the sampled values were found; of a key, every row was looked at.
    Found { found: u64, of: u64 },
}

impl Table {
    pub(super) fn column_index(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}
