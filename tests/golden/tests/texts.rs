//! Lists the texts that users see, with one list for each area, the events of the log, and the events and reasons of
//! the audit log.
//!
//! In: the sources of the product. Out: a failure if a list in `texts/` differs from the sources. The new list is then
//! written beside the old one as `NAME.txt.new`. Not here: rules about texts. The author of a change reads the new list
//! before it replaces the old one.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use terrane_structure_tests::events::{LogEvent, audit_events, log_events, reasons};
use terrane_structure_tests::sources::{crates, read, root, shown};
use terrane_structure_tests::texts::texts;

const FOLDER: &str = "tests/golden/texts";

const HEADER: &str = "\
# Texts that people see, by source file, each with the code or variant that it belongs to. A test writes this list.
";

const LOG_HEADER: &str = "\
# Events of the log, by source file: the name, the level and the fields. A name in parentheses is computed. A test writes
# this list.
";

const AUDIT_HEADER: &str = "\
# Events of the audit log, and reasons of denials and failures, by source file. A reason in parentheses is
# another one of this list, or is a hook's. A test writes this list.
";

/// The areas, each with the paths of its sources. A file belongs to the first area that matches.
const AREAS: &[(&str, &[&str])] = &[
    ("command-line", &["runtime/cli/", "runtime/terminal/"]),
    ("dax", &["runtime/dax/", "runtime/app/src/dax", "runtime/xmla/"]),
    ("graphql", &["runtime/graphql/"]),
    ("plugins", &["runtime/plugin-", "runtime/app/src/ports/plugins", "runtime/app/src/plugins", "sdk/", "plugins/"]),
    ("queries", &["runtime/compiler/src/query", "runtime/compiler/src/resolve", "runtime/compiler/src/plan"]),
    (
        "projects",
        &[
            "runtime/compiler/",
            "runtime/authoring/",
            "runtime/importers/",
            "runtime/expectations/",
            "runtime/lineage/",
            "runtime/codegen/",
        ],
    ),
    ("adapters", &["runtime/warehouse/", "runtime/store/", "runtime/cache/", "runtime/results/", "runtime/traces/"]),
    ("server", &["runtime/"]),
];

#[test]
fn every_message_is_listed() {
    assert_current(lists());
}

#[test]
fn every_event_and_reason_is_listed() {
    assert_current([("log-events", log_list()), ("audit", audit_list())]);
}

/// Compares the lists with their files, and writes a new file for each list that differs.
fn assert_current(lists: impl IntoIterator<Item = (&'static str, String)>) {
    let mut stale = Vec::new();
    for (area, list) in lists {
        let path = root().join(FOLDER).join(format!("{area}.txt"));
        if fs::read_to_string(&path).ok().as_deref() != Some(&list) {
            fs::write(path.with_extension("txt.new"), list).expect("the folder of lists is writable");
            stale.push(format!("{FOLDER}/{area}.txt.new"));
        }
    }
    assert!(stale.is_empty(), "texts have changed: read these lists and move them over the old ones: {stale:?}");
}

/// Returns the list of each area, by the area's name.
fn lists() -> BTreeMap<&'static str, String> {
    let mut lists: BTreeMap<_, String> = AREAS.iter().map(|(area, _)| (*area, HEADER.to_owned())).collect();
    for file in crates(&["runtime", "sdk", "plugins"]).into_iter().flat_map(|source| source.files) {
        let name = shown(&file);
        let Some(list) = area(&name).and_then(|area| lists.get_mut(area)) else { continue };
        let texts = texts(&read(&file));
        if !is_product(&file) || texts.is_empty() {
            continue;
        }
        list.push_str(&format!("\n{name}\n"));
        for text in texts {
            let code = text.code.map(|code| format!("{code}: ")).unwrap_or_default();
            list.push_str(&format!("  {code}{}\n", text.text.replace('\n', "\n    ")));
        }
    }
    lists
}

/// Returns the events of the log.
fn log_list() -> String {
    list(LOG_HEADER, &["runtime"], |source| {
        let line = |LogEvent { name, level, fields }| format!("{name}: {level}: {}", fields.join(", "));
        let mut lines: Vec<String> = log_events(source).into_iter().map(line).collect();
        lines.sort();
        lines.dedup();
        lines
    })
}

/// Returns the events and reasons of the audit log.
fn audit_list() -> String {
    list(AUDIT_HEADER, &["runtime/app", "runtime/identity", "runtime/cli", "runtime/server"], |source| {
        let labelled = |label: &'static str| move |name| format!("{label}: {name}");
        let mut events: Vec<String> = audit_events(source).into_iter().map(labelled("event")).collect();
        let mut reasons: Vec<String> = reasons(source).into_iter().map(labelled("reason")).collect();
        for lines in [&mut events, &mut reasons] {
            lines.sort();
            lines.dedup();
        }
        [events, reasons].concat()
    })
}

/// Returns a list of the lines that `lines` finds in each source file.
fn list(header: &str, folders: &[&str], lines: impl Fn(&str) -> Vec<String>) -> String {
    let mut list = header.to_owned();
    for file in crates(folders).into_iter().flat_map(|source| source.files).filter(|file| is_product(file)) {
        let lines = lines(&read(&file));
        if !lines.is_empty() {
            list.push_str(&format!("\n{}\n", shown(&file)));
            lines.iter().for_each(|line| list.push_str(&format!("  {line}\n")));
        }
    }
    list
}

fn area(file: &str) -> Option<&'static str> {
    AREAS.iter().find(|(_, paths)| paths.iter().any(|path| file.starts_with(path))).map(|(area, _)| *area)
}

/// Parts of the paths of files without messages:  tests, keywords of dialects, and cases of the SDK.
const LEFT_OUT: [&str; 7] =
    ["/tests/", "/benches/", "/examples/", "/tests.rs", "/documented.rs", "plugins/dialect-", "sdk/src/conformance"];

/// Returns whether a file of the product may contain messages or labels. Build scripts do not.
fn is_product(file: &Path) -> bool {
    let name = shown(file);
    let is_build_script = name.ends_with("/build.rs") && !name.contains("/src/");
    !is_build_script && !LEFT_OUT.iter().any(|part| name.contains(part))
}
