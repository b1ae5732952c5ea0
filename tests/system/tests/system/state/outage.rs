//! Tests the program with a PostgreSQL that stops and restarts, and two programs that share one PostgreSQL.

use std::time::{Duration, Instant};

use serde_json::json;
use terrane_system_tests::engines::Kind;

use super::world::{World, code_of, eventually, get, post, sign_in};
use crate::engines::start;

#[test]
fn readers_continue_while_the_state_database_is_down() {
    let Some(mut engine) = start(Kind::Postgres) else { return };
    let url = engine.make_database("state").unwrap();
    let world = World::over(&url);
    world.add_user("ada");
    let ((_, known), (_, unknown)) = (world.key("read"), world.key("read"));
    let server = world.serve();
    let ask = |key: &str| {
        #[allow(clippy::disallowed_methods, reason = "a test may look at the clock")]
        let started = Instant::now();
        let answer = post(&server, Some(key), "/api/v1/query", &json!({"measures": ["t.count"]})).unwrap();
        (answer.status, code_of(&answer), started.elapsed())
    };
    assert_eq!(ask(&known).0, 200);

    engine.server.as_mut().unwrap().kill().unwrap();
    // These requests continue beyond the two seconds for which a credential lookup is cached.
    let mut slowest = Duration::ZERO;
    for _ in 0..30 {
        let (status, code, took) = ask(&known);
        assert_eq!(status, 200, "{code}");
        slowest = slowest.max(took);
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
    let (status, code, took) = ask(&unknown);
    assert_eq!((status, code.as_str()), (503, "STATE_UNAVAILABLE"));
    assert!(took < Duration::from_secs(8), "{took:?}");
    let body = json!({"username": "ada", "password": super::world::PASSWORD});
    let refused = post(&server, None, "/api/v1/auth/token", &body).unwrap();
    assert_eq!((refused.status, code_of(&refused).as_str()), (503, "STATE_UNAVAILABLE"));
    assert!(
        refused.head.to_lowercase().contains("retry-after") && !refused.body.contains("secret"),
        "{}",
        refused.body
    );
    assert_eq!((get(&server, None, "/health/live").status, get(&server, None, "/health/ready").status), (200, 503));

    engine.server.as_mut().unwrap().restart().unwrap();
    eventually("ready again", 20, || get(&server, None, "/health/ready").status == 200);
    assert!(sign_in(&server, "ada").unwrap().is_some());
    assert_eq!(ask(&unknown).0, 200);
    let (code, log) = server.terminate().unwrap();
    assert_eq!(code, Some(0));
    assert!(!log.contains("terrane:secret"), "{log}");
    // After the restart, the audit log contains the requests that were answered during the outage.
    let counted = "SELECT sum(alike) >= 32 FROM audit_log WHERE event = 'authentication_success'";
    assert_eq!(engine.ask("state", counted).unwrap().trim(), "t");
    let verified = world.command(&["audit", "verify"]).run().unwrap();
    assert_eq!(verified.code, Some(0), "{}", verified.stdout);
}

#[test]
fn server_requires_its_state_database() {
    let world = World::over("postgres://terrane:hidden@127.0.0.1:1/state");
    let output = world.command(&["serve"]).arguments(&["--port", "0"]).run().unwrap();
    assert_eq!(output.code, Some(1));
    let words = ["cannot open the state database postgres://127.0.0.1:1/state", "hint:", "state.url"];
    assert!(words.iter().all(|word| output.stderr.contains(word)), "{}", output.stderr);
    assert!(!output.stderr.contains("hidden"), "{}", output.stderr);
}

#[test]
fn one_server_removes_expired_records_and_another_takes_over() {
    let Some(engine) = start(Kind::Postgres) else { return };
    let url = engine.make_database("state").unwrap();
    let world = World::over(&url);
    world.add_user("ada");
    let fill = "INSERT INTO sessions SELECT 'old-' || n, 'ada', 0, 1 FROM generate_series(1, 2500) AS n";
    let ask = |statement: &str| engine.ask("state", statement).unwrap().trim().to_owned();
    let left = || ask("SELECT count(*) FROM sessions WHERE id LIKE 'old-%'");
    let holder = || ask("SELECT holder || ' ' || fence FROM leases WHERE name = 'prune'");
    ask(fill);
    let first = world.serve();
    eventually("the first removes them", 10, || left() == "0");
    let second = world.serve();
    let before = holder();
    std::thread::sleep(Duration::from_secs(6));
    assert_eq!(holder(), before, "one of them at a time");
    ask(fill);
    first.kill().unwrap();
    eventually("the second takes its place", 30, || holder() != before);
    eventually("and removes them", 10, || left() == "0");
    assert!(holder().ends_with(" 2"), "{}", holder());
    assert_eq!(second.terminate().unwrap().0, Some(0));
    // Leases of the killed server may not have expired yet, so only those of the second server are checked.
    let own = "SELECT DISTINCT expires_at FROM leases WHERE holder = (SELECT holder FROM leases WHERE name = 'prune')";
    assert_eq!(ask(own), "0", "it gave its leases back");
}
