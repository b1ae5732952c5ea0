//! Appends text and elements of XML to bytes.
//!
//! In: strings and names. Out: XML 1.0. A character that XML does not allow becomes U+FFFD, so that a result with a
//! control character stays readable. Not here: the form of envelopes and rows.

/// Appends text, escaped for use in an element or in an attribute with double quotes.
pub(crate) fn write_text(text: &str, out: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    let mut start = 0;
    for (at, character) in text.char_indices() {
        let Some(replacement) = replacement(character) else { continue };
        out.extend_from_slice(&bytes[start..at]);
        out.extend_from_slice(replacement.as_bytes());
        start = at + character.len_utf8();
    }
    out.extend_from_slice(&bytes[start..]);
}

fn replacement(character: char) -> Option<&'static str> {
    match character {
        '&' => Some("&amp;"),
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '"' => Some("&quot;"),
        // XML parsers would convert a carriage return to a line feed.
        '\r' => Some("&#xD;"),
        '\t' | '\n' => None,
        '\0'..='\u{1F}' | '\u{FFFE}' | '\u{FFFF}' => Some("\u{FFFD}"),
        _ => None,
    }
}

/// Escapes the output from the position `start` on.
pub(crate) fn escape_from(start: usize, out: &mut Vec<u8>) {
    let is_plain = |byte: &u8| !matches!(byte, b'&' | b'<' | b'>' | b'"' | 0..=0x1F | 0xEF);
    if out[start..].iter().all(is_plain) {
        return;
    }
    let text = out.split_off(start);
    write_text(&String::from_utf8_lossy(&text), out);
}

/// Appends an element that contains a string.
pub(crate) fn write_element(name: &str, text: &str, out: &mut Vec<u8>) {
    for part in ["<", name, ">"] {
        out.extend_from_slice(part.as_bytes());
    }
    write_text(text, out);
    for part in ["</", name, ">"] {
        out.extend_from_slice(part.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        for (text, expected) in [
            ("a & b < c > \"d\" 'e'", "a &amp; b &lt; c &gt; &quot;d&quot; 'e'"),
            ("tab\tline\nreturn\r", "tab\tline\nreturn&#xD;"),
            ("\0\u{1}\u{1F}\u{FFFF}é😀", "\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}é😀"),
            ("\u{F900}", "\u{F900}"),
            ("", ""),
        ] {
            let mut out = Vec::new();
            write_text(text, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
            let mut out = format!("<{text}").into_bytes();
            escape_from(1, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), format!("<{expected}"));
        }
    }
}
