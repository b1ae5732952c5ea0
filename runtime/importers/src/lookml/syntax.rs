//! Parses LookML.
//!
//! In: a file. Out: its items with their places, or its syntax errors. After an error, the parser continues with the
//! next field or view. The values of keys for SQL, HTML and expressions end at `;;`. All other values are words,
//! strings, lists or blocks. The nesting and the number of items are bounded. Not here: the meaning of keys.

use std::sync::Arc;

use terrane_compiler::diagnostic::Span;
use terrane_compiler::project::SourceFile;

const MAX_DEPTH: usize = 32;
const MAX_ITEMS: usize = 200_000;
/// The largest number of syntax errors of one file that are reported.
const MAX_MISTAKES: usize = 20;
/// The keys of blocks at the top level of a file, and in a view or explore. Parsing continues at a line that begins
/// with one of them.
const BLOCKS: &[&[&str]] = &[
    &["view:", "explore:", "datagroup:", "access_grant:", "constant:"],
    &["dimension:", "dimension_group:", "measure:", "filter:", "parameter:", "set:", "join:", "derived_table:"],
];

/// A key with its value, such as `dimension: id { … }`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Item {
    pub(super) key: String,
    /// The place of the key.
    pub(super) span: Span,
    pub(super) value: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// A word, a string or an expression, without quotes and `;;`.
    Text(String),
    List(Vec<Entry>),
    Block {
        name: Option<String>,
        items: Vec<Item>,
    },
}

/// An item of a list: a word or a string. In `[status: "paid"]`, it follows a key.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) key: Option<String>,
    pub(super) text: String,
}

/// The reason why a value was not read: a mistake, which the parser has added to its mistakes.
struct Stopped;

/// A syntax error and its place.
#[derive(Debug)]
pub(super) struct Mistake {
    pub(super) message: &'static str,
    pub(super) span: Span,
}

impl Item {
    pub(super) fn name(&self) -> Option<&str> {
        match &self.value {
            Value::Block { name, .. } => name.as_deref(),
            _ => None,
        }
    }

    /// Returns true if two items have the same key and value. Their places may differ.
    pub(super) fn is_same(&self, other: &Item) -> bool {
        let is_value = match (&self.value, &other.value) {
            (Value::Block { name, items }, Value::Block { name: other_name, items: others }) => {
                name == other_name
                    && items.len() == others.len()
                    && items.iter().zip(others).all(|(item, other)| item.is_same(other))
            }
            (value, other) => value == other,
        };
        self.key == other.key && is_value
    }

    pub(super) fn items(&self) -> &[Item] {
        match &self.value {
            Value::Block { items, .. } => items,
            _ => &[],
        }
    }
}

/// Parses a file.
///
/// # Errors
/// Returns the syntax errors, in the order of the file. There is at least one.
pub(super) fn parse(file: &Arc<SourceFile>) -> Result<Vec<Item>, Vec<Mistake>> {
    let text = &file.text;
    let mut parser =
        Parser { file, text, at: 0, line: 1, line_start: 0, items: 0, mistakes: Vec::new(), resumed: None };
    let items = parser.file();
    if parser.mistakes.is_empty() { Ok(items) } else { Err(parser.mistakes) }
}

/// Returns true for a key whose value ends at `;;`.
fn is_expression(key: &str) -> bool {
    key == "html" || key == "expression" || key == "expression_custom_filter" || key == "sql" || key.starts_with("sql_")
}

struct Parser<'f> {
    file: &'f Arc<SourceFile>,
    text: &'f str,
    at: usize,
    line: u32,
    /// The byte offset at which the current line begins.
    line_start: usize,
    items: usize,
    mistakes: Vec<Mistake>,
    /// The depth of the block at which parsing continues after a mistake.
    resumed: Option<usize>,
}

impl<'f> Parser<'f> {
    /// Adds a mistake at the current place.
    fn mistake(&mut self, message: &'static str) -> Stopped {
        let span = self.span(1);
        self.mistakes.push(Mistake { message, span });
        Stopped
    }

    /// Reads all items. After a mistake at the top level, continues with the next view or explore.
    fn file(&mut self) -> Vec<Item> {
        loop {
            let items = self.items(0);
            if items.is_ok() && self.peek().is_none() {
                return items.unwrap_or_default();
            }
            if items.is_ok() {
                self.mistake("expected a key");
            }
            if self.next_block(0).is_none() {
                return Vec::new();
            }
        }
    }

    /// Moves to the next line that begins with a block of this depth or a smaller one, and returns its depth.
    fn next_block(&mut self, depth: usize) -> Option<usize> {
        let known = &BLOCKS[..=depth.min(BLOCKS.len() - 1)];
        let rest = self.text.get(self.at..).filter(|_| self.mistakes.len() < MAX_MISTAKES)?;
        let mut at = self.at;
        for line in rest.split_inclusive('\n') {
            let content = line.trim_start();
            let begins = |keys: &&[&str]| keys.iter().any(|key| content.starts_with(*key));
            if let (true, Some(found)) = (at > self.at, known.iter().position(begins)) {
                self.advance(at + line.len() - content.len());
                return Some(found);
            }
            at += line.len();
        }
        self.advance(self.text.len());
        None
    }

    /// Moves to a byte offset, which must be a boundary between characters.
    fn advance(&mut self, to: usize) {
        for (at, _) in self.text[self.at..to].match_indices('\n') {
            self.line += 1;
            self.line_start = self.at + at + 1;
        }
        self.at = to;
    }

    /// Skips white space and comments, and returns the next character.
    fn peek(&mut self) -> Option<char> {
        loop {
            let rest = &self.text[self.at..];
            let spaces = rest.len() - rest.trim_start().len();
            self.advance(self.at + spaces);
            if !self.text[self.at..].starts_with('#') {
                return self.text[self.at..].chars().next();
            }
            let end = self.text[self.at..].find('\n').map_or(self.text.len(), |end| self.at + end);
            self.advance(end);
        }
    }

    fn span(&self, length: usize) -> Span {
        let column = self.text[self.line_start..self.at].chars().count() as u32 + 1;
        Span { file: self.file.path.clone(), line: self.line, column, length: length.max(1) as u32 }
    }

    /// Reads items up to a closing brace or the end of the file.
    fn items(&mut self, depth: usize) -> Result<Vec<Item>, Stopped> {
        if depth > MAX_DEPTH {
            return Err(self.mistake("blocks are nested too deeply"));
        }
        let mut items = Vec::new();
        while self.peek().is_some_and(|c| c != '}') {
            self.items += 1;
            if self.items > MAX_ITEMS {
                return Err(self.mistake("the file has too many items"));
            }
            match self.item(depth) {
                Ok(item) => items.push(item),
                Err(Stopped) => {
                    self.resumed = self.resumed.or_else(|| self.next_block(depth));
                    if self.resumed != Some(depth) {
                        return Err(Stopped);
                    }
                    self.resumed = None;
                }
            }
        }
        Ok(items)
    }

    fn item(&mut self, depth: usize) -> Result<Item, Stopped> {
        let length = self.text[self.at..]
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(self.text.len() - self.at);
        if length == 0 {
            return Err(self.mistake("expected a key"));
        }
        let span = self.span(length);
        let key = self.text[self.at..self.at + length].to_owned();
        self.advance(self.at + length);
        if self.peek() != Some(':') {
            return Err(self.mistake("expected `:` after a key"));
        }
        self.advance(self.at + 1);
        let value = match is_expression(&key) {
            true => self.expression()?,
            false => self.value(depth)?,
        };
        Ok(Item { key, span, value })
    }

    /// Reads an expression up to `;;`.
    fn expression(&mut self) -> Result<Value, Stopped> {
        // No key of an expression is also the key of a block, so a brace is a part of the expression.
        let rest = &self.text[self.at..];
        let begins_block = |line: &str| BLOCKS.iter().copied().flatten().any(|key| line.trim_start().starts_with(*key));
        // A line that begins a block shows that the expression before it has no end.
        let Some(end) = rest.find(";;").filter(|end| !rest[..*end].lines().skip(1).any(begins_block)) else {
            return Err(self.mistake("expected `;;` at the end of an expression"));
        };
        let text = rest[..end].trim().to_owned();
        self.advance(self.at + end + 2);
        Ok(Value::Text(text))
    }

    fn value(&mut self, depth: usize) -> Result<Value, Stopped> {
        match self.peek() {
            Some('{') => self.block(None, depth),
            Some('[') => self.list(),
            Some('"') => Ok(Value::Text(self.string()?)),
            Some(_) => {
                let word = self.word()?;
                match self.peek() {
                    Some('{') => self.block(Some(word), depth),
                    _ => Ok(Value::Text(word)),
                }
            }
            None => Err(self.mistake("expected a value")),
        }
    }

    fn block(&mut self, name: Option<String>, depth: usize) -> Result<Value, Stopped> {
        self.advance(self.at + 1);
        let items = self.items(depth + 1)?;
        if self.peek() != Some('}') {
            return Err(self.mistake("expected `}`"));
        }
        self.advance(self.at + 1);
        Ok(Value::Block { name, items })
    }

    fn list(&mut self) -> Result<Value, Stopped> {
        self.advance(self.at + 1);
        let mut entries = Vec::new();
        loop {
            match self.peek() {
                Some(']') => break self.advance(self.at + 1),
                Some(',') => self.advance(self.at + 1),
                Some(_) => {
                    self.items += 1;
                    if self.items > MAX_ITEMS {
                        return Err(self.mistake("the file has too many items"));
                    }
                    entries.push(self.entry()?);
                }
                None => return Err(self.mistake("expected `]`")),
            }
        }
        Ok(Value::List(entries))
    }

    fn entry(&mut self) -> Result<Entry, Stopped> {
        let text = self.scalar()?;
        if self.peek() != Some(':') {
            return Ok(Entry { key: None, text });
        }
        self.advance(self.at + 1);
        self.peek();
        Ok(Entry { key: Some(text), text: self.scalar()? })
    }

    fn scalar(&mut self) -> Result<String, Stopped> {
        if self.text[self.at..].starts_with('"') { self.string() } else { self.word() }
    }

    /// Reads a word: a name, a number, a path, or a reference to a set.
    fn word(&mut self) -> Result<String, Stopped> {
        let is_end = |c: char| c.is_whitespace() || matches!(c, '{' | '}' | '[' | ']' | ',' | ':' | '"' | '#');
        let rest = &self.text[self.at..];
        let length = rest.find(is_end).unwrap_or(rest.len());
        if length == 0 {
            return Err(self.mistake("expected a value"));
        }
        let word = rest[..length].to_owned();
        self.advance(self.at + length);
        Ok(word)
    }

    fn string(&mut self) -> Result<String, Stopped> {
        let mut text = String::new();
        let mut characters = self.text[self.at + 1..].char_indices();
        while let Some((at, c)) = characters.next() {
            match c {
                '"' => {
                    self.advance(self.at + 1 + at + 1);
                    return Ok(text);
                }
                '\\' => match characters.next() {
                    Some((_, c @ ('"' | '\\'))) => text.push(c),
                    Some((_, c)) => text.extend(['\\', c]),
                    None => break,
                },
                c => text.push(c),
            }
        }
        Err(self.mistake("a string is not closed"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Vec<Item>, Vec<Mistake>> {
        parse(&Arc::new(SourceFile { path: "a.lkml".into(), text: text.into() }))
    }

    #[test]
    fn items_have_their_places() {
        let items = parsed(
            "include: \"*.lkml\" # all\n# note\nview: orders {\n  dimension: id { sql: ${TABLE}.id ;; primary_key: yes }\n  set: a { fields: [id, b.*, -c] }\n}\nexplore: +orders {}",
        )
        .expect("the text is LookML");
        assert_eq!(items.len(), 3);
        assert_eq!((items[1].name(), items[1].span.line), (Some("orders"), 3));
        let dimension = &items[1].items()[0];
        assert_eq!((dimension.name(), dimension.span.line, dimension.span.column), (Some("id"), 4, 3));
        assert!(matches!(&dimension.items()[0].value, Value::Text(sql) if sql == "${TABLE}.id"));
        assert!(matches!(&items[1].items()[1].items()[0].value, Value::List(list) if list.len() == 3));
        assert_eq!(items[2].name(), Some("+orders"));
    }

    #[test]
    fn mistakes_have_a_place_and_never_overflow() {
        let deep = "a: {".repeat(100_000);
        let lists = format!("a: {}", "[".repeat(1000));
        for (text, place) in [
            ("view: a {\n dimension: b {\n", (3, 1)),
            ("view a", (1, 6)),
            ("\nsql: SELECT 1", (2, 5)),
            ("a: \"open\n", (1, 4)),
            ("a: [b,\n c", (2, 3)),
            ("}", (1, 1)),
            ("a: \"\\", (1, 4)),
            ("a:", (1, 3)),
            ("größe: [b: ]", (1, 3)),
            ("a: \"größe\" )", (1, 12)),
            (deep.as_str(), (1, 133)),
            (lists.as_str(), (1, 5)),
        ] {
            let mistakes = parsed(text).expect_err(text);
            assert_eq!((mistakes[0].span.line, mistakes[0].span.column), place, "{text:.20}");
        }
    }

    #[test]
    fn parsing_continues_after_a_mistake() {
        let text = "view: a {
  dimension: id { sql: ${TABLE}.id }
  dimension: ok { type: string }
  dimension: city { type: }
}
view: b {
  dimension: lost { type: }
}
explore: c { join: d { on: [ } }
";
        let places: Vec<_> = parsed(text).expect_err(text).iter().map(|m| (m.span.line, m.span.column)).collect();
        assert_eq!(places, [(2, 23), (4, 27), (7, 27), (9, 30)], "{text}");
        let many = "measure x\n".repeat(1000);
        assert!(parsed(&format!("view: a {{\n{many}}}")).expect_err("mistakes").len() <= MAX_MISTAKES);
    }

    #[test]
    fn multibyte_characters_are_skipped() {
        let items = parsed("a: \"größe\"\nb: größe # ü\nsql: 'ü' ;; c: [ä, \"ö\": \"ü\"]").expect("the text is LookML");
        assert_eq!(items.len(), 4);
    }
}
