//! Writes text of a project into generated source: string literals, and titles with descriptions on one line.
//!
//! In: arbitrary text of a project. Out: text that cannot end the literal or the comment around it.
//! Characters of the Unicode categories Cc, Cf, Zl and Zp are escaped in literals, and become spaces on lines.

use std::fmt::Write as _;

/// The maximum length of a title and its description together, in characters.
const MAX_CHARS: usize = 200;

/// The characters of the Unicode category Cf, as ranges. Most are invisible, and some change the order of text.
const FORMAT: [(char, char); 21] = [
    ('\u{ad}', '\u{ad}'),
    ('\u{600}', '\u{605}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{6dd}', '\u{6dd}'),
    ('\u{70f}', '\u{70f}'),
    ('\u{890}', '\u{891}'),
    ('\u{8e2}', '\u{8e2}'),
    ('\u{180e}', '\u{180e}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{202a}', '\u{202e}'),
    ('\u{2060}', '\u{2064}'),
    ('\u{2066}', '\u{206f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{fff9}', '\u{fffb}'),
    ('\u{110bd}', '\u{110bd}'),
    ('\u{110cd}', '\u{110cd}'),
    ('\u{13430}', '\u{1343f}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0001}', '\u{e0001}'),
    ('\u{e0020}', '\u{e007f}'),
];

/// Returns whether a character is a control or format character, or a separator of lines or paragraphs.
pub(crate) fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}')
        || FORMAT.iter().any(|(first, last)| (*first..=*last).contains(&c))
}

/// Returns a title and a description on one line of at most 200 characters. The line is empty if both are empty.
pub(crate) fn line(title: &str, description: Option<&str>) -> String {
    let parts = [Some(title), description].into_iter().flatten().map(spaced).filter(|part| !part.is_empty());
    let line = parts.collect::<Vec<_>>().join(": ");
    match line.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// Returns the words of a string with one space between them.
fn spaced(text: &str) -> String {
    let is_space = |c: char| c.is_whitespace() || is_invisible(c);
    text.split(is_space).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Returns a string literal in double quotes. Calls `escape` to write each invisible character.
pub(crate) fn quote(text: &str, escape: impl Fn(&mut String, char)) -> String {
    let mut literal = String::with_capacity(text.len() + 2);
    literal.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => literal.extend(['\\', c]),
            '\n' => literal.push_str("\\n"),
            '\r' => literal.push_str("\\r"),
            '\t' => literal.push_str("\\t"),
            c if is_invisible(c) => escape(&mut literal, c),
            c => literal.push(c),
        }
    }
    literal.push('"');
    literal
}

/// Writes a character as its UTF-16 units, such as `\u202e`. A character outside the basic plane has two units.
pub(crate) fn escape_units(literal: &mut String, c: char) {
    for unit in c.encode_utf16(&mut [0; 2]) {
        let _ = write!(literal, "\\u{unit:04x}");
    }
}

/// Writes a character as its code point, such as `\u202e`, or `\U000e0041` above U+FFFF.
pub(crate) fn escape_point(literal: &mut String, c: char) {
    let point = u32::from(c);
    let _ = if point > 0xffff { write!(literal, "\\U{point:08x}") } else { write!(literal, "\\u{point:04x}") };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_has_no_break_and_no_invisible_character() {
        let line = line(" a\r\n\u{2028}b ", Some("\u{202e}c\u{200b}\u{e0041}d\u{feff}\u{85}"));
        assert_eq!(line, "a b: c d");
    }

    #[test]
    fn empty_parts_are_left_out() {
        assert_eq!(line("", None), "");
        assert_eq!(line("\u{200b} \n", Some("b")), "b");
        assert_eq!(line("a", Some(" ")), "a");
    }

    #[test]
    fn long_line_is_shortened_between_characters() {
        assert_eq!(line(&"ä".repeat(200), None), "ä".repeat(200));
        assert_eq!(line(&"ä".repeat(201), None), format!("{}…", "ä".repeat(200)));
    }

    #[test]
    fn literals_cannot_be_terminated_early() {
        let text = "a\"\\\n\t\u{7f}\u{2028}\u{e0041}";
        assert_eq!(quote(text, escape_units), r#""a\"\\\n\t\u007f\u2028\udb40\udc41""#);
        assert_eq!(quote(text, escape_point), r#""a\"\\\n\t\u007f\u2028\U000e0041""#);
    }
}
