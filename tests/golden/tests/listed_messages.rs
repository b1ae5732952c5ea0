//! Tests that the lists of texts contain the messages that other tests record.
//!
//! In: the lists in `texts/`, the snapshots of refused queries and of diagnostics, and the cases of the HTTP interface.
//! Out: a failure for each recorded message or hint that no listed text produces, with its code or without a code. The
//! records come from running code, so this finds messages that the scan of the sources misses, and wrong codes. Not
//! here: messages that no test records.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::fs;
use std::path::{Path, PathBuf};

use terrane_structure_tests::sources::{assert_none, root, shown};

/// The folders with snapshots.
const FOLDERS: [&str; 2] = ["runtime", "tests"];

/// The smallest number of recorded messages. A change of the snapshots' form must not empty this test.
const MIN_MESSAGES: usize = 800;

/// A message or a hint in a snapshot.
struct Recorded {
    place: String,
    /// The public code; empty if the place does not show it.
    code: String,
    text: String,
}

/// A listed text, as the literal parts around its values.
struct Listed {
    codes: Vec<String>,
    parts: Vec<String>,
}

#[test]
fn recorded_messages_are_listed() {
    let listed = entries();
    let mut recorded: Vec<Recorded> = FOLDERS.iter().flat_map(|folder| snapshots(&root().join(folder))).collect();
    recorded.extend(cases(&root().join("tests/conformance/cases")));
    assert!(recorded.len() >= MIN_MESSAGES, "only {} messages were found in snapshots", recorded.len());
    let is_listed = |recorded: &Recorded| {
        let fits = |codes: &[String]| codes.is_empty() || recorded.code.is_empty() || codes.contains(&recorded.code);
        listed.iter().any(|listed| fits(&listed.codes) && listed.produces(&recorded.text))
    };
    let missing = recorded.iter().filter(|recorded| !is_listed(recorded));
    let missing: Vec<String> =
        missing.map(|Recorded { place, code, text }| format!("{place}: {code}: {text}: no list has it")).collect();
    assert_none(&missing);
}

impl Listed {
    /// Returns whether a string consists of the parts, in order, with values between them.
    fn produces(&self, text: &str) -> bool {
        let text = &single_braces(text);
        let [first, rest @ ..] = &self.parts[..] else { return false };
        let Some(mut remaining) = text.strip_prefix(&**first) else { return false };
        let Some((last, middle)) = rest.split_last() else { return remaining.is_empty() };
        for part in middle {
            let Some(at) = remaining.find(&**part) else { return false };
            remaining = &remaining[at + part.len()..];
        }
        remaining.ends_with(&**last)
    }
}

/// Returns the texts of all lists that contain a word outside of their holes.
fn entries() -> Vec<Listed> {
    let folder = root().join("tests/golden/texts");
    let lists = fs::read_dir(folder).unwrap().map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap());
    let entries = lists.flat_map(|list| list.lines().filter_map(entry).collect::<Vec<_>>());
    let has_word = |part: &String| part.split(|c: char| !c.is_ascii_alphabetic()).any(|word| word.len() > 1);
    entries.filter(|entry| entry.parts.iter().any(has_word)).collect()
}

/// Parses a line of the form `  CODE, CODE: text` or `  text`.
fn entry(line: &str) -> Option<Listed> {
    let line = line.strip_prefix("  ")?;
    let is_code = |code: &&str| {
        let is_of = |case: fn(&char) -> bool, sign| code.chars().all(|c| case(&c) || c == sign);
        is_of(char::is_ascii_uppercase, '_') || is_of(char::is_ascii_lowercase, '-')
    };
    match line.split_once(": ").filter(|(codes, _)| codes.split(", ").all(|code| is_code(&code))) {
        Some((codes, text)) => {
            Some(Listed { codes: codes.split(", ").map(str::to_owned).collect(), parts: parts(text) })
        }
        None => Some(Listed { codes: Vec::new(), parts: parts(line) }),
    }
}

/// Splits a string at its holes, such as `{name}`. `{{` and `}}` are braces.
fn parts(text: &str) -> Vec<String> {
    let text = text.replace("\\\"", "\"").replace("\\\\", "\\");
    let mut parts = vec![String::new()];
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '{' | '}' if rest.peek() == Some(&c) => {
                rest.next();
                parts.last_mut().unwrap().push(c);
            }
            '{' => {
                rest.by_ref().find(|c| *c == '}');
                parts.push(String::new());
            }
            _ => parts.last_mut().unwrap().push(c),
        }
    }
    parts.iter().map(|part| single_braces(part)).collect()
}

/// Replaces double braces by single ones. Literals that are no formats contain braces as users see them.
fn single_braces(text: &str) -> String {
    text.replace("{{", "{").replace("}}", "}")
}

/// Returns the messages and hints of all snapshots below a folder.
fn snapshots(folder: &Path) -> Vec<Recorded> {
    let mut recorded = Vec::new();
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            recorded.extend(snapshots(&path));
        } else if path.extension().is_some_and(|extension| extension == "snap") {
            recorded.extend(messages(&shown(&path), &fs::read_to_string(&path).unwrap()));
        }
    }
    recorded
}

/// Returns the complete messages that the cases of the HTTP interface expect. A message that begins with `~` or `*` is
/// not complete.
fn cases(folder: &Path) -> Vec<Recorded> {
    let mut recorded = Vec::new();
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let text = fs::read_to_string(&path).unwrap();
        for line in text.lines().filter(|line| line.contains("response:") && line.contains("error:")) {
            let Some((_, rest)) = line.split_once("message: \"") else { continue };
            let end = rest.replace("\\\"", "__").find('"').unwrap();
            let text = rest[..end].replace("\\\"", "\"");
            let code = line.split_once("code: ").map(|(_, code)| code.split([',', '}']).next().unwrap()).unwrap_or("");
            if !text.starts_with(['~', '*']) {
                recorded.push(Recorded { place: shown(&path), code: code.to_owned(), text });
            }
        }
    }
    recorded
}

/// Returns the diagnostics of a snapshot, and the messages of refused queries.
fn messages(place: &str, snapshot: &str) -> Vec<Recorded> {
    let mut found: Vec<Recorded> = Vec::new();
    let mut lines = snapshot.lines();
    while let Some(line) = lines.next() {
        let new =
            |code: &str, text: &str| Recorded { place: place.to_owned(), code: code.to_owned(), text: text.to_owned() };
        if let Some(variant) = line.strip_prefix("refused: ").filter(|text| !text.contains(' ')) {
            found.extend(lines.next().map(|text| new(&public_code(variant), text)));
        } else if let Some((code, text)) = diagnostic(line) {
            found.push(new(code, text));
        } else if let Some(hint) = line.strip_prefix("  hint: ") {
            let code = found.last().map(|last| last.code.clone());
            found.extend(code.map(|code| new(&code, hint)));
        }
    }
    found
}

/// Returns the code and the message of a line such as `cubes.yml:1:2: error[unknown-key]: …`.
fn diagnostic(line: &str) -> Option<(&str, &str)> {
    let start = ["error[", "warning["].iter().find_map(|mark| line.find(mark).map(|at| at + mark.len()))?;
    line[start..].split_once("]: ")
}

/// Returns the public code of a variant: `INVALID_QUERY` for `InvalidQuery`.
fn public_code(variant: &str) -> String {
    let mut code = String::new();
    for c in variant.chars() {
        if c.is_ascii_uppercase() && !code.is_empty() {
            code.push('_');
        }
        code.push(c.to_ascii_uppercase());
    }
    code
}

#[test]
fn texts_with_holes_produce_their_messages() {
    let listed = entry("  INVALID_QUERY, NOT_FOUND: unknown `{name}` of {{x}}, write \\\"{}\\\"").unwrap();
    assert_eq!(listed.codes, ["INVALID_QUERY", "NOT_FOUND"]);
    assert!(listed.produces("unknown `a` of {x}, write \"b\""));
    assert!(!listed.produces("unknown `a` of {x}, write b"));
    assert!(!listed.produces("an unknown `a` of {x}, write \"b\""));
    let listed = entry("  Two words: {}").unwrap();
    assert!(listed.codes.is_empty() && listed.produces("Two words: a"));
}
