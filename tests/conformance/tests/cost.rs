//! Tests the history of executed queries over HTTP: two users with different policies, and an administrator.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::sync::Arc;

use serde_json::{Value as Json, json};
use tempfile::TempDir;
use terrane_app::accounts::{Actor, Grants, KeyRequest};
use terrane_app::security::{Scope, Scopes};
use terrane_conformance_tests::case::{Answered, Caller, World, ask};
use terrane_conformance_tests::cost::MemoryHistory;
use terrane_conformance_tests::fakes::Column;
use terrane_conformance_tests::security::Security;
use terrane_server::Edge;
use terrane_store::StateStore;

const HISTORY: &str = "/api/v1/optimization/history";

struct House {
    edge: Edge,
    history: Arc<MemoryHistory>,
    _folder: TempDir,
}

impl House {
    async fn new() -> House {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(StateStore::open("sqlite://state.db", folder.path()).await.unwrap());
        let column = |ty: &str, values: Json| Column { ty: ty.to_owned(), values: values.as_array().unwrap().clone() };
        let world = World {
            caller: Caller::Stranger,
            columns: vec![column("text", json!(["paid", "open"])), column("integer", json!([2, 1]))],
            has_cache: true,
            ..World::default()
        };
        let history = Arc::clone(&world.executed_queries);
        House { edge: world.edge_with(Security::of(store, None)), history, _folder: folder }
    }

    async fn key(&self, user: &str, scopes: Scopes) -> String {
        let accounts = self.edge.app().services.authenticator.clone();
        let grants = Grants { scopes, user_id: Some(user.into()), ..Grants::default() };
        let request = KeyRequest { name: user.into(), grants, ..KeyRequest::default() };
        accounts.accounts().create_key(&Actor::default(), request).await.unwrap().text
    }

    async fn ask(&self, key: &str, method: &str, path: &str, body: Option<Json>) -> (u16, Json) {
        let mut asked = json!({"method": method, "path": path, "headers": {"authorization": format!("Bearer {key}")}});
        if let Some(body) = body {
            asked["json"] = body;
        }
        let Answered { status, body, .. } = ask(&self.edge, &serde_json::from_value(asked).unwrap()).await;
        (status.as_u16(), serde_json::from_slice(&body).unwrap_or_default())
    }

    async fn query(&self, key: &str) {
        let body = json!({"metrics": ["orders.count"], "dimensions": ["orders.status"]});
        let (status, body) = self.ask(key, "POST", "/api/v1/query", Some(body)).await;
        assert_eq!(status, 200, "{body}");
    }

    async fn history(&self, key: &str, parameters: &str) -> Vec<Json> {
        let (status, body) = self.ask(key, "GET", &format!("{HISTORY}{parameters}"), None).await;
        assert_eq!(status, 200, "{body}");
        body["queries"].as_array().unwrap().clone()
    }
}

fn users(queries: &[Json]) -> Vec<&str> {
    queries.iter().map(|query| query["user_id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn callers_read_their_own_queries_and_administrators_all() {
    let house = House::new().await;
    let (ada, bob) = (house.key("ada", Scopes::READ).await, house.key("bob", Scopes::READ).await);
    let admin = house.key("root", Scopes::default().with(Scope::Admin)).await;
    house.query(&ada).await;
    house.query(&bob).await;
    house.query(&ada).await;
    let own = house.history(&ada, "").await;
    assert_eq!(users(&own), ["ada", "ada"]);
    assert_eq!(users(&house.history(&bob, "").await), ["bob"]);
    assert_eq!(users(&house.history(&admin, "").await), ["ada", "bob", "ada"]);
    assert_eq!(users(&house.history(&admin, "?user_id=bob").await), ["bob"]);
    assert_eq!(users(&house.history(&ada, "?user_id=ada").await), ["ada", "ada"]);
    let (status, body) = house.ask(&ada, "GET", &format!("{HISTORY}?user_id=bob"), None).await;
    assert_eq!((status, &body["error"]["code"]), (403, &json!("FORBIDDEN")));
}

#[tokio::test]
async fn records_have_the_statement_and_what_it_took() {
    let house = House::new().await;
    let ada = house.key("ada", Scopes::READ).await;
    house.query(&ada).await;
    house.query(&ada).await;
    let queries = house.history(&ada, "").await;
    let [cached, computed] = &queries[..] else { panic!("{queries:?}") };
    assert_eq!((&cached["cached"], &computed["cached"]), (&json!(true), &json!(false)));
    assert_eq!((&cached["cost"], &cached["warehouse_seconds"]), (&json!(0.0), &json!(0.0)));
    let seconds = computed["warehouse_seconds"].as_f64().unwrap();
    assert!(seconds > 0.0 && (computed["cost"].as_f64().unwrap() - seconds / 2.0).abs() < 0.000_002, "{computed}");
    assert_eq!((&computed["rows"], &computed["cube"]), (&json!(2), &json!("orders")));
    assert_eq!((&computed["kind"], &computed["surface"]), (&json!("rest"), &json!("rest")));
    assert_eq!(computed["bytes_scanned"], Json::Null);
    let of_statement = format!("?query_hash={}", computed["query_hash"].as_str().unwrap());
    assert_eq!(house.history(&ada, &of_statement).await.len(), 2);
    assert_eq!(house.history(&ada, "?query_hash=0").await, Vec::<Json>::new());
}

#[tokio::test]
async fn refused_queries_are_not_recorded() {
    let house = House::new().await;
    let ada = house.key("ada", Scopes::READ).await;
    let body = json!({"metrics": ["orders.nothing"]});
    assert_eq!(house.ask(&ada, "POST", "/api/v1/query", Some(body)).await.0, 400);
    assert_eq!(house.history(&ada, "").await, Vec::<Json>::new());
}

#[tokio::test]
async fn cubes_that_the_reader_cannot_see_have_no_name() {
    let house = House::new().await;
    let ada = house.key("ada", Scopes::READ).await;
    house.query(&ada).await;
    assert_eq!(house.history(&ada, "").await[0]["cube"], "orders");
    // The history outlives the definitions.
    house.history.queries.lock().unwrap()[0].cube = "salaries".into();
    assert_eq!(house.history(&ada, "").await[0]["cube"], Json::Null);
}
