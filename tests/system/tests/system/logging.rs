//! Tests the log of the real program: each setting, and outputs to which the program cannot write.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::fs::{self, File};
use std::process::Stdio;

use serde_json::Value;
use terrane_system_tests::{Program, Scratch, request};

use crate::program;

const QUERY: &str = r#"{"measures": ["t.count"]}"#;

/// Returns the standard output of a server with these variables. Meanwhile the server answers a query, refuses another
/// query, and refuses an anonymous request for audit records.
fn logged(variables: &[(&str, &str)]) -> String {
    let project = Scratch::project();
    let mut program = program("serve", project.path());
    for (name, value) in variables {
        program = program.variable(name, value);
    }
    let out = project.path().join("out");
    let server = program.serve_unheard(File::create(&out).unwrap().into(), Stdio::inherit()).unwrap();
    for (method, path, body, status) in [
        ("POST", "/api/v1/query", Some(QUERY), 200),
        ("POST", "/api/v1/query", Some(r#"{"measures": ["t.cuont"]}"#), 400),
        ("GET", "/api/v1/audit", None, 403),
    ] {
        assert_eq!(request(server.address, method, path, body).unwrap().status, status, "{path}");
    }
    assert_eq!(server.terminate().unwrap(), Some(0));
    fs::read_to_string(out).unwrap()
}

fn records(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

fn levels(text: &str) -> Vec<String> {
    let mut levels: Vec<String> =
        records(text).iter().map(|record| record["level"].as_str().unwrap().to_owned()).collect();
    levels.sort();
    levels.dedup();
    levels
}

#[test]
fn level_is_the_minimum_that_is_logged() {
    for (level, written) in [
        ("INFO", &["error", "info", "warning"][..]),
        ("WARNING", &["error", "warning"]),
        ("ERROR", &["error"]),
        ("CRITICAL", &[]),
    ] {
        assert_eq!(levels(&logged(&[("SERVICE_LOG_LEVEL", level)])), written, "{level}");
    }
    let debug = logged(&[("SERVICE_LOG_LEVEL", "debug")]);
    assert!(records(&debug).len() >= records(&logged(&[])).len(), "{debug}");
}

#[test]
fn format_follows_the_setting() {
    for record in records(&logged(&[("SERVICE_LOG_FORMAT", "json")])) {
        assert!(record["timestamp"].is_string() && record["event"].is_string(), "{record}");
    }
    let console = logged(&[("SERVICE_LOG_FORMAT", "console")]);
    let line = console.lines().find(|line| line.contains(" query_executed ")).unwrap();
    assert!(line.contains(" INFO    ") && line.contains(" cube=t ") && !line.contains('{'), "{line}");
    let pretty = logged(&[("SERVICE_LOG_FORMAT", "pretty")]);
    assert!(pretty.contains("\u{1b}[32mINFO") && pretty.contains("\n    cube: t\n"), "{pretty}");
}

#[test]
fn timestamps_and_callers_follow_the_settings() {
    let plain = records(&logged(&[]));
    assert!(plain.iter().all(|record| record["timestamp"].is_string() && record.get("caller").is_none()));
    let other = records(&logged(&[("SERVICE_LOG_TIMESTAMPS", "false"), ("SERVICE_LOG_CALLER", "true")]));
    assert!(other.iter().all(|record| record.get("timestamp").is_none() && record["caller"].is_string()));
}

#[test]
fn requests_and_queries_follow_the_settings() {
    let all = logged(&[]);
    for event in ["http_request_started", "http_request_completed", "query_compiled", "query_executed", "access_denied"]
    {
        assert!(all.contains(&format!("\"event\":\"{event}\"")), "{event}");
    }
    let without = logged(&[("SERVICE_LOG_REQUESTS", "false")]);
    assert!(!without.contains("http_request") && without.contains("query_executed"), "{without}");
    let without = logged(&[("SERVICE_LOG_QUERIES", "false")]);
    assert!(!without.contains("query_compiled") && !without.contains("query_executed"), "{without}");
    assert!(without.contains("query_failed") && without.contains("http_request_completed"), "{without}");
}

#[test]
fn output_follows_the_setting() {
    let started = "\"event\":\"server_started\"";
    assert!(logged(&[("SERVICE_LOG_OUTPUT", "stdout")]).contains(started));

    let project = Scratch::project();
    let (out, err) = (project.path().join("out"), project.path().join("err"));
    let open = |path| Stdio::from(File::create(path).unwrap());
    let server = program("serve", project.path()).variable("SERVICE_LOG_OUTPUT", "stderr");
    assert_eq!(server.serve_unheard(open(&out), open(&err)).unwrap().terminate().unwrap(), Some(0));
    assert_eq!(fs::read_to_string(&out).unwrap(), "");
    assert!(fs::read_to_string(&err).unwrap().contains(started));

    for (variables, file) in [
        (&[("SERVICE_LOG_OUTPUT", "file")][..], ".terrane/terrane.log"),
        (&[("SERVICE_LOG_OUTPUT", "file"), ("SERVICE_LOG_FILE", "own.log")], "own.log"),
    ] {
        let server =
            variables.iter().fold(program("serve", project.path()), |p, (name, value)| p.variable(name, value));
        assert_eq!(server.serve_unheard(open(&out), Stdio::inherit()).unwrap().terminate().unwrap(), Some(0));
        assert_eq!(fs::read_to_string(&out).unwrap(), "");
        assert!(fs::read_to_string(project.path().join(file)).unwrap().contains(started), "{file}");
    }
}

#[test]
fn large_log_file_is_rotated_with_the_configured_count() {
    let project = Scratch::project();
    let server = program("serve", project.path())
        .variable("SERVICE_LOG_OUTPUT", "file")
        .variable("SERVICE_LOG_FILE", "own.log")
        .variable("SERVICE_LOG_MAX_SIZE_MB", "1")
        .variable("SERVICE_LOG_BACKUP_COUNT", "2")
        .serve_unheard(Stdio::null(), Stdio::inherit())
        .unwrap();
    let path = format!("/{}", "x".repeat(4_000));
    // Each request writes two lines of four kilobytes, together 4.8 MB.
    for _ in 0..600 {
        assert_eq!(request(server.address, "GET", &path, None).unwrap().status, 404);
    }
    assert_eq!(server.terminate().unwrap(), Some(0));
    let size = |name: &str| fs::metadata(project.path().join(name)).map(|file| file.len()).ok();
    for name in ["own.log", "own.log.1", "own.log.2"] {
        assert!(size(name).is_some_and(|size| size <= 1 << 20), "{name}: {:?}", size(name));
    }
    assert!(size("own.log.1") > Some(1_000_000) && size("own.log.3").is_none());
}

#[test]
fn unwritable_log_does_not_stop_the_server() {
    for (name, stdout) in [("a full disk", Some(File::create("/dev/full").unwrap())), ("a closed pipe", None)] {
        let project = Scratch::project();
        let server = program("serve", project.path()).variable("SERVICE_METRICS__ENABLED", "true");
        let server = server.variable("SERVICE_METRICS__PUBLIC", "true");
        let stdout = stdout.map_or(Stdio::piped(), Stdio::from);
        let mut server = server.serve_unheard(stdout, Stdio::inherit()).unwrap();
        drop(server.child.stdout.take());
        for _ in 0..50 {
            assert_eq!(request(server.address, "POST", "/api/v1/query", Some(QUERY)).unwrap().status, 200, "{name}");
        }
        let lost = (0..200).any(|_| {
            let metrics = request(server.address, "GET", "/metrics", None).unwrap();
            let lost = metrics.body.lines().find_map(|line| line.strip_prefix("service_log_lines_dropped_total "));
            lost.unwrap().parse::<u64>().unwrap() > 50
        });
        assert!(lost, "{name}: lost lines are counted");
        assert_eq!(server.terminate().unwrap(), Some(0), "{name}");
    }
}

#[test]
fn log_without_a_reader_does_not_delay_the_shutdown() {
    let project = Scratch::project();
    let server: Program = program("serve", project.path());
    let mut server = server.serve_unheard(Stdio::piped(), Stdio::inherit()).unwrap();
    // The pipe stays open and is never read. It holds 64 KiB.
    let unread = server.child.stdout.take();
    let path = format!("/{}", "x".repeat(4_000));
    for _ in 0..100 {
        assert_eq!(request(server.address, "GET", &path, None).unwrap().status, 404);
    }
    assert_eq!(server.terminate().unwrap(), Some(0));
    drop(unread);
}
