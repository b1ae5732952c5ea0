//! Finds names in SQL before Jinja is rendered: names in braces, and names in the expression of a metric.
//!
//! The scan is lexical, so that it also works on SQL that cannot be parsed. Strings in single quotes are skipped.

/// A name in a pair of braces, as one or two parts with their byte offsets.
pub(crate) struct Braced<'t> {
    pub(crate) parts: Parts<'t>,
}

type Parts<'t> = Vec<(&'t str, usize)>;

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the byte offset after the end of the string that begins at `at`.
fn string_end(text: &str, at: usize) -> usize {
    text[at + 1..].find('\'').map_or(text.len(), |end| at + 1 + end + 1)
}

/// Returns the names in `{…}`. Skips `{{ … }}`, `{% … %}` and `{# … #}`, which contain Jinja or values of callers.
pub(crate) fn braced(text: &str) -> Vec<Braced<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(next) = text[at..].find(['{', '\'']).map(|found| at + found) {
        let rest = &text[next..];
        let close = [("{{", "}}"), ("{%", "%}"), ("{#", "#}")].iter().find(|(open, _)| rest.starts_with(open));
        if rest.starts_with('\'') {
            at = string_end(text, next);
        } else if let Some((_, close)) = close {
            at = next + rest.find(close).map_or(rest.len(), |end| end + close.len());
        } else {
            let end = rest.find('}').unwrap_or(rest.len());
            found.extend(parts(&rest[1..end.max(1)], next + 1).map(|parts| Braced { parts }));
            at = next + end.max(1);
        }
    }
    found
}

/// Splits `cube.member` or `member` into its parts. Returns `None` for other strings.
fn parts(inside: &str, offset: usize) -> Option<Parts<'_>> {
    let mut parts = Vec::new();
    let mut at = offset;
    for piece in inside.split('.') {
        let name = piece.trim();
        if name.is_empty() || !name.chars().all(is_part) {
            return None;
        }
        parts.push((name, at + piece.len() - piece.trim_start().len()));
        at += piece.len() + 1;
    }
    (parts.len() <= 2).then_some(parts)
}

/// Returns the names of a metric's expression with their offsets, as `metric` or `cube.member`.
pub(crate) fn names(text: &str) -> Vec<(&str, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        if c == '\'' {
            at = string_end(text, at);
        } else if c.is_alphabetic() || c == '_' {
            let length = text[at..].find(|c: char| !(is_part(c) || c == '.')).unwrap_or(text.len() - at);
            let name = text[at..at + length].trim_end_matches('.');
            if name.split('.').count() <= 2 {
                found.push((name, at));
            }
            at += length;
        } else {
            at += c.len_utf8();
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jinja_and_strings_contain_no_names() {
        let text = "'{a}' || {b} || {{ user.x }} || { c . d } || {% if e %}{% endif %} {1.5 + x} {";
        let found: Vec<Vec<(&str, usize)>> = braced(text).into_iter().map(|name| name.parts).collect();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0], [("b", text.find("b}").unwrap())]);
        assert_eq!(found[1], [("c", text.find("c .").unwrap()), ("d", text.find("d }").unwrap())]);
    }

    #[test]
    fn names_of_an_expression_have_offsets() {
        assert_eq!(names("1 - a.b / NULLIF(rate, 'x')"), [("a.b", 4), ("NULLIF", 10), ("rate", 17)]);
        assert_eq!(names("'open"), []);
    }
}
