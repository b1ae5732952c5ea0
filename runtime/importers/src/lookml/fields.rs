//! Reads the keys of one block.
//!
//! In: the items of a block. Out: values by key, and findings for the keys that were never read. Not here: the meaning
//! of the keys.

use std::cell::RefCell;
use std::collections::HashSet;

use terrane_compiler::diagnostic::{Diagnostic, Span};

use super::syntax::{Entry, Item, Value};
use crate::finding::left_out;

pub(super) struct Fields<'i> {
    /// A description such as ``measure `revenue` of view `orders` ``.
    pub(super) what: String,
    pub(super) span: Span,
    items: &'i [Item],
    read: RefCell<HashSet<&'i str>>,
}

impl<'i> Fields<'i> {
    pub(super) fn open(item: &'i Item, what: impl Into<String>) -> Self {
        Fields { what: what.into(), span: item.span.clone(), items: item.items(), read: RefCell::default() }
    }

    pub(super) fn all(&self, key: &str) -> impl Iterator<Item = &'i Item> {
        let found: Vec<&Item> = self.items.iter().filter(|item| item.key == key).collect();
        self.read.borrow_mut().extend(found.iter().map(|item| item.key.as_str()));
        found.into_iter()
    }

    /// Returns the last item with this key, which replaces earlier ones.
    pub(super) fn item(&self, key: &str) -> Option<&'i Item> {
        self.all(key).last()
    }

    pub(super) fn text(&self, key: &str) -> Option<&'i str> {
        match self.item(key).map(|item| &item.value) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.item(key).is_some()
    }

    pub(super) fn is_yes(&self, key: &str) -> bool {
        self.text(key).is_some_and(|word| matches!(word.to_lowercase().as_str(), "yes" | "true"))
    }

    /// Returns the entries of all lists with this key.
    pub(super) fn list(&self, key: &str) -> Vec<&'i Entry> {
        let entries = |item: &'i Item| match &item.value {
            Value::List(entries) => entries.as_slice(),
            _ => &[],
        };
        self.all(key).flat_map(entries).collect()
    }

    /// Returns the place of a key, or of the block if the key is missing.
    pub(super) fn span_of(&self, key: &str) -> Span {
        self.item(key).map_or_else(|| self.span.clone(), |item| item.span.clone())
    }

    /// Reports a key that has no counterpart, if the block has it.
    pub(super) fn drop_key(&self, key: &str, cure: &str, findings: &mut Vec<Diagnostic>) {
        for item in self.all(key) {
            findings.push(left_out(item.span.clone(), format!("`{key}` of {} is not imported", self.what), cure));
        }
    }

    /// Reports that the block is not imported.
    pub(super) fn reject(&self, reason: &str, cure: &str, findings: &mut Vec<Diagnostic>) {
        findings.push(left_out(self.span.clone(), format!("{} is not imported: {reason}", self.what), cure));
    }

    /// Reports every key that was never read.
    pub(super) fn finish(self, findings: &mut Vec<Diagnostic>) {
        let read = self.read.borrow();
        for item in self.items.iter().filter(|item| !read.contains(item.key.as_str())) {
            let what = format!("`{}` of {} is not imported: it has no counterpart", item.key, self.what);
            findings.push(left_out(item.span.clone(), what, "Write it into `meta` if people or clients need it."));
        }
    }
}
