//! A mapping whose keys are known.
//!
//! In: the entries of a mapping of a YAML file, and the names of its keys. Out: the values by key, each key once;
//! duplicate and unknown keys become diagnostics at their places, with the nearest key as a hint. Not here: the
//! kinds of the values (`fields`).

use std::fmt::Display;

use super::{Key, Node, NodeValue};
use crate::diagnostic::{Code, Diagnostic};
use crate::text::nearest::{in_backticks, likely, nearest};
use crate::text::shorten;

/// The entries of one mapping, each key once.
#[derive(Clone, Default)]
pub struct Mapping<'n> {
    entries: Vec<(&'n Key, &'n Node)>,
}

impl<'n> Mapping<'n> {
    /// Reads the entries of a mapping. Reports each duplicate key and uses its first value. `label` is the name of the
    /// mapping in messages.
    pub fn new(
        entries: impl IntoIterator<Item = &'n (Key, Node)>,
        label: &dyn Display,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Self {
        let mut mapping = Mapping::default();
        for (key, value) in entries {
            match mapping.key(&key.text) {
                Some(first) => diagnostics.push(duplicate_key(key, first, label)),
                None => mapping.entries.push((key, value)),
            }
        }
        mapping
    }

    /// Returns the entries in the order of the file.
    pub fn entries(&self) -> impl Iterator<Item = (&'n Key, &'n Node)> {
        self.entries.iter().copied()
    }

    /// Returns a key with its place.
    pub fn key(&self, name: &str) -> Option<&'n Key> {
        self.entries.iter().find(|(key, _)| &*key.text == name).map(|(key, _)| *key)
    }

    /// Returns the value of a key.
    pub fn get(&self, name: &str) -> Option<&'n Node> {
        self.entries.iter().find(|(key, _)| &*key.text == name).map(|(_, value)| *value)
    }

    /// Returns the text of a key's value; `None` if the value is not a scalar.
    pub fn text(&self, name: &str) -> Option<&'n str> {
        match &self.get(name)?.value {
            NodeValue::Scalar { text, .. } => Some(text),
            NodeValue::Null | NodeValue::List(_) | NodeValue::Map(_) => None,
        }
    }

    /// Reports every key that is not one of `known`.
    pub fn report_unknown_keys(&self, known: &[&str], label: &dyn Display, diagnostics: &mut Vec<Diagnostic>) {
        let unknown = self.entries().map(|(key, _)| key).filter(|key| !known.contains(&&*key.text));
        diagnostics.extend(unknown.map(|key| unknown_key(key, known, label)));
    }
}

/// Returns the diagnostic of a key that is not one of `known`.
pub fn unknown_key(key: &Key, known: &[&str], label: &dyn Display) -> Diagnostic {
    let near = in_backticks(nearest(&key.text, known.iter().copied(), known.len()));
    let hint = match likely(&key.text, known.iter().copied()) {
        Some(meant) => format!("Did you mean `{meant}`? Available keys: {near}."),
        None if known.is_empty() => "Remove it.".to_owned(),
        None => format!("Remove it. Available keys: {near}."),
    };
    let message = format!("unknown key `{}` in {label}", shorten(&key.text));
    Diagnostic::error(Code::UnknownKey, message).hint(hint).at(key.origin.span())
}

fn duplicate_key(key: &Key, first: &Key, label: &dyn Display) -> Diagnostic {
    let message = format!("duplicate key `{}` in {label}", shorten(&key.text));
    let hint = format!("Keep one of them. The first is in line {}.", first.origin.line);
    Diagnostic::error(Code::DuplicateKey, message).hint(hint).at(key.origin.span())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::parse;
    use super::*;
    use crate::text::SourceFile;

    fn check(text: &str) -> (Vec<Option<String>>, Vec<(Code, u32)>) {
        let file = Arc::new(SourceFile { path: "a.yml".into(), text: text.into() });
        let node = parse(&file).expect("the text is YAML");
        let NodeValue::Map(entries) = &node.value else { panic!("the text is a mapping") };
        let mut diagnostics = Vec::new();
        let mapping = Mapping::new(entries, &"the file", &mut diagnostics);
        mapping.report_unknown_keys(&["name", "title"], &"the file", &mut diagnostics);
        let values = ["name", "title"].map(|key| mapping.text(key).map(str::to_owned));
        let places = diagnostics.iter().map(|found| (found.code, found.span.as_ref().map_or(0, |span| span.line)));
        (values.to_vec(), places.collect())
    }

    #[test]
    fn first_value_of_a_duplicate_key_is_used() {
        let (values, found) = check("name: a\nname: b\n");
        assert_eq!(values, [Some("a".to_owned()), None]);
        assert_eq!(found, [(Code::DuplicateKey, 2)]);
    }

    #[test]
    fn unknown_key_is_reported_at_its_place() {
        let (values, found) = check("name: a\ntitel: b\ntitle: [c]\n");
        assert_eq!(values, [Some("a".to_owned()), None]);
        assert_eq!(found, [(Code::UnknownKey, 2)]);
    }

    #[test]
    fn nearest_key_is_the_hint() {
        let file = Arc::new(SourceFile { path: "a.yml".into(), text: "titel: b\n".into() });
        let NodeValue::Map(entries) = parse(&file).expect("the text is YAML").value else { panic!("a mapping") };
        let hint = unknown_key(&entries[0].0, &["name", "title"], &"the file").hint;
        insta::assert_snapshot!(hint.expect("a hint"), @"Did you mean `title`? Available keys: `title`, `name`.");
    }
}
