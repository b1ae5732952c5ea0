//! Converts names of columns to names of XML elements.
//!
//! In: any string. Out: a name of XML. A character that XML does not allow at its place in a name is written as
//! `_xHHHH_`, once for each of its UTF-16 units. An underscore is also written in this form if a reader would take it
//! for the beginning of such an escape.

/// Returns the element name of a column. An empty name becomes `_x0000_`.
pub fn encode(name: &str) -> String {
    let mut encoded = String::with_capacity(name.len());
    for (at, character) in name.char_indices() {
        let is_literal = match character {
            '_' => !is_escape(&name[at..]),
            _ if at == 0 => is_name_start(character),
            _ => is_name_start(character) || is_name_part(character),
        };
        if is_literal {
            encoded.push(character);
        } else {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                encoded.push_str(&format!("_x{unit:04X}_"));
            }
        }
    }
    if encoded.is_empty() { "_x0000_".to_owned() } else { encoded }
}

/// Returns whether a string begins with an escape of the form `_xHHHH_`.
fn is_escape(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 7 && bytes[1] == b'x' && bytes[6] == b'_' && bytes[2..6].iter().all(u8::is_ascii_hexdigit)
}

/// Returns whether a character is a NameStartChar of XML. The colon is not, because it would separate a prefix.
fn is_name_start(character: char) -> bool {
    matches!(character,
        'A'..='Z' | '_' | 'a'..='z' | '\u{C0}'..='\u{D6}' | '\u{D8}'..='\u{F6}' | '\u{F8}'..='\u{2FF}'
        | '\u{370}'..='\u{37D}' | '\u{37F}'..='\u{1FFF}' | '\u{200C}'..='\u{200D}' | '\u{2070}'..='\u{218F}'
        | '\u{2C00}'..='\u{2FEF}' | '\u{3001}'..='\u{D7FF}' | '\u{F900}'..='\u{FDCF}' | '\u{FDF0}'..='\u{FFFD}')
}

/// Returns whether a character is a NameChar of XML but not a NameStartChar.
fn is_name_part(character: char) -> bool {
    matches!(character, '-' | '.' | '0'..='9' | '\u{B7}' | '\u{300}'..='\u{36F}' | '\u{203F}'..='\u{2040}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_names_cannot_have_are_escaped() {
        for (name, expected) in [
            ("CATALOG_NAME", "CATALOG_NAME"),
            ("orders[status]", "orders_x005B_status_x005D_"),
            ("[Revenue]", "_x005B_Revenue_x005D_"),
            ("Sales Order[A]", "Sales_x0020_Order_x005B_A_x005D_"),
            ("1a", "_x0031_a"),
            ("a1-b.c", "a1-b.c"),
            ("a:b", "a_x003A_b"),
            ("é", "é"),
            ("😀", "_xD83D__xDE00_"),
            ("_x0041_", "_x005F_x0041_"),
            ("_x", "_x"),
            ("", "_x0000_"),
        ] {
            assert_eq!(encode(name), expected);
        }
    }
}
