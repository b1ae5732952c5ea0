//! Finds out where in a YAML file a position is. The text around the position need not be valid YAML.
//!
//! In: the content of a file and an offset. Out: a [`Context`]: the path of keys, and the kind of place. The
//! indentation of the lines before the position gives the levels. The line of the position is scanned for brackets,
//! quotes and braces. Not here: the words that are valid at the place.

mod flow;
mod levels;

use std::collections::BTreeSet;

use crate::position::{self, BYTE_ORDER_MARK};
use flow::{Bracket, Flow, SQL_KEYS, entries_of};
use levels::{Levels, item_content, key_and_value};

/// The place of a position in the structure of a file.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Context {
    /// The keys that enclose the place, from the outermost. `[]` stands for an item of a list.
    pub(super) path: Vec<String>,
    pub(super) place: Place,
    /// True if the place is the beginning of an item of a block list, which may become a key or a value.
    pub(super) is_item: bool,
    /// The part of the word before the position.
    pub(super) word: String,
    /// The byte offset where the text that a completion replaces begins.
    pub(super) start: usize,
    /// The name of the cube that encloses the place.
    pub(super) cube: Option<String>,
    /// The cubes that the enclosing policy applies to.
    pub(super) cubes: Vec<String>,
    /// The other keys of the mapping at the place, with their values.
    siblings: Vec<(String, String)>,
}

#[derive(Debug, Default, PartialEq)]
pub(super) enum Place {
    /// A key of a mapping. `present` are the keys that the mapping already has.
    Key { present: BTreeSet<String> },
    #[default]
    Value,
    /// A name in `{…}` inside SQL.
    Braces,
    /// A call in `{{ … }}`.
    Jinja,
    /// A value of the caller in `{{ … }}` inside a policy.
    UserValue,
}

impl Context {
    /// Returns the context in a YAML file.
    pub(super) fn at(text: &str, offset: usize) -> Context {
        let Some(unmarked) = text.strip_prefix(BYTE_ORDER_MARK) else { return Context::in_yaml(text, offset) };
        let mark = text.len() - unmarked.len();
        let mut context = Context::in_yaml(unmarked, offset.saturating_sub(mark));
        context.start += mark;
        context
    }

    /// Returns the context in YAML without a byte order mark.
    fn in_yaml(text: &str, offset: usize) -> Context {
        let line_start = position::line_start(text, offset);
        let mut levels = Levels::default();
        position::lines(&text[..line_start]).for_each(|line| levels.line(line));
        let line_end = text[line_start..].find(['\n', '\r']).map_or(text.len(), |newline| line_start + newline);
        let (before, after) = (&text[line_start..offset], &text[offset..line_end]);
        let word_length =
            before.len() - before.trim_end_matches(|c: char| c.is_alphanumeric() || "_.".contains(c)).len();
        let mut context = Context {
            word: before[before.len() - word_length..].to_owned(),
            start: offset - word_length,
            ..Context::default()
        };
        if levels.is_in_scalar(before) {
            context.path = levels.path();
            context.in_text(before, offset);
        } else {
            context.in_line(&mut levels, before, after, offset, &text[line_end..]);
        }
        context.surroundings(&levels);
        context
    }

    /// Returns the context in a SQL model.
    pub(super) fn in_model(text: &str, offset: usize) -> Context {
        let mut context = Context { start: offset, ..Context::default() };
        context.in_text(&text[..offset], offset);
        if context.place == Place::Braces {
            context.place = Place::Value;
        }
        context
    }

    /// Returns the value of another key in the mapping at the place.
    pub(super) fn sibling(&self, key: &str) -> Option<&str> {
        self.siblings.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Sets the place according to the last brace that is open before the position.
    fn in_text(&mut self, before: &str, offset: usize) {
        let double = before.rfind("{{").filter(|at| !before[*at..].contains("}}"));
        if let Some(open) = double {
            self.place = if self.path.iter().any(|step| step == "policies") { Place::UserValue } else { Place::Jinja };
            let typed = before[open + 2..].trim_start();
            self.start = offset - typed.len();
            self.word = typed.to_owned();
            return;
        }
        if let Some(open) = before.rfind('{').filter(|at| !before[*at..].contains('}')) {
            let inside = &before[open + 1..];
            if inside.len() == self.word.len() {
                self.place = Place::Braces;
            }
        }
    }

    /// Finds the place within the line of the position.
    fn in_line(&mut self, levels: &mut Levels, before: &str, after: &str, offset: usize, following: &str) {
        let mut column = before.len() - before.trim_start_matches(' ').len();
        let mut content = &before[column..];
        let mut is_item = false;
        while let Some(rest) = item_content(content) {
            levels.list(column);
            column += content.len() - rest.len();
            (content, is_item) = (rest, true);
        }
        let Some((key, value)) = key_and_value(content) else {
            if content.starts_with(['{', '[', '"', '\'']) {
                self.path = levels.path();
                return self.in_value(levels, content, after, offset);
            }
            levels.map(column);
            self.path = levels.path_of_map();
            levels.look_ahead(following);
            let present = levels.keys();
            self.is_item = is_item && present.is_empty();
            self.place = Place::Key { present };
            return;
        };
        levels.map(column);
        levels.entry(key, value);
        self.path = levels.path();
        levels.look_ahead(following);
        self.in_value(levels, value, after, offset);
    }

    /// Finds the place within a value, which is a scalar or a flow collection on one line.
    fn in_value(&mut self, levels: &mut Levels, value: &str, after: &str, offset: usize) {
        let base = self.path.clone();
        let flow = Flow::of(value, base.last().map_or("", String::as_str));
        self.path.extend(flow.path());
        if let Some(Bracket::Map { entries, key }) = flow.open.last() {
            self.siblings.clone_from(entries);
            self.siblings.extend(entries_of(after));
            if key.is_none() && !flow.is_in_scalar {
                let present = self.siblings.iter().map(|(key, _)| key.clone()).collect();
                self.place = Place::Key { present };
                return;
            }
        } else {
            self.siblings = levels.entries();
        }
        self.in_text(&value[flow.scalar..], offset);
        if self.place == Place::Braces
            && !flow.is_in_scalar
            && !SQL_KEYS.iter().any(|key| self.path.ends_with(&[(*key).to_owned()]))
        {
            self.place = Place::Value;
        }
    }

    /// Finds the cube or policy around the place.
    fn surroundings(&mut self, levels: &Levels) {
        let name = |list: &str, key: &str| levels.item_of(list, key);
        self.cube = name("cubes", "name");
        let cubes = name("policies", "cubes").unwrap_or_default();
        let words = cubes.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty());
        self.cubes = words.map(str::to_owned).collect();
        if self.siblings.is_empty() {
            self.siblings = levels.entries();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Context {
        let offset = text.find('¦').expect("the text has a mark");
        Context::at(&text.replace('¦', ""), offset)
    }

    fn path(text: &str) -> String {
        at(text).path.join(".")
    }

    #[test]
    fn paths_follow_indentation_and_brackets() {
        assert_eq!(
            path("cubes:\n  - name: a\n    measures:\n      - name: b\n        type: ¦"),
            "cubes.[].measures.[].type"
        );
        assert_eq!(path("cubes:\n- name: a\n  measures:\n  - {name: b, type: c¦"), "cubes.[].measures.[].type");
        assert_eq!(path("cubes:\n  - name: a\n    drill: |\n      x: y\n    title: ¦"), "cubes.[].title");
        assert_eq!(path("metrics:\n  - name: a\n    filters: [{member: a.b¦"), "metrics.[].filters.[].member");
    }

    #[test]
    fn context_of_a_key_lists_the_present_keys() {
        let context = at("cubes:\n  - name: a\n    measures:\n      - {name: b, t¦, sql: x}");
        let Place::Key { present } = &context.place else { panic!("{context:?}") };
        assert_eq!(present.iter().map(String::as_str).collect::<Vec<_>>(), ["name", "sql"]);
        assert_eq!(context.path.join("."), "cubes.[].measures.[]");
        let context = at("cubes:\n  - name: a\n    t¦\n    title: x\n");
        let Place::Key { present } = &context.place else { panic!("{context:?}") };
        assert!(present.contains("title") && present.contains("name"), "{present:?}");
        assert_eq!(context.path.join("."), "cubes.[]");
    }

    #[test]
    fn open_braces_in_sql_are_references() {
        for text in [
            "cubes:\n  - name: a\n    measures:\n      - {name: b, type: number, sql: \"{c} / {d¦",
            "cubes:\n  - name: a\n    measures:\n      - name: b\n        type: number\n        sql: \"{d¦\"\n",
            "cubes:\n  - name: a\n    measures:\n      - name: b\n        type: number\n        sql: |\n          CASE WHEN {d¦\n",
            "cubes:\n  - name: a\n    measures:\n      - name: b\n        type: number\n        sql: {d¦",
        ] {
            let context = at(text);
            assert_eq!((&context.place, context.word.as_str()), (&Place::Braces, "d"), "{text}");
            assert_eq!(context.cube.as_deref(), Some("a"), "{text}");
            assert!(context.sibling("type") == Some("number") || text.contains('|'), "{text}: {context:?}");
        }
        let context = at("policies:\n  - name: p\n    cubes: [a, b]\n    row_filter: \"{CUBE}.x = {{ user.r¦\"");
        assert_eq!((&context.place, context.word.as_str()), (&Place::UserValue, "user.r"));
        assert_eq!(context.cubes, ["a", "b"]);
    }

    #[test]
    fn plain_items_may_be_keys_or_values() {
        let context = at("tests:\n  - name: a\n    query:\n      measures:\n        - flights.count\n        - fl¦\n");
        assert_eq!((context.path.join(".").as_str(), context.is_item), ("tests.[].query.measures.[]", true));
        assert_eq!(context.word, "fl");
        let context = at("tests:\n  - na¦\n    query: {}\n");
        assert!(!context.is_item, "{context:?}");
        let context = at("policies:\n  - name: p\n    cubes:\n      - a\n      - b # c\n    deny:\n    - ¦\n");
        assert_eq!((context.cubes, context.is_item), (vec!["a".to_owned(), "b".to_owned()], true));
    }

    #[test]
    fn byte_order_mark_and_line_breaks_do_not_change_the_context() {
        let text = "cubes:\n  - name: a\n    measures:\n      - name: b\n        type: c¦\n        title: d\n";
        let plain = at(text);
        for changed in [text.replace('\n', "\r"), text.replace('\n', "\r\n"), format!("\u{feff}{text}")] {
            let context = at(&changed);
            assert_eq!((&context.path, &context.siblings), (&plain.path, &plain.siblings), "{changed:?}");
            assert_eq!(context.start + 1, changed.find('¦').unwrap(), "{changed:?}");
        }
    }

    #[test]
    fn long_lines_take_linear_time() {
        for text in ["- ", "{a: ", "[", "x: ", "{sql: x", "a, ", "}"] {
            at(&format!("cubes: {{a: {}¦", text.repeat(100_000)));
            at(&format!("{}¦", text.repeat(100_000)));
            at(&format!("{}\n¦", text.repeat(100_000)));
        }
        let context = at(&format!("cubes:\n  - {{name: {}, type: ¦", "x".repeat(1_000_000)));
        assert_eq!(context.sibling("name").map(str::len), Some(1_000_000));
    }

    #[test]
    fn models_complete_calls() {
        let text = "SELECT * FROM {{ ref('we";
        let context = Context::in_model(text, text.len());
        assert_eq!((&context.place, context.word.as_str()), (&Place::Jinja, "ref('we"));
        assert_eq!(context.start, text.find("ref").unwrap());
    }
}
