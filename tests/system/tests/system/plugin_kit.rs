//! Tests `terrane plugin` as an author uses it, from an empty folder to a signed component.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use terrane_system_tests::{Output, Program, Scratch, path};

use crate::BINARY;

const TEMPLATES: [(&str, &str); 4] = [
    ("dialect", "dialect-template"),
    ("detector", "detector-template"),
    ("check", "check-template"),
    ("governance", "hook-template"),
];

/// Returns a component of the examples and templates, as `cargo xtask components` built it.
fn example(name: &str) -> PathBuf {
    let file = path(".prepared/components/examples").join(format!("{name}.wasm"));
    assert!(file.is_file(), "run `cargo xtask components` first: {}", file.display());
    file
}

fn plugin(action: &str, subject: &Path, arguments: &[&str]) -> Output {
    Program::new(BINARY, &["plugin", action], subject).arguments(arguments).run().unwrap()
}

fn json_of(output: &Output) -> Value {
    serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

#[test]
fn every_template_and_example_follows_the_contract() {
    let of_templates = TEMPLATES.map(|(role, name)| (example(name), path(&format!("sdk/templates/{role}/cases"))));
    let of_examples = [
        (example("detector-holt-winters"), path("examples/detector-holt-winters/cases")),
        (example("policy-region"), path("examples/policy-region/plugin/cases")),
        (path("examples/detector-c/detector-c.wasm"), path("examples/detector-c/cases")),
    ];
    for (component, cases) in of_templates.into_iter().chain(of_examples) {
        let output = plugin("test", &component, &["--cases", cases.to_str().unwrap(), "--json"]);
        let json = json_of(&output);
        assert!(output.code == Some(0) && json["ok"] == json!(true), "{} {json:#}", component.display());
        let ran = json["results"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|result| result["name"].as_str().is_some_and(|name| name.starts_with("case ")));
        assert_eq!(ran.count(), fs::read_dir(&cases).unwrap().filter(is_json).count(), "{}", cases.display());
        let output = plugin("check", &component, &["--json"]);
        assert_eq!((output.code, &json_of(&output)["problems"]), (Some(0), &json!([])), "{}", component.display());
    }
}

fn is_json(entry: &std::io::Result<fs::DirEntry>) -> bool {
    entry.as_ref().is_ok_and(|entry| entry.path().extension().is_some_and(|extension| extension == "json"))
}

#[test]
fn new_plugin_equals_the_template_except_for_its_name() {
    let scratch = Scratch::empty();
    for (role, name) in TEMPLATES {
        let folder = scratch.path().join(name);
        let output = plugin("new", &folder, &["--role", role]);
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        // The files equal the template, which is built and tested with the workspace.
        for file in ["plugin.toml", "src/lib.rs"] {
            let (made, template) = (folder.join(file), path(&format!("sdk/templates/{role}/{file}")));
            let template = fs::read_to_string(template).unwrap();
            let kind = template.contains("\"template\"");
            let made = fs::read_to_string(made).unwrap();
            assert!(
                made.lines().count() == template.lines().count() && (kind || !made.contains("\"template\"")),
                "{file}"
            );
            assert!(made.contains(name), "{file} of {role}");
        }
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        assert!(manifest.contains("[workspace]") && manifest.contains("\"vendor/terrane/sdk\""), "{manifest}");
        assert!(folder.join("vendor/terrane/wit/worlds.wit").is_file());
    }
    let again = plugin("new", &scratch.path().join("hook-template"), &["--role", "governance"]);
    assert_eq!(again.code, Some(1), "{again:?}");
    insta::assert_snapshot!(again.messages(scratch.path()), @r"
    error: [folder]/hook-template exists and is not empty
      hint: Name a new folder. Nothing was changed.
    ");
    let unnamed = plugin("new", &scratch.path().join("Über"), &["--role", "check"]);
    assert!(unnamed.code == Some(1) && unnamed.stderr.contains("--name"), "{}", unnamed.stderr);
    for (folder, role, id) in [
        ("quack", "dialect", "dialect-quack"),
        ("my-detector", "detector", "detector-my"),
        ("mydet", "detector", "detector-mydet"),
        ("detector-x", "check", "check-detector-x"),
    ] {
        let output = plugin("new", &scratch.path().join(folder), &["--role", role]);
        assert!(output.code == Some(0) && output.stdout.starts_with(&format!("created {id} in ")), "{output:?}");
    }
    let elsewhere = scratch.path().join("with-sdk");
    let output = plugin("new", &elsewhere, &["--role", "check", "--sdk", path("sdk").to_str().unwrap()]);
    assert!(output.code == Some(0) && !elsewhere.join("vendor").exists(), "{output:?}");
}

pub(crate) const NO_GUEST_TARGET: &str = "the toolchain has no wasm32-unknown-unknown";

/// Returns whether cargo can build guests: the toolchain has the target, or `cargo xtask test` has set a sysroot.
#[allow(clippy::disallowed_methods, reason = "tests are configured by their environment")]
pub(crate) fn has_guest_target() -> bool {
    if std::env::var_os("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS").is_some() {
        return true;
    }
    let arguments = ["--print", "target-libdir", "--target", "wasm32-unknown-unknown"];
    let output = Command::new("rustc").args(arguments).current_dir(path(".")).output();
    let folder = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    folder.is_ok_and(|folder| Path::new(&folder).is_dir())
}

#[test]
fn new_detector_is_built_tested_and_signed() {
    if !has_guest_target() {
        return crate::skip("a new detector", NO_GUEST_TARGET);
    }
    let scratch = Scratch::empty();
    let crate_folder = scratch.path().join("far-out");
    plugin("new", &crate_folder, &["--role", "detector"]);
    // This command has the environment of the test and no time limit, because it compiles a crate.
    let mut command = Command::new(BINARY);
    command.args(["plugin", "test"]).arg(&crate_folder).env("CARGO_NET_OFFLINE", "true").env_remove("CARGO_TARGET_DIR");
    let output = command.output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && stdout.ends_with(" passed, 0 failed\n"), "{stdout}\n{stderr}");

    let component = crate_folder.join("target/components/detector-far-out.wasm");
    let key = scratch.path().join("far-out.key");
    let made = Program::new(BINARY, &["plugin", "keygen", "--json", "--out"], &key).run().unwrap();
    let public = json_of(&made)["public_key"].as_str().unwrap().to_owned();
    let again = Program::new(BINARY, &["plugin", "keygen", "--out"], &key).run().unwrap();
    assert_eq!(again.code, Some(1), "a key is never written over");
    let checked = |trusted: &str| json_of(&plugin("check", &component, &["--json", "--trust", trusted]));
    assert!(checked(&public)["problems"][0].as_str().unwrap().contains("is missing"));
    let signed = plugin("sign", &component, &["--key", key.to_str().unwrap()]);
    assert_eq!(signed.code, Some(0), "{}", signed.stderr);
    assert_eq!(checked(&public)["signature"], json!(format!("by {public}")));
    let stranger = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
    assert_eq!(checked(stranger)["ok"], json!(false));

    logs_and_panics_are_shown(&crate_folder, &component);
}

fn built(crate_folder: &Path) {
    let mut build = Command::new(BINARY);
    build.args(["plugin", "build"]).arg(crate_folder).env("CARGO_NET_OFFLINE", "true").env_remove("CARGO_TARGET_DIR");
    let built = build.output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
}

/// Checks that the author sees log lines and panics of a detector, both in the kit and in a project.
fn logs_and_panics_are_shown(crate_folder: &Path, component: &Path) {
    let source = crate_folder.join("src/lib.rs");
    let judging = "        Ok(Detection::of_points(";
    let talking = "        terrane_sdk::log::write(\
        terrane_sdk::log::Level::Warn, \"looking\", &[(\"api_key\", \"hunter2\")]);\n        \
        assert!(points.values.len() < 10, \"{} points\", points.values.len());\n";
    let text = fs::read_to_string(&source).unwrap();
    assert!(text.contains(judging));
    fs::write(&source, text.replacen(judging, &format!("{talking}{judging}"), 1)).unwrap();
    built(crate_folder);

    let case = |points: usize, expect: &str| {
        let points = vec!["1"; points].join(",");
        format!(
            r#"{{"call": "detect", "expect": {{"ok": {{"anomalous": [{expect}]}}}}, "args": {{"kind": "far_out",
            "history": {{"series": [[1,3,1,3,1,3,1,3]]}}, "points": {{"series": [[{points}]]}}, "p": {{"training-size": 8}}}}}}"#
        )
    };
    let cases = Scratch::empty().with("few.json", &case(1, "true")).with("many.json", &case(10, ""));
    let input = |name: &str| cases.path().join(name).to_str().unwrap().to_owned();
    let few = plugin("run", component, &["--input", &input("few.json")]);
    assert_eq!(few.code, Some(0), "{few:?}");
    insta::assert_snapshot!(few.stderr.lines().next().unwrap(), @"it logged warning: looking api_key=hunter2");
    let few = json_of(&plugin("run", component, &["--json", "--input", &input("few.json")]));
    assert_eq!(few["log"], json!([{"level": "warning", "message": "looking", "fields": [["api_key", "hunter2"]]}]));
    let many = plugin("run", component, &["--input", &input("many.json")]);
    assert_eq!(many.code, Some(1), "{many:?}");
    let lines: Vec<&str> = many.stderr.lines().collect();
    assert!(lines[0].ends_with(": 10 points"), "{many:?}");
    insta::assert_snapshot!(lines[1].trim(), @"it logged warning: looking api_key=hunter2");
    let many = plugin("run", component, &["--json", "--input", &input("many.json")]);
    let reported = json_of(&many);
    assert!(reported["ok"] == json!(false) && reported["log"][0]["level"] == "warning", "{reported}");
    let panicked = "many.json: the component trapped in `detect`: panicked at src/lib.rs:";
    assert!(reported["problems"][0].as_str().unwrap().contains(panicked), "{reported}");
    let tested = plugin("test", component, &["--cases", cases.path().to_str().unwrap()]);
    for words in ["it logged warning: looking", "panicked at src/lib.rs:", ": 10 points"] {
        assert!(tested.code == Some(1) && tested.stdout.contains(words), "{tested:?}");
    }

    let days = "CREATE TABLE d AS SELECT DATE '2013-01-01' + i::int AS day, i % 2 AS half FROM range(60) t(i)";
    let settings = format!("name: days\nwarehouse: {{type: duckdb, init: [\"{days}\"]}}\n");
    let cube = "cubes:\n  - name: d\n    sql_table: d\n    measures:\n      - {name: count, type: count}\n    \
                dimensions:\n      - {name: day, type: time, sql: day, primary_key: true}\n      \
                - {name: half, type: number, sql: half}\n";
    let project = || {
        let project = Scratch::empty().with("service_project.yml", &settings).with("cubes/d.yml", cube);
        project.with_bytes("plugins/detector-far-out.wasm", &fs::read(component).unwrap())
    };
    let run = ["--cube", "d", "--measure", "count", "--time", "day", "--dimension", "half", "--from", "2013-02-01"];
    let run = [&run[..], &["--detector", "far_out"]].concat();
    let judged = |project: &Scratch| Program::new(BINARY, &["anomaly", "run"], project.path()).arguments(&run).run();
    let output = judged(&project()).unwrap();
    let reported = &output.stderr;
    assert!(
        output.code == Some(1) && reported.contains("detector-far-out: warning: looking api_key=***\n"),
        "{reported}"
    );
    let panicked = "trapped in `detect`: panicked at src/lib.rs:";
    assert!(reported.contains(panicked) && reported.contains(": 58 points"), "{reported}");
    assert!(reported.contains("hint: while evaluating half 0; half 1\n"), "{reported}");

    // A component with an invalid description is reported in every command, and cannot forge a line of output.
    let text = fs::read_to_string(&source).unwrap();
    fs::write(&source, text.replace("new(\"far_out\"", "new(\"far\\nok     out\\u{1b}[2J\"")).unwrap();
    built(crate_folder);
    let checked = plugin("check", component, &[]);
    let tested = plugin("test", component, &[]);
    for output in [&checked, &tested] {
        assert!(output.code == Some(1) && output.stdout.contains("is not a kind"), "{output:?}");
        assert!(!output.stdout.contains('\u{1b}') && !output.stdout.contains("\nok     out"), "{output:?}");
    }
    let project = project();
    let checked = Program::new(BINARY, &["check"], project.path()).run().unwrap();
    assert!(checked.stdout.contains("detector `detector-far-out` cannot be used"), "{checked:?}");
    let output = judged(&project).unwrap();
    let names_both = output.stderr.contains("`far_out`") && output.stderr.contains("`detector-far-out`");
    assert!(output.code == Some(1) && names_both, "{output:?}");
}

/// For each role, the function in which a panic is placed, and the call that reaches the function.
const PANICS: [(&str, &str, &str, &str); 4] = [
    ("dialect", "fn profile(_: &CallContext) -> Result<Profile, PluginError> {", "describe-dialect", "{}"),
    (
        "detector",
        "    ) -> Result<Detection, PluginError> {",
        "detect",
        r#"{"kind": "loud", "history": {"series": [[1, 3]]}, "points": {"series": [[2]]}, "p": {"training-size": 2}}"#,
    ),
    ("check", "-> Result<Plan, PluginError> {", "make-plan", r#"{"columns": []}"#),
    (
        "governance",
        "-> Result<Verdict, PluginError> {",
        "on-query",
        r#"{"who": {"user-id": "", "tenant": "", "auth-method": "anonymous"}, "query": {"surface": "rest", "cubes": []}}"#,
    ),
];

#[test]
fn panic_of_a_release_component_is_reported_in_every_role() {
    if !has_guest_target() {
        return crate::skip("panics of release components", NO_GUEST_TARGET);
    }
    let scratch = Scratch::empty();
    // All roles share a target folder, so that the SDK is compiled once.
    let target = scratch.path().join("target");
    for (role, function, call, arguments) in PANICS {
        let folder = scratch.path().join(format!("{role}-loud"));
        plugin("new", &folder, &["--role", role]);
        let source = folder.join("src/lib.rs");
        let text = fs::read_to_string(&source).unwrap();
        let panicking =
            format!("{function}\n        assert!(std::hint::black_box(false), \"no luck for {{}}\", {role:?});");
        assert!(text.contains(function), "{role}");
        fs::write(&source, text.replacen(function, &panicking, 1)).unwrap();
        let mut build = Command::new(BINARY);
        build.args(["plugin", "build", "--release", "--json"]).arg(&folder).env("CARGO_NET_OFFLINE", "true");
        let built = build.env("CARGO_TARGET_DIR", &target).output().unwrap();
        assert!(built.status.success(), "{role}: {}", String::from_utf8_lossy(&built.stderr));
        let built: Value = serde_json::from_slice(&built.stdout).unwrap();
        let component = PathBuf::from(built["path"].as_str().unwrap());
        let imports = json_of(&plugin("inspect", &component, &["--json"]))["imports"].clone();
        let is_imported = |name: &str| imports.as_array().unwrap().iter().any(|import| import.as_str() == Some(name));
        assert!(is_imported("terrane:diagnostics/panic@0.1.0") && !is_imported("terrane:host/log@0.1.0"), "{imports}");
        let case = scratch.path().join(format!("{role}.json"));
        fs::write(&case, format!("{{\"call\": \"{call}\", \"args\": {arguments}}}")).unwrap();
        let output = plugin("run", &component, &["--input", case.to_str().unwrap()]);
        let fault = format!("trapped in `{call}`: panicked at src/lib.rs:");
        assert_eq!(output.code, Some(1), "{role}: {output:?}");
        assert!(output.stderr.contains(&fault) && output.stderr.contains(&format!("no luck for {role}")), "{output:?}");
    }
}

#[test]
fn plugin_is_tested_with_a_configuration() {
    let component = example("policy-region");
    let cases = path("examples/policy-region/plugin/cases");
    let test = |config: &str| plugin("test", &component, &["--config", config, "--cases", cases.to_str().unwrap()]);
    let tested = test(r#"{"see_all": ["finance"]}"#);
    assert_eq!(tested.code, Some(0), "{tested:?}");
    // The caller of this case is a clerk, who must see no rows. With this configuration, a clerk sees all rows.
    let tested = test(r#"{"see_all": ["clerk"]}"#);
    assert!(tested.code == Some(1) && tested.stdout.contains("FAILED case no-manager.json"), "{tested:?}");
    let wrong = test(r#"{"see_al": 1}"#);
    assert!(wrong.code == Some(1) && wrong.stdout.contains("/see_al: unknown key"), "{wrong:?}");
}

#[test]
fn errors_are_reported_with_place_and_hint() {
    let detector = example("detector-template");
    let scratch = Scratch::empty()
        .with("wrong.json", r#"{"call": "detect", "args": {"kind": 1, "kinds": [], "p": {"training-size": -1}}}"#)
        .with("no-call.json", r#"{"cal": "detect"}"#)
        .with("no-function.json", r#"{"call": "detekt"}"#)
        .with("core.wasm", "\0asm\u{1}\0\0\0")
        .with("text.wasm", "hello");
    let file = |name: &str| scratch.path().join(name);
    let run = |case: &str| plugin("run", &detector, &["--input", file(case).to_str().unwrap()]);
    for (output, words) in [
        (run("wrong.json"), &["/kind: expected a string", "/kinds: unknown parameter", "/p/training-size"][..]),
        (run("no-call.json"), &["no-call.json", "`cal`", "hint:"][..]),
        (run("no-function.json"), &["`detekt`", "detectors", "hint:"][..]),
        (run("nowhere.json"), &["nowhere.json", "hint:"][..]),
        (plugin("check", &file("core.wasm"), &[]), &["core WebAssembly module", "terrane plugin build"][..]),
        (plugin("check", &file("text.wasm"), &[]), &["text.wasm", "hint:"][..]),
        (plugin("inspect", scratch.path(), &[]), &["folder", "target/components"][..]),
        (plugin("build", scratch.path(), &[]), &["plugin.toml", "hint:"][..]),
        (
            plugin("build", &path("examples/detector-c"), &["--module", file("text.wasm").to_str().unwrap()]),
            &["is not a core WebAssembly module", "hint:"][..],
        ),
        (
            Program::new(BINARY, &["plugin", "keygen", "--out"], &file("none/k")).run().unwrap(),
            &["cannot create", "hint: Create the folder"],
        ),
    ] {
        assert_eq!(output.code, Some(1), "{output:?}");
        for word in words {
            assert!(output.stderr.contains(word), "{word} is not in\n{}", output.stderr);
        }
    }
    let reported = json_of(&plugin("check", &file("text.wasm"), &["--json"]));
    assert!(
        reported["ok"] == json!(false) && reported["problems"][0].as_str().unwrap().contains("text.wasm"),
        "{reported}"
    );
}

/// Returns a case for the probe, whose configuration contains the answer.
fn asked(config: &Value) -> String {
    let who = json!({"user-id": "ann", "tenant": "", "auth-method": "api_key"});
    let query = json!({"surface": "rest", "cubes": ["orders"]});
    let context = json!({"config-json": config.to_string()});
    json!({"call": "on-query", "args": {"ctx": context, "who": who, "query": query}}).to_string()
}

#[test]
fn response_that_violates_the_contract_fails() {
    let two_roots = json!({"filter": {"cube": "orders", "member": "region", "value": "EU"}, "two_roots": true});
    let scratch = Scratch::empty()
        .with("fine.json", &asked(&json!({"deny": "no_region"})))
        .with("code.json", &asked(&json!({"deny": "No Code!"})))
        .with("warning.json", &asked(&json!({"warning": "x".repeat(5_000)})))
        .with("roots.json", &asked(&two_roots));
    let component = example("policy-probe");
    let run = |case: &str, more: &[&str]| {
        let input = scratch.path().join(case);
        plugin("run", &component, &[&["--input", input.to_str().unwrap()], more].concat())
    };
    assert_eq!(run("fine.json", &[]).code, Some(0));
    for (case, words) in [("code.json", "No Code!"), ("warning.json", "5000 bytes"), ("roots.json", "2 roots")] {
        let output = run(case, &[]);
        assert!(output.code == Some(1) && output.stderr.contains(words), "{output:?}");
        let reported = json_of(&run(case, &["--json"]));
        assert!(
            reported["ok"] == json!(false) && reported["problems"][0].as_str().unwrap().contains(words),
            "{reported}"
        );
    }
    let output = plugin("test", &component, &["--cases", scratch.path().to_str().unwrap(), "--bless"]);
    assert!(output.code == Some(1) && output.stdout.contains("3 failed"), "{}", output.stdout);
    assert!(output.stdout.contains("a server refuses the answer"), "{}", output.stdout);
}

#[test]
fn unused_component_is_reported() {
    let scratch = Scratch::empty()
        .with("service_project.yml", "name: idle\nwarehouse: {type: duckdb}\n")
        .with("plugins/readme.txt", "not looked at");
    let put = |component: &str, name: &str| {
        fs::copy(example(component), scratch.path().join(format!("plugins/{name}.wasm"))).unwrap();
    };
    put("detector-template", "detector-template");
    put("check-template", "check-template");
    let check = || Program::new(BINARY, &["check"], scratch.path()).run().unwrap();
    let warnings = |output: &Output| format!("{}{}", output.stdout, output.stderr);
    assert!(!warnings(&check()).contains("plugin-idle"), "{:?}", check());
    put("detector-template", "my-detector");
    put("detector-template", "detector-mine");
    put("check-template", "my-check");
    put("hook-template", "my-hook");
    fs::write(scratch.path().join("plugins/text.wasm"), "hello").unwrap();
    let output = check();
    let reported = warnings(&output);
    assert!(output.code == Some(0) && reported.matches("[plugin-idle]").count() == 5, "{reported}");
    assert!(!reported.contains("plugin-refused"), "each is reported once: {reported}");
    for words in [
        "my-detector.wasm, a detector",
        "id: detector-template, role: detector, source: plugins/my-detector.wasm",
        "is not used: its id is `detector-template`, but the name of its file is `detector-mine`",
        "my-check.wasm, a check",
        "is a governance hook that is not listed",
        "text.wasm is not a plugin of any role",
    ] {
        assert!(reported.contains(words), "{words} is not in\n{reported}");
    }
}

#[test]
fn failing_case_is_reported_and_blessed_case_is_written() {
    let open = r#"{"call": "detect", "args": {"kind": "template", "history": {"series": [[1, 3, 1, 3]]}, "points": {"series": [[9]]}, "p": {"training-size": 4}}"#;
    let wrong = format!("{open}, \"expect\": {{\"ok\": {{\"anomalous\": [false]}}}}}}");
    let scratch = Scratch::empty().with("a.json", &format!("{open}}}")).with("b.json", &wrong);
    let cases = scratch.path().to_str().unwrap();
    let test = |more: &[&str]| plugin("test", &example("detector-template"), &[&["--cases", cases], more].concat());
    let output = test(&[]);
    assert!(output.code == Some(1) && output.stdout.contains("2 failed"), "{}", output.stdout);
    assert!(output.stdout.contains("/ok/anomalous/0: expected false, found true"), "{}", output.stdout);
    let output = test(&["--bless"]);
    assert!(output.stdout.contains("1 failed"), "what is expected is not written over: {}", output.stdout);
    let blessed: Value = serde_json::from_str(&fs::read_to_string(scratch.path().join("a.json")).unwrap()).unwrap();
    assert_eq!(blessed["expect"]["ok"]["anomalous"], json!([true]));
}

#[test]
fn call_is_measured_and_shown() {
    let (component, case) = (example("hook-template"), path("sdk/templates/governance/cases/own-regions.json"));
    let input = ["--input", case.to_str().unwrap(), "--json"];
    let first = json_of(&plugin("run", &component, &input));
    assert!(first["fuel"].as_u64().is_some_and(|fuel| (1..10_000_000).contains(&fuel)), "{first}");
    assert_eq!(first["answer"]["ok"]["decision"]["permit"]["row-filters"][0]["cube"], json!("orders"));
    let bench = json_of(&plugin("bench", &component, &[&input[..], &["--calls", "50"]].concat()));
    assert_eq!(bench["fuel"], first["fuel"], "fuel depends on nothing but the component and the input");
    assert!(bench["p50_us"].as_f64() <= bench["p99_us"].as_f64());
    let wit = plugin("inspect", &component, &["--wit"]).stdout;
    assert!(wit.contains("on-query: func(ctx: call-context, who: principal, query: query-facts)"), "{wit}");
}

/// The same detector in C and in Rust must give the same answers for the same series, bit for bit.
#[test]
fn detectors_in_c_and_rust_agree() {
    let series: Vec<Vec<f64>> =
        (0..40).map(|seed| (0..60).map(|at| 100.0 + f64::from((at * 37 + seed * 53) % 101) / 7.0).collect()).collect();
    let mut gaps = json!(series);
    gaps[3][7] = json!("NaN");
    gaps[5] = json!(vec![0.1; 10]);
    gaps[6] = json!(["NaN", "NaN"]);
    let points: Vec<Value> = (0..40).map(|seed| json!([100.0, 90.0 + f64::from(seed), "NaN", 1e300])).collect();
    let answer = |component: &Path, kind: &str| {
        let case = json!({"call": "detect", "args": {
            "kind": kind, "history": {"series": gaps}, "points": {"series": points}, "p": {"training-size": 60},
        }});
        let scratch = Scratch::empty().with("case.json", &case.to_string());
        let output =
            plugin("run", component, &["--json", "--input", scratch.path().join("case.json").to_str().unwrap()]);
        json_of(&output)["answer"].clone()
    };
    let rust = answer(&path(".prepared/components/detector-standard.wasm"), "z_score");
    assert_eq!(rust["ok"]["scores"].as_array().map(Vec::len), Some(160), "{rust}");
    assert_eq!(answer(&path("examples/detector-c/detector-c.wasm"), "z_score_c"), rust);
}

/// Checks that the component in the repository equals a build of the source beside it. Needs clang and wasm-ld.
#[test]
fn detector_in_c_is_built_from_its_source() {
    let is_there = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !is_there("clang") || !is_there("wasm-ld") {
        return crate::skip("the detector in C", "clang or wasm-ld is not installed (Debian: clang, lld)");
    }
    let scratch = Scratch::empty();
    let out = scratch.path().join("detector-c.wasm");
    let script = path("examples/detector-c/build.sh");
    let output = Command::new("sh").arg(script).arg(&out).env("TERRANE", BINARY).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // Another version of clang may choose other instructions. Its component must still pass the cases and vectors.
    let cases = path("examples/detector-c/cases");
    let output = plugin("test", &out, &["--cases", cases.to_str().unwrap()]);
    assert_eq!(output.code, Some(0), "{}", output.stdout);
}
