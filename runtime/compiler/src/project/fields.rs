//! Reads the keys of one YAML mapping, and reports their mistakes.
//!
//! In: a [`Node`]. Out: values of the requested types. Every unknown key, wrong type and missing key becomes a
//! diagnostic with its place, and reading continues. Not here: the meaning of keys.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::keys::{self, Kind, MappingKeys, Words};
use super::yaml::mapping::{self, Mapping};
use super::yaml::{Key, Node, NodeValue, Plain};
use crate::diagnostic::{Code, Diagnostic};
use crate::snippet::likely_word;
use crate::text::nearest::{in_backticks, likely, nearest};
use crate::text::{Origin, Text, shorten};

/// The name of a mapping in messages, such as ``measure `revenue` ``. It is formatted only when a message is needed.
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

/// The ownership of a mapping: either only this reader reads its keys, or other readers read further keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ownership {
    Exclusive,
    Shared,
}

/// One mapping whose keys are known.
pub(super) struct Fields<'n, 'd> {
    shape: &'static MappingKeys,
    what: What<'n>,
    /// The place of diagnostics about the mapping: its name, or else its first key.
    origin: Origin,
    /// The entries by the canonical name of each key, even if the key is misspelt.
    entries: Vec<(&'static str, &'n Key, &'n Node)>,
    diagnostics: &'d mut Vec<Diagnostic>,
}

impl<'n, 'd> Fields<'n, 'd> {
    /// Opens a mapping. Reports missing required keys. `None` if the node is not a mapping, which is reported.
    pub(super) fn open(
        node: &'n Node,
        shape: &'static MappingKeys,
        diagnostics: &'d mut Vec<Diagnostic>,
    ) -> Option<Self> {
        Fields::open_as(node, shape, shape.called, diagnostics)
    }

    /// Opens a mapping under a different name for messages.
    pub(super) fn open_as(
        node: &'n Node,
        shape: &'static MappingKeys,
        what: impl Into<Cow<'static, str>>,
        diagnostics: &'d mut Vec<Diagnostic>,
    ) -> Option<Self> {
        Fields::open_all(node, shape, what, Ownership::Exclusive, diagnostics)
    }

    /// Opens a mapping in which other readers have keys of their own. An unknown key is reported only if it is
    /// certainly a typing mistake of a key of `shape`.
    pub(super) fn open_partly(
        node: &'n Node,
        shape: &'static MappingKeys,
        diagnostics: &'d mut Vec<Diagnostic>,
    ) -> Option<Self> {
        Fields::open_all(node, shape, shape.called, Ownership::Shared, diagnostics)
    }

    fn open_all(
        node: &'n Node,
        shape: &'static MappingKeys,
        what: impl Into<Cow<'static, str>>,
        ownership: Ownership,
        diagnostics: &'d mut Vec<Diagnostic>,
    ) -> Option<Self> {
        let mut what = What { kind: what.into(), name: None };
        let NodeValue::Map(map) = &node.value else {
            diagnostics.push(wrong_type(&what, "a mapping", node).hint(mapping_example(shape, node)));
            return None;
        };
        let mut origin = map.first().map_or_else(|| node.origin.clone(), |(key, _)| key.origin.clone());
        if let Some((_, Node { value: NodeValue::Scalar { text, .. }, origin: place })) =
            map.iter().find(|(key, _)| &*key.text == "name")
        {
            what.name = Some(text);
            origin = place.clone();
        }
        let is_own = |key: &Key| {
            let is_certain = || matches!(Meant::of(&key.text, shape), Meant::Certain(_));
            ownership == Ownership::Exclusive || shape.key(&key.text).is_some() || is_certain()
        };
        let mapping = Mapping::new(map.iter().filter(|(key, _)| is_own(key)), &what, diagnostics);
        let mut fields = Fields { shape, what, origin, entries: Vec::with_capacity(map.len()), diagnostics };
        for (key, value) in mapping.entries() {
            fields.enter(key, value, &mapping);
        }
        for key in shape.keys.iter().filter(|key| key.is_required) {
            if !fields.has(key.name) {
                fields.missing(key.name);
            }
        }
        Some(fields)
    }

    fn enter(&mut self, key: &'n Key, value: &'n Node, mapping: &Mapping<'_>) {
        if let Some(known) = self.shape.key(&key.text) {
            self.entries.push((known.name, key, value));
            return;
        }
        let meant = Meant::of(&key.text, self.shape);
        self.diagnostics.push(unknown_key(key, &self.what, self.shape, meant.name()));
        // A certain typing mistake is read as the key that was meant, so that it has no further diagnostics.
        if let Meant::Certain(name) = meant
            && mapping.get(name).is_none()
            && !self.has(name)
        {
            self.entries.push((name, key, value));
        }
    }

    /// Returns the known keys of the mapping, each with the spelling in the file.
    pub(super) fn keys(&self) -> Vec<(&'static str, Arc<str>)> {
        self.entries.iter().map(|(name, key, _)| (*name, Arc::clone(&key.text))).collect()
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

    /// Returns the value of a key. A key without a value is reported and counts as absent.
    pub(super) fn node(&mut self, key: &str) -> Option<&'n Node> {
        debug_assert!(self.shape.key(key).is_some(), "{} has no `{key}`", self.shape.called);
        let (_, name, node) = *self.entries.iter().find(|(name, ..)| *name == key)?;
        if matches!(node.value, NodeValue::Null) {
            let hint = format!("Write a value after the colon, as in `{}`, or remove the key.", self.example(key));
            self.diagnostics.push(
                Diagnostic::error(Code::MissingValue, format!("`{key}` of {} has no value", self.what))
                    .hint(hint)
                    .at(name.origin.span()),
            );
            return None;
        }
        Some(node)
    }

    /// Returns an example of `key: value` for this mapping.
    pub(super) fn example(&self, key: &str) -> String {
        let example = self.shape.key(key).map_or("…", |key| key.example);
        let name = self.what.name.filter(|name| is_snake_case(name)).unwrap_or("some_name");
        format!("{key}: {}", example.replace("$name", name))
    }

    /// Returns whether the mapping's shape has the key.
    pub(super) fn knows(&self, key: &str) -> bool {
        self.shape.key(key).is_some()
    }

    /// Returns whether the mapping has none of the keys of which its shape requires at least one.
    pub(super) fn lacks_all(&self) -> bool {
        !self.shape.one_of.is_empty() && !self.shape.one_of.iter().any(|key| self.has(key))
    }

    /// Returns whether the key has no usable value: null, or a value of a different kind.
    pub(super) fn is_broken(&self, key: &str) -> bool {
        let Some(node) = self.nullable(key) else { return false };
        match (&node.value, self.shape.key(key).map(|key| &key.kind)) {
            (NodeValue::Null, _) => true,
            (NodeValue::Scalar { .. }, Some(Kind::Text | Kind::Texts)) => false,
            (NodeValue::List(items), Some(Kind::Texts)) => !items.is_empty(),
            (NodeValue::Map(map), Some(Kind::WordsByName(..))) => !map.is_empty(),
            _ => true,
        }
    }

    /// Returns the second of two keys that exclude each other.
    pub(super) fn conflicting(&self) -> Option<&'n Origin> {
        let mut apart = self.entries.iter().filter(|(name, ..)| self.shape.apart.contains(name));
        apart.next()?;
        apart.next().map(|(_, key, _)| &key.origin)
    }

    /// Returns the value of a key that may be null.
    pub(super) fn nullable(&self, key: &str) -> Option<&'n Node> {
        debug_assert!(self.shape.key(key).is_some(), "{} has no `{key}`", self.shape.called);
        self.entries.iter().find(|(name, ..)| *name == key).map(|(.., node)| *node)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        debug_assert!(self.shape.key(key).is_some(), "{} has no `{key}`", self.shape.called);
        self.entries.iter().any(|(name, ..)| *name == key)
    }

    pub(super) fn key_origin(&self, key: &str) -> Option<&'n Origin> {
        self.entries.iter().find(|(name, ..)| *name == key).map(|(_, key, _)| &key.origin)
    }

    pub(super) fn text(&mut self, key: &str) -> Option<Text> {
        let node = self.node(key)?;
        let label = format_args!("`{key}` of {}", self.what);
        if let NodeValue::Scalar { text, .. } = &node.value {
            return Some(Text { value: Arc::clone(text), origin: node.origin.clone() });
        }
        let hint = match reference_in_braces(node) {
            Some(reference) => format!("Put it in quotes: `{key}: \"{reference}\"`."),
            None => format!("Write one string, as in `{}`.", self.example(key)),
        };
        self.diagnostics.push(wrong_type(&label, "a string", node).hint(hint));
        None
    }

    pub(super) fn words(&mut self, key: &str) -> Option<Arc<str>> {
        self.text(key).map(|text| text.value)
    }

    /// Reports that a key is missing. Keys that the shape requires are reported when the mapping is opened.
    pub(super) fn missing(&mut self, key: &str) {
        self.diagnostics.push(
            Diagnostic::error(Code::MissingField, format!("{} has no `{key}`", self.what))
                .hint(format!("Add `{}`.", self.example(key)))
                .at(self.origin.span()),
        );
    }

    /// Reads the name of the entry, which must be in snake_case; `None` if it is unusable, which is reported.
    pub(super) fn name(&mut self) -> Option<Text> {
        let (name, is_usable) = self.name_or_place();
        is_usable.then_some(name)
    }

    /// Reads the name, and returns whether it can be used. A name that cannot be used is reported. The text in the
    /// file, or else the line number, is then returned as the name, so that the mapping's other keys can be checked.
    pub(super) fn name_or_place(&mut self) -> (Text, bool) {
        let Some(name) = self.text("name") else {
            let value = format!("line {}", self.origin.line).into();
            return (Text { value, origin: self.origin.clone() }, false);
        };
        let checked = check_name(&name, &self.what.kind);
        let is_usable = checked.is_ok();
        self.diagnostics.extend(checked.err());
        (name, is_usable)
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
        self.report(wrong_boolean(key, &self.what, node));
        // The most likely value is returned, so that items that depend on this value are not reported as well.
        match &node.value {
            NodeValue::Scalar { text, .. } => likely(text, BOOLEANS).map_or(default, |word| word == "true"),
            _ => default,
        }
    }

    /// Reads a key whose value is one of several words.
    pub(super) fn choice<T: Copy>(&mut self, key: &str, words: &Words<T>) -> Option<T> {
        let text = self.text(key)?;
        let found = choice_of(&text, &format_args!("`{key}` of {}", self.what), words);
        found.map_err(|diagnostic| self.report(diagnostic)).ok()
    }

    /// Returns the value of the known word that an unknown word most likely means. Reports nothing.
    pub(super) fn likely_choice<T: Copy>(&self, key: &str, words: &Words<T>) -> Option<T> {
        let NodeValue::Scalar { text, .. } = &self.nullable(key)?.value else { return None };
        let meant = meant_word(text.trim(), words)?;
        words.list.iter().find(|(word, _)| *word == meant).map(|(_, value)| *value)
    }

    /// Reads a list; empty if the key is absent or its value is not a list, which is reported.
    pub(super) fn list(&mut self, key: &str) -> &'n [Node] {
        let Some(node) = self.node(key) else { return &[] };
        if let NodeValue::List(items) = &node.value {
            return items;
        }
        let label = format!("`{key}` of {}", self.what);
        let shape = self.shape.key(key).and_then(|key| match &key.kind {
            Kind::List(shape) | Kind::ListOrNames(shape) | Kind::WordsOrMappings(_, shape) => Some(*shape),
            _ => None,
        });
        self.diagnostics.push(wrong_type(&label, "a list", node).hint(list_example(node, shape)));
        &[]
    }

    /// Reads a list of strings. A single string is a list of one.
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

    /// Reads a list of strings, and reports an empty list, whose meaning is unclear.
    pub(super) fn some_texts(&mut self, key: &str) -> Vec<Text> {
        if let Some((_, _, node)) = self.entries.iter().find(|(name, ..)| *name == key)
            && matches!(&node.value, NodeValue::List(items) if items.is_empty())
        {
            let hint = format!("Write names, as in `{}`, or remove the key.", self.example(key));
            let message = format!("`{key}` of {} is an empty list", self.what);
            self.diagnostics.push(Diagnostic::error(Code::MissingValue, message).hint(hint).at(node.origin.span()));
            return Vec::new();
        }
        self.texts(key)
    }
}

/// Returns the text of a scalar; `None` for other values, which are reported.
pub(super) fn text_of(node: &Node, label: &dyn fmt::Display, diagnostics: &mut Vec<Diagnostic>) -> Option<Text> {
    if let NodeValue::Scalar { text, .. } = &node.value {
        return Some(Text { value: Arc::clone(text), origin: node.origin.clone() });
    }
    let hint = match reference_in_braces(node) {
        Some(reference) => format!("Put it in quotes: `\"{reference}\"`."),
        None => "Write one string. Put a string that contains `: ` or begins with `{` or `[` in quotes.".to_owned(),
    };
    diagnostics.push(wrong_type(label, "a string", node).hint(hint));
    None
}

/// Returns the source of an unquoted reference such as `{orders.region}`, which YAML reads as a mapping whose keys have
/// no values.
fn reference_in_braces(node: &Node) -> Option<&str> {
    let NodeValue::Map(map) = &node.value else { return None };
    if !map.iter().all(|(_, value)| matches!(value.value, NodeValue::Null)) {
        return None;
    }
    let reference = node.origin.file.text.get(node.origin.offset as usize..)?.strip_prefix('{')?;
    let length = reference.find(['}', '\n']).filter(|end| reference[*end..].starts_with('}'))?;
    node.origin.file.text.get(node.origin.offset as usize..node.origin.offset as usize + length + 2)
}

pub(super) fn choice_of<T: Copy>(text: &Text, label: &dyn fmt::Display, words: &Words<T>) -> Result<T, Diagnostic> {
    let wanted = text.value.trim();
    if let Some((_, value)) = words.list.iter().find(|(word, _)| *word == wanted) {
        return Ok(*value);
    }
    let known: Vec<&str> = words.list.iter().map(|(word, _)| *word).collect();
    let list = in_backticks(known.iter().copied());
    let hint = match (meant_word(wanted, words), known.as_slice()) {
        (_, [only]) => format!("Write `{only}`."),
        (Some(meant), _) => format!("Did you mean `{meant}`? Available values: {list}."),
        (None, _) => format!("Write one of {list}."),
    };
    Err(Diagnostic::error(Code::UnknownValue, format!("{label} is `{}`", shorten(wanted))).hint(hint).at(text.span()))
}

/// Returns the known word that an unknown word most likely means.
fn meant_word<T>(wanted: &str, words: &Words<T>) -> Option<&'static str> {
    let lower = wanted.to_ascii_lowercase();
    let also = words.also.iter().find(|(word, _)| *word == lower).map(|(_, meant)| *meant);
    also.or_else(|| likely_word(wanted, words.list.iter().map(|(word, _)| *word)))
}

/// The kinds of items that have a `title` besides the name.
const TITLED: [&str; 5] = ["cube", "measure", "dimension", "segment", "metric"];

fn with_article(kind: &str) -> String {
    match kind.chars().next() {
        _ if kind.starts_with("the ") => kind.to_owned(),
        Some('a' | 'e' | 'i' | 'o' | 'u') => format!("an {kind}"),
        _ => format!("a {kind}"),
    }
}

/// Checks that a name is in snake_case and has at most 200 characters.
pub(super) fn check_name(name: &Text, kind: &str) -> Result<(), Diagnostic> {
    let text = &*name.value;
    if is_snake_case(text) && text.len() <= 200 {
        return Ok(());
    }
    let hint = if text.len() > 200 {
        "Shorten it to at most 200 characters.".to_owned()
    } else {
        match snake_case(text) {
            Some(better) if TITLED.contains(&kind) => format!("Write `{better}`, and the display name as `title`."),
            Some(better) => format!("Write `{better}`."),
            None => "Write a name of lower-case letters, digits and `_` that begins with a letter.".to_owned(),
        }
    };
    Err(Diagnostic::error(
        Code::InvalidName,
        format!("the name of {} is `{}`, which is not snake_case", with_article(kind), shorten(text)),
    )
    .hint(hint)
    .at(name.span()))
}

pub(super) fn is_snake_case(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

/// Returns whether `text` is an invalid name whose author most likely meant the name `valid`.
pub(crate) fn is_invalid_form_of(text: &str, valid: &str) -> bool {
    !is_snake_case(text) && snake_case(text).is_some_and(|better| better == valid)
}

pub(super) fn snake_case(text: &str) -> Option<String> {
    let mut better = String::new();
    let mut is_after_small = false;
    for c in text.trim().chars() {
        let is_word_begun = is_after_small;
        is_after_small = c.is_ascii_lowercase();
        match c {
            'A'..='Z' => {
                if is_word_begun {
                    better.push('_');
                }
                better.push(c.to_ascii_lowercase());
            }
            'a'..='z' | '0'..='9' | '_' => better.push(c),
            _ if !better.ends_with('_') => better.push('_'),
            _ => {}
        }
    }
    let mut better = better.trim_matches('_').to_owned();
    if better.starts_with(|c: char| c.is_ascii_digit()) && better.contains(|c: char| c.is_ascii_lowercase()) {
        better.insert(0, '_');
    }
    is_snake_case(&better).then_some(better)
}

/// The known key that the author most likely meant by an unknown one.
#[derive(Clone, Copy)]
enum Meant {
    /// The unknown key is a typing mistake, or the name that another tool uses for this key.
    Certain(&'static str),
    Likely(&'static str),
    Nothing,
}

impl Meant {
    fn of(key: &str, shape: &MappingKeys) -> Meant {
        let lower = key.to_ascii_lowercase();
        let likely = likely(key, shape.names());
        let also = shape.keys.iter().find(|known| known.also.contains(&&*lower)).map(|known| known.name);
        match (likely.filter(|meant| is_typing_mistake(key, meant)).or(also), likely) {
            (Some(name), _) => Meant::Certain(name),
            (None, Some(name)) => Meant::Likely(name),
            (None, None) => Meant::Nothing,
        }
    }

    fn name(self) -> Option<&'static str> {
        match self {
            Meant::Certain(name) | Meant::Likely(name) => Some(name),
            Meant::Nothing => None,
        }
    }
}

/// Returns whether two names differ only by a typing mistake.
pub(super) fn is_typing_mistake(key: &str, meant: &str) -> bool {
    let plain = |name: &str| -> String {
        name.chars().filter(|c| c.is_alphanumeric()).map(|c| c.to_ascii_lowercase()).collect()
    };
    let (key, meant) = (plain(key), plain(meant));
    let allowed = if meant.len() > 5 { 2 } else { 1 };
    key == meant || (key.len() > 2 && strsim::osa_distance(&key, &meant) <= allowed)
}

fn unknown_key(key: &Key, what: &dyn fmt::Display, shape: &MappingKeys, meant: Option<&str>) -> Diagnostic {
    let names: Vec<&str> = shape.names().collect();
    let diagnostic = mapping::unknown_key(key, &names, what);
    let holds = |known: &&keys::Key| matches!(known.kind, Kind::Mapping(inner) if inner.key(&key.text).is_some());
    match (meant, shape.keys.iter().find(holds)) {
        (Some(best), _) => {
            let near = nearest(&key.text, shape.names(), shape.keys.len());
            diagnostic.hint(format!("Did you mean `{best}`? Available keys: {}.", in_backticks(near)))
        }
        (None, Some(around)) => diagnostic.hint(format!("Put it under `{}:`.", around.name)),
        (None, None) => diagnostic,
    }
}

pub(super) fn wrong_type(label: &dyn fmt::Display, wanted: &str, node: &Node) -> Diagnostic {
    let found = match &node.value {
        NodeValue::Null => "nothing".to_owned(),
        NodeValue::Scalar { text, .. } => format!("`{}`", shorten(text)),
        NodeValue::List(_) => "a list".to_owned(),
        NodeValue::Map(_) => "a mapping".to_owned(),
    };
    let mut origin = node.origin.clone();
    // A mapping in block style begins with its first key. Only this key is marked.
    if let NodeValue::Map(map) = &node.value
        && let Some((first, _)) = map.first()
        && first.origin.offset == origin.offset
    {
        origin.length = first.origin.length;
    }
    Diagnostic::error(Code::WrongType, format!("{label} must be {wanted}, found {found}")).at(origin.span())
}

const BOOLEANS: [&str; 2] = ["true", "false"];

/// Returns the diagnostic for a value that is not a boolean. A string in quotes may look like one.
fn wrong_boolean(key: &str, what: &dyn fmt::Display, node: &Node) -> Diagnostic {
    let label = format!("`{key}` of {what}");
    match &node.value {
        NodeValue::Scalar { text, plain: Plain::Text } if BOOLEANS.contains(&&**text) => {
            let message = format!("{label} must be true or false, found the string `\"{text}\"`");
            let hint = format!("Remove the quotes: `{key}: {text}`.");
            Diagnostic::error(Code::WrongType, message).hint(hint).at(node.origin.span())
        }
        _ => wrong_type(&label, "true or false", node).hint(format!("Write `{key}: true` or `{key}: false`.")),
    }
}

/// Returns an example of a mapping, for a place where another kind of value was found.
fn mapping_example(shape: &MappingKeys, found: &Node) -> String {
    let mut shown: Vec<&keys::Key> = shape.keys.iter().filter(|key| key.is_required).collect();
    if shown.len() < 2 {
        shown = shape.keys.iter().take(3).collect();
    }
    let text = match &found.value {
        NodeValue::Scalar { text, .. } => Some(&**text),
        _ => None,
    };
    let parts = shown.iter().map(|key| match text {
        Some(name) if key.name == "name" && is_snake_case(name) => format!("name: {name}"),
        _ => format!("{}: …", key.name),
    });
    let example = format!("Write keys and values, as in `{{{}}}`.", parts.collect::<Vec<_>>().join(", "));
    match (text, shape.keys) {
        // The text is most likely the value of the only key.
        (Some(text), [only]) => format!("Write `{{{}: \"{}\"}}`.", only.name, shorten(text)),
        _ => example,
    }
}

/// Returns an example of a list, for a place where another kind of value was found.
pub(super) fn list_example(found: &Node, shape: Option<&MappingKeys>) -> String {
    match (&found.value, shape) {
        (NodeValue::Map(map), _) => {
            let (key, value) = map.first().map_or(("name", "…"), |(key, node)| {
                let value = if let NodeValue::Scalar { text, .. } = &node.value { text } else { "…" };
                (&key.text, value)
            });
            format!("Begin each item with a dash, as in `- {key}: {}`.", shorten(value))
        }
        (NodeValue::Scalar { text, .. }, Some(MappingKeys { keys: [only], .. })) => {
            format!("Write a list, as in `- {}: \"{}\"`.", only.name, shorten(text))
        }
        (NodeValue::Scalar { text, .. }, _) => format!("Write a list, as in `[{}]`.", shorten(text)),
        _ => "Begin each item with `- ` on its own line, or write `[a, b]`.".to_owned(),
    }
}
