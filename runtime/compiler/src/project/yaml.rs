//! Parses YAML into a tree in which every node has its place.
//!
//! In: one file. Out: a [`Node`], or the problem that stopped the parser. The tree is built from the parser's events
//! and not by serde, which stops at the first mistake, loses quotes, and takes three times as long. Scalars keep their
//! text, so that `no` may be a name and `1.10` a version. Duplicate keys stay, for the reader to report. Limits protect
//! against alias bombs and deep nesting. The module is public because the command line reads its configuration and a
//! project's expectations with it: places, limits and words are the same everywhere.

pub mod mapping;
mod recovery;

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use serde_saphyr::granit_parser::{
    self as granit, ErrorKind, Event, Parser, ScalarStyle, ScanError, Span as EventSpan,
};

use crate::diagnostic::{Code, Diagnostic};
use crate::text::{Origin, SourceFile};

/// The largest size of a file. Larger files are not parsed.
const MAX_FILE_BYTES: usize = 4 * 1024 * 1024;
/// The largest part of a file with a syntax error that is parsed.
const MAX_PARTIAL_BYTES: usize = 64 * 1024;
/// The largest number of bytes that are parsed to find further syntax errors of a file.
const MAX_PARTIAL_WORK: usize = 8 * 1024 * 1024;
/// The largest number of syntax errors of one file that are reported.
const MAX_SYNTAX_ERRORS: usize = 20;
const MAX_DEPTH: usize = 64;
const MAX_NODES: usize = 500_000;

/// A value with its place.
#[derive(Clone)]
pub struct Node {
    pub origin: Origin,
    pub value: NodeValue,
}

/// The content of a value.
#[derive(Clone)]
pub enum NodeValue {
    Null,
    /// The text of a scalar. `plain` is the kind of value that an unquoted scalar looks like.
    Scalar {
        text: Arc<str>,
        plain: Plain,
    },
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

/// The type of an unquoted scalar in the YAML 1.2 core schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plain {
    Text,
    Boolean(bool),
    Integer,
    Fraction,
}

/// A mapping's key with its place.
#[derive(Clone)]
pub struct Key {
    pub text: Arc<str>,
    pub origin: Origin,
}

/// Parses one file.
///
/// # Errors
/// Returns the problem that stopped the parser, with its place.
pub fn parse(file: &Arc<SourceFile>) -> Result<Node, Diagnostic> {
    if file.text.len() > MAX_FILE_BYTES {
        return Err(Diagnostic::error(Code::FileTooLarge, format!("the file has {} bytes", file.text.len()))
            .hint("Split it. A YAML file may have at most 4 MiB.")
            .at(Origin::start_of(file).span()));
    }
    Ok(parse_text(file, &file.text)?.unwrap_or(Node { origin: Origin::start_of(file), value: NodeValue::Null }))
}

/// Parses text whose offsets are those of the file.
fn parse_text(file: &Arc<SourceFile>, text: &str) -> Result<Option<Node>, Diagnostic> {
    let options = granit::options! {
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    let mut tree = Tree { file, open: Vec::new(), anchors: HashMap::new(), root: None, nodes: 0 };
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| explain(file, &error))?;
        tree.event(event, &span)?;
    }
    Ok(tree.root)
}

/// Parses a mapping whose file has a syntax error. Returns the entries that can be parsed separately. They may only be
/// checked, because other entries are missing.
pub fn readable_part(file: &Arc<SourceFile>) -> Node {
    let mut entries = Vec::new();
    let mut at = 0;
    if file.text.len() <= MAX_FILE_BYTES {
        for part in recovery::entries(&file.text) {
            let text = at_its_place(&file.text, part.clone());
            if let Ok(Some(Node { value: NodeValue::Map(found), .. })) = parse_text(file, &text) {
                entries.extend(found);
            }
            at += part.len();
            // The work grows with the square of the number of entries.
            if at > MAX_PARTIAL_BYTES {
                break;
            }
        }
    }
    Node { origin: Origin::start_of(file), value: NodeValue::Map(entries) }
}

/// Returns the syntax errors of a file that cannot be parsed. After the first one, the items of lists below the keys at
/// the top are parsed one by one.
pub fn syntax_errors(file: &Arc<SourceFile>) -> Vec<Diagnostic> {
    let Err(first) = parse(file) else { return Vec::new() };
    let mut errors = vec![first];
    let mut size = 0;
    for part in recovery::entries(&file.text).into_iter().flat_map(|entry| recovery::items(&file.text, entry)) {
        size += part.end;
        // The work grows with the square of the number of items.
        if file.text.len() > MAX_FILE_BYTES || size > MAX_PARTIAL_WORK || errors.len() >= MAX_SYNTAX_ERRORS {
            break;
        }
        // An alias may name an anchor of another part.
        if has_alias(&file.text[part.clone()]) {
            continue;
        }
        // The mistake is searched only in the part.
        let text = at_its_place(&file.text, part).into();
        let part = Arc::new(SourceFile { path: Arc::clone(&file.path), text });
        let Err(error) = parse_text(&part, &part.text) else { continue };
        let place = |error: &Diagnostic| error.span.as_ref().map(|span| (span.line, span.column));
        if place(&error) > errors.last().and_then(place) {
            errors.push(error);
        }
    }
    errors
}

/// Returns whether YAML may contain an alias such as `*name`.
fn has_alias(text: &str) -> bool {
    text.match_indices('*').any(|(at, _)| {
        let is_name = text[at + 1..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
        is_name && text[..at].trim_end_matches(' ').ends_with([':', '-', '[', ','])
    })
}

/// Returns a part of a file after blanks, so that the part is at its place.
fn at_its_place(text: &str, part: Range<usize>) -> String {
    let before = text[..part.start].bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' });
    before.chain(text[part].chars()).collect()
}

/// A list or mapping that is not complete yet.
struct Open {
    origin: Origin,
    anchor: usize,
    /// The number of nodes before this list or mapping.
    nodes_before: usize,
    content: Content,
}

enum Content {
    List(Vec<Node>),
    Map(Vec<(Key, Node)>, Option<Key>),
}

struct Tree<'f> {
    file: &'f Arc<SourceFile>,
    open: Vec<Open>,
    /// The node of each anchor, and the number of nodes in it.
    anchors: HashMap<usize, (Node, usize)>,
    root: Option<Node>,
    nodes: usize,
}

impl Tree<'_> {
    fn event(&mut self, event: Event<'_>, span: &EventSpan) -> Result<(), Diagnostic> {
        match event {
            Event::DocumentStart(..) if self.root.is_some() => {
                let diagnostic = Diagnostic::error(Code::YamlSyntax, "a second document begins here")
                    .hint("Remove the `---`, or move the second document into its own file.");
                Err(diagnostic.at(self.origin(span).span()))
            }
            Event::Scalar(text, style, anchor, tag) => {
                let is_text = tag.is_some_and(|tag| tag.is_yaml_core_schema_tag("str"));
                self.scalar(text, style, anchor, is_text, span)
            }
            Event::SequenceStart(_, anchor, _) => self.begin(Content::List(Vec::new()), anchor, span),
            Event::MappingStart(_, anchor, _) => self.begin(Content::Map(Vec::new(), None), anchor, span),
            Event::SequenceEnd | Event::MappingEnd => self.end(span),
            Event::Alias(anchor) => {
                let Some((node, size)) = self.anchors.get(&anchor) else {
                    return Err(self.limit(span));
                };
                self.nodes += size;
                if self.nodes > MAX_NODES {
                    return Err(self.limit(span));
                }
                let node = node.clone();
                self.put(node, span)
            }
            _ => Ok(()),
        }
    }

    fn scalar(
        &mut self,
        text: Cow<'_, str>,
        style: ScalarStyle,
        anchor: usize,
        is_text: bool,
        span: &EventSpan,
    ) -> Result<(), Diagnostic> {
        let origin = self.origin(span);
        if let Some(Open { content: Content::Map(_, key @ None), .. }) = self.open.last_mut() {
            *key = Some(Key { text: text.as_ref().into(), origin });
            return Ok(());
        }
        let is_plain = style == ScalarStyle::Plain && !is_text;
        let value = if is_plain && matches!(&*text, "" | "~" | "null" | "Null" | "NULL") {
            NodeValue::Null
        } else {
            let plain = if is_plain { plain(&text) } else { Plain::Text };
            NodeValue::Scalar { text: text.as_ref().into(), plain }
        };
        let node = Node { origin, value };
        self.count(1, span)?;
        if anchor > 0 {
            self.anchors.insert(anchor, (node.clone(), 1));
        }
        self.put(node, span)
    }

    fn begin(&mut self, content: Content, anchor: usize, span: &EventSpan) -> Result<(), Diagnostic> {
        if self.open.len() >= MAX_DEPTH {
            return Err(self.limit(span));
        }
        if let Some(Open { content: Content::Map(_, None), .. }) = self.open.last() {
            let diagnostic = Diagnostic::error(Code::YamlSyntax, "a key must be a string")
                .hint("Put a key that begins with a bracket or a brace in quotes.")
                .at(self.origin(span).span());
            return Err(mistake_before(self.file, span.start.line()).unwrap_or(diagnostic));
        }
        let nodes_before = self.nodes;
        self.count(1, span)?;
        let mut origin = self.origin(span);
        origin.length = 1;
        self.open.push(Open { origin, anchor, nodes_before, content });
        Ok(())
    }

    fn end(&mut self, span: &EventSpan) -> Result<(), Diagnostic> {
        let Some(open) = self.open.pop() else { return Ok(()) };
        let value = match open.content {
            Content::List(items) => NodeValue::List(items),
            Content::Map(entries, _) => NodeValue::Map(merged(entries)),
        };
        let node = Node { origin: open.origin, value };
        if open.anchor > 0 {
            // Storing a node costs as much as using it, because anchors nest.
            let size = self.nodes - open.nodes_before;
            self.count(size, span)?;
            self.anchors.insert(open.anchor, (node.clone(), size));
        }
        self.place(node);
        Ok(())
    }

    /// Adds a finished scalar or alias to the open list or mapping.
    fn put(&mut self, node: Node, span: &EventSpan) -> Result<(), Diagnostic> {
        if let Some(Open { content: Content::Map(_, key @ None), .. }) = self.open.last_mut() {
            let NodeValue::Scalar { text, .. } = node.value else { return Err(self.limit(span)) };
            *key = Some(Key { text, origin: node.origin });
            return Ok(());
        }
        self.place(node);
        Ok(())
    }

    fn place(&mut self, node: Node) {
        match self.open.last_mut().map(|open| &mut open.content) {
            Some(Content::List(items)) => items.push(node),
            Some(Content::Map(entries, key)) => entries.extend(key.take().map(|key| (key, node))),
            None => self.root = Some(node),
        }
    }

    fn count(&mut self, nodes: usize, span: &EventSpan) -> Result<(), Diagnostic> {
        self.nodes += nodes;
        if self.nodes > MAX_NODES { Err(self.limit(span)) } else { Ok(()) }
    }

    fn limit(&self, span: &EventSpan) -> Diagnostic {
        limit().at(self.origin(span).span())
    }

    fn origin(&self, span: &EventSpan) -> Origin {
        let (start, end) = (&span.start, &span.end);
        let offset = start.byte_offset().unwrap_or(0);
        let length = if start.line() == end.line() {
            end.index().saturating_sub(start.index())
        } else {
            let rest = self.file.text.get(offset..).unwrap_or_default();
            rest.lines().next().unwrap_or_default().chars().count()
        };
        Origin {
            file: Arc::clone(self.file),
            offset: offset as u32,
            line: start.line().max(1) as u32,
            column: start.col() as u32 + 1,
            length: (length as u32).max(1),
        }
    }
}

/// Resolves `<<: *shared`: adds those entries of the shared mappings whose keys the mapping itself does not have.
fn merged(entries: Vec<(Key, Node)>) -> Vec<(Key, Node)> {
    if !entries.iter().any(|(key, _)| &*key.text == "<<") {
        return entries;
    }
    let (merges, mut own): (Vec<_>, Vec<_>) = entries.into_iter().partition(|(key, _)| &*key.text == "<<");
    let others = merges.into_iter().flat_map(|(key, node)| match node.value {
        NodeValue::List(items) => items,
        _ => vec![Node { origin: key.origin, value: node.value }],
    });
    for other in others {
        if let NodeValue::Map(entries) = other.value {
            for (key, node) in entries {
                if !own.iter().any(|(known, _)| known.text == key.text) {
                    own.push((key, node));
                }
            }
        }
    }
    own
}

fn plain(text: &str) -> Plain {
    match text {
        "true" | "True" | "TRUE" => return Plain::Boolean(true),
        "false" | "False" | "FALSE" => return Plain::Boolean(false),
        _ => {}
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    // Digits with a leading zero are a code, not a number.
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        || (digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0."))
    {
        return Plain::Text;
    }
    if digits.bytes().all(|b| b.is_ascii_digit()) {
        return Plain::Integer;
    }
    let is_number = digits.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'-' | b'+'));
    if is_number && digits.parse::<f64>().is_ok_and(f64::is_finite) { Plain::Fraction } else { Plain::Text }
}

/// Returns the mistake that stopped the parser, at its own place.
fn mistake_before(file: &Arc<SourceFile>, line: usize) -> Option<Diagnostic> {
    let mistake = recovery::find_mistake(&file.text, line)?;
    let length = file.text.get(mistake.at.clone()).map_or(1, |text| text.chars().count());
    let place = Origin::at(file, mistake.at.start, length as u32).span();
    Some(Diagnostic::error(Code::YamlSyntax, mistake.message).hint(mistake.hint).at(place))
}

/// Returns the diagnostic of an error of the parser, with a hint for its kind.
fn explain(file: &Arc<SourceFile>, error: &ScanError) -> Diagnostic {
    let mut origin = Origin::start_of(file);
    (origin.line, origin.column) = (error.marker().line().max(1) as u32, error.marker().col() as u32 + 1);
    let line = file.text.lines().nth(origin.line as usize - 1).unwrap_or_default();
    match error.kind() {
        ErrorKind::UnknownAnchor => {
            let rest: String = line.chars().skip(origin.column as usize - 1).collect();
            let name: String = rest.trim_start_matches('*').chars().take_while(|c| !" ,]}".contains(*c)).collect();
            origin.length = name.chars().count() as u32 + 1;
            let message = format!("unknown anchor `{name}` of the alias `*{name}`");
            Diagnostic::error(Code::YamlSyntax, message)
                .hint(format!(
                    "Define it above, as in `key: &{name} value`, or quote the string if it begins with `*`."
                ))
                .at(origin.span())
        }
        ErrorKind::RecursionLimitExceeded
        | ErrorKind::AnchorCountOverflow
        | ErrorKind::InputByteLimitExceeded { .. }
        | ErrorKind::DirectiveByteLimitExceeded { .. }
        | ErrorKind::TooManyReservedDirectiveParams { .. } => limit().at(origin.span()),
        kind => mistake_before(file, origin.line as usize).unwrap_or_else(|| {
            let message = format!("cannot parse YAML: {}", plain_words(&error.info()));
            Diagnostic::error(Code::YamlSyntax, message).hint(cure(line, kind)).at(origin.span())
        }),
    }
}

fn limit() -> Diagnostic {
    Diagnostic::error(Code::YamlLimit, "the file is nested too deeply, or its aliases expand to too much")
        .hint(format!("Use at most {MAX_DEPTH} levels and {MAX_NODES} values, with the values of aliases included."))
}

fn plain_words(message: &str) -> String {
    message.replace("illegal placement of", "unexpected").replace("disallowed", "not allowed").replace('`', "'")
}

/// Returns the value of a key in `{…}` that begins with a reference and continues, such as `sql` in `{name: x, sql:
/// {revenue} / {count}}`.
fn reference_in_flow(source: &str) -> Option<&str> {
    let flow = &source[source.find('{')? + 1..];
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    let mut rest = flow;
    while let Some(at) = rest.find(": {") {
        let value = &rest[at + 2..];
        rest = value;
        let Some((name, after)) = value[1..].split_once('}') else { continue };
        if name.is_empty() || !name.chars().all(is_name) || after.trim_start().starts_with([',', '}']) {
            continue;
        }
        // The value ends at the next key, or at the brace that closes the mapping.
        let key_at = value.match_indices(", ").map(|(at, _)| at).find(|at| {
            let key = &value[at + 2..];
            let behind = key.trim_start_matches(is_name);
            behind.len() < key.len() && behind.starts_with(':')
        });
        let end = key_at.or_else(|| value.trim_end().strip_suffix('}').map(str::len))?;
        return Some(value[..end].trim());
    }
    None
}

/// Returns a hint for the line on which the parser stopped.
fn cure(line: &str, kind: &ErrorKind) -> String {
    let value = line.split_once(": ").map_or("", |(_, value)| value.trim());
    if is_about_tabs(kind) {
        "Indent with spaces instead of tabs.".to_owned()
    } else if let Some(text) = reference_in_flow(line) {
        format!("Put a string that contains braces in quotes: `\"{}\"`.", text.replace('"', "'"))
    } else if value.starts_with('{') {
        let escaped = value.replace('"', "'");
        format!("Put a string that begins with a brace in quotes: `\"{escaped}\"`.")
    } else if value.starts_with(['@', '`', '%', '*', '&', '!']) {
        "Put a string that begins with this character in quotes.".to_owned()
    } else if *kind == ErrorKind::MappingValueNotAllowed || value.contains(": ") {
        "Put a string that contains `: ` in quotes.".to_owned()
    } else if is_about_quotes(kind) {
        "Close the quote, and indent the lines of a long string alike.".to_owned()
    } else {
        "Check the indentation, the brackets and the quotes of this line and the line above.".to_owned()
    }
}

fn is_about_tabs(kind: &ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::TabNotAllowed
            | ErrorKind::TabInBlockIndentation
            | ErrorKind::TabAtBlockScalarStart
            | ErrorKind::TabInIndentation
            | ErrorKind::TabInPlainScalar
    )
}

fn is_about_quotes(kind: &ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::UnclosedQuotedScalar
            | ErrorKind::DocumentIndicatorInQuotedScalar
            | ErrorKind::InvalidQuotedScalarIndent
            | ErrorKind::InvalidTrailingSingleQuotedScalar
            | ErrorKind::InvalidTrailingDoubleQuotedScalar
            | ErrorKind::UnknownQuotedScalarEscape
            | ErrorKind::InvalidQuotedScalarHexEscape
            | ErrorKind::InvalidLowSurrogateHexEscape
            | ErrorKind::InvalidLowSurrogate
            | ErrorKind::MissingLowSurrogate
            | ErrorKind::UnpairedLowSurrogate
            | ErrorKind::InvalidUnicodeEscape
    )
}
