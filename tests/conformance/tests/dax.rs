//! Tests sessions and Basic credentials of the DAX routes.
//!
//! In: two callers with API keys, and an anonymous caller. Out: the access of each caller to the others' sessions.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value as Json, json};
use tempfile::TempDir;
use terrane_app::ports::audit::AuditEntry;
use terrane_app::ports::credentials::{ApiKey, Credentials as _};
use terrane_app::security::Scopes;
use terrane_app::security::api_key::NewKey;
use terrane_compiler::SecurityContext;
use terrane_conformance_tests::case::{Answered, Caller, World, ask};
use terrane_conformance_tests::security::Security;
use terrane_server::Edge;
use terrane_store::StateStore;

const SESSIONS: &str = "/api/v1/dax/sessions";
const EXECUTE: &str = "/api/v1/dax/execute";

struct House {
    edge: Edge,
    store: Arc<StateStore>,
    _folder: TempDir,
}

impl House {
    async fn new() -> House {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(StateStore::open("sqlite://state.db", folder.path()).await.unwrap());
        let columns = serde_json::from_value(json!([
            {"type": "text", "values": ["paid"]},
            {"type": "integer", "values": [2]},
        ]));
        let world = World { caller: Caller::Stranger, columns: columns.unwrap(), ..World::default() };
        House { edge: world.edge_with(Security::of(store.clone(), None)), store, _folder: folder }
    }

    /// Creates an API key for a user and returns its text.
    async fn key(&self, user: &str, seed: u8) -> String {
        let new = NewKey::from_random(&[seed; 40]);
        let key = ApiKey {
            id: new.id,
            name: "of a test".into(),
            secret_hash: new.hash,
            scopes: Scopes::READ,
            caller: SecurityContext { user_id: user.into(), ..SecurityContext::default() },
            tenant: None,
            created_at: jiff::Timestamp::UNIX_EPOCH,
            expires_at: None,
            revoked_at: None,
        };
        self.store.add_key(&key, AuditEntry::default()).await.unwrap();
        new.text
    }

    async fn ask(&self, method: &str, path: &str, key: &str, session: Option<&str>) -> Answered {
        let mut headers = json!({"authorization": format!("Bearer {key}")});
        if let Some(session) = session {
            headers["x-session-id"] = session.into();
        }
        let query = "EVALUATE SUMMARIZECOLUMNS(orders[status], \"n\", orders[count])";
        let body = (path == EXECUTE).then(|| json!({"query": query}));
        let asked = json!({"method": method, "path": path, "headers": headers, "json": body});
        ask(&self.edge, &serde_json::from_value(asked).unwrap()).await
    }

    async fn begin(&self, key: &str) -> String {
        let begun = self.ask("POST", SESSIONS, key, None).await;
        assert_eq!(begun.status, 201);
        let id = body(&begun)["session_id"].as_str().unwrap().to_owned();
        assert_eq!(begun.headers["x-session-id"], id.as_str());
        assert_eq!(body(&begun)["timeout_seconds"], 3_600);
        id
    }
}

fn body(answered: &Answered) -> Json {
    serde_json::from_slice(&answered.body).unwrap_or_default()
}

#[tokio::test]
async fn session_is_visible_only_to_its_caller() {
    let house = House::new().await;
    let (ada, bob) = (house.key("ada", 1).await, house.key("bob", 2).await);
    let other_key = house.key("ada", 3).await;
    let id = house.begin(&ada).await;
    let one = format!("{SESSIONS}/{id}");
    for key in [&ada, &other_key] {
        let executed = house.ask("POST", EXECUTE, key, Some(&id)).await;
        assert_eq!((executed.status.as_u16(), &executed.headers["x-session-id"]), (200, &id.parse().unwrap()));
    }
    assert_eq!(body(&house.ask("GET", &one, &ada, None).await)["session_id"], id);
    assert_eq!(body(&house.ask("GET", SESSIONS, &ada, None).await)["sessions"][0]["session_id"], id);

    for (method, path, session) in [("POST", EXECUTE, Some(&*id)), ("GET", &one, None), ("DELETE", &one, None)] {
        let refused = house.ask(method, path, &bob, session).await;
        assert_eq!((refused.status.as_u16(), &body(&refused)["error"]["code"]), (404, &json!("NOT_FOUND")), "{method}");
    }
    assert_eq!(body(&house.ask("GET", SESSIONS, &bob, None).await), json!({"sessions": []}));

    assert_eq!(house.ask("DELETE", &one, &ada, None).await.status, 204);
    assert_eq!(house.ask("DELETE", &one, &ada, None).await.status, 404);
    assert_eq!(house.ask("POST", EXECUTE, &ada, Some(&id)).await.status, 404);
}

#[tokio::test]
async fn api_key_is_a_basic_password_only_on_dax_routes() {
    let house = House::new().await;
    let key = house.key("ada", 1).await;
    let ask = async |path: &str, text: &str| {
        let authorization = format!("Basic {}", STANDARD.encode(text));
        let asked = json!({"method": "GET", "path": path, "headers": {"authorization": authorization}});
        ask(&house.edge, &serde_json::from_value(asked).unwrap()).await
    };
    const CUBES: &str = "/api/v1/dax/cubes";
    for user in ["", "anybody", "DOMAIN\\user"] {
        assert_eq!(ask(CUBES, &format!("{user}:{key}")).await.status, 200, "{user}");
    }
    for wrong in ["ada:", "ada:wrong", "ada", &*key] {
        let refused = ask(CUBES, wrong).await;
        let challenges: Vec<_> = refused.headers.get_all("www-authenticate").iter().collect();
        assert_eq!(refused.status, 401, "{wrong}");
        assert_eq!(challenges, ["Basic realm=\"Terrane\", charset=\"UTF-8\"", "Bearer"], "{wrong}");
    }
    assert_eq!(ask("/api/v1/query/meta/cubes", &format!("ada:{key}")).await.status, 401);
}

#[tokio::test]
async fn queries_up_to_the_limit_of_characters_are_accepted_however_they_are_escaped() {
    let house = House::new().await;
    let key = house.key("ada", 1).await;
    let post = async |path: &str, media_type: &str, text: String| {
        let headers = json!({"authorization": format!("Bearer {key}"), "content-type": media_type});
        let asked = json!({"method": "POST", "path": path, "headers": headers, "text": text});
        ask(&house.edge, &serde_json::from_value(asked).unwrap()).await
    };
    let query = |text: String| format!(r#"{{"query": "EVALUATE {{LEN(\"{text}\")}}"}}"#);
    for character in ["€", r"\u20ac", r"\ud83d\ude00"] {
        let found = post(EXECUTE, "application/json", query(character.repeat(99_000))).await;
        assert_eq!(found.status, 200, "{character}: {:?}", body(&found));
        assert_eq!(body(&found)["data"][0]["[Value]"], 99_000, "{character}");
    }
    let refused = post(EXECUTE, "application/json", query("€".repeat(100_000))).await;
    assert_eq!((refused.status.as_u16(), &body(&refused)["error"]["code"]), (400, &json!("DAX_SYNTAX_ERROR")));
    let refused = post(EXECUTE, "application/json", query("€".repeat(600_000))).await;
    assert_eq!((refused.status.as_u16(), &body(&refused)["error"]["code"]), (413, &json!("PAYLOAD_TOO_LARGE")));
    let statement = format!("EVALUATE {{LEN(\"{}\")}}", "&#x1F600;".repeat(99_000));
    let envelope = format!(
        "<Envelope xmlns=\"http://schemas.xmlsoap.org/soap/envelope/\"><Body>\
         <Execute xmlns=\"urn:schemas-microsoft-com:xml-analysis\"><Command><Statement>{statement}</Statement></Command>\
         <Properties><PropertyList><Format>Tabular</Format></PropertyList></Properties></Execute></Body></Envelope>"
    );
    let found = post("/api/v1/dax/xmla", "text/xml", envelope).await;
    let text = String::from_utf8_lossy(&found.body);
    assert!(found.status == 200 && text.contains("99000"), "{}", &text[..text.len().min(600)]);
}
