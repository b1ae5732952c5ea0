//! Places in the text of a query.
//!
//! In: byte offsets. Out: lines and columns for messages.

use std::fmt;

/// A range of bytes in the text of a query.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Place {
    pub start: u32,
    pub end: u32,
}

/// A line and a column in the text of a query. Both count from 1; a column counts characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    pub line: u32,
    pub column: u32,
}

impl Place {
    pub fn new(start: usize, end: usize) -> Self {
        Place { start: start as u32, end: end as u32 }
    }

    /// Returns the range from the start of this place to the end of another place.
    #[must_use]
    pub fn to(self, end: Place) -> Place {
        Place { start: self.start, end: end.end.max(self.start) }
    }

    /// Returns the text at this place.
    pub fn of(self, text: &str) -> &str {
        text.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    pub fn position(self, text: &str) -> Position {
        let before = text.get(..self.start as usize).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Position {
            line: before.matches('\n').count() as u32 + 1,
            column: before[line_start..].chars().count() as u32 + 1,
        }
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters() {
        let text = "EVALUATE\n  'Größe'[x]";
        let start = text.find('[').unwrap();
        assert_eq!(Place::new(start, start + 3).position(text), Position { line: 2, column: 10 });
        assert_eq!(Place::new(0, 8).position(text), Position { line: 1, column: 1 });
    }
}
