//! Tests the interface against its own description: schemathesis reads `/openapi.json` and sends allowed and forbidden
//! requests to a real server over a real project.
//!
//! Two checks of schemathesis are disabled. One expects success for every request that a schema allows, but a schema
//! cannot list the members of a project or their valid combinations. The other one expects 401 for every call without
//! credentials, but this server has anonymous readers, who get 403 for a missing scope.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use terrane_system_tests::{FLIGHTS, Program, path, request_as};

use crate::BINARY;

const SECRET: &str = "0123456789abcdef0123456789abcdef";
const EXAMPLES: &str = "25";

#[test]
fn api_conforms_to_its_openapi_document() {
    let Some(schemathesis) = schemathesis() else {
        return crate::skip("schemathesis", "it is not installed; `cargo xtask test` installs it with Python's pip");
    };
    let state = tempfile::tempdir().unwrap();
    let state_url = format!("sqlite://{}", state.path().join("state.db").display());
    let program = |call: &[&str]| Program::new(BINARY, call, &path(FLIGHTS)).variable("SERVICE_STATE__URL", &state_url);
    let made = program(&["auth", "create-key"]).arguments(&["--name", "all", "--scopes", "read,write,admin", "--json"]);
    let made: Value = serde_json::from_str(&made.run().unwrap().stdout).unwrap();
    let key = made["key"].as_str().unwrap();
    let server = program(&["serve"]).arguments(&["--port", "0"]).variable("SERVICE_SECURITY__JWT_SECRET", SECRET);
    let server = server.variable("SERVICE_LOG_REQUESTS", "false").variable("SERVICE_LOG_QUERIES", "false");
    let server = server.serve().unwrap();

    let run = Command::new(schemathesis)
        .arg("run")
        .arg(format!("http://{}/openapi.json", server.address))
        .args(["--header", &format!("Authorization: Bearer {key}")])
        .args([
            "--exclude-checks",
            "positive_data_acceptance,missing_required_header",
            "--suppress-health-check",
            "all",
        ])
        .args(["--max-examples", EXAMPLES, "--seed", "2013", "--continue-on-failure", "--no-color"])
        .current_dir(state.path())
        .output()
        .unwrap();
    let report = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{report}\n{}", String::from_utf8_lossy(&run.stderr));
    // The number of tested operations is checked, because a description without operations would pass every check.
    let tested = report.lines().find_map(|line| line.trim().strip_prefix("Tested: ")?.trim().parse::<usize>().ok());
    let described = request_as(server.address, None, "GET", "/openapi.json", None).unwrap().json().unwrap();
    // The description contains all operations except its own route.
    let operations: usize =
        described["paths"].as_object().unwrap().values().map(|path| path.as_object().unwrap().len()).sum();
    assert_eq!(tested, Some(operations - 1), "{report}");

    let alive = request_as(server.address, None, "GET", "/health/live", None).unwrap();
    assert_eq!(alive.status, 200);
    assert_eq!(server.terminate().unwrap().0, Some(0));
}

/// Returns the path at which `cargo xtask test` installs schemathesis; `None` if it is missing.
fn schemathesis() -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?;
    Some(target.join("tools/schemathesis/bin/schemathesis")).filter(|program| program.is_file())
}
