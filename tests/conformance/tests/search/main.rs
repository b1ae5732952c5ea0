//! Tests search and suggestions over REST and GraphQL: policies, governed records, linked glossary terms and values of
//! dimensions.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

mod bad_input;
mod ranking;
mod values;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use tempfile::TempDir;
use terrane_app::accounts::{Actor, Grants, KeyRequest};
use terrane_app::security::{Scope, Scopes};
use terrane_conformance_tests::case::{Answered, Caller, World, ask};
use terrane_conformance_tests::security::Security;
use terrane_server::Edge;
use terrane_store::StateStore;

/// Analysts see neither the pieces, nor members computed from them, nor the cube `secrets` over the same table.
const POLICIES: &str = "\
policies:
  - {name: no_pieces, cubes: [stock], when: {roles: [analyst]}, deny: [pieces]}
";

const CUBES: &str = "\
cubes:
  - name: stock
    sql_table: raw.stock
    meta: {owner: 'team:logistics', tags: [warehouse], synonyms: [inventory]}
    joins: [{name: places, relationship: many_to_one, sql: '{CUBE}.place = {places}.id'}]
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: keeper, type: string, sql: keeper, description: The clerk who counts the pieces.}
      - {name: place, type: number, sql: place, hidden: true}
    measures:
      - {name: pieces, type: sum, sql: pieces, title: Pieces in stock}
      - {name: avg_pieces, type: number, sql: '{pieces} / {count}', meta: {synonyms: [typical amount]}}
      - {name: weight, type: sum, sql: weight}
      - {name: count, type: count}
  - name: places
    sql_table: raw.places
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: hall, type: string, sql: hall, meta: {tags: [Building]}}
  - name: secrets
    sql: SELECT id, code FROM raw.stock
    dimensions: [{name: id, type: number, sql: id, primary_key: true}, {name: hall_code, type: string, sql: code}]
    measures: [{name: secret_pieces, type: count}]
";

const METRICS: &str = "\
metrics:
  - {name: weight_of_piece, type: ratio, numerator: stock.weight, denominator: stock.count}
  - {name: share_of_pieces, type: ratio, numerator: stock.pieces, denominator: stock.count}
";

struct House {
    edge: Edge,
    keys: BTreeMap<&'static str, String>,
    _folder: TempDir,
}

impl House {
    async fn new(cubes: &str, metrics: &str, policies: &str) -> House {
        House::of(World::default(), cubes, metrics, policies).await
    }

    async fn of(world: World, cubes: &str, metrics: &str, policies: &str) -> House {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(StateStore::open("sqlite://state.db", folder.path()).await.unwrap());
        let files = [("cubes/stock.yml", cubes), ("metrics/m.yml", metrics), ("policies/p.yml", policies)];
        let files = files.into_iter().filter(|(_, text)| !text.is_empty());
        let files = files.map(|(path, text)| (path.to_owned(), text.to_owned())).collect();
        let world = World { caller: Caller::Stranger, files, ..world };
        let security = Security { governance: store.clone(), ..Security::of(store, None) };
        let edge = world.edge_with(security);
        let mut keys = BTreeMap::new();
        let writer = Scopes::READ.with(Scope::Write);
        for (name, roles) in
            [("writer", vec![]), ("reviewer", vec!["reviewer".into()]), ("analyst", vec!["analyst".into()])]
        {
            let grants = Grants { scopes: writer, user_id: Some(name.into()), roles, ..Grants::default() };
            let request = KeyRequest { name: name.into(), grants, ..KeyRequest::default() };
            let accounts = edge.app().services.authenticator.accounts().clone();
            keys.insert(name, accounts.create_key(&Actor::default(), request).await.unwrap().text.to_string());
        }
        House { edge, keys, _folder: folder }
    }

    /// Returns the same project without the members that policies hide from analysts.
    async fn without_hidden_members() -> House {
        let without = |text: &str, words: &[&str]| {
            let remaining = text.lines().filter(|line| !words.iter().any(|word| line.contains(word)));
            remaining.map(|line| format!("{line}\n")).collect::<String>()
        };
        let end = CUBES.find("  - name: secrets").unwrap();
        let cubes = without(&CUBES[..end], &["name: pieces", "name: avg_pieces"]);
        House::new(&cubes, &without(METRICS, &["share_of_pieces"]), "").await
    }

    async fn send(&self, caller: &str, method: &str, path: &str, body: Json) -> (u16, Json) {
        let headers = json!({"authorization": format!("Bearer {}", self.keys[caller])});
        let asked = json!({"method": method, "path": path, "headers": headers, "json": body});
        let Answered { status, body, .. } = ask(&self.edge, &serde_json::from_value(asked).unwrap()).await;
        (status.as_u16(), serde_json::from_slice(&body).unwrap_or_default())
    }

    async fn search(&self, caller: &str, body: Json) -> Json {
        let (status, body) = self.send(caller, "POST", "/api/v1/search", body).await;
        assert_eq!(status, 200, "{body}");
        body
    }

    async fn found(&self, caller: &str, text: &str) -> Vec<String> {
        names(&self.search(caller, json!({"query": text})).await["results"])
    }

    async fn suggested(&self, caller: &str, body: Json) -> Vec<String> {
        let (status, body) = self.send(caller, "POST", "/api/v1/search/autocomplete", body).await;
        assert_eq!(status, 200, "{body}");
        names(&body["suggestions"])
    }

    async fn graphql(&self, caller: &str, document: &str) -> Json {
        let (status, body) = self.send(caller, "POST", "/graphql", json!({"query": document})).await;
        assert_eq!(status, 200, "{body}");
        body
    }
}

fn names(hits: &Json) -> Vec<String> {
    hits.as_array().unwrap().iter().map(|hit| hit["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn members_are_found_by_names_synonyms_tags_descriptions_and_with_mistakes() {
    let house = House::new(CUBES, METRICS, "").await;
    assert_eq!(house.found("writer", "avg pieces").await, ["stock.avg_pieces"]);
    assert_eq!(house.found("writer", "wieght").await, ["weight_of_piece", "stock.weight"]);
    assert_eq!(house.found("writer", "typical amount").await, ["stock.avg_pieces"]);
    assert_eq!(house.found("writer", "clerk").await, ["stock.keeper"]);
    assert_eq!(house.found("writer", "building").await, ["places.hall"]);
    assert_eq!(house.found("writer", "inventory").await, ["stock"]);
    assert_eq!(house.found("writer", "zebra").await, Vec::<String>::new());
    let body = house.search("writer", json!({"query": "pieces in stock", "limit": 1})).await;
    let hit = &body["results"][0];
    assert_eq!((&hit["name"], &hit["title"]), (&json!("stock.pieces"), &json!("Pieces in stock")));
    assert_eq!(hit["matches"][1], json!({"field": "title", "text": "Pieces in stock", "ranges": [[0, 6], [10, 15]]}));
    assert_eq!(body["has_more"], true);
    let cube = house.search("writer", json!({"query": "stock", "types": ["cube"]})).await;
    assert_eq!(cube["results"][0]["owners"], json!([{"type": "team", "id": "logistics", "role": "data_owner"}]));
}

#[tokio::test]
async fn results_are_selected_by_type_cube_tag_and_status() {
    let house = House::new(CUBES, METRICS, "").await;
    let search = async |more: Json| {
        let mut body = json!({"query": "pieces hall stock weight"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        names(&house.search("writer", body).await["results"])
    };
    assert_eq!(search(json!({})).await, Vec::<String>::new());
    let pieces = async |more: Json| {
        let mut body = json!({"query": "piece"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        names(&house.search("writer", body).await["results"])
    };
    assert_eq!(pieces(json!({"types": ["metric"]})).await, ["weight_of_piece", "share_of_pieces"]);
    assert_eq!(pieces(json!({"types": ["measure"], "cube": "stock"})).await, ["stock.pieces", "stock.avg_pieces"]);
    assert_eq!(pieces(json!({"tags": ["WAREHOUSE"]})).await, Vec::<String>::new());
    let halls = house.search("writer", json!({"query": "hall", "tags": ["building"]})).await;
    assert_eq!(names(&halls["results"]), ["places.hall"]);
    assert_eq!(pieces(json!({"certification_status": "certified"})).await, Vec::<String>::new());
}

#[tokio::test]
async fn suggestions_are_those_that_the_cube_can_use() {
    let house = House::new(CUBES, METRICS, "").await;
    let in_stock = |text: &str| json!({"query": text, "context": {"cube_name": "stock"}});
    assert_eq!(house.suggested("writer", in_stock("h")).await, ["places.hall"]);
    assert_eq!(house.suggested("writer", json!({"query": "hal"})).await, ["places.hall", "secrets.hall_code"]);
    let of_places = json!({"query": "pie", "context": {"cube_name": "places"}});
    assert_eq!(house.suggested("writer", of_places).await, Vec::<String>::new());
    let all = house.suggested("writer", json!({"query": "", "context": {"cube_name": "places"}})).await;
    assert_eq!(all, ["places.id", "places.hall", "places"]);
    // Without a search text, the cube's own members come before metrics.
    let all = house.suggested("writer", in_stock("")).await;
    assert_eq!(all[0], "stock.count");
    assert_eq!(house.suggested("writer", json!({"query": "", "limit": 1})).await, ["revenue"]);
    assert_eq!(house.suggested("writer", in_stock("avg piec")).await[0], "stock.avg_pieces");
}

#[tokio::test]
async fn certified_members_come_first_and_terms_are_synonyms() {
    let house = House::new(CUBES, METRICS, "").await;
    let both = ["stock.pieces", "stock.weight"];
    let term = json!({"name": "Load", "definition": "All that is stored.", "synonyms": ["cargo"], "category": "a"});
    let (status, term) = house.send("writer", "POST", "/api/v1/governance/glossary/terms", term).await;
    assert_eq!(status, 201, "{term}");
    for measure in both {
        let link = json!({"artifact_type": "measure", "artifact_id": measure, "relationship": "relates_to"});
        let path = format!("/api/v1/governance/glossary/terms/{}/links", term["id"].as_str().unwrap());
        let (status, body) = house.send("writer", "POST", &path, link).await;
        assert!(status < 300, "{status} {body}");
    }
    assert_eq!(house.found("writer", "cargo").await, both);
    let question = json!({"query": "cargo by keeper"});
    let (_, asked) = house.send("writer", "POST", "/api/v1/search/nl-query", question).await;
    assert_eq!(asked["query"], Json::Null);
    let clarification = &asked["clarifications"][0];
    assert_eq!((&clarification["text"], &clarification["choices"]), (&json!("cargo"), &json!(both)));
    let certified = json!({"artifact_type": "measure", "artifact_id": "stock.weight", "notes": "checked"});
    let (status, body) =
        house.send("writer", "POST", "/api/v1/governance/certification/submit", certified.clone()).await;
    assert!(status < 300, "{status} {body}");
    let (status, body) = house.send("reviewer", "POST", "/api/v1/governance/certification/certify", certified).await;
    assert!(status < 300, "{status} {body}");
    let body = house.search("writer", json!({"query": "cargo"})).await;
    assert_eq!(names(&body["results"]), ["stock.weight", "stock.pieces"]);
    let badge = json!({"status": "certified", "definition_changed": false, "expired": false});
    assert_eq!(body["results"][0]["certification"], badge);
    assert_eq!(body["results"][0]["matches"][0]["field"], "synonym");
    let certified = house.search("writer", json!({"query": "cargo", "certification_status": "certified"})).await;
    assert_eq!(names(&certified["results"]), ["stock.weight"]);
    // The metadata of the cube contains the certification as well.
    let (_, cube) = house.send("writer", "GET", "/api/v1/query/meta/cubes/stock", Json::Null).await;
    let of = |name: &str| {
        let measures = cube["measures"].as_array().unwrap();
        measures.iter().find(|measure| measure["name"] == name).unwrap()["certification"].clone()
    };
    assert_eq!((of("weight"), of("pieces"), &cube["certification"]), (badge, Json::Null, &Json::Null));
    let document = "{ cube(name: \"stock\") { measures { name certification { status definitionChanged } } } }";
    let body = house.graphql("writer", document).await;
    let measures = body["data"]["cube"]["measures"].as_array().unwrap();
    let certified: Vec<&Json> = measures.iter().filter(|measure| !measure["certification"].is_null()).collect();
    let badge = json!({"status": "certified", "definitionChanged": false});
    assert_eq!(certified, [&json!({"name": "weight", "certification": badge})]);
}

/// Hidden members must not affect a search: a caller finds the same in a project that lacks these members.
#[tokio::test]
async fn hidden_members_do_not_affect_results() {
    let hidden = House::new(CUBES, METRICS, POLICIES).await;
    let absent = House::without_hidden_members().await;
    let texts = [
        "pieces",
        "secret",
        "hall",
        "share",
        "typical amount",
        "stock",
        "avg",
        "p",
        "weight pieces",
        "hall code",
        "count",
        "share of pieces",
        "keeper",
        "places hall",
        "id",
    ];
    let mut found = 0;
    for text in texts {
        for types in [json!([]), json!(["measure"]), json!(["cube", "metric"])] {
            let body = json!({"query": text, "types": types, "limit": 3});
            let (of_hidden, of_absent) =
                (hidden.search("analyst", body.clone()).await, absent.search("analyst", body.clone()).await);
            assert_eq!(of_hidden, of_absent, "{body}");
            found += names(&of_hidden["results"]).len();
        }
        for context in [json!(null), json!({"cube_name": "stock"}), json!({"cube_name": "secrets"})] {
            let body = json!({"query": text, "context": context, "limit": 3});
            let path = "/api/v1/search/autocomplete";
            let (of_hidden, of_absent) = (
                hidden.send("analyst", "POST", path, body.clone()).await,
                absent.send("analyst", "POST", path, body.clone()).await,
            );
            let without_id = |mut answer: (u16, Json)| {
                if let Some(error) = answer.1.get_mut("error").and_then(Json::as_object_mut) {
                    error.remove("correlation_id");
                }
                answer
            };
            assert_eq!(without_id(of_hidden), without_id(of_absent), "{body}");
        }
    }
    assert!(found > 20, "{found}");
    // The policies hide the members from analysts only.
    assert!(!hidden.found("writer", "secret").await.is_empty());
}

/// Hidden members must not affect the interpretation of a question: it is the same in a project that lacks them.
#[tokio::test]
async fn questions_of_a_caller_do_not_depend_on_hidden_members() {
    const WORDS: [&str; 24] = [
        "pieces",
        "secret",
        "hall",
        "share of",
        "typical amount",
        "stock",
        "avg",
        "weight",
        "by",
        "top 3",
        "code",
        "count",
        "keeper",
        "places",
        "over",
        "5",
        "not",
        "is",
        "secrets",
        "peices",
        "\"hall code\"",
        "and",
        "in stock",
        "how many",
    ];
    const PATH: &str = "/api/v1/search/nl-query";
    let (hidden, absent) = (House::new(CUBES, METRICS, POLICIES).await, House::without_hidden_members().await);
    let mut state = 20_261_127_u64;
    let mut next = |below: usize| {
        // xorshift
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let mut clear = 0;
    for _ in 0..400 {
        let words: Vec<&str> = (0..next(5) + 1).map(|_| WORDS[next(WORDS.len())]).collect();
        let body = json!({"query": words.join(" ")});
        let of_hidden = hidden.send("analyst", "POST", PATH, body.clone()).await;
        let of_absent = absent.send("analyst", "POST", PATH, body.clone()).await;
        assert_eq!(of_hidden.0, 200, "{body} {}", of_hidden.1);
        assert_eq!(of_hidden, of_absent, "{body}");
        clear += usize::from(!of_hidden.1["query"].is_null());
    }
    assert!(clear > 20, "{clear}");
    let body = json!({"query": "pieces by hall"});
    let (_, answer) = hidden.send("writer", "POST", PATH, body).await;
    assert_eq!(answer["query"], json!({"measures": ["stock.pieces"], "dimensions": ["places.hall"]}), "{answer}");
}

#[tokio::test]
async fn graphql_results_equal_those_of_rest() {
    let house = House::new(CUBES, METRICS, POLICIES).await;
    let document = "{ search(query: \"pieces stock\", types: [MEASURE], limit: 5) \
                    { type name cube title matches { field text ranges } owners } \
                    autocomplete(query: \"ha\", cube: \"stock\") { name } }";
    for caller in ["writer", "analyst"] {
        let body = house.graphql(caller, document).await;
        let rest = json!({"query": "pieces stock", "types": ["measure"], "limit": 5});
        let rest = house.search(caller, rest).await;
        assert_eq!(names(&body["data"]["search"]), names(&rest["results"]), "{body}");
        for (one, other) in body["data"]["search"].as_array().unwrap().iter().zip(rest["results"].as_array().unwrap()) {
            assert_eq!((&one["matches"], &one["title"]), (&other["matches"], &other["title"]));
        }
        assert_eq!(names(&body["data"]["autocomplete"]), ["places.hall"]);
    }
    let asked = house.graphql("writer", "{ ask(question: \"weight by keeper\") { query confidence } }").await;
    let query = json!({"measures": ["stock.weight"], "dimensions": ["stock.keeper"]});
    assert_eq!(asked["data"]["ask"], json!({"query": query, "confidence": 1.0}), "{asked}");
    let document = "{ tagged: search(query: \"hall\", tags: [\"building\"]) { name } \
                    of_cube: search(query: \"piece\", cube: \"stock\", types: [MEASURE]) { name } \
                    certified: search(query: \"piece\", certificationStatus: CERTIFIED) { name } \
                    drafts: search(query: \"avg pieces\", certificationStatus: DRAFT) { name } }";
    let found = house.graphql("writer", document).await;
    assert_eq!(names(&found["data"]["tagged"]), ["places.hall"], "{found}");
    assert_eq!(names(&found["data"]["of_cube"]), ["stock.pieces", "stock.avg_pieces"]);
    assert_eq!(names(&found["data"]["certified"]), Vec::<String>::new());
    assert_eq!(names(&found["data"]["drafts"]), ["stock.avg_pieces"]);
    let refused = house.graphql("writer", "{ search(query: \"pieces\", limit: 0) { name } }").await;
    assert_eq!(refused["errors"][0]["extensions"]["code"], "INVALID_QUERY", "{refused}");
    let refused = house.graphql("writer", "{ autocomplete(query: \"a\", cube: \"nothing\") { name } }").await;
    assert_eq!(refused["errors"][0]["extensions"]["code"], "NOT_FOUND", "{refused}");
}

#[tokio::test]
async fn graphql_answers_questions_with_rows_and_alternatives_as_rest_does() {
    let columns = json!([{"type": "text", "values": ["A"]}, {"type": "cents", "values": [100]}]);
    let world = World { columns: serde_json::from_value(columns).unwrap(), ..World::default() };
    let house = House::of(world, CUBES, METRICS, POLICIES).await;
    let document = "{ ask(question: \"pieces by hall\", run: true) \
                    { alternatives { text members } result { data sql returnedRows totalRows } } }";
    let asked = house.graphql("writer", document).await;
    let question = json!({"query": "pieces by hall", "run": true});
    let (_, rest) = house.send("writer", "POST", "/api/v1/search/nl-query", question).await;
    let answer = &asked["data"]["ask"];
    assert_eq!(answer["alternatives"], rest["alternatives"], "{asked}");
    assert_eq!(
        (&answer["result"]["data"], &answer["result"]["sql"]),
        (&rest["result"]["data"], &rest["result"]["sql"])
    );
    assert_eq!(answer["result"]["returnedRows"], rest["result"]["returned_rows"], "{rest}");
    assert_eq!(answer["result"]["returnedRows"], 1, "{rest}");
}
