//! Reads the keys of one YAML mapping, and reports what is wrong with them.
//!
//! In: a [`Node`]. Out: values of the types asked for; every unknown key, wrong type and missing key
//! becomes a diagnostic with its place, and reading goes on. Not here: what the keys mean.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::source::{Origin, Text};
use super::yaml::{Key, Node, NodeValue, Plain};
use crate::diagnostic::Diagnostic;
use crate::model::nearest::{likely, nearest};

/// ``measure `revenue` ``: what the messages call a mapping. Only put into words when one is written.
#[derive(Clone)]
struct What<'n> {
    kind: Cow<'static, str>,
    name: Option<&'n str>,
}

impl fmt::Display for What<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name {
            Some(name) => write!(f, "{} `{}`", self.kind, shorten(name)),
            None => f.write_str(&self.kind),
        }
    }
}

/// One mapping whose keys are known.
pub(super) struct Fields<'n, 'd> {
    what: What<'n>,
    origin: Origin,
    entries: Vec<(&'n Key, &'n Node)>,
    diagnostics: &'d mut Vec<Diagnostic>,
}

impl<'n, 'd> Fields<'n, 'd> {
    /// Opens a mapping; `None`, with a report, when it is something else.
    pub(super) fn open(
        node: &'n Node,
        what: impl Into<Cow<'static, str>>,
        known: &[&str],
        diagnostics: &'d mut Vec<Diagnostic>,
    ) -> Option<Self> {
        let mut what = What { kind: what.into(), name: None };
        let NodeValue::Map(map) = &node.value else {
            let first = known.iter().take(3).map(|key| format!("{key}: …")).collect::<Vec<_>>().join(", ");
            diagnostics.push(
                wrong_type(&what, "a mapping", node).hint(format!("write keys and values, for example {{{first}}}")),
            );
            return None;
        };
        if let Some((_, Node { value: NodeValue::Scalar { text, .. }, .. })) =
            map.iter().find(|(key, _)| &*key.text == "name")
        {
            what.name = Some(text);
        }
        let mut entries: Vec<(&Key, &Node)> = Vec::with_capacity(map.len());
        for (key, value) in map {
            if let Some((first, _)) = entries.iter().find(|(seen, _)| seen.text == key.text) {
                diagnostics.push(
                    Diagnostic::error("duplicate-key", format!("`{}` stands twice in {what}", key.text))
                        .hint(format!("keep one; the first is in line {}", first.origin.line))
                        .at(key.origin.span()),
                );
                continue;
            }
            if !known.contains(&&*key.text) {
                diagnostics.push(unknown_key(key, &what, known));
                continue;
            }
            entries.push((key, value));
        }
        Some(Fields { what, origin: node.origin.clone(), entries, diagnostics })
    }

    pub(super) fn what(&self) -> String {
        self.what.to_string()
    }

    pub(super) fn origin(&self) -> &Origin {
        &self.origin
    }

    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    pub(super) fn diagnostics(&mut self) -> &mut Vec<Diagnostic> {
        self.diagnostics
    }

    /// The value of a key; a key without a value is reported and counts as absent.
    pub(super) fn node(&mut self, key: &str) -> Option<&'n Node> {
        let (name, node) = *self.entries.iter().find(|(name, _)| &*name.text == key)?;
        if matches!(node.value, NodeValue::Null) {
            self.diagnostics.push(
                Diagnostic::error("missing-value", format!("`{key}` of {} has no value", self.what))
                    .hint("write a value after the colon, or remove the key")
                    .at(name.origin.span()),
            );
            return None;
        }
        Some(node)
    }

    /// The value of a key for which null is a value too.
    pub(super) fn nullable(&self, key: &str) -> Option<&'n Node> {
        self.entries.iter().find(|(name, _)| &*name.text == key).map(|(_, node)| *node)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|(name, _)| &*name.text == key)
    }

    pub(super) fn key_origin(&self, key: &str) -> Option<&'n Origin> {
        self.entries.iter().find(|(name, _)| &*name.text == key).map(|(name, _)| &name.origin)
    }

    pub(super) fn text(&mut self, key: &str) -> Option<Text> {
        let node = self.node(key)?;
        text_of(node, &format_args!("`{key}` of {}", self.what), self.diagnostics)
    }

    pub(super) fn words(&mut self, key: &str) -> Option<Arc<str>> {
        self.text(key).map(|text| text.value)
    }

    /// A text that must be there.
    pub(super) fn required(&mut self, key: &'static str, example: &str) -> Option<Text> {
        if !self.has(key) {
            self.missing(key, example);
            return None;
        }
        self.text(key)
    }

    pub(super) fn missing(&mut self, key: &str, example: &str) {
        self.diagnostics.push(
            Diagnostic::error("missing-field", format!("{} has no `{key}`", self.what))
                .hint(format!("add `{key}: {example}`"))
                .at(self.origin.span()),
        );
    }

    /// The snake_case name that everything has.
    pub(super) fn name(&mut self) -> Option<Text> {
        let name = self.required("name", "some_name")?;
        if let Err(diagnostic) = check_name(&name, &self.what.kind) {
            self.report(diagnostic);
            return None;
        }
        Some(name)
    }

    pub(super) fn boolean(&mut self, key: &str, default: bool) -> bool {
        let Some(node) = self.node(key) else { return default };
        if let NodeValue::Scalar { text, plain } = &node.value {
            match (plain, &**text) {
                (Plain::Boolean(value), _) => return *value,
                (_, "yes" | "on") => return true,
                (_, "no" | "off") => return false,
                _ => {}
            }
        }
        let diagnostic = wrong_type(&format_args!("`{key}` of {}", self.what), "true or false", node);
        self.report(diagnostic.hint(format!("write `{key}: true` or `{key}: false`")));
        default
    }

    /// One of several words; `synonyms` are what people write instead.
    pub(super) fn choice<T: Copy>(
        &mut self,
        key: &str,
        choices: &[(&'static str, T)],
        synonyms: &[(&'static str, &'static str)],
    ) -> Option<T> {
        let text = self.text(key)?;
        let found = choice_of(&text, &format_args!("`{key}` of {}", self.what), choices, synonyms);
        found.map_err(|diagnostic| self.report(diagnostic)).ok()
    }

    /// The items of a list; a single item may stand without brackets where `or_one` says so.
    pub(super) fn list(&mut self, key: &str) -> &'n [Node] {
        let Some(node) = self.node(key) else { return &[] };
        if let NodeValue::List(items) = &node.value {
            return items;
        }
        let diagnostic = wrong_type(&format_args!("`{key}` of {}", self.what), "a list", node);
        self.report(diagnostic.hint("begin each item with `- ` on a line of its own, or write [a, b]"));
        &[]
    }

    /// A list of texts; one text alone is a list of one.
    pub(super) fn texts(&mut self, key: &str) -> Vec<Text> {
        let Some(node) = self.node(key) else { return Vec::new() };
        if matches!(node.value, NodeValue::Scalar { .. }) {
            return self.text(key).into_iter().collect();
        }
        let items = self.list(key);
        let what = self.what.clone();
        let label = format_args!("an item of `{key}` of {what}");
        items.iter().filter_map(|item| text_of(item, &label, self.diagnostics)).collect()
    }
}

/// A scalar as text.
pub(super) fn text_of(node: &Node, label: &dyn fmt::Display, diagnostics: &mut Vec<Diagnostic>) -> Option<Text> {
    if let NodeValue::Scalar { text, .. } = &node.value {
        return Some(Text { value: Arc::clone(text), origin: node.origin.clone() });
    }
    let mut diagnostic = wrong_type(label, "a text", node);
    if matches!(node.value, NodeValue::Map(_)) {
        diagnostic = diagnostic.hint("put it in quotes: a text that begins with `{` or holds `: ` needs them");
    } else {
        diagnostic = diagnostic.hint("write one text here");
    }
    diagnostics.push(diagnostic);
    None
}

pub(super) fn choice_of<T: Copy>(
    text: &Text,
    label: &dyn fmt::Display,
    choices: &[(&'static str, T)],
    synonyms: &[(&'static str, &'static str)],
) -> Result<T, Diagnostic> {
    let wanted = text.value.trim();
    if let Some((_, value)) = choices.iter().find(|(word, _)| *word == wanted) {
        return Ok(*value);
    }
    let lower = wanted.to_ascii_lowercase();
    let known: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
    let meant = synonyms
        .iter()
        .find(|(word, _)| *word == lower)
        .map(|(_, meant)| *meant)
        .or_else(|| likely(wanted, known.iter().copied()));
    let list = known.join(", ");
    let hint = match meant {
        Some(meant) => format!("write `{meant}`; possible: {list}"),
        None => format!("possible: {list}"),
    };
    Err(Diagnostic::error("unknown-value", format!("{label} is `{}`", shorten(wanted))).hint(hint).at(text.span()))
}

/// Names are snake_case and at most 200 characters.
pub(super) fn check_name(name: &Text, kind: &str) -> Result<(), Diagnostic> {
    let text = &*name.value;
    if is_snake_case(text) && text.len() <= 200 {
        return Ok(());
    }
    let hint = if text.len() > 200 {
        "at most 200 characters".to_owned()
    } else {
        match snake_case(text) {
            Some(better) => format!("write `{better}`; a readable name goes into `title`"),
            None => "small letters, digits and `_`, beginning with a letter".to_owned(),
        }
    };
    Err(Diagnostic::error(
        "invalid-name",
        format!("the name of a {kind} is `{}`, which is not snake_case", shorten(text)),
    )
    .hint(hint)
    .at(name.span()))
}

pub(super) fn is_snake_case(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

fn snake_case(text: &str) -> Option<String> {
    let mut better = String::new();
    for c in text.trim().chars() {
        match c {
            'A'..='Z' => {
                if better.ends_with(|p: char| p.is_ascii_lowercase()) {
                    better.push('_');
                }
                better.push(c.to_ascii_lowercase());
            }
            'a'..='z' | '0'..='9' | '_' => better.push(c),
            _ if !better.ends_with('_') => better.push('_'),
            _ => {}
        }
    }
    let better = better.trim_matches('_').to_owned();
    is_snake_case(&better).then_some(better)
}

fn unknown_key(key: &Key, what: &dyn fmt::Display, known: &[&str]) -> Diagnostic {
    let near = nearest(&key.text, known.iter().copied(), known.len());
    let hint = match likely(&key.text, known.iter().copied()) {
        Some(best) => format!("did you mean `{best}`? possible: {}", near.join(", ")),
        None => format!("remove it; possible: {}", near.join(", ")),
    };
    Diagnostic::error("unknown-key", format!("{what} has an unknown key `{}`", shorten(&key.text)))
        .hint(hint)
        .at(key.origin.span())
}

fn wrong_type(label: &dyn fmt::Display, wanted: &str, node: &Node) -> Diagnostic {
    let found = match &node.value {
        NodeValue::Null => "nothing".to_owned(),
        NodeValue::Scalar { text, .. } => format!("`{}`", shorten(text)),
        NodeValue::List(_) => "a list".to_owned(),
        NodeValue::Map(_) => "a mapping".to_owned(),
    };
    Diagnostic::error("wrong-type", format!("{label} must be {wanted}, found {found}")).at(node.origin.span())
}

/// Enough of a value to recognise it.
pub(super) fn shorten(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= 60 && line.len() == text.len() {
        return text.to_owned();
    }
    line.chars().take(60).chain(std::iter::once('…')).collect()
}
