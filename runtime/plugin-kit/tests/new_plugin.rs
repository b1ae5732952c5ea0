//! Tests a new plugin of each role, from an empty folder outside the workspace to a release component that panics.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::fs;
use std::path::Path;
use std::process::Command;

use terrane_app::ports::plugins::{PluginFault, PluginRole};
use terrane_plugin_host::test_bench::CallError;
use terrane_plugin_kit::KitError;
use terrane_plugin_kit::build::{BuildRequest, CoreModule, Profile, build};
use terrane_plugin_kit::create::{NewPlugin, create};
use terrane_plugin_kit::inspect::inspect;
use terrane_plugin_kit::run::run;
use terrane_plugin_kit::test::{MissingExpectations, TestRequest, test};

/// For each role: the signature of the function that panics, the name of its call, and the arguments of a case.
const PANICS: [(PluginRole, &str, &str, &str); 4] = [
    (PluginRole::Dialect, "-> Result<Profile, PluginError> {", "describe-dialect", "{}"),
    (
        PluginRole::Detector,
        "    ) -> Result<Detection, PluginError> {",
        "detect",
        r#"{"kind": "loud", "history": {"series": [[1, 3]]}, "points": {"series": [[2]]}, "p": {"training-size": 2}}"#,
    ),
    (PluginRole::Check, "-> Result<Plan, PluginError> {", "make-plan", r#"{"columns": []}"#),
    (
        PluginRole::Governance,
        "-> Result<Verdict, PluginError> {",
        "on-query",
        r#"{"who": {"user-id": "", "tenant": "", "auth-method": "anonymous"}, "query": {"surface": "rest", "cubes": []}}"#,
    ),
];

/// Reports that the test is skipped. In CI, this is a failure.
fn skip(reason: &str) {
    #[allow(clippy::disallowed_methods, reason = "tests are configured by their environment")]
    let variable = std::env::var("CI").ok();
    assert!(!is_ci(variable.as_deref()), "new plugins must be built in CI: {reason}");
    eprintln!("skipped: new plugins: {reason}");
}

/// Returns whether the value of the variable `CI` means that the tests run in CI.
fn is_ci(variable: Option<&str>) -> bool {
    variable.is_some_and(|value| !matches!(value, "" | "0" | "false"))
}

/// Returns whether cargo can build core modules in a folder outside the workspace.
fn has_guest_target(folder: &Path) -> bool {
    let arguments = ["--print", "target-libdir", "--target", "wasm32-unknown-unknown"];
    let output = Command::new("rustc").args(arguments).current_dir(folder).output();
    let library = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    library.is_ok_and(|library| Path::new(&library).is_dir())
}

fn request(folder: &Path, profile: Profile) -> BuildRequest {
    BuildRequest { folder: folder.to_owned(), module: CoreModule::Crate(profile), out: None }
}

#[test]
fn ci_is_enabled_by_any_value_except_false() {
    assert_eq!(["true", "1"].map(|value| is_ci(Some(value))), [true; 2]);
    assert_eq!([None, Some(""), Some("0"), Some("false")].map(is_ci), [false; 4]);
}

#[test]
fn new_plugin_builds_passes_its_tests_and_reports_panics() {
    let scratch = tempfile::tempdir().unwrap();
    if !has_guest_target(scratch.path()) {
        return skip("the toolchain has no wasm32-unknown-unknown");
    }
    // All crates share one target folder, so that the SDK is compiled once per profile.
    fs::create_dir(scratch.path().join(".cargo")).unwrap();
    fs::write(scratch.path().join(".cargo/config.toml"), "[build]\ntarget-dir = \"target\"\n[net]\noffline = true\n")
        .unwrap();
    for (role, function, call, arguments) in PANICS {
        let folder = scratch.path().join(format!("{role}-loud"));
        create(&NewPlugin { folder: folder.clone(), role, name: None, sdk: None }).unwrap();
        let outcomes = test(&TestRequest {
            path: folder.clone(),
            cases: None,
            config_json: String::new(),
            missing_expectations: MissingExpectations::Fail,
        });
        let outcomes = outcomes.unwrap();
        let failed: Vec<_> = outcomes.iter().filter(|outcome| !outcome.problems.is_empty()).collect();
        assert!(failed.is_empty() && outcomes.len() > 1, "{role}: {failed:?}");

        let source = folder.join("src/lib.rs");
        let text = fs::read_to_string(&source).unwrap();
        let body =
            format!("{function}\n        assert!(std::hint::black_box(false), \"no luck for {{}}\", \"{role}\");");
        assert!(text.contains(function), "{role}");
        fs::write(&source, text.replacen(function, &body, 1)).unwrap();
        let built = build(&request(&folder, Profile::Release)).unwrap();
        let imports = inspect(&built.path).unwrap().imports;
        assert!(imports.iter().any(|import| import == "terrane:diagnostics/panic@0.1.0"), "{role}: {imports:?}");
        assert!(!imports.iter().any(|import| import.starts_with("terrane:host/")), "{role}: {imports:?}");
        let case = scratch.path().join("case.json");
        fs::write(&case, format!("{{\"call\": \"{call}\", \"args\": {arguments}}}")).unwrap();
        let Err(KitError::Call { error: CallError::Fault { fault, .. }, .. }) = run(&built.path, &case) else {
            panic!("{role}: the call must fail")
        };
        let PluginFault::Trapped { message, .. } = &fault else { panic!("{role}: {fault}") };
        // The assertion is in the line below the function.
        let line = text[..text.find(function).unwrap() + function.len()].lines().count() + 1;
        assert!(message.contains(&format!("src/lib.rs:{line}:")), "{role}: {message}");
        assert!(message.ends_with(&format!("no luck for {role}")), "{role}: {message}");
    }
}
