//! Tests sign-in through an identity provider whose endpoints are on a real socket, and invalid input in every step to
//! the provider and back.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::collections::BTreeMap;
use std::sync::Arc;

use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value as Json, json};
use tempfile::TempDir;
use terrane_app::ports::audit::{AuditEntry, AuditFilter, AuditLog as _};
use terrane_app::ports::credentials::Credentials as _;
use terrane_app::ports::providers::IdentityProvider;
use terrane_app::security::api_key::base64url;
use terrane_app::security::oauth::Transport;
use terrane_conformance_tests::case::{Answered, Caller, World, ask};
use terrane_conformance_tests::provider::{ProviderServer, SteppedClock, public_jwk};
use terrane_conformance_tests::security::Security;
use terrane_identity::{
    BrowserUrl, ClaimPath, ClaimsMapping, ClientAuth, Jwt, JwtSettings, OpenIdSettings, Provider, ProviderSettings,
    ScopeRoles, SignatureAlgorithm, SigningKey,
};
use terrane_server::Edge;
use terrane_store::StateStore;

/// Noon of 14 February 2024, the time of the cases' clock.
const NOW: i64 = 1_707_912_000;
const ISSUER: &str = "https://id.example";
const PRIVATE_PEM: &[u8] = include_bytes!("../keys/test_only.pem");
const OTHER_PEM: &[u8] = include_bytes!("../keys/test_only_other.pem");
const CLIENT_SECRET: &str = "hush hush: a client's secret";
const CODE: &str = "a-code-that-no-log-shows";
const COOKIE: &str = "__Host-terrane_sign_in_corp";

struct House {
    edge: Edge,
    provider: ProviderServer,
    store: Arc<StateStore>,
    _folder: TempDir,
}

/// A sign-in that has begun.
struct StartedLogin {
    cookie: String,
    query: BTreeMap<String, String>,
}

impl House {
    async fn new() -> House {
        House::with(|_| {}).await
    }

    /// Starts a server with the providers `corp` and `twin`. `change` is applied to the settings of `corp` only.
    async fn with(change: impl FnOnce(&mut ProviderSettings)) -> House {
        let provider = ProviderServer::start().await;
        provider.answer("/keys", 200, &json!({"keys": [public_jwk(PRIVATE_PEM, "one")]}));
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(StateStore::open("sqlite://state.db", folder.path()).await.unwrap());
        let own = Jwt::new(JwtSettings {
            key: SigningKey::Hs256 { secret: b"a secret of the tests that is long enough".to_vec() },
            issuer: "terrane".to_owned(),
            audience: "terrane".to_owned(),
            verify_exp: true,
            verify_iat: true,
            mapping: ClaimsMapping::default(),
        });
        let (mut corp, twin) = (settings("corp", &provider), settings("twin", &provider));
        change(&mut corp);
        let make = |settings| Arc::new(Provider::new(settings, provider.outgoing())) as Arc<dyn IdentityProvider>;
        let security = Security::of(store.clone(), Some(Arc::new(own.unwrap())));
        let security = security.with_providers(vec![make(corp), make(twin)], Transport::Https);
        let edge = World { caller: Caller::Stranger, ..World::default() }.edge_with(security);
        House { edge, provider, store, _folder: folder }
    }

    async fn get(&self, path: &str, headers: Json) -> Answered {
        let asked = json!({"path": path, "headers": headers});
        ask(&self.edge, &serde_json::from_value(asked).unwrap()).await
    }

    async fn begin(&self, provider: &str) -> StartedLogin {
        let answered = self.get(&format!("/api/v1/auth/oauth/{provider}/login"), json!({})).await;
        assert_eq!(answered.status.as_u16(), 302, "{}", text(&answered));
        assert_eq!(answered.headers["cache-control"], "no-store");
        let set = answered.headers["set-cookie"].to_str().unwrap();
        let (cookie, attributes) = set.split_once(';').unwrap();
        assert_eq!(attributes, " Path=/; Max-Age=600; HttpOnly; SameSite=Lax; Secure");
        let location = answered.headers["location"].to_str().unwrap();
        let (url, query) = location.split_once('?').unwrap();
        assert_eq!(url, "https://id.example/authorize");
        StartedLogin { cookie: cookie.to_owned(), query: parameters(query) }
    }

    /// Makes the provider answer the next code with this ID token.
    fn will_vouch(&self, id_token: &str) {
        let answer = json!({"access_token": "opaque", "token_type": "Bearer", "expires_in": 60, "id_token": id_token});
        self.provider.answer("/token", 200, &answer);
    }

    async fn come_back(&self, provider: &str, login: &StartedLogin, query: &str) -> Answered {
        let path = format!("/api/v1/auth/oauth/{provider}/callback?{query}");
        self.get(&path, json!({"cookie": login.cookie})).await
    }

    /// Signs in with a valid ID token to which `change` was applied.
    async fn sign_in(&self, change: Json) -> Answered {
        let begun = self.begin("corp").await;
        self.will_vouch(&id_token(&begun, &change));
        self.come_back("corp", &begun, &format!("code={CODE}&state={}", begun.query["state"])).await
    }
}

fn settings(name: &str, provider: &ProviderServer) -> ProviderSettings {
    ProviderSettings {
        name: name.to_owned(),
        client_id: "terrane".to_owned(),
        client_auth: ClientAuth::Basic { secret: CLIENT_SECRET.to_owned() },
        authorize_url: BrowserUrl::read("https://id.example/authorize?tenant=1").unwrap(),
        token_endpoint: provider.endpoint("/token"),
        userinfo_endpoint: None,
        openid: Some(OpenIdSettings {
            issuer: ISSUER.to_owned(),
            keys: provider.keys(Arc::new(SteppedClock::default())),
            algorithms: vec![SignatureAlgorithm::RS256],
        }),
        redirect_url: format!("https://data.example/api/v1/auth/oauth/{name}/callback"),
        scopes: vec!["openid".to_owned(), "email".to_owned()],
        mapping: ClaimsMapping {
            roles: ClaimPath::new("realm_access.roles"),
            scope_roles: ScopeRoles { admin: vec!["boss".into()], ..ScopeRoles::default() },
            ..ClaimsMapping::default()
        },
        has_bare_user_ids: false,
    }
}

fn parameters(query: &str) -> BTreeMap<String, String> {
    let decode = |text: &str| {
        let mut bytes = Vec::new();
        let mut rest = text.bytes();
        while let Some(byte) = rest.next() {
            bytes.push(match byte {
                b'+' => b' ',
                b'%' => {
                    let digits = [rest.next().unwrap(), rest.next().unwrap()];
                    u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
                }
                byte => byte,
            });
        }
        String::from_utf8(bytes).unwrap()
    };
    query
        .split('&')
        .map(|pair| pair.split_once('=').unwrap())
        .map(|(name, value)| (decode(name), decode(value)))
        .collect()
}

fn claims(login: &StartedLogin, change: &Json) -> Json {
    let mut claims = json!({
        "iss": ISSUER, "aud": "terrane", "sub": "248289761001", "exp": NOW + 60, "iat": NOW,
        "nonce": login.query["nonce"], "email": "ada@corp.example",
    });
    for (name, value) in change.as_object().unwrap() {
        match value {
            Json::Null => claims.as_object_mut().unwrap().remove(name),
            value => claims.as_object_mut().unwrap().insert(name.clone(), value.clone()),
        };
    }
    claims
}

fn sign(claims: &Json, pem: &[u8]) -> String {
    let mut header = Header::new(Algorithm::RS256);
    header.kid = Some("one".to_owned());
    jsonwebtoken::encode(&header, claims, &EncodingKey::from_rsa_pem(pem).unwrap()).unwrap()
}

fn id_token(login: &StartedLogin, change: &Json) -> String {
    sign(&claims(login, change), PRIVATE_PEM)
}

fn text(answered: &Answered) -> String {
    String::from_utf8_lossy(&answered.body).into_owned()
}

fn body(answered: &Answered) -> Json {
    serde_json::from_slice(&answered.body).unwrap_or_default()
}

fn refusal(answered: &Answered) -> (u16, String) {
    let code = body(answered)["error"]["code"].as_str().unwrap_or_default().to_owned();
    (answered.status.as_u16(), code)
}

fn unauthorized() -> (u16, String) {
    (401, "UNAUTHORIZED".to_owned())
}

#[tokio::test]
async fn browser_goes_to_the_provider_and_comes_back_with_a_session() {
    let house = House::new().await;
    let begun = house.begin("corp").await;
    let sent = &begun.query;
    assert_eq!(sent["response_type"], "code");
    assert_eq!(sent["client_id"], "terrane");
    assert_eq!(sent["redirect_uri"], "https://data.example/api/v1/auth/oauth/corp/callback");
    assert_eq!((&*sent["scope"], &*sent["tenant"], &*sent["code_challenge_method"]), ("openid email", "1", "S256"));
    let (name, binding) = begun.cookie.split_once('=').unwrap();
    assert_eq!((name, binding.len()), (COOKIE, 43));
    assert!(sent.values().all(|value| !value.contains(binding)), "the provider does not learn the binding");

    house.will_vouch(&id_token(&begun, &json!({"realm_access": {"roles": ["analyst"]}})));
    let query = format!("code={CODE}&state={}&session_state=x&iss={ISSUER}&scope=openid", sent["state"]);
    let answered = house.come_back("corp", &begun, &query).await;
    assert_eq!(answered.status.as_u16(), 200, "{}", text(&answered));
    assert_eq!(answered.headers["cache-control"], "no-store");
    assert_eq!(answered.headers["referrer-policy"], "no-referrer");
    assert!(answered.headers["set-cookie"].to_str().unwrap().starts_with(&format!("{COOKIE}=; Path=/; Max-Age=0;")));
    let pair = body(&answered);
    assert_eq!((&pair["token_type"], &pair["expires_in"]), (&json!("bearer"), &json!(3_600)));

    // Checks the request that the provider received.
    let asked = house.provider.asked("/token");
    assert_eq!(asked.len(), 1);
    let (head, form) = asked[0].split_once("\r\n\r\n").unwrap();
    let form = parameters(form);
    assert_eq!(
        (&*form["grant_type"], &*form["code"], &form["redirect_uri"]),
        ("authorization_code", CODE, &sent["redirect_uri"])
    );
    assert!(head.to_ascii_lowercase().contains("authorization: basic "), "{head}");
    assert!(!form.contains_key("client_secret"));
    let challenge = base64url(&terrane_app::security::api_key::hash(&form["code_verifier"]));
    assert_eq!(challenge, sent["code_challenge"]);

    // The session works like a session with a password.
    let access = pair["access_token"].as_str().unwrap();
    let asked = house.get("/api/v1/query/meta/cubes", json!({"authorization": format!("Bearer {access}")})).await;
    assert_eq!(asked.status.as_u16(), 200, "{}", text(&asked));
    let payload = jsonwebtoken::dangerous::insecure_decode_claims::<Json>(access).unwrap();
    assert_eq!(payload["sub"], "corp:248289761001");
    assert_eq!((&payload["email"], &payload["roles"]), (&json!("ada@corp.example"), &json!(["analyst"])));
    assert_eq!((&payload["scope"], &payload["iss"]), (&json!("read"), &json!("terrane")));
    let refresh =
        json!({"method": "POST", "path": "/api/v1/auth/refresh", "json": {"refresh_token": pair["refresh_token"]}});
    let refreshed = ask(&house.edge, &serde_json::from_value(refresh.clone()).unwrap()).await;
    assert_eq!(refreshed.status.as_u16(), 200, "{}", text(&refreshed));
    let again = body(&refreshed)["access_token"].as_str().unwrap().to_owned();
    let again = jsonwebtoken::dangerous::insecure_decode_claims::<Json>(again).unwrap();
    assert_eq!((&again["sub"], &again["roles"]), (&payload["sub"], &payload["roles"]));
    let reused = ask(&house.edge, &serde_json::from_value(refresh).unwrap()).await;
    assert_eq!(refusal(&reused), (401, "INVALID_TOKEN".to_owned()), "a refresh token is good once");
}

#[tokio::test]
async fn session_of_a_provider_user_can_be_ended() {
    let house = House::new().await;
    let answered = house.sign_in(json!({})).await;
    let access = body(&answered)["access_token"].as_str().unwrap().to_owned();
    let at = jiff::Timestamp::from_second(NOW).unwrap();
    assert_eq!(house.store.end_sessions("corp:248289761001", at, AuditEntry::default()).await.unwrap(), 1);
    let bearer = json!({"authorization": format!("Bearer {access}")});
    assert_eq!(refusal(&house.get("/api/v1/query/meta/cubes", bearer).await).0, 401);
}

#[tokio::test]
async fn callback_is_bound_to_browser_provider_and_time() {
    let house = House::new().await;
    let (mine, other, twin) = (house.begin("corp").await, house.begin("corp").await, house.begin("twin").await);
    house.will_vouch(&id_token(&mine, &json!({})));
    let state = &mine.query["state"];
    let with = |cookie: &str| StartedLogin { cookie: cookie.to_owned(), query: BTreeMap::new() };
    let expired = state.replacen(&(NOW + 600).to_string(), &(NOW - 1).to_string(), 1);
    for (name, begun, query, expected) in [
        ("no cookie", &with("a=b"), format!("code={CODE}&state={state}"), unauthorized()),
        ("another browser", &other, format!("code={CODE}&state={state}"), unauthorized()),
        ("two cookies", &with(&format!("{0}; {0}", mine.cookie)), format!("code={CODE}&state={state}"), unauthorized()),
        ("empty cookie", &with(&format!("{COOKIE}=")), format!("code={CODE}&state={state}"), unauthorized()),
        (
            "the cookie of http",
            &with(&mine.cookie.replace("__Host-", "")),
            format!("code={CODE}&state={state}"),
            unauthorized(),
        ),
        ("no state", &mine, format!("code={CODE}"), (400, "INVALID_QUERY".to_owned())),
        ("empty state", &mine, format!("code={CODE}&state="), unauthorized()),
        ("made-up state", &mine, format!("code={CODE}&state=x"), unauthorized()),
        ("later state", &mine, format!("code={CODE}&state=9{state}"), unauthorized()),
        ("changed expiry", &mine, format!("code={CODE}&state={expired}"), unauthorized()),
        ("another's state", &mine, format!("code={CODE}&state={}", other.query["state"]), unauthorized()),
        ("another provider's state", &mine, format!("code={CODE}&state={}", twin.query["state"]), unauthorized()),
        ("state twice", &mine, format!("code={CODE}&state={state}&state={state}"), (400, "INVALID_QUERY".to_owned())),
        ("code twice", &mine, format!("code={CODE}&code=b&state={state}"), (400, "INVALID_QUERY".to_owned())),
    ] {
        let answered = house.come_back("corp", begun, &query).await;
        assert_eq!(refusal(&answered), expected, "{name}: {}", text(&answered));
        assert!(!text(&answered).contains(CODE), "{name}");
    }
    // An answer of the provider `corp` at the callback of the provider `twin`.
    let mixed = house.come_back("twin", &mine, &format!("code={CODE}&state={state}")).await;
    assert_eq!(refusal(&mixed), unauthorized());
    assert!(house.provider.asked("/token").is_empty(), "the provider was not asked for any of them");
    let good = format!("code={CODE}&state={state}");
    assert_eq!(house.come_back("corp", &mine, &good).await.status.as_u16(), 200);
    assert_eq!(refusal(&house.come_back("corp", &mine, &good).await), unauthorized(), "a state is good once");
    assert_eq!(house.provider.asked("/token").len(), 1);
}

#[tokio::test]
async fn provider_error_is_reported_and_consumes_the_state() {
    let house = House::new().await;
    for (query, expected, words) in [
        ("error=access_denied&error_description=%3Cscript%3E", unauthorized(), "access_denied"),
        ("error=server_error", unauthorized(), "server_error"),
        ("error=%3Cscript%3E", unauthorized(), "unknown reason"),
        ("code=a&iss=https://evil.example", unauthorized(), "another identity provider"),
        ("code=a&iss=", unauthorized(), "another identity provider"),
        ("x=y", (400, "INVALID_QUERY".to_owned()), "no `code`"),
        ("code=", (400, "INVALID_QUERY".to_owned()), "no `code`"),
        (&format!("code={}", "x".repeat(5_000)), (400, "INVALID_QUERY".to_owned()), "no `code`"),
    ] {
        let begun = house.begin("corp").await;
        let query = format!("{query}&state={}", begun.query["state"]);
        let answered = house.come_back("corp", &begun, &query).await;
        assert_eq!(refusal(&answered), expected, "{query}: {}", text(&answered));
        assert!(text(&answered).contains(words), "{query}: {}", text(&answered));
        assert!(!text(&answered).contains("script"), "{}", text(&answered));
        let again = house.come_back("corp", &begun, &query).await;
        assert!(text(&again).contains("already complete"), "{}", text(&again));
    }
    for (status, answer, expected) in [
        (400, json!({"error": "invalid_grant", "error_description": "hush"}), unauthorized()),
        (200, json!({"error": "bad_verification_code"}), unauthorized()),
        (401, json!({"error": "invalid_client"}), (503, "STATE_UNAVAILABLE".to_owned())),
        (500, json!("oh"), (503, "STATE_UNAVAILABLE".to_owned())),
        (302, json!({}), (503, "STATE_UNAVAILABLE".to_owned())),
        (200, json!({"filler": "x".repeat(70_000)}), (503, "STATE_UNAVAILABLE".to_owned())),
        (200, json!([]), (401, "INVALID_TOKEN".to_owned())),
        (200, json!({"access_token": "a", "token_type": "mac"}), (401, "INVALID_TOKEN".to_owned())),
        (200, json!({"token_type": "bearer"}), (401, "INVALID_TOKEN".to_owned())),
        (200, json!({"access_token": "a", "token_type": "bearer"}), (401, "INVALID_TOKEN".to_owned())),
        (200, json!({"access_token": "a", "token_type": "bearer", "id_token": 5}), (401, "INVALID_TOKEN".to_owned())),
    ] {
        house.provider.answer("/token", status, &answer);
        let begun = house.begin("corp").await;
        let answered = house.come_back("corp", &begun, &format!("code=a&state={}", begun.query["state"])).await;
        assert_eq!(refusal(&answered), expected, "{answer}");
        assert!(!text(&answered).contains("hush"));
    }
}

#[tokio::test]
async fn id_token_must_match_the_sign_in_and_the_client() {
    let house = House::new().await;
    assert_eq!(house.sign_in(json!({})).await.status.as_u16(), 200);
    assert_eq!(house.sign_in(json!({"aud": ["terrane", "b"], "azp": "terrane"})).await.status.as_u16(), 200);
    for change in [
        json!({"nonce": null}),
        json!({"nonce": "another"}),
        json!({"nonce": ["another"]}),
        json!({"iss": "https://evil.example"}),
        json!({"aud": "another-client"}),
        json!({"aud": ["terrane", "b"]}),
        json!({"azp": "b"}),
        json!({"azp": 5}),
        json!({"exp": NOW - 60}),
        json!({"exp": null}),
        json!({"iat": NOW + 600}),
        json!({"sub": null}),
        json!({"sub": 5}),
        json!({"sub": "x".repeat(256)}),
        json!({"sub": "a\nb"}),
    ] {
        let answered = house.sign_in(change.clone()).await;
        assert_eq!(refusal(&answered), (401, "INVALID_TOKEN".to_owned()), "{change}: {}", text(&answered));
    }
    // Refused ID tokens: signed by another key, unsigned, signed with the client's secret, of the type of access
    // tokens, empty, and too long.
    let begun = house.begin("corp").await;
    let claims = claims(&begun, &json!({}));
    let none = format!("{}.{}.", base64url(br#"{"alg":"none"}"#), base64url(claims.to_string().as_bytes()));
    let secret = EncodingKey::from_secret(CLIENT_SECRET.as_bytes());
    let hs256 = jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &secret).unwrap();
    let mut header = Header::new(Algorithm::RS256);
    (header.kid, header.typ) = (Some("one".to_owned()), Some("at+jwt".to_owned()));
    let access = jsonwebtoken::encode(&header, &claims, &EncodingKey::from_rsa_pem(PRIVATE_PEM).unwrap()).unwrap();
    for forgery in [sign(&claims, OTHER_PEM), none, hs256, access, String::new(), "x".repeat(20_000)] {
        let begun = house.begin("corp").await;
        house.will_vouch(&forgery);
        let answered = house.come_back("corp", &begun, &format!("code=a&state={}", begun.query["state"])).await;
        assert_eq!(refusal(&answered), (401, "INVALID_TOKEN".to_owned()), "{}", text(&answered));
    }
}

#[tokio::test]
async fn user_info_supplements_or_replaces_the_id_token() {
    // User info in addition to an ID token. The claims of the ID token take precedence.
    let endpoint = |settings: &mut ProviderSettings| settings.userinfo_endpoint = Some(settings.token_endpoint.clone());
    let house = House::with(endpoint).await;
    for (info, expected) in [
        (json!({"sub": "248289761001", "email": "b@evil.example", "attributes": {"region": "EU"}}), 200),
        (json!({"sub": "somebody-else"}), 401),
        (json!({}), 401),
        (json!([]), 401),
    ] {
        // One endpoint answers both requests, so its answer is an object with the tokens and the claims.
        let begun = house.begin("corp").await;
        let mut answer =
            json!({"access_token": "opaque", "token_type": "Bearer", "id_token": id_token(&begun, &json!({}))});
        if let Some(claims) = info.as_object() {
            answer.as_object_mut().unwrap().extend(claims.clone());
        }
        house.provider.answer("/token", 200, &answer);
        let answered = house.come_back("corp", &begun, &format!("code=a&state={}", begun.query["state"])).await;
        assert_eq!(answered.status.as_u16(), expected, "{info}: {}", text(&answered));
        if expected == 200 {
            let access = body(&answered)["access_token"].as_str().unwrap().to_owned();
            let payload = jsonwebtoken::dangerous::insecure_decode_claims::<Json>(access).unwrap();
            assert_eq!(payload["email"], "ada@corp.example");
            assert_eq!(payload["attributes"], json!({"region": "EU"}));
        }
    }
    // User info without an ID token, from a provider whose user ids are numbers.
    let house = House::with(|settings| {
        settings.openid = None;
        settings.userinfo_endpoint = Some(settings.token_endpoint.clone());
        settings.mapping.user_id = ClaimPath::new("id");
        settings.client_auth = ClientAuth::Post { secret: CLIENT_SECRET.to_owned() };
    });
    let house = house.await;
    for (id, expected) in
        [(json!(583_231), 200), (json!("octocat"), 200), (json!(-1), 401), (json!(1.5), 401), (Json::Null, 401)]
    {
        let begun = house.begin("corp").await;
        assert!(!begun.query.contains_key("nonce"));
        house.provider.answer("/token", 200, &json!({"access_token": "opaque", "token_type": "bearer", "id": id}));
        let answered = house.come_back("corp", &begun, &format!("code=a&state={}", begun.query["state"])).await;
        assert_eq!(answered.status.as_u16(), expected, "{id}: {}", text(&answered));
    }
    let asked = house.provider.asked("/token");
    assert!(asked.iter().any(|request| request.contains("client_secret=hush+hush")), "{asked:?}");
    assert!(
        asked.iter().any(|request| request.to_ascii_lowercase().contains("authorization: bearer opaque")),
        "{asked:?}"
    );
}

#[tokio::test]
async fn unknown_providers_are_not_found_and_redirects_stay_local() {
    let house = House::new().await;
    for path in [
        "/api/v1/auth/oauth/unknown/login",
        "/api/v1/auth/oauth/unknown/callback?code=a&state=b",
        "/api/v1/auth/oauth/CORP/login",
        "/api/v1/auth/oauth/..%2fcorp/login",
    ] {
        let answered = house.get(path, json!({})).await;
        assert_eq!(refusal(&answered), (404, "NOT_FOUND".to_owned()), "{path}");
        assert!(!answered.headers.contains_key("set-cookie"));
    }
    for query in
        ["redirect_to=https://evil.example", "redirect_uri=https://evil.example", "next=//evil.example", "state=x"]
    {
        let answered = house.get(&format!("/api/v1/auth/oauth/corp/login?{query}"), json!({})).await;
        assert_eq!(refusal(&answered), (400, "INVALID_QUERY".to_owned()), "{query}");
    }
    let host = json!({"host": "evil.example", "x-forwarded-host": "evil.example"});
    let answered = house.get("/api/v1/auth/oauth/corp/login", host).await;
    assert!(!answered.headers["location"].to_str().unwrap().contains("evil"));
}

#[tokio::test]
async fn events_are_audited_without_secrets() {
    let house = House::new().await;
    let answered = house.sign_in(json!({})).await;
    let pair = body(&answered);
    house.sign_in(json!({"nonce": "another"})).await;
    let begun = house.begin("corp").await;
    house.come_back("corp", &begun, &format!("error=access_denied&state={}", begun.query["state"])).await;
    house.come_back("corp", &begun, &format!("code={CODE}&state={}", begun.query["state"])).await;
    // A sign-in is recorded before it is answered, so the database has its record.
    let started = AuditFilter { event: Some("session_started".into()), limit: 10, ..AuditFilter::default() };
    let records = house.store.records(&started).await.unwrap();
    assert_eq!(records.len(), 1);
    assert_eq!((&*records[0].entry.auth_method, &*records[0].entry.actor), ("oauth", "corp:248289761001"));
    let admin = house.sign_in(json!({"realm_access": {"roles": ["boss"]}})).await;
    let bearer = format!("Bearer {}", body(&admin)["access_token"].as_str().unwrap());
    let listed = house.get("/api/v1/audit?event=authentication_failure", json!({"authorization": bearer})).await;
    assert_eq!(listed.status.as_u16(), 200, "{}", text(&listed));
    let listed = text(&listed);
    for reason in ["the ID token belongs to another sign-in", "access_denied", "completed sign-in"] {
        assert!(listed.contains(reason), "{reason}: {listed}");
    }
    for secret in [CODE, CLIENT_SECRET, "opaque", &begun.query["state"], pair["refresh_token"].as_str().unwrap()] {
        assert!(!listed.contains(secret), "{listed}");
    }
}
