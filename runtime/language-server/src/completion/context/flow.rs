//! The brackets, quotes and braces of a value on one line.
//!
//! In: the part of a line before a position. Out: the open brackets, with the entries of their mappings.

use std::ops::Range;

/// The keys whose values are SQL, where an open brace begins a reference.
pub(super) const SQL_KEYS: [&str; 4] = ["sql", "row_filter", "expression", "arrival"];

/// Returns the entries that follow the position in a flow mapping `{…}`.
pub(super) fn entries_of(after: &str) -> Vec<(String, String)> {
    let flow = Flow::of(&format!("{{x: {after}"), "");
    let entries = match flow.open.into_iter().next() {
        Some(Bracket::Map { entries, .. }) => entries,
        _ => flow.closed,
    };
    entries.into_iter().filter(|(key, _)| key != "x").collect()
}

/// The open brackets of a flow collection on one line.
#[derive(Default)]
pub(super) struct Flow {
    pub(super) open: Vec<Bracket>,
    /// The entries of the outermost mapping, if it is already closed.
    closed: Vec<(String, String)>,
    /// The byte offset where the last scalar begins.
    pub(super) scalar: usize,
    /// True if the text ends in quotes, or in a plain scalar that began before a brace.
    pub(super) is_in_scalar: bool,
    /// The place of a plain value that is not stored yet.
    pending: Option<Range<usize>>,
}

pub(super) enum Bracket {
    Map { entries: Vec<(String, String)>, key: Option<String> },
    List,
}

impl Flow {
    pub(super) fn of(value: &str, key: &str) -> Flow {
        let mut flow = Flow::default();
        let mut chars = value.char_indices().peekable();
        let is_sql = SQL_KEYS.contains(&key);
        let mut is_plain = false;
        while let Some((at, c)) = chars.next() {
            let is_in_sql = is_sql && flow.open.is_empty() || flow.is_sql_value();
            match c {
                '"' | '\'' if !is_plain => {
                    (flow.scalar, flow.is_in_scalar) = (at + 1, true);
                    while let Some((_, inner)) = chars.next() {
                        if inner == '\\' && c == '"' {
                            chars.next();
                        } else if inner == c {
                            flow.is_in_scalar = false;
                            break;
                        }
                    }
                    if !flow.is_in_scalar {
                        is_plain = true;
                        let end = chars.peek().map_or(value.len(), |(end, _)| *end);
                        flow.set_value(&value[at..end]);
                    }
                }
                '{' if !is_plain && !is_in_sql => {
                    flow.store_pending(value);
                    flow.open.push(Bracket::Map { entries: Vec::new(), key: None });
                    flow.scalar = at + 1;
                }
                '[' if !is_plain && !is_in_sql => {
                    flow.store_pending(value);
                    flow.open.push(Bracket::List);
                    flow.scalar = at + 1;
                }
                '}' | ']' if !(flow.open.is_empty() || is_in_sql && value[flow.scalar..at].contains('{')) => {
                    flow.store_pending(value);
                    if let Some(Bracket::Map { entries, .. }) = flow.open.pop() {
                        flow.closed = entries;
                    }
                    is_plain = true;
                }
                ',' if !flow.open.is_empty() => {
                    flow.store_pending(value);
                    if let Some(Bracket::Map { key, .. }) = flow.open.last_mut() {
                        *key = None;
                    }
                    (flow.scalar, is_plain) = (at + 1, false);
                }
                ':' if value[at + 1..].starts_with([' ', '\n']) || at + 1 == value.len() => {
                    if let Some(Bracket::Map { entries, key: key @ None }) = flow.open.last_mut() {
                        let name = value[flow.scalar..at].trim().to_owned();
                        flow.pending = None;
                        entries.push((name.clone(), String::new()));
                        *key = Some(name);
                        (flow.scalar, is_plain) = (at + 1, false);
                    }
                }
                c if c.is_whitespace() => {}
                _ => {
                    is_plain = true;
                    flow.pending = Some(flow.scalar..at + c.len_utf8());
                }
            }
        }
        flow.store_pending(value);
        flow.is_in_scalar |= is_plain && (is_sql || flow.is_sql_value());
        flow
    }

    fn is_sql_value(&self) -> bool {
        matches!(self.open.last(), Some(Bracket::Map { key: Some(key), .. }) if SQL_KEYS.contains(&key.as_str()))
    }

    /// Stores a plain value once it has ended, because storing it after each character takes quadratic time.
    fn store_pending(&mut self, value: &str) {
        if let Some(place) = self.pending.take() {
            self.set_value(value[place].trim());
        }
    }

    fn set_value(&mut self, value: &str) {
        if let Some(Bracket::Map { entries, key: Some(_) }) = self.open.last_mut()
            && let Some((_, last)) = entries.last_mut()
        {
            value.trim_matches(['"', '\'']).clone_into(last);
        }
    }

    pub(super) fn path(&self) -> impl Iterator<Item = String> + '_ {
        self.open.iter().flat_map(|bracket| match bracket {
            Bracket::Map { key, .. } => key.clone(),
            Bracket::List => Some("[]".to_owned()),
        })
    }
}
