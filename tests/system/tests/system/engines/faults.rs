//! Tests the responses to clients while a database server is slow, stops, returns, or refuses to write.

use std::io::Write as _;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use terrane_system_tests::engines::{Engine, Kind, small_tables};
use terrane_system_tests::{Answer, Scratch, Server, path, request};

use super::{PROJECT, start};
use crate::program;

const LIMIT: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(100);

/// Cubes over the views and the function that [`faulty`] creates in a database server.
const FAULTY: &str = "\
cubes:
  - name: faulty
    sql_table: faulty
    measures:
      - {name: count, type: count}
      - {name: slow, type: max, sql: pause}
  - name: sleepers
    sql_table: sleepers
    measures:
      - {name: asleep, type: max, sql: asleep}
  - name: writing
    sql: SELECT 1 AS id
    measures:
      - {name: touched, type: max, sql: touch()}
";

/// Returns statements that create a view that sleeps, a view that counts sleeping statements, and a function that
/// writes.
fn faulty(kind: Kind) -> Vec<String> {
    let statements: &[&str] = match kind {
        kind if kind.is_postgres() => &[
            "CREATE OR REPLACE VIEW faulty AS SELECT (SELECT length(pg_sleep(30)::text)) AS pause",
            "CREATE OR REPLACE VIEW sleepers AS \
             SELECT count(*) AS asleep FROM pg_stat_activity WHERE wait_event = 'PgSleep'",
            "CREATE TABLE IF NOT EXISTS touched (id BIGINT)",
            "CREATE OR REPLACE FUNCTION touch() RETURNS BIGINT LANGUAGE sql AS \
             'INSERT INTO touched VALUES (1) RETURNING id'",
        ],
        _ => &[
            "CREATE OR REPLACE VIEW faulty AS SELECT SLEEP(30) AS pause",
            "CREATE OR REPLACE VIEW sleepers AS \
             SELECT count(*) AS asleep FROM information_schema.processlist WHERE state = 'User sleep'",
            "CREATE TABLE IF NOT EXISTS touched (id BIGINT)",
            "CREATE OR REPLACE FUNCTION touch() RETURNS BIGINT MODIFIES SQL DATA \
             BEGIN INSERT INTO touched VALUES (1); RETURN 1; END",
        ],
    };
    statements.iter().map(|statement| (*statement).to_owned()).collect()
}

/// Serves the suite's project with faulty members, with a time limit of one second for each query.
fn serve(engine: &Engine) -> (Scratch, Server) {
    serve_with(engine, "1")
}

fn serve_with(engine: &Engine, timeout_seconds: &str) -> (Scratch, Server) {
    let read = |name: &str| std::fs::read_to_string(path(PROJECT).join(name)).expect("a file of the project");
    let project = Scratch::empty()
        .with("service_project.yml", &read("service_project.yml"))
        .with("cubes/shop.yml", &read("cubes/shop.yml"))
        .with("cubes/faulty.yml", FAULTY);
    let mut serve = program("serve", project.path())
        .arguments(&["--port", "0"])
        .variable("SERVICE_QUERY__TIMEOUT", timeout_seconds);
    serve = serve.variable("SERVICE_METRICS__ENABLED", "true").variable("SERVICE_METRICS__PUBLIC", "true");
    for (name, value) in engine.variables(&small_tables(), &faulty(engine.kind)) {
        serve = serve.variable(&name, &value);
    }
    let server = serve.serve().expect("the server starts");
    (project, server)
}

fn ask(server: &Server, measure: &str) -> Answer {
    let body = json!({"measures": [measure], "cache": false}).to_string();
    request(server.address, "POST", "/api/v1/query", Some(&body)).expect("an answer")
}

fn get(server: &Server, path: &str) -> u16 {
    request(server.address, "GET", path, None).expect("an answer").status
}

fn connection_errors(server: &Server, kind: &str) -> f64 {
    let metrics = request(server.address, "GET", "/metrics", None).expect("an answer").body;
    let series = format!("service_warehouse_connection_errors_total{{error_type=\"{kind}\",");
    let line = metrics.lines().find(|line| line.starts_with(&series)).expect("the metric");
    line.rsplit(' ').next().and_then(|value| value.parse().ok()).expect("a number")
}

/// Waits until `is_so` returns true.
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let mut waited = Duration::ZERO;
    while !is_so() {
        assert!(waited < LIMIT, "not within {} s: {what}", LIMIT.as_secs());
        thread::sleep(PAUSE);
        waited += PAUSE;
    }
}

fn check_slow_statement(kind: Kind) {
    let Some(engine) = start(kind) else { return };
    let (_project, server) = serve(&engine);
    #[allow(clippy::disallowed_methods, reason = "a test may look at the clock")]
    let started = Instant::now();
    let answer = ask(&server, "faulty.slow");
    let waited = started.elapsed();
    assert_eq!(answer.status, 408, "{}", answer.body);
    assert!((0.9..4.0).contains(&waited.as_secs_f64()), "answered after {waited:?}");
    eventually("the server runs nothing any more", || {
        let answer = ask(&server, "sleepers.asleep");
        answer.status == 200 && answer.json().expect("JSON")["data"][0]["sleepers.asleep"] == json!(0)
    });
    assert_eq!(get(&server, "/health/ready"), 200);
}

fn check_disconnected_client(kind: Kind) {
    let Some(engine) = start(kind) else { return };
    // The time limit is so high that only the client's disconnection can end the statement.
    let (_project, server) = serve_with(&engine, "600");
    let sleepers = || ask(&server, "sleepers.asleep").json().expect("JSON")["data"][0]["sleepers.asleep"].clone();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(server.address).expect("a connection");
        let body = json!({"measures": ["faulty.slow"]}).to_string();
        let head = "POST /api/v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json";
        write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).expect("a server that reads");
        eventually("the server runs it", || sleepers() == json!(1));
        #[allow(clippy::disallowed_methods, reason = "a test may look at the clock")]
        let left = Instant::now();
        drop(stream);
        eventually("the server runs nothing any more", || sleepers() == json!(0));
        let waited = left.elapsed();
        eprintln!("{}: stopped {waited:?} after its client went away", kind.label());
        assert!(waited < Duration::from_secs(10), "it was not stopped: it ended by itself after {waited:?}");
    }
}

#[test]
fn disconnected_client_cancels_its_statement_on_postgres() {
    check_disconnected_client(Kind::Postgres);
}

#[test]
fn disconnected_client_cancels_its_statement_on_postgres_through_adbc() {
    check_disconnected_client(Kind::PostgresThroughAdbc);
}

#[test]
fn disconnected_client_cancels_its_statement_on_mariadb() {
    check_disconnected_client(Kind::MariaDb);
}

fn check_restarted_server(kind: Kind) {
    let Some(mut engine) = start(kind) else { return };
    let (_project, server) = serve(&engine);
    assert_eq!(ask(&server, "orders.revenue").json().expect("JSON")["data"][0]["orders.revenue"], json!(62));
    // The database server is killed while a statement of the product sleeps in it.
    thread::scope(|scope| {
        let sleeper = scope.spawn(|| ask(&server, "faulty.slow"));
        thread::sleep(PAUSE * 3);
        engine.server.as_mut().expect("a server").kill().expect("it ends");
        let answer = sleeper.join().expect("an answer");
        let code = answer.json().expect("JSON")["error"]["code"].clone();
        assert_eq!((answer.status, code), (503, json!("WAREHOUSE_UNAVAILABLE")), "{}", answer.body);
    });
    let answer = ask(&server, "orders.revenue");
    let code = answer.json().expect("JSON")["error"]["code"].clone();
    assert_eq!((answer.status, code), (503, json!("WAREHOUSE_UNAVAILABLE")), "{}", answer.body);
    assert!(!answer.body.contains("secret"), "{}", answer.body);
    assert_eq!((get(&server, "/health/ready"), get(&server, "/health/live")), (503, 200));
    assert!(connection_errors(&server, "lost") >= 1.0 && connection_errors(&server, "connect") >= 1.0);

    engine.server.as_mut().expect("a server").restart().expect("it starts again");
    eventually("ready again", || get(&server, "/health/ready") == 200);
    let answer = ask(&server, "orders.revenue");
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(server.terminate().expect("it ends").0, Some(0));
}

fn nothing_is_written(kind: Kind) {
    let Some(engine) = start(kind) else { return };
    let (_project, server) = serve(&engine);
    let answer = ask(&server, "writing.touched");
    let code = answer.json().expect("JSON")["error"]["code"].clone();
    assert_eq!((answer.status, code), (502, json!("WAREHOUSE_ERROR")), "{}", answer.body);
}

#[test]
fn slow_statement_of_postgres_is_cancelled() {
    check_slow_statement(Kind::Postgres);
}

#[test]
fn slow_statement_of_postgres_through_adbc_is_cancelled() {
    check_slow_statement(Kind::PostgresThroughAdbc);
}

#[test]
fn slow_statement_of_mariadb_is_cancelled() {
    check_slow_statement(Kind::MariaDb);
}

#[test]
fn restarted_postgres_is_reconnected() {
    check_restarted_server(Kind::Postgres);
}

#[test]
fn restarted_postgres_through_adbc_is_reconnected() {
    check_restarted_server(Kind::PostgresThroughAdbc);
}

#[test]
fn restarted_mariadb_is_reconnected() {
    check_restarted_server(Kind::MariaDb);
}

#[test]
fn writes_to_postgres_are_rejected() {
    nothing_is_written(Kind::Postgres);
}

#[test]
fn writes_to_postgres_through_adbc_are_rejected() {
    nothing_is_written(Kind::PostgresThroughAdbc);
}

#[test]
fn writes_to_mariadb_are_rejected() {
    nothing_is_written(Kind::MariaDb);
}
