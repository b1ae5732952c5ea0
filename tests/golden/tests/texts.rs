//! Lists the texts that users see, with one list for each area, the events of the log, and the events and reasons of
//! the audit log.
//!
//! In: the sources of the product. Out: a failure if a list in `texts/` differs from the sources. The new list is then
//! written beside the old one as `NAME.txt.new`. Not here: rules about texts. The author of a change reads the new list
//! before it replaces the old one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use terrane_structure_tests::client_texts::{ClientLanguage, client_texts};
use terrane_structure_tests::events::{LogEvent, audit_events, log_events, reasons};
use terrane_structure_tests::public_codes::{CodeKind, PublicCodes, SourceFile};
use terrane_structure_tests::sources::{Crate, crates, read, root, shown};
use terrane_structure_tests::texts::{Text, texts};

const FOLDER: &str = "tests/golden/texts";

const HEADER: &str = "\
# Texts that people see, by source file, each with its public code if one source gives it a code. A test writes this
# list.
";

const CLIENT_HEADER: &str = "\
# Texts of the client packages, by source file, each with the class of its error. A test writes this list.
";

/// The folders of the client packages, each with the extension of their sources.
const CLIENTS: [(&str, &str, ClientLanguage); 3] = [
    ("sdk/python/src", "py", ClientLanguage::Python),
    ("sdk/typescript/src", "ts", ClientLanguage::TypeScript),
    ("sdk/vscode", "js", ClientLanguage::TypeScript),
];

/// The files that declare the codes of the REST interface and those of diagnostics.
const CODE_FILES: [&str; 2] = ["runtime/wire/src/error.rs", "runtime/compiler/src/diagnostic/code.rs"];

/// The folders in which `Code::…` is a code of the REST interface.
const INTERFACE: [&str; 4] = ["runtime/wire/", "runtime/server/", "runtime/graphql/", "runtime/xmla/"];

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
    ("command-line", &["runtime/cli/", "runtime/terminal/", "runtime/pictures/"]),
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
            "runtime/language-server/",
        ],
    ),
    ("adapters", &["runtime/warehouse", "runtime/store/", "runtime/cache/", "runtime/results/", "runtime/traces/"]),
    ("questions", &["runtime/questions/", "runtime/search/", "runtime/language-model/", "runtime/app/src/questions"]),
    ("use-cases", &["runtime/app/", "runtime/identity/", "runtime/channels/", "runtime/outgoing/"]),
    ("server", &["runtime/"]),
    ("tools", &["xtask/"]),
];

#[test]
fn every_message_is_listed() {
    assert_current(lists());
}

#[test]
fn every_message_of_a_client_is_listed() {
    assert_current([("clients", client_list())]);
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
    let sources = crates(&["runtime", "sdk", "plugins", "xtask"]);
    let codes = codes(&sources);
    for (owner, file) in files(&sources) {
        let name = shown(file);
        let Some(list) = area(&name).and_then(|area| lists.get_mut(area)) else { continue };
        let source = read(file);
        push_texts(list, &name, texts(&source, SourceFile { owner, kind: kind(&name, &source) }, &codes));
    }
    lists
}

/// Returns the public codes, with those that any source gives to errors.
fn codes(sources: &[Crate]) -> PublicCodes {
    let [interface, diagnostics] = CODE_FILES.map(|file| read(&root().join(file)));
    let mut codes = PublicCodes::declared(&interface, &diagnostics);
    for (owner, file) in files(sources) {
        let source = read(file);
        codes.add_helpers(&source, SourceFile { owner, kind: kind(&shown(file), &source) });
    }
    for (owner, file) in files(sources) {
        let source = read(file);
        codes.add_matches(&source, SourceFile { owner, kind: kind(&shown(file), &source) });
    }
    codes
}

/// Returns the files of the product, each with the folder of its crate.
fn files(sources: &[Crate]) -> impl Iterator<Item = (&str, &PathBuf)> {
    let files = sources.iter().flat_map(|source| source.files.iter().map(|file| (&*source.folder, file)));
    files.filter(|(_, file)| is_product(file))
}

/// Returns the kind of `Code::…` in a file, by its folder and by the import of `Code`.
fn kind(name: &str, source: &str) -> CodeKind {
    let is_interface = INTERFACE.iter().any(|folder| name.starts_with(folder));
    let imports = source.split("use ").filter_map(|import| import.split_once(';')).map(|(import, _)| import);
    let is_code = |word: &str| word == "Code";
    let mut imports = imports.filter(|import| import.split(|c: char| !c.is_alphanumeric()).any(is_code));
    if is_interface || imports.any(|import| import.starts_with("terrane_wire")) {
        CodeKind::Interface
    } else {
        CodeKind::Diagnostic
    }
}

/// Returns the texts of the client packages.
fn client_list() -> String {
    let mut list = CLIENT_HEADER.to_owned();
    for (folder, extension, language) in CLIENTS {
        for file in client_files(&root().join(folder), extension) {
            push_texts(&mut list, &shown(&file), client_texts(&read(&file), language));
        }
    }
    list
}

/// Returns the sources of a client package, in order, without tests, dependencies and code that is generated or that
/// generates code.
fn client_files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    const LEFT_OUT: [&str; 5] = ["test", "node_modules", "generated", "dist", "codegen.ts"];
    let entries = fs::read_dir(folder).expect("the folder of a client package is readable");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry is readable").path()).collect();
    paths.retain(|path| !LEFT_OUT.iter().any(|name| path.ends_with(name)));
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            files.extend(client_files(&path, extension));
        } else if path.extension().is_some_and(|found| found == extension) {
            files.push(path);
        }
    }
    files
}

/// Adds the texts of a file to a list.
fn push_texts(list: &mut String, name: &str, texts: Vec<Text>) {
    if texts.is_empty() {
        return;
    }
    list.push_str(&format!("\n{name}\n"));
    for text in texts {
        let code = text.code.map(|code| format!("{code}: ")).unwrap_or_default();
        list.push_str(&format!("  {code}{}\n", text.text.replace('\n', "\n    ")));
    }
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

/// Parts of the paths of files without messages: tests, keywords of dialects, and cases of the SDK.
const LEFT_OUT: [&str; 11] = [
    "/tests/",
    "/benches/",
    "/examples/",
    "/tests.rs",
    "/documented.rs",
    "/reference.rs",
    "/record_reference.rs",
    "xtask/src/manifests.rs",
    "xtask/src/shown_commands.rs",
    "plugins/dialect-",
    "sdk/src/conformance",
];

/// Returns whether a file of the product may contain messages or labels. Build scripts do not.
fn is_product(file: &Path) -> bool {
    let name = shown(file);
    let is_build_script = name.ends_with("/build.rs") && !name.contains("/src/");
    !is_build_script && !LEFT_OUT.iter().any(|part| name.contains(part))
}
