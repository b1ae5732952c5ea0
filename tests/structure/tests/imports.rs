//! Checks for cycles of imports between the files of a crate.
//!
//! In: the imports of every crate, `import_cycles.txt` and `module_cycles.txt`. Out: a failure for each unlisted cycle
//! of files, for each listed import that is not part of a cycle, and for each difference between the cycles of modules
//! and the listed ones. Not here: imports between a module and the modules in its folder, which are one unit.

use std::path::Path;

use terrane_structure_tests::imports::Graph;
use terrane_structure_tests::sources::{FOLDERS, assert_none, crates, list, read, root};

const ALLOWED: &str = "tests/structure/import_cycles.txt";
const ALLOWED_MODULES: &str = "tests/structure/module_cycles.txt";

struct Allowed {
    from: String,
    to: String,
}

#[test]
fn files_import_one_another_only_where_listed() {
    let text = read(&root().join(ALLOWED));
    let allowed: Vec<Allowed> = list(&text).into_iter().map(entry).collect();
    let mut violations: Vec<String> = Vec::new();
    let mut needed = vec![false; allowed.len()];
    for source in crates(&FOLDERS) {
        let mut graph = Graph::of_crate(&root().join(&source.folder));
        for (is_needed, entry) in needed.iter_mut().zip(&allowed) {
            let is_inside = |cycle: &Vec<String>| cycle.contains(&entry.from) && cycle.contains(&entry.to);
            let is_import = graph.imports().iter().any(|import| import.from == entry.from && import.to == entry.to);
            *is_needed |= is_import && graph.cycles().iter().any(is_inside);
        }
        for entry in &allowed {
            graph.remove(&entry.from, &entry.to);
        }
        for cycle in graph.cycles() {
            violations.push(format!("{} files of {} import one another:", cycle.len(), source.folder));
            let lines = graph.within(&cycle).into_iter();
            violations.extend(lines.map(|import| format!("  {}:{} -> {}", import.from, import.line, import.to)));
        }
    }
    for entry in needed.iter().zip(&allowed).filter(|(is_needed, _)| !**is_needed).map(|(_, entry)| entry) {
        violations.push(format!("{} -> {} is not part of a cycle: remove it from {ALLOWED}", entry.from, entry.to));
    }
    assert_none(&violations);
}

#[test]
fn modules_import_one_another_only_where_listed() {
    let text = read(&root().join(ALLOWED_MODULES));
    let imports = read(&root().join(ALLOWED));
    let allowed: Vec<Allowed> = list(&imports).into_iter().map(entry).collect();
    let mut listed: Vec<Vec<String>> = list(&text).into_iter().map(modules).collect();
    let mut violations: Vec<String> = Vec::new();
    for source in crates(&FOLDERS) {
        let mut graph = Graph::of_crate(&root().join(&source.folder));
        for entry in &allowed {
            graph.remove(&entry.from, &entry.to);
        }
        let graph = graph.of_modules();
        for cycle in graph.cycles() {
            if let Some(at) = listed.iter().position(|entry| *entry == cycle) {
                listed.remove(at);
                continue;
            }
            violations.push(format!("{} modules of {} import one another:", cycle.len(), source.folder));
            violations
                .extend(graph.within(&cycle).into_iter().map(|import| format!("  {} -> {}", import.from, import.to)));
        }
    }
    let gone =
        listed.iter().map(|entry| format!("not a cycle of modules: {}: correct {ALLOWED_MODULES}", entry.join(" ")));
    violations.extend(gone);
    assert_none(&violations);
}

/// Parses an entry of the form `folder: module, module | reason` to the sorted paths of the modules.
fn modules(line: &str) -> Vec<String> {
    let form = || panic!("{ALLOWED_MODULES}: expected `folder: module, module | reason`: {line}");
    let Some((cycle, reason)) = line.split_once('|') else { form() };
    let Some((folder, names)) = cycle.split_once(':') else { form() };
    assert!(!reason.trim().is_empty(), "{ALLOWED_MODULES}: no reason: {line}");
    let mut paths: Vec<String> = names.split(',').map(|name| format!("{}/{}", folder.trim(), name.trim())).collect();
    paths.sort_unstable();
    paths
}

/// Parses an entry of the form `from -> to | reason`.
fn entry(line: &str) -> Allowed {
    let form = || panic!("{ALLOWED}: expected `from -> to | reason`: {line}");
    let Some((import, reason)) = line.split_once('|') else { form() };
    let Some((from, to)) = import.split_once("->") else { form() };
    assert!(!reason.trim().is_empty(), "{ALLOWED}: no reason: {line}");
    assert!(root().join(Path::new(from.trim())).is_file(), "{ALLOWED}: {} does not exist", from.trim());
    Allowed { from: from.trim().to_owned(), to: to.trim().to_owned() }
}
