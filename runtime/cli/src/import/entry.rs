//! The keys of one mapping of a model, each asked for once.
//!
//! In: a YAML node. Out: values by key, whatever its spelling (`sqlTable` is `sql_table`), and in the end
//! the keys that nobody asked for, which are findings. Not here: what the keys mean.

use std::cell::RefCell;
use std::collections::HashSet;

use terrane_compiler::diagnostic::{Diagnostic, Span};
use terrane_compiler::project::Text;
use terrane_compiler::project::yaml::{Key, Node, NodeValue, Plain};
use terrane_compiler::text::nearest::likely;

use super::finding::left_out;
use crate::authoring::names::snake;
use crate::authoring::yaml::Yaml;

pub(super) struct Entry<'n> {
    /// ``measure `revenue` of cube `orders` ``.
    pub(super) what: String,
    pub(super) span: Span,
    entries: Vec<(String, &'n Key, &'n Node)>,
    asked: RefCell<HashSet<String>>,
}

impl<'n> Entry<'n> {
    /// `None` for what is no mapping.
    pub(super) fn open(node: &'n Node, what: impl Into<String>) -> Option<Self> {
        let NodeValue::Map(map) = &node.value else { return None };
        let entries = map.iter().map(|(key, value)| (snake(&key.text), key, value)).collect();
        Some(Entry { what: what.into(), span: node.origin.span(), entries, asked: RefCell::default() })
    }

    /// The value of a key that has one.
    pub(super) fn node(&self, key: &str) -> Option<&'n Node> {
        self.asked.borrow_mut().insert(key.to_owned());
        let (.., node) = self.entries.iter().find(|(name, ..)| name == key)?;
        (!matches!(node.value, NodeValue::Null)).then_some(*node)
    }

    pub(super) fn text(&self, key: &str) -> Option<Text> {
        let node = self.node(key)?;
        match &node.value {
            NodeValue::Scalar { text, .. } => Some(Text { value: text.clone(), origin: node.origin.clone() }),
            _ => None,
        }
    }

    pub(super) fn word(&self, key: &str) -> Option<String> {
        self.text(key).map(|text| text.value.trim().to_owned())
    }

    pub(super) fn boolean(&self, key: &str) -> Option<bool> {
        self.word(key).map(|word| matches!(word.to_lowercase().as_str(), "true" | "yes" | "on"))
    }

    /// The items of a list; those of a mapping by name, as older models have them, are not.
    pub(super) fn list(&self, key: &str) -> &'n [Node] {
        match self.node(key).map(|node| &node.value) {
            Some(NodeValue::List(items)) => items,
            _ => &[],
        }
    }

    /// Where a key stands, else the whole.
    pub(super) fn span_of(&self, key: &str) -> Span {
        let found = self.entries.iter().find(|(name, ..)| name == key);
        found.map_or_else(|| self.span.clone(), |(_, key, _)| key.origin.span())
    }

    /// What the key is called where the model was written.
    pub(super) fn has(&self, key: &str) -> bool {
        self.node(key).is_some()
    }

    /// The key that is written where one was most likely meant.
    pub(super) fn slip_of(&self, key: &str) -> Option<&str> {
        const OTHERS: [&str; 7] = ["name", "sql", "title", "description", "format", "meta", "filters"];
        let written = self.entries.iter().filter(|(name, ..)| !OTHERS.contains(&name.as_str()));
        likely(key, written.map(|(_, key, _)| &*key.text))
    }

    /// Reports a key that has no counterpart, if it is there.
    pub(super) fn drop_key(&self, key: &str, cure: &str, findings: &mut Vec<Diagnostic>) -> bool {
        let is_there = self.has(key);
        if is_there {
            findings.push(left_out(self.span_of(key), format!("`{key}` of {} is not carried over", self.what), cure));
        }
        is_there
    }

    /// Reports every key that was never asked for.
    pub(super) fn finish(self, findings: &mut Vec<Diagnostic>) {
        let asked = self.asked.borrow();
        for (name, key, _) in self.entries.iter().filter(|(name, ..)| !asked.contains(name)) {
            let what = format!("`{}` of {} is not carried over: there is nothing like it here", key.text, self.what);
            let cure = format!("leave `{name}` out, or keep it in `meta` for people to read");
            findings.push(left_out(key.origin.span(), what, cure));
        }
    }
}

/// A value as it was written.
pub(super) fn yaml_of(node: &Node) -> Yaml {
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
