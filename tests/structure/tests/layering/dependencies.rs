//! The dependencies that each crate may have.
//!
//! In: a rule per workspace member and the graph from `cargo tree`. Out: the violations. Not here: development
//! dependencies of the product's crates, because a test may use crates on both sides of a border.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use terrane_structure_tests::sources::{assert_none, root};

/// The dependencies that a workspace member may and must not have.
struct Rule {
    package: &'static str,
    /// The workspace members that its manifest may name.
    may_use: &'static [&'static str],
    /// Crates that must not be among its dependencies, direct or not.
    must_not_reach: &'static [&'static str],
}

const HEAVY: [&str; 3] = ["duckdb", "libduckdb-sys", "wasmtime"];

/// Crates that do I/O or start a runtime.
const IMPURE: &[&str] = &[
    "tokio",
    "async-trait",
    "axum",
    "hyper",
    "tower-http",
    "duckdb",
    "libduckdb-sys",
    "wasmtime",
    "sqlx",
    "arrow",
    "reqwest",
    "tracing-subscriber",
    "cap-std",
    "rand",
    "getrandom",
];

const RULES: &[Rule] = &[
    Rule { package: "terrane-compiler", may_use: &[], must_not_reach: IMPURE },
    Rule { package: "terrane-lineage", may_use: &["terrane-compiler"], must_not_reach: IMPURE },
    Rule { package: "terrane-dax", may_use: &["terrane-compiler"], must_not_reach: IMPURE },
    Rule { package: "terrane-language-server", may_use: &["terrane-compiler"], must_not_reach: IMPURE },
    Rule { package: "terrane-search", may_use: &[], must_not_reach: IMPURE },
    Rule { package: "terrane-questions", may_use: &["terrane-search"], must_not_reach: IMPURE },
    Rule {
        package: "terrane-app",
        may_use: &["terrane-compiler", "terrane-dax", "terrane-lineage", "terrane-questions", "terrane-search"],
        must_not_reach: &[
            "axum",
            "hyper",
            "http",
            "tower-http",
            "async-graphql",
            "duckdb",
            "libduckdb-sys",
            "wasmtime",
            "sqlx",
            "reqwest",
        ],
    },
    Rule {
        package: "terrane-json",
        may_use: &["terrane-app", "terrane-compiler"],
        must_not_reach: &["axum", "hyper", "http", "tower-http", "duckdb", "libduckdb-sys", "wasmtime", "sqlx"],
    },
    Rule {
        package: "terrane-plugin-host",
        may_use: &["terrane-app", "terrane-compiler", "terrane-json", "terrane-terminal"],
        must_not_reach: &[
            "axum",
            "hyper",
            "tower-http",
            "async-graphql",
            "duckdb",
            "libduckdb-sys",
            "sqlx",
            "wasmtime-wasi",
        ],
    },
    Rule {
        package: "terrane-plugin-kit",
        may_use: &["terrane-app", "terrane-plugin-host"],
        must_not_reach: &["axum", "hyper", "tower-http", "async-graphql", "duckdb", "libduckdb-sys", "sqlx", "clap"],
    },
    Rule {
        package: "terrane-warehouse",
        may_use: &["terrane-app", "terrane-compiler"],
        must_not_reach: &["axum", "tower-http", "async-graphql", "wasmtime"],
    },
    Rule {
        package: "terrane-warehouse-spark",
        may_use: &["terrane-app", "terrane-compiler"],
        must_not_reach: &["axum", "tower-http", "async-graphql", "wasmtime", "duckdb", "libduckdb-sys", "sqlx"],
    },
    Rule {
        package: "terrane-warehouse-adbc",
        may_use: &["terrane-app", "terrane-compiler"],
        must_not_reach: &["axum", "tower-http", "async-graphql", "wasmtime", "duckdb", "libduckdb-sys", "sqlx"],
    },
    Rule {
        package: "terrane-cache",
        may_use: &["terrane-app"],
        must_not_reach: &["axum", "tower-http", "async-graphql", "wasmtime", "duckdb", "libduckdb-sys", "sqlx"],
    },
    Rule {
        package: "terrane-store",
        may_use: &["terrane-app", "terrane-compiler", "terrane-json"],
        must_not_reach: &["axum", "tower-http", "async-graphql", "wasmtime", "duckdb", "libduckdb-sys"],
    },
    Rule {
        package: "terrane-results",
        may_use: &["terrane-app", "terrane-compiler"],
        must_not_reach: &["axum", "tower-http", "async-graphql", "wasmtime", "duckdb", "libduckdb-sys", "sqlx"],
    },
    Rule {
        package: "terrane-outgoing",
        may_use: &[],
        // tower-http is allowed, because the crate's HTTP client depends on it.
        must_not_reach: &["axum", "async-graphql", "wasmtime", "duckdb", "libduckdb-sys", "sqlx", "rsa"],
    },
    Rule {
        package: "terrane-channels",
        may_use: &["terrane-app", "terrane-compiler", "terrane-outgoing"],
        must_not_reach: &["axum", "async-graphql", "wasmtime", "duckdb", "libduckdb-sys", "sqlx"],
    },
    Rule {
        package: "terrane-language-model",
        may_use: &["terrane-app", "terrane-compiler", "terrane-outgoing", "terrane-wire"],
        must_not_reach: &["axum", "async-graphql", "wasmtime", "duckdb", "libduckdb-sys", "sqlx"],
    },
    Rule {
        package: "terrane-identity",
        may_use: &["terrane-app", "terrane-compiler", "terrane-json", "terrane-outgoing"],
        must_not_reach: &["axum", "async-graphql", "wasmtime", "duckdb", "libduckdb-sys", "sqlx", "rsa"],
    },
    Rule {
        package: "terrane-traces",
        may_use: &["terrane-app"],
        must_not_reach: &["axum", "async-graphql", "wasmtime", "duckdb", "libduckdb-sys", "sqlx"],
    },
    Rule {
        package: "terrane-wire",
        may_use: &["terrane-app", "terrane-compiler", "terrane-dax", "terrane-json", "terrane-lineage"],
        must_not_reach: &["axum", "hyper", "http", "tower-http", "duckdb", "libduckdb-sys", "wasmtime", "sqlx"],
    },
    Rule {
        package: "terrane-graphql",
        may_use: &["terrane-app", "terrane-compiler", "terrane-lineage", "terrane-wire"],
        must_not_reach: &["axum", "hyper", "tower-http", "duckdb", "libduckdb-sys", "wasmtime", "sqlx"],
    },
    Rule {
        package: "terrane-xmla",
        may_use: &["terrane-app", "terrane-compiler", "terrane-dax", "terrane-wire"],
        must_not_reach: &["axum", "hyper", "http", "tower-http", "duckdb", "libduckdb-sys", "wasmtime", "sqlx"],
    },
    Rule {
        package: "terrane-server",
        may_use: &[
            "terrane-app",
            "terrane-compiler",
            "terrane-dax",
            "terrane-graphql",
            "terrane-lineage",
            "terrane-terminal",
            "terrane-wire",
            "terrane-xmla",
        ],
        must_not_reach: &["duckdb", "libduckdb-sys", "wasmtime", "sqlx"],
    },
    Rule { package: "terrane-terminal", may_use: &[], must_not_reach: &["tokio", "serde", "arrow"] },
    Rule { package: "terrane-pictures", may_use: &["terrane-terminal"], must_not_reach: IMPURE },
    Rule {
        package: "terrane-authoring",
        // The cli opens warehouses; a draft reads one through the port.
        may_use: &["terrane-app", "terrane-compiler", "terrane-terminal"],
        must_not_reach: &["axum", "hyper", "duckdb", "libduckdb-sys", "wasmtime", "sqlx", "reqwest", "clap"],
    },
    Rule {
        package: "terrane-codegen",
        may_use: &["terrane-app", "terrane-compiler"],
        must_not_reach: &["axum", "hyper", "duckdb", "libduckdb-sys", "wasmtime", "sqlx", "reqwest", "clap", "cap-std"],
    },
    Rule {
        package: "terrane-importers",
        // `terrane-authoring` has the writer of YAML, the names, and the creation of the new folder.
        may_use: &["terrane-authoring", "terrane-compiler"],
        must_not_reach: &["axum", "hyper", "duckdb", "libduckdb-sys", "wasmtime", "sqlx", "reqwest", "clap"],
    },
    Rule {
        package: "terrane-expectations",
        // Rows are compared in the form in which the server writes them.
        may_use: &["terrane-app", "terrane-compiler", "terrane-wire"],
        must_not_reach: &["axum", "duckdb", "libduckdb-sys", "wasmtime", "sqlx", "clap"],
    },
    Rule {
        package: "terrane-cli",
        may_use: &[
            "terrane-app",
            "terrane-authoring",
            "terrane-cache",
            "terrane-channels",
            "terrane-codegen",
            "terrane-compiler",
            "terrane-dax",
            "terrane-expectations",
            "terrane-graphql",
            "terrane-identity",
            "terrane-importers",
            "terrane-json",
            "terrane-language-model",
            "terrane-language-server",
            "terrane-lineage",
            "terrane-outgoing",
            "terrane-pictures",
            "terrane-plugin-host",
            "terrane-plugin-kit",
            "terrane-results",
            "terrane-server",
            "terrane-store",
            "terrane-terminal",
            "terrane-traces",
            "terrane-warehouse",
            "terrane-warehouse-spark",
            "terrane-warehouse-adbc",
            "terrane-wire",
        ],
        must_not_reach: &[],
    },
    Rule {
        package: "terrane-sdk",
        may_use: &[],
        must_not_reach: &["tokio", "axum", "duckdb", "wasmtime", "wasmtime-wasi"],
    },
    // The light tests run after most edits, so they must build in seconds.
    Rule {
        package: "terrane-golden-tests",
        may_use: &["terrane-app", "terrane-compiler", "terrane-lineage", "terrane-structure-tests"],
        must_not_reach: &HEAVY,
    },
    Rule {
        package: "terrane-conformance-tests",
        may_use: &[
            "terrane-compiler",
            "terrane-app",
            "terrane-cache",
            "terrane-channels",
            "terrane-graphql",
            "terrane-identity",
            "terrane-json",
            "terrane-outgoing",
            "terrane-results",
            "terrane-server",
            "terrane-store",
            "terrane-traces",
            "terrane-wire",
            "terrane-xmla",
        ],
        must_not_reach: &HEAVY,
    },
    Rule {
        package: "terrane-system-tests",
        may_use: &[
            "terrane-app",
            "terrane-cache",
            "terrane-cli",
            "terrane-compiler",
            "terrane-expectations",
            "terrane-json",
            "terrane-oracle-tests",
            "terrane-plugin-host",
            "terrane-plugin-kit",
            "terrane-server",
            "terrane-store",
            "terrane-warehouse",
        ],
        must_not_reach: &[],
    },
    Rule {
        package: "terrane-oracle-tests",
        may_use: &[
            "terrane-app",
            "terrane-cache",
            "terrane-compiler",
            "terrane-dax",
            "terrane-graphql",
            "terrane-lineage",
            "terrane-warehouse",
            "terrane-warehouse-spark",
            "terrane-wire",
        ],
        must_not_reach: &["wasmtime"],
    },
    Rule {
        package: "terrane-attack-tests",
        may_use: &["terrane-app", "terrane-cli", "terrane-compiler", "terrane-store", "terrane-warehouse"],
        must_not_reach: &[],
    },
    // This crate reads the sources as text, so that it can be built before all others.
    Rule { package: "terrane-structure-tests", may_use: &[], must_not_reach: &["terrane-compiler", "serde"] },
    // xtask prepares the dependencies of the other crates, so it must not use these crates.
    Rule {
        package: "xtask",
        may_use: &[],
        must_not_reach: &["tokio", "axum", "duckdb", "libduckdb-sys", "wasmtime", "sqlx"],
    },
];

/// The allowed prefixes of the names of plugins, including those of examples and templates.
const PLUGIN_NAMES: [&str; 6] = ["dialect-", "detector-", "check-", "hook-", "governance-", "policy-"];
const PLUGIN: Rule = Rule {
    package: "plugins/*",
    may_use: &["terrane-sdk"],
    must_not_reach: &["tokio", "duckdb", "wasmtime", "wasmtime-wasi"],
};

/// The crates that may access databases: the adapters, each behind its port, and the system tests, which damage state
/// databases on purpose.
const SQLX_USERS: [&str; 3] = ["terrane-store", "terrane-warehouse", "terrane-system-tests"];

/// The crates that may send HTTP requests: the client that checks addresses, and the exporter of traces, whose address
/// the operator sets.
const REQWEST_USERS: [&str; 2] = ["terrane-outgoing", "terrane-traces"];

/// The dependencies of one member.
struct Dependencies {
    direct: BTreeSet<String>,
    all: BTreeSet<String>,
}

#[test]
fn crates_use_only_allowed_dependencies() {
    let members = tree(&["--workspace", "--depth", "0"]);
    let graph = members.into_iter().map(|(_, member)| (member.clone(), dependencies(&member))).collect();
    assert_none(&violations(&graph));
}

/// Only the test crates of the attack and of the oracle enable the feature `planted-flaws`.
#[test]
fn only_fuzz_crates_enable_planted_flaws() {
    let has_flaws = |member: &String| {
        let lines = cargo_tree("{p} {f}", &["--package", member, "--edges", "normal,build"]);
        let of_compiler = lines.iter().filter(|line| line.contains("terrane-compiler "));
        let mut features = of_compiler.flat_map(|line| line.split([' ', ',']));
        features.any(|feature| feature == "planted-flaws")
    };
    let members = tree(&["--workspace", "--depth", "0"]).into_iter().map(|(_, member)| member);
    let found: Vec<String> = members.filter(has_flaws).collect();
    assert_eq!(found, ["terrane-attack-tests", "terrane-oracle-tests"]);
}

fn violations(graph: &BTreeMap<String, Dependencies>) -> Vec<String> {
    let mut violations = Vec::new();
    for (member, dependencies) in graph {
        let Some(rule) = rule(member) else {
            violations.push(format!("{member} has no rule in tests/structure/tests/layering/dependencies.rs"));
            continue;
        };
        for name in dependencies.direct.iter().filter(|name| graph.contains_key(*name)) {
            if name != member && !may_use(member, rule, name) {
                violations.push(format!("{member} may not use {name}"));
            }
        }
        if dependencies.direct.contains("sqlx") && !SQLX_USERS.contains(&member.as_str()) {
            violations.push(format!("{member} may not use sqlx: go through the port of an adapter"));
        }
        if dependencies.direct.contains("reqwest") && !REQWEST_USERS.contains(&member.as_str()) {
            violations.push(format!("{member} may not use reqwest: send requests through terrane-outgoing"));
        }
        for name in dependencies.all.iter().filter(|name| rule.must_not_reach.contains(&name.as_str())) {
            violations.push(format!(
                "{member} may not depend on {name}: `cargo tree -e normal,build -p {member} -i {name}` shows why"
            ));
        }
    }
    violations
}

fn rule(member: &str) -> Option<&'static Rule> {
    let named = RULES.iter().find(|rule| rule.package == member);
    named.or_else(|| is_plugin(member).then_some(&PLUGIN))
}

/// Returns whether a member may use another member. Test crates share their cases, and plugins build in seconds for the
/// host, so every test crate may use both. `must_not_reach` limits the light test crates.
fn may_use(member: &str, rule: &Rule, name: &str) -> bool {
    let shared = name == "terrane-sdk" || is_plugin(name) || is_test_crate(name);
    rule.may_use.contains(&name) || (is_test_crate(member) && shared)
}

fn is_plugin(member: &str) -> bool {
    PLUGIN_NAMES.iter().any(|prefix| member.starts_with(prefix))
}

fn is_test_crate(member: &str) -> bool {
    member.ends_with("-tests")
}

fn dependencies(member: &str) -> Dependencies {
    // Nearly all dependencies of a test crate are development dependencies.
    let kinds = if is_test_crate(member) { "normal,build,dev" } else { "normal,build" };
    let (mut direct, mut all) = (BTreeSet::new(), BTreeSet::new());
    for (depth, name) in tree(&["--package", member, "--edges", kinds]) {
        if depth == 1 {
            direct.insert(name.clone());
        }
        all.insert(name);
    }
    Dependencies { direct, all }
}

/// Returns the packages that `cargo tree` prints, each with its depth.
fn tree(arguments: &[&str]) -> Vec<(usize, String)> {
    cargo_tree("{p}", arguments).iter().filter_map(|line| entry(line)).collect()
}

/// Returns the lines of `cargo tree`, with the features that packages have if they are built alone.
fn cargo_tree(format: &str, arguments: &[&str]) -> Vec<String> {
    let output = Command::new(env!("CARGO"))
        .current_dir(root())
        .args(["tree", "--frozen", "--prefix", "depth", "--format", format])
        .args(arguments)
        .env_remove("CARGO_RESOLVER_FEATURE_UNIFICATION")
        .output()
        .expect("starting cargo");
    assert!(output.status.success(), "cargo tree {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

/// Parses a line such as `2serde v1.0.229`, which is serde at depth 2. Names of crates never start with a digit.
fn entry(line: &str) -> Option<(usize, String)> {
    let name = line.split_whitespace().next()?.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    Some((line[..digits].parse().ok()?, name.to_owned()))
}

/// Checks that each rule reports a violation.
mod checks {
    use super::*;

    fn graph(members: &[(&str, &[&str], &[&str])]) -> BTreeMap<String, Dependencies> {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        members
            .iter()
            .map(|(member, direct, all)| ((*member).to_owned(), Dependencies { direct: set(direct), all: set(all) }))
            .collect()
    }

    #[test]
    fn adapter_that_uses_another_is_reported() {
        let graph = graph(&[("terrane-store", &["terrane-warehouse"], &[]), ("terrane-warehouse", &[], &[])]);
        assert_eq!(violations(&graph), ["terrane-store may not use terrane-warehouse"]);
    }

    #[test]
    fn http_client_of_its_own_is_reported() {
        let found = violations(&graph(&[("terrane-identity", &["reqwest"], &["reqwest"])]));
        assert_eq!(found, ["terrane-identity may not use reqwest: send requests through terrane-outgoing"]);
        assert!(violations(&graph(&[("terrane-outgoing", &["reqwest"], &["reqwest"])])).is_empty());
    }

    #[test]
    fn indirect_dependency_is_reported() {
        let found = violations(&graph(&[("terrane-compiler", &["serde"], &["serde", "tokio"])]));
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("terrane-compiler may not depend on tokio"), "{found:?}");
    }

    #[test]
    fn compiler_that_uses_lineage_is_named() {
        let graph = graph(&[("terrane-compiler", &["terrane-lineage"], &[]), ("terrane-lineage", &[], &[])]);
        assert_eq!(violations(&graph), ["terrane-compiler may not use terrane-lineage"]);
    }

    #[test]
    fn plugin_that_uses_the_runtime_is_reported() {
        let graph = graph(&[
            ("dialect-new", &["terrane-sdk", "terrane-compiler"], &[]),
            ("terrane-sdk", &[], &[]),
            ("terrane-compiler", &[], &[]),
        ]);
        assert_eq!(violations(&graph), ["dialect-new may not use terrane-compiler"]);
    }

    #[test]
    fn light_test_crate_may_call_a_guest_but_not_reach_the_engine() {
        let fine: &[(&str, &[&str], &[&str])] =
            &[("terrane-golden-tests", &["dialect-duckdb"], &["dialect-duckdb"]), ("dialect-duckdb", &[], &[])];
        assert_eq!(violations(&graph(fine)), Vec::<String>::new());
        let heavy: &[(&str, &[&str], &[&str])] = &[("terrane-golden-tests", &[], &["libduckdb-sys"])];
        assert_eq!(violations(&graph(heavy)).len(), 1);
    }

    #[test]
    fn line_has_a_depth_and_a_name() {
        assert_eq!(entry("12serde v1.0.229 (*)"), Some((12, "serde".to_owned())));
    }

    #[test]
    fn crate_without_a_rule_is_reported() {
        assert!(violations(&graph(&[("terrane-attic", &[], &[])]))[0].starts_with("terrane-attic has no rule"));
    }
}
