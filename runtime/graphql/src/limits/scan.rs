//! A linear scan of a document's text, before the parser.
//!
//! In: the text. Out: nothing, or a limit that the text exceeds. The parser recurses for each open bracket, so the scan
//! limits the number of brackets that are open at once. Brackets inside strings, block strings and comments do not
//! count. Not here: syntax errors, which the parser reports.

use async_graphql::Pos;

use super::Exceeded;
use crate::settings::Limits;

/// Checks the length, the tokens and the nesting of a document.
pub(crate) fn check(text: &str, limits: &Limits) -> Result<(), Exceeded> {
    if text.len() > limits.document_bytes {
        return Err(Exceeded::new("document_bytes", limits.document_bytes, None));
    }
    let bytes = text.as_bytes();
    let (mut at, mut tokens, mut nesting) = (0, 0_usize, 0_usize);
    while let Some(byte) = bytes.get(at) {
        let start = at;
        let is_token = match byte {
            b' ' | b'\t' | b'\r' | b'\n' | b',' => {
                at += 1;
                false
            }
            b'#' => {
                at = end_of_comment(bytes, at);
                false
            }
            b'"' => {
                at = end_of_string(bytes, at);
                true
            }
            // Outside strings, no token contains a backslash, so the parser stops here.
            b'\\' => return Ok(()),
            b'(' | b'[' | b'{' => {
                nesting += 1;
                if nesting > limits.nesting {
                    return Err(Exceeded::new("nesting", limits.nesting, Some(place(text, start))));
                }
                at += 1;
                true
            }
            b')' | b']' | b'}' => {
                nesting = nesting.saturating_sub(1);
                at += 1;
                true
            }
            b'.' if bytes[at..].starts_with(b"...") => {
                at += 3;
                true
            }
            byte if is_word(*byte) => {
                at += bytes[at..].iter().take_while(|byte| is_word(**byte)).count();
                true
            }
            _ => {
                at += 1;
                true
            }
        };
        tokens += usize::from(is_token);
        if tokens > limits.tokens {
            return Err(Exceeded::new("tokens", limits.tokens, Some(place(text, start))));
        }
    }
    Ok(())
}

/// Returns whether a byte can be a part of a name or of a number.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+')
}

fn end_of_comment(bytes: &[u8], start: usize) -> usize {
    let length = bytes[start..].iter().position(|byte| matches!(byte, b'\n' | b'\r'));
    length.map_or(bytes.len(), |length| start + length)
}

/// Returns the position after a string or a block string, exactly as the parser reads it. A string ends at the end of
/// its line at the latest. A block string without an end is an empty string, followed by other text.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    if bytes[start..].starts_with(b"\"\"\"") {
        let mut at = start + 3;
        while at < bytes.len() {
            if bytes[at..].starts_with(b"\\\"\"\"") {
                at += 4;
            } else if bytes[at..].starts_with(b"\"\"\"") {
                return at + 3;
            } else {
                at += 1;
            }
        }
        return start + 2;
    }
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            b'\n' | b'\r' => return at,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Returns the line and the column of a byte, which both count from 1. A column counts characters.
fn place(text: &str, at: usize) -> Pos {
    let before = &text[..text.floor_char_boundary(at)];
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    Pos { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exceeded(text: &str) -> Option<&'static str> {
        check(text, &Limits::default()).err().map(|exceeded| exceeded.limit)
    }

    #[test]
    fn nesting_is_bounded_at_every_depth() {
        for depth in [65, 1_000, 1_800, 4_000, 7_000, 9_000, 100_000] {
            for bracket in ["{a", "[", "(a:"] {
                let text = format!("{{a(b:{}", bracket.repeat(depth));
                let expected = if text.len() > Limits::default().document_bytes { "document_bytes" } else { "nesting" };
                assert_eq!(exceeded(&text), Some(expected), "{bracket} {depth}");
            }
        }
        let text = format!("{}a{}", "{a".repeat(64), "}".repeat(64));
        assert_eq!(exceeded(&text), None);
        assert_eq!(exceeded(&format!("{{a{text}")), Some("nesting"));
    }

    #[test]
    fn brackets_in_strings_and_comments_do_not_count() {
        let many = "[".repeat(200);
        for text in [
            format!("{{a(b: \"{many}\")}}"),
            format!("{{a(b: \"\\\"{many}\")}}"),
            format!("{{a(b: \"\\\\\", c: \"{many}\")}}"),
            format!("{{a(b: \"\"\"{many} \\\"\"\" {many}\n\"{many}\"\"\")}}"),
            format!("# {many}\n{{a}}"),
        ] {
            assert_eq!(exceeded(&text), None, "{text}");
        }
        // The text after the end of a string is not a part of the string, so its brackets count.
        for text in [
            format!("{{a(b: \"\\\\\"{many}"),
            format!("{{a(b: \"\"{many}"),
            format!("{{a(b: \"\"\"\"\"\"{many}"),
            format!("{{a(b: \"open\n{many}"),
            format!("# comment\r{many}"),
            format!("{{a(b: \"\"\" \" {many}"),
        ] {
            assert_eq!(exceeded(&text), Some("nesting"), "{text}");
        }
    }

    #[test]
    fn tokens_are_counted() {
        assert_eq!(exceeded(&format!("{{{}}}", "a ".repeat(4_998))), None);
        assert_eq!(exceeded(&format!("{{{}}}", "a ".repeat(4_999))), Some("tokens"));
        assert_eq!(exceeded(&format!("{{{}}}", "@a".repeat(2_600))), Some("tokens"));
        assert_eq!(exceeded(&", \n".repeat(20_000)), None);
        assert_eq!(exceeded(&"\u{fffd}".repeat(2_000)), Some("tokens"));
    }

    #[test]
    fn place_is_a_line_and_a_column() {
        let text = format!("{{\n  é{}", "{a".repeat(64));
        let exceeded = check(&text, &Limits::default()).unwrap_err();
        assert_eq!(exceeded.place, Some(Pos { line: 2, column: 130 }));
    }
}
