//! Export and import of governed records over HTTP.

use serde_json::{Value as Json, json};

use crate::{BASE, House, Response};

impl House {
    async fn yaml(&self, caller: &str, path: &str, content_type: &str, text: &str) -> Response {
        let headers = json!({"authorization": format!("Bearer {}", self.keys[caller]), "content-type": content_type});
        self.ask(json!({"method": "POST", "path": format!("{BASE}{path}"), "headers": headers, "text": text})).await
    }

    async fn import(&self, text: &str) -> Response {
        self.yaml("admin", "/import", "application/yaml", text).await
    }

    async fn imported_records(&self) -> usize {
        self.events().await.iter().filter(|(event, _)| event == "governance_record_imported").count()
    }
}

/// Returns the places of the problems of an answer.
fn places(answer: &Response) -> Vec<&str> {
    let problems = answer.details()["record_problems"].as_array().unwrap();
    problems.iter().map(|problem| problem["place"].as_str().unwrap()).collect()
}

/// Returns the YAML of a term.
fn term(id: &str, more: &str) -> String {
    format!(
        "  - {{id: {id}, definition: Money., status: approved, created_by: ada, \
         created_at: 2024-01-01T00:00:00Z, updated_at: 2024-01-01T00:00:00Z, {more}}}\n"
    )
}

#[tokio::test]
async fn records_move_to_another_server() {
    let first = House::new().await;
    first.certified("orders.revenue").await;
    let id = first.term("Net revenue").await;
    let link = json!({"artifact_type": "measure", "artifact_id": "orders.revenue", "relationship": "defines"});
    assert_eq!(first.post("writer", &format!("/glossary/terms/{id}/links"), link).await.status, 201);
    let exported = first.get("admin", "/export").await;
    assert_eq!((exported.status, exported.content_type.as_str()), (200, "text/plain; charset=utf-8"), "{exported:?}");
    assert!(exported.text.starts_with("version: 1\n") && exported.text.contains(&id), "{}", exported.text);

    let second = House::new().await;
    let numbers = |dry_run: bool, created: u64, unchanged: u64| json!({"dry_run": dry_run, "created": created, "changed": 0, "unchanged": unchanged});
    let checked = second.yaml("admin", "/import?dry_run=true", "application/yaml", &exported.text).await;
    assert_eq!((checked.status, &checked.json), (200, &numbers(true, 2, 0)), "{checked:?}");
    assert_eq!(
        (second.imported_records().await, second.get("admin", "/history").await.json["changes"].clone()),
        (0, json!([]))
    );
    let imported = second.import(&exported.text).await;
    assert_eq!((imported.status, &imported.json), (200, &numbers(false, 2, 0)), "{imported:?}");
    assert_eq!(second.get("admin", "/export").await.text, exported.text);
    let status = second.get("reader", &format!("/certification/status?{}", crate::REVENUE)).await;
    assert_eq!((&status.json["status"], &status.json["certified_by"]), (&json!("certified"), &json!("reviewer")));
    let history = second.get("admin", "/history").await;
    let changes = history.json["changes"].as_array().unwrap();
    assert!(changes.iter().all(|change| change["actor"] == "admin"), "{history:?}");

    let again =
        second.yaml("admin", "/import?dry_run=false", "application/openapi+yaml; charset=utf-8", &exported.text);
    assert_eq!(again.await.json, numbers(false, 0, 2));
    assert_eq!(second.imported_records().await, 2, "one record for each imported record");
}

#[tokio::test]
async fn transfer_needs_admin() {
    let house = House::new().await;
    for caller in ["writer", "reviewer", "reader"] {
        let exported = house.get(caller, "/export").await;
        assert_eq!((exported.code(), &exported.details()["required_scope"]), ((403, "FORBIDDEN"), &json!("admin")));
        let imported = house.yaml(caller, "/import", "application/yaml", "version: 1").await;
        assert_eq!(imported.code(), (403, "FORBIDDEN"), "{caller}");
    }
    assert_eq!(house.import("version: 1").await.status, 200);
}

#[tokio::test]
async fn invalid_files_are_refused_with_the_places_of_their_problems() {
    let house = House::new().await;
    let taken = house.term("Net revenue").await;
    for (text, expected) in [
        ("version: 2".to_owned(), vec!["version"]),
        ("[1, 2".to_owned(), vec![""]),
        ("just words".to_owned(), vec![""]),
        ("a: &x 1\nb: *x".to_owned(), vec![""]),
        ("terms: []\nowners: []".to_owned(), vec!["owners", ""]),
        ("version: 1\nterms: {}".to_owned(), vec!["terms"]),
        (format!("version: 1\nterms:\n{}", term("t1", "name: net Revenue")), vec!["terms[0].name"]),
        (
            format!("version: 1\nterms:\n{}{}", term("t1", "name: A"), term("t1", "name: B, synonyms: [3]")),
            vec!["terms[1].synonyms[0]"],
        ),
        (
            format!("version: 1\nterms:\n{}{}", term("t1", "name: A"), term("t1", "name: B, related_terms: [t9]")),
            vec!["terms[1]", "terms[1].related_terms[0]"],
        ),
    ] {
        for path in ["/import", "/import?dry_run=true"] {
            let answer = house.yaml("admin", path, "application/yaml", &text).await;
            assert_eq!(answer.code(), (422, "VALIDATION_ERROR"), "{text}");
            assert_eq!(places(&answer), expected, "{text}: {answer:?}");
        }
    }
    let many = format!("version: 1\nownership: [{}]", "{}, ".repeat(5_000));
    let answer = house.import(&many).await;
    assert_eq!((answer.code(), places(&answer).len()), ((422, "VALIDATION_ERROR"), 100));
    assert_eq!(house.imported_records().await, 0);
    let exported = house.get("admin", "/export").await;
    assert!(exported.text.contains(&taken) && exported.text.contains("ownership: []"), "{}", exported.text);
}

#[tokio::test]
async fn records_in_json_are_imported() {
    let house = House::new().await;
    let text = json!({"version": 1, "terms": [], "ownership": []}).to_string();
    for content_type in ["application/json", "application/problem+json; charset=utf-8"] {
        let checked = house.yaml("admin", "/import?dry_run=true", content_type, &text).await;
        assert_eq!((checked.status, &checked.json["created"]), (200, &json!(0)), "{}", checked.text);
    }
}

#[tokio::test]
async fn bodies_that_are_not_yaml_are_refused() {
    let house = House::new().await;
    for (path, content_type, text, expected) in [
        ("/import", "application/json", "{}", (422, "VALIDATION_ERROR")),
        ("/import", "text/plain", "version: 1", (415, "UNSUPPORTED_MEDIA_TYPE")),
        ("/import?dry_run=maybe", "application/yaml", "version: 1", (400, "INVALID_QUERY")),
        ("/import?dry=true", "application/yaml", "version: 1", (400, "INVALID_QUERY")),
        ("/export?format=json", "application/yaml", "", (405, "METHOD_NOT_ALLOWED")),
    ] {
        assert_eq!(house.yaml("admin", path, content_type, text).await.code(), expected, "{path} {content_type}");
    }
    let large = format!("# {}", "x".repeat(2 * 1_024 * 1_024));
    assert_eq!(house.import(&large).await.code(), (413, "PAYLOAD_TOO_LARGE"));
    assert_eq!(house.get("admin", "/export?format=json").await.code(), (400, "INVALID_QUERY"));
    let records: Json = house.get("admin", "/history").await.json["changes"].clone();
    assert_eq!(records, json!([]));
}
