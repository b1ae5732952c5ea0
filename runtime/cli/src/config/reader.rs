//! Reads settings key by key from the environment and the file.
//!
//! In: the parsed project file and the environment, which has priority. Out: typed values; every problem becomes a
//! diagnostic with its place or its variable, and reading continues. Keys that are never read are unknown. Not here:
//! the list of keys (`sections`).

use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use serde_json::Value as Json;
use terrane_compiler::diagnostic::{Code, Diagnostic, Severity};
use terrane_compiler::project::SourceFile;
use terrane_compiler::project::yaml::mapping::Mapping;
use terrane_compiler::project::yaml::{self, Node, NodeValue, Plain};
use terrane_compiler::text::nearest::likely;
use terrane_terminal::TerminalText;

use super::environment::{Environment, PREFIX};
use super::place::Place;
use super::settings::{ReadKeys, ValueKind};

/// Keys with two variables: one with the regular name, and one whose name the interface fixes. This table lists the
/// second name.
pub(super) const SPELLED: &[(&str, &str)] = &[
    ("security.jwt.secret", "SERVICE_SECURITY__JWT_SECRET"),
    ("security.jwt.algorithm", "SERVICE_SECURITY__JWT_ALGORITHM"),
    ("security.jwt.access_token_expiry", "SERVICE_SECURITY__JWT_ACCESS_EXPIRY"),
    ("security.jwt.refresh_token_expiry", "SERVICE_SECURITY__JWT_REFRESH_EXPIRY"),
    ("security.jwt.issuer", "SERVICE_SECURITY__JWT_ISSUER"),
    ("security.jwt.audience", "SERVICE_SECURITY__JWT_AUDIENCE"),
    ("log.level", "SERVICE_LOG_LEVEL"),
    ("log.format", "SERVICE_LOG_FORMAT"),
    ("log.timestamps", "SERVICE_LOG_TIMESTAMPS"),
    ("log.caller", "SERVICE_LOG_CALLER"),
    ("log.output", "SERVICE_LOG_OUTPUT"),
    ("log.file", "SERVICE_LOG_FILE"),
    ("log.max_size_mb", "SERVICE_LOG_MAX_SIZE_MB"),
    ("log.backup_count", "SERVICE_LOG_BACKUP_COUNT"),
    ("log.requests", "SERVICE_LOG_REQUESTS"),
    ("log.queries", "SERVICE_LOG_QUERIES"),
];

const SECURITY: [&str; 2] = ["SERVICE_SECURITY", "SERVICE_PLUGINS"];

/// A string that must not appear in logs and messages.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub(super) fn new(text: &str) -> Self {
        Secret(text.to_owned())
    }

    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A value with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WithPlace<T> {
    pub value: T,
    pub place: Place,
}

/// One mapping of the configuration.
pub(super) struct Section<'a> {
    environment: &'a Environment,
    /// The path of keys, such as `security.jwt`. Empty at the top level.
    path: String,
    /// The index in a list of mappings, such as `[0]`.
    item: String,
    /// True if the mapping is inside a list, whose items have no variables.
    is_in_list: bool,
    entries: Mapping<'a>,
    known: Vec<&'static str>,
    collected: &'a mut Collected,
}

/// The results that all sections collect.
#[derive(Default)]
pub(super) struct Collected {
    pub(super) diagnostics: Vec<Diagnostic>,
    pub(super) variables: BTreeSet<String>,
    pub(super) read_keys: ReadKeys,
    /// The prefixes of variables for keys that another module reads or that the user names.
    open_levels: Vec<String>,
}

/// A scalar, completed from the environment.
struct Scalar {
    text: String,
    place: Place,
}

impl<'a> Section<'a> {
    pub(super) fn top(node: Option<&'a Node>, environment: &'a Environment, collected: &'a mut Collected) -> Self {
        let mut section = Section {
            environment,
            path: String::new(),
            item: String::new(),
            is_in_list: false,
            entries: Mapping::default(),
            known: Vec::new(),
            collected,
        };
        if let Some(node) = node {
            section.open(node);
        }
        section
    }

    /// Reads the keys of a mapping. Other values are reported.
    fn open(&mut self, node: &'a Node) {
        let NodeValue::Map(map) = &node.value else {
            if !matches!(node.value, NodeValue::Null) {
                let message = format!("{} must be a mapping of keys and values", self.label());
                let diagnostic = Diagnostic::error(Code::WrongType, message);
                self.report(diagnostic.hint("Write `key: value` lines.").at(node.origin.span()));
            }
            return;
        };
        self.entries = Mapping::new(map, &self.label(), &mut self.collected.diagnostics);
    }

    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        self.collected.diagnostics.push(diagnostic);
    }

    /// Returns the name of the mapping for messages.
    fn label(&self) -> String {
        if self.path.is_empty() { "the project file".to_owned() } else { format!("`{}`", self.path) }
    }

    fn full(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Returns the names of the variables for a key. A name that the interface fixes comes first.
    fn variables(&self, key: &str) -> Vec<String> {
        // A key of a list item has no variable, because one variable would set the key in every item.
        if self.is_in_list {
            return Vec::new();
        }
        let path = self.full(key);
        let regular = format!("{PREFIX}{}", path.to_ascii_uppercase().replace('.', "__"));
        let spelled = SPELLED.iter().filter(|(known, _)| *known == path).map(|(_, name)| (*name).to_owned());
        spelled.chain([regular]).collect()
    }

    /// Marks a key as known, and returns its variable and its node.
    fn take(&mut self, key: &'static str) -> (Option<(String, &'a str)>, Option<&'a Node>) {
        self.known.push(key);
        let variables = self.variables(key);
        let environment = self.environment;
        let set = variables.iter().find_map(|name| environment.get(name).map(|value| (name.clone(), value)));
        self.collected.variables.extend(variables);
        let node = self.entries.get(key);
        let node = node.filter(|node| !matches!(node.value, NodeValue::Null));
        let variable = set.as_ref().map(|(name, text)| (name.as_str(), *text));
        let shown = self.shown(key);
        self.collected.read_keys.note(&shown, variable, node);
        (set, node)
    }

    /// Returns the path of a key for messages, with the indexes of lists.
    fn shown(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}{}.{key}", self.path, self.item) }
    }

    /// Returns the place of a key, if it is set.
    pub(super) fn place(&mut self, key: &'static str) -> Option<Place> {
        let (set, node) = self.take(key);
        if let Some((name, _)) = set {
            return Some(Place::Variable(name));
        }
        if let Some(node) = node {
            return Some(Place::File(node.origin.span()));
        }
        self.variable_below(key).map(Place::Variable)
    }

    /// Returns a variable that sets a key below the given one.
    fn variable_below(&self, key: &str) -> Option<String> {
        let path = format!("{}.", self.full(key));
        let level = format!("{}__", self.variables(key).pop()?);
        let spelled = SPELLED.iter().filter(|(known, _)| known.starts_with(&path)).map(|(_, name)| *name);
        let mut candidates = spelled.filter(|name| self.environment.get(name).is_some());
        let regular = || self.environment.settings().find(|name| name.starts_with(&level));
        candidates.next().or_else(regular).map(str::to_owned)
    }

    fn scalar(&mut self, key: &'static str) -> Option<Scalar> {
        let (set, node) = self.take(key);
        if let Some((name, value)) = set {
            return Some(Scalar { text: value.to_owned(), place: Place::Variable(name) });
        }
        self.scalar_of(node?, &self.full(key))
    }

    /// Returns the text of a node with each `${VAR}` replaced.
    fn scalar_of(&mut self, node: &Node, name: &str) -> Option<Scalar> {
        let place = Place::File(node.origin.span());
        let NodeValue::Scalar { text, .. } = &node.value else {
            let diagnostic = Diagnostic::error(Code::WrongType, format!("`{name}` must be one value"));
            let hint = "Quote a string that begins with a bracket or a brace.";
            self.report(place.mark(diagnostic.hint(hint)));
            return None;
        };
        match self.environment.expand(text) {
            Ok(text) => Some(Scalar { text, place }),
            Err(error) => {
                self.report(place.mark(error.explain(&format!("`{name}`"))));
                None
            }
        }
    }

    fn mark(&mut self, key: &str, kind: ValueKind) {
        let shown = self.shown(key);
        self.collected.read_keys.mark_kind(&shown, kind);
    }

    pub(super) fn text(&mut self, key: &'static str) -> Option<String> {
        self.mark(key, ValueKind::Scalar);
        self.scalar(key).map(|scalar| scalar.text)
    }

    pub(super) fn text_with_place(&mut self, key: &'static str) -> Option<WithPlace<String>> {
        self.mark(key, ValueKind::Scalar);
        self.scalar(key).map(|scalar| WithPlace { value: scalar.text, place: scalar.place })
    }

    pub(super) fn secret(&mut self, key: &'static str) -> Option<Secret> {
        let shown = self.shown(key);
        self.collected.read_keys.mark_secret(&shown);
        self.text(key).map(Secret)
    }

    /// Parses a value with a function. `wanted` is the description of the expected value in messages.
    pub(super) fn checked<T>(
        &mut self,
        key: &'static str,
        wanted: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        self.checked_as(key, ValueKind::Scalar, wanted, read)
    }

    /// Reads a name. Editors offer the names in `known`. `pattern` is the form of the other names that are accepted.
    pub(super) fn name(
        &mut self,
        key: &'static str,
        known: &[&str],
        pattern: &'static str,
        is_name: impl Fn(&str) -> bool,
    ) -> Option<String> {
        let kind = ValueKind::WordsOr(known.iter().map(|word| (*word).to_owned()).collect(), pattern);
        let wanted = format!("one of {}", known.join(", "));
        self.checked_as(key, kind, &wanted, |text| is_name(text).then(|| text.to_owned()))
    }

    fn checked_as<T>(
        &mut self,
        key: &'static str,
        kind: ValueKind,
        wanted: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        self.mark(key, kind);
        let scalar = self.scalar(key)?;
        let value = read(&scalar.text);
        if value.is_none() {
            let message = format!("`{}` must be {wanted}, found `{}`", self.full(key), shorten(&scalar.text));
            self.report(
                scalar.place.mark(Diagnostic::error(Code::WrongValue, message).hint(format!("Write {wanted}."))),
            );
        }
        value
    }

    pub(super) fn integer(&mut self, key: &'static str, range: RangeInclusive<u64>) -> Option<u64> {
        let wanted = if *range.end() == u64::MAX {
            format!("an integer of at least {}", range.start())
        } else {
            format!("an integer from {} to {}", range.start(), range.end())
        };
        let kind = ValueKind::Integer { least: *range.start(), most: *range.end() };
        self.checked_as(key, kind, &wanted, |text| {
            text.trim().replace('_', "").parse().ok().filter(|n| range.contains(n))
        })
    }

    /// Reads a number in a range. `wanted` is the description of the expected value in messages, and `range` the
    /// nearest integers around the range, for editors.
    pub(super) fn number<T>(
        &mut self,
        key: &'static str,
        wanted: &str,
        range: RangeInclusive<u64>,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let kind = ValueKind::Number { least: *range.start(), most: *range.end() };
        self.checked_as(key, kind, wanted, read)
    }

    /// Reads a size in bytes, such as `10GB`. `wanted` is the description of the expected value in messages.
    pub(super) fn size(&mut self, key: &'static str, wanted: &str) -> Option<u64> {
        self.checked_as(key, ValueKind::Size, wanted, terrane_wire::size::parse)
    }

    pub(super) fn boolean(&mut self, key: &'static str) -> Option<bool> {
        self.checked_as(key, ValueKind::Boolean, "true or false", |text| {
            match text.trim().to_ascii_lowercase().as_str() {
                "true" | "yes" | "on" | "1" => Some(true),
                "false" | "no" | "off" | "0" => Some(false),
                _ => None,
            }
        })
    }

    pub(super) fn choice<T: Clone>(&mut self, key: &'static str, choices: &[(&str, T)]) -> Option<T> {
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        let wanted = format!("one of {}", words.join(", "));
        let kind = ValueKind::Words(words.iter().map(|word| (*word).to_owned()).collect());
        self.checked_as(key, kind, &wanted, |text| {
            choices.iter().find(|(word, _)| word.eq_ignore_ascii_case(text.trim())).map(|(_, value)| value.clone())
        })
    }

    pub(super) fn texts(&mut self, key: &'static str) -> Option<Vec<String>> {
        let name = self.full(key);
        self.mark(key, ValueKind::Scalars);
        self.list(key, |section, node| section.scalar_of(node, &name).map(|scalar| scalar.text))
    }

    pub(super) fn texts_with_places(&mut self, key: &'static str) -> Option<Vec<WithPlace<String>>> {
        let name = self.full(key);
        self.mark(key, ValueKind::Scalars);
        self.list(key, |section, node| {
            section.scalar_of(node, &name).map(|scalar| WithPlace { value: scalar.text, place: scalar.place })
        })
    }

    /// Reads a list of mappings.
    pub(super) fn sections<T>(
        &mut self,
        key: &'static str,
        mut read: impl FnMut(&mut Section<'_>) -> T,
    ) -> Option<Vec<T>> {
        let path = self.full(key);
        let mut number = 0;
        self.list(key, |section, node| {
            let mut item = Section {
                environment: section.environment,
                path: path.clone(),
                item: format!("[{number}]"),
                is_in_list: true,
                entries: Mapping::default(),
                known: Vec::new(),
                collected: section.collected,
            };
            item.open(node);
            number += 1;
            let value = read(&mut item);
            item.finish();
            Some(value)
        })
    }

    fn list<T>(
        &mut self,
        key: &'static str,
        mut read: impl FnMut(&mut Section<'_>, &Node) -> Option<T>,
    ) -> Option<Vec<T>> {
        let (set, node) = self.take(key);
        let parsed = set.and_then(|(name, text)| self.collected.value_of(&name, text));
        let node = parsed.as_ref().or(node)?;
        let NodeValue::List(items) = &node.value else {
            let diagnostic = Diagnostic::error(Code::WrongType, format!("`{}` must be a list", self.full(key)));
            self.report(diagnostic.hint(format!("Write `{key}: [first, second]`.")).at(node.origin.span()));
            return None;
        };
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            values.extend(read(self, item));
        }
        Some(values)
    }

    /// Reads a nested section, even if only the environment sets a key of it.
    pub(super) fn section<T>(&mut self, key: &'static str, read: impl FnOnce(&mut Section<'_>) -> T) -> T {
        let (set, node) = self.take(key);
        let parsed = set.and_then(|(name, text)| self.collected.value_of(&name, text));
        let mut section = Section {
            environment: self.environment,
            path: self.full(key),
            item: String::new(),
            is_in_list: self.is_in_list,
            entries: Mapping::default(),
            known: Vec::new(),
            collected: self.collected,
        };
        if let Some(node) = parsed.as_ref().or(node) {
            section.open(node);
        }
        let value = read(&mut section);
        section.finish();
        value
    }

    /// Skips a key that another module reads, with its variables.
    pub(super) fn skip(&mut self, key: &'static str) {
        self.known.push(key);
        for variable in self.variables(key) {
            self.collected.open_levels.push(format!("{variable}__"));
            self.collected.variables.insert(variable);
        }
    }

    /// Reads a mapping whose keys belong to another owner, such as a plugin, as JSON. The mapping may contain secrets.
    pub(super) fn json(&mut self, key: &'static str) -> Option<Json> {
        let shown = self.shown(key);
        self.collected.read_keys.mark_secret(&shown);
        self.mark(key, ValueKind::Mapping);
        let name = self.full(key);
        let (set, node) = self.take(key);
        let parsed = set.and_then(|(name, text)| self.collected.value_of(&name, text));
        let node = parsed.as_ref().or(node)?;
        if !matches!(node.value, NodeValue::Map(_)) {
            let diagnostic =
                Diagnostic::error(Code::WrongType, format!("`{name}` must be a mapping of keys and values"));
            self.report(diagnostic.hint("Write `key: value` lines.").at(node.origin.span()));
            return None;
        }
        self.json_of(node, &name)
    }

    /// Converts a node. Returns `None` if a variable in it is not set, which is reported.
    fn json_of(&mut self, node: &Node, name: &str) -> Option<Json> {
        match &node.value {
            NodeValue::Null => Some(Json::Null),
            NodeValue::Scalar { plain, .. } => {
                let text = self.scalar_of(node, name)?.text;
                Some(match plain {
                    Plain::Boolean(value) => (*value).into(),
                    // A number that JSON readers cannot hold becomes a string.
                    Plain::Integer | Plain::Fraction => serde_json::from_str(&text).unwrap_or(Json::String(text)),
                    Plain::Text => Json::String(text),
                })
            }
            NodeValue::List(items) => items.iter().map(|item| self.json_of(item, name)).collect(),
            NodeValue::Map(entries) => {
                let mut map = serde_json::Map::new();
                for (key, value) in entries {
                    let value = self.json_of(value, name)?;
                    if map.insert(key.text.to_string(), value).is_some() {
                        let message = format!("duplicate key `{}` in `{name}`", shorten(&key.text));
                        let diagnostic = Diagnostic::error(Code::DuplicateKey, message).hint("Remove one of them.");
                        self.report(diagnostic.at(key.origin.span()));
                    }
                }
                Some(map.into())
            }
        }
    }

    /// Returns true if the value of a key is a list, for keys that take a list or a mapping.
    pub(super) fn is_list(&mut self, key: &'static str) -> bool {
        match self.take(key) {
            (Some((_, text)), _) => text.trim_start().starts_with(['[', '-']),
            (None, node) => node.is_some_and(|node| matches!(node.value, NodeValue::List(_))),
        }
    }

    /// Returns true if the value of a key is `none`, by which a variable removes a value of the file.
    pub(super) fn is_none(&mut self, key: &'static str) -> bool {
        let is_none = |text: &str| text.trim().eq_ignore_ascii_case("none");
        match self.take(key) {
            (Some((_, text)), _) => is_none(text),
            (None, Some(Node { value: NodeValue::Scalar { text, .. }, .. })) => is_none(text),
            (None, _) => false,
        }
    }

    /// Reports unknown keys.
    pub(super) fn finish(self) {
        self.entries.report_unknown_keys(&self.known, &self.label(), &mut self.collected.diagnostics);
    }
}

impl Collected {
    /// Parses the value of a variable as YAML.
    pub(super) fn value_of(&mut self, name: &str, text: &str) -> Option<Node> {
        let file = Arc::new(SourceFile { path: format!("${name}").into(), text: text.into() });
        match yaml::parse(&file) {
            Ok(node) => Some(node),
            Err(diagnostic) => {
                // The parser's own hint repeats the text, which may be a secret.
                let hint = "Write a list or a mapping on one line, as in [a, b] or {a: 1}.";
                self.diagnostics.push(diagnostic.hint(hint));
                None
            }
        }
    }

    /// Warns about variables with the prefix of settings that set nothing.
    pub(super) fn finish(mut self, environment: &Environment) -> Vec<Diagnostic> {
        for name in environment.settings() {
            let is_known = self.variables.contains(name);
            if is_known || self.open_levels.iter().any(|level| name.starts_with(level)) {
                continue;
            }
            let message = format!("environment variable {name} matches no setting");
            // The common prefix must not make two settings similar.
            let suffixes = self.variables.iter().filter_map(|variable| variable.strip_prefix(PREFIX));
            let hint = match name.strip_prefix(PREFIX).and_then(|name| likely(name, suffixes)) {
                Some(meant) => format!("Did you mean {PREFIX}{meant}?"),
                None => "Remove it; `terrane config show` lists all variables.".to_owned(),
            };
            let diagnostic = Diagnostic::warning(Code::UnknownVariable, message).hint(hint);
            // A misspelled security setting may leave access open, so it is an error.
            let is_security = SECURITY.iter().any(|prefix| name.starts_with(prefix));
            let severity = if is_security { Severity::Error } else { Severity::Warning };
            self.diagnostics.push(Diagnostic { severity, ..diagnostic });
        }
        self.diagnostics
    }
}

/// Truncates a value for a message.
fn shorten(text: &str) -> String {
    let mut short: String = TerminalText::visible(text).chars().take(60).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
