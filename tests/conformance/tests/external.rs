//! Tests tokens of an identity provider, whose keys are read over a real socket, and requests that must fail.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::sync::Arc;

use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value as Json, json};
use tempfile::TempDir;
use terrane_app::ports::audit::AuditEntry;
use terrane_app::ports::credentials::{Credentials as _, User};
use terrane_app::ports::tokens::{Passwords as _, Tokens};
use terrane_app::security::Scopes;
use terrane_app::security::api_key::base64url;
use terrane_compiler::SecurityContext;
use terrane_conformance_tests::case::{Answered, Caller, World, ask};
use terrane_conformance_tests::provider::{ProviderServer, SteppedClock, public_jwk};
use terrane_conformance_tests::security::Security;
use terrane_identity::{
    Argon2Passwords, ClaimPath, ClaimsMapping, ExternalSettings, ExternalTokens, Issuers, Jwt, JwtSettings, ScopeRoles,
    SignatureAlgorithm, SigningKey,
};
use terrane_server::Edge;
use terrane_store::StateStore;

/// Noon of 14 February 2024, the time of the cases' clock.
const NOW: i64 = 1_707_912_000;
const ISSUER: &str = "https://id.example/realms/data";
const AUDIENCE: &str = "terrane-api";
const SECRET: &[u8] = b"a secret of the tests that is long enough";
const PRIVATE_PEM: &[u8] = include_bytes!("../keys/test_only.pem");
const PUBLIC_PEM: &[u8] = include_bytes!("../keys/test_only.pub.pem");
const OTHER_PEM: &[u8] = include_bytes!("../keys/test_only_other.pem");
const PASSWORD: &str = "correct horse battery staple";
const CUBES: &str = "/api/v1/query/meta/cubes";

struct House {
    edge: Edge,
    provider: ProviderServer,
    clock: Arc<SteppedClock>,
    store: Arc<StateStore>,
    _folder: TempDir,
}

fn keys(keys: &[Json]) -> Json {
    json!({ "keys": keys })
}

impl House {
    /// Starts a server that accepts the provider's tokens, and its own if a key is given.
    async fn with(own: Option<SigningKey>) -> House {
        let provider = ProviderServer::start().await;
        provider.answer("/keys", 200, &keys(&[public_jwk(PRIVATE_PEM, "one")]));
        House::of(provider, own).await
    }

    async fn of(provider: ProviderServer, own: Option<SigningKey>) -> House {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(StateStore::open("sqlite://state.db", folder.path()).await.unwrap());
        let clock = Arc::new(SteppedClock::default());
        let settings = ExternalSettings {
            issuer: ISSUER.to_owned(),
            audience: AUDIENCE.to_owned(),
            algorithms: vec![SignatureAlgorithm::RS256],
            verify_iat: true,
            mapping: ClaimsMapping {
                roles: ClaimPath::new("realm_access.roles"),
                scope_roles: ScopeRoles { admin: vec!["terrane-admin".into()], ..ScopeRoles::default() },
                ..ClaimsMapping::default()
            },
        };
        let external = Arc::new(ExternalTokens::new(settings, provider.keys(clock.clone())));
        let tokens: Arc<dyn Tokens> = match own {
            Some(key) => Arc::new(Issuers::new(own_tokens(key), external)),
            None => external,
        };
        let world = World { caller: Caller::Stranger, ..World::default() };
        let edge = world.edge_with(Security::of(store.clone(), Some(tokens)));
        House { edge, provider, clock, store, _folder: folder }
    }

    async fn ask(&self, path: &str, token: &str) -> Answered {
        let asked = json!({"path": path, "headers": {"authorization": format!("Bearer {token}")}});
        ask(&self.edge, &serde_json::from_value(asked).unwrap()).await
    }

    async fn status_with(&self, token: &str) -> (u16, String) {
        let answered = self.ask(CUBES, token).await;
        let body: Json = serde_json::from_slice(&answered.body).unwrap_or_default();
        (answered.status.as_u16(), body["error"]["code"].as_str().unwrap_or_default().to_owned())
    }
}

fn own_tokens(key: SigningKey) -> Jwt {
    Jwt::new(JwtSettings {
        key,
        issuer: "terrane".to_owned(),
        audience: "terrane".to_owned(),
        verify_exp: true,
        verify_iat: true,
        mapping: ClaimsMapping::default(),
    })
    .unwrap()
}

fn claims(change: &Json) -> Json {
    let mut claims = json!({"iss": ISSUER, "aud": AUDIENCE, "sub": "248289761001", "exp": NOW + 60, "iat": NOW});
    for (name, value) in change.as_object().unwrap() {
        match value {
            Json::Null => claims.as_object_mut().unwrap().remove(name),
            value => claims.as_object_mut().unwrap().insert(name.clone(), value.clone()),
        };
    }
    claims
}

fn header(kid: Option<&str>) -> Header {
    let mut header = Header::new(Algorithm::RS256);
    header.kid = kid.map(str::to_owned);
    header
}

fn rsa(pem: &[u8]) -> EncodingKey {
    EncodingKey::from_rsa_pem(pem).unwrap()
}

/// Returns a token of the provider after some of its claims were changed.
fn token(change: &Json) -> String {
    jsonwebtoken::encode(&header(Some("one")), &claims(change), &rsa(PRIVATE_PEM)).unwrap()
}

/// Returns a token with a valid signature, and with a header and payload that the library would not write.
fn raw(header: &str, payload: &str) -> String {
    let message = format!("{}.{}", base64url(header.as_bytes()), base64url(payload.as_bytes()));
    let signature = jsonwebtoken::crypto::sign(message.as_bytes(), &rsa(PRIVATE_PEM), Algorithm::RS256).unwrap();
    format!("{message}.{signature}")
}

const INVALID: (u16, &str) = (401, "INVALID_TOKEN");

#[tokio::test]
async fn invalid_claims_are_rejected() {
    let house = House::with(None).await;
    for (change, (status, code)) in [
        (json!({}), (200, "")),
        (json!({"aud": ["other", AUDIENCE]}), (200, "")),
        (json!({"exp": NOW as f64 + 60.5}), (200, "")),
        (json!({"scope": "openid read"}), (200, "")),
        (json!({"scp": ["read"]}), (200, "")),
        // A token without a scope of this server gets the scope `read`.
        (json!({"scope": "openid profile"}), (200, "")),
        (json!({"email": 5, "roles": {"a": 1}, "attributes": "none"}), (200, "")),
        (json!({"exp": NOW - 4}), (200, "")),
        (json!({"exp": NOW - 6}), (401, "TOKEN_EXPIRED")),
        (json!({"exp": 0}), (401, "TOKEN_EXPIRED")),
        (json!({"exp": -1e300}), (401, "TOKEN_EXPIRED")),
        (json!({"exp": null}), INVALID),
        (json!({"exp": "9999999999"}), INVALID),
        (json!({"exp": true}), INVALID),
        (json!({"exp": [NOW + 60]}), INVALID),
        (json!({"exp": {"$gt": 0}}), INVALID),
        (json!({"nbf": NOW + 60}), INVALID),
        (json!({"nbf": "soon"}), INVALID),
        (json!({"iat": NOW + 60}), INVALID),
        (json!({"iat": "now"}), INVALID),
        (json!({"iss": null}), INVALID),
        (json!({"iss": "https://id.example/realms/data/"}), INVALID),
        (json!({"iss": "https://ID.example/realms/data"}), INVALID),
        (json!({"iss": "https://id.example/realms/d\u{430}ta"}), INVALID),
        (json!({"iss": format!("{ISSUER}\u{200b}")}), INVALID),
        (json!({"iss": [ISSUER]}), INVALID),
        (json!({"iss": "https://id.example/realms/staging"}), INVALID),
        (json!({"iss": "terrane", "aud": "terrane"}), INVALID),
        (json!({"aud": null}), INVALID),
        (json!({"aud": "terrane"}), INVALID),
        (json!({"aud": []}), INVALID),
        (json!({"aud": [[AUDIENCE]]}), INVALID),
        (json!({"aud": {"a": AUDIENCE}}), INVALID),
        (json!({"aud": format!("{AUDIENCE} ")}), INVALID),
        (json!({"sub": null}), INVALID),
        (json!({"sub": ""}), INVALID),
        (json!({"sub": 7}), INVALID),
        (json!({"sub": ["ada"]}), INVALID),
        (json!({"cnf": {"jkt": "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"}}), INVALID),
        (json!({"filler": "x".repeat(20_000)}), INVALID),
    ] {
        let found = house.status_with(&token(&change)).await;
        let shown: String = change.to_string().chars().take(80).collect();
        assert_eq!(found, (status, code.to_owned()), "{shown}");
    }
    assert_eq!(house.provider.asked("/keys").len(), 1, "keys are read once for all of them");
}

#[tokio::test]
async fn token_header_does_not_influence_verification() {
    for own in [None, Some(SigningKey::Hs256 { secret: SECRET.to_vec() })] {
        let house = House::with(own).await;
        let good = token(&json!({}));
        assert_eq!(house.status_with(&good).await.0, 200);
        let bait = ProviderServer::start().await;
        bait.answer("/keys", 200, &keys(&[public_jwk(OTHER_PEM, "one")]));
        let bait_url = format!("http://{}/keys", bait.address);
        for (name, forgery) in forgeries(&good, &bait_url) {
            assert_eq!(house.status_with(&forgery).await, (401, "INVALID_TOKEN".to_owned()), "{name}");
        }
        assert!(bait.asked("/keys").is_empty(), "a token leads nowhere");
        assert_eq!(house.status_with(&good).await.0, 200);
    }
}

fn forgeries(good: &str, bait: &str) -> Vec<(&'static str, String)> {
    let parts: Vec<&str> = good.split('.').collect();
    let claims = claims(&json!({}));
    let payload = claims.to_string();
    let unsigned = |header: Json| format!("{}.{}.", base64url(header.to_string().as_bytes()), parts[1]);
    let by = |algorithm, secret: &[u8]| {
        let mut header = Header::new(algorithm);
        header.kid = Some("one".to_owned());
        jsonwebtoken::encode(&header, &claims, &EncodingKey::from_secret(secret)).unwrap()
    };
    // Tokens signed by an attacker's key, with a header that points to this key.
    let stranger = |change: &dyn Fn(&mut Header)| {
        let mut header = header(Some("one"));
        change(&mut header);
        jsonwebtoken::encode(&header, &claims, &rsa(OTHER_PEM)).unwrap()
    };
    let with_kid = |kid: &str| jsonwebtoken::encode(&header(Some(kid)), &claims, &rsa(OTHER_PEM)).unwrap();
    let ours = |header: &str| raw(header, &payload);
    let jwk = public_jwk(OTHER_PEM, "one");
    let modulus = public_jwk(PRIVATE_PEM, "one")["n"].as_str().unwrap().to_owned();
    vec![
        ("none", unsigned(json!({"alg": "none", "kid": "one"}))),
        ("None", unsigned(json!({"alg": "None", "kid": "one"}))),
        ("no alg", unsigned(json!({"kid": "one"}))),
        ("alg of another type", unsigned(json!({"alg": ["RS256"], "kid": "one"}))),
        ("no signature", format!("{}.{}.", parts[0], parts[1])),
        ("two parts", format!("{}.{}", parts[0], parts[1])),
        ("four parts", format!("{good}.x")),
        ("cut", good[..good.len() - 2].to_owned()),
        (
            "other claims",
            format!("{}.{}.{}", parts[0], base64url(payload.replace("2482", "9999").as_bytes()), parts[2]),
        ),
        ("HS256 by the public key", by(Algorithm::HS256, PUBLIC_PEM)),
        ("HS256 by the modulus", by(Algorithm::HS256, modulus.as_bytes())),
        ("HS512 by the public key", by(Algorithm::HS512, PUBLIC_PEM)),
        ("HS256 by nothing", by(Algorithm::HS256, b"")),
        ("HS256 by this server's secret", by(Algorithm::HS256, SECRET)),
        ("RS384, which is not set", {
            let header = Header { kid: Some("one".to_owned()), ..Header::new(Algorithm::RS384) };
            jsonwebtoken::encode(&header, &claims, &rsa(PRIVATE_PEM)).unwrap()
        }),
        ("another's key", stranger(&|_| {})),
        ("jku", stranger(&|header| header.jku = Some(bait.to_owned()))),
        ("x5u", stranger(&|header| header.x5u = Some(bait.to_owned()))),
        ("x5c", stranger(&|header| header.x5c = Some(vec!["MIIB".to_owned()]))),
        ("jwk", stranger(&|header| header.jwk = serde_json::from_value(jwk.clone()).ok())),
        ("kid of a file", with_kid("../../../../dev/null")),
        ("kid of a URL", with_kid(bait)),
        ("kid of SQL", with_kid("one' UNION SELECT 'x' --")),
        ("kid with a null", with_kid("one\0")),
        ("kid in other letters", with_kid("ONE")),
        ("long kid", with_kid(&"k".repeat(5_000))),
        ("kid of another type", ours(r#"{"alg":"RS256","kid":{"a":1}}"#)),
        ("crit", ours(r#"{"alg":"RS256","kid":"one","crit":["exp"],"exp":0}"#)),
        ("empty crit", ours(r#"{"alg":"RS256","kid":"one","crit":[]}"#)),
        ("b64", ours(r#"{"alg":"RS256","kid":"one","b64":false}"#)),
        ("b64 and crit", ours(r#"{"alg":"RS256","kid":"one","b64":false,"crit":["b64"]}"#)),
        ("cty", ours(r#"{"alg":"RS256","kid":"one","cty":"JWT"}"#)),
        ("zip", ours(r#"{"alg":"RS256","kid":"one","zip":"DEF"}"#)),
        ("enc", ours(r#"{"alg":"RS256","kid":"one","enc":"A128GCM"}"#)),
        ("alg twice", ours(r#"{"alg":"none","alg":"RS256","kid":"one"}"#)),
        ("a proof of possession", ours(r#"{"alg":"RS256","kid":"one","typ":"dpop+jwt"}"#)),
        ("a logout token", ours(r#"{"alg":"RS256","kid":"one","typ":"logout+jwt"}"#)),
        ("nested", raw(r#"{"alg":"RS256","kid":"one"}"#, good)),
        ("a list", raw(r#"{"alg":"RS256","kid":"one"}"#, "[1]")),
        ("a string", raw(r#"{"alg":"RS256","kid":"one"}"#, "\"x\"")),
        ("deep", raw(r#"{"alg":"RS256","kid":"one"}"#, &format!("{}{}", "[".repeat(5_000), "]".repeat(5_000)))),
        ("no UTF-8", format!("{}.{}.{}", parts[0], base64url(&[0xff, 0xfe]), parts[2])),
        ("encrypted", "eyJhbGciOiJSU0EtT0FFUCIsImVuYyI6IkExMjhHQ00ifQ.a.b.c.d".to_owned()),
        ("dots", ".".repeat(10_000)),
        ("nothing", "..".to_owned()),
        ("JSON serialization", json!({"payload": parts[1], "protected": parts[0], "signature": parts[2]}).to_string()),
        // If a claim occurs twice, the last one counts (RFC 7519, section 4), both to choose and to check the issuer.
        (
            "iss twice",
            raw(
                r#"{"alg":"RS256","kid":"one"}"#,
                &payload
                    .replacen('{', &format!("{{\"iss\":\"{ISSUER}\","), 1)
                    .replace(&format!(r#""iss":"{ISSUER}","aud""#), r#""iss":"terrane","aud""#),
            ),
        ),
    ]
}

#[tokio::test]
async fn valid_token_types_and_key_kinds_are_accepted() {
    let house = House::with(None).await;
    let payload = claims(&json!({})).to_string();
    for header in [
        r#"{"alg":"RS256","kid":"one","typ":"at+jwt"}"#,
        r#"{"alg":"RS256","kid":"one","typ":"application/at+jwt"}"#,
        r#"{"alg":"RS256","kid":"one"}"#,
        r#"{"alg":"RS256","kid":"one","jku":"https://127.0.0.1:1/","x5t":"a","vendor":{"a":[1]}}"#,
        // Without a `kid`, the only published key is used.
        r#"{"alg":"RS256","typ":"jwt"}"#,
    ] {
        assert_eq!(house.status_with(&raw(header, &payload)).await.0, 200, "{header}");
    }
}

#[tokio::test]
async fn roles_grant_the_mapped_scopes() {
    let house = House::with(None).await;
    let status = async |change: Json| house.ask("/api/v1/audit", &token(&change)).await.status.as_u16();
    assert_eq!(status(json!({"realm_access": {"roles": ["terrane-admin"]}})).await, 200);
    assert_eq!(status(json!({"scope": "admin"})).await, 200);
    for powerless in [
        json!({}),
        json!({"roles": ["terrane-admin"]}),
        json!({"realm_access": {"roles": "admin"}}),
        json!({"realm_access": {"roles": [["terrane-admin"]]}}),
        json!({"realm_access.roles": ["guest"], "realm_access": {"roles": ["terrane-admin"]}}),
        json!({"scope": "administrator"}),
        json!({"scope": {"admin": true}}),
    ] {
        assert_eq!(status(powerless.clone()).await, 403, "{powerless}");
    }
}

#[tokio::test]
async fn users_of_different_issuers_are_distinct() {
    let house = House::with(Some(SigningKey::Hs256 { secret: SECRET.to_vec() })).await;
    let user = User {
        username: "ada".into(),
        password_hash: Argon2Passwords::default().hash(PASSWORD).await,
        scopes: Scopes::READ,
        caller: SecurityContext { user_id: "ada".into(), ..SecurityContext::default() },
        tenant: None,
        created_at: jiff::Timestamp::from_second(NOW).unwrap(),
        disabled_at: None,
    };
    assert!(house.store.add_user(&user, AuditEntry::default()).await.unwrap());
    let asked =
        json!({"method": "POST", "path": "/api/v1/auth/token", "json": {"username": "ada", "password": PASSWORD}});
    let answered = ask(&house.edge, &serde_json::from_value(asked).unwrap()).await;
    let own = serde_json::from_slice::<Json>(&answered.body).unwrap()["access_token"].as_str().unwrap().to_owned();
    assert_eq!(house.status_with(&own).await.0, 200);
    assert_eq!(house.status_with(&token(&json!({}))).await.0, 200);
    let session =
        json!({"iss": "terrane", "aud": "terrane", "sub": "ada", "exp": NOW + 60, "session_id": "x", "scope": "admin"});
    let hs256 = |claims: &Json| {
        jsonwebtoken::encode(&Header::new(Algorithm::HS256), claims, &EncodingKey::from_secret(SECRET)).unwrap()
    };
    for (name, forgery) in [
        // A token of the provider that names this server as its issuer.
        ("own name, provider's key", jsonwebtoken::encode(&header(Some("one")), &session, &rsa(PRIVATE_PEM)).unwrap()),
        // A token signed with this server's secret that names the provider as its issuer.
        ("provider's name, own key", hs256(&claims(&json!({})))),
        ("own key, no session", hs256(&session)),
        ("own key, no issuer", hs256(&json!({"aud": "terrane", "sub": "ada", "exp": NOW + 60}))),
        ("own key, both issuers", hs256(&json!({"iss": ["terrane", ISSUER], "aud": "terrane", "sub": "ada"}))),
    ] {
        assert_eq!(house.status_with(&forgery).await, (401, "INVALID_TOKEN".to_owned()), "{name}");
    }
    // In a provider's token, `session_id` has no special meaning.
    assert_eq!(house.status_with(&token(&json!({"session_id": "x"}))).await.0, 200);
}

#[tokio::test]
async fn keys_rotate_without_a_restart() {
    let house = House::with(None).await;
    let signed =
        |pem: &[u8], kid: &str| jsonwebtoken::encode(&header(Some(kid)), &claims(&json!({})), &rsa(pem)).unwrap();
    let (old, new) = (signed(PRIVATE_PEM, "one"), signed(OTHER_PEM, "two"));
    assert_eq!(house.status_with(&old).await.0, 200);
    house.provider.answer("/keys", 200, &keys(&[public_jwk(OTHER_PEM, "two")]));
    // The keys were read a moment ago, so they are not read for an unknown key id yet.
    assert_eq!(house.status_with(&new).await, (401, "INVALID_TOKEN".to_owned()));
    house.clock.step(6);
    assert_eq!(house.status_with(&new).await.0, 200);
    assert_eq!(house.status_with(&old).await, (401, "INVALID_TOKEN".to_owned()), "the old key is gone");
    assert_eq!(house.provider.asked("/keys").len(), 2);
}

#[tokio::test]
async fn unknown_key_ids_cause_no_provider_requests() {
    let house = House::with(None).await;
    let made_up = |number: usize| {
        jsonwebtoken::encode(&header(Some(&format!("kid-{number}"))), &claims(&json!({})), &rsa(OTHER_PEM)).unwrap()
    };
    house.status_with(&token(&json!({}))).await;
    house.clock.step(6);
    for number in 0..50 {
        assert_eq!(house.status_with(&made_up(number)).await, (401, "INVALID_TOKEN".to_owned()));
    }
    assert_eq!(house.provider.asked("/keys").len(), 2);
    house.clock.step(6);
    let tokens: Vec<String> = (0..40).map(made_up).collect();
    futures_util::future::join_all(tokens.iter().map(|token| house.status_with(token))).await;
    assert_eq!(house.provider.asked("/keys").len(), 3, "one reading for all of them");
}

#[tokio::test]
async fn unavailable_provider_is_503_except_for_cached_keys() {
    let provider = ProviderServer::start().await;
    let house = House::of(provider, None).await;
    let good = token(&json!({}));
    let answered = house.ask(CUBES, &good).await;
    assert_eq!(answered.status.as_u16(), 503);
    assert!(answered.headers.contains_key("retry-after"));
    assert_eq!(house.status_with(&good).await, (503, "STATE_UNAVAILABLE".to_owned()));
    assert_eq!(house.provider.asked("/keys").len(), 1, "asked once in a while");
    for (status, body) in [
        (200, json!({"keys": []})),
        (200, json!({"keys": [{"kty": "oct", "kid": "one", "k": "c2VjcmV0"}]})),
        (200, json!("<html>")),
        (200, json!({"keys": [public_jwk(PRIVATE_PEM, "one")], "filler": "x".repeat(70_000)})),
        (302, json!({"keys": [public_jwk(PRIVATE_PEM, "one")]})),
        (404, json!({"keys": [public_jwk(PRIVATE_PEM, "one")]})),
    ] {
        house.provider.answer("/keys", status, &body);
        house.clock.step(6);
        assert_eq!(house.status_with(&good).await, (503, "STATE_UNAVAILABLE".to_owned()), "{status}");
    }
    house.provider.answer("/keys", 200, &keys(&[public_jwk(PRIVATE_PEM, "one")]));
    house.clock.step(6);
    assert_eq!(house.status_with(&good).await.0, 200);
    house.provider.fail("/keys");
    house.clock.step(3_600);
    assert_eq!(house.status_with(&good).await.0, 200, "known keys go on");
    house.clock.step(86_400);
    assert_eq!(house.status_with(&good).await, (503, "STATE_UNAVAILABLE".to_owned()), "and not for ever");
}

#[tokio::test]
async fn duplicate_key_id_is_ignored() {
    let provider = ProviderServer::start().await;
    let both = keys(&[public_jwk(PRIVATE_PEM, "one"), public_jwk(OTHER_PEM, "one"), public_jwk(OTHER_PEM, "two")]);
    provider.answer("/keys", 200, &both);
    let house = House::of(provider, None).await;
    assert_eq!(house.status_with(&token(&json!({}))).await, (401, "INVALID_TOKEN".to_owned()));
}
