//! Tests the log: the events of `runtime/docs/reference/operations.md` with their fields, one correlation id for each
//! request, and that callers cannot forge log records.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::path::Path;
use std::sync::Arc;

use serde_json::Value as Json;
use terrane_conformance_tests::case::{Caller, TestRequest, World, ask};
use terrane_conformance_tests::fakes::{Column, FakeBehavior, FakeClock};
use terrane_server::telemetry::{LogFile, LogFormat, LogLevel, LogOutput, LogSettings, TelemetryError, subscriber};

fn settings(path: &Path) -> LogSettings {
    let file = LogFile { path: path.to_owned(), max_size_bytes: 1 << 20, backup_count: 1 };
    LogSettings { output: LogOutput::File(file), ..LogSettings::default() }
}

/// Returns the log that the server writes while `work` runs.
fn logged(change: impl FnOnce(&mut LogSettings), work: impl FnOnce()) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let mut settings = settings(&path);
    change(&mut settings);
    let (subscriber, guard) = subscriber(&settings, Arc::new(FakeClock::default())).unwrap();
    tracing::subscriber::with_default(subscriber, work);
    drop(guard);
    std::fs::read_to_string(path).unwrap()
}

fn records(text: &str) -> Vec<Json> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

fn post(json: Json) -> TestRequest {
    TestRequest {
        method: "POST".to_owned(),
        path: "/api/v1/query".to_owned(),
        headers: [("x-correlation-id", "abc"), ("user-agent", "test\"1")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        json: Some(json),
        text: None,
        size: None,
        stalls: false,
        is_surplus: false,
    }
}

fn request(world: World, asked: TestRequest) -> impl FnOnce() {
    move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async { ask(&world.edge(), &asked).await });
    }
}

fn find<'r>(records: &'r [Json], event: &str) -> &'r Json {
    records.iter().find(|record| record["event"] == event).unwrap_or_else(|| panic!("no {event} in {records:?}"))
}

fn count() -> Json {
    serde_json::json!({ "measures": ["orders.count"] })
}

fn one_row() -> World {
    World { columns: vec![Column { ty: "integer".to_owned(), values: vec![1.into()] }], ..World::default() }
}

#[test]
fn events_of_a_query_share_one_id() {
    let text = logged(|_| {}, request(one_row(), post(count())));
    let records = records(&text);
    let events: Vec<&str> = records.iter().filter_map(|record| record["event"].as_str()).collect();
    assert_eq!(events, ["http_request_started", "query_compiled", "query_executed", "http_request_completed"]);
    for record in &records {
        assert_eq!(record["correlation_id"], "abc", "{record}");
        assert_eq!(record["level"], "info", "{record}");
        assert_eq!(record["timestamp"], "2024-02-14T12:00:00.000000Z", "{record}");
    }
    let holds = |index: usize, fields: &[&str]| {
        let record = records[index].as_object().unwrap();
        for field in fields {
            assert!(record.contains_key(*field), "{} lacks {field}: {record:?}", events[index]);
        }
    };
    holds(0, &["method", "path", "client_ip", "user_agent"]);
    holds(1, &["cube", "sql_hash", "compile_duration_ms"]);
    let executed = [
        "warehouse",
        "warehouse_duration_ms",
        "total_duration_ms",
        "rows_returned",
        "bytes_scanned",
        "cache_hit",
        "preagg_used",
    ];
    holds(2, &executed);
    holds(3, &["method", "path", "status_code", "duration_ms", "response_size_bytes"]);
    assert_eq!(records[0]["path"], "/api/v1/query");
    assert_eq!(records[0]["user_agent"], "test\"1");
    assert_eq!(records[3]["status_code"], 200);
}

#[test]
fn streamed_query_is_logged_when_it_ends() {
    let column = |value: Json| Column { ty: "integer".to_owned(), values: vec![value] };
    let world = || World { columns: vec![column(1.into()), column(2.into()), column(9.into())], ..World::default() };
    let body = serde_json::json!({ "measures": ["orders.count"], "dimensions": ["orders.id"], "limit": 20_000 });
    let read = records(&logged(|_| {}, request(world(), post(body.clone()))));
    let executed = find(&read, "query_executed");
    assert_eq!((executed["rows_returned"].as_u64(), executed["correlation_id"].as_str()), (Some(1), Some("abc")));
    let completed = read.last().unwrap();
    assert_eq!(
        (completed["event"].as_str(), completed["status_code"].as_u64()),
        (Some("http_request_completed"), Some(200))
    );
    assert!(completed["response_size_bytes"].as_u64() > Some(100), "the size of what was sent: {completed}");

    let leave = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            drop(world().edge().call(terrane_server::Connection::default(), post(body).request()).await);
        });
    };
    let left = records(&logged(|_| {}, leave));
    assert_eq!(find(&left, "query_abandoned")["correlation_id"], "abc");
    assert_eq!(left.last().unwrap()["event"], "http_request_completed");
}

#[test]
fn first_fields_are_always_the_same() {
    let text = logged(|_| {}, request(one_row(), post(count())));
    for line in text.lines() {
        assert!(
            line.starts_with("{\"timestamp\":\"2024-02-14T12:00:00.000000Z\",\"level\":\"info\",\"event\":\""),
            "{line}"
        );
        let record: Json = serde_json::from_str(line).unwrap();
        let names: Vec<&String> = record.as_object().unwrap().keys().collect();
        assert_eq!(names[..4], ["timestamp", "level", "event", "correlation_id"], "{line}");
    }
}

#[test]
fn warehouse_error_is_logged_with_its_message() {
    let world = World { warehouse: FakeBehavior::Refuses, ..World::default() };
    let records = records(&logged(|_| {}, request(world, post(count()))));
    let failed = records.iter().find(|record| record["event"] == "query_failed").unwrap();
    assert_eq!(failed["level"], "error");
    assert_eq!(failed["error_type"], "warehouse");
    assert_eq!(failed["correlation_id"], "abc");
    assert_eq!((&failed["cube"], &failed["retry_count"]), (&"orders".into(), &0.into()));
    assert_eq!(failed["exception"], "WarehouseError::Refused");
    assert!(failed["error_message"].as_str().unwrap().contains("secret.parquet"));
    assert_eq!(records.last().unwrap()["status_code"], 502);
}

#[test]
fn query_that_cannot_be_read_is_logged_as_failed() {
    for body in ["{\"metrics\": [", "[]", "{\"metrics\": [1]}", "{\"unknown\": 1}"] {
        let asked = TestRequest { json: None, text: Some(body.to_owned()), ..post(count()) };
        let records = records(&logged(|_| {}, request(one_row(), asked)));
        let failed = find(&records, "query_failed");
        assert_eq!((&failed["cube"], &failed["error_type"]), (&"unknown".into(), &"query".into()), "{body}");
        assert_eq!((&failed["correlation_id"], &failed["level"]), (&"abc".into(), &"error".into()), "{body}");
        assert!(failed["error_message"].as_str().is_some_and(|message| !message.is_empty()), "{body}");
        assert_eq!(records.iter().filter(|record| record["event"] == "query_failed").count(), 1, "{body}");
    }
}

#[test]
fn denial_is_logged_with_caller_and_resource() {
    let world = World { caller: Caller::Powerless, ..World::default() };
    let records = records(&logged(|_| {}, request(world, post(count()))));
    let denied = records.iter().find(|record| record["event"] == "access_denied").unwrap();
    assert_eq!(denied["level"], "warning");
    assert_eq!(denied["resource"], "/api/v1/query");
    assert_eq!(denied["action"], "POST");
    assert_eq!(denied["required_permission"], "read");
    assert!(denied["user_id"].is_string() && denied["reason"].is_string(), "{denied}");
}

#[test]
fn query_string_is_not_logged() {
    let asked = TestRequest { path: "/api/v1/query?note=hush".to_owned(), ..post(count()) };
    let text = logged(|_| {}, request(one_row(), asked));
    assert_eq!(find(&records(&text), "http_request_completed")["status_code"], 400);
    assert!(!text.contains("hush"), "{text}");
}

#[test]
fn disconnected_client_is_logged() {
    let world = World { warehouse: FakeBehavior::Hangs, ..World::default() };
    let work = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (edge, asked) = (world.edge(), post(count()));
            futures_util::future::select(Box::pin(ask(&edge, &asked)), Box::pin(tokio::task::yield_now())).await;
        });
    };
    let records = records(&logged(|_| {}, work));
    let last = records.last().unwrap();
    assert_eq!((last["event"].as_str(), last["status_code"].as_u64()), (Some("http_request_completed"), Some(499)));
    assert_eq!(last["correlation_id"], "abc");
}

#[test]
fn log_lines_cannot_be_forged() {
    let forge = || {
        tracing::info!(target: "terrane::test", event = "x", path = "a\n{\"level\":\"error\"}\r\u{1b}[31m");
        tracing::info!(target: "terrane::test", "said {}", "b\nc");
    };
    let records = records(&logged(|_| {}, forge));
    assert_eq!(records.len(), 2);
    assert_eq!(records[0]["path"], "a\n{\"level\":\"error\"}\r\u{1b}[31m");
    assert_eq!(records[1]["event"], "said b\nc");

    for format in [LogFormat::Console, LogFormat::Pretty] {
        let text = logged(|settings| settings.format = format, forge);
        assert!(!text.contains("\n{") && !text.contains("b\nc") && !text.contains("\r"), "{text}");
        assert!(text.contains("b\\nc"), "{text}");
    }
}

#[test]
fn secrets_are_masked_by_name() {
    let log = || {
        tracing::info!(target: "terrane::test", event = "x", password = "hush", api_key = "hush", token = 7, secret = ?Some("hush"));
    };
    let text = logged(|_| {}, log);
    assert!(!text.contains("hush") && !text.contains('7'), "{text}");
    assert_eq!(text.matches("***").count(), 4, "{text}");
}

const KEY: &str = "trn_0123456789abcdef_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopq";
const JWT: &str = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl";

/// Returns whether the string contains a secret, or a part of one that is usable.
fn holds_secret(text: &str) -> bool {
    ["ABCDEFGH", "eyJzdWIi", "c2lnbmF0", "pa55word"].iter().any(|secret| text.contains(secret))
}

#[test]
fn secrets_of_requests_are_not_logged() {
    let paths = [
        format!("/{KEY}"),
        format!("/x?api_key={KEY}"),
        format!("/api/v1/query/meta/cubes/{JWT}"),
        "/http://u:pa55word@h/x".to_owned(),
        "/x;password=pa55word".to_owned(),
    ];
    let carried = [KEY.to_owned(), format!("Bearer {JWT}"), format!("curl/{JWT}"), "http://u:pa55word@h".to_owned()];
    for (path, carried) in paths.iter().flat_map(|path| carried.iter().map(move |carried| (path, carried))) {
        let headers = ["x-correlation-id", "user-agent", "authorization"];
        let headers = headers.map(|name| (name.to_owned(), carried.clone())).into();
        let asked = TestRequest { method: "GET".to_owned(), path: path.clone(), headers, json: None, ..post(count()) };
        for format in [LogFormat::Json, LogFormat::Console, LogFormat::Pretty] {
            let text = logged(|settings| settings.format = format, request(one_row(), asked.clone()));
            assert!(!holds_secret(&text), "{path} {carried}: {text}");
            assert!(text.contains("http_request_completed"), "{text}");
        }
    }
}

#[test]
fn secrets_are_masked_in_every_field_by_their_form() {
    let log = || {
        tracing::info!(target: "terrane::test", event = "x", note = KEY, other = %format_args!("Bearer {JWT}"), list = ?[JWT]);
        tracing::error!(target: "terrane::test", error_message = "cannot reach postgres://u:pa55word@h/d", path = format!("/q?api_key={KEY}"));
        tracing::warn!(target: "terrane::test", "said {KEY}");
        tracing::info!(target: "terrane::test", event = "x", client_secret = "pa55word", jwt_secret = 5, refresh_token = "pa55word");
    };
    for format in [LogFormat::Json, LogFormat::Console, LogFormat::Pretty] {
        let text = logged(|settings| settings.format = format, log);
        assert!(!holds_secret(&text) && text.contains("postgres://u:***@h/d"), "{text}");
        assert!(text.contains("trn_0123456789abcdef_***"), "the key's id may be seen: {text}");
    }
}

#[test]
fn long_text_is_truncated_without_partial_secrets() {
    for before in [4_050, 4_090, 4_096, 8_150, 8_190] {
        let text = format!("{}{KEY} {JWT}", "x".repeat(before - 1) + " ");
        let written = logged(|_| {}, || tracing::info!(target: "terrane::test", event = "x", text));
        assert!(!holds_secret(&written) && written.len() < 4_400, "{before}: {}", written.len());
    }
}

#[test]
fn settings_select_the_logged_events() {
    let levels = || {
        tracing::debug!(target: "terrane::test", event = "d");
        tracing::info!(target: "terrane::test", event = "i");
        tracing::warn!(target: "terrane::test", event = "w");
        tracing::error!(target: "terrane::test", event = "e");
        tracing::info!(target: "elsewhere", event = "foreign");
        tracing::warn!(target: "elsewhere", event = "foreign_warning");
    };
    let events = |level| {
        let text = logged(|settings| settings.level = level, levels);
        records(&text).iter().map(|record| record["event"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(events(LogLevel::Debug), "d i w e foreign_warning");
    assert_eq!(events(LogLevel::Info), "i w e foreign_warning");
    assert_eq!(events(LogLevel::Warning), "w e foreign_warning");
    assert_eq!(events(LogLevel::Error), "e");
    assert_eq!(events(LogLevel::Critical), "");

    let quiet =
        logged(|settings| (settings.requests, settings.queries) = (false, false), request(one_row(), post(count())));
    assert_eq!(quiet, "");
    let bare = logged(|settings| (settings.timestamps, settings.caller) = (false, true), levels);
    let first = &records(&bare)[0];
    assert!(first["timestamp"].is_null() && first["caller"].as_str().unwrap().contains("log.rs:"), "{first}");
}

#[test]
fn large_files_are_rotated() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    for round in 0..4 {
        let mut settings = settings(&path);
        if let LogOutput::File(file) = &mut settings.output {
            file.max_size_bytes = 100;
        }
        let (subscriber, guard) = subscriber(&settings, Arc::new(FakeClock::default())).unwrap();
        tracing::subscriber::with_default(subscriber, || tracing::info!(target: "terrane::test", event = "x", round));
        drop(guard);
    }
    let read = |name: &str| records(&std::fs::read_to_string(folder.path().join(name)).unwrap());
    assert_eq!(read("log")[0]["round"], 3);
    assert_eq!(read("log.1")[0]["round"], 2);
    assert!(!folder.path().join("log.2").exists());
}

#[test]
fn burst_is_split_between_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let mut settings = settings(&path);
    if let LogOutput::File(file) = &mut settings.output {
        (file.max_size_bytes, file.backup_count) = (500, 100);
    }
    let (subscriber, guard) = subscriber(&settings, Arc::new(FakeClock::default())).unwrap();
    tracing::subscriber::with_default(subscriber, || {
        for number in 0..100 {
            tracing::info!(target: "terrane::test", event = "x", number);
        }
    });
    drop(guard);
    let mut numbers = Vec::new();
    for entry in folder.path().read_dir().unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        assert!(text.len() <= 500, "{} bytes", text.len());
        numbers.extend(records(&text).iter().map(|record| record["number"].as_u64().unwrap()));
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (0..100).collect::<Vec<_>>());
}

#[test]
fn file_that_cannot_be_opened_is_reported() {
    let error = subscriber(&settings(Path::new("/nowhere/log")), Arc::new(FakeClock::default())).err().unwrap();
    assert!(matches!(&error, TelemetryError::File { path, .. } if path == Path::new("/nowhere/log")), "{error}");
}

/// Adds the files of Rust code below a folder to `found`.
fn sources(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Checks that a string has the form of an event's name. SQL of the audit log contains `event = ` before other strings.
fn is_event(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

#[test]
fn operations_documents_each_log_event() {
    let runtime = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../runtime");
    let mut files = Vec::new();
    for member in runtime.read_dir().unwrap() {
        let folder = member.unwrap().path().join("src");
        if folder.is_dir() {
            sources(&folder, &mut files);
        }
    }
    let code: String = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    let emitted: std::collections::BTreeSet<&str> = code
        .split("event = \"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .filter(|event| is_event(event))
        .collect();
    assert!(emitted.len() > 50, "{emitted:?}");
    let reference = std::fs::read_to_string(runtime.join("docs/reference/operations.md")).unwrap();
    let (_, log) = reference.split_once("## Log").unwrap();
    let (log, _) = log.split_once("## Metrics").unwrap();
    let rows = log.lines().filter(|line| line.starts_with("| `")).filter_map(|line| line.split('|').nth(1));
    let documented: std::collections::BTreeSet<&str> =
        rows.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    let missing: Vec<_> = emitted.difference(&documented).collect();
    assert!(missing.is_empty(), "operations.md does not list {missing:?}");
    let gone: Vec<_> = documented.iter().filter(|event| !code.contains(&format!("\"{event}\""))).collect();
    assert!(gone.is_empty(), "operations.md lists {gone:?}, which nothing logs");
}
