//! Tests guardrails, budgets and the history of executed queries over HTTP, with two users and an administrator.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value as Json, json};
use tempfile::TempDir;
use terrane_app::accounts::{Actor, Grants, KeyRequest};
use terrane_app::cost::GuardrailTable;
use terrane_app::ports::guardrails::{GuardrailRecord, GuardrailSubject, Guardrails};
use terrane_app::ports::warehouse::{ScanSize, SizeBasis};
use terrane_app::security::{Scope, Scopes};
use terrane_compiler::SecurityContext;
use terrane_conformance_tests::case::{Answered, Caller, World, ask};
use terrane_conformance_tests::cost::{MemoryGuardrails, MemoryHistory};
use terrane_conformance_tests::fakes::Column;
use terrane_conformance_tests::security::Security;
use terrane_server::Edge;
use terrane_store::StateStore;

const HISTORY: &str = "/api/v1/optimization/history";

struct House {
    edge: Edge,
    history: Arc<MemoryHistory>,
    guardrails: Arc<MemoryGuardrails>,
    _folder: TempDir,
}

impl House {
    async fn new() -> House {
        House::of(|_| {}).await
    }

    async fn of(change: impl FnOnce(&mut World)) -> House {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(StateStore::open("sqlite://state.db", folder.path()).await.unwrap());
        let column = |ty: &str, values: Json| Column { ty: ty.to_owned(), values: values.as_array().unwrap().clone() };
        let mut world = World {
            caller: Caller::Stranger,
            columns: vec![column("text", json!(["paid", "open"])), column("integer", json!([2, 1]))],
            has_cache: true,
            ..World::default()
        };
        change(&mut world);
        let history = Arc::clone(&world.executed_queries);
        let guardrails = Arc::clone(&world.guardrails);
        House { edge: world.edge_with(Security::of(store, None)), history, guardrails, _folder: folder }
    }

    async fn key(&self, user: &str, scopes: Scopes) -> String {
        self.key_of(Grants { scopes, user_id: Some(user.into()), ..Grants::default() }).await
    }

    async fn key_of(&self, grants: Grants) -> String {
        let accounts = self.edge.app().services.authenticator.clone();
        let user = grants.user_id.clone().unwrap_or_default();
        let request = KeyRequest { name: user, grants, ..KeyRequest::default() };
        accounts.accounts().create_key(&Actor::default(), request).await.unwrap().text
    }

    async fn ask(&self, key: &str, method: &str, path: &str, body: Option<Json>) -> (u16, Json) {
        let (status, body, _) = self.ask_if(key, method, path, body, None).await;
        (status, body)
    }

    /// Sends a request with `If-Match`; returns the status, the body and the entity tag.
    async fn ask_if(
        &self,
        key: &str,
        method: &str,
        path: &str,
        body: Option<Json>,
        if_match: Option<&str>,
    ) -> (u16, Json, Option<String>) {
        let mut asked = json!({"method": method, "path": path, "headers": {"authorization": format!("Bearer {key}")}});
        if let Some(body) = body {
            asked["json"] = body;
        }
        if let Some(tag) = if_match {
            asked["headers"]["if-match"] = tag.into();
        }
        let Answered { status, body, headers } = ask(&self.edge, &serde_json::from_value(asked).unwrap()).await;
        let tag = headers.get("etag").map(|tag| tag.to_str().unwrap().to_owned());
        (status.as_u16(), serde_json::from_slice(&body).unwrap_or_default(), tag)
    }

    /// Sends a query with a row limit. Returns the status, and the exceeded limit that the error contains.
    async fn limited_query(&self, key: &str, limit: u64) -> (u16, Json) {
        let body = json!({"metrics": ["orders.count"], "dimensions": ["orders.status"], "limit": limit});
        let (status, body) = self.ask(key, "POST", "/api/v1/query", Some(body)).await;
        (status, body["error"]["details"]["limit"].clone())
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
async fn records_have_the_statement_and_its_duration() {
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
    // The history still contains queries of cubes that are no longer defined.
    house.history.queries.lock().unwrap()[0].cube = "salaries".into();
    assert_eq!(house.history(&ada, "").await[0]["cube"], Json::Null);
}

const OF_ADA: &str = "/api/v1/optimization/guardrails/users/ada";
const OF_ANALYSTS: &str = "/api/v1/optimization/guardrails/groups/analyst";
const EFFECTIVE: &str = "/api/v1/optimization/guardrails";

#[tokio::test]
async fn guardrails_of_users_and_groups_apply_to_the_next_query() {
    let house = House::new().await;
    let roles = vec!["analyst".into()];
    let grants =
        |user: &str, roles| Grants { scopes: Scopes::READ, user_id: Some(user.into()), roles, ..Grants::default() };
    let ada = house.key_of(grants("ada", roles)).await;
    let bob = house.key_of(grants("bob", Vec::new())).await;
    let admin = house.key("root", Scopes::default().with(Scope::Admin)).await;
    assert_eq!(house.limited_query(&ada, 100).await.0, 200);
    let set = async |path: &str, rows: u64| {
        let (status, body) = house.ask(&admin, "PUT", path, Some(json!({"max_rows_returned": rows}))).await;
        assert_eq!(status, 200, "{body}");
    };
    set(OF_ANALYSTS, 50).await;
    assert_eq!(house.limited_query(&ada, 51).await, (403, json!(50)));
    assert_eq!(house.limited_query(&bob, 51).await.0, 200);
    set(OF_ADA, 80).await;
    assert_eq!(house.limited_query(&ada, 51).await, (403, json!(50)), "a user's limit widens none");
    set(OF_ADA, 20).await;
    assert_eq!(house.limited_query(&ada, 21).await, (403, json!(20)));
    assert_eq!(house.limited_query(&ada, 20).await.0, 200);
    let (_, own) = house.ask(&ada, "GET", EFFECTIVE, None).await;
    assert_eq!(own["guardrails"]["max_rows_returned"], 20, "{own}");
    let sources: Vec<_> = own["sources"].as_array().unwrap().iter().map(|source| &source["source"]).collect();
    assert_eq!(sources, ["project", "group", "user"]);
    assert_eq!(house.ask(&admin, "DELETE", OF_ADA, None).await.0, 204);
    assert_eq!(house.limited_query(&ada, 50).await.0, 200);
    assert_eq!(house.ask(&admin, "DELETE", OF_ANALYSTS, None).await.0, 204);
    assert_eq!(house.limited_query(&ada, 100).await.0, 200);
}

#[tokio::test]
async fn changes_of_guardrails_require_the_current_version() {
    let house = House::new().await;
    let admin = house.key("root", Scopes::default().with(Scope::Admin)).await;
    let set = async |rows: u64, tag: Option<&str>| {
        let body = Some(json!({"max_rows_returned": rows}));
        let (status, body, tag) = house.ask_if(&admin, "PUT", OF_ADA, body, tag).await;
        (status, tag, body["error"]["details"]["current_version"].clone())
    };
    assert_eq!(set(5, Some("\"1\"")).await, (412, None, json!(0)));
    assert_eq!(set(5, Some("\"0\"")).await, (200, Some("\"1\"".to_owned()), Json::Null));
    assert_eq!(set(6, Some("\"1\"")).await, (200, Some("\"2\"".to_owned()), Json::Null));
    assert_eq!(set(7, Some("\"1\"")).await, (412, None, json!(2)));
    assert_eq!(house.ask_if(&admin, "DELETE", OF_ADA, None, Some("\"1\"")).await.0, 412);
    assert_eq!(house.ask_if(&admin, "DELETE", OF_ADA, None, Some("\"2\"")).await.0, 204);
    assert_eq!(house.ask_if(&admin, "DELETE", OF_ADA, None, None).await.0, 404);
    // A version is not used a second time after its guardrail was deleted.
    assert_eq!(set(8, Some("*")).await.0, 412);
    assert_eq!(set(8, None).await, (200, Some("\"4\"".to_owned()), Json::Null));
    let audit = house.guardrails.audit.lock().unwrap();
    let events: Vec<_> =
        audit.iter().map(|entry| (&*entry.event, entry.before.is_some(), entry.after.is_some())).collect();
    let changed = "guardrails_changed";
    assert_eq!(
        events,
        [(changed, false, true), (changed, true, true), ("guardrails_removed", true, false), (changed, false, true)]
    );
    assert!(audit.iter().all(|entry| &*entry.resource == "guardrails:user:ada" && &*entry.actor == "root"));
}

#[tokio::test]
async fn callers_read_guardrails_that_apply_to_them() {
    let house = House::new().await;
    let (ada, bob) = (house.key("ada", Scopes::READ).await, house.key("bob", Scopes::READ).await);
    let admin = house.key("root", Scopes::default().with(Scope::Admin)).await;
    let limits = json!({"max_execution_seconds": 2.5, "require_time_filter": true});
    assert_eq!(house.ask(&admin, "PUT", OF_ADA, Some(limits)).await.0, 200);
    let (status, own) = house.ask(&ada, "GET", OF_ADA, None).await;
    let expected = json!({
        "max_execution_seconds": 2.5, "max_rows_returned": null, "require_time_filter": true,
        "require_partition_filter": false, "max_cost_per_query": null, "max_bytes_scanned": null,
        "daily_budget": null, "monthly_budget": null, "alert_at_percent": null,
    });
    assert_eq!((status, &own["guardrails"], &own["user_id"]), (200, &expected, &json!("ada")));
    assert_eq!((&own["updated_by"], &own["version"], &own["role"]), (&json!("root"), &json!(1), &Json::Null));
    assert_eq!(house.ask(&bob, "GET", OF_ADA, None).await.0, 403);
    assert_eq!(house.ask(&bob, "GET", OF_ANALYSTS, None).await.0, 403);
    assert_eq!(house.ask(&ada, "PUT", OF_ADA, Some(json!({}))).await.0, 403);
    assert_eq!(house.ask(&ada, "DELETE", OF_ADA, None).await.0, 403);
    let of_ada = format!("{EFFECTIVE}?user_id=ada");
    assert_eq!(house.ask(&bob, "GET", &of_ada, None).await.0, 403);
    let (_, shown) = house.ask(&admin, "GET", &of_ada, None).await;
    assert_eq!(shown["guardrails"], expected);
    let question = json!({"query": {"measures": ["orders.count"]}, "user_id": "ada"});
    let check = "/api/v1/optimization/check-guardrails";
    assert_eq!(house.ask(&bob, "POST", check, Some(question.clone())).await.0, 403);
    for key in [&ada, &admin] {
        let (status, answer) = house.ask(key, "POST", check, Some(question.clone())).await;
        assert_eq!((status, &answer["allowed"]), (200, &json!(false)), "{answer}");
        assert_eq!(answer["exceeded"], json!(["require_time_filter"]));
    }
}

#[tokio::test]
async fn guardrails_of_another_replica_apply_after_the_next_read() {
    let house = House::new().await;
    let ada = house.key("ada", Scopes::READ).await;
    let limits = Some(Guardrails { max_rows_returned: Some(5), ..Guardrails::default() });
    let record = GuardrailRecord {
        subject: GuardrailSubject::User("ada".into()),
        limits,
        version: 1,
        updated_by: "root".into(),
        updated_at: jiff::Timestamp::UNIX_EPOCH,
    };
    house.guardrails.records.lock().unwrap().push((1, record));
    assert_eq!(house.limited_query(&ada, 6).await.0, 200);
    house.edge.app().services.guardrails.as_ref().unwrap().table().refresh().await.unwrap();
    assert_eq!(house.limited_query(&ada, 6).await, (403, json!(5)));
}

const PREDICT: &str = "/api/v1/optimization/predict-cost";

impl House {
    async fn predict(&self, key: &str) -> Json {
        let question = json!({"query": {"measures": ["orders.count"], "dimensions": ["orders.status"]}});
        let (status, body) = self.ask(key, "POST", PREDICT, Some(question)).await;
        assert_eq!(status, 200, "{body}");
        body
    }

    /// Sets the execution times of the recorded queries, in their order.
    fn set_times(&self, seconds: &[u64]) {
        let mut queries = self.history.queries.lock().unwrap();
        assert_eq!(queries.len(), seconds.len());
        for (query, seconds) in queries.iter_mut().zip(seconds) {
            query.warehouse = Duration::from_secs(*seconds);
        }
    }
}

#[tokio::test]
async fn predictions_are_percentiles_of_the_same_statement() {
    let house = House::new().await;
    let (ada, bob) = (house.key("ada", Scopes::READ).await, house.key("bob", Scopes::READ).await);
    for _ in 0..3 {
        let body = json!({"metrics": ["orders.count"], "dimensions": ["orders.status"], "cache": false});
        assert_eq!(house.ask(&ada, "POST", "/api/v1/query", Some(body)).await.0, 200);
    }
    house.query(&ada).await;
    house.history(&ada, "").await;
    // The last query was answered from the cache, so its time does not count.
    house.set_times(&[2, 4, 12, 1]);
    let predicted = house.predict(&bob).await;
    assert_eq!((&predicted["basis"], &predicted["samples"]), (&json!("history"), &json!(3)), "{predicted}");
    assert_eq!((&predicted["estimated_seconds"], &predicted["estimated_cost"]), (&json!(4.0), &json!(2.0)));
    let (low, high) = (predicted["low"]["estimated_seconds"].as_f64(), predicted["high"]["estimated_seconds"].as_f64());
    assert!(low.is_some_and(|low| (low - 2.4).abs() < 1e-9) && high.is_some_and(|high| (high - 10.4).abs() < 1e-9));
    let parts = &predicted["cost_breakdown"];
    assert_eq!(parts, &json!({"scan_cost": 0.0, "compute_cost": 2.0, "egress_cost": 0.0}));
    let hash = house.history(&ada, "").await[0]["query_hash"].clone();
    assert_eq!(predicted["query_hash"], hash);
    // The prediction ran no query.
    assert_eq!(house.history(&ada, "").await.len(), 4);
}

#[tokio::test]
async fn predictions_of_new_statements_are_those_of_the_cube() {
    let house = House::new().await;
    let ada = house.key("ada", Scopes::READ).await;
    for limit in 1..=5 {
        assert_eq!(house.limited_query(&ada, limit).await.0, 200);
    }
    house.history(&ada, "").await;
    house.set_times(&[1, 2, 3, 4, 5]);
    let question = json!({"query": {"measures": ["orders.revenue"], "dimensions": ["orders.id"]}});
    let (status, predicted) = house.ask(&ada, "POST", PREDICT, Some(question)).await;
    assert_eq!(status, 200, "{predicted}");
    assert_eq!((&predicted["basis"], &predicted["samples"]), (&json!("statistics"), &json!(5)), "{predicted}");
    assert_eq!(predicted["estimated_seconds"], 3.0);
}

const TERABYTE: u64 = 1_000_000_000_000;

fn size(bytes: u64, basis: SizeBasis) -> Option<ScanSize> {
    Some(ScanSize { bytes, rows: Some(100), basis })
}

#[tokio::test]
async fn stored_bytes_are_predicted_and_priced() {
    let house = House::of(|world| {
        *world.scan_size.lock().unwrap() = size(TERABYTE / 2, SizeBasis::Exact);
        world.price_of_terabyte = Some(4.0);
    })
    .await;
    let ada = house.key("ada", Scopes::READ).await;
    let predicted = house.predict(&ada).await;
    let bases = json!({"scan_bytes": "exact", "estimated_seconds": "none", "estimated_cost": "exact"});
    assert_eq!((&predicted["bases"], &predicted["scan_bytes"]), (&bases, &json!(5e11)), "{predicted}");
    assert_eq!(predicted["low"]["scan_bytes"], predicted["high"]["scan_bytes"]);
    let parts = json!({"scan_cost": 2.0, "compute_cost": null, "egress_cost": 0.0});
    assert_eq!((&predicted["cost_breakdown"], &predicted["estimated_cost"]), (&parts, &json!(2.0)));
    assert_eq!(predicted["low"]["estimated_cost"], Json::Null);
    let warned = predicted["warnings"].to_string();
    assert!(
        warned.contains("`compute_cost` is unknown") && warned.contains("`estimated_seconds` is unknown"),
        "{warned}"
    );
    // The record of a query has the cost of its bytes and its time.
    house.query(&ada).await;
    let queries = house.history(&ada, "").await;
    assert!(queries[0]["cost"].as_f64().is_some_and(|cost| (2.0..3.0).contains(&cost)), "{queries:?}");
    let after = house.predict(&ada).await;
    assert_eq!(after["bases"]["estimated_seconds"], "history");
    assert!(after["cost_breakdown"]["compute_cost"].is_number() && after["estimated_cost"].as_f64() >= Some(2.0));
}

#[tokio::test]
async fn queries_that_scan_too_much_are_refused() {
    let house = House::of(|world| *world.scan_size.lock().unwrap() = size(2_345, SizeBasis::UpperBound)).await;
    let ada = house.key("ada", Scopes::READ).await;
    let admin = house.key("root", Scopes::default().with(Scope::Admin)).await;
    let set = async |limit: &str| {
        let limits = Some(json!({"max_bytes_scanned": limit}));
        assert_eq!(house.ask(&admin, "PUT", OF_ADA, limits).await.0, 200);
    };
    set("2KB").await;
    let body = || Some(json!({"metrics": ["orders.count"], "dimensions": ["orders.status"], "cache": false}));
    let (status, refused) = house.ask(&ada, "POST", "/api/v1/query", body()).await;
    let error = &refused["error"];
    assert_eq!((status, &error["code"]), (403, &json!("GUARDRAIL_EXCEEDED")), "{refused}");
    let expected = json!({"guardrail": "max_bytes_scanned", "class": "predicted", "limit": 2_000, "requested": 2_400,
        "excess": 400});
    assert_eq!(error["details"], expected);
    insta::assert_snapshot!(error["suggestion"].as_str().unwrap(), @"Use fewer members, or those that a pre-aggregation stores, so that the columns that are read have at most 2KB.");
    let predicted = house.predict(&ada).await;
    assert_eq!(predicted["guardrail_status"]["within_limits"], false);
    assert_eq!(
        (&predicted["bases"]["scan_bytes"], &predicted["low"]["scan_bytes"]),
        (&json!("upper_bound"), &Json::Null)
    );
    set("3KB").await;
    assert_eq!(house.ask(&ada, "POST", "/api/v1/query", body()).await.0, 200);
}

#[tokio::test]
async fn unknown_bytes_pass_the_guardrail_with_a_warning() {
    let house = House::new().await;
    let ada = house.key("ada", Scopes::READ).await;
    let admin = house.key("root", Scopes::default().with(Scope::Admin)).await;
    let limits = Some(json!({"max_bytes_scanned": "1B"}));
    assert_eq!(house.ask(&admin, "PUT", OF_ADA, limits).await.0, 200);
    house.query(&ada).await;
    let question = json!({"query": {"measures": ["orders.count"]}});
    let (status, checked) = house.ask(&ada, "POST", "/api/v1/optimization/check-guardrails", Some(question)).await;
    assert_eq!((status, &checked["allowed"]), (200, &json!(true)), "{checked}");
    let [warning] = &checked["warnings"].as_array().unwrap()[..] else { panic!("{checked}") };
    insta::assert_snapshot!(warning.as_str().unwrap(), @"guardrail `max_bytes_scanned` does not refuse the query, because its bytes are unknown");
    assert_eq!(house.predict(&ada).await["scan_bytes"], Json::Null);
}

#[tokio::test]
async fn times_of_new_statements_come_from_a_model_of_enough_queries() {
    let house = House::of(|world| *world.scan_size.lock().unwrap() = size(5_000, SizeBasis::Statistics)).await;
    let ada = house.key("ada", Scopes::READ).await;
    for limit in 1..=40 {
        assert_eq!(house.limited_query(&ada, limit).await.0, 200);
    }
    let log = Arc::clone(house.edge.app().services.cost.as_ref().unwrap().log());
    log.complete().await;
    house.history(&ada, "").await;
    let question = json!({"query": {"measures": ["orders.revenue"], "dimensions": ["orders.id"]}});
    let (_, predicted) = house.ask(&ada, "POST", PREDICT, Some(question)).await;
    assert_eq!((&predicted["basis"], &predicted["samples"]), (&json!("statistics"), &json!(40)), "{predicted}");
    let seconds = |of: &Json| of["estimated_seconds"].as_f64().unwrap();
    assert!(seconds(&predicted["low"]) <= seconds(&predicted) && seconds(&predicted) <= seconds(&predicted["high"]));
    assert_eq!((&predicted["scan_bytes"], &predicted["high"]["scan_bytes"]), (&json!(5_000.0), &Json::Null));
    let sizes: Vec<_> = house.history.queries.lock().unwrap().iter().map(|query| query.size).collect();
    assert!(sizes.iter().all(|size| size.is_some_and(|size| size.table_bytes == Some(5_000) && size.facts == 1)));
}

#[tokio::test]
async fn statements_that_cost_too_much_are_refused() {
    let house = House::new().await;
    let ada = house.key("ada", Scopes::READ).await;
    let admin = house.key("root", Scopes::default().with(Scope::Admin)).await;
    let body = || Some(json!({"metrics": ["orders.count"], "dimensions": ["orders.status"], "cache": false}));
    for _ in 0..3 {
        assert_eq!(house.ask(&ada, "POST", "/api/v1/query", body()).await.0, 200);
    }
    let set = async |cost: f64| {
        let limits = Some(json!({"max_cost_per_query": cost}));
        assert_eq!(house.ask(&admin, "PUT", OF_ADA, limits).await.0, 200);
    };
    set(0.0).await;
    let (status, refused) = house.ask(&ada, "POST", "/api/v1/query", body()).await;
    let details = &refused["error"]["details"];
    assert_eq!((status, &details["guardrail"]), (403, &json!("max_cost_per_query")), "{refused}");
    assert_eq!((&details["class"], &details["limit"]), (&json!("predicted"), &json!(0.0)));
    assert!(details["requested"].as_f64().is_some_and(|cost| cost > 0.0), "{refused}");
    assert_eq!(house.predict(&ada).await["guardrail_status"]["within_limits"], false);
    set(1_000.0).await;
    assert_eq!(house.ask(&ada, "POST", "/api/v1/query", body()).await.0, 200);
    assert_eq!(house.predict(&ada).await["guardrail_status"]["within_limits"], true);
}

#[tokio::test]
async fn new_process_learns_costs_from_the_history() {
    let house = House::new().await;
    let ada = house.key("ada", Scopes::READ).await;
    let admin = house.key("root", Scopes::default().with(Scope::Admin)).await;
    house.query(&ada).await;
    house.history(&ada, "").await;
    {
        let mut queries = house.history.queries.lock().unwrap();
        let first = queries[0].clone();
        queries.extend([first.clone(), first]);
    }
    let limits = Some(json!({"max_cost_per_query": 0}));
    assert_eq!(house.ask(&admin, "PUT", OF_ADA, limits).await.0, 200);
    let body = || Some(json!({"metrics": ["orders.count"], "dimensions": ["orders.status"]}));
    assert_eq!(house.ask(&ada, "POST", "/api/v1/query", body()).await.0, 200);
    house.edge.app().services.cost.as_ref().unwrap().log().learn().await.unwrap();
    assert_eq!(house.ask(&ada, "POST", "/api/v1/query", body()).await.0, 403);
}

const USAGE: &str = "/api/v1/optimization/budget/usage";

#[tokio::test]
async fn spent_budget_refuses_queries_until_it_is_raised() {
    let house = House::new().await;
    let (ada, bob) = (house.key("ada", Scopes::READ).await, house.key("bob", Scopes::READ).await);
    let admin = house.key("root", Scopes::default().with(Scope::Admin)).await;
    let set = async |budget: Json| assert_eq!(house.ask(&admin, "PUT", OF_ADA, Some(budget)).await.0, 200);
    set(json!({"daily_budget": 10, "monthly_budget": 1000, "alert_at_percent": 80})).await;
    assert_eq!(house.limited_query(&ada, 10).await.0, 200);
    house.history(&ada, "").await;
    house.history.queries.lock().unwrap()[0].cost_micros = Some(9_999_999);
    // The server first spends the amount that it has already claimed. A change of the budget makes it claim again.
    set(json!({"daily_budget": 9.5, "monthly_budget": 1000, "alert_at_percent": 80})).await;
    let body = json!({"metrics": ["orders.count"], "dimensions": ["orders.status"], "cache": false});
    let (status, refused) = house.ask(&ada, "POST", "/api/v1/query", Some(body)).await;
    let details = &refused["error"]["details"];
    assert_eq!((status, &refused["error"]["code"]), (403, &json!("GUARDRAIL_EXCEEDED")), "{refused}");
    assert_eq!((&details["guardrail"], &details["limit"]), (&json!("daily_budget"), &json!(9.5)));
    assert_eq!(details["remaining"], json!(0.0), "{refused}");
    let (status, usage) = house.ask(&ada, "GET", &format!("{USAGE}?period=current_day"), None).await;
    assert_eq!((status, &usage["budget_limit"], &usage["alert_at_percent"]), (200, &json!(9.5), &json!(80)));
    assert_eq!((&usage["amount_spent"], &usage["remaining"]), (&json!(9.999999), &json!(0.0)));
    assert_eq!(usage["query_count"], 1);
    assert_eq!(house.limited_query(&bob, 10).await.0, 200);
    assert_eq!(house.ask(&bob, "GET", &format!("{USAGE}?user_id=ada"), None).await.0, 403);
    let (_, seen) = house.ask(&admin, "GET", &format!("{USAGE}?user_id=ada&period=current_day"), None).await;
    assert_eq!(seen, usage);
    set(json!({"daily_budget": 20})).await;
    assert_eq!(house.limited_query(&ada, 12).await.0, 200);
}

const RECOMMENDATIONS: &str = "/api/v1/optimization/recommendations";

#[tokio::test]
async fn recommendations_are_made_from_the_queries_that_the_caller_may_read() {
    let house = House::new().await;
    let (ada, bob) = (house.key("ada", Scopes::READ).await, house.key("bob", Scopes::READ).await);
    let admin = house.key("root", Scopes::default().with(Scope::Admin)).await;
    let recommended = async |key: &str, parameters: &str| {
        let (status, body) = house.ask(key, "GET", &format!("{RECOMMENDATIONS}{parameters}"), None).await;
        assert_eq!(status, 200, "{body}");
        let found = body["recommendations"].as_array().unwrap().clone();
        found.into_iter().map(|one| (one["kind"].as_str().unwrap().to_owned(), one)).collect::<Vec<_>>()
    };
    let by_status = || json!([{"dimension": "orders.status", "operator": "equals", "value": "paid"}]);
    for limit in 1..=3 {
        let body = json!({"metrics": ["orders.count"], "filters": by_status(), "limit": limit, "cache": false});
        assert_eq!(house.ask(&ada, "POST", "/api/v1/query", Some(body)).await.0, 200);
    }
    assert_eq!(house.history(&ada, "").await.len(), 3);
    house.set_times(&[4, 4, 4]);
    let found = recommended(&ada, "").await;
    let kinds: Vec<&str> = found.iter().map(|(kind, _)| &**kind).collect();
    assert_eq!(kinds, ["filter", "index"], "{found:?}");
    let filter = &found[0].1;
    assert_eq!((&filter["cube"], &filter["members"]), (&json!("orders"), &json!(["orders.created_at"])));
    assert_eq!(
        filter["evidence"],
        json!({"queries": 3, "warehouse_seconds": 12.0, "cost": filter["evidence"]["cost"]})
    );
    assert_eq!(filter["expected_saving"], Json::Null);
    let index = &found[1].1;
    assert_eq!(index["members"], json!(["orders.status"]));
    assert_eq!(index["expected_saving"], json!({"warehouse_seconds": 12.0, "basis": "upper_bound"}));
    assert_eq!(recommended(&bob, "").await, []);
    assert_eq!(recommended(&admin, "?user_id=ada").await, found);
    assert_eq!(recommended(&admin, "?user_id=bob").await, []);
    // Queries with a time range take a fourth of the time of queries without one.
    for limit in 1..=3 {
        let mut body = json!({"metrics": ["orders.count"], "limit": limit, "cache": false});
        body["time_range"] = json!({"start": "2024-01-01", "end": "2024-01-31"});
        assert_eq!(house.ask(&ada, "POST", "/api/v1/query", Some(body)).await.0, 200);
    }
    assert_eq!(house.history(&ada, "").await.len(), 6);
    house.set_times(&[4, 4, 4, 1, 1, 1]);
    let saving = recommended(&ada, "").await[0].1["expected_saving"].clone();
    assert_eq!(saving, json!({"warehouse_seconds": 9.0, "basis": "history"}));
    // Queries without a time range are as fast, so no time range is recommended.
    house.set_times(&[1, 1, 1, 1, 1, 1]);
    assert!(recommended(&ada, "").await.iter().all(|(kind, _)| kind == "index"));
    // Removed or hidden cubes and dimensions are not recommended.
    for query in house.history.queries.lock().unwrap().iter_mut() {
        (query.cube, query.filters) = ("salaries".into(), Some("salaries.amount,orders.secret".into()));
    }
    assert_eq!(recommended(&ada, "").await, []);
}

#[tokio::test]
async fn guardrails_of_many_users_are_those_of_the_caller() {
    let records = Arc::new(MemoryGuardrails::default());
    let limits = Some(Guardrails { max_rows_returned: Some(5), ..Guardrails::default() });
    let record = |number: u64, subject| GuardrailRecord {
        subject,
        limits,
        version: number,
        updated_by: "root".into(),
        updated_at: jiff::Timestamp::UNIX_EPOCH,
    };
    {
        let mut all = records.records.lock().unwrap();
        for number in 0..20_000 {
            let name = number.to_string().into();
            let subject = if number % 2 == 0 { GuardrailSubject::User(name) } else { GuardrailSubject::Group(name) };
            all.push((number + 1, record(number, subject)));
        }
    }
    let table = GuardrailTable::new(records);
    table.refresh().await.unwrap();
    let roles: Vec<Arc<str>> = (1..100).map(|number: u64| number.to_string().into()).collect();
    let caller = SecurityContext { user_id: "10000".into(), roles, ..SecurityContext::default() };
    assert_eq!(table.guardrails_of(&caller).max_rows_returned, Some(5));
    let stranger = SecurityContext { user_id: "none".into(), ..SecurityContext::default() };
    assert_eq!(table.guardrails_of(&stranger), Guardrails::default());
}
