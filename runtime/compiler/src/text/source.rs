//! Strings and SQL of a project, with their places in its files.
//!
//! In: the files of the tree. Out: [`Text`] and [`SqlText`], whose places are converted to a [`Span`] only when they
//! are shown. An offset inside a YAML scalar is found by reading the file and the value in parallel, so that block,
//! folded and quoted scalars have correct places.

use std::fmt;
use std::sync::Arc;

use super::Span;

/// One file of the project.
#[derive(Debug, PartialEq, Eq)]
pub struct SourceFile {
    pub path: Arc<str>,
    pub text: Arc<str>,
}

/// A place in a file, with the content of the file.
#[derive(Clone, PartialEq, Eq)]
pub struct Origin {
    pub file: Arc<SourceFile>,
    /// The byte offset of the first character.
    pub offset: u32,
    pub line: u32,
    pub column: u32,
    /// The length in characters, at least 1.
    pub length: u32,
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file.path, self.line, self.column)
    }
}

impl Origin {
    /// Returns the origin at the beginning of a file.
    pub fn start_of(file: &Arc<SourceFile>) -> Origin {
        Origin { file: Arc::clone(file), offset: 0, line: 1, column: 1, length: 1 }
    }

    /// Returns the place of `length` characters at a byte offset of a file.
    pub fn at(file: &Arc<SourceFile>, offset: usize, length: u32) -> Origin {
        let mut end = offset.min(file.text.len());
        while !file.text.is_char_boundary(end) {
            end -= 1;
        }
        let before = &file.text[..end];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Origin {
            file: Arc::clone(file),
            offset: end as u32,
            line: before.matches('\n').count() as u32 + 1,
            column: before[line_start..].chars().count() as u32 + 1,
            length: length.max(1),
        }
    }

    pub fn span(&self) -> Span {
        Span { file: Arc::clone(&self.file.path), line: self.line, column: self.column, length: self.length.max(1) }
    }
}

/// A value of a YAML file with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    pub value: Arc<str>,
    pub origin: Origin,
}

impl Text {
    pub fn span(&self) -> Span {
        self.origin.span()
    }
}

/// SQL after Jinja, with its place in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlText {
    pub text: Arc<str>,
    pub origin: Origin,
    /// The source before Jinja, if it differs.
    pub template: Option<Arc<str>>,
}

impl SqlText {
    /// Returns text without Jinja as SQL.
    pub fn plain(text: &Text) -> SqlText {
        SqlText { text: Arc::clone(&text.value), origin: text.origin.clone(), template: None }
    }

    /// Returns SQL that replaces an expression that cannot be read. It is valid everywhere.
    pub(crate) fn placeholder(origin: &Origin) -> SqlText {
        SqlText { text: "NULL".into(), origin: origin.clone(), template: None }
    }

    /// Returns the place of the first character.
    pub fn span(&self) -> Span {
        self.origin.span()
    }

    /// Returns the place of `length` characters at a byte offset of [`SqlText::text`].
    pub fn locate(&self, offset: usize, length: usize) -> Span {
        let (template, offset) = match &self.template {
            None => (&self.text, offset),
            Some(template) => (template, before_rendering(template, &self.text, offset)),
        };
        self.locate_in(template, offset, length)
    }

    /// Returns the place of `length` characters at a byte offset of the source before Jinja.
    pub fn locate_template(&self, offset: usize, length: usize) -> Span {
        let template = self.template.as_ref().unwrap_or(&self.text);
        self.locate_in(template, offset, length)
    }

    fn locate_in(&self, template: &str, offset: usize, length: usize) -> Span {
        let file = &self.origin.file;
        let source = file.text.get(self.origin.offset as usize..).unwrap_or_default();
        let skipped = offset_in_source(template, source, offset);
        Origin::at(file, self.origin.offset as usize + skipped, length as u32).span()
    }
}

/// Returns the byte offset in `source`, which begins at a scalar, of the byte `offset` of the scalar's value.
fn offset_in_source(value: &str, source: &str, offset: usize) -> usize {
    let quote = source.chars().next().filter(|c| matches!(c, '"' | '\'') && !value.starts_with(*c));
    let mut at = quote.map_or(0, char::len_utf8);
    for (index, wanted) in value.char_indices() {
        // After a newline in a block scalar, the source has indentation that the value lacks.
        let Some(found) = source[at..].chars().next() else { return at };
        if wanted.is_whitespace() {
            if index >= offset {
                return at;
            }
            if found == '\n' {
                let indent_of_value = value[index + wanted.len_utf8()..].chars().take_while(|c| *c == ' ').count();
                let indent = source[at + 1..].chars().take_while(|c| *c == ' ').count();
                at += 1 + indent.saturating_sub(if wanted == '\n' { indent_of_value } else { 0 });
            } else if quote == Some('"') && found == '\\' {
                at += escape_length(&source[at..]);
            } else if found.is_whitespace() {
                at += found.len_utf8();
            }
            continue;
        }
        while let Some(space) = source[at..].chars().next().filter(|c| c.is_whitespace()) {
            at += space.len_utf8();
        }
        if index >= offset {
            return at;
        }
        match source[at..].chars().next() {
            Some('\'') if quote == Some('\'') => at += 2,
            Some('\\') if quote == Some('"') => at += escape_length(&source[at..]),
            Some(c) => at += c.len_utf8(),
            None => return at,
        }
        at = at.min(source.len());
        if !source.is_char_boundary(at) {
            return 0;
        }
    }
    at
}

/// Returns the number of bytes of an escape in double quotes, such as `\n`, `\x41` or `\u00e9`.
fn escape_length(source: &str) -> usize {
    let length = match source.as_bytes().get(1) {
        Some(b'x') => 4,
        Some(b'u') => 6,
        Some(b'U') => 10,
        _ => 2,
    };
    length.min(source.len())
}

/// Returns the offset in a template of a byte offset in its rendered text. Literal text is matched piece by piece; for
/// text that a tag printed, the result is the tag's offset.
fn before_rendering(template: &str, rendered: &str, offset: usize) -> usize {
    let (mut in_template, mut in_rendered) = (0, 0);
    loop {
        let rest = &template[in_template..];
        let tag = ["{{", "{%", "{#"].iter().filter_map(|open| rest.find(open)).min();
        let literal = &rest[..tag.unwrap_or(rest.len())];
        let needle = literal.trim();
        let lead = literal.len() - literal.trim_start().len();
        if let Some(found) = rendered[in_rendered..].find(needle).filter(|_| !needle.is_empty()) {
            let start = in_rendered + found;
            if offset < start {
                return in_template;
            }
            if offset <= start + needle.len() {
                return in_template + lead + (offset - start);
            }
            in_rendered = start + needle.len();
        }
        let Some(tag) = tag else { return template.len() };
        let close = match rest.as_bytes().get(tag + 1) {
            Some(b'{') => "}}",
            Some(b'%') => "%}",
            _ => "#}",
        };
        let Some(end) = rest[tag..].find(close) else { return in_template + tag };
        let after = in_template + tag + end + close.len();
        let following = template[after..].find(['{']).map_or(&template[after..], |next| &template[after..after + next]);
        let is_last = following.trim().is_empty() && after + following.len() == template.len();
        let next_start = rendered[in_rendered..].find(following.trim()).map(|found| in_rendered + found);
        if is_last || (!following.trim().is_empty() && next_start.is_some_and(|start| offset < start)) {
            return in_template + tag;
        }
        in_template = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the place that is found for `marked`, a part of the value.
    fn check(file_text: &str, scalar_at: &str, value: &str, marked: &str) -> (u32, u32) {
        let file = Arc::new(SourceFile { path: "a.yml".into(), text: file_text.into() });
        let start = file_text.find(scalar_at).expect("the scalar is in the file");
        let origin = Origin::at(&file, start, 1);
        let text = SqlText { text: value.into(), origin, template: None };
        let span = text.locate(value.find(marked).expect("the mark is in the value"), 1);
        (span.line, span.column)
    }

    #[test]
    fn places_follow_every_scalar_style() {
        assert_eq!(check("sql: a + bcd\n", "a +", "a + bcd", "bcd"), (1, 10));
        assert_eq!(check("sql: \"a + \\\"b\\\" + c\"\n", "\"a", "a + \"b\" + c", "c"), (1, 19));
        assert_eq!(check("sql: 'it''s' + x\n", "'it", "it's", "s"), (1, 11));
        assert_eq!(check("sql: |\n    CASE\n      WHEN x\n    END\n", "CASE", "CASE\n  WHEN x\nEND\n", "WHEN"), (3, 7));
        assert_eq!(check("sql: |\n    CASE\n      WHEN x\n    END\n", "CASE", "CASE\n  WHEN x\nEND\n", "END"), (4, 5));
        assert_eq!(check("sql: >-\n  one\n  two\n", "one", "one two", "two"), (3, 3));
        assert_eq!(check("sql: one\n   two\n", "one", "one two", "two"), (2, 4));
    }

    #[test]
    fn places_see_through_jinja() {
        let template = "SELECT a FROM {{ ref('m') }} WHERE bc";
        let rendered = "SELECT a FROM m WHERE bc";
        let at = |word: &str| before_rendering(template, rendered, rendered.find(word).unwrap());
        assert_eq!(at("FROM"), 9);
        assert_eq!(at("m W"), 14);
        assert_eq!(at("bc"), template.find("bc").unwrap());
    }
}
