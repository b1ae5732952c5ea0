//! Tests the GraphQL fields of the modules cost, governance, monitors and profiling: each answers as its REST route
//! does, refuses the same callers with the same code, shows no denied members, and is missing if its module is off.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

mod anomaly;
mod cost;
mod governance;

use std::collections::BTreeMap;
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

/// Callers with the role `analyst` see neither the revenue nor values that are computed from it.
const POLICY: &str = "policies: [{name: no_revenue, cubes: [orders], when: {roles: [analyst]}, deny: [revenue]}]\n";

/// A server over a state database, with callers.
struct House {
    edge: Edge,
    keys: BTreeMap<&'static str, String>,
    history: Arc<MemoryHistory>,
    _folder: TempDir,
}

impl House {
    async fn new() -> House {
        House::of(World::default()).await
    }

    async fn of(world: World) -> House {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(StateStore::open("sqlite://state.db", folder.path()).await.unwrap());
        let column = |ty: &str, values: Json| Column { ty: ty.to_owned(), values: values.as_array().unwrap().clone() };
        let world = World {
            caller: Caller::Stranger,
            columns: vec![column("text", json!(["paid", "open"])), column("integer", json!([2, 1]))],
            files: [("policies/p.yml".to_owned(), POLICY.to_owned())].into(),
            ..world
        };
        let history = Arc::clone(&world.executed_queries);
        let security = Security { governance: store.clone(), ..Security::of(store, None) };
        let edge = world.edge_with(security);
        let writer = Scopes::READ.with(Scope::Write);
        let mut keys = BTreeMap::new();
        for (name, scopes, roles) in [
            ("writer", writer, vec![]),
            ("reviewer", writer, vec!["reviewer".into()]),
            ("analyst", writer, vec!["analyst".into()]),
            ("reader", Scopes::READ, vec![]),
            ("admin", writer.with(Scope::Admin), vec![]),
        ] {
            let grants = Grants { scopes, user_id: Some(name.into()), roles, ..Grants::default() };
            let request = KeyRequest { name: name.into(), grants, ..KeyRequest::default() };
            let accounts = edge.app().services.authenticator.accounts().clone();
            keys.insert(name, accounts.create_key(&Actor::default(), request).await.unwrap().text.to_string());
        }
        House { edge, keys, history, _folder: folder }
    }

    /// Sends a REST request; returns the status and the body.
    async fn rest(&self, caller: &str, method: &str, path: &str, body: Option<Json>) -> (u16, Json) {
        let headers = json!({"authorization": format!("Bearer {}", self.keys[caller])});
        let mut asked = json!({"method": method, "path": path, "headers": headers});
        if let Some(body) = body {
            asked["json"] = body;
        }
        let Answered { status, body, .. } = ask(&self.edge, &serde_json::from_value(asked).unwrap()).await;
        (status.as_u16(), serde_json::from_slice(&body).unwrap_or_default())
    }

    async fn get(&self, caller: &str, path: &str) -> Json {
        let (status, body) = self.rest(caller, "GET", path, None).await;
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    async fn change(&self, caller: &str, method: &str, path: &str, body: Json) -> Json {
        let (status, body) = self.rest(caller, method, path, Some(body)).await;
        assert!(status < 300, "{path}: {body}");
        body
    }

    /// Runs a document; returns the whole answer.
    async fn graphql(&self, caller: &str, document: &str) -> Json {
        self.rest(caller, "POST", "/graphql", Some(json!({"query": document}))).await.1
    }

    /// Runs a document of one field without errors; returns the value of the field.
    async fn field(&self, caller: &str, document: &str) -> Json {
        let answer = self.graphql(caller, document).await;
        assert!(answer.get("errors").is_none(), "{document}: {answer}");
        answer["data"].as_object().unwrap().values().next().unwrap().clone()
    }

    /// Runs a document with an error; returns its code.
    async fn code(&self, caller: &str, document: &str) -> String {
        let answer = self.graphql(caller, document).await;
        answer["errors"][0]["extensions"]["code"].as_str().unwrap_or_else(|| panic!("{document}: {answer}")).to_owned()
    }
}

fn snake_case(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// Checks that the fields of a GraphQL object are those of a REST object. Enums differ by case only, and suggestions by
/// the name of `timeRange`.
fn assert_same(graphql: &Json, rest: &Json) {
    match (graphql, rest) {
        (Json::Object(fields), Json::Object(_)) => {
            for (name, value) in fields {
                let of_rest = rest.get(snake_case(name)).unwrap_or_else(|| panic!("{name} is not in {rest}"));
                assert_same(value, of_rest);
            }
        }
        (Json::Array(items), Json::Array(of_rest)) => {
            assert_eq!(items.len(), of_rest.len(), "{graphql} {rest}");
            for (item, of_rest) in items.iter().zip(of_rest) {
                assert_same(item, of_rest);
            }
        }
        (Json::String(text), Json::String(of_rest)) => {
            let text = text.replace("`timeRange`", "`time_range`");
            assert!(text.eq_ignore_ascii_case(of_rest), "{text} {of_rest}");
        }
        (Json::Number(_), Json::Number(_)) => assert_eq!(graphql.as_f64(), rest.as_f64()),
        _ => assert_eq!(graphql, rest),
    }
}

/// A document for each field of a module.
const COST: &[&str] = &[
    "{ queryHistory { next } }",
    "{ guardrails { sources { source } } }",
    "{ subjectGuardrails(userId: \"reader\") { version } }",
    "{ allGuardrails { version } }",
    "{ predictCost(measures: [\"orders.count\"]) { basis } }",
    "{ checkGuardrails(measures: [\"orders.count\"]) { allowed } }",
];
const GOVERNANCE: &[&str] = &[
    "{ glossaryTerm(id: \"t\") { name } }",
    "{ certification(artifactType: CUBE, artifactId: \"orders\") { status } }",
    "{ certifications { total } }",
    "{ owners(artifactType: CUBE, artifactId: \"orders\") { version } }",
    "{ artifactsByOwner(ownerId: \"ada\") { artifactId } }",
    "{ catalog { total } }",
    "{ searchArtifacts { total } }",
    "{ artifact(artifactType: CUBE, artifactId: \"orders\") { title } }",
    "{ governanceHistory { next } }",
    "{ governanceReport { project } }",
];
const MONITORS: &[&str] = &[
    "{ monitor(id: \"m\") { name } }",
    "{ alert(id: \"a\") { status } }",
    "{ rootCause(detectionId: \"d\") { summary } }",
    "{ detectors { faults { component } } }",
    "{ channels { name } }",
];
const PROFILES: &[&str] =
    &["{ qualityScore(cube: \"orders\") { scoredWeight } }", "{ profileChanges(cube: \"orders\") { since } }"];

#[tokio::test]
async fn fields_need_the_scope_read() {
    let edge = World { caller: Caller::Powerless, ..World::default() }.edge();
    for document in [COST, GOVERNANCE, MONITORS, PROFILES].concat() {
        let asked = json!({"method": "POST", "path": "/graphql", "json": {"query": document}});
        let Answered { status, body, .. } = ask(&edge, &serde_json::from_value(asked).unwrap()).await;
        let answer: Json = serde_json::from_slice(&body).unwrap();
        let error = &answer["errors"][0]["extensions"];
        assert_eq!((status.as_u16(), &error["code"]), (403, &json!("FORBIDDEN")), "{document} {answer}");
    }
}

#[tokio::test]
async fn fields_of_modules_that_are_off_are_missing() {
    for (documents, off) in [
        (COST, World { has_no_costs: true, ..World::default() }),
        (GOVERNANCE, World { has_no_governance: true, ..World::default() }),
        (MONITORS, World { has_no_monitors: true, ..World::default() }),
        (PROFILES, World { has_no_profiling: true, ..World::default() }),
    ] {
        let house = House::of(off).await;
        for document in documents {
            assert_eq!(house.code("admin", document).await, "GRAPHQL_VALIDATION_FAILED", "{document}");
        }
    }
}
