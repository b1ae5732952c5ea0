//! Tests the alerting rules of `runtime/deploy` with Prometheus' own tool.

use std::path::{Path, PathBuf};
use std::process::Command;

const FOLDERS: [&str; 3] = ["/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"];

fn promtool() -> Option<PathBuf> {
    FOLDERS.iter().map(|folder| Path::new(folder).join("promtool")).find(|path| path.is_file())
}

/// Runs the tool on a file of the repository, or reports that it is missing.
fn check(arguments: [&str; 2], file: &str) {
    let Some(promtool) = promtool() else {
        return crate::skip("the alerting rules", "`promtool` is missing; install the package prometheus");
    };
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let output = Command::new(promtool).args(arguments).arg(&file).output().expect("promtool runs");
    let [out, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{}:\n{out}{errors}", file.display());
}

#[test]
fn prometheus_reads_the_alerting_rules() {
    check(["check", "rules"], "../../runtime/deploy/alerts.yml");
}

#[test]
fn alerts_fire_under_their_conditions() {
    check(["test", "rules"], "prometheus/alerts_test.yml");
}
