//! Tests that a caller over its limit is refused, and that other callers are not affected.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, RETRY_AFTER};
use http_body_util::BodyExt as _;
use serde_json::Value as Json;
use tempfile::TempDir;
use terrane_app::limits::{Rate, RateSettings};
use terrane_app::ports::audit::AuditEntry;
use terrane_app::ports::credentials::{ApiKey, Credentials as _};
use terrane_app::security::Scopes;
use terrane_app::security::api_key::NewKey;
use terrane_conformance_tests::case::{Caller, World};
use terrane_conformance_tests::security::Security;
use terrane_server::{Connection, Edge, TrustedProxies};
use terrane_store::StateStore;

const CUBES: &str = "/api/v1/query/meta/cubes";
/// A rate that admits one request, and no second one during a test.
const SLOW: f64 = 0.01;

struct House {
    edge: Edge,
    store: Arc<StateStore>,
    _folder: TempDir,
}

struct Answered {
    status: u16,
    headers: HeaderMap,
    body: Json,
}

fn rate(burst: u32) -> Option<Rate> {
    Some(Rate { requests_per_second: SLOW, burst: NonZeroU32::new(burst).unwrap() })
}

impl House {
    async fn with(rates: RateSettings) -> House {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(StateStore::open("sqlite://state.db", folder.path()).await.unwrap());
        let world = World { caller: Caller::Reader, rates, ..World::default() };
        House { edge: world.edge_with(Security::of(store.clone(), None)), store, _folder: folder }
    }

    async fn key(&self, seed: u8, tenant: Option<&str>) -> String {
        let new = NewKey::from_random(&[seed; 40]);
        let key = ApiKey {
            id: new.id.clone(),
            name: "of a test".into(),
            secret_hash: new.hash,
            scopes: Scopes::READ,
            caller: terrane_app::security::plain_caller("u".into()),
            tenant: tenant.map(Into::into),
            created_at: jiff::Timestamp::UNIX_EPOCH,
            expires_at: None,
            revoked_at: None,
        };
        self.store.add_key(&key, AuditEntry::default()).await.unwrap();
        new.text
    }

    async fn get(&self, path: &str, bearer: Option<&str>, last_of_address: u8) -> Answered {
        let mut request = Request::builder().uri(path);
        if let Some(bearer) = bearer {
            request = request.header(AUTHORIZATION, format!("Bearer {bearer}"));
        }
        let peer = Some(IpAddr::from([192, 0, 2, last_of_address]));
        let connection = Connection { peer, ..Connection::default() };
        let answer = self.edge.call(connection, request.body(Body::empty()).unwrap()).await;
        let (parts, body) = answer.into_parts();
        let body = serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap();
        Answered { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    async fn status(&self, bearer: Option<&str>, last_of_address: u8) -> u16 {
        self.get(CUBES, bearer, last_of_address).await.status
    }
}

#[tokio::test]
async fn only_the_key_over_its_limit_is_throttled() {
    let house = House::with(RateSettings { per_key: rate(2), ..RateSettings::default() }).await;
    let (eager, calm) = (house.key(1, None).await, house.key(2, None).await);
    assert_eq!((house.status(Some(&eager), 1).await, house.status(Some(&eager), 2).await), (200, 200));
    let refused = house.get(CUBES, Some(&eager), 3).await;
    assert_eq!((refused.status, &refused.body["error"]["code"]), (429, &"RATE_LIMITED".into()));
    let details = &refused.body["error"]["details"];
    assert_eq!((&details["scope"], &details["limit"]["burst"]), (&"key".into(), &2.into()));
    let wait: u64 = refused.headers[RETRY_AFTER].to_str().unwrap().parse().unwrap();
    assert!((90..=100).contains(&wait), "{wait}");
    assert_eq!((house.status(Some(&calm), 1).await, house.status(None, 1).await), (200, 200));
}

#[tokio::test]
async fn keys_of_a_tenant_share_its_limit() {
    let house = House::with(RateSettings { per_tenant: rate(2), ..RateSettings::default() }).await;
    let keys = [house.key(1, Some("a")).await, house.key(2, Some("a")).await, house.key(3, Some("b")).await];
    assert_eq!((house.status(Some(&keys[0]), 1).await, house.status(Some(&keys[1]), 1).await), (200, 200));
    let refused = house.get(CUBES, Some(&keys[0]), 1).await;
    assert_eq!((refused.status, &refused.body["error"]["details"]["scope"]), (429, &"tenant".into()));
    assert_eq!(house.status(Some(&keys[2]), 1).await, 200);
}

#[tokio::test]
async fn anonymous_callers_are_limited_by_address_except_for_probes() {
    let house = House::with(RateSettings { anonymous: rate(1), ..RateSettings::default() }).await;
    for _ in 0..5 {
        for probe in ["/health/live", "/health/ready", "/health/status", "/api/v1/health"] {
            assert_eq!(house.get(probe, None, 1).await.status, 200, "{probe}");
        }
    }
    assert_eq!(
        (house.status(None, 1).await, house.status(None, 1).await, house.status(None, 2).await),
        (200, 429, 200)
    );
    let key = house.key(1, None).await;
    assert_eq!(house.status(Some(&key), 1).await, 200);
    // Sign-in routes accept anonymous callers, so the limit of anonymous requests applies to them.
    let signing_in = Request::post("/api/v1/auth/token").body(Body::empty()).unwrap();
    let connection = Connection { peer: Some(IpAddr::from([192, 0, 2, 1])), ..Connection::default() };
    assert_eq!(house.edge.call(connection, signing_in).await.status(), 429);
    assert_eq!(house.get("/health/live", None, 1).await.status, 200);
}

#[tokio::test]
async fn guessing_address_is_throttled_without_its_neighbors() {
    let house = House::with(RateSettings { failed: rate(3), ..RateSettings::default() }).await;
    let (known, unknown) = (house.key(1, None).await, house.key(2, None).await);
    assert_eq!(house.status(Some(&known), 1).await, 200);
    for seed in 10..13 {
        let guess = NewKey::from_random(&[seed; 40]).text;
        assert_eq!(house.status(Some(&guess), 1).await, 401);
    }
    let refused = house.get(CUBES, Some(&NewKey::from_random(&[20; 40]).text), 1).await;
    assert_eq!((refused.status, &refused.body["error"]["details"]["scope"]), (429, &"failures".into()));
    assert!(refused.headers.contains_key(RETRY_AFTER));
    assert_eq!(house.status(Some("no token"), 1).await, 429);
    // The known key was proven from this address before. The other key was not, so no database lookup is made for it.
    assert_eq!((house.status(Some(&known), 1).await, house.status(Some(&unknown), 1).await), (200, 429));
    assert_eq!(house.status(Some(&unknown), 2).await, 200);
    assert_eq!(house.status(None, 1).await, 200, "nothing was guessed");
}

#[tokio::test]
async fn clients_behind_a_trusted_proxy_are_limited_separately() {
    let trusted_proxies = TrustedProxies::new(&["192.0.2.1/32".parse().unwrap()]);
    let rates = RateSettings { anonymous: rate(1), ..RateSettings::default() };
    let edge = World { caller: Caller::Reader, rates, trusted_proxies, ..World::default() }.edge();
    let status = async |peer: [u8; 4], name: &str, line: &str| {
        let request = Request::get(CUBES).header(name, line).body(Body::empty()).unwrap();
        let connection = Connection { peer: Some(peer.into()), ..Connection::default() };
        edge.call(connection, request).await.status().as_u16()
    };
    let (proxy, other) = ([192, 0, 2, 1], [192, 0, 2, 2]);
    for (peer, name, line, expected) in [
        (proxy, "x-forwarded-for", "203.0.113.1", 200),
        // A value that the client puts before the proxy's own value changes nothing.
        (proxy, "x-forwarded-for", "1.1.1.1, 203.0.113.1", 429),
        (proxy, "forwarded", "for=203.0.113.1", 429),
        (proxy, "forwarded", "for=203.0.113.2", 200),
        // The header of a peer that is not a trusted proxy is ignored, so all its requests count for the peer.
        (other, "x-forwarded-for", "203.0.113.3", 200),
        (other, "x-forwarded-for", "203.0.113.4", 429),
        (proxy, "x-forwarded-for", "203.0.113.3", 200),
    ] {
        assert_eq!(status(peer, name, line).await, expected, "{peer:?} {name}: {line}");
    }
}
