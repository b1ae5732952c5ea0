//! Tests projects that try to overflow stacks, multiply memory or never end. Each is loaded on a thread with a small
//! stack, and must load, or end with a diagnostic, in time.

use std::sync::mpsc;
use std::time::Duration;

use terrane_compiler::diagnostic::Diagnostic;
use terrane_compiler::model::build;
use terrane_compiler::project::{Inputs, SourceTree, read};

/// Loads files on a stack of 1 MiB and returns the codes of the diagnostics.
fn check(files: &[(&str, &str)]) -> Vec<&'static str> {
    let mut tree = SourceTree::default();
    tree.files.insert("service_project.yml".into(), "name: hostile\n".into());
    for (path, text) in files {
        tree.files.insert((*path).into(), (*text).into());
    }
    let (sender, receiver) = mpsc::channel::<Vec<Diagnostic>>();
    let load = move || {
        let inputs = Inputs { warehouse: "duckdb".into(), ..Inputs::default() };
        let (definitions, mut diagnostics) = read(&tree, &inputs);
        diagnostics.extend(build(&definitions).1);
        sender.send(diagnostics).expect("the test waits for the result");
    };
    std::thread::Builder::new().stack_size(1024 * 1024).spawn(load).expect("a thread starts");
    let diagnostics = receiver.recv_timeout(Duration::from_secs(60)).expect("the project loads in time");
    diagnostics.iter().map(|diagnostic| diagnostic.code.as_str()).collect()
}

fn dimension(sql: &str) -> Vec<&'static str> {
    let quoted = sql.replace('\'', "''");
    check(&[(
        "cubes/a.yml",
        &format!("cubes: [{{name: a, sql_table: t, dimensions: [{{name: d, type: string, sql: '{quoted}'}}]}}]"),
    )])
}

fn number(sql: &str) -> Vec<&'static str> {
    check(&[(
        "cubes/a.yml",
        &format!(
            "cubes: [{{name: a, sql_table: t, measures: [{{name: c, type: count}}, {{name: n, type: number, sql: '{sql}'}}]}}]"
        ),
    )])
}

/// Loads a project of one model. The codes include the warning that there are no cubes.
fn model(text: &str) -> Vec<&'static str> {
    let mut codes = check(&[("models/m.sql", text)]);
    codes.retain(|code| *code != "no-cubes");
    codes
}

#[test]
fn long_chains_of_operators_load_or_are_refused() {
    for operator in [" or ", " + ", " || ", " = ", " -> ", "::int::", " and not "] {
        for length in [100, 1_000, 1_400, 2_000, 10_000, 50_000] {
            let codes = dimension(&vec!["x"; length].join(operator));
            assert!(length > 1_000 || codes.len() <= 1, "{operator} {length}: {codes:?}");
            assert!(length < 10_000 || codes.contains(&"sql-too-long"), "{operator} {length}: {codes:?}");
        }
    }
    for length in [100, 700, 1_000] {
        assert!(number(&vec!["{c}"; length].join(" / ")).len() <= 1);
    }
}

#[test]
fn deep_nesting_is_refused() {
    for depth in [50, 500, 1_400, 10_000, 30_000] {
        for (open, close) in [("(", ")"), ("f(", ")"), ("CASE WHEN x THEN ", " END"), ("[", "]"), ("(SELECT ", ")")] {
            let text = format!("{}x{}", open.repeat(depth), close.repeat(depth));
            let codes = dimension(&text);
            assert!(depth < 500 || codes.len() == 1, "{open} {depth}: {codes:?}");
        }
        for prefix in ["NOT ", "- ", "~ ", "CAST(", "EXISTS ("] {
            dimension(&format!("{}x", prefix.repeat(depth)));
        }
        model(&format!("SELECT {}x{}", "(".repeat(depth), ")".repeat(depth)));
        model(&format!("{}SELECT 1{}", "SELECT * FROM (".repeat(depth), ") x".repeat(depth)));
    }
    for length in [1_000, 10_000, 100_000] {
        model(&format!("SELECT {}", vec!["x"; length].join(" + ")));
        model(&vec!["SELECT 1"; length].join(" UNION ALL "));
    }
}

#[test]
fn jinja_neither_overflows_nor_grows() {
    for length in [100, 1_000, 2_000, 6_000, 12_000, 50_000] {
        for text in [
            format!("SELECT {{{{ {} }}}}", vec!["1"; length].join(" + ")),
            format!("SELECT {{{{ 1{} }}}}", "|upper".repeat(length)),
            format!("SELECT {{{{ a{} }}}}", ".b".repeat(length)),
            format!("SELECT {{{{ {}1{} }}}}", "(".repeat(length), ")".repeat(length)),
            format!("SELECT {{{{ {}1 }}}}", "not ".repeat(length)),
            format!("SELECT {{{{ a{} }}}}", "[0]".repeat(length)),
            format!("SELECT {{% if 1 %}}{}{{% endif %}}", "{% elif 1 %}".repeat(length)),
            format!("SELECT {}{}", "{% if 1 %}".repeat(length), "{% endif %}".repeat(length)),
            format!("SELECT {}{}", "{% for x in [1] %}".repeat(length), "{% endfor %}".repeat(length)),
        ] {
            let codes = model(&text);
            assert!(codes.len() == 1 || (length == 100 && codes.is_empty()), "{length}: {codes:?} {}", &text[..40]);
        }
    }
    let start = "{% set a = '0123456789' %}";
    for step in [
        "{% set a = a ~ a %}",
        "{% set a = a + a %}",
        "{% set a = a * 10 %}",
        "{% set a %}{{ a }}{{ a }}{% endset %}",
        "{% set a = [a, a] %}",
        "{% set a = d(a) %}",
        "{% set a = [a, a]|upper %}",
    ] {
        let text = format!(
            "{start}{{% macro d(x) %}}{{{{ x }}}}{{{{ x }}}}{{% endmacro %}}{}SELECT 1 -- {{{{ a }}}}",
            step.repeat(40)
        );
        assert_eq!(model(&text).len(), 1, "{step}");
    }
    let looped = "{% for i in range(9999) %}{% for j in range(9999) %}0123456789{% endfor %}{% endfor %}SELECT 1";
    assert_eq!(model(looped), ["jinja-limit"]);
}

#[test]
fn yaml_is_bounded() {
    for depth in [100, 1_000, 100_000] {
        let flow = format!("cubes: {}1{}", "[".repeat(depth), "]".repeat(depth));
        assert!(check(&[("cubes/a.yml", &flow)]).contains(&"yaml-limit"), "{depth}");
        let block = format!("cubes:\n{}", "- ".repeat(depth));
        assert!(!check(&[("cubes/a.yml", &block)]).is_empty());
    }
    let nested: String = (0..60).map(|n| format!("&a{n} [")).chain((0..60).map(|_| "]".to_owned())).collect();
    check(&[("cubes/a.yml", &format!("cubes: {nested}"))]);
    let wide = format!("cubes: [{}]", "{name: a}, ".repeat(300_000));
    assert!(!check(&[("cubes/a.yml", &wide)]).is_empty());
}

#[test]
fn long_chains_of_definitions_load() {
    let mut cubes = String::from("cubes:\n");
    for n in 0..2_000 {
        cubes += &format!(
            "  - {{name: c{n}, sql_table: t, joins: [{{name: c{}, relationship: many_to_one, sql: '{{c{n}}}.a = {{c{}}}.b'}}]}}\n",
            n + 1,
            n + 1
        );
    }
    cubes += "  - name: c2000\n    sql_table: t\n    dimensions:\n";
    for n in 0..90 {
        cubes += &format!("      - {{name: d{n}, type: string, sql: '{{d{}}}'}}\n", n + 1);
    }
    cubes += "      - {name: d90, type: string, sql: x}\n";
    assert_eq!(check(&[("cubes/a.yml", &cubes)]), Vec::<&str>::new());
    let models: Vec<(String, String)> = (0..3_000)
        .map(|n| (format!("models/m{n}.sql"), format!("SELECT * FROM {{{{ ref('m{}') }}}}", (n + 1) % 3_000)))
        .collect();
    let files: Vec<(&str, &str)> = models.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    assert!(check(&files).contains(&"model-cycle"));
}

/// Each of the 20,000 dimensions of `a` refers to a dimension of `b`, which has as many.
#[test]
fn wide_cube_over_another_wide_cube_loads() {
    let members = |sql: &dyn Fn(usize) -> String| {
        (0..20_000).map(|n| format!("      - {{name: d{n}, type: string, sql: '{}'}}\n", sql(n))).collect::<String>()
    };
    let cubes = format!(
        "cubes:\n  - name: a\n    sql_table: a\n    joins: [{{name: b, relationship: many_to_one, sql: '{{a}}.x = \
         {{b}}.y'}}]\n    dimensions:\n{}  - name: b\n    sql_table: b\n    dimensions:\n{}",
        members(&|n| format!("{{b.d{n}}}")),
        members(&|n| format!("c{n}"))
    );
    assert_eq!(check(&[("cubes/a.yml", &cubes)]), Vec::<&str>::new());
}

#[test]
fn members_that_grow_without_bound_are_refused() {
    let chain = |count: usize, sql: &dyn Fn(usize) -> String| {
        let mut cubes = String::from("cubes:\n  - name: c\n    sql_table: t\n    dimensions:\n");
        for n in 0..count {
            cubes += &format!("      - {{name: d{n}, type: number, sql: '{}'}}\n", sql(n + 1));
        }
        cubes + &format!("      - {{name: d{count}, type: number, sql: x}}\n")
    };
    let long = chain(5_000, &|next| format!("{{d{next}}}"));
    assert!(check(&[("cubes/a.yml", &long)]).contains(&"reference-depth"));
    let doubling = chain(40, &|next| format!("{{d{next}}} + {{d{next}}}"));
    assert!(check(&[("cubes/a.yml", &doubling)]).contains(&"reference-size"));
}

#[test]
fn join_whose_condition_needs_further_joins_is_refused() {
    let cubes = "
cubes:
  - name: orders
    sql_table: orders
    joins: [{name: customers, relationship: many_to_one, sql: '{orders}.region = {customers.region_name}'}]
    dimensions: [{name: id, type: number, sql: id}]
  - name: customers
    sql_table: customers
    joins: [{name: regions, relationship: many_to_one, sql: '{customers}.region_id = {regions}.id'}]
    dimensions: [{name: region_name, type: string, sql: '{regions}.name'}]
  - name: regions
    sql_table: regions
    dimensions: [{name: name, type: string, sql: name}]
";
    assert_eq!(check(&[("cubes/a.yml", cubes)]), vec!["join-needs-join"]);
}

#[test]
fn constant_number_measure_is_rejected() {
    let cubes = "cubes: [{name: c, sql_table: t, measures: [{name: one, type: number, sql: '1'}]}]";
    assert_eq!(check(&[("cubes/a.yml", cubes)]), vec!["constant-measure"]);
}

#[test]
fn syntax_errors_of_all_items_are_reported() {
    let text = "cubes:
  - name: a
    sql_table: [x
  - name: b
    sql: \"SELECT *name FROM t
  - name: c
    sql_table: c
# A comment.
  - name: d
   sql_table: d
metrics:
\t- name: e
";
    let many = format!("cubes:\n{}", "  - name: a: b\n".repeat(20_000));
    // The alias may name an anchor of another item, so its item is not parsed.
    let anchors = "cubes:\n  - &a\n    name: [x\n  - <<: *a\n    sql_table: t\n";
    for (text, expected) in [(text, 4), (many.as_str(), 20), (anchors, 1)] {
        let codes = check(&[("cubes/a.yml", text)]);
        let errors = codes.iter().filter(|code| **code == "yaml-syntax").count();
        assert_eq!(errors, expected, "{codes:?}");
    }
}

#[test]
fn columns_may_begin_with_an_underscore() {
    for sql in ["{CUBE}._deleted = 1", "{a}._x + 1_000 = {CUBE}._", "'}._x' = {CUBE}._or AND {CUBE}.\"_x\" = _y"] {
        assert!(dimension(sql).is_empty(), "{sql}: {:?}", dimension(sql));
    }
    assert_eq!(dimension("{CUBE}.1_ = 1"), ["sql-syntax"]);
    assert_eq!(dimension(&vec!["{CUBE}._x"; 500].join(" + ")), ["sql-syntax"]);
}
