//! A place in a file, for messages.

use std::fmt;
use std::sync::Arc;

/// A place in a project file. Lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// Path inside the project, with forward slashes.
    pub file: Arc<str>,
    pub line: u32,
    pub column: u32,
    /// The number of characters that the caret covers; at least 1.
    pub length: u32,
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}
