//! Names that replace references and finished parts while SQL is parsed.
//!
//! In: references and finished parts. Out: names that no author can write, their indexes, and printed text that is
//! split at them. Not here: the meaning of a reference (`model::scope`).

use sqlparser::ast::Ident;

use super::SqlPart;

/// Private-use characters of stand-ins, which authors' SQL cannot contain. [`REFERENCE`] begins the stand-in of a
/// reference, [`PART`] begins the stand-in of a finished part, and [`END`] ends every stand-in. [`PLAIN`] marks a name
/// that does not refer to a column.
pub(crate) const REFERENCE: char = '\u{E000}';
pub(crate) const END: char = '\u{E001}';
pub(crate) const PART: char = '\u{E002}';
pub(crate) const PLAIN: char = '\u{E003}';

/// Returns the stand-in of the part at an index.
pub(crate) fn part_name(index: usize) -> String {
    format!("{PART}{index}{END}")
}

/// Returns the index in a stand-in of the given kind; `None` if the name is not such a stand-in.
pub(crate) fn stand_in(ident: &Ident, kind: char) -> Option<usize> {
    if ident.quote_style.is_some() {
        return None;
    }
    ident.value.strip_prefix(kind)?.strip_suffix(END)?.parse().ok()
}

/// Splits printed text at the stand-ins of finished parts.
pub(crate) fn cut(printed: &str, parts: &[SqlPart]) -> Vec<SqlPart> {
    let mut out = Vec::new();
    let mut text = String::new();
    let mut rest = printed;
    while let Some(at) = rest.find([PART, PLAIN]) {
        text.push_str(&rest[..at]);
        let mark = rest[at..].chars().next();
        rest = &rest[at + PART.len_utf8()..];
        if mark == Some(PLAIN) {
            continue;
        }
        let Some((index, after)) = rest.split_once(END) else { break };
        if let Some(part) = index.parse::<usize>().ok().and_then(|index| parts.get(index)) {
            if !text.is_empty() {
                out.push(SqlPart::Text(std::mem::take(&mut text).into()));
            }
            out.push(part.clone());
        }
        rest = after;
    }
    text.push_str(rest);
    if !text.is_empty() {
        out.push(SqlPart::Text(text.into()));
    }
    out
}
