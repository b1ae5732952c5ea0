//! Tests clients of XMLA: a library from PyPI, and a Java library from Debian.
//!
//! In: a real server over a real project, which needs a key; tools that `cargo xtask setup` installs. Out: the results
//! of the clients. A test whose tool is missing reports itself as skipped, and fails in CI.

#![allow(clippy::unwrap_used, reason = "a test stops at its first fault")]

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use terrane_system_tests::path;

use crate::clients::{Service, run, tool};

#[test]
fn netas_xmla_from_pypi_reads_the_project_and_runs_dax() {
    let Some(python) = tool("xmla-client/bin/python") else {
        return crate::skip("netas-xmla-with-dax", "`cargo xtask setup` installs it with Python's pip");
    };
    let service = Service::start_private();
    let script = path("tests/system/xmla/client.py");
    let printed = run(Command::new(python).args(["-W", "ignore"]).arg(script).args(service.arguments()));
    let line = printed.lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("no JSON: {printed}"));
    let found: Value = serde_json::from_str(line).unwrap();
    assert_eq!(found["catalog"], "flights", "{found}");
    assert!(found["cubes"].as_array().unwrap().contains(&json!("airports")), "{found}");
    assert_eq!(found["dimension"], "Airlines", "{found}");
    assert_eq!(found["levels"], json!(["(All)", "name"]), "{found}");
    // The children are the 16 airlines. The members also include the member above them.
    assert_eq!((&found["members"], &found["children"]), (&json!(17), &json!(16)), "{found}");
    assert!(found["measures"].as_array().unwrap().contains(&json!("cancellation_rate")), "{found}");
    assert!(found["rows"][0] == json!(["United Air Lines Inc.", "58665"]), "{found}");
    assert!(found["refused"].as_str().unwrap().contains("unknown table or variable `nothing`"), "{found}");
}

/// The folder of Debian's Java libraries.
const JAVA_LIBRARIES: &str = "/usr/share/java";

#[test]
fn olap4j_from_debian_reads_the_project_and_is_refused_mdx() {
    let libraries = ["olap4j", "olap4j-xmla", "xercesImpl"].map(|name| format!("{JAVA_LIBRARIES}/{name}.jar"));
    let has_java = Command::new("javac").arg("-version").output().is_ok_and(|output| output.status.success());
    if !has_java || !libraries.iter().all(|library| Path::new(library).is_file()) {
        return crate::skip("olap4j", "install a Java development kit and Debian's package libolap4j-java");
    }
    let classes = tempfile::tempdir().unwrap();
    let class_path = libraries.join(":");
    let sources = ["FactoryJdbc4Plus.java", "Client.java"].map(|name| path("tests/system/xmla").join(name));
    run(Command::new("javac").args(["-nowarn", "-cp", &class_path, "-d"]).arg(classes.path()).args(sources));
    let service = Service::start_private();
    let class_path = format!("{}:{class_path}", classes.path().display());
    let printed = run(Command::new("java").args(["-cp", &class_path, "Client"]).args(service.arguments()));
    let line = printed.lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("no JSON: {printed}"));
    let found: Value = serde_json::from_str(line).unwrap();
    assert_eq!(found["catalogs"], json!(["flights"]), "{found}");
    assert!(found["cubes"].as_array().unwrap().contains(&json!("airports")), "{found}");
    assert_eq!(found["caption"], "Airlines", "{found}");
    assert_eq!(found["levels"], json!(["(All)", "name"]), "{found}");
    assert_eq!(found["members"].as_array().unwrap().len(), 16, "{found}");
    assert_eq!(found["children"], 16, "{found}");
    assert!(found["measures"].as_array().unwrap().contains(&json!("cancellation_rate")), "{found}");
    assert!(found["refused"].as_str().unwrap().contains("MDX"), "{found}");
}
