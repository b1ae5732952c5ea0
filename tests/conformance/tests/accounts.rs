//! Tests keys and users over HTTP with a real state database: changes by administrators, and changes that are refused.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value as Json, json};
use tempfile::TempDir;
use terrane_app::accounts::{AccountError, Accounts, Actor, GrantChange, Grants, KeyRequest, UserChange, UserRequest};
use terrane_app::ports::audit::{AuditFilter, AuditLog as _, AuditRecord, Details};
use terrane_app::ports::tokens::Tokens;
use terrane_app::security::{Authenticator, Scope, Scopes};
use terrane_conformance_tests::case::{Answered, Caller, World, ask};
use terrane_conformance_tests::security::Security;
use terrane_identity::{ClaimsMapping, Jwt, JwtSettings, SigningKey};
use terrane_server::Edge;
use terrane_store::StateStore;

const SECRET: &[u8] = b"a secret of the tests that is long enough";
const PASSWORD: &str = "correct horse battery staple";
const OTHER_PASSWORD: &str = "incorrect horse battery staple";
const KEYS: &str = "/api/v1/auth/keys";
const USERS: &str = "/api/v1/auth/users";
const CUBES: &str = "/api/v1/query/meta/cubes";

/// A server over a new state database, and the key of an administrator.
struct House {
    edge: Edge,
    store: Arc<StateStore>,
    authenticator: Arc<Authenticator>,
    admin: String,
    _folder: TempDir,
}

impl House {
    async fn new() -> House {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(StateStore::open("sqlite://state.db", folder.path()).await.unwrap());
        let tokens = Jwt::new(JwtSettings {
            key: SigningKey::Hs256 { secret: SECRET.to_vec() },
            issuer: "terrane".to_owned(),
            audience: "terrane".to_owned(),
            verify_exp: true,
            verify_iat: true,
            mapping: ClaimsMapping::default(),
        });
        let security = Security::of(store.clone(), Some(Arc::new(tokens.unwrap()) as Arc<dyn Tokens>));
        let world = World { caller: Caller::Stranger, ..World::default() };
        let edge = world.edge_with(security);
        let authenticator = edge.app().services.authenticator.clone();
        let grants = Grants { scopes: Scopes::default().with(Scope::Admin), ..Grants::default() };
        let request = KeyRequest { name: "admin".into(), grants, ..KeyRequest::default() };
        let admin = authenticator.accounts().create_key(&Actor::default(), request).await.unwrap().text;
        House { edge, store, authenticator, admin, _folder: folder }
    }

    fn accounts(&self) -> &Accounts {
        self.authenticator.accounts()
    }

    async fn ask_as(&self, bearer: &str, method: &str, path: &str, body: Option<&Json>) -> (u16, Json) {
        let headers = json!({"authorization": format!("Bearer {bearer}")});
        let mut asked = json!({"method": method, "path": path, "headers": headers});
        if let Some(body) = body {
            asked["json"] = body.clone();
        }
        let Answered { status, body, .. } = ask(&self.edge, &serde_json::from_value(asked).unwrap()).await;
        (status.as_u16(), serde_json::from_slice(&body).unwrap_or_default())
    }

    async fn ask(&self, method: &str, path: &str, body: Option<Json>) -> (u16, Json) {
        self.ask_as(&self.admin, method, path, body.as_ref()).await
    }

    async fn status_of(&self, bearer: &str) -> u16 {
        self.ask_as(bearer, "GET", CUBES, None).await.0
    }

    async fn sign_in(&self, username: &str, password: &str) -> Result<(String, String), u16> {
        let asked = json!({
            "method": "POST",
            "path": "/api/v1/auth/token",
            "json": {"username": username, "password": password},
        });
        let answered = ask(&self.edge, &serde_json::from_value(asked).unwrap()).await;
        let body: Json = serde_json::from_slice(&answered.body).unwrap();
        let text = |name: &str| body[name].as_str().map(str::to_owned);
        text("access_token").zip(text("refresh_token")).ok_or(answered.status.as_u16())
    }

    async fn refresh(&self, token: &str) -> u16 {
        let body = json!({"refresh_token": token});
        let asked = json!({"method": "POST", "path": "/api/v1/auth/refresh", "json": body});
        ask(&self.edge, &serde_json::from_value(asked).unwrap()).await.status.as_u16()
    }

    /// Returns the records of an event, the oldest first.
    async fn records(&self, event: &str) -> Vec<AuditRecord> {
        let filter = AuditFilter { event: Some(event.into()), limit: 100, ..AuditFilter::default() };
        let mut records = self.store.records(&filter).await.unwrap();
        records.reverse();
        records
    }
}

fn code(answered: &(u16, Json)) -> (u16, &str) {
    (answered.0, answered.1["error"]["code"].as_str().unwrap_or_default())
}

fn json_of(details: &Option<Details>) -> Json {
    terrane_json::details::to_json(details.as_ref().unwrap())
}

#[tokio::test]
async fn key_is_created_read_changed_and_revoked() {
    let house = House::new().await;
    let body = json!({
        "name": "dashboards",
        "expires": "30d",
        "scopes": ["read", "write"],
        "roles": ["viewer"],
        "groups": ["north"],
        "attributes": {"region": "EU", "tiers": [1, 2]},
        "tenant": "t1",
        "user_id": "u1",
        "email": "a@b.example",
    });
    let (status, issued) = house.ask("POST", KEYS, Some(body)).await;
    assert_eq!(status, 201, "{issued}");
    let (id, text) = (issued["id"].as_str().unwrap(), issued["key"].as_str().unwrap());
    let mut expected = json!({
        "id": id,
        "name": "dashboards",
        "scopes": ["read", "write"],
        "user_id": "u1",
        "email": "a@b.example",
        "roles": ["viewer"],
        "groups": ["north"],
        "attributes": {"region": "EU", "tiers": [1, 2]},
        "tenant": "t1",
        "created_at": "2024-02-14T12:00:00Z",
        "expires_at": "2024-03-15T12:00:00Z",
        "state": "active",
    });
    let path = format!("{KEYS}/{id}");
    assert_eq!(house.ask("GET", &path, None).await, (200, expected.clone()));
    let (_, listed) = house.ask("GET", KEYS, None).await;
    assert!(listed["keys"].as_array().unwrap().contains(&expected), "{listed}");
    assert_eq!(listed["keys"].as_array().unwrap().len(), 2);
    assert!(!listed.to_string().contains(text), "a secret is shown once");
    assert_eq!(house.status_of(text).await, 200);

    let change = json!({"scopes": ["write"], "roles": [], "tenant": null, "user_id": null, "expires": null});
    for (name, value) in [
        ("scopes", json!(["write"])),
        ("roles", json!([])),
        ("tenant", Json::Null),
        ("user_id", format!("key:{id}").into()),
        ("expires_at", Json::Null),
    ] {
        expected[name] = value;
    }
    assert_eq!(house.ask("PATCH", &path, Some(change.clone())).await, (200, expected.clone()));
    assert_eq!(house.status_of(text).await, 403, "the key reads no more, at once");
    assert_eq!(house.ask("PATCH", &path, Some(change)).await, (200, expected.clone()), "no change, no record");

    assert_eq!(house.ask("DELETE", &path, None).await, (204, Json::Null));
    assert_eq!(house.status_of(text).await, 401);
    expected["state"] = "revoked".into();
    assert_eq!(house.ask("GET", &path, None).await, (200, expected));
    assert_eq!(code(&house.ask("DELETE", &path, None).await), (409, "CONFLICT"));
    assert_eq!(code(&house.ask("PATCH", &path, Some(json!({"name": "b"}))).await), (409, "CONFLICT"));

    let changed = house.records("key_changed").await;
    assert_eq!(changed.len(), 1);
    let (before, after) = (json_of(&changed[0].entry.before), json_of(&changed[0].entry.after));
    assert_eq!((&before["scopes"], &after["scopes"]), (&json!(["read", "write"]), &json!(["write"])));
    assert_eq!((&*changed[0].entry.auth_method, &*changed[0].entry.resource), ("api_key", &*format!("key:{id}")));
    let revoked = &house.records("key_revoked").await[0].entry;
    assert_eq!(
        (&json_of(&revoked.before)["state"], &json_of(&revoked.after)["state"]),
        (&json!("active"), &json!("revoked"))
    );
    let created = house.records("key_created").await;
    for record in changed.iter().chain(&created) {
        let secret = &text[21..];
        assert!(!format!("{record:?}").contains(secret), "{record:?}");
    }
}

#[tokio::test]
async fn change_of_a_user_ends_the_sessions_at_once() {
    let house = House::new().await;
    let body = json!({"username": "ada", "password": PASSWORD, "roles": ["analyst"], "attributes": {"region": "EU"}});
    let (status, created) = house.ask("POST", USERS, Some(body)).await;
    assert_eq!(status, 201, "{created}");
    assert_eq!((&created["user_id"], &created["scopes"]), (&json!("ada"), &json!(["read"])));
    let path = format!("{USERS}/ada");
    assert_eq!(house.ask("GET", &path, None).await, (200, created.clone()));
    assert_eq!(house.ask("GET", USERS, None).await, (200, json!({"users": [created]})));
    house.accounts().create_user(&Actor::default(), user("bob")).await.unwrap();
    let (bob, _) = house.sign_in("bob", PASSWORD).await.unwrap();

    for change in [
        json!({"scopes": ["read", "write"]}),
        json!({"roles": []}),
        json!({"groups": ["north"]}),
        json!({"attributes": {"region": ["EU", "US"]}}),
        json!({"tenant": "t1"}),
        json!({"email": "ada@example.org"}),
        json!({"user_id": "u1"}),
        json!({"password": OTHER_PASSWORD}),
        json!({"password": PASSWORD, "scopes": ["read"]}),
    ] {
        let password = if change["password"] == PASSWORD { OTHER_PASSWORD } else { PASSWORD };
        let (access, refresh) = house.sign_in("ada", password).await.unwrap();
        assert_eq!(house.status_of(&access).await, 200);
        let (status, changed) = house.ask("PATCH", &path, Some(change.clone())).await;
        assert_eq!(status, 200, "{changed}");
        assert!(changed.get("password").is_none(), "{changed}");
        assert_eq!(house.status_of(&access).await, 401, "{change}");
        assert_eq!(house.refresh(&refresh).await, 401, "{change}");
    }
    assert_eq!(house.sign_in("ada", OTHER_PASSWORD).await, Err(401));
    assert_eq!(house.status_of(&bob).await, 200, "sessions of others go on");

    let (access, _) = house.sign_in("ada", PASSWORD).await.unwrap();
    assert_eq!(house.ask("DELETE", &path, None).await, (204, Json::Null));
    assert_eq!(house.status_of(&access).await, 401);
    assert_eq!(house.sign_in("ada", PASSWORD).await, Err(401));
    assert_eq!(code(&house.ask("DELETE", &path, None).await), (409, "CONFLICT"));
    let again = json!({"username": "ada", "password": PASSWORD});
    assert_eq!(code(&house.ask("POST", USERS, Some(again)).await), (409, "CONFLICT"), "the name stays taken");
    let (_, enabled) = house.ask("PATCH", &path, Some(json!({"disabled": false}))).await;
    assert_eq!(enabled["disabled_at"], Json::Null);
    assert!(house.sign_in("ada", PASSWORD).await.is_ok());

    let records = house.records("user_changed").await;
    assert_eq!(records.len(), 9);
    let last = json_of(&records[8].entry.after);
    assert_eq!((&last["password_changed"], &last["scopes"]), (&json!(true), &json!(["read"])));
    assert_eq!(json_of(&records[1].entry.before)["roles"], json!(["analyst"]));
    assert_eq!(json_of(&records[1].entry.after)["roles"], json!([]));
    for record in &records {
        let text = format!("{record:?}");
        assert!(!text.contains("battery") && !text.contains("argon2"), "{text}");
    }
    assert_eq!(house.records("user_disabled").await.len(), 1);
    assert_eq!(house.records("user_enabled").await.len(), 1);
}

fn user(username: &str) -> UserRequest {
    let grants = Grants { scopes: Scopes::READ, ..Grants::default() };
    UserRequest { username: username.into(), password: PASSWORD.to_owned(), grants }
}

#[tokio::test]
async fn invalid_requests_are_rejected_with_the_field() {
    let house = House::new().await;
    house.accounts().create_user(&Actor::default(), user("ada")).await.unwrap();
    let key = house.ask("GET", KEYS, None).await.1["keys"][0]["id"].as_str().unwrap().to_owned();
    let (ada, key) = (format!("{USERS}/ada"), format!("{KEYS}/{key}"));
    let with = |name: &str, value: Json| json!({"name": "a", name: value});
    for (method, path, body, field) in [
        ("POST", KEYS, json!({}), Some("name")),
        ("POST", KEYS, with("name", json!("")), Some("name")),
        ("POST", KEYS, with("name", json!("a\nb")), Some("name")),
        ("POST", KEYS, with("scopes", json!([])), Some("scopes")),
        ("POST", KEYS, with("scopes", json!(["raed"])), Some("scopes[0]")),
        ("POST", KEYS, with("scopes", json!("read")), Some("scopes")),
        ("POST", KEYS, with("expires", json!("soon")), Some("expires")),
        ("POST", KEYS, with("expires", json!("-1d")), Some("expires")),
        ("POST", KEYS, with("expires", json!(30)), Some("expires")),
        ("POST", KEYS, with("roles", json!([1])), Some("roles[0]")),
        ("POST", KEYS, with("roles", json!([""])), Some("roles")),
        ("POST", KEYS, with("attributes", json!([])), Some("attributes")),
        ("POST", KEYS, with("attributes", json!({"a": {"b": 1}})), Some("attributes.a")),
        ("POST", KEYS, with("attributes", json!({"a": null})), Some("attributes")),
        ("POST", KEYS, with("attributes", json!({"a": "x".repeat(9_000)})), Some("attributes")),
        ("POST", KEYS, with("user_id", json!("")), Some("user_id")),
        ("POST", KEYS, with("scope", json!(["read"])), Some("scope")),
        ("PATCH", &key, json!({}), None),
        ("PATCH", &key, json!({"name": null}), Some("name")),
        ("PATCH", &key, json!({"roles": null}), Some("roles")),
        ("PATCH", &key, json!({"scopes": []}), Some("scopes")),
        ("POST", USERS, json!({"username": "bob"}), Some("password")),
        ("POST", USERS, json!({"username": "bob", "password": "short"}), Some("password")),
        ("POST", USERS, json!({"username": "bob", "password": "p".repeat(1_025)}), Some("password")),
        ("POST", USERS, json!({"username": "corp:bob", "password": PASSWORD}), Some("username")),
        ("POST", USERS, json!({"username": "", "password": PASSWORD}), Some("username")),
        ("PATCH", &ada, json!({}), None),
        ("PATCH", &ada, json!({"password": "short"}), Some("password")),
        ("PATCH", &ada, json!({"password": null}), Some("password")),
        ("PATCH", &ada, json!({"disabled": "yes"}), Some("disabled")),
        ("PATCH", &ada, json!({"username": "bob"}), Some("username")),
        ("PATCH", &ada, json!({"scopes": ["admin"], "attributes": {"": 1}}), Some("attributes")),
    ] {
        let answered = house.ask(method, path, Some(body.clone())).await;
        assert_eq!(code(&answered), (400, "INVALID_QUERY"), "{method} {path} {body}");
        let found = answered.1["error"]["details"]["field"].as_str();
        assert_eq!(found, field, "{method} {path} {body}: {}", answered.1);
        assert!(!answered.1.to_string().contains("battery"), "a refusal repeats no password");
    }
    for (method, path) in [("GET", "0123456789abcdef"), ("DELETE", "0123456789abcdef"), ("GET", "..%2Fusers")] {
        assert_eq!(code(&house.ask(method, &format!("{KEYS}/{path}"), None).await), (404, "NOT_FOUND"));
    }
    for (method, body) in [("GET", None), ("DELETE", None), ("PATCH", Some(json!({"password": PASSWORD})))] {
        assert_eq!(code(&house.ask(method, &format!("{USERS}/bob"), body).await), (404, "NOT_FOUND"), "{method}");
    }
    for event in ["key_changed", "user_changed", "key_revoked", "user_disabled"] {
        assert!(house.records(event).await.is_empty(), "what was refused left no record of {event}");
    }
}

#[tokio::test]
async fn accounts_are_for_administrators() {
    let house = House::new().await;
    let grants = Grants { scopes: Scopes::READ.with(Scope::Write), ..Grants::default() };
    let request = KeyRequest { name: "writer".into(), grants, ..KeyRequest::default() };
    let writer = house.accounts().create_key(&Actor::default(), request).await.unwrap();
    let own = format!("{KEYS}/{}", writer.key.id);
    for (method, path, body) in [
        ("GET", KEYS, None),
        ("POST", KEYS, Some(json!({"name": "a"}))),
        ("GET", &own, None),
        ("PATCH", &own, Some(json!({"scopes": ["admin"]}))),
        ("DELETE", &own, None),
        ("GET", USERS, None),
        ("POST", USERS, Some(json!({"username": "eve", "password": PASSWORD}))),
    ] {
        let answered = house.ask_as(&writer.text, method, path, body.as_ref()).await;
        assert_eq!(code(&answered), (403, "FORBIDDEN"), "{method} {path}");
    }
    assert_eq!(house.accounts().key(&writer.key.id).await.unwrap().scopes, writer.key.scopes);
}

#[tokio::test]
async fn concurrent_changes_are_all_applied_and_recorded() {
    let house = House::new().await;
    house.accounts().create_user(&Actor::default(), user("ada")).await.unwrap();
    let tenant = |name: &'static str| GrantChange {
        tenant: terrane_app::accounts::Change::Set(name.into()),
        ..GrantChange::default()
    };
    let roles = GrantChange { roles: Some(vec!["analyst".into()]), ..GrantChange::default() };
    let change = async |grants| {
        let change = UserChange { grants, ..UserChange::default() };
        house.accounts().change_user(&Actor::default(), "ada", change).await
    };
    let (one, other) = tokio::join!(change(tenant("t1")), change(roles));
    one.unwrap();
    other.unwrap();
    let after = house.accounts().user("ada").await.unwrap();
    assert_eq!((after.tenant.as_deref(), after.caller.roles.as_slice()), (Some("t1"), &["analyst".into()][..]));
    let records = house.records("user_changed").await;
    assert_eq!(records.len(), 2);
    assert_eq!(records[0].entry.after, records[1].entry.before, "each record begins where the last one ended");
    let nothing = house.accounts().change_user(&Actor::default(), "ada", UserChange::default()).await;
    assert!(matches!(nothing, Err(AccountError::NothingToChange)), "{nothing:?}");
    assert!(records.iter().all(|record| record.entry.at == Timestamp::from_second(1_707_912_000).unwrap()));
}
