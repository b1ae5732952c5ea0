//! Tests tokens that applications sign for their users: the rights that the tokens grant, and invalid tokens.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::sync::Arc;

use jiff::Timestamp;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value as Json, json};
use tempfile::TempDir;
use terrane_app::accounts::Actor;
use terrane_app::domain::RequestContext;
use terrane_app::ports::audit::{AuditEntry, AuditFilter, AuditLog as _};
use terrane_app::ports::credentials::{Credentials as _, RevokedTokens, User};
use terrane_app::ports::tokens::Passwords as _;
use terrane_app::security::api_key::base64url;
use terrane_app::security::{AuthError, AuthMethod, Authenticator, Credential, Identity, RequestOrigin, Scopes};
use terrane_compiler::types::Value;
use terrane_compiler::{Attribute, SecurityContext};
use terrane_conformance_tests::case::{Caller, World, ask};
use terrane_conformance_tests::security::Security;
use terrane_identity::{
    ApplicationSettings, Argon2Passwords, ClaimPath, ClaimsMapping, Jwt, JwtSettings, ScopeRoles, SigningKey,
};
use terrane_server::Edge;
use terrane_store::StateStore;

/// Noon of 14 February 2024, the time of the cases' clock.
const NOW: i64 = 1_707_912_000;
const SECRET: &[u8] = b"a secret of the tests that is long enough";
/// The key of the server, which no application knows.
const PROOF_KEY: [u8; 32] = [7; 32];
const PRIVATE_PEM: &[u8] = include_bytes!("../keys/test_only.pem");
const PUBLIC_PEM: &[u8] = include_bytes!("../keys/test_only.pub.pem");
const OTHER_PEM: &[u8] = include_bytes!("../keys/test_only_other.pem");
const PASSWORD: &str = "correct horse battery staple";
const CUBES: &str = "/api/v1/query/meta/cubes";
const MAX_AGE: i64 = 3_600;

struct House {
    edge: Edge,
    store: Arc<StateStore>,
    authenticator: Arc<Authenticator>,
    _folder: TempDir,
}

fn hs256() -> SigningKey {
    SigningKey::Hs256 { secret: SECRET.to_vec() }
}

fn public_only() -> SigningKey {
    SigningKey::Rs256 { private: None, public: PUBLIC_PEM.to_vec() }
}

fn settings() -> ApplicationSettings {
    ApplicationSettings {
        issuer: None,
        audience: None,
        default_audience: "terrane".to_owned(),
        max_age_seconds: 3_600,
        mapping: ClaimsMapping::default(),
        has_scopes_claim: false,
    }
}

fn own_tokens(key: SigningKey) -> Jwt {
    Jwt::new(JwtSettings {
        key,
        issuer: "terrane".to_owned(),
        audience: "terrane".to_owned(),
        verify_exp: false,
        verify_iat: false,
        mapping: ClaimsMapping::default(),
    })
    .unwrap()
}

impl House {
    async fn with(key: SigningKey, applications: Option<ApplicationSettings>) -> House {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(StateStore::open("sqlite://state.db", folder.path()).await.unwrap());
        let tokens = own_tokens(key);
        let tokens = match applications {
            Some(applications) => tokens.with_applications(applications, PROOF_KEY),
            None => tokens,
        };
        let world = World { caller: Caller::Stranger, ..World::default() };
        let security = Security::of(store.clone(), Some(Arc::new(tokens)));
        let edge = world.edge_with(security);
        let authenticator = edge.app().services.authenticator.clone();
        House { edge, store, authenticator, _folder: folder }
    }

    async fn identify(&self, token: &str) -> Result<Identity, AuthError> {
        self.authenticator.identify(Credential { bearer: token, client: None }).await
    }

    async fn get(&self, path: &str, token: &str) -> (u16, String) {
        let asked = json!({"path": path, "headers": {"authorization": format!("Bearer {token}")}});
        self.ask(&asked).await
    }

    async fn ask(&self, asked: &Json) -> (u16, String) {
        let answered = ask(&self.edge, &serde_json::from_value(asked.clone()).unwrap()).await;
        let body: Json = serde_json::from_slice(&answered.body).unwrap_or_default();
        (answered.status.as_u16(), body["error"]["code"].as_str().unwrap_or_default().to_owned())
    }

    /// Returns the token and the claims of an administrator's session that began with a password.
    async fn admin_session(&self) -> (String, Json) {
        let user = User {
            username: "root".into(),
            password_hash: Argon2Passwords::default().hash(PASSWORD).await,
            scopes: Scopes { admin: true, ..Scopes::READ },
            caller: SecurityContext {
                user_id: "root".into(),
                roles: vec!["boss".into()],
                ..SecurityContext::default()
            },
            tenant: None,
            created_at: Timestamp::from_second(NOW).unwrap(),
            disabled_at: None,
        };
        self.store.add_user(&user, AuditEntry::default()).await.unwrap();
        let pair = self.authenticator.sign_in("root", PASSWORD, &RequestContext::default()).await.unwrap();
        let claims = jsonwebtoken::dangerous::insecure_decode_claims::<Json>(&pair.access_token).unwrap();
        (pair.access_token, claims)
    }
}

fn changed(mut claims: Json, change: &Json) -> Json {
    for (name, value) in change.as_object().unwrap() {
        match value {
            Json::Null => claims.as_object_mut().unwrap().remove(name),
            value => claims.as_object_mut().unwrap().insert(name.clone(), value.clone()),
        };
    }
    claims
}

/// Returns the claims of a valid token after a change. A null in the change removes the claim.
fn claims(change: &Json) -> Json {
    changed(json!({"sub": "customer-17", "iat": NOW, "exp": NOW + 600, "roles": ["viewer"]}), change)
}

fn sign(claims: &Json) -> String {
    jsonwebtoken::encode(&Header::new(Algorithm::HS256), claims, &EncodingKey::from_secret(SECRET)).unwrap()
}

/// Returns a token with exactly this header and payload, signed with the right key.
fn sign_text(header: &str, payload: &str) -> String {
    let message = format!("{}.{}", base64url(header.as_bytes()), base64url(payload.as_bytes()));
    let key = EncodingKey::from_secret(SECRET);
    let signature = jsonwebtoken::crypto::sign(message.as_bytes(), &key, Algorithm::HS256).unwrap();
    format!("{message}.{signature}")
}

fn refused() -> (u16, String) {
    (401, "INVALID_TOKEN".to_owned())
}

#[tokio::test]
async fn application_tokens_are_off_by_default() {
    let house = House::with(hs256(), None).await;
    let token = sign(&claims(&json!({"iss": "terrane", "aud": "terrane"})));
    assert_eq!(house.get(CUBES, &token).await, refused());
}

#[tokio::test]
async fn application_tokens_define_users_roles_and_attributes() {
    let mapping = ClaimsMapping {
        user_id: ClaimPath::new("user.id"),
        roles: ClaimPath::new("user.access.roles"),
        attributes: ClaimPath::new("user.attributes"),
        ..ClaimsMapping::default()
    };
    let house = House::with(hs256(), Some(ApplicationSettings { mapping, ..settings() })).await;
    let user = json!({"id": "u1", "access": {"roles": ["viewer"]}, "attributes": {"region": "EU", "tiers": [1, 2]}});
    let token = sign(&claims(&json!({"user": user, "groups": "north", "email": "a@b.example", "roles": ["admin"]})));
    let identity = house.identify(&token).await.unwrap();
    assert_eq!((identity.method(), identity.scopes), (AuthMethod::Jwt, Scopes::READ));
    let word = |text: &str| Attribute::One(Value::Text(text.into()));
    let tiers = Attribute::Many(vec![Value::Integer(1), Value::Integer(2)]);
    let expected = SecurityContext {
        user_id: "u1".into(),
        email: Some("a@b.example".into()),
        roles: vec!["viewer".into()],
        groups: vec!["north".into()],
        attributes: [("region".into(), word("EU")), ("tiers".into(), tiers)].into(),
        auth_method: AuthMethod::Jwt,
    };
    assert_eq!(identity.caller, expected);
    assert_eq!(house.get(CUBES, &token).await.0, 200);
}

#[tokio::test]
async fn claims_of_an_application_are_checked() {
    let house = House::with(hs256(), Some(settings())).await;
    let later = NOW + 100_000;
    for (change, status) in [
        (json!({}), 200),
        (json!({"roles": null}), 200),
        (json!({"iat": null}), 200),
        (json!({"exp": NOW + MAX_AGE}), 200),
        (json!({"exp": NOW as f64 + 60.5}), 200),
        (json!({"iss": "https://app.example"}), 200),
        (json!({"aud": ["x", "terrane"]}), 200),
        (json!({"email": "a@b.example", "attributes": {"a": [1, "x", true, null], "b": null}}), 200),
        // Expiry and lifetime.
        (json!({"exp": null}), 401),
        (json!({"exp": (NOW + 60).to_string()}), 401),
        (json!({"exp": true}), 401),
        (json!({"exp": {}}), 401),
        (json!({"exp": NOW + MAX_AGE + 1}), 401),
        (json!({"exp": 1e300}), 401),
        (json!({"exp": i64::MAX}), 401),
        (json!({"exp": u64::MAX}), 401),
        (json!({"exp": later, "iat": null}), 401),
        (json!({"exp": later, "iat": later}), 401),
        (json!({"exp": later, "iat": later - 60}), 401),
        (json!({"iat": NOW - MAX_AGE}), 401),
        (json!({"iat": -1e300}), 401),
        (json!({"iat": "0"}), 401),
        (json!({"iat": NOW + 60}), 401),
        (json!({"nbf": NOW + 60}), 401),
        (json!({"nbf": "0"}), 401),
        // A token for another service that has the same secret.
        (json!({"aud": "mail"}), 401),
        (json!({"aud": []}), 401),
        (json!({"aud": 5}), 401),
        (json!({"cnf": {"jkt": "x"}}), 401),
        // JSON types.
        (json!({"sub": null}), 401),
        (json!({"sub": ""}), 401),
        (json!({"sub": 7}), 401),
        (json!({"sub": ["customer-17"]}), 401),
        (json!({"roles": 5}), 401),
        (json!({"roles": ["viewer", 5]}), 401),
        (json!({"roles": {"viewer": true}}), 401),
        (json!({"roles": [["viewer"]]}), 401),
        (json!({"groups": false}), 401),
        (json!({"attributes": []}), 401),
        (json!({"attributes": "region=EU"}), 401),
        (json!({"attributes": {"region": {"name": "EU"}}}), 401),
        (json!({"attributes": {"region": [["EU"]]}}), 401),
        (json!({"email": 5}), 401),
        (json!({"scope": {"admin": true}}), 401),
        (json!({"scp": [5]}), 401),
        (json!({"jti": 5}), 401),
        // Names that are too long for a revocation.
        (json!({"jti": "j".repeat(256)}), 200),
        (json!({"jti": "j".repeat(257)}), 401),
        (json!({"sub": "s".repeat(257)}), 401),
        (json!({"jti": "a\u{0}"}), 401),
        (json!({"sub": "a\u{0}"}), 401),
        (json!({"sub": "a\nb"}), 401),
        // Sizes.
        (json!({"filler": "x".repeat(20_000)}), 401),
        (json!({"roles": vec!["r"; 10_000]}), 401),
    ] {
        let shown: String = change.to_string().chars().take(80).collect();
        assert_eq!(house.get(CUBES, &sign(&claims(&change))).await.0, status, "{shown}");
    }
    let expired = house.get(CUBES, &sign(&claims(&json!({"exp": NOW - 6})))).await;
    assert_eq!(expired, (401, "TOKEN_EXPIRED".to_owned()), "also where `verify_exp` is false");
}

#[tokio::test]
async fn configured_issuer_and_audience_are_required() {
    let strict = ApplicationSettings { issuer: Some("app".into()), audience: Some("data".into()), ..settings() };
    let house = House::with(hs256(), Some(strict)).await;
    for (change, status) in [
        (json!({"iss": "app", "aud": "data"}), 200),
        (json!({"iss": "app", "aud": ["mail", "data"]}), 200),
        (json!({"iss": "app"}), 401),
        (json!({"iss": "app", "aud": "terrane"}), 401),
        (json!({"iss": "app", "aud": "data "}), 401),
        (json!({"aud": "data"}), 401),
        (json!({"iss": "App", "aud": "data"}), 401),
        (json!({"iss": ["app"], "aud": "data"}), 401),
    ] {
        assert_eq!(house.get(CUBES, &sign(&claims(&change))).await.0, status, "{change}");
    }
}

#[tokio::test]
async fn scalar_at_the_path_of_a_nested_claim_is_rejected() {
    let mapping = ClaimsMapping { roles: ClaimPath::new("a.roles"), ..ClaimsMapping::default() };
    let house = House::with(hs256(), Some(ApplicationSettings { mapping, ..settings() })).await;
    for (change, status) in [
        (json!({}), 200),
        (json!({"a": {}}), 200),
        (json!({"a": {"roles": ["x"]}}), 200),
        (json!({"a.roles": ["x"], "a": 5}), 200),
        (json!({"a": 5}), 401),
        (json!({"a": ["roles"]}), 401),
        (json!({"a": {"roles": 5}}), 401),
    ] {
        assert_eq!(house.get(CUBES, &sign(&claims(&change))).await.0, status, "{change}");
    }
}

#[tokio::test]
async fn repeated_claims_are_refused() {
    let house = House::with(hs256(), Some(settings())).await;
    const HEADER: &str = r#"{"alg":"HS256","typ":"JWT"}"#;
    let times = format!(r#""iat":{NOW},"exp":{}"#, NOW + 60);
    for (payload, status) in [
        (format!(r#"{{"sub":"a",{times},"attributes":{{"v":1.25,"w":-3,"x":null,"y":true}}}}"#), 200),
        (format!(r#"{{"sub":"a","sub":"b",{times}}}"#), 401),
        (format!(r#"{{"sub":"a","s\u0075b":"b",{times}}}"#), 401),
        (format!(r#"{{"sub":"a","roles":[],"roles":["boss"],{times}}}"#), 401),
        (format!(r#"{{"sub":"a","attributes":{{"r":"EU","r":"US"}},{times}}}"#), 401),
        (format!(r#"{{"sub":"a","x":[{{"r":1,"r":2}}],{times}}}"#), 401),
        (format!(r#"{{"sub":"a",{times},"exp":{}}}"#, NOW + 61), 401),
        (format!(r#"[{{"sub":"a",{times}}}]"#), 401),
        (format!("{}{}", r#"{"x":"#.repeat(200), "}".repeat(200)), 401),
    ] {
        assert_eq!(house.get(CUBES, &sign_text(HEADER, &payload)).await.0, status, "{payload}");
    }
    let payload = format!(r#"{{"sub":"a",{times}}}"#);
    for header in [
        r#"{"alg":"HS256","alg":"none"}"#,
        r#"{"alg":"none","alg":"HS256"}"#,
        r#"{"alg":"HS256","typ":"id+jwt"}"#,
        r#"{"alg":"HS256","crit":["exp"]}"#,
        r#"{"alg":"HS256","b64":false}"#,
        r#"{"alg":"HS256","cty":"JWT"}"#,
        r#"{"alg":"HS256","zip":"DEF"}"#,
    ] {
        assert_eq!(house.get(CUBES, &sign_text(header, &payload)).await, refused(), "{header}");
    }
}

#[tokio::test]
async fn only_the_configured_algorithm_is_accepted() {
    let good = claims(&json!({}));
    let hmac = |algorithm, secret: &[u8]| {
        jsonwebtoken::encode(&Header::new(algorithm), &good, &EncodingKey::from_secret(secret)).unwrap()
    };
    let rsa = |algorithm, pem: &[u8]| {
        jsonwebtoken::encode(&Header::new(algorithm), &good, &EncodingKey::from_rsa_pem(pem).unwrap()).unwrap()
    };
    let payload = base64url(good.to_string().as_bytes());
    let none = |header: &str| format!("{}.{payload}.", base64url(header.as_bytes()));
    let unsigned = [none(r#"{"alg":"none"}"#), none(r#"{"alg":"None"}"#), none("{}"), none(r#"{"alg":"HS256"}"#)];
    let of_rsa = rsa(Algorithm::RS256, PRIVATE_PEM);
    let of_secret = hmac(Algorithm::HS256, SECRET);

    let house = House::with(hs256(), Some(settings())).await;
    assert_eq!(house.get(CUBES, &of_secret).await.0, 200);
    let wrong = [
        hmac(Algorithm::HS384, SECRET),
        hmac(Algorithm::HS512, SECRET),
        hmac(Algorithm::HS256, b"another secret that is long enough too"),
        hmac(Algorithm::HS256, b""),
        of_rsa.clone(),
    ];
    for token in wrong.iter().chain(&unsigned) {
        assert_eq!(house.get(CUBES, token).await, refused(), "{token}");
    }

    let pair = SigningKey::Rs256 { private: Some(PRIVATE_PEM.to_vec()), public: PUBLIC_PEM.to_vec() };
    for key in [public_only(), pair] {
        let house = House::with(key, Some(settings())).await;
        assert_eq!(house.get(CUBES, &of_rsa).await.0, 200);
        let wrong = [
            // The public key is used as an HMAC secret.
            hmac(Algorithm::HS256, PUBLIC_PEM),
            hmac(Algorithm::HS256, PUBLIC_PEM.trim_ascii()),
            of_secret.clone(),
            rsa(Algorithm::RS256, OTHER_PEM),
            rsa(Algorithm::RS384, PRIVATE_PEM),
            rsa(Algorithm::PS256, PRIVATE_PEM),
        ];
        for token in wrong.iter().chain(&unsigned) {
            assert_eq!(house.get(CUBES, token).await, refused(), "{token}");
        }
    }
}

#[tokio::test]
async fn application_tokens_cannot_name_sessions_of_the_server() {
    let pair = SigningKey::Rs256 { private: Some(PRIVATE_PEM.to_vec()), public: PUBLIC_PEM.to_vec() };
    for (key, algorithm, signing) in [
        (hs256(), Algorithm::HS256, EncodingKey::from_secret(SECRET)),
        (pair, Algorithm::RS256, EncodingKey::from_rsa_pem(PRIVATE_PEM).unwrap()),
    ] {
        let house = House::with(key, Some(settings())).await;
        let (token, session) = house.admin_session().await;
        assert_eq!(house.get("/api/v1/audit", &token).await.0, 200, "a session keeps working");
        let (id, proof) = (session["session_id"].as_str().unwrap(), session["session_proof"].as_str().unwrap());
        let sign = |claims: &Json| jsonwebtoken::encode(&Header::new(algorithm), claims, &signing).unwrap();
        let own = json!({"iss": "terrane", "aud": "terrane", "sub": "root"});
        let with = |change: &Json| sign(&changed(changed(claims(&json!({})), &own), change));
        for change in [
            json!({"session_id": id}),
            json!({"session_id": id, "session_proof": ""}),
            json!({"session_id": id, "session_proof": id}),
            json!({"session_id": id, "session_proof": proof}),
            json!({"session_id": id, "session_proof": [proof]}),
            json!({"session_id": id, "session_proof": proof, "iat": session["iat"], "exp": session["exp"], "sub": "ada"}),
            json!({"session_id": id, "session_proof": proof, "iat": session["iat"], "exp": NOW + 3_601}),
            json!({"session_id": [id], "session_proof": proof, "iat": session["iat"], "exp": session["exp"]}),
            json!({"session_proof": proof}),
            json!({"session_id": ""}),
            json!({"session_id": 5}),
            json!({"session_id": "made-up"}),
        ] {
            assert_eq!(house.get(CUBES, &with(&change)).await, refused(), "{change}");
        }
        // The token of an older server, which issued no proof of the session.
        let older = changed(session.clone(), &json!({"session_proof": null}));
        assert_eq!(house.get(CUBES, &sign(&older)).await, refused());
        // These claims contain a session id, but they do not identify a session in an application's token.
        for change in
            [json!({"jti": id}), json!({"sid": id}), json!({"sub": format!("session:{id}")}), json!({"sub": id})]
        {
            let identity = house.identify(&with(&change)).await.unwrap();
            assert_eq!(identity.scopes, Scopes::READ, "{change}");
            assert_eq!(identity.caller.roles, [Arc::<str>::from("viewer")], "{change}");
            assert!(identity.credential.starts_with("user:"), "{change}");
        }
        // An application's token for the administrator grants only the rights that the application may give.
        let identity = house.identify(&with(&json!({}))).await.unwrap();
        assert_eq!((identity.scopes, &*identity.caller.user_id), (Scopes::READ, "root"));
    }
}

/// The holder of the shared secret knows everything except the key of the proof.
#[tokio::test]
async fn proof_cannot_be_made_with_the_shared_secret() {
    let house = House::with(hs256(), Some(settings())).await;
    let (_, session) = house.admin_session().await;
    let mac = |key: &[u8], message: &[u8]| {
        jsonwebtoken::crypto::sign(message, &EncodingKey::from_secret(key), Algorithm::HS256).unwrap()
    };
    let proven = ["session_id", "sub", "iat", "exp"].map(|name| &session[name]);
    let message = serde_json::to_string(&proven).unwrap();
    assert_eq!(session["session_proof"], mac(&PROOF_KEY, message.as_bytes()), "the proof of the server itself");
    let derived = mac(SECRET, b"terrane: tokens of sessions");
    for key in [SECRET, derived.as_bytes(), b"", &[0; 32]] {
        let forged = changed(session.clone(), &json!({"session_proof": mac(key, message.as_bytes())}));
        assert_eq!(house.get(CUBES, &sign(&forged)).await, refused());
    }
    assert_eq!(house.get(CUBES, &sign(&session)).await.0, 200);
}

#[tokio::test]
async fn token_of_an_ended_session_is_refused() {
    let house = House::with(hs256(), Some(settings())).await;
    let (token, claims) = house.admin_session().await;
    let ended = Timestamp::from_second(NOW).unwrap();
    house.store.end_sessions("root", ended, AuditEntry::default()).await.unwrap();
    assert_eq!(house.get(CUBES, &token).await, refused());
    for change in [json!({"session_id": null}), json!({"session_proof": null})] {
        assert_eq!(house.get(CUBES, &sign(&changed(claims.clone(), &change))).await, refused(), "{change}");
    }
}

#[tokio::test]
async fn admin_scope_requires_a_mapping() {
    const AUDIT: &str = "/api/v1/audit";
    let unmapped = House::with(hs256(), Some(settings())).await;
    for change in [
        json!({"scope": "admin"}),
        json!({"scope": "read write admin"}),
        json!({"scp": ["admin"]}),
        json!({"scopes": ["admin"]}),
        json!({"roles": ["admin"]}),
        json!({"permissions": "admin"}),
    ] {
        let token = sign(&claims(&change));
        assert_eq!(unmapped.get(AUDIT, &token).await, (403, "FORBIDDEN".to_owned()), "{change}");
        assert_eq!(unmapped.get(CUBES, &token).await.0, 200, "{change}");
    }
    let scopes = unmapped.identify(&sign(&claims(&json!({"scope": "write admin"})))).await.unwrap().scopes;
    assert_eq!(scopes, Scopes { write: true, ..Scopes::default() });

    let mapping = ClaimsMapping { scopes: vec![ClaimPath::new("can")], ..ClaimsMapping::default() };
    let mapped =
        House::with(hs256(), Some(ApplicationSettings { mapping, has_scopes_claim: true, ..settings() })).await;
    assert_eq!(mapped.get(AUDIT, &sign(&claims(&json!({"can": ["admin"]})))).await.0, 200);
    assert_eq!(mapped.get(AUDIT, &sign(&claims(&json!({"scope": "admin"})))).await.0, 403);
    let scope_roles = ScopeRoles { admin: vec!["operator".into()], ..ScopeRoles::default() };
    let mapping = ClaimsMapping { scope_roles, ..ClaimsMapping::default() };
    let by_role = House::with(hs256(), Some(ApplicationSettings { mapping, ..settings() })).await;
    assert_eq!(by_role.get(AUDIT, &sign(&claims(&json!({"roles": ["operator"]})))).await.0, 200);
    assert_eq!(by_role.get(AUDIT, &sign(&claims(&json!({"roles": ["viewer"], "scope": "admin"})))).await.0, 403);
}

#[tokio::test]
async fn tokens_are_revoked_by_id_and_by_subject() {
    let house = House::with(hs256(), Some(settings())).await;
    let with = |change: Json| sign(&claims(&change));
    let (one, two) = (with(json!({"jti": "t1"})), with(json!({"jti": "t2"})));
    let (other, without_iat) = (with(json!({"sub": "customer-18"})), with(json!({"sub": "customer-18", "iat": null})));
    let newer = with(json!({"sub": "customer-18", "iat": NOW + 1}));
    let (_, session) = house.admin_session().await;
    for token in [&one, &two, &other, &without_iat, &newer] {
        assert_eq!(house.get(CUBES, token).await.0, 200);
    }
    let caller = SecurityContext { auth_method: AuthMethod::Operator, ..SecurityContext::default() };
    let operator = Identity { caller, ..Identity::default() };
    let operator = Actor::of_request(&operator, RequestOrigin::default());
    let revoke = async |tokens| house.authenticator.accounts().revoke_tokens(&operator, tokens).await.unwrap();
    revoke(RevokedTokens::Token("t1".into())).await;
    assert_eq!(house.get(CUBES, &one).await, refused());
    assert_eq!(house.get(CUBES, &two).await.0, 200);
    revoke(RevokedTokens::Subject("customer-18".into())).await;
    assert_eq!(house.get(CUBES, &other).await, refused());
    assert_eq!(house.get(CUBES, &without_iat).await, refused());
    assert_eq!(house.get(CUBES, &newer).await, refused(), "the clock of its issuer may be ahead");
    assert_eq!(house.get(CUBES, &two).await.0, 200);
    revoke(RevokedTokens::Subject("root".into())).await;
    let root = house.store.session(session["session_id"].as_str().unwrap()).await.unwrap().unwrap();
    assert_eq!(root.ended_at, None, "sessions end by `end-sessions`");
    let filter = AuditFilter { event: Some("tokens_revoked".into()), limit: 10, ..AuditFilter::default() };
    let records = house.store.records(&filter).await.unwrap();
    let resources: Vec<&str> = records.iter().map(|record| &*record.entry.resource).collect();
    assert_eq!(resources, ["user:root", "user:customer-18", "token:t1"]);
}

#[tokio::test]
async fn administrators_revoke_tokens_over_http() {
    let house = House::with(hs256(), Some(settings())).await;
    let (admin, _) = house.admin_session().await;
    let token = sign(&claims(&json!({"jti": "t1"})));
    let post = async |bearer: &str, body: Json| {
        let headers = json!({"authorization": format!("Bearer {bearer}")});
        let path = "/api/v1/auth/revoke-tokens";
        house.ask(&json!({"method": "POST", "path": path, "headers": headers, "json": body})).await
    };
    assert_eq!(post(&token, json!({"jti": "t1"})).await, (403, "FORBIDDEN".to_owned()));
    for body in [json!({}), json!({"jti": "a", "sub": "b"}), json!({"jti": 5}), json!({"jti": ""}), json!({"id": "a"})]
    {
        assert_eq!(post(&admin, body.clone()).await.0, 400, "{body}");
    }
    assert_eq!(house.get(CUBES, &token).await.0, 200);
    assert_eq!(post(&admin, json!({"jti": "t1"})).await.0, 200);
    assert_eq!(house.get(CUBES, &token).await, refused());
}

#[tokio::test]
async fn callers_are_rejected_while_revocations_cannot_be_read() {
    let tokens = own_tokens(hs256()).with_applications(settings(), PROOF_KEY);
    let security = Security::of_a_broken_store_with(Arc::new(tokens));
    let edge = World { caller: Caller::Stranger, ..World::default() }.edge_with(security);
    let token = sign(&claims(&json!({})));
    let asked = json!({"path": CUBES, "headers": {"authorization": format!("Bearer {token}")}});
    let answered = ask(&edge, &serde_json::from_value(asked).unwrap()).await;
    assert_eq!(answered.status.as_u16(), 503);
}
