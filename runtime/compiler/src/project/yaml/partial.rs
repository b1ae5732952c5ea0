//! Parses the parts of a file that surround mistakes of syntax.
//!
//! In: one file. Out: the tree without the broken parts, one diagnostic for each of them, and their lines. A broken
//! part is the smallest list item with the mistake after whose removal the parser comes further: a member, else its
//! cube, else a list of the file. The item is replaced by a null at its place, so that its owner counts as incomplete;
//! every other value has the place that it has in the file. Not here: the place of the mistake (`recovery`).

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::{Node, parse};
use crate::diagnostic::{Code, Diagnostic};
use crate::text::SourceFile;

/// The largest number of broken parts of one file.
const MAX_PARTS: usize = 16;

/// The result of parsing a file with mistakes of syntax.
pub(in crate::project) struct PartialFile {
    /// The tree; `None` if the broken part is the whole file.
    pub(in crate::project) root: Option<Node>,
    pub(in crate::project) diagnostics: Vec<Diagnostic>,
    /// The lines of the broken parts, counted from 1.
    pub(in crate::project) broken: Vec<RangeInclusive<u32>>,
    /// The text of the broken parts.
    pub(in crate::project) unread: String,
}

/// Parses one file. If it has mistakes of syntax, parses its other parts.
pub(in crate::project) fn parse_partly(file: &Arc<SourceFile>) -> PartialFile {
    let mut found = PartialFile { root: None, diagnostics: Vec::new(), broken: Vec::new(), unread: String::new() };
    let mut mistake = match parse(file) {
        Ok(root) => return PartialFile { root: Some(root), ..found },
        Err(mistake) => mistake,
    };
    let mut current = Arc::clone(file);
    loop {
        let part = (found.broken.len() < MAX_PARTS).then(|| without(&current, &mistake)).flatten();
        if !is_consequence(file, &mistake, &found.unread) {
            found.diagnostics.push(mistake);
        }
        let Some(Removed { rest, lines, text, outcome }) = part else {
            // The whole file is unread.
            return PartialFile { unread: file.text.to_string(), ..found };
        };
        found.broken.push(lines);
        found.unread.push_str(&text);
        match outcome {
            Ok(root) => return PartialFile { root: Some(root), ..found },
            Err(next) => (current, mistake) = (rest, next),
        }
    }
}

/// A file without one broken part, and the outcome of parsing it.
struct Removed {
    rest: Arc<SourceFile>,
    lines: RangeInclusive<u32>,
    text: String,
    outcome: Result<Node, Diagnostic>,
}

/// Removes the smallest part with a mistake after whose removal the parser comes further.
fn without(file: &Arc<SourceFile>, mistake: &Diagnostic) -> Option<Removed> {
    let line = mistake.span.as_ref().filter(|_| mistake.code == Code::YamlSyntax)?.line as usize;
    let lines: Vec<&str> = file.text.split_inclusive('\n').collect();
    // A second document has keys of its own.
    if line > lines.len() || lines[line - 1].starts_with("---") {
        return None;
    }
    parts(&lines, line - 1).into_iter().find_map(|part| {
        let rest = Arc::new(SourceFile { path: Arc::clone(&file.path), text: blank(&lines, &part).into() });
        let outcome = parse(&rest);
        let is_further = match &outcome {
            Ok(_) => true,
            Err(next) => {
                next.code == Code::YamlSyntax
                    && next.span.as_ref().is_some_and(|span| span.line as usize > part.end() + 1)
            }
        };
        let text = lines[part.clone()].concat();
        let lines = *part.start() as u32 + 1..=*part.end() as u32 + 1;
        is_further.then_some(Removed { rest, lines, text, outcome })
    })
}

/// Returns the list items around a line, the innermost first, and the list of the file that contains them.
fn parts(lines: &[&str], at: usize) -> Vec<RangeInclusive<usize>> {
    let mut column = indent(lines[at]).unwrap_or_default() + 1;
    let mut parts = Vec::new();
    for start in (0..=at).rev() {
        let Some(own) = indent(lines[start]).filter(|own| *own < column) else { continue };
        let content = lines[start].trim();
        let is_item = content == "-" || content.starts_with("- ");
        if is_item || own == 0 {
            let is_end = |line: &&str| {
                indent(line).is_some_and(|next| next < own || (next == own && !is_below(line, own, is_item)))
            };
            let following = lines[at + 1..].iter().position(|line| is_end(line));
            parts.push(start..=following.map_or(lines.len() - 1, |following| at + following));
            column = own;
        }
        if own == 0 && !is_item {
            break;
        }
    }
    parts
}

/// Returns whether a line belongs to the key above it in the same column: an item of a list that is not indented.
fn is_below(line: &str, column: usize, is_item: bool) -> bool {
    column == 0 && !is_item && line.starts_with('-')
}

/// Returns the column of the content of a line; `None` for an empty line or a comment.
fn indent(line: &str) -> Option<usize> {
    let content = line.trim_start_matches(' ');
    (!content.trim().is_empty() && !content.starts_with('#')).then(|| line.len() - content.len())
}

/// Returns the text with a null in the place of a list item, or without a list of the file.
fn blank(lines: &[&str], part: &RangeInclusive<usize>) -> String {
    let mut text = lines[..*part.start()].concat();
    let first = lines[*part.start()];
    let dash = first.len() - first.trim_start_matches(' ').len();
    let is_item = first[dash..].starts_with('-');
    for line in &lines[part.clone()] {
        text.extend(line.chars().map(|c| if c == '\n' { "\n".to_owned() } else { " ".repeat(c.len_utf8()) }));
    }
    if is_item {
        let start = lines[..*part.start()].iter().map(|line| line.len()).sum::<usize>() + dash;
        text.replace_range(start..=start, "-");
        if first[dash..].trim_end().len() > 2 {
            text.replace_range(start + 2..start + 3, "~");
        }
    }
    text.push_str(&lines[part.end() + 1..].concat());
    text
}

/// Returns whether a mistake is an alias whose anchor is in a part that was removed.
fn is_consequence(file: &SourceFile, mistake: &Diagnostic, removed: &str) -> bool {
    let Some(span) = &mistake.span else { return false };
    let line = file.text.lines().nth((span.line as usize).saturating_sub(1)).unwrap_or_default();
    let alias: String =
        line.chars().skip((span.column as usize).saturating_sub(1)).take(span.length as usize).collect();
    alias.strip_prefix('*').is_some_and(|name| !name.is_empty() && removed.contains(&format!("&{name}")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

    use super::super::NodeValue;
    use super::*;

    fn partial(text: &str) -> PartialFile {
        parse_partly(&Arc::new(SourceFile { path: "cubes/a.yml".into(), text: text.into() }))
    }

    fn lines(found: &PartialFile) -> Vec<u32> {
        found.diagnostics.iter().map(|problem| problem.span.as_ref().unwrap().line).collect()
    }

    #[test]
    fn broken_item_is_a_null_and_others_stay() {
        let found = partial(
            "cubes:\n  - name: a\n    dimensions:\n      - name: x\n        sql: \"x\n      - name: y\n  - name: ä: b\n  - \
             name: c\nmetrics:\n  - name: m\n",
        );
        assert_eq!(lines(&found), [5, 7]);
        assert_eq!(found.broken, [4..=5, 7..=7]);
        let root = found.root.unwrap();
        let NodeValue::Map(keys) = &root.value else { unreachable!("the file is a mapping") };
        assert_eq!(keys.iter().map(|(key, _)| &*key.text).collect::<Vec<_>>(), ["cubes", "metrics"]);
        let NodeValue::List(cubes) = &keys[0].1.value else { unreachable!("cubes are a list") };
        assert!(matches!(cubes[1].value, NodeValue::Null) && cubes[1].origin.line == 7, "{}", cubes[1].origin.line);
        assert_eq!((cubes.len(), cubes[2].origin.line), (3, 8));
    }

    #[test]
    fn broken_list_of_the_file_is_removed() {
        let found = partial("metrics:\n  a: b: c\n  d: e\ncubes:\n- name: c\n");
        assert_eq!(found.broken, [1..=3]);
        let NodeValue::Map(keys) = found.root.unwrap().value else { unreachable!("the file is a mapping") };
        assert_eq!(&*keys[0].0.text, "cubes");
    }

    #[test]
    fn alias_of_a_broken_part_is_not_a_second_mistake() {
        let found = partial("cubes:\n  - name: &a b: c\n  - name: *a\n  - name: d\n");
        assert_eq!(lines(&found), [2]);
        assert_eq!(found.broken, [2..=2, 3..=3]);
        assert!(found.root.is_some());
    }

    #[test]
    fn file_without_items_is_unread() {
        let found = partial("cubes: [\n");
        assert_eq!((lines(&found), found.root.is_some()), (vec![1], true));
        let found = partial("--- a\n--- b\n");
        assert!(found.root.is_none() && found.diagnostics.len() == 1);
    }
}
