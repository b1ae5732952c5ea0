//! Checks that the sources of a crate do not contain forbidden phrases.
//!
//! In: the `.rs` files of a crate. Out: file and line of every such phrase. Not here: parsing Rust. Comments and the
//! `#[cfg(test)]` module at the end of a file are removed, and the rest is searched for words.

use std::path::Path;

use terrane_structure_tests::sources::{assert_none, files, read, root, shown};

/// A phrase that the sources of some crates must not contain.
struct Ban {
    phrase: &'static str,
    reason: &'static str,
}

/// Phrases of I/O. The compiler is pure: it receives all inputs as arguments.
const IMPURE: &[Ban] = &[
    Ban { phrase: "env::var", reason: "the environment is read by the cli" },
    Ban { phrase: "std::fs", reason: "files come in as a source tree" },
    Ban { phrase: "fs::read", reason: "files come in as a source tree" },
    Ban { phrase: "File::open", reason: "files come in as a source tree" },
    Ban { phrase: "std::net", reason: "the compiler uses no network" },
    Ban { phrase: "SystemTime::now", reason: "the current time is an input" },
    Ban { phrase: "Instant::now", reason: "the current time is an input" },
    Ban { phrase: "Timestamp::now", reason: "the current time is an input" },
    Ban { phrase: "Zoned::now", reason: "the current time is an input" },
    Ban { phrase: "TimeZone::system", reason: "the zone is an input" },
    Ban { phrase: "async fn", reason: "the compiler does not wait" },
    Ban { phrase: "thread::spawn", reason: "threads of the compiler end before its call does: `parallel`" },
    Ban { phrase: "println!", reason: "the compiler returns its results" },
];

/// Phrases that read the time. The clock is a port of the app, so that tests do not wait.
const CLOCKS: &[Ban] = &[
    Ban { phrase: "SystemTime::now", reason: "time comes from the Clock port" },
    Ban { phrase: "Timestamp::now", reason: "time comes from the Clock port" },
    Ban { phrase: "Zoned::now", reason: "time comes from the Clock port" },
    Ban { phrase: "env::var", reason: "the environment is read by the cli" },
];

/// Phrases of wire formats, on which the app does not depend.
const WIRE_FORMATS: &[Ban] = &[
    Ban { phrase: "serde_json", reason: "JSON belongs to `wire` and to the adapters" },
    Ban { phrase: "json!(", reason: "JSON belongs to `wire` and to the adapters" },
];

/// Phrases that build SQL as text. Only `sql/print.rs` prints the tree of a statement.
const SQL_TEXT: &[Ban] = &[
    Ban { phrase: "format!(\"SELECT", reason: "SQL is printed by sql/print.rs alone" },
    Ban { phrase: "format!(\"WITH", reason: "SQL is printed by sql/print.rs alone" },
    Ban { phrase: "push_str(\"SELECT", reason: "SQL is printed by sql/print.rs alone" },
    Ban { phrase: "push_str(\" FROM", reason: "SQL is printed by sql/print.rs alone" },
    Ban { phrase: "\"SELECT {", reason: "SQL is printed by sql/print.rs alone" },
    Ban { phrase: " FROM {", reason: "SQL is printed by sql/print.rs alone" },
    Ban { phrase: " WHERE {", reason: "SQL is printed by sql/print.rs alone" },
];

#[test]
fn compiler_and_lineage_are_pure() {
    assert_none(&search("runtime/compiler/src", IMPURE, &[]));
    assert_none(&search("runtime/lineage/src", IMPURE, &[]));
}

#[test]
fn use_cases_ask_the_clock_port() {
    assert_none(&search("runtime/app/src", CLOCKS, &[]));
}

#[test]
fn app_knows_no_wire_format() {
    assert_none(&search("runtime/app/src", WIRE_FORMATS, &[]));
}

#[test]
fn sql_is_text_in_one_file() {
    for folder in ["runtime/compiler/src", "runtime/app/src", "runtime/wire/src", "runtime/server/src"] {
        assert_none(&search(folder, SQL_TEXT, &["runtime/compiler/src/sql/print.rs"]));
    }
}

#[test]
fn only_secure_makes_secured_plans() {
    const MAKER: &str = "runtime/compiler/src/plan/secure.rs";
    let maker = read(&root().join(MAKER));
    assert_none(&public_fields(&maker, "SecuredPlan"));
    for folder in ["runtime/compiler/src", "runtime/app/src", "runtime/wire/src", "runtime/server/src"] {
        let others: Vec<_> = files(&root().join(folder))
            .into_iter()
            .filter(|file| !file.ends_with(MAKER))
            .flat_map(|file| constructions(&read(&file), "SecuredPlan").into_iter().map(move |line| place(&file, line)))
            .collect();
        assert_none(&others);
    }
}

/// Returns the violations in a folder, except those in the exempt files.
fn search(folder: &str, bans: &[Ban], exempt: &[&str]) -> Vec<String> {
    let files = files(&root().join(folder));
    assert!(!files.is_empty(), "{folder} contains sources");
    let searched = files.iter().filter(|file| !exempt.iter().any(|name| file.ends_with(name)));
    searched
        .flat_map(|file| {
            violations(&read(file), bans)
                .into_iter()
                .map(|(line, ban)| format!("{}: `{}`: {}", place(file, line), ban.phrase, ban.reason))
        })
        .collect()
}

/// Returns the bans that a source violates, with the line of each.
fn violations<'b>(source: &str, bans: &'b [Ban]) -> Vec<(usize, &'b Ban)> {
    product_lines(source)
        .flat_map(|(number, line)| {
            bans.iter().filter(move |ban| line.contains(ban.phrase)).map(move |ban| (number, ban))
        })
        .collect()
}

/// Returns the lines that build or destructure a value of the type.
fn constructions(source: &str, name: &str) -> Vec<usize> {
    product_lines(source).filter(|(_, line)| builds(line, name)).map(|(number, _)| number).collect()
}

fn builds(line: &str, name: &str) -> bool {
    let declares = ["struct ", "impl", "-> ", "enum ", "trait "].iter().any(|word| line.contains(word));
    line.match_indices(name).any(|(at, _)| {
        let rest = line[at + name.len()..].trim_start();
        let whole_word = !line[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_');
        whole_word && (rest.starts_with('(') || (rest.starts_with('{') && !declares))
    })
}

/// Returns an error for each field of the struct that other modules could set.
fn public_fields(source: &str, name: &str) -> Vec<String> {
    let Some((_, after)) = source.split_once(&format!("pub struct {name}")) else {
        return vec![format!("{name} is not declared as `pub struct {name}`")];
    };
    let body = after.split_once('}').map_or(after, |(body, _)| body);
    body.lines()
        .skip(1)
        .filter(|line| line.trim_start().starts_with("pub"))
        .map(|line| format!("{name} has a public field: {}", line.trim()))
        .collect()
}

/// Returns the numbered lines of a source without its comments and its tests.
pub(crate) fn product_lines(source: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = source.lines().enumerate().map(|(index, line)| (index + 1, line));
    lines
        .take_while(|(_, line)| line.trim_end() != "#[cfg(test)]")
        .map(|(number, line)| (number, without_comment(line)))
}

/// Removes a `//` comment. The `//` of an address in a string stays.
fn without_comment(line: &str) -> &str {
    if line.trim_start().starts_with("//") {
        return "";
    }
    line.find(" // ").map_or(line, |at| &line[..at])
}

pub(crate) fn place(file: &Path, line: usize) -> String {
    format!("{}:{line}", shown(file))
}

/// Checks that each rule reports a violation.
mod checks {
    use super::*;

    #[test]
    fn clock_is_found_outside_of_comments_and_tests() {
        let source = "//! SystemTime::now\nlet a = SystemTime::now();\nlet b = 1; // SystemTime::now\n#[cfg(test)]\nmod tests { fn t() { SystemTime::now(); } }\n";
        let found: Vec<_> = violations(source, IMPURE).into_iter().map(|(line, ban)| (line, ban.phrase)).collect();
        assert_eq!(found, [(2, "SystemTime::now")]);
    }

    #[test]
    fn sql_formatted_as_text_is_found() {
        for source in [
            "let q = format!(\"SELECT {a} FROM t\");",
            "write!(out, \" FROM {table}\")?;",
            "sql.push_str(\"SELECT 1\");",
        ] {
            assert!(!violations(source, SQL_TEXT).is_empty(), "{source}");
        }
        assert!(violations("const NEVER_FIRST: &[&str] = &[\"FROM\", \"WITH\"];", SQL_TEXT).is_empty());
    }

    #[test]
    fn another_construction_of_secured_plans_is_found() {
        for source in
            ["    let plan = SecuredPlan { plan };", "    SecuredPlan(plan)", "let SecuredPlan { plan } = secured;"]
        {
            assert_eq!(constructions(source, "SecuredPlan"), [1], "{source}");
        }
        for source in [
            "pub struct SecuredPlan<'m> {",
            "impl SecuredPlan {",
            "fn secured() -> SecuredPlan {",
            "fn lower(plan: &SecuredPlan<'_>) {",
            "use plan::SecuredPlan;",
        ] {
            assert!(constructions(source, "SecuredPlan").is_empty(), "{source}");
        }
    }

    #[test]
    fn public_field_of_a_secured_plan_is_found() {
        assert_eq!(public_fields("pub struct SecuredPlan {\n    pub plan: Plan,\n}\n", "SecuredPlan").len(), 1);
        assert_eq!(
            public_fields(
                "pub struct SecuredPlan {\n    plan: Plan,\n}\nimpl SecuredPlan {\n    pub fn plan() {}\n}\n",
                "SecuredPlan"
            ),
            Vec::<String>::new()
        );
        assert_eq!(public_fields("struct Renamed;", "SecuredPlan").len(), 1);
    }
}
