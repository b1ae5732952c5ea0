//! Tests mistakes of users. Each must end with exit code 1, a place and a hint, and without a panic.

use std::net::TcpListener;
use std::path::Path;

use terrane_system_tests::{Output, Scratch, path};

use crate::{program, run};

/// Checks that a run failed with a message that contains the words.
fn assert_explains(output: &Output, words: &[&str]) {
    let text = format!("{}{}", output.stdout, output.stderr);
    assert_eq!(output.code, Some(1), "{text}");
    assert!(!text.contains("panicked"), "{text}");
    for word in words {
        assert!(text.contains(word), "`{word}` is not in\n{text}");
    }
}

#[test]
fn missing_project_is_reported() {
    for command in ["check", "serve"] {
        assert_explains(&run(command, Path::new("/no/such/folder"), &[]), &["/no/such/folder", "hint:"]);
        assert_explains(
            &run(command, Scratch::empty().path(), &[]),
            &["does not contain service_project.yml", "hint:"],
        );
        assert_explains(&run(command, &path("examples"), &[]), &["examples/flights?"]);
        assert_explains(&run(command, &path("Cargo.toml"), &[]), &["is a file", "hint:"]);
    }
}

#[test]
fn broken_yaml_in_a_cube_has_its_place_and_the_line() {
    let project = Scratch::project().with("cubes/b.yml", "cubes:\n  - name: b\n    measures: [{name: a\n");
    for command in ["check", "serve"] {
        let output = run(command, project.path(), &[]);
        assert_explains(
            &output,
            &["cubes/b.yml:3:16: error[yaml-syntax]", "3 |     measures: [{name: a", "^", "hint:"],
        );
    }
}

#[test]
fn broken_yaml_in_the_project_file_is_reported_once() {
    let project = Scratch::project().with("service_project.yml", "name: a\nserver: {port: 1\n");
    let output = run("check", project.path(), &[]);
    assert_explains(&output, &["service_project.yml:2:9: error[yaml-syntax]"]);
    assert_eq!(output.stdout.matches("yaml-syntax").count(), 1, "{}", output.stdout);
}

#[test]
fn broken_yaml_hides_no_problem_of_other_files() {
    let cube = "cubes:\n  - name: c\n    sql_table: no_such_table\n    measures: [{name: m, type: summ, sql: x}]\n";
    let settings = "name: a\nwarehouse: {type: postgres\nquery: {timeout: soon}\nvars: {a: 1}\n";
    let metrics =
        "metrics:\n  - {name: m, type: simple, expression: c.cuont}\n  - {name: n, type: simple, expression: d.e}\n";
    let project = Scratch::empty().with("service_project.yml", settings).with("cubes/c.yml", cube);
    let project = project.with("cubes/d.yml", "cubes:\n  - {name: d, sql_table: [}\n").with("metrics/m.yml", metrics);
    let project = project.with("tests/t.yml", "tests:\n  - {name: t, qury: {measures: [c.m]}, rows: []}\n");
    let output = run("check", project.path(), &["--json"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    let json: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    let problems = json["problems"].as_array().unwrap().iter().filter(|problem| problem["severity"] == "error");
    let mut found: Vec<(&str, u64, &str)> = problems
        .map(|p| (p["file"].as_str().unwrap(), p["line"].as_u64().unwrap(), p["code"].as_str().unwrap()))
        .collect();
    found.sort_unstable();
    let expected = [
        ("cubes/c.yml", 4, "unknown-value"),
        ("cubes/d.yml", 2, "yaml-syntax"),
        ("metrics/m.yml", 2, "unknown-member"),
        ("service_project.yml", 2, "yaml-syntax"),
        ("service_project.yml", 3, "wrong-value"),
        ("tests/t.yml", 2, "unknown-key"),
    ];
    assert_eq!(found, expected, "{}", output.stdout);
}

#[test]
fn unknown_key_names_the_nearest() {
    let project = Scratch::project().with("service_project.yml", "name: a\nserver:\n  prot: 80\nwarehuose: {}\n");
    let output = run("check", project.path(), &[]);
    assert_explains(
        &output,
        &["service_project.yml:3:3: error[unknown-key]", "`port`", "service_project.yml:4:1", "`warehouse`", "errors"],
    );
}

#[test]
fn all_problems_are_reported_in_one_run() {
    let project = Scratch::project()
        .with("service_project.yml", "name: a\nquery: {timeout: soon}\n")
        .with("cubes/b.yml", "cubes:\n  - {name: b, sql_table: u, measures: [{name: m, type: summ, sql: x}]}\n")
        .with("metrics/m.yml", "metrics:\n  - {name: m, type: simple, expression: t.cuont}\n");
    let output = run("check", project.path(), &["--json"]);
    let json: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    let files: Vec<&str> = json["problems"].as_array().unwrap().iter().filter_map(|p| p["file"].as_str()).collect();
    for file in ["service_project.yml", "cubes/b.yml", "metrics/m.yml"] {
        assert!(files.contains(&file), "{file} is not in {json}");
    }
    assert_explains(&output, &["\"line\": 2"]);
}

#[test]
fn missing_environment_variable_is_named() {
    let project = Scratch::project().with("service_project.yml", "name: a\nwarehouse:\n  path: ${DATA_FILE}\n");
    assert_explains(&run("check", project.path(), &[]), &["service_project.yml:3:9", "DATA_FILE", "hint:"]);
}

#[test]
fn port_in_use_is_reported() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let output = run("serve", Scratch::project().path(), &["--port", &port]);
    assert_explains(&output, &[&port, "in use", "--port"]);
}

#[test]
fn missing_component_is_reported() {
    let project = Scratch::project().with("service_project.yml", "name: a\nwarehouse: {type: mssql}\n");
    assert_explains(&run("check", project.path(), &[]), &["mssql", "hint:"]);
}

#[test]
fn damaged_component_is_reported() {
    let whole = std::fs::read(path(".prepared/components/dialect-duckdb.wasm")).expect("`cargo xtask setup` was run");
    let half = &whole[..whole.len() / 2];
    let flipped: Vec<u8> =
        whole.iter().enumerate().map(|(at, byte)| if at % 97 == 50 { !byte } else { *byte }).collect();
    for bytes in [half, &flipped, b"", b"#!/bin/sh\n", b"\0asm\x01\0\0\0", b"\x7fELF\x02\x01\x01\0"] {
        let project = Scratch::project().with_bytes("plugins/dialect-duckdb.wasm", bytes);
        for command in ["check", "serve"] {
            assert_explains(
                &run(command, project.path(), &[]),
                &["plugins/dialect-duckdb.wasm", "no-dialect", "hint:"],
            );
        }
    }
}

#[test]
fn unreadable_data_file_is_reported() {
    let init = "CREATE VIEW v AS SELECT * FROM read_parquet('data/v.parquet')";
    let settings = format!("name: a\nwarehouse:\n  init:\n    - {init}\nsecurity: {{anonymous: {{scopes: [read]}}}}\n");
    let project = Scratch::project().with("service_project.yml", &settings);
    for command in ["check", "serve"] {
        assert_explains(&run(command, project.path(), &[]), &["service_project.yml:4:7", "data/v.parquet", "hint:"]);
    }
    let project = project.with("data/v.parquet", "PAR1 this is not a Parquet file");
    assert_explains(&run("serve", project.path(), &[]), &["service_project.yml:4:7", "data/v.parquet"]);
    let project = project.with("service_project.yml", &settings.replace(init, "\"SELEC 1\""));
    assert_explains(&run("serve", project.path(), &[]), &["service_project.yml:4:7", "SELEC 1"]);
}

#[test]
fn invalid_database_file_is_reported() {
    let project = Scratch::project()
        .with("service_project.yml", "name: a\nwarehouse:\n  path: a.duckdb\n")
        .with("a.duckdb", "this is not a database, in spite of its name");
    assert_explains(&run("check", project.path(), &[]), &["service_project.yml:3:9", "a.duckdb", "hint:"]);
}

#[test]
fn server_without_credentials_or_anonymous_refuses_to_start() {
    let settings = "name: a\nsecurity: {api_keys: {enabled: false}}\n";
    let project = Scratch::project().with("service_project.yml", settings);
    assert_explains(&run("serve", project.path(), &[]), &["not-served", "security: {anonymous:"]);
}

#[test]
fn contradictory_access_settings_are_rejected() {
    for (security, words) in [
        ("{anonymous: {scopes: [read], public: true}, api_keys: {enabled: false}}", "public: true"),
        ("{anonymous: {scopes: [read, write]}}", "must be [read]"),
        ("{enabled: false, anonymous: {scopes: [read]}}", "security.enabled: false"),
        ("{anonymous: {scopes: [read]}, jwt: {secret: 0123456789}}", "security.jwt"),
        (
            "{anonymous: {scopes: [read]}, jwt: {secret: 0123456789abcdef0123456789abcdef}, oauth: {enabled: true, public_url: \"https://a.example\"}}",
            "no `providers`",
        ),
        ("{jwt: {external_jwks_url: \"http://a.example/keys\", issuer: a, audience: b}}", "over https"),
    ] {
        let project = Scratch::project().with("service_project.yml", &format!("name: a\nsecurity: {security}\n"));
        let output = run("serve", project.path(), &[]);
        assert_explains(&output, &["service_project.yml:2:", "not-served", words, "hint:"]);
        assert!(!output.stderr.contains("0123456789"), "{}", output.stderr);
    }
    let output =
        program("serve", Scratch::project().path()).variable("SERVICE_SECURITY__JWT_SECRET", "topsecret").run();
    let output = output.unwrap();
    assert_explains(&output, &["SERVICE_SECURITY__JWT_SECRET", "not-served"]);
    assert!(!output.stderr.contains("topsecret"));
}

#[test]
fn public_addresses_without_credentials_are_rejected() {
    for host in ["0.0.0.0", "::", "192.0.2.7", "no.such.host.invalid"] {
        let output = run("serve", Scratch::project().path(), &["--host", host, "--port", "0"]);
        assert_explains(&output, &[host, "not-served", "hint:"]);
    }
}

#[cfg(unix)]
#[test]
fn paths_stay_inside_the_project() {
    let outside = Scratch::empty().with("secret.yml", "cubes: []\n");
    let project = Scratch::project();
    std::os::unix::fs::symlink(outside.path().join("secret.yml"), project.path().join("cubes/secret.yml")).unwrap();
    assert_explains(&run("check", project.path(), &[]), &["cubes/secret.yml", "path-outside"]);
    for (settings, words) in [
        ("name: a\npaths: {cubes: ../other}\n", "../other"),
        ("name: a\npaths: {models: /etc}\n", "/etc"),
        ("name: a\nwarehouse: {path: ../a.duckdb}\n", "../a.duckdb"),
        ("name: a\nwarehouse: {path: /tmp/a.duckdb}\n", "/tmp/a.duckdb"),
    ] {
        let project = Scratch::project().with("service_project.yml", settings);
        assert_explains(&run("check", project.path(), &[]), &["service_project.yml:2:", "path-outside", words]);
    }
}

#[cfg(unix)]
#[test]
fn links_inside_the_project_are_followed_and_loops_are_read_once() {
    let project =
        Scratch::project().with("shared/more.yml", "metrics:\n  - {name: m, type: simple, expression: t.count}\n");
    std::fs::create_dir(project.path().join("metrics")).unwrap();
    std::os::unix::fs::symlink("../shared/more.yml", project.path().join("metrics/more.yml")).unwrap();
    let output = run("check", project.path(), &[]);
    assert!(output.code == Some(0) && output.stdout.contains("1 metric"), "{}", output.stdout);
    std::os::unix::fs::symlink(".", project.path().join("metrics/again")).unwrap();
    let output = run("check", project.path(), &[]);
    assert!(output.code == Some(0) && output.stdout.contains("1 metric"), "{}", output.stdout);
}

#[test]
fn non_text_files_are_reported() {
    let project = Scratch::project().with_bytes("cubes/b.yml", b"cubes:\n  - name: \xff\xfe\n");
    assert_explains(&run("check", project.path(), &[]), &["cubes/b.yml:2:1: error[not-utf-8]"]);
    for mark in ["\u{feff}", ""] {
        let text: Vec<u8> = format!("{mark}cubes: []\n").encode_utf16().flat_map(u16::to_le_bytes).collect();
        let project = Scratch::project().with_bytes("cubes/b.yml", &text);
        let reported = ["cubes/b.yml:1:1: error[not-utf-8]", "UTF-16", "Save the file as UTF-8"];
        assert_explains(&run("check", project.path(), &[]), &reported);
    }
    let project = Scratch::project().with("cubes/b.yml", &"# long\n".repeat(1_000_000));
    assert_explains(&run("check", project.path(), &[]), &["cubes/b.yml", "file-too-large"]);
}

#[test]
fn deeply_nested_files_are_rejected() {
    for depth in [2_000, 10_000, 100_000] {
        for text in [
            format!("cubes: {}{}", "[".repeat(depth), "]".repeat(depth)),
            format!(
                "cubes:\n  - {{name: b, sql_table: t, measures: [{{name: m, type: sum, sql: \"{}1{}\"}}]}}\n",
                "(".repeat(depth),
                ")".repeat(depth)
            ),
            format!(
                "cubes:\n  - {{name: b, sql_table: t, segments: [{{name: m, sql: \"1{}\"}}]}}\n",
                " or 1".repeat(depth)
            ),
            format!("cubes:\n  - {{name: b, sql: \"SELECT {{{{ 1{} }}}}\"}}\n", " + 1".repeat(depth)),
        ] {
            let project = Scratch::project().with("cubes/b.yml", &text);
            let output = run("check", project.path(), &[]);
            assert!(output.code.is_some(), "ended by a signal: {}", output.stderr);
            assert!(!output.stderr.contains("panicked"), "{}", output.stderr);
        }
    }
}

#[test]
fn deeply_nested_configuration_is_rejected() {
    let text = format!("name: a\nserver: {}{}\n", "{a: ".repeat(50_000), "}".repeat(50_000));
    let project = Scratch::project().with("service_project.yml", &text);
    assert_explains(&run("check", project.path(), &[]), &["service_project.yml", "error"]);
    let deep = "[".repeat(50_000);
    let output = program("check", Scratch::project().path()).variable("SERVICE_WAREHOUSE__INIT", &deep).run().unwrap();
    assert_explains(&output, &["SERVICE_WAREHOUSE__INIT"]);
}

/// Tests mistakes that only the warehouse can find. Each is reported at its own line, and the server serves the rest.
#[test]
fn warehouse_errors_are_reported_at_their_place() {
    let cubes = "cubes:
  - name: t
    sql_table: t
    joins:
      - {name: other, relationship: many_to_one, sql: \"{t}.othr = {other}.id\"}
    segments:
      - {name: big, sql: \"sise > 5\"}
    measures:
      - {name: count, type: count}
      - {name: few, type: count, filters: [{sql: \"cuont < 5\"}]}
      - {name: ratio, type: number, sql: \"SUM(amuont) / {count}\"}
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: kind, type: string, sql: knid}
  - name: other
    sql_table: t
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
";
    let project = Scratch::project()
        .with("cubes/t.yml", cubes)
        .with("tests/t.yml", "tests:\n  - {name: a, query: {measures: [t.count]}}\n");
    let output = run("check", project.path(), &[]);
    for words in [
        "cubes/t.yml:5:",
        "the join of `t` to `other`",
        "othr",
        "segment `t.big`",
        "sise",
        "cubes/t.yml:10:",
        "measure `t.few`",
        "cuont",
        "cubes/t.yml:11:",
        "amuont",
        "cubes/t.yml:14:",
        "dimension `t.kind`",
        "knid",
        "tests/t.yml:2:",
    ] {
        assert_explains(&output, &[words]);
    }
    assert!(!output.stdout.contains("t.count`"), "readable members are not reported: {}", output.stdout);
    let answer = run("query", project.path(), &[r#"{"measures": ["t.count"]}"#, "--json"]);
    assert_eq!(answer.code, Some(0), "{}", answer.stderr);
}

#[test]
fn expectation_of_an_unknown_member_is_reported() {
    let case = |query: &str| format!("tests:\n  - name: a\n    rows: []\n    query: {query}\n");
    let project = Scratch::project().with("tests/a.yml", &case("{measures: [t.cuont]}"));
    let output = run("check", project.path(), &[]);
    assert_explains(&output, &["tests/a.yml:4:24: error[wrong-expectation]", "t.cuont", "Did you mean `t.count`?"]);
    let project = project
        .with("tests/a.yml", &case("{measures: [t.cuont]}").replace("rows: []", "error: {code: INVALID_MEASURE}"));
    assert_eq!(run("check", project.path(), &[]).code, Some(0));
    // Members that are missing because of other errors in the project are not reported as errors of its expectations.
    let project = project
        .with("tests/a.yml", &case("{measures: [b.count]}"))
        .with("cubes/b.yml", "cubes:\n  - {name: b, sql_table: t, measures: [{name: count, type: cuont}]}\n");
    let output = run("check", project.path(), &[]);
    assert_explains(&output, &["cubes/b.yml:2"]);
    assert!(!output.stdout.contains("wrong-expectation"), "{}", output.stdout);
}

#[test]
fn all_problems_of_expectations_are_reported_beside_other_errors() {
    let cases = "\
tests:
  - {name: d, query: {measures: [t.count], time_range: sometime}, rows: []}
  - {name: e, query: {measures: [t.count]}, sql: SELECT nix FROM t}
  - {name: f, query: {measures: [t.count], limit: -1, timezone: Mars}, rows: [{t.cuont: 1}]}
  - {query: {measures: [t.cuont]}, rows: []}
  - {name: g, query: {measures: [t.count], limit: 999999999, order_by: [{field: t.cuont}]}, rows: []}
  - {name: h, query: {measures: [t.count]}, error: {code: NO_JOIN_PATH}}
  - {name: i, query: {measures: [bad]}, rows: []}
";
    let metrics = "metrics:\n  - {name: bad, type: simple, expression: t.zz}\n";
    let project = Scratch::project().with("tests/a.yml", cases).with("metrics/z.yml", metrics);
    let output = run("check", project.path(), &["--json"]);
    let report: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    let problems: Vec<String> = report["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|problem| {
            format!("{}:{} {}", problem["file"].as_str().unwrap_or_default(), problem["line"], problem["message"])
        })
        .collect();
    let expected = [
        ("metrics/z.yml:2", "zz"),
        ("tests/a.yml:2", "no primary time dimension"),
        ("tests/a.yml:3", "SQL of case `e`"),
        ("tests/a.yml:4", "`limit`"),
        ("tests/a.yml:4", "`Mars`"),
        ("tests/a.yml:4", "no key `t.cuont`"),
        ("tests/a.yml:5", "has no `name`"),
        ("tests/a.yml:5", "`t.cuont`"),
        ("tests/a.yml:6", "limit 999999999"),
        ("tests/a.yml:6", "`t.cuont`"),
        ("tests/a.yml:7", "its query is valid"),
    ];
    for (place, words) in expected {
        let is_it = |problem: &&String| problem.starts_with(place) && problem.contains(words);
        assert!(problems.iter().find(is_it).is_some(), "{place} {words}: {problems:#?}");
    }
    assert_eq!(problems.len(), expected.len(), "{problems:#?}");
}

#[test]
fn impossible_expectation_is_reported() {
    let case = |rest: &str| format!("tests:\n  - name: a\n    query: {{measures: [t.count]}}\n    {rest}\n");
    let refused = "error: {code: INVALID_MEASURE, contains: t.cuont}";
    let rows = "rows: [{t.count: 1}]";
    for (from, to, words) in [
        (rows, refused, &["tests/a.yml:4:12:", "expects the refusal INVALID_MEASURE", "its query is valid"][..]),
        (rows, "error: {code: WAREHOUSE_ERROR}", &[][..]),
        ("t.count]", "t.cuont]", &["tests/a.yml:3:24:", "is refused", "Did you mean `t.count`?"][..]),
        (
            rows,
            "sql: SELECT cuont(*) AS \"t.count\" FROM t",
            &["tests/a.yml:4:10:", "the SQL of case `a`", "cuont"][..],
        ),
        (rows, "sql: SELECT 1 AS \"t.count\";", &[][..]),
        (
            rows,
            "sql: SELECT 1 AS \"t.cuont\"",
            &["tests/a.yml:4:10:", "no key `t.cuont`", "Did you mean `t.count`?"][..],
        ),
        (rows, "rows: [{t.cuont: 1}]", &["tests/a.yml:4:13:", "no key `t.cuont`", "Did you mean `t.count`?"][..]),
        (rows, "error: {contains: x}", &["tests/a.yml:4:12:", "`error` of case `a` has no `code`"][..]),
        (rows, "error: INVALID_MEASURE", &["tests/a.yml:4:12:", "must be a mapping with a `code`"][..]),
        (rows, "rows: {t.count: 1}", &["tests/a.yml:4:11:", "must be a list of mappings"][..]),
    ] {
        let project = Scratch::project().with("tests/a.yml", &case(rows).replace(from, to));
        let output = run("check", project.path(), &[]);
        match words {
            [] => assert_eq!(output.code, Some(0), "{to}: {}", output.stdout),
            words => assert_explains(&output, words),
        }
    }
    let unknown = case(refused).replace("t.count]", "t.cuont]");
    for (from, to, words) in [
        ("t.cuont}", "t.other}", &["INVALID_MEASURE: ", "Expect a part of that message."]),
        ("INVALID_MEASURE", "INVALID_DIMENSION", &["has another refusal", "code: INVALID_MEASURE"]),
    ] {
        let project = Scratch::project().with("tests/a.yml", &unknown.replace(from, to));
        assert_explains(&run("check", project.path(), &[]), words);
    }
}

#[test]
fn declared_sources_missing_in_the_warehouse_are_reported() {
    let settings =
        "name: shop\nwarehouse:\n  type: duckdb\n  init: [\"CREATE TABLE orders AS SELECT 1 AS id, 2 AS Size\"]\n";
    let sources = "sources:\n  - name: shop\n    tables:\n      - name: orders\n        columns: [{name: id}, {name: sise}, \
                   {name: size}]\n      - name: ordres\n";
    let cube = |sql: &str| {
        let dimension = format!("dimensions: [{{name: size, type: number, sql: {sql}}}]");
        format!("cubes:\n  - name: orders\n    sql_table: \"{{{{ source('shop', 'orders') }}}}\"\n    {dimension}\n")
    };
    let project = Scratch::empty()
        .with("service_project.yml", settings)
        .with("sources/shop.yml", sources)
        .with("cubes/orders.yml", &cube("size"));
    let output = run("check", project.path(), &[]);
    assert_eq!(output.code, Some(0), "{}", output.stdout);
    for words in
        ["sources/shop.yml:5:", "no column `sise`", "Did you mean `Size`?", "sources/shop.yml:6:", "`shop.ordres`"]
    {
        assert!(output.stdout.contains(words), "{words}: {}", output.stdout);
    }
    assert!(output.stdout.contains("2 warnings"), "{}", output.stdout);
    // A missing column that a cube reads is reported at the cube only.
    let project = project.with("cubes/orders.yml", &cube("sise"));
    let output = run("check", project.path(), &[]);
    assert_explains(&output, &["cubes/orders.yml:4:", "dimension `orders.size`"]);
    assert!(!output.stdout.contains("sources/shop.yml:5:"), "{}", output.stdout);
    // A table that does not exist is reported at the place where the cube names it.
    let project = project.with("cubes/orders.yml", "cubes:\n  - name: orders\n    sql_table: shop.ordered\n");
    assert_explains(&run("check", project.path(), &[]), &["cubes/orders.yml:3:", "cannot describe cube `orders`"]);
}
