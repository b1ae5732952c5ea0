//! Tests governance over HTTP with a real state database: certification, glossary, owners, metadata, history and
//! report, with good and bad input, for callers with and without policies.
//!
//! The tests are in one file, because they share one world of artifacts and callers, and most follow a record through
//! several areas.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

mod breaking;
mod bulk;
mod catalog;
mod definitions;
mod transfer;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value as Json, json};
use tempfile::TempDir;
use terrane_app::accounts::{Actor, Grants, KeyRequest};
use terrane_app::governance::{GovernanceSettings, OnChange};
use terrane_app::ports::audit::{AuditFilter, AuditLog as _, Details};
use terrane_app::security::{Scope, Scopes};
use terrane_conformance_tests::case::{Answered, Caller, World, ask};
use terrane_conformance_tests::hooks::FakeHook;
use terrane_conformance_tests::project;
use terrane_conformance_tests::security::Security;
use terrane_server::Edge;
use terrane_store::StateStore;

const BASE: &str = "/api/v1/governance";
const REVENUE: &str = "artifact_type=measure&artifact_id=orders.revenue";

/// Callers with the role `analyst` see neither the revenue nor values that are computed from it.
const POLICY: &str = "policies: [{name: no_revenue, cubes: [orders], when: {roles: [analyst]}, deny: [revenue]}]\n";

/// A further cube with governance metadata in its file.
const STOCK: &str = "\
cubes:
  - name: stock
    sql_table: raw.stock
    meta: {owner: 'team:logistics', tags: [warehouse], classification: internal}
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: keeper, type: string, sql: keeper, meta: {pii: true}}
    measures:
      - {name: pieces, type: sum, sql: pieces, description: All pieces., meta: {owner: ada}}
";

/// A server over a state database, with callers.
struct House {
    edge: Edge,
    store: Arc<StateStore>,
    keys: BTreeMap<&'static str, String>,
    _folder: TempDir,
}

fn world() -> World {
    let files = [("policies/p.yml", POLICY), ("cubes/stock.yml", STOCK)];
    let files = files.map(|(path, text)| (path.to_owned(), text.to_owned())).into_iter().collect();
    World { caller: Caller::Stranger, files, ..World::default() }
}

/// A response: status, entity tag, body.
#[derive(Debug)]
struct Response {
    status: u16,
    tag: Option<String>,
    json: Json,
    text: String,
    content_type: String,
}

impl Response {
    fn code(&self) -> (u16, &str) {
        (self.status, self.json["error"]["code"].as_str().unwrap_or_default())
    }

    fn details(&self) -> &Json {
        &self.json["error"]["details"]
    }
}

impl House {
    async fn new() -> House {
        House::of(world()).await
    }

    async fn of(world: World) -> House {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(StateStore::open("sqlite://state.db", folder.path()).await.unwrap());
        House::over(world, store, folder).await
    }

    async fn over(world: World, store: Arc<StateStore>, folder: TempDir) -> House {
        let security = Security { governance: store.clone(), ..Security::of(store.clone(), None) };
        let edge = world.edge_with(security);
        let writer = Scopes::READ.with(Scope::Write);
        let mut keys = BTreeMap::new();
        for (name, scopes, roles, groups) in [
            ("writer", writer, vec![], vec![]),
            ("reviewer", writer, vec!["reviewer"], vec![]),
            ("steward", writer, vec![], vec!["stewards"]),
            ("analyst", writer, vec!["analyst"], vec![]),
            ("reader", Scopes::READ, vec![], vec![]),
            ("admin", writer.with(Scope::Admin), vec![], vec![]),
            ("ada", writer, vec![], vec![]),
            // A second key of the user `reviewer`, without the reviewer's role.
            ("former", writer, vec![], vec![]),
        ] {
            let texts = |texts: Vec<&str>| texts.into_iter().map(Into::into).collect();
            let user_id = Some(if name == "former" { "reviewer" } else { name }.into());
            let grants = Grants { scopes, user_id, roles: texts(roles), groups: texts(groups), ..Grants::default() };
            let request = KeyRequest { name: name.into(), grants, ..KeyRequest::default() };
            let accounts = edge.app().services.authenticator.accounts().clone();
            keys.insert(name, accounts.create_key(&Actor::default(), request).await.unwrap().text.to_string());
        }
        House { edge, store, keys, _folder: folder }
    }

    /// Returns a server over the same state with other files and settings.
    async fn restarted(self, world: World) -> House {
        let House { store, _folder, .. } = self;
        House::over(world, store, _folder).await
    }

    async fn send(
        &self,
        caller: &str,
        method: &str,
        path: &str,
        body: Option<Json>,
        headers: &[(&str, &str)],
    ) -> Response {
        let mut sent = json!({"authorization": format!("Bearer {}", self.keys[caller])});
        for (name, value) in headers {
            sent[name] = (*value).into();
        }
        let mut asked = json!({"method": method, "path": format!("{BASE}{path}"), "headers": sent});
        if let Some(body) = body {
            asked["json"] = body;
        }
        self.ask(asked).await
    }

    async fn ask(&self, asked: Json) -> Response {
        let Answered { status, headers, body } = ask(&self.edge, &serde_json::from_value(asked).unwrap()).await;
        let header = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
        Response {
            status: status.as_u16(),
            tag: header("etag"),
            json: serde_json::from_slice(&body).unwrap_or_default(),
            text: String::from_utf8_lossy(&body).into_owned(),
            content_type: header("content-type").unwrap_or_default(),
        }
    }

    async fn get(&self, caller: &str, path: &str) -> Response {
        self.send(caller, "GET", path, None, &[]).await
    }

    async fn post(&self, caller: &str, path: &str, body: Json) -> Response {
        self.send(caller, "POST", path, Some(body), &[]).await
    }

    async fn step(&self, caller: &str, step: &str, id: &str, more: Json) -> Response {
        let mut body = json!({"artifact_type": "measure", "artifact_id": id});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.post(caller, &format!("/certification/{step}"), body).await
    }

    async fn certified(&self, id: &str) {
        assert_eq!(self.step("writer", "submit", id, json!({"notes": "ready"})).await.status, 200);
        assert_eq!(self.step("reviewer", "certify", id, json!({})).await.status, 200);
    }

    async fn term(&self, name: &str) -> String {
        let created =
            self.post("writer", "/glossary/terms", json!({"name": name, "definition": format!("About {name}")})).await;
        assert_eq!(created.status, 201, "{created:?}");
        created.json["id"].as_str().unwrap().to_owned()
    }

    async fn events(&self) -> Vec<(String, String)> {
        let filter = AuditFilter { limit: 1_000, ..AuditFilter::default() };
        let mut records = self.store.records(&filter).await.unwrap();
        records.reverse();
        records.iter().map(|record| (record.entry.event.to_string(), record.entry.resource.to_string())).collect()
    }
}

#[tokio::test]
async fn artifact_is_submitted_certified_and_deprecated() {
    let house = House::new().await;
    let first = house.get("reader", &format!("/certification/status?{REVENUE}")).await;
    assert_eq!((first.status, first.tag.as_deref()), (200, Some("\"0\"")));
    assert_eq!((&first.json["status"], &first.json["allowed_moves"]), (&json!("draft"), &json!(["submit", "archive"])));

    let submitted = house.step("writer", "submit", "orders.revenue", json!({"notes": "Agreed in March."})).await;
    assert_eq!((submitted.status, submitted.tag.as_deref()), (200, Some("\"1\"")), "{submitted:?}");
    assert_eq!(submitted.json["status"], "pending_review");
    assert_eq!(submitted.json["submitted_by"], "writer");

    let more = json!({"notes": "Checked.", "valid_until": "2024-12-31"});
    let certified = house.step("reviewer", "certify", "orders.revenue", more).await;
    assert_eq!(certified.status, 200, "{certified:?}");
    for (field, value) in [
        ("status", json!("certified")),
        ("certified_by", json!("reviewer")),
        ("certified_at", json!("2024-02-14T12:00:00Z")),
        ("valid_until", json!("2024-12-31")),
        ("notes", json!("Checked.")),
        ("version", json!(2)),
        ("expired", json!(false)),
        ("definition_changed", Json::Null),
    ] {
        assert_eq!(certified.json[field], value, "{field}");
    }
    let listed = house.get("reader", "/certification/list?status=certified&artifact_type=measure").await;
    assert_eq!(listed.json["certifications"], json!([certified.json]));
    assert_eq!(house.get("reader", "/certification/list?status=deprecated").await.json["certifications"], json!([]));

    let reason = json!({"reason": "Replaced.", "replacement": "orders.largest", "sunset_date": "2024-06-30"});
    let deprecated = house.step("reviewer", "deprecate", "orders.revenue", reason).await;
    assert_eq!((deprecated.status, &deprecated.json["status"]), (200, &json!("deprecated")), "{deprecated:?}");
    assert_eq!(deprecated.json["replacement"], "orders.largest");
    assert_eq!(house.step("reviewer", "restore", "orders.revenue", json!({})).await.json["status"], "draft");
    assert_eq!(house.step("reviewer", "archive", "orders.revenue", json!({})).await.json["status"], "archived");

    let history = house.get("writer", &format!("/history?{REVENUE}")).await;
    let actions: Vec<&str> =
        history.json["changes"].as_array().unwrap().iter().map(|change| change["action"].as_str().unwrap()).collect();
    let expected = [
        "artifact_archived",
        "artifact_restored",
        "artifact_deprecated",
        "artifact_certified",
        "certification_submitted",
    ];
    assert_eq!(actions, expected);
    let certified = &history.json["changes"][3];
    assert_eq!(
        (&certified["before"]["status"], &certified["after"]["status"]),
        (&json!("pending_review"), &json!("certified"))
    );
    let events: Vec<_> = house.events().await.into_iter().filter(|(event, _)| expected.contains(&&**event)).collect();
    assert_eq!(events.len(), expected.len());
    assert!(events.iter().all(|(_, resource)| resource == "measure:orders.revenue"), "{events:?}");
    let filter = AuditFilter { event: Some("artifact_certified".into()), limit: 1, ..AuditFilter::default() };
    let entry = house.store.records(&filter).await.unwrap().remove(0).entry;
    let status =
        |details: &Option<Details>| terrane_json::details::to_json(details.as_ref().unwrap())["status"].clone();
    assert_eq!((status(&entry.before), status(&entry.after)), (json!("pending_review"), json!("certified")));
}

#[tokio::test]
async fn refused_moves_list_the_allowed_ones() {
    let house = House::new().await;
    let refused = house.step("reviewer", "certify", "orders.revenue", json!({})).await;
    assert_eq!(refused.code(), (409, "CONFLICT"));
    assert_eq!(refused.details(), &json!({"state": "draft", "allowed_moves": ["submit", "archive"]}));
    house.certified("orders.revenue").await;
    let refused = house.step("writer", "submit", "orders.revenue", json!({"notes": "again"})).await;
    assert_eq!(refused.details()["allowed_moves"], json!(["deprecate"]));
}

#[tokio::test]
async fn reviewers_cannot_certify_their_own_submissions() {
    let house = House::new().await;
    let submit = |caller| house.step(caller, "submit", "orders.revenue", json!({"notes": "ready"}));
    assert_eq!(submit("reviewer").await.status, 200);
    let own = house.step("reviewer", "certify", "orders.revenue", json!({})).await;
    assert_eq!((own.code(), &own.details()["reason"]), ((403, "FORBIDDEN"), &json!("own_submission")));
    let stranger = house.step("writer", "certify", "orders.revenue", json!({})).await;
    assert_eq!((stranger.code(), &stranger.details()["reason"]), ((403, "FORBIDDEN"), &json!("reviewer_required")));
    assert!(house.events().await.iter().any(|(event, _)| event == "access_denied"));
    assert_eq!(house.step("reader", "certify", "orders.revenue", json!({})).await.status, 403);
    // A steward of the artifact may review it. The group of the caller `steward` is not assigned yet.
    assert_eq!(house.step("steward", "reject", "orders.revenue", json!({"reason": "no"})).await.status, 403);
    let steward = json!({
        "artifact_type": "measure", "artifact_id": "orders.revenue",
        "owner_type": "team", "owner_id": "stewards", "role": "data_steward",
    });
    assert_eq!(house.post("reviewer", "/ownership/assign", steward).await.status, 201);
    let rejected = house.step("steward", "reject", "orders.revenue", json!({"reason": "Too early."})).await;
    assert_eq!((rejected.status, &rejected.json["rejected"]["notes"]), (200, &json!("Too early.")));
    assert_eq!(submit("steward").await.status, 200);
    assert_eq!(house.step("admin", "certify", "orders.revenue", json!({})).await.status, 200);

    let settings = GovernanceSettings { allow_self_certification: true, ..GovernanceSettings::default() };
    let house = House::of(World { governance: settings, ..world() }).await;
    assert_eq!(house.step("reviewer", "submit", "orders.count", json!({"notes": "ready"})).await.status, 200);
    assert_eq!(house.step("reviewer", "certify", "orders.count", json!({})).await.status, 200);
}

#[tokio::test]
async fn bad_input_is_refused_with_its_field() {
    let house = House::new().await;
    let artifact = |kind: &str, id: &str| json!({"artifact_type": kind, "artifact_id": id, "notes": "x"});
    for (path, body, expected, field) in [
        ("/certification/submit", artifact("segment", "orders.paid"), (400, "INVALID_QUERY"), "artifact_type"),
        ("/certification/submit", artifact("measure", "orders.revenu"), (404, "NOT_FOUND"), "artifact_id"),
        ("/certification/submit", artifact("measure", "orders.cost"), (404, "NOT_FOUND"), "artifact_id"),
        ("/certification/submit", artifact("measure", "orders.status"), (404, "NOT_FOUND"), "artifact_id"),
        ("/certification/submit", artifact("cube", "ledger"), (404, "NOT_FOUND"), "artifact_id"),
        (
            "/certification/submit",
            json!({"artifact_type": "measure", "artifact_id": "orders.revenue", "notes": " "}),
            (400, "INVALID_QUERY"),
            "notes",
        ),
        (
            "/certification/certify",
            json!({"artifact_type": "measure", "artifact_id": "orders.revenue", "valid_until": "soon"}),
            (400, "INVALID_QUERY"),
            "valid_until",
        ),
        ("/glossary/terms", json!({"name": "", "definition": "x"}), (400, "INVALID_QUERY"), "name"),
        (
            "/glossary/terms",
            json!({"name": "a", "definition": "x".repeat(20_000)}),
            (400, "INVALID_QUERY"),
            "definition",
        ),
        (
            "/glossary/terms",
            json!({"name": "a", "definition": "x", "synonyms": ["b", "B"]}),
            (400, "INVALID_QUERY"),
            "synonyms",
        ),
        (
            "/glossary/terms",
            json!({"name": "a", "definition": "x", "formula": "orders.nothing / orders.count"}),
            (400, "INVALID_QUERY"),
            "formula",
        ),
        (
            "/glossary/terms",
            json!({"name": "a", "definition": "x", "related_terms": ["none"]}),
            (404, "NOT_FOUND"),
            "related_terms",
        ),
        (
            "/ownership/assign",
            json!({
                "artifact_type": "cube", "artifact_id": "orders", "owner_type": "robot", "owner_id": "a",
                "role": "data_owner",
            }),
            (400, "INVALID_QUERY"),
            "owner_type",
        ),
    ] {
        let refused = house.post("reviewer", path, body.clone()).await;
        assert_eq!(refused.code(), expected, "{path} {body}: {refused:?}");
        assert_eq!(refused.details()["field"], field, "{path} {body}");
    }
    let near = house.post("writer", "/certification/submit", artifact("measure", "orders.revenu")).await;
    assert_eq!(near.details()["nearest"][0], "orders.revenue");
    let huge = json!({"name": "a", "definition": "x".repeat(10_000_000)});
    assert_eq!(house.post("writer", "/glossary/terms", huge).await.code(), (413, "PAYLOAD_TOO_LARGE"));
    for path in ["/certification/status", "/certification/status?artifact_type=measure", "/ownership/by-owner"] {
        assert_eq!(house.get("reader", path).await.code(), (400, "INVALID_QUERY"), "{path}");
    }
    let patch = |body| house.send("writer", "PATCH", "/artifacts/cube/orders/metadata", Some(body), &[]);
    for body in [json!({"documentation_url": "javascript:alert(1)"}), json!({"pii_flag": "yes"}), json!({"title": "x"})]
    {
        assert_eq!(patch(body.clone()).await.code(), (400, "INVALID_QUERY"), "{body}");
    }
    assert_eq!(patch(json!({})).await.code(), (400, "INVALID_QUERY"));
    house.step("writer", "submit", "orders.revenue", json!({"notes": "x"})).await;
    let past = house.step("reviewer", "certify", "orders.revenue", json!({"valid_until": "2024-02-13"})).await;
    assert_eq!((past.code(), &past.details()["field"]), ((400, "INVALID_QUERY"), &json!("valid_until")));
    let today = house.step("reviewer", "certify", "orders.revenue", json!({"valid_until": "2024-02-14"})).await;
    assert_eq!((today.status, &today.json["expired"]), (200, &json!(false)), "the last day counts");
    let reason = |day| json!({"reason": "x", "sunset_date": day});
    let past = house.step("reviewer", "deprecate", "orders.revenue", reason("2024-02-13")).await;
    assert_eq!((past.code(), &past.details()["field"]), ((400, "INVALID_QUERY"), &json!("sunset_date")));
    assert_eq!(house.step("reviewer", "deprecate", "orders.revenue", reason("2024-02-14")).await.status, 200);
}

#[tokio::test]
async fn terms_have_unique_names_and_links_without_cycles() {
    let house = House::new().await;
    let body = json!({
        "name": "Net revenue", "definition": "Money after refunds.", "synonyms": ["turnover"], "category": "Finance",
        "subcategory": "Sales", "examples": ["100 sold, 10 returned: 90"], "formula": "orders.revenue / orders.count",
        "owner": "ada",
    });
    let created = house.post("writer", "/glossary/terms", body.clone()).await;
    assert_eq!((created.status, created.tag.as_deref()), (201, Some("\"1\"")), "{created:?}");
    let id = created.json["id"].as_str().unwrap().to_owned();
    for (field, value) in body.as_object().unwrap() {
        assert_eq!(created.json[field], *value, "{field}");
    }
    assert_eq!((&created.json["status"], &created.json["created_by"]), (&json!("approved"), &json!("writer")));
    let again = house
        .post("writer", "/glossary/terms", json!({"name": "net REVENUE", "category": "finance", "definition": "x"}))
        .await;
    assert_eq!((again.code(), &again.details()["existing_id"]), ((409, "CONFLICT"), &json!(id)));
    let elsewhere = json!({"name": "Net revenue", "category": "Tax", "definition": "x"});
    assert_eq!(house.post("writer", "/glossary/terms", elsewhere).await.status, 201);

    let found = house.get("reader", "/glossary/search?query=Turnover").await;
    assert_eq!(found.json["terms"][0]["id"], json!(id));
    assert_eq!(house.get("reader", "/glossary/search?query=refunds&category=finance").await.json["terms"][0]["id"], id);
    assert_eq!(house.get("reader", "/glossary/search?query=refunds+nothing").await.json["terms"], json!([]));
    assert_eq!(house.get("reader", "/glossary/terms?category=Tax").await.json["terms"].as_array().unwrap().len(), 1);

    let link = |id: &str, kind: &str, target: &str, relationship: &str| {
        let body = json!({"artifact_type": kind, "artifact_id": target, "relationship": relationship});
        let path = format!("/glossary/terms/{id}/links");
        let house = &house;
        async move { house.post("writer", &path, body).await }
    };
    let linked = link(&id, "measure", "orders.revenue", "defines").await;
    assert_eq!(linked.status, 201, "{linked:?}");
    assert_eq!(linked.json["linked_artifacts"]["measures"], json!(["orders.revenue"]));
    assert_eq!(link(&id, "measure", "orders.revenue", "defines").await.code(), (409, "CONFLICT"));
    assert_eq!(link(&id, "measure", "orders.none", "defines").await.code(), (404, "NOT_FOUND"));
    assert_eq!(link(&id, "measure", "orders.count", "explains").await.code(), (400, "INVALID_QUERY"));
    let (b, c) = (house.term("b").await, house.term("c").await);
    assert_eq!(link(&id, "term", &b, "synonym_of").await.status, 201);
    assert_eq!(link(&b, "term", &c, "relates_to").await.status, 201);
    assert_eq!(link(&c, "term", &b, "relates_to").await.status, 201, "a symmetric relationship closes no cycle");
    assert_eq!(link(&c, "term", &id, "synonym_of").await.status, 201);
    assert_eq!(link(&id, "term", &b, "defines").await.status, 201);
    assert_eq!(link(&b, "term", &c, "defines").await.status, 201);
    let cycle = link(&c, "term", &id, "defines").await;
    assert_eq!(cycle.code(), (409, "CONFLICT"));
    assert_eq!(cycle.details()["cycle"], json!(["c", "Net revenue", "b", "c"]));
    assert_eq!(link(&b, "term", &b, "relates_to").await.code(), (409, "CONFLICT"));

    let path = format!("/glossary/terms/{id}");
    let patch = json!({"synonyms": ["sales"], "category": null, "status": "draft"});
    let changed = house.send("writer", "PATCH", &path, Some(patch), &[]).await;
    assert_eq!((changed.status, &changed.json["category"]), (200, &Json::Null), "{changed:?}");
    assert_eq!(house.get("reader", "/glossary/search?query=turnover").await.json["terms"], json!([]));
    let unlink = format!("{path}/links?{REVENUE}&relationship=defines");
    assert_eq!(house.send("writer", "DELETE", &unlink, None, &[]).await.status, 200);
    assert_eq!(house.send("writer", "DELETE", &unlink, None, &[]).await.code(), (404, "NOT_FOUND"));

    assert_eq!(house.send("writer", "DELETE", &path, None, &[]).await.status, 204);
    assert_eq!(house.get("reader", &path).await.json["status"], "archived");
    assert_eq!(house.send("writer", "DELETE", &path, None, &[]).await.code(), (409, "CONFLICT"));
    assert_eq!(link(&id, "measure", "orders.count", "defines").await.code(), (409, "CONFLICT"));
    house.term("Net revenue").await;
    let restored = house.send("writer", "PATCH", &path, Some(json!({"status": "approved"})), &[]).await;
    assert_eq!(restored.code(), (409, "CONFLICT"), "the name was taken meanwhile");
    assert_eq!(house.get("reader", "/glossary/terms/none").await.code(), (404, "NOT_FOUND"));
    let actions = house.get("reader", &format!("/history?term_id={id}")).await;
    assert_eq!(actions.json["changes"][0]["action"], "term_archived");
}

#[tokio::test]
async fn metadata_overrides_the_files_and_names_its_origin() {
    let house = House::new().await;
    let path = "/artifacts/cube/stock";
    let first = house.get("reader", path).await;
    assert_eq!((first.status, first.tag.as_deref()), (200, Some("\"0\"")), "{first:?}");
    assert_eq!((&first.json["tags"], &first.json["origins"]["tags"]), (&json!(["warehouse"]), &json!("file")));
    assert_eq!(first.json["data_classification"], "internal");
    assert_eq!((&first.json["pii_flag"], &first.json["origins"]["pii_flag"]), (&json!(false), &json!("default")));
    let owner = &first.json["owners"][0];
    assert_eq!((&owner["owner_type"], &owner["owner_id"]), (&json!("team"), &json!("logistics")));

    let body = json!({
        "description": "Goods in store.", "tags": ["gold"], "documentation_url": "https://wiki.example/stock",
        "refresh_frequency": "hourly", "pii_flag": true,
    });
    let metadata = format!("{path}/metadata");
    let set = house.send("writer", "PATCH", &metadata, Some(body.clone()), &[]).await;
    assert_eq!((set.status, set.tag.as_deref()), (200, Some("\"1\"")), "{set:?}");
    for (field, value) in body.as_object().unwrap() {
        assert_eq!((&set.json[field], &set.json["origins"][field]), (value, &json!("api")), "{field}");
    }
    assert_eq!(set.json["origins"]["data_classification"], "file");
    let same = house.send("writer", "PATCH", &metadata, Some(body), &[]).await;
    assert_eq!(same.tag.as_deref(), Some("\"1\""), "no change, no version");
    let back = house.send("writer", "PATCH", &metadata, Some(json!({"tags": null})), &[]).await;
    assert_eq!((&back.json["tags"], &back.json["origins"]["tags"]), (&json!(["warehouse"]), &json!("file")));

    let found = house.get("reader", "/artifacts/search?tags=Warehouse").await;
    assert_eq!((&found.json["total"], &found.json["artifacts"][0]["artifact_id"]), (&json!(1), &json!("stock")));
    assert_eq!(house.get("reader", "/artifacts/search?query=in+store").await.json["total"], 1);
    house.certified("stock.pieces").await;
    let certified = house.get("reader", "/artifacts/search?certification_status=certified").await;
    assert_eq!(
        (&certified.json["total"], &certified.json["artifacts"][0]["artifact_id"]),
        (&json!(1), &json!("stock.pieces"))
    );
    let page = house.get("reader", "/artifacts/search?limit=2&offset=1").await;
    assert_eq!(page.json["artifacts"].as_array().unwrap().len(), 2);
    assert_eq!(house.get("reader", "/artifacts/cube/none").await.code(), (404, "NOT_FOUND"));
    assert_eq!(house.get("reader", "/artifacts/table/x").await.code(), (400, "INVALID_QUERY"));
}

#[tokio::test]
async fn owners_are_assigned_and_removed() {
    let house = House::new().await;
    let body = json!({
        "artifact_type": "measure", "artifact_id": "stock.pieces", "owner_type": "user", "owner_id": "grace",
        "role": "data_owner",
    });
    let owners = "/ownership?artifact_type=measure&artifact_id=stock.pieces";
    assert_eq!(house.get("reader", owners).await.json["owners"][0]["owner_id"], "ada", "an owner of the files");
    let assigned = house.post("reviewer", "/ownership/assign", body.clone()).await;
    assert_eq!((assigned.status, assigned.tag.as_deref()), (201, Some("\"1\"")), "{assigned:?}");
    for (field, value) in body.as_object().unwrap() {
        assert_eq!(assigned.json[field], *value, "{field}");
    }
    assert_eq!(assigned.json["assigned_by"], "reviewer");
    assert_eq!(house.post("reviewer", "/ownership/assign", body).await.code(), (409, "CONFLICT"));
    let listed = house.get("reader", owners).await;
    assert_eq!((listed.json["owners"].as_array().unwrap().len(), &listed.json["version"]), (1, &json!(1)));
    let owned = house.get("reader", "/ownership/by-owner?owner_id=grace").await;
    assert_eq!(owned.json["artifacts"][0]["artifact_id"], "stock.pieces");
    let of_team = house.get("reader", "/ownership/by-owner?owner_id=logistics&owner_type=team").await;
    assert_eq!(of_team.json["artifacts"][0]["artifact_id"], "stock");
    let remove = format!("{owners}&owner_id=grace");
    let removed = house.send("reviewer", "DELETE", &remove, None, &[]).await;
    assert_eq!((removed.status, &removed.json["owners"][0]["owner_id"]), (200, &json!("ada")), "{removed:?}");
    assert_eq!(house.send("reviewer", "DELETE", &remove, None, &[]).await.code(), (404, "NOT_FOUND"));
}

#[tokio::test]
async fn owners_are_changed_with_write_and_stewards_by_reviewers() {
    let house = House::new().await;
    let assign = |caller, id: &str, kind: &str, owner: &str, role: &str| {
        let body = json!({
            "artifact_type": "measure", "artifact_id": id, "owner_type": kind, "owner_id": owner, "role": role,
        });
        let house = &house;
        async move {
            let answered = house.post(caller, "/ownership/assign", body).await;
            (answered.status, answered.details()["reason"].as_str().unwrap_or_default().to_owned())
        }
    };
    let refused = |reason: &str| (403, reason.to_owned());
    let accepted = (201, String::new());
    // Owners who assigned themselves have no rights.
    for role in ["data_owner", "technical_owner"] {
        assert_eq!(assign("writer", "orders.count", "user", "writer", role).await, accepted, "{role}");
    }
    assert_eq!(house.step("writer", "archive", "orders.count", json!({})).await.code(), (403, "FORBIDDEN"));
    assert_eq!(assign("reader", "orders.count", "user", "reader", "data_owner").await.0, 403, "`write` is required");
    // Nor can they make anyone a steward.
    for (kind, owner) in [("user", "writer"), ("user", "former"), ("team", "stewards")] {
        let assigned = assign("writer", "orders.count", kind, owner, "data_steward").await;
        assert_eq!(assigned, refused("reviewer_required"), "{owner}");
    }
    assert_eq!(assign("steward", "orders.count", "team", "stewards", "data_steward").await.0, 403);
    let denials = house.events().await.into_iter().filter(|(event, _)| event == "access_denied").count();
    assert!(denials > 0, "a denial is audited");

    // The files make `ada` the owner of `stock.pieces`. It stays able to assign stewards if the API assigns owners.
    assert_eq!(assign("ada", "stock.pieces", "user", "ada", "data_steward").await, refused("own_stewardship"));
    assert_eq!(assign("writer", "stock.pieces", "user", "grace", "data_owner").await, accepted);
    assert_eq!(assign("ada", "stock.pieces", "user", "steward", "data_steward").await, accepted);
    assert_eq!(assign("admin", "orders.count", "user", "steward", "data_steward").await, accepted);
    assert_eq!(assign("steward", "orders.count", "team", "stewards", "data_steward").await, refused("own_stewardship"));
    assert_eq!(assign("steward", "orders.count", "user", "ada", "data_steward").await, accepted);
    house.step("writer", "submit", "orders.count", json!({"notes": "ready"})).await;
    assert_eq!(house.step("writer", "certify", "orders.count", json!({})).await.code(), (403, "FORBIDDEN"));
    assert_eq!(house.step("steward", "certify", "orders.count", json!({})).await.status, 200);
    assert_eq!(assign("ada", "orders.count", "user", "former", "data_owner").await, accepted);

    // A caller who assigned itself as steward and lacks the reviewer's role may not review.
    assert_eq!(assign("reviewer", "orders.largest", "user", "reviewer", "data_steward").await, accepted);
    house.step("writer", "submit", "orders.largest", json!({"notes": "ready"})).await;
    let own = house.step("former", "certify", "orders.largest", json!({})).await;
    assert_eq!((own.code(), &own.details()["reason"]), ((403, "FORBIDDEN"), &json!("reviewer_required")));
    assert_eq!(house.step("reviewer", "certify", "orders.largest", json!({})).await.status, 200);

    let remove = "/ownership?artifact_type=measure&artifact_id=orders.largest&owner_id=reviewer";
    let removed = house.send("writer", "DELETE", remove, None, &[]).await;
    assert_eq!((removed.code(), &removed.details()["reason"]), ((403, "FORBIDDEN"), &json!("reviewer_required")));
    assert_eq!(house.send("former", "DELETE", remove, None, &[]).await.status, 200, "an owner may leave");
    let remove = "/ownership?artifact_type=measure&artifact_id=stock.pieces&owner_id=grace";
    assert_eq!(house.send("writer", "DELETE", remove, None, &[]).await.status, 200);
}

#[tokio::test]
async fn history_numbers_disclose_no_hidden_changes() {
    let house = House::new().await;
    let patch = |caller: &'static str, id: &str, text: &str| {
        let (path, body) = (format!("/artifacts/measure/{id}/metadata"), json!({"description": text}));
        let house = &house;
        async move { assert_eq!(house.send(caller, "PATCH", &path, Some(body), &[]).await.status, 200) }
    };
    for text in ["a", "b", "c"] {
        patch("writer", "orders.count", text).await;
        patch("writer", "orders.revenue", text).await;
    }
    let first = house.get("analyst", "/history?limit=2").await;
    assert_eq!(first.json["next"], "metadata:measure:orders.count:2");
    let page = house.get("analyst", "/history?limit=2&before=metadata:measure:orders.count:2").await;
    let changes = [&first, &page].map(|page| page.json["changes"].as_array().unwrap().clone()).concat();
    assert_eq!((changes.len(), &page.json["next"]), (3, &Json::Null));
    for change in &changes {
        assert!(change.get("sequence").is_none(), "{change}");
    }
    let last = house.get("writer", "/history?before=metadata:measure:orders.count:1").await;
    assert_eq!(last.json["changes"], json!([]));
    // A hidden change gets the same answer as an unknown one.
    for change in ["metadata:measure:orders.revenue:1", "metadata:measure:orders.xyzzy:1"] {
        let answer = house.get("analyst", &format!("/history?before={change}")).await;
        assert_eq!((answer.code(), &answer.details()["field"]), ((404, "NOT_FOUND"), &json!("before")), "{change}");
    }
    assert_eq!(house.get("writer", "/history?before=metadata:measure:orders.revenue:1").await.status, 200);
    assert_eq!(house.get("writer", "/history?before=7").await.code(), (400, "INVALID_QUERY"));
}

#[tokio::test]
async fn lists_have_pages() {
    let house = House::new().await;
    for name in ["a", "b", "c"] {
        house.term(name).await;
    }
    let names = |listed: &Response| -> Vec<String> {
        listed.json["terms"].as_array().unwrap().iter().map(|term| term["name"].as_str().unwrap().to_owned()).collect()
    };
    let page = house.get("reader", "/glossary/terms?limit=1&offset=1").await;
    assert_eq!((names(&page), &page.json["total"]), (vec!["b".to_owned()], &json!(3)));
    let all = house.get("reader", "/glossary/terms").await;
    assert_eq!((names(&all).len(), &all.json["total"]), (3, &json!(3)));
    house.step("writer", "submit", "orders.count", json!({"notes": "x"})).await;
    house.step("writer", "submit", "orders.revenue", json!({"notes": "x"})).await;
    let page = house.get("reader", "/certification/list?limit=1&offset=1").await;
    assert_eq!((page.json["certifications"].as_array().unwrap().len(), &page.json["total"]), (1, &json!(2)));
    assert_eq!(page.json["certifications"][0]["artifact_id"], "orders.revenue");
    let hidden = house.get("analyst", "/certification/list?limit=1").await;
    assert_eq!(
        (&hidden.json["certifications"][0]["artifact_id"], &hidden.json["total"]),
        (&json!("orders.count"), &json!(1))
    );
    for path in ["/glossary/terms?limit=0", "/certification/list?limit=501", "/glossary/terms?offset=-1"] {
        assert_eq!(house.get("reader", path).await.code(), (400, "INVALID_QUERY"), "{path}");
    }
}

#[tokio::test]
async fn masks_count_if_they_hold_without_an_exception() {
    for (policy, is_masked) in [
        ("when: {roles: [analyst]}, mask: {keeper: hash}", false),
        ("when: {attributes: {region: [EU]}}, mask: {keeper: hash}", false),
        ("when: {unless_roles: [reviewer]}, mask: {keeper: hash}", true),
        ("mask: {keeper: hash}", true),
        ("when: {unless_roles: [reviewer]}, deny: [keeper]", true),
        ("when: {roles: [analyst], unless_roles: [reviewer]}, deny: [keeper]", false),
    ] {
        let mut world = world();
        let text = format!("policies: [{{name: keeper, cubes: [stock], {policy}}}]\n");
        world.files.insert("policies/keeper.yml".to_owned(), text);
        let house = House::of(world).await;
        let report = house.get("reviewer", "/report").await;
        let rows = report.json["artifacts"].as_array().unwrap();
        let keeper = rows.iter().find(|row| row["artifact_id"] == "stock.keeper").unwrap();
        assert_eq!(keeper["masked"], is_masked, "{policy}");
        assert_eq!(keeper["findings"] == json!([]), is_masked, "{policy}");
    }
}

/// Returns a valid request for every route that changes governance records.
fn changes(term: &str, other: &str) -> Vec<(&'static str, String, Option<Json>)> {
    let artifact = |more: Json| {
        let mut body = json!({"artifact_type": "measure", "artifact_id": "orders.revenue"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Some(body)
    };
    let owner = json!({"owner_type": "user", "owner_id": "ada", "role": "data_owner"});
    let link = json!({"artifact_type": "term", "artifact_id": other, "relationship": "relates_to"});
    let post = |path: &str, body| ("POST", path.to_owned(), body);
    vec![
        post("/certification/submit", artifact(json!({"notes": "x"}))),
        post("/certification/certify", artifact(json!({}))),
        post("/certification/reject", artifact(json!({"reason": "x"}))),
        post("/certification/deprecate", artifact(json!({"reason": "x"}))),
        post("/certification/archive", artifact(json!({}))),
        post("/certification/restore", artifact(json!({}))),
        post("/glossary/terms", Some(json!({"name": "new", "definition": "x"}))),
        ("PATCH", format!("/glossary/terms/{term}"), Some(json!({"definition": "y"}))),
        ("DELETE", format!("/glossary/terms/{term}"), None),
        ("POST", format!("/glossary/terms/{term}/links"), Some(link)),
        ("DELETE", format!("/glossary/terms/{term}/links?{REVENUE}"), None),
        post("/ownership/assign", artifact(owner)),
        ("DELETE", format!("/ownership?{REVENUE}&owner_id=ada"), None),
        ("PATCH", "/artifacts/measure/orders.revenue/metadata".to_owned(), Some(json!({"description": "y"}))),
    ]
}

#[tokio::test]
async fn every_changing_route_refuses_a_stale_version() {
    let house = House::new().await;
    let (term, other) = (house.term("a").await, house.term("b").await);
    let changes = changes(&term, &other);
    let walked: BTreeSet<String> = changes
        .iter()
        .map(|(method, path, _)| {
            let path = path.split('?').next().unwrap().replace(&term, "{term_id}");
            format!("{method} {BASE}{}", path.replace("measure/orders.revenue", "{type}/{id}"))
        })
        .collect();
    let routes = terrane_server::routes().into_iter().filter(|route| route.path.starts_with(BASE));
    // An import has no versions, and a bulk request has one for each operation.
    let has_header = |path: &str| !["/import", "/bulk"].iter().any(|end| path.ends_with(end));
    let changing = routes
        .filter(|route| route.method != "GET" && has_header(route.path))
        .map(|route| format!("{} {}", route.method, route.path));
    assert_eq!(walked, changing.collect(), "the walk has every changing route");
    for (method, path, body) in &changes {
        for tag in ["\"99\"", "W/\"1\"", "\"x\""] {
            let refused = house.send("admin", method, path, body.clone(), &[("if-match", tag)]).await;
            assert_eq!(refused.code(), (412, "PRECONDITION_FAILED"), "{method} {path} {tag}: {refused:?}");
        }
        for tag in ["7", "garbage", "\"7", "*, \"7\""] {
            let refused = house.send("admin", method, path, body.clone(), &[("if-match", tag)]).await;
            assert_eq!(refused.code(), (400, "INVALID_QUERY"), "{method} {path} {tag}: {refused:?}");
            assert_eq!(refused.details()["field"], "If-Match", "{method} {path} {tag}");
        }
    }
    assert_eq!(house.get("admin", "/history").await.json["changes"].as_array().unwrap().len(), 2, "the two terms");

    let settings = GovernanceSettings { require_if_match: true, ..GovernanceSettings::default() };
    let house = house.restarted(World { governance: settings, ..world() }).await;
    for (method, path, body) in &changes {
        let expected = if path == "/glossary/terms" { (201, "") } else { (428, "PRECONDITION_REQUIRED") };
        let refused = house.send("admin", method, path, body.clone(), &[]).await;
        assert_eq!(refused.code(), expected, "{method} {path}: {refused:?}");
        assert!(refused.status != 428 || refused.text.contains("If-Match"), "{refused:?}");
    }
    let submit = &changes[0];
    for (tag, expected) in [("\"0\"", 200), ("\"0\"", 412), ("\"1\", \"2\"", 409), ("*", 409)] {
        let answered = house.send("admin", submit.0, &submit.1, submit.2.clone(), &[("if-match", tag)]).await;
        assert_eq!(answered.status, expected, "{tag}: {answered:?}");
    }
}

#[tokio::test]
async fn denied_members_do_not_exist() {
    let house = House::new().await;
    house.certified("orders.revenue").await;
    let id = house.term("Takings").await;
    for target in ["orders.revenue", "orders.count"] {
        let link = json!({"artifact_type": "measure", "artifact_id": target, "relationship": "defines"});
        assert_eq!(house.post("writer", &format!("/glossary/terms/{id}/links"), link).await.status, 201);
    }
    let formula = json!({"formula": "orders.revenue * 2"});
    assert_eq!(house.send("writer", "PATCH", &format!("/glossary/terms/{id}"), Some(formula), &[]).await.status, 200);
    let owner = json!({
        "artifact_type": "measure", "artifact_id": "orders.revenue", "owner_type": "user", "owner_id": "ada",
        "role": "data_owner",
    });
    assert_eq!(house.post("reviewer", "/ownership/assign", owner.clone()).await.status, 201);
    house.certified("orders.largest").await;
    let reason = json!({"reason": "x", "replacement": "orders.revenue"});
    assert_eq!(house.step("reviewer", "deprecate", "orders.largest", reason).await.status, 200);

    let lists = [
        "/certification/list".to_owned(),
        "/certification/list?status=draft".to_owned(),
        "/certification/list?status=deprecated".to_owned(),
        "/certification/status?artifact_type=measure&artifact_id=orders.largest".to_owned(),
        "/glossary/terms".to_owned(),
        format!("/glossary/terms/{id}"),
        "/glossary/search?query=takings".to_owned(),
        "/ownership/by-owner?owner_id=ada".to_owned(),
        "/artifacts/search".to_owned(),
        "/catalog".to_owned(),
        "/catalog?cube=orders".to_owned(),
        "/artifacts/search?query=revenue".to_owned(),
        "/artifacts/measure/orders.count".to_owned(),
        "/history".to_owned(),
        format!("/history?term_id={id}"),
        "/report".to_owned(),
    ];
    for path in &lists {
        let seen = house.get("analyst", path).await;
        assert_eq!(seen.status, 200, "{path}: {seen:?}");
        // Metrics over the measure are hidden as well, so the name occurs nowhere in the answer.
        assert!(!seen.text.contains("revenue"), "{path}: {}", seen.text);
        assert!(house.get("writer", path).await.status == 200, "{path}");
    }
    assert!(house.get("writer", "/report").await.text.contains("orders.revenue"));
    // A hidden name gets the same answer as an unknown name.
    for (known, unknown) in [("orders.revenue", "orders.xyzzy")] {
        for path in [
            "/certification/status?artifact_type=measure&artifact_id=",
            "/ownership?artifact_type=measure&artifact_id=",
            "/history?artifact_type=measure&artifact_id=",
            "/artifacts/measure/",
        ] {
            let (hidden, missing) = (
                house.get("analyst", &format!("{path}{known}")).await,
                house.get("analyst", &format!("{path}{unknown}")).await,
            );
            assert_eq!((hidden.code(), missing.code()), ((404, "NOT_FOUND"), (404, "NOT_FOUND")), "{path}");
        }
    }
    // The caller's history omits the link to the hidden measure, and contains the other link.
    let linked = |history: Response| {
        let changes = history.json["changes"].as_array().unwrap().clone();
        changes.iter().filter(|change| change["action"] == "term_linked").count()
    };
    let history = format!("/history?term_id={id}");
    assert_eq!(linked(house.get("analyst", &history).await), 1);
    assert_eq!(linked(house.get("writer", &history).await), 2);
    // A formula may name a metric without its cube. Words that are not names do not hide the formula.
    let path = format!("/glossary/terms/{id}");
    for (formula, is_seen) in [("revenue / 2", false), ("orders of a day / 2", true), ("orders.revenue * 2", false)] {
        let changed = house.send("writer", "PATCH", &path, Some(json!({"formula": formula})), &[]).await;
        assert_eq!(changed.status, 200, "{formula}: {changed:?}");
        let seen = house.get("analyst", &path).await;
        assert_eq!(seen.json["formula"] == json!(formula), is_seen, "{formula}: {seen:?}");
    }
    // If a client reads a term and sends it back, the fields that the client cannot see must stay.
    let path = format!("/glossary/terms/{id}");
    let sent = json!({"definition": "Money.", "formula": null});
    let changed = house.send("analyst", "PATCH", &path, Some(sent), &[]).await;
    assert_eq!((changed.status, &changed.json["formula"]), (200, &Json::Null), "{changed:?}");
    let unchanged = house.get("writer", &path).await;
    assert_eq!(
        (&unchanged.json["formula"], &unchanged.json["definition"]),
        (&json!("orders.revenue * 2"), &json!("Money."))
    );
    let erased = house.send("writer", "PATCH", &path, Some(json!({"formula": null})), &[]).await;
    assert_eq!((erased.status, &erased.json["formula"]), (200, &Json::Null));
    let unlink = format!("/glossary/terms/{id}/links?{REVENUE}");
    assert_eq!(house.send("analyst", "DELETE", &unlink, None, &[]).await.code(), (404, "NOT_FOUND"));
    for (path, body) in [
        ("/certification/submit", json!({"artifact_type": "measure", "artifact_id": "orders.revenue", "notes": "x"})),
        ("/ownership/assign", owner),
    ] {
        assert_eq!(house.post("analyst", path, body).await.code(), (404, "NOT_FOUND"), "{path}");
    }
}

#[tokio::test]
async fn changed_definition_is_reported_and_records_survive() {
    let house = House::new().await;
    house.certified("stock.pieces").await;
    let status = "/certification/status?artifact_type=measure&artifact_id=stock.pieces";
    let changed = |text: &str| {
        let mut world = world();
        world.files.insert("cubes/stock.yml".to_owned(), text.to_owned());
        world
    };
    // Descriptions are not part of the certified definition.
    let reworded = STOCK.replace("All pieces.", "Every piece.");
    let house = house.restarted(changed(&reworded)).await;
    assert_eq!(house.get("reader", status).await.json["definition_changed"], Json::Null);

    let weighted = STOCK.replace("sql: pieces", "sql: pieces * weight");
    let house = house.restarted(changed(&weighted)).await;
    let found = house.get("writer", status).await;
    assert_eq!((&found.json["status"], &found.json["definition_changed"]["since"]), (&json!("certified"), &Json::Null));
    let lines = found.json["definition_changed"]["diff"].as_array().unwrap();
    let lines: Vec<(&str, &str)> =
        lines.iter().map(|line| (line["change"].as_str().unwrap(), line["text"].as_str().unwrap())).collect();
    assert_eq!(lines, [("removed", "  sql: pieces"), ("added", "  sql: pieces * weight")]);
    let for_analyst = house.get("analyst", status).await;
    assert_eq!(for_analyst.json["definition_changed"], json!({"since": null, "diff": null}));
    let governance = house.edge.app().services.governance.clone().unwrap();
    assert_eq!(governance.maintain().await.unwrap(), 1);
    assert_eq!(governance.maintain().await.unwrap(), 0);
    let found = house.get("reader", status).await;
    assert_eq!(found.json["definition_changed"]["since"], "2024-02-14T12:00:00Z");
    assert_eq!(house.get("writer", "/report").await.json["summary"]["findings"]["definition_changed"], 1);

    // The artifact is removed from the project and added again.
    let without = STOCK.replace("name: pieces, type", "name: other, type");
    let house = house.restarted(changed(&without)).await;
    assert_eq!(house.get("writer", status).await.json["orphaned"], true);
    assert_eq!(house.get("analyst", status).await.code(), (404, "NOT_FOUND"));
    assert_eq!(house.get("writer", "/report").await.json["orphans"][0]["artifact_id"], "stock.pieces");
    let settings = GovernanceSettings { on_change: OnChange::Revoke, ..GovernanceSettings::default() };
    let house = house.restarted(World { governance: settings, ..changed(&weighted) }).await;
    let revoked = house.get("reader", status).await;
    assert_eq!((&revoked.json["status"], &revoked.json["orphaned"]), (&json!("draft"), &json!(false)));
    let governance = house.edge.app().services.governance.clone().unwrap();
    assert_eq!(governance.maintain().await.unwrap(), 1);
    let revoked = house.get("reader", status).await;
    assert_eq!(
        (&revoked.json["status"], &revoked.json["allowed_moves"]),
        (&json!("draft"), &json!(["submit", "archive"]))
    );
    assert!(revoked.json["definition_changed"].is_object(), "{revoked:?}");
    assert_eq!(house.get("reader", "/history").await.json["changes"][0]["action"], "certification_revoked");
}

#[tokio::test]
async fn reload_keeps_records() {
    let house = House::new().await;
    house.certified("orders.revenue").await;
    let before = house.get("reader", &format!("/certification/status?{REVENUE}")).await;
    house.edge.app().services.catalog.replace(project::snapshot());
    let after = house.get("reader", &format!("/certification/status?{REVENUE}")).await;
    assert_eq!(before.json, after.json);
}

#[tokio::test]
async fn hooks_are_asked_about_each_change_of_an_artifact() {
    let blocking = FakeHook { id: "guard".to_owned(), blocks: true, ..FakeHook::default() };
    let house = House::of(World { hooks: vec![blocking], ..world() }).await;
    let owner = json!({
        "artifact_type": "cube", "artifact_id": "orders", "owner_type": "user", "owner_id": "ada", "role": "data_owner",
    });
    let submitted = house.step("writer", "submit", "orders.revenue", json!({"notes": "x"})).await;
    let assigned = house.post("reviewer", "/ownership/assign", owner).await;
    let patch = Some(json!({"description": "x"}));
    let patched = house.send("writer", "PATCH", "/artifacts/cube/orders/metadata", patch, &[]).await;
    for refused in [submitted, assigned, patched] {
        assert_eq!(refused.code(), (403, "FORBIDDEN"), "{refused:?}");
        assert_eq!(refused.details()["findings"][0]["hook"], "guard");
    }
    assert_eq!(house.get("writer", "/history").await.json["changes"], json!([]));
}

#[tokio::test]
async fn report_has_three_formats() {
    let house = House::new().await;
    house.certified("orders.revenue").await;
    let report = house.get("reader", "/report").await;
    let summary = &report.json["summary"];
    assert_eq!((&summary["by_status"]["certified"], &summary["findings"]["pii_without_mask"]), (&json!(1), &json!(1)));
    let keeper = report.json["artifacts"].as_array().unwrap().iter().find(|row| row["artifact_id"] == "stock.keeper");
    assert_eq!(keeper.unwrap()["findings"], json!(["pii_without_mask"]), "the cube has an owner");
    let rows = report.json["artifacts"].as_array().unwrap().len();
    let csv = house.send("reader", "GET", "/report", None, &[("accept", "text/csv")]).await;
    assert!(csv.content_type.starts_with("text/csv"), "{csv:?}");
    assert_eq!(csv.text.lines().count(), rows + 1);
    assert!(csv.text.contains("measure,orders.revenue,Revenue,certified,reviewer,"), "{}", csv.text);
    let page = house.send("reader", "GET", "/report", None, &[("accept", "text/html")]).await;
    assert!(page.content_type.starts_with("text/html") && page.text.contains("<td>orders.revenue</td>"));
    let other = house.send("reader", "GET", "/report", None, &[("accept", "image/png")]).await;
    assert_eq!(other.code(), (415, "UNSUPPORTED_MEDIA_TYPE"));
}

#[tokio::test]
async fn module_can_be_switched_off() {
    let house = House::of(World { has_no_governance: true, ..world() }).await;
    assert_eq!(house.get("admin", "/certification/list").await.code(), (404, "NOT_FOUND"));
    let asked = json!({"path": "/openapi.json"});
    let described = ask(&house.edge, &serde_json::from_value(asked).unwrap()).await;
    assert!(!String::from_utf8_lossy(&described.body).contains(BASE));
}

#[tokio::test]
async fn concurrent_changes_lose_nothing() {
    let house = Arc::new(House::new().await);
    let tasks = (0..16).map(|number| {
        let house = house.clone();
        tokio::spawn(async move { house.term(&format!("term {number}")).await })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let terms = house.get("reader", "/glossary/terms").await;
    assert_eq!(terms.json["terms"].as_array().unwrap().len(), 16);
    let history = house.get("admin", "/history?limit=500").await;
    let ids: BTreeSet<&str> =
        history.json["changes"].as_array().unwrap().iter().map(|change| change["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 16);
}
