//! Tests the order of hits by certification and use, hits by owners and units, and the filters of suggestions.

use serde_json::{Value as Json, json};
use terrane_conformance_tests::case::World;

use super::{House, names};

const CUBES: &str = "\
cubes:
  - name: stock
    sql_table: raw.stock
    meta: {owner: 'team:logistics'}
    joins: [{name: places, relationship: many_to_one, sql: '{CUBE}.place = {places}.id'}]
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: place, type: number, sql: place, hidden: true}
      - {name: lot, type: string, sql: lot, meta: {tags: [Trace]}}
    measures:
      - {name: load_in, type: sum, sql: load_in, title: Received load}
      - {name: load_out, type: sum, sql: load_out, title: Shipped load, meta: {unit: tonnes, owner: ada, tags: [trace]}}
      - {name: lost, type: sum, sql: lost}
  - name: places
    sql_table: raw.places
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: lobby, type: string, sql: lobby}
";

/// Analysts do not see the lost pieces.
const POLICIES: &str = "\
policies:
  - {name: no_losses, cubes: [stock], when: {roles: [analyst]}, deny: [lost]}
";

async fn house() -> House {
    let columns = json!([{"type": "integer", "values": [2]}]);
    let world = World { columns: serde_json::from_value(columns).unwrap(), ..World::default() };
    House::of(world, CUBES, "", POLICIES).await
}

/// Runs a query of the writer several times.
async fn use_measures(house: &House, measures: &[&str], times: usize) {
    for _ in 0..times {
        let (status, body) = house.send("writer", "POST", "/api/v1/query", json!({"measures": measures})).await;
        assert_eq!(status, 200, "{body}");
    }
}

/// Returns the name of the first hit, and the field and text of its reason.
fn reason(body: &Json) -> [&str; 3] {
    let (hit, found) = (&body["results"][0], &body["results"][0]["matches"][0]);
    [&hit["name"], &found["field"], &found["text"]].map(|value| value.as_str().unwrap_or_default())
}

#[tokio::test]
async fn owners_and_units_are_reasons_of_hits() {
    let house = house().await;
    let team = house.search("writer", json!({"query": "logistics"})).await;
    assert_eq!(reason(&team), ["stock", "owner", "logistics"]);
    let unit = house.search("writer", json!({"query": "tonnes"})).await;
    assert_eq!(reason(&unit), ["stock.load_out", "unit", "tonnes"]);
    assert_eq!(unit["results"][0]["owners"], json!([{"type": "user", "id": "ada", "role": "data_owner"}]));
    assert_eq!(house.suggested("writer", json!({"query": "tonn"})).await, ["stock.load_out"]);
    // An owner that a request assigns replaces the owner of the files.
    let owner = json!({"artifact_type": "measure", "artifact_id": "stock.load_out", "owner_type": "user",
                       "owner_id": "grace", "role": "data_owner"});
    let (status, body) = house.send("writer", "POST", "/api/v1/governance/ownership/assign", owner).await;
    assert!(status < 300, "{status} {body}");
    assert_eq!(house.found("writer", "grace").await, ["stock.load_out"]);
    assert_eq!(house.found("writer", "ada").await, Vec::<String>::new());
}

#[tokio::test]
async fn similar_hits_are_ordered_by_certification_and_use() {
    let house = house().await;
    assert_eq!(house.found("writer", "load").await, ["stock.load_in", "stock.load_out"]);
    use_measures(&house, &["stock.load_out"], 3).await;
    for caller in ["writer", "analyst"] {
        assert_eq!(house.found(caller, "load").await, ["stock.load_out", "stock.load_in"], "{caller}");
        assert_eq!(house.suggested(caller, json!({"query": "loa"})).await[0], "stock.load_out", "{caller}");
    }
    let certified = json!({"artifact_type": "measure", "artifact_id": "stock.load_in", "notes": "checked"});
    for (caller, path) in [("writer", "submit"), ("reviewer", "certify")] {
        let path = format!("/api/v1/governance/certification/{path}");
        let (status, body) = house.send(caller, "POST", &path, certified.clone()).await;
        assert!(status < 300, "{status} {body}");
    }
    use_measures(&house, &["stock.load_out"], 20).await;
    assert_eq!(house.found("writer", "load").await, ["stock.load_in", "stock.load_out"]);
    // A better match comes before a member that more queries name.
    assert_eq!(house.found("writer", "received load").await[0], "stock.load_in");
}

#[tokio::test]
async fn use_is_counted_in_the_history_of_earlier_servers() {
    let columns = json!([{"type": "integer", "values": [2]}]);
    let world = World { columns: serde_json::from_value(columns).unwrap(), ..World::default() };
    let first = House::of(world.clone(), CUBES, "", POLICIES).await;
    use_measures(&first, &["stock.load_out"], 3).await;
    first.edge.app().services.cost.as_ref().unwrap().log().flush().await.unwrap();
    let second = House::of(world, CUBES, "", POLICIES).await;
    assert_eq!(second.found("writer", "load").await, ["stock.load_out", "stock.load_in"]);
}

/// Queries of other callers that name hidden members do not change the scores of a caller.
#[tokio::test]
async fn use_of_hidden_members_changes_no_score() {
    let house = house().await;
    let search = async || house.search("analyst", json!({"query": "load", "limit": 50})).await;
    let before = search().await;
    use_measures(&house, &["stock.lost"], 5).await;
    let after = search().await;
    // The cube itself is used more often, which is visible to all of its readers.
    let scores = |body: &Json| -> Vec<(String, i64)> {
        let hits = body["results"].as_array().unwrap().iter();
        let scored = hits.map(|hit| (hit["name"].as_str().unwrap().to_owned(), hit["score"].as_i64().unwrap()));
        scored.filter(|(name, _)| name.contains('.')).collect()
    };
    assert_eq!(scores(&before), scores(&after));
    assert!(!scores(&before).is_empty());
    assert!(!after.to_string().contains("stock.lost"), "{after}");
}

#[tokio::test]
async fn suggestions_are_selected_by_type_tag_and_status() {
    let house = house().await;
    let suggested = async |more: Json| {
        let mut body = json!({"query": "lo", "context": {"cube_name": "stock"}});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut found = house.suggested("writer", body).await;
        found.sort();
        found
    };
    let of_type = |name: &str| json!({"types": [name]});
    assert_eq!(suggested(of_type("measure")).await, ["stock.load_in", "stock.load_out", "stock.lost"]);
    assert_eq!(suggested(of_type("dimension")).await, ["places.lobby", "stock.lot"]);
    assert_eq!(suggested(json!({"tags": ["TRACE"]})).await, ["stock.load_out", "stock.lot"]);
    assert_eq!(suggested(json!({"tags": ["trace"], "types": ["measure"]})).await, ["stock.load_out"]);
    assert_eq!(suggested(json!({"certification_status": "certified"})).await, Vec::<String>::new());
    assert_eq!(suggested(json!({"query": "", "tags": ["trace"]})).await, ["stock.load_out", "stock.lot"]);
    assert_eq!(suggested(json!({"query": "", "certification_status": "certified"})).await, Vec::<String>::new());
    let document = "{ typed: autocomplete(query: \"lo\", cube: \"stock\", types: [DIMENSION]) { name } \
                    tagged: autocomplete(query: \"lo\", tags: [\"trace\"], types: [MEASURE]) { name } \
                    certified: autocomplete(query: \"lo\", certificationStatus: CERTIFIED) { name } }";
    let body = house.graphql("writer", document).await;
    assert_eq!(names(&body["data"]["typed"]), ["stock.lot", "places.lobby"], "{body}");
    assert_eq!(names(&body["data"]["tagged"]), ["stock.load_out"]);
    assert_eq!(names(&body["data"]["certified"]), Vec::<String>::new());
    for (field, value) in [("types", json!(["measures"])), ("tags", json!([5])), ("certification_status", json!("ok"))]
    {
        let mut body = json!({"query": "lo"});
        body[field] = value;
        let (status, answer) = house.send("writer", "POST", "/api/v1/search/autocomplete", body).await;
        assert_eq!((status, &answer["error"]["code"]), (400, &json!("INVALID_QUERY")), "{field} {answer}");
    }
}
