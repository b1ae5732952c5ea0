//! Kills a process many times while it writes. Acknowledged changes must remain, and the audit chain must be valid.
//!
//! The default is ten rounds; `TERRANE_KILL_ROUNDS` sets a different number.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::json;
use terrane_app::ports::audit::{AuditFilter, AuditLog as _, ChainState};
use terrane_app::ports::credentials::Credentials as _;
use terrane_app::security::api_key::hash;
use terrane_store::StateStore;
use terrane_system_tests::Server;
use terrane_system_tests::engines::{Engine, Kind};

use super::world::{World, pair, post, sign_in};
use crate::engines::start;

const ROUNDS: u64 = 10;
/// The number of rounds in which the database server is killed as well.
const DATABASE_ROUNDS: u64 = 3;

/// The changes that were acknowledged to clients.
#[derive(Debug, Default)]
struct Acknowledged {
    keys: Vec<String>,
    refresh_tokens: Vec<String>,
    ended: Vec<String>,
    answers: u64,
}

/// Clients that write in all ways until the server is gone.
struct Writers<'a> {
    world: &'a World,
    server: &'a Server,
    is_over: &'a AtomicBool,
    acknowledged: &'a Mutex<Acknowledged>,
    admin: &'a str,
}

impl Writers<'_> {
    fn goes_on(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed)
    }

    fn acknowledged(&self, note: impl FnOnce(&mut Acknowledged)) {
        note(&mut self.acknowledged.lock().expect("a lock"));
    }

    fn sign_in_and_refresh(&self) -> anyhow::Result<()> {
        while self.goes_on() {
            let Some((_, mut token)) = sign_in(self.server, "ada")? else { continue };
            self.acknowledged(|acknowledged| acknowledged.refresh_tokens.push(token.clone()));
            for _ in 0..20 {
                let answer = post(self.server, None, "/api/v1/auth/refresh", &json!({"refresh_token": token}))?;
                let Some((_, next)) = pair(&answer)? else { break };
                token = next;
                self.acknowledged(|acknowledged| acknowledged.refresh_tokens.push(token.clone()));
            }
        }
        Ok(())
    }

    fn revoke(&self) -> anyhow::Result<()> {
        while self.goes_on() {
            let Some((access, refresh)) = sign_in(self.server, "bob")? else { continue };
            let body = json!({"refresh_token": refresh});
            if post(self.server, Some(&access), "/api/v1/auth/revoke", &body)?.status == 200 {
                self.acknowledged(|acknowledged| acknowledged.ended.push(refresh));
            }
        }
        Ok(())
    }

    fn make_keys(&self) {
        while self.goes_on() {
            if let Some((id, _)) = self.world.try_key("read") {
                self.acknowledged(|acknowledged| acknowledged.keys.push(id));
            }
        }
    }

    fn ask(&self) -> anyhow::Result<()> {
        while self.goes_on() {
            let asked = post(self.server, Some(self.admin), "/api/v1/query", &json!({"measures": ["t.count"]}))?;
            self.acknowledged(|acknowledged| acknowledged.answers += u64::from(asked.status == 200));
        }
        Ok(())
    }
}

/// Starts a server, writes, and kills the server after a time that differs between rounds. `also` runs just before the
/// kill.
fn round(world: &World, admin: &str, number: u64, also: impl FnOnce()) -> Acknowledged {
    let server = world.serve();
    let (is_over, acknowledged) = (AtomicBool::new(false), Mutex::default());
    let writers = &Writers { world, server: &server, is_over: &is_over, acknowledged: &acknowledged, admin };
    thread::scope(|scope| {
        // Each thread ends with the error that the kill causes.
        scope.spawn(move || writers.sign_in_and_refresh());
        scope.spawn(move || writers.revoke());
        scope.spawn(move || writers.make_keys());
        scope.spawn(move || writers.ask());
        thread::sleep(Duration::from_millis(150 + number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 700));
        also();
        is_over.store(true, Ordering::Relaxed);
        server.signal_kill().expect("it is killed");
    });
    drop(server);
    acknowledged.into_inner().expect("a lock")
}

async fn check(world: &World, acknowledged: &Acknowledged) {
    let store = StateStore::open(&world.state_url, world.project.path()).await.expect("the state database opens");
    for id in &acknowledged.keys {
        assert!(store.key(id).await.unwrap().is_some(), "key {id} is gone");
        let filter = AuditFilter { resource: Some(format!("key:{id}").into()), limit: 9, ..AuditFilter::default() };
        assert_eq!(store.records(&filter).await.unwrap().len(), 1, "key {id} has its record");
    }
    for token in &acknowledged.refresh_tokens {
        let session = store.session_of(&hash(token)).await.unwrap();
        let session = session.expect("the session of an acknowledged token is there");
        let resource = Some(format!("session:{}", session.id).into());
        let filter =
            AuditFilter { resource, event: Some("session_started".into()), limit: 9, ..AuditFilter::default() };
        assert_eq!(store.records(&filter).await.unwrap().len(), 1, "a sign-in has its record");
    }
    for token in &acknowledged.ended {
        let session = store.session_of(&hash(token)).await.unwrap().expect("an ended session is there");
        assert!(session.ended_at.is_some(), "an acknowledged end is forgotten");
    }
    let state = store.verify().await.unwrap();
    assert!(matches!(state, ChainState::Whole { .. }), "{state:?}");
}

fn kill_again_and_again(world: &World, rounds: u64, mut also: impl FnMut()) {
    for username in ["ada", "bob"] {
        world.add_user(username);
    }
    let (_, admin) = world.key("admin");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut all = Acknowledged::default();
    for number in 0..rounds {
        let acknowledged = round(world, &admin, number, &mut also);
        runtime.block_on(check(world, &acknowledged));
        all.keys.extend(acknowledged.keys);
        all.refresh_tokens.extend(acknowledged.refresh_tokens);
        all.ended.extend(acknowledged.ended);
        all.answers += acknowledged.answers;
    }
    // All changes are checked again at the end, because a later round must not lose the changes of an earlier one.
    runtime.block_on(check(world, &all));
    eprintln!(
        "{rounds} rounds: {} keys, {} refresh tokens, {} ended sessions, {} answers acknowledged, none lost",
        all.keys.len(),
        all.refresh_tokens.len(),
        all.ended.len(),
        all.answers
    );
    assert!(all.keys.len() + all.refresh_tokens.len() + all.ended.len() > rounds as usize, "{all:?}");
}

fn rounds() -> u64 {
    #[allow(clippy::disallowed_methods, reason = "tests are configured by their environment")]
    let asked = std::env::var("TERRANE_KILL_ROUNDS").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(ROUNDS)
}

#[test]
fn killed_server_loses_no_acknowledged_change() {
    let world = World::over("sqlite://state.db");
    kill_again_and_again(&world, rounds(), || {});
}

#[test]
fn stopped_postgres_loses_no_acknowledged_change() {
    let Some(mut engine) = start(Kind::Postgres) else { return };
    let url = engine.make_database("state").unwrap();
    let world = World::over(&url);
    let stop_at_once = |engine: &mut Engine| {
        let database = engine.server.as_mut().expect("a server");
        database.kill().expect("it ends");
        database.restart().expect("it starts again");
    };
    let mut number = 0;
    kill_again_and_again(&world, 2 * DATABASE_ROUNDS, || {
        number += 1;
        if number % 2 == 0 {
            stop_at_once(&mut engine);
        }
    });
}
