//! The levels of indentation of YAML, read line by line.
//!
//! In: lines. Out: the path of keys that encloses the next line, and the entries of the open mappings. Not here: flow
//! collections, which are on one line.

use std::collections::BTreeSet;

use crate::position;

/// The largest number of open levels. The parser allows fewer, so that deeper places have no completions.
const MAX_LEVELS: usize = 128;

/// A level of indentation.
#[derive(Debug)]
enum Level {
    Map { column: usize, entries: Vec<(String, String)> },
    List { column: usize },
}

impl Level {
    fn column(&self) -> usize {
        match self {
            Level::Map { column, .. } | Level::List { column } => *column,
        }
    }
}

/// Returns the content after `- ` and the spaces that follow; `None` if no item of a list begins.
pub(super) fn item_content(content: &str) -> Option<&str> {
    let rest = content.strip_prefix("- ").or_else(|| (content == "-").then_some(""))?;
    Some(rest.trim_start_matches(' '))
}

/// Splits `key: value`. Returns `None` if the line has a different form.
pub(super) fn key_and_value(content: &str) -> Option<(&str, &str)> {
    if content.starts_with(['{', '[', '"', '\'', '#']) {
        return None;
    }
    let colon = content.find(": ").or_else(|| content.ends_with(':').then(|| content.len() - 1))?;
    Some((content[..colon].trim(), content[colon + 1..].trim_start()))
}

/// The levels of indentation that are open after the lines read so far.
#[derive(Default)]
pub(super) struct Levels {
    open: Vec<Level>,
    /// The column of the key whose value is a block scalar (`|` or `>`).
    block: Option<usize>,
}

impl Levels {
    pub(super) fn line(&mut self, line: &str) {
        let column = line.len() - line.trim_start_matches(' ').len();
        let content = line[column..].trim_end();
        if content.is_empty() || self.block.is_some_and(|block| column > block) {
            return;
        }
        self.block = None;
        if content.starts_with('#') {
            return;
        }
        let (mut column, mut content, mut is_item) = (column, content, false);
        while let Some(rest) = item_content(content) {
            self.list(column);
            column += content.len() - rest.len();
            (content, is_item) = (rest, true);
        }
        if let Some((key, value)) = key_and_value(content) {
            self.map(column);
            self.entry(key, value);
            if value.starts_with(['|', '>']) {
                self.block = Some(column);
            }
        } else if is_item {
            self.add_item(content);
        }
    }

    /// Returns whether a line continues a block scalar.
    pub(super) fn is_in_scalar(&self, before: &str) -> bool {
        let column = before.len() - before.trim_start_matches(' ').len();
        self.block.is_some_and(|block| column > block)
    }

    /// Starts an item of a list at a column.
    pub(super) fn list(&mut self, column: usize) {
        self.open.retain(|level| level.column() <= column);
        match self.open.last() {
            Some(Level::List { column: last }) if *last == column => {}
            _ if self.open.len() >= MAX_LEVELS => {}
            _ => self.open.push(Level::List { column }),
        }
    }

    /// Adds a plain item of a list to the value of the list's key.
    fn add_item(&mut self, item: &str) {
        if let [.., Level::Map { entries, .. }, Level::List { .. }] = self.open.as_mut_slice()
            && let Some((_, value)) = entries.last_mut()
        {
            value.push(' ');
            value.push_str(item.split(" #").next().unwrap_or_default());
        }
    }

    /// Starts or continues a mapping at a column.
    pub(super) fn map(&mut self, column: usize) {
        self.open.retain(|level| level.column() <= column);
        if matches!(self.open.last(), Some(Level::List { column: last }) if *last == column) {
            self.open.pop();
        }
        match self.open.last() {
            Some(Level::Map { column: last, .. }) if *last == column => {}
            _ if self.open.len() >= MAX_LEVELS => {}
            _ => self.open.push(Level::Map { column, entries: Vec::new() }),
        }
    }

    pub(super) fn entry(&mut self, key: &str, value: &str) {
        if let Some(Level::Map { entries, .. }) = self.open.last_mut() {
            let value = value.split(" #").next().unwrap_or_default().trim().trim_matches(['"', '\'']);
            entries.push((key.to_owned(), value.to_owned()));
        }
    }

    /// Adds the keys that the innermost mapping has after the position.
    pub(super) fn look_ahead(&mut self, after: &str) {
        let Some(Level::Map { column, entries }) = self.open.last_mut() else { return };
        for line in position::lines(after).skip(1) {
            let own = line.len() - line.trim_start_matches(' ').len();
            let content = line.trim();
            if content.is_empty() || own > *column {
                continue;
            }
            if own < *column || content.starts_with('-') {
                return;
            }
            entries.extend(key_and_value(content).map(|(key, value)| (key.to_owned(), value.to_owned())));
        }
    }

    pub(super) fn path(&self) -> Vec<String> {
        let step = |level: &Level| match level {
            Level::Map { entries, .. } => entries.last().map(|(key, _)| key.clone()),
            Level::List { .. } => Some("[]".to_owned()),
        };
        self.open.iter().filter_map(step).collect()
    }

    /// Returns the path of the innermost mapping, without its last key.
    pub(super) fn path_of_map(&self) -> Vec<String> {
        let mut path = self.path();
        if matches!(self.open.last(), Some(Level::Map { entries, .. }) if !entries.is_empty()) {
            path.pop();
        }
        path
    }

    pub(super) fn entries(&self) -> Vec<(String, String)> {
        match self.open.last() {
            Some(Level::Map { entries, .. }) => entries.clone(),
            _ => Vec::new(),
        }
    }

    pub(super) fn keys(&self) -> BTreeSet<String> {
        self.entries().into_iter().map(|(key, _)| key).collect()
    }

    /// Returns the value of a key in the current item of a top-level list.
    pub(super) fn item_of(&self, list: &str, key: &str) -> Option<String> {
        let [Level::Map { entries: top, .. }, Level::List { .. }, Level::Map { entries, .. }, ..] =
            self.open.as_slice()
        else {
            return None;
        };
        let is_of_list = top.last().is_some_and(|(name, _)| name == list);
        entries.iter().find(|(name, _)| is_of_list && name == key).map(|(_, value)| value.clone())
    }
}
