//! Converts places: byte offsets and the compiler's spans to the protocol's positions, and back.
//!
//! The protocol counts lines from 0 and columns in UTF-16 code units. Spans count lines and columns from 1, in
//! characters. Positions beyond the end of a line or a file mean its end.

use lsp_types::{Position, Range};
use terrane_compiler::diagnostic::Span;

/// Returns a line without its line break, or an empty string if the text has fewer lines.
fn line(text: &str, number: u32) -> &str {
    let line = text.split('\n').nth(number as usize).unwrap_or_default();
    line.strip_suffix('\r').unwrap_or(line)
}

/// Returns the byte offset of a position.
pub(crate) fn offset(text: &str, position: Position) -> usize {
    let mut start = 0;
    for _ in 0..position.line {
        match text[start..].find('\n') {
            Some(newline) => start += newline + 1,
            None => return text.len(),
        }
    }
    let mut units = 0;
    for (at, c) in line(&text[start..], 0).char_indices() {
        if units >= position.character {
            return start + at;
        }
        units += c.len_utf16() as u32;
    }
    start + line(&text[start..], 0).len()
}

/// Returns the position of a byte offset.
pub(crate) fn position(text: &str, offset: usize) -> Position {
    let mut end = offset.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let before = &text[..end];
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let character = before[start..].chars().map(|c| c.len_utf16() as u32).sum();
    Position { line: before.matches('\n').count() as u32, character }
}

/// Returns the range of a span in the text of its file.
pub(crate) fn range(text: &str, span: &Span) -> Range {
    range_in(line(text, span.line.saturating_sub(1)), span)
}

/// Returns the range of a span in its line.
pub(crate) fn range_in(line: &str, span: &Span) -> Range {
    let number = span.line.saturating_sub(1);
    let units = |count: u32| line.chars().take(count as usize).map(|c| c.len_utf16() as u32).sum();
    let column = span.column.saturating_sub(1);
    let start = Position { line: number, character: units(column) };
    Range { start, end: Position { line: number, character: units(column.saturating_add(span.length)) } }
}

/// Returns whether a position is in a range or at its end.
pub(crate) fn contains(range: Range, position: Position) -> bool {
    range.start <= position && position <= range.end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_utf16_units() {
        let text = "a: 1\nä: \"😀x\"\r\nb\n";
        assert_eq!(offset(text, Position { line: 1, character: 6 }), text.find('x').unwrap());
        assert_eq!(position(text, text.find('x').unwrap()), Position { line: 1, character: 6 });
        let span = Span { file: "f".into(), line: 2, column: 6, length: 1 };
        let found = range(text, &span);
        assert_eq!((found.start, found.end), (Position { line: 1, character: 6 }, Position { line: 1, character: 7 }));
    }

    #[test]
    fn positions_beyond_the_end_mean_the_end() {
        let text = "ab\r\ncd";
        assert_eq!(offset(text, Position { line: 0, character: 99 }), 2);
        assert_eq!(offset(text, Position { line: 99, character: 0 }), text.len());
        assert_eq!(position(text, 99), Position { line: 1, character: 2 });
        assert_eq!(offset("", Position { line: u32::MAX, character: u32::MAX }), 0);
    }
}
