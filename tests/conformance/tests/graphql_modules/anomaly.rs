//! Fields for monitors without detectors. Monitors over real rows are tested by the system tests.

use serde_json::json;

use crate::{House, assert_same};

const BASE: &str = "/api/v1/anomaly";

#[tokio::test]
async fn channels_are_those_of_rest_without_secrets() {
    let house = House::new().await;
    let found = house.field("reader", "{ channels { type name cleared failures resumesAt disabled } }").await;
    assert_eq!(found.as_array().unwrap().len(), 2, "{found}");
    assert!(!found.to_string().contains("secret"), "{found}");
    assert_same(&found, &house.get("reader", &format!("{BASE}/channels")).await["channels"]);
}

#[tokio::test]
async fn detectors_are_those_of_rest() {
    let house = House::new().await;
    let document = "{ detectors { detectors { kind displayName defaultSensitivity minPoints hasModel settingsSchema \
                    component version } faults { component fault } } }";
    assert_same(&house.field("reader", document).await, &house.get("reader", &format!("{BASE}/detectors")).await);
}

#[tokio::test]
async fn unknown_records_are_not_found() {
    let house = House::new().await;
    for (document, path) in [
        ("{ monitor(id: \"0\") { name } }", "monitors/0"),
        ("{ alert(id: \"0\") { status } }", "alerts/0"),
        ("{ rootCause(detectionId: \"0\") { summary } }", "detections/0/root-cause"),
    ] {
        let (status, of_rest) = house.rest("reader", "GET", &format!("{BASE}/{path}"), None).await;
        let answer = house.graphql("reader", document).await;
        let error = &answer["errors"][0];
        assert_eq!((status, &error["extensions"]["code"]), (404, &json!("NOT_FOUND")), "{answer}");
        assert_eq!(error["message"], of_rest["error"]["message"], "{document}");
    }
}

#[tokio::test]
async fn root_causes_count_as_executions() {
    let house = House::new().await;
    let fields: String = (0..11).map(|at| format!("f{at}: rootCause(detectionId: \"0\") {{ gap }} ")).collect();
    let answer = house.graphql("reader", &format!("{{ {fields} }}")).await;
    let error = &answer["errors"][0]["extensions"];
    assert_eq!(
        (&error["code"], &error["details"]["limit"]),
        (&json!("GRAPHQL_LIMIT_EXCEEDED"), &json!("executions")),
        "{answer}"
    );
}
