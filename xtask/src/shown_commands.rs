//! Checks the commands of the documents that no test runs, because they build the workspace, need a network, or take
//! minutes.
//!
//! In: the blocks of all pages that are not marked `sh`. Out: a failure for each command of `cargo xtask` that this
//! program does not accept, for each package of `cargo` that does not exist, and for each command of `terrane` that its
//! reference does not have. Not here: blocks marked `sh`, which the system tests run.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser;

use crate::Arguments;
use crate::context::Context;

/// The page that lists every command of the program; another test writes it.
const REFERENCE: &str = "runtime/docs/reference/command-line.md";

/// The smallest number of commands, so that a change of the pages' form does not empty this test.
const MIN_COMMANDS: usize = 60;

/// A command of a page, as its words.
struct Shown {
    page: String,
    words: Vec<String>,
}

/// Returns the Markdown files of the workspace.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !name.starts_with('.') && !["target", "node_modules"].contains(&&*name) {
            found.extend(pages(&path));
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
    found
}

/// Returns the lines of the blocks that are not marked `sh` and that begin with a program, without comments.
fn commands(page: &str, text: &str) -> Vec<Shown> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(language) = line.strip_prefix("```") else { continue };
        let block = lines.by_ref().take_while(|line| *line != "```");
        let is_command = |line: &&str| ["cargo ", "terrane "].iter().any(|program| line.starts_with(program));
        let block: Vec<&str> = block.filter(is_command).collect();
        if matches!(language, "" | "console") {
            found.extend(block.into_iter().map(|line| Shown { page: page.to_owned(), words: words(line) }));
        }
    }
    found
}

/// Splits a command into words. Quotes enclose a word, and a comment ends the command.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            (None, '#') if word.is_none() => return words,
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// Returns the fault of a command, if it has one.
fn fault(command: &[String], packages: &BTreeSet<String>, reference: &str) -> Option<String> {
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    match &words[..] {
        ["cargo", "xtask", rest @ ..] => {
            let parsed = Arguments::try_parse_from([&["cargo xtask"][..], rest].concat());
            parsed.err().map(|error| error.to_string())
        }
        ["cargo", rest @ ..] => {
            let named = rest.windows(2).filter(|pair| matches!(pair[0], "-p" | "--package")).map(|pair| pair[1]);
            let unknown: Vec<&str> = named.filter(|package| !packages.contains(*package)).collect();
            (!unknown.is_empty()).then(|| format!("unknown packages: {}", unknown.join(", ")))
        }
        // The heading of a command has all of its words, and none of its arguments.
        _ => {
            let is_heading = |length: &usize| {
                let heading = format!("## {}", words[..*length].join(" "));
                reference.lines().any(|line| line == heading)
            };
            (!(2..=words.len()).any(|length| is_heading(&length))).then(|| "unknown command".to_owned())
        }
    }
}

/// Returns the names of the packages of the workspace and of the examples.
fn packages(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !name.starts_with('.') && name != "target" && name != "node_modules" {
            found.extend(packages(&path));
        } else if name == "Cargo.toml" {
            let manifest = fs::read_to_string(&path).unwrap();
            let (_, package) = manifest.split_once("[package]").unwrap_or_default();
            let named = package.lines().find_map(|line| line.strip_prefix("name = \""));
            found.extend(named.map(|name| name.trim_end_matches('"').to_owned()));
        }
    }
    found
}

#[test]
fn shown_commands_are_valid() {
    let root = Context::discover().unwrap().root;
    let reference = fs::read_to_string(root.join(REFERENCE)).unwrap();
    let packages = packages(&root);
    let mut shown = Vec::new();
    for page in pages(&root) {
        let name = page.strip_prefix(&root).unwrap().display().to_string();
        // The reference has the forms of commands, not commands.
        if name != REFERENCE {
            shown.extend(commands(&name, &fs::read_to_string(&page).unwrap()));
        }
    }
    assert!(shown.len() >= MIN_COMMANDS, "only {} commands were found", shown.len());
    let faults = shown.iter().filter_map(|Shown { page, words }| {
        fault(words, &packages, &reference).map(|fault| format!("{page}: {}: {fault}", words.join(" ")))
    });
    let faults: Vec<String> = faults.collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn invalid_commands_are_found() {
    let packages = BTreeSet::from(["xtask".to_owned()]);
    let faulty = |line: &str| fault(&words(line), &packages, "## terrane cost report\n").is_some();
    for line in ["cargo xtask nothing", "cargo xtask setup --nothing", "cargo test -p nothing", "terrane cost nothing"]
    {
        assert!(faulty(line), "{line}");
    }
    for line in ["cargo xtask setup   # prepares", "cargo test -p xtask", "terrane cost report . --json"] {
        assert!(!faulty(line), "{line}");
    }
    assert_eq!(words("a 'b c' \"\" d#e # f"), ["a", "b c", "", "d#e"]);
}
