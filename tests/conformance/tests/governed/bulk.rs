//! Several changes of governed records in one request.

use serde_json::{Value as Json, json};
use terrane_app::governance::GovernanceSettings;
use terrane_conformance_tests::case::World;
use terrane_conformance_tests::hooks::FakeHook;

use crate::{House, Response, world};

impl House {
    async fn bulk(&self, caller: &str, operations: Json) -> Response {
        self.post(caller, "/bulk", json!({"operations": operations})).await
    }
}

/// Returns the status, the code and the version of each result.
fn results(answer: &Response) -> Vec<(u64, &str, &Json)> {
    assert_eq!(answer.status, 200, "{answer:?}");
    let results = answer.json["results"].as_array().unwrap();
    assert!(results.iter().enumerate().all(|(place, result)| result["index"] == place), "{answer:?}");
    let failed = results.iter().filter(|result| !result["error"].is_null()).count();
    assert_eq!(
        (&answer.json["succeeded"], &answer.json["failed"]),
        (&json!(results.len() - failed), &json!(failed)),
        "{answer:?}"
    );
    results.iter().map(row).collect()
}

fn row(result: &Json) -> (u64, &str, &Json) {
    let code = result["error"]["code"].as_str().unwrap_or_default();
    (result["status"].as_u64().unwrap(), code, &result["version"])
}

/// Returns an operation on the measure `orders.revenue`.
fn revenue(operation: &str, more: Json) -> Json {
    let mut body = json!({"operation": operation, "artifact_type": "measure", "artifact_id": "orders.revenue"});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

#[tokio::test]
async fn operations_of_all_types_are_made_in_order() {
    let house = House::new().await;
    let id = house.term("Net revenue").await;
    let submit = house.bulk("writer", json!([revenue("submit", json!({"notes": "ready"}))])).await;
    assert_eq!(results(&submit), [(200, "", &json!(1))]);
    let owner = json!({"owner_type": "user", "owner_id": "ada", "role": "data_owner"});
    let answer = house
        .bulk(
            "reviewer",
            json!([
                revenue("certify", json!({"valid_until": "2024-12-31", "if_match": 1})),
                revenue("deprecate", json!({"reason": "old", "replacement": "orders.largest"})),
                revenue("restore", json!({})),
                revenue("archive", json!({"if_match": 4})),
                revenue("assign_owner", owner),
                revenue("remove_owner", json!({"owner_id": "ada", "if_match": 1})),
                revenue("set_metadata", json!({"description": "Money.", "tags": ["core"], "pii_flag": false})),
                revenue("link_term", json!({"term_id": id, "relationship": "defines", "if_match": 1})),
                revenue("unlink_term", json!({"term_id": id})),
            ]),
        )
        .await;
    let versions = [2, 3, 4, 5, 1, 2, 1, 2, 3].map(|version| json!(version));
    let expected: Vec<(u64, &str, &Json)> = versions.iter().map(|version| (200, "", version)).collect();
    assert_eq!(results(&answer), expected, "{answer:?}");
    let artifact = house.get("reader", "/artifacts/measure/orders.revenue").await;
    assert_eq!(artifact.json["certification"]["status"], "archived");
    assert_eq!(artifact.json["description"], "Money.");
    let history = house.get("writer", "/history").await;
    assert_eq!(history.json["changes"].as_array().unwrap().len(), 2 + 9, "each operation has its own audit record");
    assert!(house.events().await.iter().any(|(event, _)| event == "owner_removed"));
}

#[tokio::test]
async fn failed_operations_have_their_own_errors_and_undo_nothing() {
    let house = House::new().await;
    let id = house.term("Net revenue").await;
    let answer = house
        .bulk(
            "writer",
            json!([
                revenue("submit", json!({"notes": "ready"})),
                revenue("submit", json!({"notes": "again"})),
                revenue("certify", json!({})),
                revenue("certify", json!({"if_match": 7})),
                revenue("assign_owner", json!({"owner_type": "user", "owner_id": "ada", "role": "data_steward"})),
                revenue("set_metadata", json!({"description": "x", "if_match": 3})),
                revenue("set_metadata", json!({})),
                revenue("link_term", json!({"term_id": "t9", "relationship": "defines"})),
                revenue("remove_owner", json!({"owner_id": "ada"})),
                revenue("unlink_term", json!({"term_id": id})),
                {"operation": "submit", "artifact_type": "measure", "artifact_id": "orders.xyzzy", "notes": "x"},
                revenue("set_metadata", json!({"description": "Money."})),
            ]),
        )
        .await;
    let (one, null) = (json!(1), Json::Null);
    let expected = [
        (200, "", &one),
        (409, "CONFLICT", &null),
        (403, "FORBIDDEN", &null),
        (403, "FORBIDDEN", &null),
        (403, "FORBIDDEN", &null),
        (412, "PRECONDITION_FAILED", &null),
        (400, "INVALID_QUERY", &null),
        (404, "NOT_FOUND", &null),
        (404, "NOT_FOUND", &null),
        (404, "NOT_FOUND", &null),
        (404, "NOT_FOUND", &null),
        (200, "", &one),
    ];
    assert_eq!(results(&answer), expected, "{answer:?}");
    let details = |place: usize| &answer.json["results"][place]["error"]["details"];
    assert_eq!(details(1)["allowed_moves"], json!(["certify", "reject"]));
    assert_eq!(details(4)["reason"], "reviewer_required");
    assert_eq!(details(5)["current_version"], 0);
    assert_eq!(details(10)["field"], "artifact_id");
    assert_eq!(house.get("writer", "/history").await.json["changes"].as_array().unwrap().len(), 3);
    let denials = house.events().await.iter().filter(|(event, _)| event == "access_denied").count();
    assert_eq!(denials, 3);
}

#[tokio::test]
async fn invalid_operations_name_their_fields() {
    let house = House::new().await;
    let operations = json!([
        {},
        {"operation": "delete"},
        3,
        revenue("submit", json!({"notes": "x", "note": "y"})),
        revenue("submit", json!({"notes": "x", "valid_until": "2024-12-31"})),
        revenue("certify", json!({"valid_until": "tomorrow"})),
        revenue("submit", json!({"notes": "x", "if_match": -1})),
        revenue("submit", json!({"notes": "x", "if_match": "1"})),
        revenue("assign_owner", json!({"owner_type": "robot", "owner_id": "ada", "role": "data_owner"})),
        revenue("link_term", json!({"relationship": "defines"})),
        revenue("set_metadata", json!({"pii_flag": "yes"})),
        {"operation": "set_metadata", "artifact_type": "table", "artifact_id": "orders", "description": "x"},
    ]);
    let answer = house.bulk("writer", operations.clone()).await;
    let failed = results(&answer);
    assert_eq!(failed.len(), operations.as_array().unwrap().len());
    assert!(failed.iter().all(|(status, code, _)| (*status, *code) == (400, "INVALID_QUERY")), "{answer:?}");
    for (place, field) in [
        (1, "operation"),
        (3, "note"),
        (4, "valid_until"),
        (5, "valid_until"),
        (6, "if_match"),
        (8, "owner_type"),
        (10, "pii_flag"),
        (11, "artifact_type"),
    ] {
        assert_eq!(answer.json["results"][place]["error"]["details"]["field"], field, "{place}: {answer:?}");
    }
    assert_eq!(house.get("writer", "/history").await.json["changes"], json!([]));

    let item = revenue("submit", json!({"notes": "x"}));
    for body in [
        json!({}),
        json!({"operations": []}),
        json!({"operations": {}}),
        json!({"operations": vec![item.clone(); 101]}),
        json!({"operations": [item], "atomic": true}),
        json!([]),
    ] {
        let refused = house.post("writer", "/bulk", body.clone()).await;
        assert_eq!(refused.code(), (400, "INVALID_QUERY"), "{body}");
    }
    assert_eq!(house.bulk("reader", json!([])).await.code(), (403, "FORBIDDEN"));
}

#[tokio::test]
async fn operations_have_the_hooks_versions_and_policies_of_single_changes() {
    let blocking = FakeHook { id: "guard".to_owned(), blocks: true, ..FakeHook::default() };
    let house = House::of(World { hooks: vec![blocking], ..world() }).await;
    let answer = house.bulk("writer", json!([revenue("submit", json!({"notes": "x"}))])).await;
    assert_eq!(results(&answer), [(403, "FORBIDDEN", &Json::Null)]);
    assert_eq!(answer.json["results"][0]["error"]["details"]["findings"][0]["hook"], "guard");

    let settings = GovernanceSettings { require_if_match: true, ..GovernanceSettings::default() };
    let house = House::of(World { governance: settings, ..world() }).await;
    let operations =
        json!([revenue("submit", json!({"notes": "x"})), revenue("submit", json!({"notes": "x", "if_match": 0})),]);
    let answer = house.bulk("writer", operations.clone()).await;
    assert_eq!(results(&answer), [(428, "PRECONDITION_REQUIRED", &Json::Null), (200, "", &json!(1))]);
    let hidden = house.bulk("analyst", operations).await;
    assert_eq!(results(&hidden), [(404, "NOT_FOUND", &Json::Null), (404, "NOT_FOUND", &Json::Null)]);
}
