//! Case files: a small project in one YAML file to its diagnostics and, for good ones, its model.
//!
//! A new case is a new file under `tests/project/`; its snapshot is read before it is accepted.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

#[path = "project/summary.rs"]
mod summary;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use terrane_compiler::diagnostic::Diagnostic;
use terrane_compiler::model::{Model, build};
use terrane_compiler::project::{Inputs, SourceTree, read};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// `name: shop` when there is none.
    files: BTreeMap<String, String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default = "duckdb")]
    warehouse: String,
}

fn duckdb() -> String {
    "duckdb".to_owned()
}

fn load(files: BTreeMap<String, String>, env: BTreeMap<String, String>, warehouse: &str) -> (Model, Vec<Diagnostic>) {
    let mut tree = SourceTree::default();
    tree.files.insert("service_project.yml".into(), "name: shop\n".into());
    tree.files.extend(files.into_iter().map(|(path, text)| (path.into(), text.into())));
    let inputs = Inputs { warehouse: warehouse.into(), env };
    let (definitions, mut diagnostics) = read(&tree, &inputs);
    let (model, more) = build(&definitions);
    diagnostics.extend(more);
    (model, diagnostics)
}

fn cases(folder: &str) -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/project").join(folder);
    let mut cases: Vec<(String, PathBuf)> = fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yml"))
        .map(|path| (path.file_stem().unwrap().to_string_lossy().into_owned(), path))
        .collect();
    cases.sort();
    cases
}

/// Loads one case; the snapshot holds every diagnostic, then the model where `shows_model`.
fn check(folder: &str, name: &str, path: &Path, shows_model: bool) -> Vec<Diagnostic> {
    let case: Case = serde_saphyr::from_str(&fs::read_to_string(path).unwrap())
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (model, diagnostics) = load(case.files, case.env, &case.warehouse);
    let mut text: String = diagnostics.iter().map(|diagnostic| format!("{diagnostic}\n")).collect();
    if shows_model {
        text.push_str(&summary::of(&model));
    }
    insta::with_settings!({
        snapshot_path => format!("project/{folder}"),
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, { insta::assert_snapshot!(name, text) });
    diagnostics
}

#[test]
fn mistakes_name_place_cause_and_cure() {
    let mut count = 0;
    for (name, path) in cases("mistakes") {
        let diagnostics = check("mistakes", &name, &path, false);
        assert!(!diagnostics.is_empty(), "{name}: nothing was told");
        for diagnostic in &diagnostics {
            assert!(diagnostic.span.is_some(), "{name}: no place: {diagnostic}");
            assert!(diagnostic.hint.is_some(), "{name}: no hint: {diagnostic}");
        }
        count += diagnostics.len();
    }
    assert!(count >= 40, "{count} mistakes are too few");
}

#[test]
fn good_projects_become_models() {
    for (name, path) in cases("good") {
        let diagnostics = check("good", &name, &path, true);
        assert!(!diagnostics.iter().any(Diagnostic::is_error), "{name}: {}", diagnostics[0]);
    }
}

fn files_below(root: &Path, folder: &Path, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_below(root, &path, files);
        } else if path.extension().is_some_and(|extension| extension == "yml" || extension == "sql") {
            let name = path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
            files.insert(name, fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn the_example_project_loads_without_a_word() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/flights");
    let mut files = BTreeMap::new();
    files_below(&root, &root, &mut files);
    let (model, diagnostics) = load(files, BTreeMap::new(), "duckdb");
    let told: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
    assert!(told.is_empty(), "{}", told.join("\n"));
    assert_eq!(&*model.project, "flights");
    for name in ["flights", "airports", "origin_airport", "dest_airport", "weather"] {
        assert!(model.cube_named(name).is_some(), "{name}");
    }
}
