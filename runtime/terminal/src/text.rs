//! A type for untrusted text that is written to a terminal.
//!
//! A terminal executes control characters: they can clear the screen, change the title, or send input as if the user
//! had typed it. Bidirectional overrides show text in a different order than a program reads it. [`TerminalText`]
//! replaces all these characters with U+FFFD, so that a reader sees that the text contained some.

use std::fmt;
use std::ops::Deref;

const REPLACEMENT: char = '\u{fffd}';

/// Text without characters that a terminal would execute.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TerminalText(String);

impl TerminalText {
    /// Converts a string to one line. Line breaks are replaced as well.
    pub fn line(text: &str) -> Self {
        TerminalText(text.chars().map(|c| if is_unsafe(c) { REPLACEMENT } else { c }).collect())
    }

    /// Replaces unsafe characters, except line breaks.
    pub fn lines(text: &str) -> Self {
        TerminalText(text.chars().map(|c| if is_unsafe(c) && c != '\n' { REPLACEMENT } else { c }).collect())
    }

    /// Returns a string as one line. A space replaces each line break, tab and other unsafe character.
    pub fn spaced(text: &str) -> Self {
        TerminalText(text.chars().map(|c| if is_unsafe(c) { ' ' } else { c }).collect())
    }

    /// Removes unsafe characters, and characters that are invisible or change the direction of text: zero-width
    /// characters, direction marks, byte order marks and tags. Use it for text that an adversary writes, such as a
    /// plugin's log. These characters are removed and not replaced, so that they cannot split a word that must be
    /// masked.
    pub fn visible(text: &str) -> Self {
        TerminalText(text.chars().filter(|c| !is_unsafe(*c) && !is_invisible(*c)).collect())
    }

    pub fn into_string(self) -> String {
        self.0
    }
}

impl Deref for TerminalText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TerminalText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Returns whether a terminal executes the character, or reorders text because of it.
///
/// Unsafe are the control characters of Unicode (C0, DEL and C1, which includes the one-byte CSI U+009B), the line and
/// paragraph separators, and the bidirectional embeddings, overrides and isolates. The marks U+200E and U+200F are
/// safe, because they are part of ordinary text in Arabic and Hebrew.
pub fn is_unsafe(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNSAFE: &[char] =
        &['\u{0}', '\u{7}', '\u{1b}', '\r', '\u{7f}', '\u{85}', '\u{9b}', '\u{2028}', '\u{202e}', '\u{2066}'];

    #[test]
    fn characters_that_a_terminal_executes_are_replaced() {
        for c in UNSAFE {
            let text = format!("a{c}[2Jb");
            for safe in [TerminalText::line(&text), TerminalText::lines(&text)] {
                assert_eq!(&*safe, "a\u{fffd}[2Jb", "{c:?}");
            }
            assert_eq!(&*TerminalText::spaced(&text), "a [2Jb", "{c:?}");
        }
    }

    #[test]
    fn line_breaks_stay_in_several_lines_only() {
        assert_eq!(&*TerminalText::lines("a\nb"), "a\nb");
        assert_eq!(&*TerminalText::line("a\nb"), "a\u{fffd}b");
        assert_eq!(&*TerminalText::spaced("a\n\tb"), "a  b");
    }

    #[test]
    fn ordinary_text_of_any_script_is_unchanged() {
        for text in ["Größe", "電子 x", "שלום\u{200f}!", "e\u{301}", "\u{1f600}", "\u{fffd}"] {
            assert_eq!(&*TerminalText::line(text), text);
        }
    }

    #[test]
    fn invisible_characters_are_removed_on_request() {
        let text = "ok\n2026-01-01 ERROR forged\r\u{1b}[31m\u{202e}to\u{200b}ken\u{e0041}\u{feff}";
        assert_eq!(&*TerminalText::visible(text), "ok2026-01-01 ERROR forged[31mtoken");
    }

    #[test]
    fn width_pads_the_text() {
        assert_eq!(format!("{:<4}|", TerminalText::line("ab")), "ab  |");
    }
}
