//! Checks the Kubernetes manifests of `runtime/deploy/kubernetes` against the schemas of Kubernetes.
//!
//! In: the manifests, and the Python package `kubernetes-validate`, which contains the schemas. Out: a failure for each
//! manifest that does not match, or a note that the test is skipped. Not here: a Kubernetes cluster.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::context::Context;

/// Returns the tool that `cargo xtask setup` installs, or `None` after a note. In CI, a missing tool is a failure.
fn tool(context: &Context) -> Option<PathBuf> {
    let tool = context.target().unwrap().join("tools/kubernetes-validate/bin/kubernetes-validate");
    if tool.is_file() {
        return Some(tool);
    }
    let is_ci = env::var("CI").is_ok_and(|value| !matches!(value.as_str(), "" | "0" | "false"));
    assert!(!is_ci, "the manifests must be checked in CI: {} is missing", tool.display());
    eprintln!("skipped: the Kubernetes manifests: `cargo xtask setup` installs kubernetes-validate with Python's pip");
    None
}

fn manifests(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(manifests(&path));
        } else {
            files.push(path);
        }
    }
    files.sort();
    files
}

fn validate(tool: &Path, files: &[PathBuf]) -> (bool, String) {
    let Output { status, stdout, stderr } = Command::new(tool).arg("--strict").args(files).output().unwrap();
    (status.success(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
}

#[test]
fn manifests_match_the_schemas_of_kubernetes() {
    let context = Context::discover().unwrap();
    let Some(tool) = tool(&context) else { return };
    let files = manifests(&context.root.join("runtime/deploy/kubernetes"));
    let (is_valid, output) = validate(&tool, &files);
    assert!(is_valid, "{output}");
    assert_eq!(output.matches(" passed for resource ").count(), files.len(), "{output}");
}

#[test]
fn unknown_key_does_not_match() {
    let context = Context::discover().unwrap();
    let Some(tool) = tool(&context) else { return };
    let deployment = fs::read_to_string(context.root.join("runtime/deploy/kubernetes/deployment.yml")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("deployment.yml");
    fs::write(&file, deployment.replace("minReadySeconds", "minReadySecond")).unwrap();
    let (is_valid, output) = validate(&tool, &[file]);
    assert!(!is_valid && output.contains("minReadySecond"), "{output}");
}

/// Returns the number after a key of a manifest.
fn number(text: &str, key: &str) -> u64 {
    let value = text.lines().find_map(|line| line.trim().strip_prefix(key)).unwrap();
    value.trim_matches([':', ' ', '"', ',', '[', ']', '}']).parse().unwrap()
}

#[test]
fn requests_in_flight_have_their_time_before_the_process_is_killed() {
    let folder = Context::discover().unwrap().root.join("runtime/deploy/kubernetes");
    let [deployment, settings] =
        ["deployment.yml", "configmap.yml"].map(|file| fs::read_to_string(folder.join(file)).unwrap());
    let pause = number(&deployment, "exec: {command: [sleep");
    let drain = number(&settings, "SERVICE_SERVER__SHUTDOWN_SECONDS");
    assert!(number(&deployment, "terminationGracePeriodSeconds") >= pause + drain + 5);
}
