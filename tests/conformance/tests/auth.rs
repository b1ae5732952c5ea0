//! Tests authentication by keys, tokens and sessions with a real state database, and requests that must fail.
//!
//! The tests are in one file, because they share an edge over one state database. Each kind of credential is tested
//! while the other kinds exist.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::sync::Arc;

use axum::http::StatusCode;
use jiff::Timestamp;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value as Json, json};
use tempfile::TempDir;
use terrane_app::accounts::Actor;
use terrane_app::ports::audit::{AuditEntry, AuditFilter, AuditLog as _, ChainState};
use terrane_app::ports::credentials::{ApiKey, Credentials as _, RefreshToken, Rights, Session, User};
use terrane_app::ports::tokens::{Passwords as _, Tokens};
use terrane_app::security::api_key::{self, NewKey};
use terrane_app::security::{AuthError, Authenticator, Credential, Identity, Scope, Scopes};
use terrane_compiler::types::Value;
use terrane_compiler::{Attribute, AuthMethod, SecurityContext};
use terrane_conformance_tests::case::{Answered, Caller, TestRequest, World, ask};
use terrane_conformance_tests::security::Security;
use terrane_identity::{Argon2Passwords, ClaimsMapping, Jwt, JwtSettings, SigningKey};
use terrane_server::{Edge, RouteAccess, routes};
use terrane_store::StateStore;

/// Noon of 14 February 2024, the time of the cases' clock.
const NOW: i64 = 1_707_912_000;
const SECRET: &[u8] = b"a secret of the tests that is long enough";
const PRIVATE_PEM: &[u8] = include_bytes!("../keys/test_only.pem");
const PUBLIC_PEM: &[u8] = include_bytes!("../keys/test_only.pub.pem");
const PASSWORD: &str = "correct horse battery staple";

struct House {
    edge: Edge,
    store: Arc<StateStore>,
    authenticator: Arc<Authenticator>,
    _folder: TempDir,
}

fn hs256() -> SigningKey {
    SigningKey::Hs256 { secret: SECRET.to_vec() }
}

fn tokens(key: SigningKey) -> Jwt {
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

impl House {
    async fn with(key: Option<SigningKey>) -> House {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(StateStore::open("sqlite://state.db", folder.path()).await.unwrap());
        let jwt = key.map(|key| Arc::new(tokens(key)) as Arc<dyn Tokens>);
        let world = World { caller: Caller::Stranger, ..World::default() };
        let security = Security::of(store.clone(), jwt);
        let edge = world.edge_with(security);
        let authenticator = edge.app().services.authenticator.clone();
        House { edge, store, authenticator, _folder: folder }
    }

    async fn key(&self, seed: u8, scopes: Scopes, expires_at: Option<Timestamp>) -> (Arc<str>, String) {
        let new = NewKey::from_random(&[seed; 40]);
        let key = ApiKey {
            id: new.id.clone(),
            name: "of a test".into(),
            secret_hash: new.hash,
            scopes,
            caller: SecurityContext {
                user_id: "u1".into(),
                roles: vec!["analyst".into()],
                ..SecurityContext::default()
            },
            tenant: None,
            created_at: now(),
            expires_at,
            revoked_at: None,
        };
        self.store.add_key(&key, AuditEntry { event: "key_created".into(), ..AuditEntry::default() }).await.unwrap();
        (new.id, new.text)
    }

    async fn user(&self, username: &str) {
        let caller = SecurityContext { user_id: username.into(), ..SecurityContext::default() };
        self.user_with(username, Rights { scopes: Scopes::READ, caller, tenant: None }).await;
    }

    async fn user_with(&self, username: &str, rights: Rights) {
        let user = User {
            username: username.into(),
            password_hash: Argon2Passwords::default().hash(PASSWORD).await,
            scopes: rights.scopes,
            caller: rights.caller,
            tenant: rights.tenant,
            created_at: now(),
            disabled_at: None,
        };
        assert!(self.store.add_user(&user, AuditEntry::default()).await.unwrap());
    }

    async fn identity_of(&self, token: &str) -> Result<Rights, AuthError> {
        let identity = self.authenticator.identify(Credential { bearer: token, client: None }).await?;
        let Identity { caller, scopes, tenant, .. } = identity;
        assert_eq!(caller.auth_method, AuthMethod::Jwt);
        // The rights do not depend on how their holder authenticates.
        let caller = SecurityContext { auth_method: AuthMethod::default(), ..caller };
        Ok(Rights { scopes, caller, tenant })
    }

    async fn get(&self, path: &str, authorization: Option<&str>) -> Answered {
        let headers = authorization.map(|value| json!({"authorization": value})).unwrap_or(json!({}));
        self.ask(json!({"path": path, "headers": headers})).await
    }

    async fn post(&self, path: &str, bearer: Option<&str>, body: &Json) -> Answered {
        let mut asked = json!({"method": "POST", "path": path, "json": body});
        if let Some(bearer) = bearer {
            asked["headers"] = json!({"authorization": format!("Bearer {bearer}")});
        }
        self.ask(asked).await
    }

    async fn ask(&self, asked: Json) -> Answered {
        let asked: TestRequest = serde_json::from_value(asked).unwrap();
        ask(&self.edge, &asked).await
    }

    async fn sign_in(&self, username: &str) -> (String, String) {
        let body = json!({"username": username, "password": PASSWORD});
        let answered = self.post("/api/v1/auth/token", None, &body).await;
        assert_eq!(answered.status, StatusCode::OK, "{}", text(&answered));
        assert_eq!(answered.headers["cache-control"], "no-store");
        pair(&answered)
    }

    async fn status_with(&self, token: &str) -> (u16, String) {
        let answered = self.get(CUBES, Some(&format!("Bearer {token}"))).await;
        (answered.status.as_u16(), code(&answered))
    }
}

const CUBES: &str = "/api/v1/query/meta/cubes";

fn now() -> Timestamp {
    Timestamp::from_second(NOW).unwrap()
}

fn text(answered: &Answered) -> String {
    String::from_utf8_lossy(&answered.body).into_owned()
}

fn body(answered: &Answered) -> Json {
    serde_json::from_slice(&answered.body).unwrap_or_default()
}

fn code(answered: &Answered) -> String {
    body(answered)["error"]["code"].as_str().unwrap_or_default().to_owned()
}

fn pair(answered: &Answered) -> (String, String) {
    let body = body(answered);
    assert_eq!(body["token_type"], "bearer");
    assert_eq!(body["expires_in"], 3_600);
    let text = |name: &str| body[name].as_str().unwrap().to_owned();
    (text("access_token"), text("refresh_token"))
}

#[tokio::test]
async fn every_route_requires_identity_and_scopes() {
    let house = House::with(None).await;
    let (_, read) = house.key(1, Scopes::READ, None).await;
    let (_, nothing) = house.key(2, Scopes::default(), None).await;
    for route in routes() {
        let path = route.path.replace("{cube_name}", "orders").replace("{provider}", "idp");
        let path = path.replace("{id}", "0123456789abcdef").replace("{name}", "ada");
        // The paths name the reader and its role, because a reader may read its own guardrails.
        let path = path.replace("{user_id}", "u1").replace("{role}", "analyst");
        let asked =
            |headers: Json| json!({"method": route.method.as_str(), "path": path, "json": {}, "headers": headers});
        let stranger = house.ask(asked(json!({}))).await.status.as_u16();
        let wrong = house.ask(asked(json!({"authorization": "Bearer nonsense"}))).await.status.as_u16();
        let powerless = house.ask(asked(json!({"authorization": format!("Bearer {nothing}")}))).await.status.as_u16();
        let reader = house.ask(asked(json!({"authorization": format!("Bearer {read}")}))).await.status.as_u16();
        match route.access {
            RouteAccess::Public => assert_ne!(stranger, 403, "{path}"),
            RouteAccess::Identified => assert_eq!((stranger, wrong), (401, 401), "{path}"),
            RouteAccess::Scoped(scope) => {
                // XMLA reports a missing right as a fault with the status 200.
                let refused = if path.ends_with("/xmla") { 200 } else { 403 };
                assert_eq!((stranger, wrong, powerless), (401, 401, refused), "{path}");
                assert_eq!(reader == 403, scope != Scope::Read, "{path}: {reader}");
            }
        }
    }
}

#[tokio::test]
async fn keys_are_valid_until_expired_or_revoked() {
    let house = House::with(None).await;
    let later = Timestamp::from_second(NOW + 60).unwrap();
    let (_, good) = house.key(1, Scopes::READ, Some(later)).await;
    let (_, expired) = house.key(2, Scopes::READ, Some(now())).await;
    let (id, revoked) = house.key(3, Scopes::READ, None).await;
    assert_eq!(house.status_with(&good).await.0, 200);
    assert_eq!(house.status_with(&expired).await, (401, "UNAUTHORIZED".to_owned()));
    house.authenticator.accounts().revoke_key(&Actor::default(), &id).await.unwrap();
    assert_eq!(house.status_with(&revoked).await, (401, "UNAUTHORIZED".to_owned()));
    let unknown = NewKey::from_random(&[9; 40]).text;
    let wrong_secret = format!("{}{}", &good[..21], &unknown[21..]);
    let cut = &good[..good.len() - 1];
    for wrong in [&unknown, &wrong_secret, cut, "trn_", "trn_x", &good.to_uppercase(), "' OR 1=1 --", "%00", "é"] {
        assert_eq!(house.status_with(wrong).await.0, 401, "{wrong}");
    }
}

#[tokio::test]
async fn several_credentials_in_one_request_are_rejected() {
    let house = House::with(Some(hs256())).await;
    let (_, key) = house.key(1, Scopes::READ, None).await;
    house.user("ada").await;
    let (token, _) = house.sign_in("ada").await;
    for (path, header, status) in [
        (format!("{CUBES}?api_key={key}"), None, 200),
        (CUBES.to_owned(), Some(format!("bearer  {key} ")), 200),
        (CUBES.to_owned(), Some(format!("Bearer {token}")), 200),
        // A token in an address is refused, because addresses are written to logs.
        (format!("{CUBES}?api_key={token}"), None, 401),
        (format!("{CUBES}?api_key={key}"), Some(format!("Bearer {key}")), 401),
        (format!("{CUBES}?api_key={key}&api_key={key}"), None, 401),
        (format!("{CUBES}?api_key="), None, 401),
        (CUBES.to_owned(), Some(key.clone()), 401),
        (CUBES.to_owned(), Some(format!("Basic {key}")), 401),
        (CUBES.to_owned(), Some("Bearer".to_owned()), 401),
        (CUBES.to_owned(), Some(String::new()), 401),
    ] {
        let answered = house.get(&path, header.as_deref()).await;
        assert_eq!(answered.status.as_u16(), status, "{path} {header:?}: {}", text(&answered));
        if status == 401 {
            assert_eq!(answered.headers["www-authenticate"], "Bearer");
            assert!(!text(&answered).contains(&key), "a refusal repeats no secret");
        }
    }
}

/// Returns a token that is signed with the right key after some of its claims were changed.
fn forged(session: &str, change: &Json) -> String {
    let mut claims = json!({
        "iss": "terrane", "aud": "terrane", "sub": "ada", "exp": NOW + 60, "iat": NOW, "scope": "read",
        "session_id": session,
    });
    for (name, value) in change.as_object().unwrap() {
        match value {
            Json::Null => claims.as_object_mut().unwrap().remove(name),
            value => claims.as_object_mut().unwrap().insert(name.clone(), value.clone()),
        };
    }
    jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &EncodingKey::from_secret(SECRET)).unwrap()
}

/// Returns the id of the session of an issued token.
fn session_of(token: &str) -> String {
    let mut validation = jsonwebtoken::Validation::new(Algorithm::HS256);
    validation.validate_exp = false;
    validation.validate_aud = false;
    let key = jsonwebtoken::DecodingKey::from_secret(SECRET);
    let claims = jsonwebtoken::decode::<Json>(token, &key, &validation).unwrap().claims;
    claims["session_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn invalid_claims_are_rejected() {
    let house = House::with(Some(hs256())).await;
    house.user("ada").await;
    let session = session_of(&house.sign_in("ada").await.0);
    for (change, status, code) in [
        (json!({}), 200, ""),
        (json!({"aud": ["other", "terrane"]}), 200, ""),
        (json!({"exp": NOW as f64 + 60.5}), 200, ""),
        (json!({"exp": NOW - 4}), 200, ""),
        (json!({"exp": NOW - 6}), 401, "TOKEN_EXPIRED"),
        (json!({"exp": 0}), 401, "TOKEN_EXPIRED"),
        (json!({"exp": -1e300}), 401, "TOKEN_EXPIRED"),
        (json!({"exp": null}), 401, "INVALID_TOKEN"),
        (json!({"exp": "9999999999"}), 401, "INVALID_TOKEN"),
        (json!({"exp": true}), 401, "INVALID_TOKEN"),
        (json!({"exp": [NOW + 60]}), 401, "INVALID_TOKEN"),
        (json!({"nbf": NOW + 60}), 401, "INVALID_TOKEN"),
        (json!({"nbf": "soon"}), 401, "INVALID_TOKEN"),
        (json!({"iat": NOW + 60}), 401, "INVALID_TOKEN"),
        (json!({"iss": null}), 401, "INVALID_TOKEN"),
        (json!({"iss": "Terrane"}), 401, "INVALID_TOKEN"),
        (json!({"iss": ["terrane"]}), 401, "INVALID_TOKEN"),
        (json!({"aud": null}), 401, "INVALID_TOKEN"),
        (json!({"aud": "other"}), 401, "INVALID_TOKEN"),
        (json!({"aud": []}), 401, "INVALID_TOKEN"),
        (json!({"sub": null}), 401, "INVALID_TOKEN"),
        (json!({"sub": ""}), 401, "INVALID_TOKEN"),
        (json!({"sub": 7}), 401, "INVALID_TOKEN"),
        (json!({"session_id": null}), 401, "INVALID_TOKEN"),
        (json!({"session_id": "0123456789abcdef0123456789abcdef"}), 401, "INVALID_TOKEN"),
        (json!({"filler": "x".repeat(20_000)}), 401, "INVALID_TOKEN"),
    ] {
        let found = house.status_with(&forged(&session, &change)).await;
        let shown: String = change.to_string().chars().take(80).collect();
        assert_eq!(found, (status, code.to_owned()), "{shown}");
    }
    let answered = house.get(CUBES, Some(&format!("Bearer {}", forged(&session, &json!({"exp": NOW - 60}))))).await;
    assert_eq!(body(&answered)["error"]["expired_at"], "2024-02-14T11:59:00Z");
}

/// Returns the rights of a reader who has a value of every kind that policies compare.
fn analyst(user_id: &str) -> Rights {
    let caller = SecurityContext {
        user_id: user_id.into(),
        email: Some("analyst@example.org".into()),
        roles: vec!["analyst".into()],
        groups: vec!["north".into()],
        attributes: [("tier".into(), Attribute::Many(vec![Value::Integer(1), Value::Null]))].into(),
        ..SecurityContext::default()
    };
    Rights { scopes: Scopes::READ, caller, tenant: Some("t1".into()) }
}

#[tokio::test]
async fn newly_signed_token_has_the_rights_of_its_session() {
    let house = House::with(Some(hs256())).await;
    house.user_with("ada", analyst("ada")).await;
    house.user("bob").await;
    let token = house.sign_in("ada").await.0;
    let (ada, bob) = (session_of(&token), session_of(&house.sign_in("bob").await.0));
    assert_eq!(house.identity_of(&token).await.unwrap(), analyst("ada"));
    for change in [
        json!({}),
        json!({"scope": "read write admin"}),
        json!({"scope": null, "scp": ["admin"]}),
        json!({"roles": ["admin"]}),
        json!({"roles": []}),
        json!({"groups": ["south"]}),
        json!({"attributes": {"tier": 3}}),
        json!({"attributes": null}),
        json!({"tenant": "t2"}),
        json!({"tenant": null}),
        json!({"email": "bob@example.org", "email_verified": true}),
        json!({"username": "bob", "user_id": "bob", "iat": NOW + 1}),
        json!({"exp": NOW + 1_000_000_000}),
    ] {
        let forged = forged(&ada, &change);
        assert_eq!(house.identity_of(&forged).await.unwrap(), analyst("ada"), "{change}");
        let audit = house.get("/api/v1/audit", Some(&format!("Bearer {forged}"))).await;
        assert_eq!(audit.status, StatusCode::FORBIDDEN, "{change}");
    }
    for (session, change) in [
        (&ada, json!({"sub": "bob"})),
        (&ada, json!({"sub": "ADA"})),
        (&ada, json!({"sub": "ada "})),
        (&bob, json!({})),
        (&bob, json!({"sub": "ada", "username": "bob"})),
    ] {
        let found = house.status_with(&forged(session, &change)).await;
        assert_eq!(found, (401, "INVALID_TOKEN".to_owned()), "{session} {change}");
    }
    let of_bob = house.identity_of(&forged(&bob, &json!({"sub": "bob", "roles": ["admin"]}))).await.unwrap();
    assert!(of_bob.caller.roles.is_empty(), "{of_bob:?}");
}

/// Creates a session as a server would, and returns its refresh token.
async fn begin_session(house: &House, id: &str, rights: Option<Rights>) -> String {
    let session =
        Session { id: id.into(), username: "ada".into(), created_at: now(), ended_at: None, is_guest: false, rights };
    let text = format!("trr_{id}");
    let expires_at = Timestamp::from_second(NOW + 60).unwrap();
    let token = RefreshToken { hash: api_key::hash(&text), session_id: id.into(), expires_at };
    assert!(house.store.begin_session(&session, &token, None, AuditEntry::default()).await.unwrap());
    text
}

#[tokio::test]
async fn refreshed_token_has_the_current_rights_of_the_user() {
    let house = House::with(Some(hs256())).await;
    house.user_with("ada", analyst("ada")).await;
    let former = Rights { scopes: Scopes { admin: true, ..Scopes::READ }, tenant: None, ..analyst("ada") };
    let refresh_token = begin_session(&house, "s1", Some(former.clone())).await;
    let token = forged("s1", &json!({}));
    assert_eq!(house.identity_of(&token).await.unwrap(), former);
    let answered = house.post("/api/v1/auth/refresh", None, &json!({"refresh_token": refresh_token})).await;
    assert_eq!(answered.status, StatusCode::OK, "{}", text(&answered));
    assert_eq!(house.identity_of(&pair(&answered).0).await.unwrap(), analyst("ada"));
    assert_eq!(house.identity_of(&token).await.unwrap(), analyst("ada"), "the older token too");
    assert_eq!(house.store.session("s1").await.unwrap().unwrap().rights, Some(analyst("ada")));
}

#[tokio::test]
async fn session_without_recorded_rights_has_those_of_its_user() {
    let house = House::with(Some(hs256())).await;
    house.user_with("ada", analyst("ada")).await;
    begin_session(&house, "s1", None).await;
    let token = forged("s1", &json!({"roles": ["admin"], "scope": "admin"}));
    assert_eq!(house.identity_of(&token).await.unwrap(), analyst("ada"));
    assert_eq!(house.status_with(&forged("s1", &json!({"sub": "bob"}))).await.0, 401);
    let house = House::with(Some(hs256())).await;
    house.user_with("ada", analyst("ada")).await;
    begin_session(&house, "s1", None).await;
    house.authenticator.accounts().disable_user(&Actor::default(), "ada").await.unwrap();
    assert_eq!(house.status_with(&token).await, (401, "INVALID_TOKEN".to_owned()));
}

#[tokio::test]
async fn token_header_does_not_influence_verification() {
    for key in [hs256(), SigningKey::Rs256 { private: Some(PRIVATE_PEM.to_vec()), public: PUBLIC_PEM.to_vec() }] {
        let is_rsa = matches!(key, SigningKey::Rs256 { .. });
        let house = House::with(Some(key)).await;
        house.user("ada").await;
        let (token, _) = house.sign_in("ada").await;
        assert_eq!(house.status_with(&token).await.0, 200);
        let parts: Vec<&str> = token.split('.').collect();
        let header = |json: &Json| terrane_app::security::api_key::base64url(json.to_string().as_bytes());
        let none = header(&json!({"alg": "none", "typ": "JWT"}));
        let claims = json!({"iss": "terrane", "aud": "terrane", "sub": "ada", "exp": NOW + 60, "session_id": "x"});
        let sign = |algorithm, secret: &[u8]| {
            jsonwebtoken::encode(&Header::new(algorithm), &claims, &EncodingKey::from_secret(secret)).unwrap()
        };
        let mut with_kid = Header::new(Algorithm::HS256);
        with_kid.kid = Some("../../../../dev/null".to_owned());
        with_kid.jku = Some("https://127.0.0.1:1/keys".to_owned());
        let empty = EncodingKey::from_secret(b"");
        let mut forgeries = vec![
            format!("{none}.{}.", parts[1]),
            format!("{none}.{}.{}", parts[1], parts[2]),
            format!("{}.{}.", parts[0], parts[1]),
            format!("{}.{}", parts[0], parts[1]),
            format!("{token}."),
            format!("{token}.x"),
            token[..token.len() - 2].to_owned(),
            format!("{}.{}.{}", parts[0], header(&claims), parts[2]),
            sign(Algorithm::HS384, SECRET),
            sign(Algorithm::HS512, SECRET),
            sign(Algorithm::HS256, b"another secret that is long enough too"),
            sign(Algorithm::HS256, PUBLIC_PEM),
            jsonwebtoken::encode(&with_kid, &claims, &empty).unwrap(),
            "..".to_owned(),
            "a.b.c".to_owned(),
            ".".repeat(10_000),
        ];
        if is_rsa {
            forgeries.push(sign(Algorithm::HS256, SECRET));
        }
        for forgery in forgeries {
            let found = house.status_with(&forgery).await;
            assert_eq!(found, (401, "INVALID_TOKEN".to_owned()), "{}", forgery.chars().take(100).collect::<String>());
        }
    }
}

#[tokio::test]
async fn refresh_token_is_valid_once() {
    let house = House::with(Some(hs256())).await;
    house.user("ada").await;
    let (_, first) = house.sign_in("ada").await;
    let refresh = |token: String| {
        let house = &house;
        async move { house.post("/api/v1/auth/refresh", None, &json!({"refresh_token": token})).await }
    };
    let answered = refresh(first.clone()).await;
    assert_eq!(answered.status, StatusCode::OK, "{}", text(&answered));
    let (access, second) = pair(&answered);
    assert_ne!(first, second);
    assert_eq!(house.status_with(&access).await.0, 200);
    // A refresh token that is used twice may have been copied, so the session ends for both users of the token.
    assert_eq!(code(&refresh(first).await), "INVALID_TOKEN");
    assert_eq!(code(&refresh(second).await), "INVALID_TOKEN");
    assert_eq!(house.status_with(&access).await, (401, "INVALID_TOKEN".to_owned()));
    assert_eq!(code(&refresh("made up".to_owned()).await), "INVALID_TOKEN");
}

#[tokio::test]
async fn unknown_query_parameter_is_refused_on_routes_of_identified_callers() {
    let house = House::with(Some(hs256())).await;
    house.user("ada").await;
    let (access, refresh) = house.sign_in("ada").await;
    let identified = routes().into_iter().filter(|route| route.access == RouteAccess::Identified);
    let paths: Vec<&str> = identified.map(|route| route.path).collect();
    assert!(!paths.is_empty());
    for path in paths {
        let body = json!({"refresh_token": refresh});
        let answered = house.post(&format!("{path}?surplus_field=1"), Some(&access), &body).await;
        let found = (answered.status.as_u16(), self::body(&answered)["error"]["details"]["field"].clone());
        assert_eq!(found, (400, json!("surplus_field")), "{path}: {}", text(&answered));
    }
    assert_eq!(house.status_with(&access).await.0, 200);
}

#[tokio::test]
async fn sign_out_ends_only_the_session_of_the_caller() {
    let house = House::with(Some(hs256())).await;
    house.user("ada").await;
    house.user("bob").await;
    let (ada, of_ada) = house.sign_in("ada").await;
    let (bob, of_bob) = house.sign_in("bob").await;
    let revoke = |bearer: String, token: String| {
        let house = &house;
        async move { house.post("/api/v1/auth/revoke", Some(&bearer), &json!({"refresh_token": token})).await }
    };
    assert_eq!(revoke(ada.clone(), of_bob.clone()).await.status.as_u16(), 401);
    assert_eq!(house.status_with(&bob).await.0, 200);
    assert_eq!(revoke(bob.clone(), of_bob.clone()).await.status.as_u16(), 200);
    assert_eq!(house.status_with(&bob).await, (401, "INVALID_TOKEN".to_owned()));
    let again = house.post("/api/v1/auth/refresh", None, &json!({"refresh_token": of_bob})).await;
    assert_eq!(code(&again), "INVALID_TOKEN");
    assert_eq!(house.status_with(&ada).await.0, 200);
    house.authenticator.accounts().disable_user(&Actor::default(), "ada").await.unwrap();
    let again = house.post("/api/v1/auth/refresh", None, &json!({"refresh_token": of_ada})).await;
    assert_eq!(code(&again), "INVALID_TOKEN");
}

#[tokio::test]
async fn password_guessing_is_throttled() {
    let house = House::with(Some(hs256())).await;
    house.user("ada").await;
    let attempt = |username: &'static str, password: &'static str| {
        let house = &house;
        let body = json!({"username": username, "password": password});
        async move { house.post("/api/v1/auth/token", None, &body).await }
    };
    let (unknown, wrong) = (attempt("eve", "x").await, attempt("ada", "x").await);
    assert_eq!((code(&unknown), code(&wrong)), ("UNAUTHORIZED".to_owned(), "UNAUTHORIZED".to_owned()));
    assert_eq!(
        body(&unknown)["error"]["message"],
        body(&wrong)["error"]["message"],
        "the answer does not disclose whether the name exists"
    );
    for _ in 0..4 {
        assert_eq!(attempt("ada", "x").await.status.as_u16(), 401);
    }
    let refused = attempt("ada", PASSWORD).await;
    assert_eq!((refused.status.as_u16(), code(&refused)), (429, "RATE_LIMITED".to_owned()));
    assert!(refused.headers.contains_key("retry-after"));
    assert_eq!(attempt("eve", "x").await.status.as_u16(), 401, "others are not shut out");
    for body in [
        json!({}),
        json!({"username": "ada"}),
        json!({"username": 5, "password": "x"}),
        json!({"user": "a"}),
        json!([]),
    ] {
        let answered = house.post("/api/v1/auth/token", None, &body).await;
        assert_eq!(answered.status.as_u16(), 400, "{body}");
    }
}

#[tokio::test]
async fn events_are_audited_without_secrets() {
    let house = House::with(Some(hs256())).await;
    let (_, admin) = house.key(1, Scopes { admin: true, ..Scopes::default() }, None).await;
    let (_, read) = house.key(2, Scopes::READ, None).await;
    house.user("ada").await;
    let (access, refresh) = house.sign_in("ada").await;
    house.post("/api/v1/auth/refresh", None, &json!({"refresh_token": refresh})).await;
    house.post("/api/v1/auth/token", None, &json!({"username": "ada", "password": "not it, certainly"})).await;
    for _ in 0..3 {
        house.get("/api/v1/audit", Some(&format!("Bearer {read}"))).await;
    }
    house.get(CUBES, None).await;
    let answered = house.get("/api/v1/audit?limit=1000", Some(&format!("Bearer {admin}"))).await;
    assert_eq!(answered.status, StatusCode::OK, "{}", text(&answered));
    let records = body(&answered)["records"].as_array().unwrap().clone();
    let count = |event: &str, reason: Json| -> u64 {
        let alike = records.iter().filter(|record| record["event"] == event && record["reason"] == reason);
        alike.map(|record| record["count"].as_u64().unwrap()).sum()
    };
    assert_eq!(count("access_denied", "missing scope".into()), 3);
    assert_eq!(count("access_denied", "no credentials".into()), 1);
    assert_eq!(count("authentication_failure", "wrong user name or password".into()), 1);
    assert_eq!(count("session_started", Json::Null), 1);
    assert_eq!(count("session_refreshed", Json::Null), 1);
    assert_eq!(count("authentication_success", Json::Null), 4, "{records:#?}");
    for secret in [&*admin, &*read, &*access, &*refresh, PASSWORD, "not it, certainly"] {
        assert!(!text(&answered).contains(secret));
    }
    assert!(matches!(house.store.verify().await.unwrap(), ChainState::Whole { records, .. } if records >= 8));
    let page = house.get("/api/v1/audit?event=access_denied&limit=1", Some(&format!("Bearer {admin}"))).await;
    let page = body(&page);
    assert_eq!(page["records"].as_array().unwrap().len(), 1);
    let next = page["next"].as_u64().unwrap();
    let filter = AuditFilter { before: Some(next), limit: 10, ..AuditFilter::default() };
    assert!(house.store.records(&filter).await.unwrap().iter().all(|record| record.sequence < next));
    for wrong in ["since=yesterday", "limit=x", "evnt=a"] {
        let answered = house.get(&format!("/api/v1/audit?{wrong}"), Some(&format!("Bearer {admin}"))).await;
        assert_eq!(answered.status.as_u16(), 400, "{wrong}");
    }
}

/// The records are read without a flush, as after a server was killed.
#[tokio::test]
async fn denial_is_on_disk_before_it_is_answered() {
    let house = House::with(Some(hs256())).await;
    let (_, read) = house.key(2, Scopes::READ, None).await;
    house.user("ada").await;
    let records = async || house.store.records(&AuditFilter { limit: 100, ..AuditFilter::default() }).await.unwrap();
    let before = records().await.len();
    house.get(CUBES, None).await;
    house.get(CUBES, Some("Bearer invalid")).await;
    assert_eq!(records().await.len(), before, "strangers don't make the server write");
    let denied = house.get("/api/v1/audit", Some(&format!("Bearer {read}"))).await;
    assert_eq!(denied.status, StatusCode::FORBIDDEN);
    let written = records().await;
    let of = |event: &str, actor: &str| {
        written.iter().find(|record| &*record.entry.event == event && &*record.entry.actor == actor).map(|r| &r.entry)
    };
    let correlation_id = denied.headers["x-correlation-id"].to_str().unwrap();
    for event in ["access_denied", "authentication_success"] {
        let entry = of(event, "u1").unwrap_or_else(|| panic!("no {event} of u1 in {written:#?}"));
        assert_eq!(entry.correlation_id.as_deref(), Some(correlation_id), "{event}");
    }
    let body = json!({"username": "ada", "password": PASSWORD});
    let answered = house.post("/api/v1/auth/token", None, &body).await;
    let written = records().await;
    let started = written.iter().find(|record| &*record.entry.event == "session_started").unwrap();
    let correlation_id = answered.headers["x-correlation-id"].to_str().unwrap();
    assert_eq!(started.entry.correlation_id.as_deref(), Some(correlation_id));
}

#[tokio::test]
async fn unavailable_store_rejects_callers_and_discloses_nothing() {
    let edge = World { caller: Caller::Stranger, ..World::default() }.edge_with(Security::of_a_broken_store());
    let key = NewKey::from_random(&[1; 40]).text;
    let asked = json!({"path": CUBES, "headers": {"authorization": format!("Bearer {key}")}});
    let answered = ask(&edge, &serde_json::from_value(asked).unwrap()).await;
    assert_eq!((answered.status.as_u16(), code(&answered)), (503, "STATE_UNAVAILABLE".to_owned()));
    assert!(answered.headers.contains_key("retry-after"));
    assert!(!text(&answered).contains(terrane_conformance_tests::fakes::SECRET));
}
