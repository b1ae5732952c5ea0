//! Tests the state database: one suite on both engines, and the program with databases that become unavailable.
//!
//! Without PostgreSQL, the tests that need it report themselves as skipped, and fail in CI.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

mod chain;
mod commands;
mod credentials;
mod data_tests;
mod dumps;
mod executed_queries;
mod guardrails;
mod kills;
mod leases;
mod monitors;
mod outage;
mod schema;
mod world;

use std::future::Future;

use jiff::Timestamp;
use terrane_app::ports::audit::{AuditEntry, AuditLog as _, ChainState};
use terrane_app::ports::credentials::{ApiKey, RefreshToken, Rights, Session, User};
use terrane_app::security::Scopes;
use terrane_compiler::types::Value;
use terrane_compiler::{Attribute, SecurityContext};
use terrane_store::StateStore;
use terrane_system_tests::Scratch;
use terrane_system_tests::engines::{Engine, Kind};

use crate::engines::start;

/// The state database of one test.
struct Place {
    url: String,
    folder: Scratch,
    engine: Option<Engine>,
}

impl Place {
    fn sqlite() -> Self {
        Place { url: "sqlite://state.db".to_owned(), folder: Scratch::empty(), engine: None }
    }

    fn postgres() -> Option<Self> {
        let engine = start(Kind::Postgres)?;
        let url = engine.make_database("state").expect("a database");
        Some(Place { url, folder: Scratch::empty(), engine: Some(engine) })
    }

    async fn open(&self) -> StateStore {
        StateStore::open(&self.url, self.folder.path()).await.expect("the state database opens")
    }

    /// Runs a statement on the database directly, without the store.
    async fn run(&self, statement: &'static str) -> Result<(), sqlx::Error> {
        match &self.engine {
            None => {
                let file = self.folder.path().join("state.db");
                let pool = sqlx::SqlitePool::connect(&format!("sqlite://{}", file.display())).await?;
                let outcome = sqlx::raw_sql(statement).execute(&pool).await.map(|_| ());
                pool.close().await;
                outcome
            }
            Some(engine) => engine.ask("state", statement).map(|_| ()).map_err(|error| {
                let message = format!("{error:#}");
                sqlx::Error::Protocol(message)
            }),
        }
    }
}

/// Runs a test on SQLite, and on PostgreSQL if it is available.
fn on_both<F: Future<Output = ()>>(test: impl Fn(Place) -> F) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(test(Place::sqlite()));
    if let Some(place) = Place::postgres() {
        runtime.block_on(test(place));
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).expect("a time")
}

fn entry(event: &str) -> AuditEntry {
    AuditEntry { at: at(0), event: event.into(), actor: "ada".into(), count: 1, ..AuditEntry::default() }
}

fn user(username: &str) -> User {
    User {
        username: username.into(),
        password_hash: "$argon2id$".into(),
        scopes: Scopes::READ,
        caller: SecurityContext { user_id: username.into(), ..SecurityContext::default() },
        tenant: None,
        created_at: at(0),
        disabled_at: None,
    }
}

fn key(id: &str) -> ApiKey {
    ApiKey {
        id: id.into(),
        name: "of a test".into(),
        secret_hash: [7; 32],
        scopes: Scopes::READ,
        caller: SecurityContext { user_id: "u1".into(), ..SecurityContext::default() },
        tenant: Some("north".into()),
        created_at: at(0),
        expires_at: Some(at(100)),
        revoked_at: None,
    }
}

fn session(id: &str, username: &str) -> Session {
    let rights = Some(rights(username));
    Session { id: id.into(), username: username.into(), created_at: at(0), ended_at: None, is_guest: false, rights }
}

fn rights(username: &str) -> Rights {
    Rights { scopes: Scopes::READ, caller: user(username).caller, tenant: None }
}

fn guest_session(id: &str, username: &str) -> Session {
    let caller = SecurityContext {
        user_id: username.into(),
        roles: vec!["analyst".into()],
        attributes: [("region".into(), Attribute::Many(vec![Value::Text("EU".into()), Value::Integer(5)]))].into(),
        ..SecurityContext::default()
    };
    let rights = Rights { scopes: Scopes::READ, caller, tenant: Some("north".into()) };
    Session { is_guest: true, rights: Some(rights), ..session(id, username) }
}

fn token(byte: u8, session_id: &str) -> RefreshToken {
    RefreshToken { hash: [byte; 32], session_id: session_id.into(), expires_at: at(100) }
}

async fn records_of(store: &StateStore) -> u64 {
    match store.verify().await.expect("the chain is read") {
        ChainState::Whole { records, .. } => records,
        broken => panic!("{broken:?}"),
    }
}
