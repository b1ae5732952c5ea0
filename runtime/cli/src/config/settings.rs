//! Records every setting that the reader reads, with its value and source.
//!
//! In: each key when it is read, so that the list is complete. Out: [`Setting`]s to display, without secrets. The
//! defaults are those of the reference (`settings.md`); a test compares them with the effective ones. Not here: the
//! meaning of values.

use std::collections::BTreeMap;

use terrane_compiler::project::yaml::{Node, NodeValue};
use terrane_terminal::TerminalText;

use super::PROJECT_FILE;
use super::place::Place;

const REFERENCE: &str = include_str!("../../../docs/reference/settings.md");
const HIDDEN: &str = "***";
/// Words in the names of keys whose values are secret.
const SECRET_WORDS: [&str; 4] = ["secret", "password", "token", "private"];
/// Endings of names whose values are not secret, although the names contain one of [`SECRET_WORDS`].
const NO_SECRETS: [&str; 6] = ["_age", "_auth", "_expiry", "_path", "_tokens", "_url"];
/// The key whose SQL statements may contain a credential, so that only their number is shown.
const COUNTED: &str = "warehouse.init";

/// One key of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    pub key: String,
    /// The value, never a secret. `None` if the key is not set and has no default.
    pub value: Option<String>,
    pub source: Source,
}

/// The source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    Default,
    /// The value contains `${NAME}` and is shown unexpanded.
    File {
        line: u32,
        uses_variables: bool,
    },
    Variable(String),
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Source::Default => f.write_str("default"),
            Source::File { line, uses_variables: false } => write!(f, "{PROJECT_FILE}:{line}"),
            Source::File { line, uses_variables: true } => write!(f, "{PROJECT_FILE}:{line}, with the environment"),
            Source::Variable(name) => write!(f, "environment variable {name}"),
        }
    }
}

/// The values that a key accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ValueKind {
    Boolean,
    Integer {
        least: u64,
        most: u64,
    },
    /// A number that may have decimals.
    Number {
        least: u64,
        most: u64,
    },
    /// A number of bytes: an integer, or a number with a unit, such as `10GB`.
    Size,
    Words(Vec<String>),
    /// One of the words, or another name that matches the pattern.
    WordsOr(Vec<String>, &'static str),
    /// One value in the notation that the reference describes.
    Scalar,
    /// A list of such values.
    Scalars,
    Mapping,
}

/// The keys that were read.
#[derive(Debug, Default)]
pub(super) struct ReadKeys {
    /// The keys in the order in which they were first read.
    keys: Vec<String>,
    written: BTreeMap<String, (String, Source)>,
    secrets: Vec<String>,
    kinds: BTreeMap<String, Vec<ValueKind>>,
    places: BTreeMap<String, Place>,
}

impl ReadKeys {
    /// Records a key and its effective value.
    pub(super) fn note(&mut self, key: &str, variable: Option<(&str, &str)>, node: Option<&Node>) {
        if !self.keys.iter().any(|known| known == key) {
            self.keys.push(key.to_owned());
        }
        let place = match (variable, node) {
            (Some((name, _)), _) => Some(Place::Variable(name.to_owned())),
            (None, node) => node.map(|node| Place::File(node.origin.span())),
        };
        if let Some(place) = place {
            self.places.insert(key.to_owned(), place);
        }
        let written = match (variable, node) {
            (Some((name, text)), _) => Some((text.to_owned(), Source::Variable(name.to_owned()))),
            (None, Some(node)) => Some((text_of(node), source_of(node))),
            (None, None) => None,
        };
        if let Some(written) = written {
            self.written.insert(key.to_owned(), written);
        }
    }

    /// Returns the place of a key, if it is set.
    pub(super) fn place(&self, key: &str) -> Option<&Place> {
        self.places.get(key)
    }

    /// Records a kind of value that a key accepts. A key that is read in two ways accepts both kinds.
    pub(super) fn mark_kind(&mut self, key: &str, kind: ValueKind) {
        let kinds = self.kinds.entry(key.to_owned()).or_default();
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }

    /// Returns the kinds of values that a key accepts.
    pub(super) fn kinds(&self, key: &str) -> &[ValueKind] {
        self.kinds.get(key).map(Vec::as_slice).unwrap_or_default()
    }

    pub(super) fn mark_secret(&mut self, key: &str) {
        self.secrets.push(key.to_owned());
    }

    /// Returns the keys with values, in the order of reading.
    pub(super) fn settings(&self) -> Vec<Setting> {
        let is_section = |key: &str| {
            let (below, item) = (format!("{key}."), format!("{key}["));
            self.keys.iter().any(|other| other.starts_with(&below) || other.starts_with(&item))
        };
        let values = self.keys.iter().filter(|key| !is_section(key));
        values.map(|key| self.setting(key)).collect()
    }

    fn setting(&self, key: &str) -> Setting {
        match self.written.get(key) {
            Some((text, source)) => {
                let is_secret = self.secrets.iter().any(|secret| secret == key) || sounds_secret(key);
                Setting { key: key.to_owned(), value: Some(shown(key, text, is_secret)), source: source.clone() }
            }
            None => Setting { key: key.to_owned(), value: default_of(key), source: Source::Default },
        }
    }
}

/// Returns whether the name of a key suggests that its value is secret.
pub(super) fn sounds_secret(key: &str) -> bool {
    let name = key.rsplit('.').next().unwrap_or(key);
    SECRET_WORDS.iter().any(|word| name.contains(word)) && !NO_SECRETS.iter().any(|end| name.ends_with(end))
}

/// Returns the text to show: a URL without its password, a placeholder for a secret, other values on one line.
fn shown(key: &str, text: &str, is_secret: bool) -> String {
    if key == COUNTED {
        return "(SQL, not shown)".to_owned();
    }
    let is_url = key.ends_with("url") || key.ends_with("endpoint");
    match without_password(text).filter(|_| is_url || !is_secret) {
        Some(url) => url,
        None if is_secret => HIDDEN.to_owned(),
        None => TerminalText::spaced(text).into_string(),
    }
}

/// Removes the password of a URL. Returns `None` if the text is not a URL.
fn without_password(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once("://")?;
    // A Spark Connect URL has parameters instead of a password, and its token may contain any of the characters below.
    if let ("sc", Some((host, _))) = (scheme, rest.split_once(';')) {
        return Some(format!("{scheme}://{host};{HIDDEN}"));
    }
    // A password may contain characters that end a host, so it is everything before the last `@`.
    let bare = match rest.rsplit_once('@') {
        Some((_, host)) => format!("{HIDDEN}@{host}"),
        None => rest.to_owned(),
    };
    // Drivers also accept passwords and key files as parameters.
    let bare = match bare.split_once('?') {
        Some((before, _)) => format!("{before}?{HIDDEN}"),
        None => bare,
    };
    Some(format!("{scheme}://{bare}"))
}

/// Returns the unexpanded text of a node.
fn text_of(node: &Node) -> String {
    match &node.value {
        NodeValue::Null => String::new(),
        NodeValue::Scalar { text, .. } => text.to_string(),
        NodeValue::List(items) => format!("[{}]", items.iter().map(text_of).collect::<Vec<_>>().join(", ")),
        NodeValue::Map(entries) => {
            let entries = entries.iter().map(|(key, value)| format!("{}: {}", key.text, text_of(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
    }
}

fn source_of(node: &Node) -> Source {
    let span = node.origin.span();
    match span.file.strip_prefix('$') {
        // The value comes from a variable that contains a whole section.
        Some(variable) => Source::Variable(variable.to_owned()),
        None => Source::File { line: span.line, uses_variables: text_of(node).contains("${") },
    }
}

/// Returns the row of the reference for a key.
fn row_of(key: &str) -> Option<&'static str> {
    let quoted = format!("`{key}`");
    REFERENCE.lines().find(|line| line.starts_with("| `") && cell(line, 0).split(", ").any(|k| k == quoted))
}

/// Returns the description of a key in the reference, with its default.
pub(super) fn about(key: &str) -> Option<String> {
    let row = row_of(key)?;
    let cells: Vec<&str> = row.trim().trim_matches('|').split('|').map(str::trim).collect();
    let meaning = cells.last().copied().unwrap_or_default().trim_end_matches('.');
    let default = match cells.len() {
        0..3 => "",
        count => cells[count - 2],
    };
    let default = match default {
        "" => String::new(),
        "required" => "Required.".to_owned(),
        default => format!("Default: {default}."),
    };
    let sentences = [if meaning.is_empty() { String::new() } else { format!("{meaning}.") }, default];
    let text = sentences.into_iter().filter(|sentence| !sentence.is_empty()).collect::<Vec<_>>().join(" ");
    (!text.is_empty()).then_some(text)
}

/// Returns the default of a key in the reference.
pub(super) fn default_of(key: &str) -> Option<String> {
    let quoted = format!("`{key}`");
    let row = row_of(key)?;
    let place = cell(row, 0).split(", ").position(|named| named == quoted)?;
    // Tables of settings without effect have no column for defaults.
    let default = row.split('|').nth(4).map(|_| cell(row, 2)).filter(|text| !text.is_empty())?;
    let several: Vec<&str> = default.split(", ").collect();
    let own =
        if several.len() > 1 && several.len() == cell(row, 0).split(", ").count() { several[place] } else { default };
    match own.strip_prefix('`').and_then(|own| own.strip_suffix('`')) {
        Some(word) => Some(word.to_owned()),
        None if own.parse::<f64>().is_ok() => Some(own.to_owned()),
        None if own == "required" => None,
        None => Some(format!("({own})")),
    }
}

fn cell(row: &str, place: usize) -> &str {
    row.split('|').nth(place + 1).unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_in_urls_are_masked() {
        for (text, expected) in [
            ("postgres://me:p@ss@db:5432/x", "postgres://***@db:5432/x"),
            ("postgres://db/x?password=hidden&sslmode=require", "postgres://db/x?***"),
            ("sqlite://a.db", "sqlite://a.db"),
            ("sc://spark:15002/;use_ssl=true;token=hid@den?a", "sc://spark:15002/;***"),
            ("postgres://${USER}:${PASSWORD}@db/x", "postgres://***@db/x"),
        ] {
            assert_eq!(shown("state.url", text, true), expected);
        }
        assert_eq!(shown("security.jwt.secret", "hidden", true), "***");
        assert_eq!(shown("security.jwt.secret", "a://hidden-too", true), "***");
        assert!(sounds_secret("a.client_secret") && !sounds_secret("security.jwt.refresh_token_expiry"));
        assert!(!sounds_secret("security.jwt.max_token_age"));
    }

    #[test]
    fn defaults_are_read_from_the_reference() {
        for (key, default) in [
            ("server.port", Some("8000")),
            ("state.url", Some("sqlite://.terrane/state.db")),
            ("warehouse.threads", Some("(the engine's)")),
            ("security.jwt.claims.email", Some("email")),
            ("security.jwt.verify_iat", Some("true")),
            ("security.jwt.secret", None),
            ("name", None),
        ] {
            assert_eq!(default_of(key).as_deref(), default, "{key}");
        }
    }
}
