//! The links of all documents.
//!
//! In: every Markdown file of the workspace. Out: a failure for each link whose file, heading or item is gone.
//! Deliberately absent: the facts of the documents; tests of their subjects compare those with the code.

use std::fs;
use std::path::{Path, PathBuf};

use terrane_structure_tests::documents::{fault, links};
use terrane_structure_tests::sources::{assert_none, read, root, shown};

#[test]
fn every_link_leads_somewhere() {
    let documents = documents(&root());
    assert!(documents.len() > 10, "documents are found");
    let mut faults = Vec::new();
    for document in documents {
        let text = read(&document);
        for link in links(&text) {
            let target = |path: &Path| if path.is_dir() { Ok(None) } else { fs::read_to_string(path).map(Some) };
            if let Some(fault) = fault(&document, &link, target) {
                faults.push(format!("{}:{}: [{}]({}): {fault}", shown(&document), link.line, link.text, link.target));
            }
        }
    }
    assert_none(&faults);
}

/// All Markdown files, without those of target folders and hidden folders.
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
