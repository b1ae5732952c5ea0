//! Fields for the costs of queries.

use serde_json::{Value as Json, json};

use crate::{House, assert_same};

const BASE: &str = "/api/v1/optimization";
const LIMITS: &str = "{ maxExecutionSeconds maxRowsReturned requireTimeFilter requirePartitionFilter maxCostPerQuery \
                      maxBytesScanned dailyBudget monthlyBudget alertAtPercent }";
const EXECUTION: &str = "{ id queries at queryHash cube userId kind surface seconds warehouseSeconds rows bytesScanned \
                         cost cached preAggregation }";

impl House {
    async fn query(&self, caller: &str, metric: &str) {
        let body = json!({"metrics": [metric], "dimensions": ["orders.status"]});
        self.change(caller, "POST", "/api/v1/query", body).await;
    }
}

#[tokio::test]
async fn history_is_that_of_rest() {
    let house = House::new().await;
    house.query("reader", "orders.count").await;
    house.query("writer", "orders.count").await;
    for (caller, arguments, parameters, count) in [
        ("reader", "(limit: 100)", "?limit=100", 1),
        ("admin", "(limit: 1)", "?limit=1", 1),
        ("admin", "(since: \"2020-01-01T00:00:00Z\", until: \"2100-01-01T00:00:00Z\")", "", 2),
        ("admin", "(userId: \"reader\")", "?user_id=reader", 1),
        ("admin", "(queryHash: \"0\")", "?query_hash=0", 0),
    ] {
        let document = format!("{{ queryHistory{arguments} {{ next queries {EXECUTION} }} }}");
        let found = house.field(caller, &document).await;
        assert_eq!(found["queries"].as_array().unwrap().len(), count, "{arguments}");
        assert_same(&found, &house.get(caller, &format!("{BASE}/history{parameters}")).await);
    }
    let next = house.field("admin", "{ queryHistory(limit: 1) { next } }").await["next"].clone();
    let document = format!("{{ queryHistory(before: {next}) {{ next }} }}");
    assert_eq!(house.field("admin", &document).await, json!({"next": null}));
}

#[tokio::test]
async fn history_refuses_other_users_and_invalid_arguments() {
    let house = House::new().await;
    assert_eq!(house.code("reader", "{ queryHistory(userId: \"writer\") { next } }").await, "FORBIDDEN");
    for (arguments, field) in [
        ("limit: 0", "limit"),
        ("limit: 1001", "limit"),
        ("since: \"yesterday\"", "since"),
        ("until: \"\"", "until"),
        ("before: \"1\"", "before"),
    ] {
        let answer = house.graphql("reader", &format!("{{ queryHistory({arguments}) {{ next }} }}")).await;
        let error = &answer["errors"][0]["extensions"];
        assert_eq!((&error["code"], &error["details"]["field"]), (&json!("INVALID_QUERY"), &json!(field)), "{answer}");
    }
}

#[tokio::test]
async fn cubes_that_the_reader_cannot_see_have_no_name() {
    let house = House::new().await;
    house.query("analyst", "orders.count").await;
    let document = "{ queryHistory(userId: \"analyst\") { queries { cube } } }";
    assert_eq!(house.field("analyst", document).await["queries"], json!([{"cube": "orders"}]));
    for hidden in ["ledger", "salaries"] {
        house.history.queries.lock().unwrap()[0].cube = hidden.into();
        assert_eq!(house.field("analyst", document).await["queries"], json!([{"cube": null}]));
    }
}

#[tokio::test]
async fn guardrails_are_those_of_rest() {
    let house = House::new().await;
    for path in ["users/reader", "groups/analyst"] {
        let limits = json!({"max_rows_returned": 50, "max_execution_seconds": 2.5, "max_bytes_scanned": "10GB"});
        house.change("admin", "PUT", &format!("{BASE}/guardrails/{path}"), limits).await;
    }
    let effective = format!("guardrails {LIMITS} sources {{ source name guardrails {LIMITS} }}");
    for caller in ["reader", "analyst", "writer"] {
        let found = house.field(caller, &format!("{{ guardrails {{ {effective} }} }}")).await;
        assert_same(&found, &house.get(caller, &format!("{BASE}/guardrails")).await);
    }
    let of_reader = format!("{{ guardrails(userId: \"reader\") {{ {effective} }} }}");
    let found = house.field("admin", &of_reader).await;
    assert_eq!(found["guardrails"]["maxRowsReturned"].as_f64(), Some(50.0), "{found}");
    assert_eq!(house.code("writer", &of_reader).await, "FORBIDDEN");

    let subject = format!("{{ userId role guardrails {LIMITS} warnings version updatedBy updatedAt }}");
    let own = house.field("reader", &format!("{{ subjectGuardrails(userId: \"reader\") {subject} }}")).await;
    assert_same(&own, &house.get("reader", &format!("{BASE}/guardrails/users/reader")).await);
    let group = house.field("analyst", &format!("{{ subjectGuardrails(role: \"analyst\") {subject} }}")).await;
    assert_same(&group, &house.get("analyst", &format!("{BASE}/guardrails/groups/analyst")).await);
    let all = house.field("admin", &format!("{{ allGuardrails {subject} }}")).await;
    assert_eq!(all, json!([own, group]));
}

#[tokio::test]
async fn guardrails_of_others_need_admin() {
    let house = House::new().await;
    for (caller, document, code) in [
        ("writer", "{ subjectGuardrails(userId: \"reader\") { version } }", "FORBIDDEN"),
        ("writer", "{ subjectGuardrails(role: \"analyst\") { version } }", "FORBIDDEN"),
        ("writer", "{ allGuardrails { version } }", "FORBIDDEN"),
        ("reader", "{ subjectGuardrails(userId: \"reader\") { version } }", "NOT_FOUND"),
        ("admin", "{ subjectGuardrails(role: \"missing\") { version } }", "NOT_FOUND"),
        ("admin", "{ subjectGuardrails { version } }", "INVALID_QUERY"),
        ("admin", "{ subjectGuardrails(userId: \"a\", role: \"b\") { version } }", "INVALID_QUERY"),
    ] {
        assert_eq!(house.code(caller, document).await, code, "{document}");
    }
    assert_eq!(house.field("admin", "{ allGuardrails { version } }").await, json!([]));
}

#[tokio::test]
async fn predictions_are_those_of_rest_and_run_nothing() {
    let house = House::new().await;
    house.query("reader", "orders.count").await;
    let fields = "queryHash basis bases { scanBytes estimatedSeconds estimatedCost } samples scanBytes scanBytesFormatted estimatedSeconds estimatedCost \
                  low { scanBytes estimatedSeconds estimatedCost } high { scanBytes estimatedSeconds estimatedCost } \
                  costBreakdown { scanCost computeCost egressCost } \
                  preaggMatch { matched preaggName scanBytesWithPreagg scanBytesWithoutPreagg estimatedSecondsWithPreagg \
                  estimatedSecondsWithoutPreagg savingsPercent recommendation } \
                  guardrailStatus { withinLimits costLimit timeLimit warnings } optimizationHints warnings";
    for (argument, of_rest) in [("", json!(true)), (", includePreaggAnalysis: false", json!(false))] {
        let document = format!(
            "{{ predictCost(measures: [\"orders.count\"], dimensions: [\"orders.status\"]{argument}) {{ {fields} }} }}"
        );
        let found = house.field("reader", &document).await;
        assert_eq!(found["basis"], "history", "{found}");
        let question = json!({
            "query": {"measures": ["orders.count"], "dimensions": ["orders.status"]}, "include_preagg_analysis": of_rest,
        });
        assert_same(&found, &house.change("reader", "POST", &format!("{BASE}/predict-cost"), question).await);
    }
    let run = house.field("admin", "{ queryHistory { queries { id } } }").await;
    assert_eq!(run["queries"].as_array().unwrap().len(), 1, "{run}");
}

#[tokio::test]
async fn checks_are_those_of_rest_and_run_nothing() {
    let house = House::new().await;
    let limits = json!({"max_rows_returned": 5, "require_time_filter": true});
    house.change("admin", "PUT", &format!("{BASE}/guardrails/users/reader"), limits).await;
    let check = async |caller: &str, user: Option<&str>| {
        let argument = user.map(|user| format!(", userId: \"{user}\"")).unwrap_or_default();
        let document = format!(
            "{{ checkGuardrails(measures: [\"orders.count\"], limit: 10{argument}) \
             {{ allowed reason suggestions warnings exceeded guardrails {LIMITS} }} }}"
        );
        let mut question = json!({"query": {"measures": ["orders.count"], "limit": 10}});
        if let Some(user) = user {
            question["user_id"] = user.into();
        }
        let path = format!("{BASE}/check-guardrails");
        let (status, of_rest) = house.rest(caller, "POST", &path, Some(question)).await;
        let answer = house.graphql(caller, &document).await;
        match status {
            200 => assert_same(&answer["data"]["checkGuardrails"], &of_rest),
            _ => assert_eq!(answer["errors"][0]["extensions"]["code"], of_rest["error"]["code"], "{answer}"),
        }
        answer
    };
    let refused = &check("reader", None).await["data"]["checkGuardrails"]["exceeded"];
    assert_eq!(*refused, json!(["require_time_filter"]));
    assert_eq!(check("writer", None).await["data"]["checkGuardrails"]["allowed"], json!(true));
    assert_eq!(check("admin", Some("reader")).await["data"]["checkGuardrails"]["allowed"], json!(false));
    assert_eq!(check("writer", Some("reader")).await["errors"][0]["extensions"]["code"], "FORBIDDEN");
    let run = house.field("admin", "{ queryHistory { queries { id } } }").await;
    assert_eq!(run["queries"], json!([]));
}

#[tokio::test]
async fn denied_members_are_unknown_to_predictions_and_checks() {
    let house = House::new().await;
    let errors = async |caller: &str, field: &str, measure: &str| {
        let answer = house.graphql(caller, &format!("{{ {field}(measures: [\"{measure}\"]) {{ __typename }} }}")).await;
        let error = answer["errors"][0].clone();
        (error["extensions"]["code"].clone(), error["message"].as_str().unwrap_or_default().to_owned())
    };
    for field in ["predictCost", "checkGuardrails"] {
        let (code, message) = errors("analyst", field, "orders.revenue").await;
        let (of_unknown, unknown) = errors("analyst", field, "orders.revenux").await;
        assert_eq!((&code, message.replace("revenue", "revenux")), (&of_unknown, unknown), "{field}");
        assert_eq!(code, "INVALID_MEASURE");
        assert_eq!(errors("reader", field, "orders.revenue").await.0, Json::Null);
    }
}
