//! Reads the keys of one mapping of a model.
//!
//! In: a YAML node. Out: values by key, and findings for the keys that were never read. The spelling of a key may vary:
//! `sqlTable` is `sql_table`. Not here: the meaning of the keys.

use std::cell::RefCell;
use std::collections::HashSet;

use terrane_authoring::names::snake;
use terrane_authoring::yaml::Yaml;
use terrane_compiler::diagnostic::{Diagnostic, Span};
use terrane_compiler::project::Text;
use terrane_compiler::project::yaml::{Key, Node, NodeValue, Plain};
use terrane_compiler::text::nearest::likely;

use crate::finding::left_out;

pub(crate) struct Entry<'n> {
    /// A description such as ``measure `revenue` of cube `orders` ``.
    pub(crate) what: String,
    pub(crate) span: Span,
    entries: Vec<(String, &'n Key, &'n Node)>,
    read: RefCell<HashSet<String>>,
}

/// The visibility that `public`, or its older name `shown`, states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Visibility {
    Public,
    Private,
    /// The value is a template or has another unknown meaning. It counts as private.
    Unknown,
}

impl<'n> Entry<'n> {
    /// Opens a node, or returns `None` if it is not a mapping.
    pub(crate) fn open(node: &'n Node, what: impl Into<String>) -> Option<Self> {
        let NodeValue::Map(map) = &node.value else { return None };
        let entries = map.iter().map(|(key, value)| (snake(&key.text), key, value)).collect();
        Some(Entry { what: what.into(), span: node.origin.span(), entries, read: RefCell::default() })
    }

    /// Returns the value of a key, or `None` if it is missing or null.
    pub(crate) fn node(&self, key: &str) -> Option<&'n Node> {
        self.read.borrow_mut().insert(key.to_owned());
        let (.., node) = self.entries.iter().find(|(name, ..)| name == key)?;
        (!matches!(node.value, NodeValue::Null)).then_some(*node)
    }

    pub(crate) fn text(&self, key: &str) -> Option<Text> {
        let node = self.node(key)?;
        match &node.value {
            NodeValue::Scalar { text, .. } => Some(Text { value: text.clone(), origin: node.origin.clone() }),
            _ => None,
        }
    }

    pub(crate) fn word(&self, key: &str) -> Option<String> {
        self.text(key).map(|text| text.value.trim().to_owned())
    }

    pub(crate) fn boolean(&self, key: &str) -> Option<bool> {
        self.word(key).map(|word| is_true(&word))
    }

    /// Returns the stricter one of the values of `public` and `shown`.
    pub(crate) fn visibility(&self) -> Visibility {
        let of_key = |key: &str| match (self.word(key), self.has(key)) {
            (None, false) => Visibility::Public,
            (Some(word), _) if is_true(&word) => Visibility::Public,
            (Some(word), _) if matches!(word.to_lowercase().as_str(), "false" | "no" | "off") => Visibility::Private,
            _ => Visibility::Unknown,
        };
        of_key("public").max(of_key("shown"))
    }

    /// Returns the place of `public`, or of `shown`.
    pub(crate) fn visibility_span(&self) -> Span {
        self.span_of(if self.has("public") { "public" } else { "shown" })
    }

    /// Returns the items of a list. Older models have a mapping by name instead of the list; it yields no items.
    pub(crate) fn list(&self, key: &str) -> &'n [Node] {
        match self.node(key).map(|node| &node.value) {
            Some(NodeValue::List(items)) => items,
            _ => &[],
        }
    }

    /// Returns the place of a key, or of the mapping if the key is missing.
    pub(crate) fn span_of(&self, key: &str) -> Span {
        let found = self.entries.iter().find(|(name, ..)| name == key);
        found.map_or_else(|| self.span.clone(), |(_, key, _)| key.origin.span())
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.node(key).is_some()
    }

    /// Returns the key that is most likely a misspelling of `key`.
    pub(crate) fn misspelling_of(&self, key: &str) -> Option<&str> {
        const OTHERS: [&str; 7] = ["name", "sql", "title", "description", "format", "meta", "filters"];
        let present = self.entries.iter().filter(|(name, ..)| !OTHERS.contains(&name.as_str()));
        likely(key, present.map(|(_, key, _)| &*key.text))
    }

    /// Reports a key that has no counterpart, if the mapping has it.
    pub(crate) fn drop_key(&self, key: &str, cure: &str, findings: &mut Vec<Diagnostic>) {
        if self.has(key) {
            findings.push(left_out(self.span_of(key), format!("`{key}` of {} is not imported", self.what), cure));
        }
    }

    /// Reports every key that was never read.
    pub(crate) fn finish(self, findings: &mut Vec<Diagnostic>) {
        let read = self.read.borrow();
        for (name, key, _) in self.entries.iter().filter(|(name, ..)| !read.contains(name)) {
            let what = format!("`{}` of {} is not imported: it has no counterpart", key.text, self.what);
            let cure = format!("Remove `{name}`, or keep it in `meta` for people to read.");
            findings.push(left_out(key.origin.span(), what, cure));
        }
    }
}

fn is_true(word: &str) -> bool {
    matches!(word.to_lowercase().as_str(), "true" | "yes" | "on")
}

/// Returns true if a string contains a Jinja template.
pub(crate) fn is_template(text: &str) -> bool {
    ["{{", "{%", "{#"].iter().any(|tag| text.contains(tag))
}

/// Converts a node to YAML without changes.
pub(crate) fn yaml_of(node: &Node) -> Yaml {
    match &node.value {
        NodeValue::Null => Yaml::Null,
        NodeValue::Scalar { plain: Plain::Boolean(value), .. } => Yaml::Boolean(*value),
        NodeValue::Scalar { plain: Plain::Integer | Plain::Fraction, text } => Yaml::Number(text.to_string()),
        NodeValue::Scalar { text, .. } => Yaml::text(&**text),
        NodeValue::List(items) => Yaml::List(items.iter().map(yaml_of).collect()),
        NodeValue::Map(entries) => {
            Yaml::Map(entries.iter().map(|(key, value)| (key.text.to_string(), yaml_of(value))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use terrane_compiler::project::{SourceFile, yaml};

    use super::*;

    fn with_entry<R>(text: &str, test: impl FnOnce(Entry<'_>) -> R) -> R {
        let file = Arc::new(SourceFile { path: "model.yml".into(), text: text.into() });
        let node = yaml::parse(&file).expect("the text is YAML");
        test(Entry::open(&node, "cube `orders`").expect("the text is a mapping"))
    }

    #[test]
    fn visibility_is_the_strictest_of_both_keys() {
        for (text, expected) in [
            ("name: a", Visibility::Public),
            ("public: true", Visibility::Public),
            ("public: 'yes'", Visibility::Public),
            ("public: false", Visibility::Private),
            ("shown: no", Visibility::Private),
            ("{public: true, shown: false}", Visibility::Private),
            ("public: \"{{ is_open }}\"", Visibility::Unknown),
            ("{public: false, shown: maybe}", Visibility::Unknown),
            ("public: [true]", Visibility::Unknown),
        ] {
            assert_eq!(with_entry(text, |entry| entry.visibility()), expected, "{text}");
        }
    }

    #[test]
    fn keys_are_read_in_any_spelling_and_unread_keys_are_reported() {
        let text = "sqlTable: raw.orders\npublic: null\nrefreshKey: {every: 1 hour}\n";
        with_entry(text, |entry| {
            assert_eq!(entry.word("sql_table").as_deref(), Some("raw.orders"));
            assert!(!entry.has("public"), "null counts as absent");
            assert_eq!(entry.span_of("refresh_key").line, 3);
            assert_eq!(entry.span_of("missing").line, 1);
            let mut findings = Vec::new();
            entry.finish(&mut findings);
            let places: Vec<u32> = findings.iter().filter_map(|found| Some(found.span.as_ref()?.line)).collect();
            assert_eq!(places, [3]);
        });
    }

    #[test]
    fn dropped_key_is_reported_once() {
        with_entry("rewriteQueries: true\n", |entry| {
            let mut findings = Vec::new();
            entry.drop_key("rewrite_queries", "Remove it.", &mut findings);
            entry.drop_key("absent", "Remove it.", &mut findings);
            entry.finish(&mut findings);
            assert_eq!(findings.len(), 1);
        });
    }

    #[test]
    fn misspelling_ignores_keys_with_a_meaning_of_their_own() {
        with_entry("dimension: []\nname: orders\n", |entry| {
            assert_eq!(entry.misspelling_of("dimensions"), Some("dimension"));
            assert_eq!(entry.misspelling_of("names"), None);
        });
    }
}
