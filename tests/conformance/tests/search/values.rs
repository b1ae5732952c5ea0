//! Tests searches for values of dimensions: hits, policies, versions of the data, and failures of the warehouse.

use std::sync::atomic::Ordering;

use serde_json::{Value as Json, json};
use terrane_conformance_tests::case::World;
use terrane_conformance_tests::fakes::{FakeAnswer, FakeBehavior};

use super::{House, names};

const CUBES: &str = "\
cubes:
  - name: stock
    sql_table: raw.stock
    joins: [{name: places, relationship: many_to_one, sql: '{CUBE}.place = {places}.id'}]
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: place, type: number, sql: place, hidden: true}
      - {name: keeper, type: string, sql: keeper, meta: {searchable: true}}
      - {name: shelf, type: string, sql: shelf, meta: {searchable: true}}
      - {name: color, type: string, sql: color}
    measures: [{name: count, type: count}]
  - name: places
    sql_table: raw.places
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: hall, type: string, sql: hall, title: Storage, meta: {searchable: true, tags: [building]}}
  - name: secrets
    sql_table: raw.secrets
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: code, type: string, sql: code, meta: {searchable: true}}
";

/// Analysts see the northern places only, no keeper, masked shelves, and no secret codes.
const POLICIES: &str = "\
policies:
  - {name: north, cubes: [places], when: {roles: [analyst]}, row_filter: \"{places}.region = 'north'\"}
  - {name: no_keepers, cubes: [stock], when: {roles: [analyst]}, deny: [keeper], mask: {shelf: hash}}
  - {name: no_secrets, cubes: [secrets], when: {roles: [analyst]}, deny: [code]}
";

fn world() -> World {
    let world = World::default();
    *world.answers.lock().unwrap() = vec![
        FakeAnswer::of_values(&["hall", "'north'"], &["North gate hall", "North hall"]),
        FakeAnswer::of_values(&["hall"], &["East wing", "North gate hall", "North hall", "South hall"]),
        FakeAnswer::of_values(&["keeper"], &["Ada North", "Grace Hopper"]),
        FakeAnswer::of_values(&["shelf"], &["S-1 north", "S-2 south"]),
        FakeAnswer::of_values(&["code"], &["northern light"]),
    ];
    world
}

async fn house() -> House {
    House::of(world(), CUBES, "", POLICIES).await
}

/// Returns the dimension and the value of each hit of type `value`.
fn values(hits: &Json) -> Vec<String> {
    let values = hits.as_array().unwrap().iter().filter(|hit| hit["type"] == "value");
    values.map(|hit| format!("{}={}", hit["name"].as_str().unwrap(), hit["value"].as_str().unwrap())).collect()
}

async fn found(house: &House, caller: &str, text: &str) -> Vec<String> {
    values(&house.search(caller, json!({"query": text})).await["results"])
}

async fn suggested(house: &House, caller: &str, body: Json) -> Vec<String> {
    let (status, body) = house.send(caller, "POST", "/api/v1/search/autocomplete", body).await;
    assert_eq!(status, 200, "{body}");
    values(&body["suggestions"])
}

#[tokio::test]
async fn values_are_found_with_their_dimension_and_the_matching_part() {
    let house = house().await;
    let body = house.search("writer", json!({"query": "suoth hall", "types": ["value"]})).await;
    assert_eq!(values(&body["results"]), ["places.hall=South hall"], "{body}");
    let hit = &body["results"][0];
    let reason = json!([{"field": "value", "text": "South hall", "ranges": [[0, 5], [6, 10]]}]);
    assert_eq!((&hit["matches"], &hit["cube"], &hit["title"]), (&reason, &json!("places"), &json!("Storage")));
    assert_eq!(body["warnings"], json!([]));
    let of_north = ["places.hall=North hall", "places.hall=North gate hall"];
    assert_eq!(
        found(&house, "writer", "north hall").await[..2],
        of_north.map(str::to_owned),
        "the whole value is first"
    );
    let building = house.search("writer", json!({"query": "north", "tags": ["building"]})).await;
    assert_eq!(values(&building["results"]).len(), 2, "{building}");
    let measures = house.search("writer", json!({"query": "north", "types": ["measure", "dimension"]})).await;
    assert_eq!(names(&measures["results"]), Vec::<String>::new());
    // A dimension is a hit of its own if its name matches.
    let dimension = house.search("writer", json!({"query": "hall", "types": ["dimension"]})).await;
    assert_eq!(names(&dimension["results"]), ["places.hall"]);
    assert_eq!(dimension["results"][0]["value"], Json::Null);
    assert_eq!(found(&house, "writer", "color").await, Vec::<String>::new(), "the dimension is not searchable");
}

#[tokio::test]
async fn values_are_suggested_within_the_cube_of_the_context() {
    let house = house().await;
    let of_stock = json!({"query": "nor", "context": {"cube_name": "stock"}});
    let found = suggested(&house, "writer", of_stock).await;
    assert_eq!(found[..2], ["stock.shelf=S-1 north", "stock.keeper=Ada North"].map(str::to_owned), "{found:?}");
    assert!(found.contains(&"places.hall=North hall".to_owned()), "{found:?}");
    assert!(!found.iter().any(|value| value.starts_with("secrets")), "{found:?}");
    let of_places = json!({"query": "nor", "context": {"cube_name": "places"}});
    assert!(suggested(&house, "writer", of_places).await.iter().all(|value| value.starts_with("places.")));
    assert_eq!(suggested(&house, "writer", json!({"query": ""})).await, Vec::<String>::new());
}

#[tokio::test]
async fn graphql_finds_values_as_rest_does() {
    let house = house().await;
    let document = "{ search(query: \"north\", types: [VALUE], cube: \"places\") \
                    { type name value matches { field text ranges } } \
                    autocomplete(query: \"nor\", cube: \"places\") { type value } }";
    for caller in ["writer", "analyst"] {
        let body = house.graphql(caller, document).await;
        let rest = house.search(caller, json!({"query": "north", "types": ["value"], "cube": "places"})).await;
        let (found, expected) = (body["data"]["search"].as_array().unwrap(), rest["results"].as_array().unwrap());
        assert_eq!(found.len(), 2, "{body}");
        for (one, other) in found.iter().zip(expected) {
            assert_eq!((&one["value"], &one["matches"]), (&other["value"], &other["matches"]));
            assert_eq!((&one["type"], &one["name"]), (&json!("VALUE"), &other["name"]));
        }
        assert_eq!(body["data"]["autocomplete"][0]["type"], "VALUE", "{body}");
    }
}

#[tokio::test]
async fn policies_hold_for_values() {
    let house = house().await;
    // The shared lists are loaded first.
    assert_eq!(found(&house, "writer", "north").await.len(), 5);
    assert_eq!(found(&house, "writer", "south").await, ["places.hall=South hall", "stock.shelf=S-2 south"]);
    for text in ["north", "south", "wing", "hopper", "light", "s"] {
        let found = found(&house, "analyst", text).await;
        let expected = ["places.hall=North gate hall", "places.hall=North hall"];
        let expected = if text == "north" { &expected[..] } else { &[] };
        assert_eq!(found, expected, "{text}");
        let suggested = suggested(&house, "analyst", json!({"query": text})).await;
        assert!(suggested.iter().all(|value| value.starts_with("places.hall=North")), "{text} {suggested:?}");
    }
}

#[tokio::test]
async fn callers_without_row_filters_share_lists() {
    let world = world();
    let house = House::of(world.clone(), CUBES, "", POLICIES).await;
    let before = world.statements.load(Ordering::Relaxed);
    let statements = || world.statements.load(Ordering::Relaxed) - before;
    found(&house, "writer", "north").await;
    let loaded = statements();
    assert_eq!(loaded, 4, "one for each searchable dimension");
    for caller in ["writer", "reviewer"] {
        found(&house, caller, "hall").await;
        suggested(&house, caller, json!({"query": "ho"})).await;
    }
    assert_eq!(statements(), loaded);
    // The values of a caller with row filters are queries of this caller. The masked dimension is not queried.
    found(&house, "analyst", "north").await;
    assert_eq!(statements(), loaded + 1);
}

#[tokio::test]
async fn lists_are_reloaded_when_the_data_changed() {
    let world = world();
    let house = House::of(world.clone(), CUBES, "", POLICIES).await;
    assert_eq!(found(&house, "writer", "west").await, Vec::<String>::new());
    for answer in world.answers.lock().unwrap().iter_mut() {
        *answer = FakeAnswer::of_values(&answer.texts, &["West hall"]);
    }
    assert_eq!(found(&house, "writer", "west").await, Vec::<String>::new(), "the version is the same");
    house.edge.app().services.versions.invalidate_all().await;
    assert_eq!(found(&house, "writer", "west").await[..1], ["places.hall=West hall".to_owned()]);
    assert_eq!(found(&house, "writer", "north").await, Vec::<String>::new());
}

#[tokio::test]
async fn other_hits_are_found_without_the_warehouse() {
    for behavior in [FakeBehavior::Unavailable, FakeBehavior::Refuses, FakeBehavior::Hangs] {
        let house = House::of(World { warehouse: behavior, ..world() }, CUBES, "", POLICIES).await;
        for caller in ["writer", "analyst"] {
            let body = house.search(caller, json!({"query": "hall"})).await;
            assert_eq!(names(&body["results"]), ["places.hall"], "{behavior:?}");
            let warning = body["warnings"][0].as_str().unwrap();
            assert!(warning.contains("`places.hall`"), "{warning}");
            assert_eq!(warning.contains("secrets"), caller == "writer", "{warning}");
            assert!(!body.to_string().contains("srv"), "{body}");
            // GraphQL has lists of hits, so the warnings are extensions of the response.
            let graphql = house.graphql(caller, "{ found: search(query: \"hall\") { name } }").await;
            let expected = json!([{"message": warning, "path": ["found"]}]);
            assert_eq!(graphql["extensions"]["warnings"], expected, "{behavior:?} {graphql}");
            assert_eq!(names(&graphql["data"]["found"]), ["places.hall"], "{graphql}");
        }
    }
}

#[tokio::test]
async fn rest_and_graphql_lack_searches_if_search_is_off() {
    let house = House::of(World { has_no_search: true, ..world() }, CUBES, "", POLICIES).await;
    for path in ["/api/v1/search", "/api/v1/search/autocomplete", "/api/v1/search/nl-query"] {
        let (status, body) = house.send("writer", "POST", path, json!({"query": "hall"})).await;
        assert_eq!((status, &body["error"]["code"]), (404, &json!("NOT_FOUND")), "{path} {body}");
    }
    for field in [
        "search(query: \"hall\") { name }",
        "autocomplete(query: \"h\") { name }",
        "ask(question: \"stock\") { query }",
    ] {
        let body = house.graphql("writer", &format!("{{ {field} }}")).await;
        assert_eq!(body["errors"][0]["extensions"]["code"], "GRAPHQL_VALIDATION_FAILED", "{body}");
    }
}

#[tokio::test]
async fn questions_use_the_lists_of_searches() {
    let world = world();
    let house = House::of(world.clone(), CUBES, "", POLICIES).await;
    let statements = || world.statements.load(Ordering::Relaxed);
    let question = json!({"query": "stock in South hall"});
    found(&house, "writer", "north").await;
    let before = statements();
    let (status, body) = house.send("writer", "POST", "/api/v1/search/nl-query", question.clone()).await;
    assert_eq!(status, 200, "{body}");
    let counted = statements() - before;
    assert!(counted <= 2, "{counted} statements: only the rows of the values are counted");
    assert!(body.to_string().contains("places.hall"), "{body}");
    // The values of a caller with row filters are queries of this caller.
    let before = statements();
    let (status, body) = house.send("analyst", "POST", "/api/v1/search/nl-query", question).await;
    assert_eq!(status, 200, "{body}");
    assert!(statements() > before);
    assert!(!body.to_string().contains("South hall"), "{body}");
}

#[tokio::test]
async fn values_that_hooks_may_hide_are_queries_of_the_caller() {
    let with_hook = |hook: Json| World { hooks: serde_json::from_value(json!([hook])).unwrap(), ..world() };
    let masked = House::of(with_hook(json!({"id": "region", "masks": "places.hall"})), CUBES, "", "").await;
    let body = masked.search("writer", json!({"query": "south", "cube": "places"})).await;
    assert_eq!((values(&body["results"]), &body["warnings"]), (Vec::new(), &json!([])), "the hook masks the hall");

    let world = with_hook(json!({"id": "region"}));
    let house = House::of(world.clone(), CUBES, "", "").await;
    let mut south = found(&house, "writer", "south").await;
    south.sort();
    assert_eq!(south, ["places.hall=South hall", "stock.shelf=S-2 south"]);
    let before = world.statements.load(Ordering::Relaxed);
    found(&house, "writer", "south").await;
    assert!(world.statements.load(Ordering::Relaxed) > before);
}

/// Hidden values must not affect a search: a caller finds the same in a project without them.
#[tokio::test]
async fn values_that_the_caller_may_not_see_change_nothing() {
    const WORDS: [&str; 18] = [
        "north", "nor", "nroth", "hall", "south", "wing", "east", "gate", "ada", "hopper", "shelf", "s", "keeper",
        "code", "light", "storage", "stock", "count",
    ];
    let hidden = house().await;
    let absent = {
        let cubes = CUBES.lines().filter(|line| !["name: keeper", "name: code"].iter().any(|name| line.contains(name)));
        let cubes: String = cubes.map(|line| format!("{line}\n")).collect();
        let cubes = cubes.replace("sql: shelf, meta: {searchable: true}", "sql: shelf");
        let world = World::default();
        *world.answers.lock().unwrap() = vec![FakeAnswer::of_values(&["hall"], &["North gate hall", "North hall"])];
        House::of(world, &cubes, "", "").await
    };
    // The shared lists contain all values.
    found(&hidden, "writer", "north").await;
    let mut state = 20_261_128_u64;
    let mut next = |below: usize| {
        // xorshift
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let mut hits = 0;
    for _ in 0..300 {
        let words: Vec<&str> = (0..=next(3)).map(|_| WORDS[next(WORDS.len())]).collect();
        let query = words.join(" ");
        let types = [json!([]), json!(["value"]), json!(["dimension", "value"])][next(3)].clone();
        let context = [json!(null), json!({"cube_name": "stock"}), json!({"cube_name": "places"})][next(3)].clone();
        let limit = 1 + next(4);
        for (path, body) in [
            ("/api/v1/search", json!({"query": query, "types": types, "limit": limit})),
            ("/api/v1/search/autocomplete", json!({"query": query, "context": context, "limit": limit})),
        ] {
            let of_hidden = hidden.send("analyst", "POST", path, body.clone()).await;
            let of_absent = absent.send("analyst", "POST", path, body.clone()).await;
            assert_eq!(of_hidden.0, 200, "{body} {}", of_hidden.1);
            assert_eq!(of_hidden, of_absent, "{body}");
            hits += of_hidden.1.to_string().matches("\"type\":\"value\"").count();
        }
    }
    assert!(hits > 50, "{hits}");
}
