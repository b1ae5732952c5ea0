//! Checks the order of the compiler's modules, and that the ports do not depend on the use cases.
//!
//! In: the sources of the compiler, and of the ports. Out: file and line of each import of a later module, or of a use
//! case. Without such imports, there are no cycles between modules. Not here: imports between files of one module.

use std::path::Path;

use terrane_structure_tests::sources::{assert_none, files, read, root};

use crate::phrases::{place, product_lines};

const FOLDER: &str = "runtime/compiler/src";

/// The modules in their order. Each may import the modules before it.
const ORDER: [&str; 23] = [
    "types",
    "ids",
    "text",
    "diagnostic",
    "parallel",
    "snippet",
    "security",
    "project",
    "model",
    "query",
    "ready_rollups",
    "environment",
    "access",
    "resolve",
    "calendar",
    "plan",
    "sql",
    "rollup",
    "compile",
    "governance",
    "explain",
    "column_statistics",
    "explanation",
];

/// An import of a later module that is allowed.
struct Exception {
    from: &'static str,
    to: &'static str,
    reason: &'static str,
}

const EXCEPTIONS: [Exception; 3] = [
    Exception { from: "model", to: "query", reason: "metric filters and masks are checked as filters of queries" },
    Exception { from: "model", to: "resolve", reason: "metric filters and masks are checked as filters of queries" },
    Exception { from: "model", to: "sql", reason: "SQL is text in one file, `sql/print.rs`" },
];

/// Files that contain only tests.
const TESTS: [&str; 1] = ["project/documented.rs"];

#[test]
fn modules_of_the_compiler_import_earlier_ones_only() {
    let folder = root().join(FOLDER);
    let mut violations = Vec::new();
    let mut used = [false; EXCEPTIONS.len()];
    for file in files(&folder).into_iter().filter(|file| !TESTS.iter().any(|test| file.ends_with(test))) {
        let Some(module) = module_of(&folder, &file) else { continue };
        if !ORDER.contains(&module.as_str()) {
            violations.push(format!("{}: add `{module}` to the order", place(&file, 1)));
            continue;
        }
        for (line, later) in later_imports(&module, &read(&file)) {
            match EXCEPTIONS.iter().position(|known| known.from == module && known.to == later) {
                Some(at) => used[at] = true,
                None => violations.push(format!("{}: `{module}` imports `{later}`", place(&file, line))),
            }
        }
    }
    let unused = EXCEPTIONS.iter().zip(used).filter(|(_, is_used)| !is_used);
    violations.extend(
        unused.map(|(known, _)| format!("`{}` no longer imports `{}`: {}", known.from, known.to, known.reason)),
    );
    assert_none(&violations);
}

/// The modules of `app` whose types the ports may have in their signatures: those of the ports and of the domain.
const BELOW_USE_CASES: [&str; 2] = ["domain", "ports"];

#[test]
fn ports_do_not_import_use_cases() {
    let folder = root().join("runtime/app/src");
    let is_below = |file: &Path| module_of(&folder, file).is_some_and(|name| BELOW_USE_CASES.contains(&&*name));
    let mut violations = Vec::new();
    for file in files(&folder).into_iter().filter(|file| is_below(file)) {
        for (line, name) in imports(&read(&file)).into_iter().filter(|(_, name)| !BELOW_USE_CASES.contains(&&**name)) {
            violations.push(format!("{}: a port imports `{name}`; move the type to `domain`", place(&file, line)));
        }
    }
    assert_none(&violations);
}

/// Returns the top-level module of a file; `None` for the crate's root.
fn module_of(folder: &Path, file: &Path) -> Option<String> {
    let first = file.strip_prefix(folder).ok()?.iter().next()?.to_str()?;
    let name = first.trim_end_matches(".rs");
    (name != "lib").then(|| name.to_owned())
}

/// Returns the imports of modules that come after `module`, each with its line.
fn later_imports(module: &str, source: &str) -> Vec<(usize, &'static str)> {
    let own = ORDER.iter().position(|known| *known == module);
    let is_later = |name: &str| ORDER.iter().position(|known| *known == name) > own;
    let later = |(line, name): (usize, String)| {
        ORDER.iter().find(|known| **known == name && is_later(&name)).map(|known| (line, *known))
    };
    imports(source).into_iter().filter_map(later).collect()
}

/// Returns the top-level modules of the crate that a source names, each with its line.
fn imports(source: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (line, text) in product_lines(source) {
        for (at, word) in text.match_indices("crate::") {
            let rest = &text[at + word.len()..];
            let name = rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default();
            found.push((line, name.to_owned()));
        }
    }
    found
}

/// Checks that each rule reports a violation.
mod violations {
    use super::*;

    #[test]
    fn import_of_a_later_module_is_found() {
        assert_eq!(later_imports("text", "use crate::model::Model;\n"), [(1, "model")]);
        assert_eq!(later_imports("plan", "let a = 1;\nlet b = crate::sql::print(a);\n"), [(2, "sql")]);
    }

    #[test]
    fn import_of_an_earlier_module_is_allowed() {
        assert_eq!(later_imports("sql", "use crate::model::Model;\nuse crate::sql::print;\n"), []);
    }

    #[test]
    fn comment_and_test_are_not_imports() {
        let source = "//! See [`plan`](crate::plan).\n#[cfg(test)]\nmod tests { use crate::plan::plan; }\n";
        assert_eq!(later_imports("text", source), []);
    }
}
