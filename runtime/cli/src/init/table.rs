//! What is known of a table before a cube is made of it.

use super::kind::Kind;

#[derive(Debug, Clone)]
pub struct Table {
    pub schema: String,
    pub name: String,
    pub comment: Option<String>,
    pub columns: Vec<Column>,
    /// Columns that tell rows apart, by index; empty where nothing does.
    pub key: Vec<usize>,
    pub key_evidence: Evidence,
    /// Other sets of columns that are unique and never null.
    pub unique: Vec<Vec<usize>>,
    pub references: Vec<Reference>,
}

#[derive(Debug, Clone)]
pub struct Column {
    pub name: String,
    /// As the warehouse writes it.
    pub type_name: String,
    pub kind: Kind,
    pub is_nullable: bool,
    pub comment: Option<String>,
    /// Of numbers, over a sample of rows.
    pub statistics: Option<Statistics>,
}

/// What a sample of a column's numbers says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Statistics {
    pub values: u64,
    pub distinct: u64,
    pub min: f64,
    pub max: f64,
    /// The largest of the last two digits; of integers.
    pub max_last_digits: Option<f64>,
}

/// Columns that hold another table's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    pub columns: Vec<usize>,
    /// Index of the table.
    pub target: usize,
    pub target_columns: Vec<usize>,
    pub evidence: Evidence,
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
    pub fn column_index(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// Whether a column alone refers to another table.
    pub fn refers(&self, column: usize) -> bool {
        self.references.iter().any(|reference| reference.columns == [column])
    }
}
