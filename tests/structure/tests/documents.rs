//! Checks the links and the lengths of all documents, and that the README names a test for each fact of its comparison.
//!
//! In: every Markdown file of the workspace. Out: a failure for each link whose file, heading or item does not exist, and
//! for each test that a row of the comparison lacks or that does not exist. Not here: other facts in the documents. Other
//! tests compare them with the code.

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

/// The largest number of lines of the README.
const MAX_README_LINES: usize = 150;
/// The sections of the README, in order.
const README_SECTIONS: [&str; 8] = [
    "Quick start",
    "A first query",
    "Features",
    "Documentation",
    "Command line",
    "Comparison with other semantic layers",
    "Development",
    "Licence",
];

/// The heading of the README's comparison, and the smallest number of its rows.
const COMPARISON: (&str, usize) = ("## Comparison with other semantic layers", 5);

#[test]
fn readme_is_short_and_has_its_sections() {
    let readme = read(&root().join("README.md"));
    assert!(readme.lines().count() < MAX_README_LINES, "README.md has {} lines", readme.lines().count());
    let sections: Vec<&str> = readme.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert_eq!(sections, README_SECTIONS);
}

/// The groups of changes in a version, by Keep a Changelog.
const CHANGES: [&str; 6] = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"];

#[test]
fn changelog_has_the_form_of_keep_a_changelog() {
    let changelog = read(&root().join("CHANGELOG.md"));
    let mut lines = changelog.lines().enumerate().filter(|(_, line)| line.starts_with('#'));
    assert_eq!(lines.next().map(|(_, line)| line), Some("# Changelog"));
    assert!(changelog.contains("https://keepachangelog.com/"), "CHANGELOG.md names its form");
    let mut faults = Vec::new();
    for (index, line) in lines {
        let is_version = line.strip_prefix("## ").is_some_and(|version| version.starts_with('['));
        let is_group = line.strip_prefix("### ").is_some_and(|group| CHANGES.contains(&group));
        if !is_version && !is_group {
            faults.push(format!("CHANGELOG.md:{}: neither a version nor a group: {line}", index + 1));
        }
    }
    for (index, line) in changelog.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let is_change = line.starts_with("- ") || line.starts_with('[');
        let is_introduction = index == 1;
        if !is_change && !is_introduction {
            faults.push(format!("CHANGELOG.md:{}: a change is one line that begins with a dash", index + 1));
        }
    }
    assert_none(&faults);
}

#[test]
fn comparison_names_a_test_for_each_fact() {
    let faults = comparison_faults(&read(&root().join("README.md")));
    assert_none(&faults);
}

/// Returns the faults of the comparison: a fact about this project needs links to existing tests, and a fact about
/// others a link to their documentation.
fn comparison_faults(readme: &str) -> Vec<String> {
    let (heading, least) = COMPARISON;
    let Some((_, section)) = readme.split_once(heading) else { return vec![format!("README.md lacks `{heading}`")] };
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    let mut faults = Vec::new();
    if rows.len() < least {
        faults.push(format!("the comparison has {} rows, fewer than {least}", rows.len()));
    }
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [question, own, others] = cells[..] else {
            faults.push(format!("expected three cells: {row}"));
            continue;
        };
        let tests: Vec<_> = links(own).into_iter().filter(|link| link.target.ends_with(".rs")).collect();
        if tests.is_empty() {
            faults.push(format!("no test proves the answer to: {question}"));
        }
        for test in tests {
            let function = format!("\nfn {}()", test.text.trim_matches('`'));
            if !fs::read_to_string(root().join(&test.target)).is_ok_and(|source| source.contains(&function)) {
                faults.push(format!("{} has no test {}", test.target, test.text));
            }
        }
        if others != "–" && !others.contains("](https://") {
            faults.push(format!("no documentation of others for: {question}"));
        }
    }
    faults
}

#[test]
fn facts_without_tests_are_found() {
    let row = |own: &str, others: &str| {
        format!("{}\n| question | own | others |\n|---|---|---|\n| Why? | {own} | {others} |\n\n## Next", COMPARISON.0)
    };
    let faults = |own: &str, others: &str| comparison_faults(&row(own, others)).split_off(1).join("; ");
    let test = "[`every_link_has_a_target`](tests/structure/tests/documents.rs)";
    assert_eq!(faults(test, "–"), "");
    assert_eq!(faults(test, "[x](https://example.com)"), "");
    assert_eq!(faults("Yes.", "–"), "no test proves the answer to: Why?");
    assert_eq!(faults(test, "They have it."), "no documentation of others for: Why?");
    let missing = "[`no_such_test`](tests/structure/tests/documents.rs)";
    assert_eq!(faults(missing, "–"), "tests/structure/tests/documents.rs has no test `no_such_test`");
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
