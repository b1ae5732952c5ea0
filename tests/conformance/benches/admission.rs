//! Measures the cost of authenticating a caller and of securing a query.
//!
//! Runs `POST /api/v1/query/sql` through the whole edge without sockets, over a real state database with a warm cache.
//! The callers are anonymous, or have an API key or an HS256 token; each runs with and without rate limits. Then runs
//! the compiler alone, without policies and with a row filter and a mask. Budget: a key or a token and the policies
//! together add less than 100 µs to a request. The result of a credential lookup is cached for two seconds, so almost
//! every request of a busy key takes as long as here.

use std::hint::black_box;
use std::num::NonZeroU32;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use criterion::{Criterion, criterion_group, criterion_main};
use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use tempfile::TempDir;
use terrane_app::limits::{Rate, RateSettings};
use terrane_app::ports::audit::AuditEntry;
use terrane_app::ports::credentials::{ApiKey, Credentials as _, User};
use terrane_app::ports::tokens::{Passwords as _, Tokens};
use terrane_app::query::RequestContext;
use terrane_app::security::api_key::NewKey;
use terrane_app::security::{Scopes, plain_caller};
use terrane_compiler::query::SemanticQuery;
use terrane_compiler::types::Value;
use terrane_compiler::{Attribute, Authorized, Environment, SecurityContext, compile};
use terrane_conformance_tests::case::World;
use terrane_conformance_tests::project;
use terrane_conformance_tests::security::Security;
use terrane_identity::{Argon2Passwords, ClaimsMapping, Jwt, JwtSettings, SigningKey};
use terrane_server::{Connection, Edge};
use terrane_store::StateStore;
use tokio::runtime::Runtime;

const BODY: &str =
    r#"{"measures": ["orders.revenue", "orders.count"], "dimensions": ["orders.status", "customers.region"]}"#;
const PASSWORD: &str = "correct horse battery staple";

/// Returns a server with real credentials. Panics on any failure.
fn main_world(runtime: &Runtime, rates: RateSettings) -> (Edge, String, String, TempDir) {
    runtime.block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Arc::new(StateStore::open("sqlite://state.db", folder.path()).await.expect("a store"));
        let new = NewKey::from_random(&[7; 40]);
        let key = ApiKey {
            id: new.id.clone(),
            name: "bench".into(),
            secret_hash: new.hash,
            scopes: Scopes::READ,
            caller: plain_caller("bench".into()),
            tenant: Some("t".into()),
            created_at: Timestamp::UNIX_EPOCH,
            expires_at: None,
            revoked_at: None,
        };
        store.add_key(&key, AuditEntry::default()).await.expect("a key");
        let user = User {
            username: "ada".into(),
            password_hash: Argon2Passwords::default().hash(PASSWORD).await,
            scopes: Scopes::READ,
            caller: plain_caller("ada".into()),
            tenant: None,
            created_at: Timestamp::UNIX_EPOCH,
            disabled_at: None,
        };
        store.add_user(&user, AuditEntry::default()).await.expect("a user");
        let tokens: Arc<dyn Tokens> = Arc::new(
            Jwt::new(JwtSettings {
                key: SigningKey::Hs256 { secret: vec![7; 32] },
                issuer: "terrane".to_owned(),
                audience: "terrane".to_owned(),
                verify_exp: true,
                verify_iat: true,
                mapping: ClaimsMapping::default(),
            })
            .expect("a key of 32 bytes"),
        );
        let security = Security::of(store, Some(tokens));
        let edge = World { rates, ..World::default() }.edge_with(security);
        let request = RequestContext::default();
        let pair = edge.app().services.authenticator.sign_in("ada", PASSWORD, &request).await.expect("a session");
        (edge, new.text, pair.access_token, folder)
    })
}

fn request(bearer: Option<&str>) -> Request {
    let request = Request::post("/api/v1/query/sql").header("content-type", "application/json");
    let request = match bearer {
        Some(bearer) => request.header("authorization", format!("Bearer {bearer}")),
        None => request,
    };
    request.body(Body::from(BODY)).expect("a request")
}

fn admission(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let wide = Some(Rate { requests_per_second: 100_000.0, burst: NonZeroU32::MAX });
    let all = RateSettings { per_key: wide, per_tenant: wide, anonymous: wide, failed: wide };
    let mut group = criterion.benchmark_group("admission");
    for (suffix, rates) in [("", RateSettings::default()), (", rates", all)] {
        let (edge, key, token, _folder) = main_world(&runtime, rates);
        let peer = Some(std::net::IpAddr::from([192, 0, 2, 1]));
        for (name, bearer) in [("anonymous", None), ("key", Some(&*key)), ("token", Some(&*token))] {
            group.bench_function(format!("{name}{suffix}"), |bencher| {
                bencher.iter(|| {
                    let connection = Connection { peer, ..Connection::default() };
                    let answer = runtime.block_on(edge.call(connection, request(bearer)));
                    assert_eq!(black_box(answer).status(), 200);
                });
            });
        }
    }
    group.finish();
}

const POLICIES: &str = "policies:
  - {name: own, cubes: [customers], row_filter: \"{customers}.region IN {{ user.attributes.regions }}\"}
  - {name: hidden, cubes: [orders], mask: {checksum: hash}, row_filter: \"{orders}.status <> 'draft'\"}
";

fn policies(criterion: &mut Criterion) {
    let query: SemanticQuery = SemanticQuery {
        values: ["orders.revenue", "orders.count"].map(|name| name.parse().expect("a member")).into(),
        dimensions: ["orders.status", "customers.region"].map(|name| name.parse().expect("a member")).into(),
        ..SemanticQuery::default()
    };
    let regions = Attribute::Many(["eu", "us"].map(|region| Value::Text(region.into())).into());
    let caller = SecurityContext {
        attributes: [("regions".into(), regions)].into_iter().collect(),
        ..plain_caller("bench".into())
    };
    let environment = Environment {
        now: Timestamp::UNIX_EPOCH,
        zones: TimeZoneDatabase::bundled(),
        default_timezone: TimeZone::UTC,
        default_limit: 1_000,
        max_limit: 50_000,
        limit_advice: "",
        rollups: Arc::default(),
    };
    let mut group = criterion.benchmark_group("compile");
    for (name, snapshot) in
        [("without policies", project::snapshot()), ("with policies", project::snapshot_with(POLICIES))]
    {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let authorized = Authorized::without_hooks(&snapshot.model, &caller);
                compile(&snapshot.profile, black_box(&query), &authorized, &environment).expect("a statement")
            });
        });
    }
    group.finish();
}

criterion_group!(benches, admission, policies);
criterion_main!(benches);
