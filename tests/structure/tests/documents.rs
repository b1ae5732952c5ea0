//! Checks the links and the lengths of all documents.
//!
//! In: every Markdown file of the workspace. Out: a failure for each link whose file, heading or item does not exist.
//! Not here: the facts in the documents. Other tests compare them with the code.

use std::fs;
use std::path::{Path, PathBuf};

use terrane_structure_tests::documents::{fault, links};
use terrane_structure_tests::sources::{assert_none, read, root, shown};

#[test]
fn every_link_has_a_target() {
    let documents = documents(&root());
    assert!(documents.len() > 10, "documents are found");
    let mut faults = Vec::new();
    for document in documents {
        let text = read(&document);
        for link in links(&text) {
            // Images are not UTF-8, and have no headings.
            let file = |path: &Path| fs::read(path).map(|bytes| String::from_utf8(bytes).ok());
            let target = |path: &Path| if path.is_dir() { Ok(None) } else { file(path) };
            if let Some(fault) = fault(&document, &link, target) {
                faults.push(format!("{}:{}: [{}]({}): {fault}", shown(&document), link.line, link.text, link.target));
            }
        }
    }
    assert_none(&faults);
}

/// The largest number of lines of a page: four screens of 50 lines.
const MAX_LINES: usize = 200;
/// The largest number of characters of a paragraph: five lines of 120.
const MAX_PARAGRAPH_CHARS: usize = 600;
const OVERVIEW: &str = "runtime/ARCHITECTURE.md";

#[test]
fn architecture_is_short_and_links_to_every_page() {
    let overview = read(&root().join(OVERVIEW));
    let pages = documents(&root().join("runtime/architecture"));
    let mut faults = long_paragraphs(OVERVIEW, &overview);
    if overview.lines().count() > MAX_LINES {
        faults.push(format!("{OVERVIEW} has more than {MAX_LINES} lines: move details into a page"));
    }
    for page in &pages {
        let name = shown(page);
        faults.extend(long_paragraphs(&name, &read(page)));
        let target = name.strip_prefix("runtime/").unwrap_or(&name);
        if !links(&overview).iter().any(|link| link.target == target) {
            faults.push(format!("{OVERVIEW} does not link to {target}"));
        }
    }
    assert!(!pages.is_empty(), "pages are found");
    assert_none(&faults);
}

/// Returns the paragraphs and list items that are too long. Tables and code do not count.
fn long_paragraphs(name: &str, text: &str) -> Vec<String> {
    let is_long = |line: &&(usize, &str)| line.1.chars().count() > MAX_PARAGRAPH_CHARS && !line.1.starts_with('|');
    let lines: Vec<_> = text.lines().enumerate().collect();
    lines
        .iter()
        .filter(is_long)
        .map(|(index, line)| format!("{name}:{}: a paragraph of {} characters", index + 1, line.chars().count()))
        .collect()
}

#[test]
fn long_paragraph_is_found() {
    let text = format!("short\n{}\n| {} |\n", "x".repeat(601), "y".repeat(700));
    assert_eq!(long_paragraphs("a.md", &text), ["a.md:2: a paragraph of 601 characters"]);
}

/// Returns all Markdown files, without those in target folders and hidden folders.
fn documents(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("reading {}: {error}", folder.display()));
    let mut documents = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if path.is_dir() && !name.starts_with('.') && name != "target" && name != "node_modules" {
            documents.extend(self::documents(&path));
        } else if name.ends_with(".md") {
            documents.push(path);
        }
    }
    documents.sort();
    documents
}
