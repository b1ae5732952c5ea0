//! Writes YAML in the style of the examples: one member per line if it fits, blocks otherwise.
//!
//! In: an ordered [`Yaml`]. Out: text that the compiler reads back unchanged, whatever characters it contains.
//! Serializers neither keep comments nor choose between flow and block style, hence this writer.

use terrane_terminal::TerminalText;

/// A value to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Yaml {
    Null,
    Boolean(bool),
    /// A number with all its digits: `1.10` keeps its zero.
    Number(String),
    Text(String),
    List(Vec<Yaml>),
    Map(Vec<(String, Yaml)>),
    /// An item of a list, with the comment above it.
    Commented(String, Box<Yaml>),
}

/// The line length above which block style is chosen.
const WIDTH: usize = 118;
/// The depth of lists whose items are members, each on one line.
const MEMBER_DEPTH: usize = 2;

impl Yaml {
    pub fn text(text: impl Into<String>) -> Yaml {
        Yaml::Text(text.into())
    }

    /// Returns a mapping of the keys.
    pub fn map<'k>(entries: impl IntoIterator<Item = (&'k str, Yaml)>) -> Yaml {
        Yaml::Map(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }

    pub fn texts<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Yaml {
        Yaml::List(texts.into_iter().map(Yaml::text).collect())
    }

    /// Returns the value of a key of a mapping.
    pub fn get(&self, key: &str) -> Option<&Yaml> {
        match self {
            Yaml::Map(entries) => entries.iter().find(|(name, _)| name == key).map(|(_, value)| value),
            Yaml::Commented(_, value) => value.get(key),
            _ => None,
        }
    }

    pub fn as_text(&self) -> Option<&str> {
        match self {
            Yaml::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Sets a key of a mapping. An existing key keeps its position.
    pub fn set(&mut self, key: &str, value: Yaml) {
        match self {
            Yaml::Map(entries) => match entries.iter_mut().find(|(name, _)| name == key) {
                Some((_, old)) => *old = value,
                None => entries.push((key.to_owned(), value)),
            },
            Yaml::Commented(_, inner) => inner.set(key, value),
            _ => {}
        }
    }
}

/// Returns the text of a file: comment lines, then a mapping.
pub fn document(comment: &str, value: &Yaml) -> String {
    let mut text = String::new();
    write_comment(&mut text, comment, 0);
    if let Yaml::Map(entries) = value {
        write_map(&mut text, entries, 0, 0, FirstKey::OnNewLine);
    }
    text
}

fn write_comment(text: &mut String, comment: &str, indent: usize) {
    for line in comment.lines() {
        let line = format!("{}# {}", " ".repeat(indent), TerminalText::spaced(line));
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

/// The position of the first key of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FirstKey {
    OnNewLine,
    /// The key follows the `- ` of a list's item.
    AfterDash,
}

/// Writes the entries of a mapping. `first`: the position of the first key.
fn write_map(text: &mut String, entries: &[(String, Yaml)], indent: usize, depth: usize, first: FirstKey) {
    for (index, (key, value)) in entries.iter().enumerate() {
        if index > 0 || first == FirstKey::OnNewLine {
            text.push_str(&" ".repeat(indent));
        }
        text.push_str(&scalar(key));
        text.push(':');
        write_value(text, value, indent, depth);
    }
}

/// Writes the value after a key's colon, up to the end of the line.
fn write_value(text: &mut String, value: &Yaml, indent: usize, depth: usize) {
    let taken = text.len() - text.rfind('\n').map_or(0, |at| at + 1);
    match value {
        Yaml::List(items) if !items.is_empty() && !is_short(value, taken, depth) => {
            text.push('\n');
            write_list(text, items, indent + 2, depth + 1);
        }
        Yaml::Map(entries) if !entries.is_empty() && !is_short(value, taken, depth) => {
            text.push('\n');
            write_map(text, entries, indent + 2, depth, FirstKey::OnNewLine);
        }
        Yaml::Text(content) if is_block(content) => {
            text.push_str(if content.ends_with('\n') { " |\n" } else { " |-\n" });
            for line in content.lines() {
                if !line.is_empty() {
                    text.push_str(&" ".repeat(indent + 2));
                    text.push_str(line);
                }
                text.push('\n');
            }
        }
        _ => {
            text.push(' ');
            text.push_str(&flow(value));
            text.push('\n');
        }
    }
}

fn write_list(text: &mut String, items: &[Yaml], indent: usize, depth: usize) {
    for item in items {
        let item = match item {
            Yaml::Commented(comment, inner) => {
                write_comment(text, comment, indent);
                &**inner
            }
            item => item,
        };
        text.push_str(&" ".repeat(indent));
        text.push('-');
        match item {
            Yaml::Map(entries)
                if !entries.is_empty() && (depth < MEMBER_DEPTH || !is_short(item, indent + 2, depth)) =>
            {
                text.push(' ');
                write_map(text, entries, indent + 2, depth, FirstKey::AfterDash);
            }
            item => write_value(text, item, indent, depth),
        }
    }
}

/// Returns true if a value fits into the rest of the line.
fn is_short(value: &Yaml, taken: usize, depth: usize) -> bool {
    let is_flat = |value: &Yaml| match value {
        Yaml::List(items) => {
            !items.iter().any(|item| matches!(item, Yaml::Map(_) | Yaml::Commented(..))) || depth >= MEMBER_DEPTH
        }
        _ => true,
    };
    is_flat(value) && can_flow(value) && taken + 1 + flow(value).chars().count() <= WIDTH
}

/// Returns true if a value can be written in flow style: no text of several lines, no comment.
fn can_flow(value: &Yaml) -> bool {
    match value {
        Yaml::Text(text) => !is_block(text),
        Yaml::List(items) => items.iter().all(can_flow),
        Yaml::Map(entries) => entries.iter().all(|(_, value)| can_flow(value)),
        Yaml::Commented(..) => false,
        Yaml::Null | Yaml::Boolean(_) | Yaml::Number(_) => true,
    }
}

/// Returns true if a string can be written as a block that a reader gives back unchanged.
fn is_block(text: &str) -> bool {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let is_unchanged = |line: &str| !line.ends_with([' ', '\t']) && !line.contains(needs_escape);
    body.contains('\n')
        && !body.ends_with('\n')
        && !body.starts_with([' ', '\t', '\n'])
        && body.split('\n').all(is_unchanged)
}

/// Returns true for characters that a reader may change or refuse unless they are escaped.
fn needs_escape(c: char) -> bool {
    c.is_control() || matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// Returns a value in flow style.
fn flow(value: &Yaml) -> String {
    match value {
        Yaml::Null => "null".to_owned(),
        Yaml::Boolean(value) => value.to_string(),
        Yaml::Number(text) => text.clone(),
        Yaml::Text(text) => scalar(text),
        Yaml::List(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Yaml::Map(entries) => {
            let entries: Vec<String> =
                entries.iter().map(|(key, value)| format!("{}: {}", scalar(key), flow(value))).collect();
            format!("{{{}}}", entries.join(", "))
        }
        Yaml::Commented(_, value) => flow(value),
    }
}

/// Returns a string on one line, quoted if necessary.
fn scalar(text: &str) -> String {
    if is_plain(text) {
        return text.to_owned();
    }
    if text.contains(['"', '\\']) && !text.contains('\'') && !text.contains(needs_escape) {
        return format!("'{text}'");
    }
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if needs_escape(c) && u32::from(c) <= 0xFFFF => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Returns true if every YAML reader reads the unquoted text as a string with the same characters.
fn is_plain(text: &str) -> bool {
    const WORDS: [&str; 12] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf", "none"];
    let is_inner = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ' ' | '(' | ')' | '+');
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && text.chars().all(is_inner)
        && !text.ends_with(' ')
        && !WORDS.contains(&text.to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use terrane_compiler::project::SourceFile;
    use terrane_compiler::project::yaml::{self, Node, NodeValue};

    use super::*;

    fn same(node: &Node, value: &Yaml) -> bool {
        match (&node.value, value) {
            (NodeValue::Scalar { text, plain }, Yaml::Text(wanted)) => {
                **text == **wanted && *plain == yaml::Plain::Text
            }
            (NodeValue::Scalar { text, .. }, Yaml::Number(wanted)) => **text == **wanted,
            (NodeValue::Scalar { plain, .. }, Yaml::Boolean(wanted)) => *plain == yaml::Plain::Boolean(*wanted),
            (NodeValue::Null, Yaml::Null) => true,
            (NodeValue::List(nodes), Yaml::List(items)) => {
                nodes.len() == items.len() && nodes.iter().zip(items).all(|(node, item)| same(node, item))
            }
            (NodeValue::Map(nodes), Yaml::Map(entries)) => {
                let pairs = nodes.iter().zip(entries);
                nodes.len() == entries.len() && pairs.into_iter().all(|((a, x), (b, y))| *a.text == **b && same(x, y))
            }
            (_, Yaml::Commented(_, inner)) => same(node, inner),
            _ => false,
        }
    }

    fn check(value: &Yaml) {
        let text = document("About\nthis file", value);
        let file = Arc::new(SourceFile { path: "a.yml".into(), text: text.as_str().into() });
        let node = yaml::parse(&file).unwrap_or_else(|problem| panic!("{problem}\n{text}"));
        assert!(same(&node, value), "{text}");
    }

    #[test]
    fn written_values_round_trip() {
        let texts = [
            "",
            " ",
            "a",
            "true",
            "No",
            "~",
            "null",
            "12",
            "1.5",
            "0x1f",
            "1e3",
            ".5",
            "-",
            "- a",
            "a: b",
            "a #b",
            "#a",
            "{x}.y",
            "[a",
            "a\"b",
            "a'b",
            "a'b\"c",
            "back\\slash",
            "tab\there",
            "two\nlines",
            "two\nlines\n",
            "\nlead",
            "trail \nx",
            "three\n\nlines",
            "  indented\nblock",
            "x\n\n",
            "\u{1}",
            "ünï",
            "\u{2028}",
            "a,b",
            "&a",
            "*a",
            "!a",
            "%a",
            "@a",
            "`a",
            "|",
            ">",
            "?",
            "? a",
            "key:",
            "2024-01-01",
            "a ",
            "\u{feff}a",
            "=",
            "---",
            "... x",
            "emoji \u{1f600}",
        ];
        for text in texts {
            let member = Yaml::map([("name", Yaml::text(text)), ("sql", Yaml::text("x"))]);
            check(&Yaml::map([("key", Yaml::text(text)), ("list", Yaml::texts([text, "b"])), (text, Yaml::Null)]));
            let members = Yaml::List(vec![member.clone(), Yaml::Commented("why\nso".to_owned(), Box::new(member))]);
            check(&Yaml::map([(
                "cubes",
                Yaml::List(vec![Yaml::map([("name", Yaml::text("c")), ("measures", members)])]),
            )]));
        }
    }

    #[test]
    fn short_members_are_written_on_one_line() {
        let measure = Yaml::map([("name", Yaml::text("revenue")), ("sql", Yaml::text("{CUBE}.amount"))]);
        let long = Yaml::map([("name", Yaml::text("long")), ("sql", Yaml::text("x".repeat(120)))]);
        let key = ("tags", Yaml::texts(["a", "b"]));
        let commented = Yaml::Commented("why".to_owned(), Box::new(measure));
        let cube = Yaml::map([("name", Yaml::text("orders")), ("measures", Yaml::List(vec![commented, long])), key]);
        let text = document("", &Yaml::map([("cubes", Yaml::List(vec![cube]))]));
        let expected = format!(
            "cubes:\n  - name: orders\n    measures:\n      # why\n      - {{name: revenue, sql: \"{{CUBE}}.amount\"}}\n      \
             - name: long\n        sql: {}\n    tags: [a, b]\n",
            "x".repeat(120)
        );
        assert_eq!(text, expected);
    }
}
