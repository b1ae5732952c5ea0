//! YAML text to a tree whose every node has its place.
//!
//! In: one file. Out: a [`Node`], or the problem that ended the reading. Types are not inferred here:
//! a plain scalar keeps its text, so that `yes` may be a name and `1.10` a version. Duplicate keys are
//! kept, for the reader to report. Budgets stop alias bombs and deep nesting.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{DuplicateKeyPolicy, Error, NonFiniteFloatPolicy, Options, Spanned};

use super::source::{Origin, SourceFile};
use crate::diagnostic::Diagnostic;

/// Larger files are refused before they are parsed.
const MAX_FILE_BYTES: usize = 4 * 1024 * 1024;
const MAX_DEPTH: usize = 64;
const MAX_NODES: usize = 500_000;

pub struct Node {
    pub origin: Origin,
    pub value: NodeValue,
}

pub enum NodeValue {
    Null,
    /// The text of a scalar; `plain` tells what an unquoted one looks like.
    Scalar {
        text: Arc<str>,
        plain: Plain,
    },
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plain {
    Text,
    Boolean(bool),
    Integer,
    Fraction,
}

pub struct Key {
    pub text: Arc<str>,
    pub origin: Origin,
}

/// Parses one file.
pub fn parse(file: &Arc<SourceFile>) -> Result<Node, Diagnostic> {
    if file.text.len() > MAX_FILE_BYTES {
        return Err(Diagnostic::error("file-too-large", format!("the file has {} bytes", file.text.len()))
            .hint("split it: a YAML file may have 4 MiB")
            .at(Origin::start_of(file).span()));
    }
    let raw: Spanned<Raw> =
        serde_saphyr::from_str_with_options(&file.text, options()).map_err(|error| explain(file, &error))?;
    Ok(node(file, raw))
}

fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            max_nodes: MAX_NODES,
            max_events: 2 * MAX_NODES,
            max_aliases: 10_000,
            max_anchors: 10_000,
        },
        // Both entries reach the visitor.
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        with_snippet: false,
        emit_comments: false,
    }
}

/// The YAML types of serde; nothing else of the crate derives or implements them.
enum Raw {
    Null,
    Boolean(bool),
    Integer,
    Fraction,
    Text(Box<str>),
    List(Vec<Spanned<Raw>>),
    Map(Vec<(Spanned<String>, Spanned<Raw>)>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Raw, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Boolean(value))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Raw, E> {
        Ok(Raw::Integer)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Raw, E> {
        Ok(Raw::Integer)
    }

    fn visit_i128<E>(self, _: i128) -> Result<Raw, E> {
        Ok(Raw::Integer)
    }

    fn visit_u128<E>(self, _: u128) -> Result<Raw, E> {
        Ok(Raw::Integer)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Raw, E> {
        Ok(Raw::Fraction)
    }

    fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw::Text(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Raw, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Raw::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Raw, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Raw::Map(map))
    }
}

fn node(file: &Arc<SourceFile>, raw: Spanned<Raw>) -> Node {
    let origin = origin(file, &raw.defined);
    // What serde read as a number or a word keeps its spelling.
    let as_written = |origin: &Origin| -> Arc<str> {
        let length = raw.defined.span().byte_len().unwrap_or(0) as usize;
        let start = origin.offset as usize;
        file.text.get(start..start + length).unwrap_or_default().trim().into()
    };
    let value = match raw.value {
        Raw::Null => NodeValue::Null,
        Raw::Boolean(value) => NodeValue::Scalar { text: as_written(&origin), plain: Plain::Boolean(value) },
        Raw::Integer => NodeValue::Scalar { text: as_written(&origin), plain: Plain::Integer },
        Raw::Fraction => NodeValue::Scalar { text: as_written(&origin), plain: Plain::Fraction },
        Raw::Text(text) => NodeValue::Scalar { text: text.into(), plain: Plain::Text },
        Raw::List(items) => NodeValue::List(items.into_iter().map(|item| node(file, item)).collect()),
        Raw::Map(entries) => NodeValue::Map(
            entries
                .into_iter()
                .map(|(key, value)| {
                    let key = Key { text: key.value.as_str().into(), origin: self::origin(file, &key.defined) };
                    (key, node(file, value))
                })
                .collect(),
        ),
    };
    Node { origin, value }
}

fn origin(file: &Arc<SourceFile>, location: &serde_saphyr::Location) -> Origin {
    let span = location.span();
    Origin {
        file: Arc::clone(file),
        offset: span.byte_offset().unwrap_or(0) as u32,
        line: (location.line() as u32).max(1),
        column: (location.column() as u32).max(1),
        // A mapping's span is its first character; a multi-line text is marked where it begins.
        length: if location.line() == 0 { 1 } else { (span.len() as u32).clamp(1, 200) },
    }
}

/// The parser's complaint in the words of this project, with what usually helps.
fn explain(file: &Arc<SourceFile>, error: &Error) -> Diagnostic {
    let (line, column) = error.location().map_or((1, 1), |l| (l.line() as u32, l.column() as u32));
    let mut origin = Origin::start_of(file);
    (origin.line, origin.column) = (line.max(1), column.max(1));
    let written = file.text.lines().nth(origin.line as usize - 1).unwrap_or_default();
    let mut cause = error.without_snippet();
    while let Error::AliasError { error, .. } = cause {
        cause = error.without_snippet();
    }
    let is_limit = {
        let text = cause.to_string();
        text.starts_with("budget breached") || text.starts_with("recursion limit")
    };
    let (code, message, hint) = match cause {
        Error::UnknownAnchor { .. } => (
            "yaml-syntax",
            "the alias names an anchor that the file doesn't have".to_owned(),
            "define it with `&name` above, or quote the text if the `*` is meant".to_owned(),
        ),
        Error::MultipleDocuments { .. } => (
            "yaml-syntax",
            "a second document begins here".to_owned(),
            "remove the `---`, or move what follows into a file of its own".to_owned(),
        ),
        Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. }
        | Error::AliasReplayCounterOverflow { .. } => limit(),
        _ if is_limit => limit(),
        Error::ExternalMessage { msg, .. } => {
            ("yaml-syntax", format!("the YAML can't be read from here: {}", plain_words(msg)), cure(written, msg))
        }
        other => {
            let text = other.to_string();
            let text = text.split(" at line ").next().unwrap_or_default();
            ("yaml-syntax", format!("the YAML can't be read from here: {}", plain_words(text)), cure(written, text))
        }
    };
    Diagnostic::error(code, message).hint(hint).at(origin.span())
}

fn limit() -> (&'static str, String, String) {
    (
        "yaml-limit",
        "the file nests too deeply, or its aliases expand to too much".to_owned(),
        format!("at most {MAX_DEPTH} levels and {MAX_NODES} values, aliases included: write it out flat"),
    )
}

fn plain_words(message: &str) -> String {
    message.replace("illegal placement of", "unexpected").replace("disallowed", "not allowed").replace('`', "'")
}

/// What usually mends a line on which the parser stopped.
fn cure(written: &str, message: &str) -> String {
    let value = written.split_once(": ").map_or("", |(_, value)| value.trim());
    if message.contains("tab") {
        "indent with spaces, never with tabs".to_owned()
    } else if value.starts_with('{') {
        let escaped = value.replace('"', "'");
        format!("put a text that begins with a brace in quotes: \"{escaped}\"")
    } else if value.starts_with(['@', '`', '%', '*', '&', '!']) {
        "put a text that begins with this character in quotes".to_owned()
    } else if message.contains("mapping values") || value.contains(": ") {
        "put a text that has `: ` in it in quotes".to_owned()
    } else if message.contains("quoted") {
        "close the quote, and indent the lines of a long text alike".to_owned()
    } else {
        "check the indentation and the brackets and quotes of this line and the one above".to_owned()
    }
}
