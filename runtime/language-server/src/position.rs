//! Converts places: byte offsets and the compiler's spans to the protocol's positions, and back.
//!
//! The protocol counts lines from 0 and columns in UTF-16 code units. Spans count lines and columns from 1, in
//! characters. Both end lines at LF, CR LF and CR. A byte order mark is a character for the protocol and none for
//! spans. Positions beyond the end of a line or a file mean its end.

use lsp_types::{Position, Range};
use terrane_compiler::diagnostic::Span;

/// The mark at the beginning of some UTF-8 files.
pub(crate) const BYTE_ORDER_MARK: char = '\u{feff}';

/// Returns the lines of a string without their line breaks. A string that ends in a line break has an empty last line.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = text.find(['\n', '\r']).unwrap_or(text.len());
        rest = after_break(&text[end..]);
        Some(&text[..end])
    })
}

/// Returns the text after a line break at its beginning; `None` if it begins with no line break.
fn after_break(text: &str) -> Option<&str> {
    text.strip_prefix("\r\n").or_else(|| text.strip_prefix(['\n', '\r']))
}

/// Returns the byte offset where the line of an offset begins.
pub(crate) fn line_start(text: &str, offset: usize) -> usize {
    text[..offset].rfind(['\n', '\r']).map_or(0, |line_break| line_break + 1)
}

/// Returns the byte offset of a position.
pub(crate) fn offset(text: &str, position: Position) -> usize {
    let mut rest = text;
    for _ in 0..position.line {
        let line_break = rest.find(['\n', '\r']).unwrap_or(rest.len());
        match after_break(&rest[line_break..]) {
            Some(after) => rest = after,
            None => return text.len(),
        }
    }
    let start = text.len() - rest.len();
    let line = lines(rest).next().unwrap_or_default();
    let mut units = 0;
    for (at, c) in line.char_indices() {
        if units >= position.character {
            return start + at;
        }
        units += c.len_utf16() as u32;
    }
    start + line.len()
}

/// Returns the position of a byte offset.
pub(crate) fn position(text: &str, offset: usize) -> Position {
    let mut end = offset.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let last = lines(&text[..end]).enumerate().last();
    let (line, before) = last.map_or((0, ""), |(line, before)| (line as u32, before));
    Position { line, character: before.chars().map(|c| c.len_utf16() as u32).sum() }
}

/// Returns the range of a span in the text of its file.
pub(crate) fn range(text: &str, span: &Span) -> Range {
    range_in(lines(text).nth(span.line.saturating_sub(1) as usize).unwrap_or_default(), span)
}

/// Returns the range of a span in its line.
pub(crate) fn range_in(line: &str, span: &Span) -> Range {
    let number = span.line.saturating_sub(1);
    let mark = u32::from(number == 0 && line.starts_with(BYTE_ORDER_MARK));
    let units = |count: u32| line.chars().take(count as usize).map(|c| c.len_utf16() as u32).sum();
    let column = span.column.saturating_sub(1).saturating_add(mark);
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
    fn every_line_break_of_the_protocol_counts() {
        let text = "a\rb\r\nc\nd\r";
        assert_eq!(lines(text).collect::<Vec<_>>(), ["a", "b", "c", "d", ""]);
        for (line, name) in ["a", "b", "c", "d"].into_iter().enumerate() {
            let place = Position { line: line as u32, character: 0 };
            assert_eq!(offset(text, place), text.find(name).unwrap(), "{name}");
            assert_eq!(position(text, text.find(name).unwrap()), place, "{name}");
            assert_eq!(line_start(text, text.find(name).unwrap() + 1), text.find(name).unwrap(), "{name}");
        }
    }

    #[test]
    fn byte_order_mark_is_not_counted_as_a_column() {
        let text = "\u{feff}ab\nab";
        for (line, character) in [(1, 2), (2, 1)] {
            let span = Span { file: "f".into(), line, column: 2, length: 1 };
            assert_eq!(range(text, &span).start, Position { line: line - 1, character });
        }
    }

    #[test]
    fn positions_beyond_the_end_are_clamped() {
        let text = "ab\r\ncd";
        assert_eq!(offset(text, Position { line: 0, character: 99 }), 2);
        assert_eq!(offset(text, Position { line: 99, character: 0 }), text.len());
        assert_eq!(position(text, 99), Position { line: 1, character: 2 });
        assert_eq!(offset("", Position { line: u32::MAX, character: u32::MAX }), 0);
    }
}
