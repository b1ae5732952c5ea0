//! Tests the server with a busy real engine: timeouts, clients that disconnect, and a full queue. Also tests a
//! certificate.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use terrane_system_tests::{Answer, Scratch, Server, request};

use crate::program;

const LIMIT: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(50);

/// Two cubes. A query over `slow` takes minutes. `rows` has many rows, which are sent while they are read.
const CUBES: &str = "\
cubes:
  - name: slow
    sql: SELECT sin(a.range) * cos(b.range) AS x FROM range(1000000) a, range(1000000) b
    measures: [{name: sum, type: sum, sql: x}]
  - name: quick
    sql: SELECT 1 AS id
    measures: [{name: count, type: count}]
  - name: rows
    sql: SELECT range AS id, repeat('x', 500) AS text FROM range(200000)
    dimensions: [{name: id, type: number, sql: id, primary_key: true}, {name: text, type: string, sql: text}]
    measures: [{name: count, type: count}]
";
const SLOW: &str = r#"{"measures": ["slow.sum"]}"#;
const QUICK: &str = r#"{"measures": ["quick.count"]}"#;
const ROWS: &str = r#"{"dimensions": ["rows.id", "rows.text"], "ungrouped": true, "total": false, "limit": 200000}"#;

fn project(settings: &str) -> Scratch {
    let file = format!("name: busy\nsecurity: {{anonymous: {{scopes: [read]}}}}\n{settings}");
    Scratch::empty().with("service_project.yml", &file).with("cubes/busy.yml", CUBES)
}

fn serve(project: &Scratch) -> Server {
    program("serve", project.path()).arguments(&["--port", "0"]).serve().expect("the server starts")
}

fn ask(server: &Server, body: &str) -> Answer {
    request(server.address, "POST", "/api/v1/query", Some(body)).expect("an answer")
}

/// Sends a query and does not wait for its answer.
fn begin(address: SocketAddr, body: &str, accept: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(LIMIT)).expect("a time limit");
    let length = body.len();
    let head = format!(
        "POST /api/v1/query HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nAccept: {accept}\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(head.as_bytes()).expect("a server that reads");
    stream
}

/// Sends a query until it is not refused at once. It then has a permit, or waits for one.
fn hold(address: SocketAddr) -> TcpStream {
    let mut held = None;
    eventually("a query is taken", || {
        let mut stream = begin(address, SLOW, "application/json");
        stream.set_read_timeout(Some(PAUSE * 10)).expect("a time limit");
        let mut answer = [0; 64];
        match stream.read(&mut answer) {
            Ok(count) => assert!(answer[..count].starts_with(b"HTTP/1.1 503"), "{answer:?}"),
            Err(_) => held = Some(stream),
        }
        held.is_some()
    });
    held.expect("it is held")
}

fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let mut waited = Duration::ZERO;
    while !is_so() {
        assert!(waited < LIMIT, "not within {} s: {what}", LIMIT.as_secs());
        thread::sleep(PAUSE);
        waited += PAUSE;
    }
}

#[test]
fn long_query_ends_at_its_time_limit() {
    let project = project("query: {timeout: 1}\n");
    let server = serve(&project);
    #[allow(clippy::disallowed_methods, reason = "a test may look at the clock")]
    let started = Instant::now();
    let answer = ask(&server, SLOW);
    let waited = started.elapsed();
    eprintln!("answered after {waited:?}");
    let error = &answer.json().unwrap()["error"];
    assert_eq!((answer.status, error["code"].as_str()), (408, Some("QUERY_TIMEOUT")), "{}", answer.body);
    assert!(error["suggestion"].as_str().is_some_and(|text| text.contains("query.timeout")), "{}", answer.body);
    assert!((0.9..5.0).contains(&waited.as_secs_f64()), "answered after {waited:?}");
    assert_eq!(ask(&server, QUICK).status, 200, "others are answered");
    assert_eq!(server.terminate().unwrap().0, Some(0));
}

/// Returns a project whose server and engine run one query at a time. `queued` queries may wait.
fn project_of_one(queued: usize) -> Scratch {
    project(&format!(
        "query: {{timeout: 600, export_timeout: 600}}\nwarehouse: {{type: duckdb, max_connections: 1}}\n\
         server: {{max_concurrent_queries: 1, max_queued_queries: {queued}}}\n"
    ))
}

#[test]
fn disconnected_client_cancels_its_statement() {
    let project = project_of_one(0);
    let server = serve(&project);
    // The engine runs at most one abandoned statement in addition. A third query runs only if the first has ended.
    for _ in 0..4 {
        let waiting = hold(server.address);
        assert_eq!(ask(&server, QUICK).status, 503, "the turn is taken");
        drop(waiting);
    }
    eventually("the turn is free", || ask(&server, QUICK).status == 200);
    for _ in 0..3 {
        let mut reading = begin(server.address, ROWS, "text/csv");
        let mut first = vec![0; 10_000];
        reading.read_exact(&mut first).expect("the beginning of an answer");
        assert!(first.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&first));
        let refused = ask(&server, QUICK);
        assert_eq!(refused.status, 503, "{}", refused.body);
        assert!(refused.head.to_lowercase().contains("retry-after: "), "{}", refused.head);
        drop(reading);
        eventually("the turn of the stream is free", || ask(&server, QUICK).status == 200);
    }
    assert_eq!(server.terminate().unwrap().0, Some(0));
}

#[test]
fn disconnected_client_leaves_the_queue() {
    let project = project_of_one(1);
    let server = serve(&project);
    let running = hold(server.address);
    // Each query finds the only place in the queue free, because the previous one has left it.
    for _ in 0..3 {
        let waiting = hold(server.address);
        let refused = ask(&server, QUICK);
        assert_eq!(refused.status, 503, "{}", refused.body);
        drop(waiting);
    }
    drop(running);
    eventually("the queue is empty", || ask(&server, QUICK).status == 200);
}

#[test]
fn server_with_a_certificate_uses_https() {
    let project = project("server: {tls: {cert_path: a.crt, key_path: a.key}}\n");
    let mut openssl = Command::new("openssl");
    openssl.current_dir(project.path()).args(["req", "-x509", "-nodes", "-days", "2", "-newkey", "ec"]);
    openssl.args(["-pkeyopt", "ec_paramgen_curve:P-256", "-out", "a.crt", "-keyout", "a.key", "-subj", "/CN=a"]);
    openssl.args(["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"]);
    let has = |tool: &str| Command::new(tool).arg("version").output().is_ok();
    if !has("openssl") || !has("curl") {
        return crate::skip("TLS", "`openssl` or `curl` is not installed");
    }
    assert!(openssl.output().expect("openssl").status.success());
    let server = serve(&project);
    let curl = |arguments: &[&str], path: &str| {
        let mut curl = Command::new("curl");
        curl.current_dir(project.path()).args(["-sS", "-i", "--max-time", "20"]).args(arguments);
        let output = curl.arg(format!("https://{}{path}", server.address)).output().expect("curl");
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (is_fine, answer) = curl(&["--cacert", "a.crt"], "/api/v1/query/meta/cubes");
    assert!(is_fine && answer.starts_with("HTTP/1.1 200") && answer.contains("strict-transport-security"), "{answer}");
    assert!(!curl(&[], "/health/live").0, "a client that does not know the certificate fails");
    let plain = request(server.address, "GET", "/health/live", None).unwrap();
    assert!(plain.status == 400 && plain.body.contains("https://"), "{}", plain.body);
    assert_eq!(server.terminate().unwrap().0, Some(0));

    std::fs::remove_file(project.path().join("a.key")).unwrap();
    let refused = crate::run("serve", project.path(), &[]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("a.key") && refused.stderr.contains("hint:"), "{}", refused.stderr);
}

#[test]
fn invalid_network_settings_refuse_to_start() {
    for (settings, words) in [
        ("server: {cors: {origins: [\"https://a/\"]}}\n", "service_project.yml:3:27: error[wrong-value]: `https://a/`"),
        ("server: {allowed_hosts: [\"a:80\"]}\n", "not a host name"),
        ("server: {tls: {cert_path: a}}\n", "`server.tls.key_path` is not"),
        ("server: {tls: {cert_path: a, key_path: b}}\n", "cannot be read"),
        ("limits: {rate: {per_key: {burst: 1}}}\n", "lacks `requests_per_second`"),
        ("server: {header_timeout_seconds: 0}\n", "from 1 to 3600"),
    ] {
        let output = crate::run("serve", project(settings).path(), &[]);
        assert_eq!(output.code, Some(1), "{settings}");
        assert!(output.stderr.contains(words), "{settings}: {}", output.stderr);
    }
    let output = crate::run("check", project("server: {cors: {origins: [\"*\"]}}\n").path(), &[]);
    assert!(output.stdout.contains("warning[every-origin]"), "{}", output.stdout);
}
