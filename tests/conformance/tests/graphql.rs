//! Tests GraphQL over the use cases of a server: rows, errors, rights, limits and audit records.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{Stream, StreamExt as _, stream};
use serde_json::{Map, Value as Json, json};
use terrane_app::domain::{RequestContext, Scope, Scopes, Surface};
use terrane_app::limits::quota::QuotaSettings;
use terrane_app::ports::audit::{AuditEntry, AuditFilter, AuditLog, AuditRecord, ChainState};
use terrane_app::ports::store::StoreError;
use terrane_conformance_tests::case::{Caller, TestRequest, World, ask};
use terrane_conformance_tests::fakes::{Column, FakeBehavior, SECRET};
use terrane_conformance_tests::security::Security;
use terrane_graphql::{GraphQl, GraphQlContext, GraphQlServices, GraphQlSettings, Limits, Response};
use terrane_server::Edge;

fn world() -> World {
    let column = |ty: &str, values: Json| Column { ty: ty.to_owned(), values: values.as_array().unwrap().clone() };
    World {
        columns: vec![column("text", json!(["paid", "open"])), column("integer", json!([2, 1]))],
        ..World::default()
    }
}

struct GraphQlSurface {
    graphql: GraphQl,
    scopes: Scopes,
    // The services stop when the edge is dropped, so the surface holds it.
    _edge: Edge,
}

impl GraphQlSurface {
    fn over(edge: Edge, scopes: Scopes) -> Self {
        Self::with(edge, scopes, GraphQlSettings::default())
    }

    fn with(edge: Edge, scopes: Scopes, settings: GraphQlSettings) -> Self {
        let graphql = GraphQl::new(GraphQlServices::from(&edge.app().services), settings);
        GraphQlSurface { graphql, scopes, _edge: edge }
    }

    async fn response(&self, document: &str, variables: Json) -> Response {
        let Json::Object(variables) = variables else { panic!("no object") };
        let operation = match self.graphql.read(document, None, variables) {
            Ok(operation) => operation,
            Err(refusal) => return Response::refused(&refusal, "id"),
        };
        let request = RequestContext {
            scopes: self.scopes,
            surface: Surface::Graphql,
            correlation_id: "id".into(),
            ..RequestContext::default()
        };
        self.graphql.execute(operation, GraphQlContext { request, ..GraphQlContext::default() }).await
    }

    async fn ask(&self, document: &str) -> Json {
        serde_json::from_slice(self.response(document, json!({})).await.body()).unwrap()
    }

    async fn data(&self, document: &str) -> Json {
        let answer = self.ask(document).await;
        assert_eq!(answer.get("errors"), None, "{answer}");
        answer["data"].clone()
    }
}

fn reader(world: &World) -> GraphQlSurface {
    GraphQlSurface::over(world.edge(), Scopes::READ)
}

#[tokio::test]
async fn example_of_the_specification_works_as_written() {
    let world = world();
    let answer = reader(&world)
        .data(
            r#"{ cubes(names: ["orders"]) { name query(measures: ["orders.count"], dimensions: ["orders.status"],
                 filters: [{member: "orders.is_gift", operator: EQUALS, values: ["true"]}]) {
                 data query { sql duration_ms } } } }"#,
        )
        .await;
    let cube = &answer["cubes"][0];
    assert_eq!(cube["name"], "orders");
    let rows = json!([
        {"orders.status": "paid", "orders.count": 2}, {"orders.status": "open", "orders.count": 1},
    ]);
    assert_eq!(cube["query"]["data"], rows);
    assert!(cube["query"]["query"]["sql"].as_str().unwrap().contains("SELECT"));
    assert!(cube["query"]["query"]["duration_ms"].is_number());
}

#[tokio::test]
async fn fields_follow_the_order_of_the_document() {
    let document = r#"query($no: Boolean = false) {
        b: query(dimensions: ["orders.status"], measures: ["orders.count"]) { meta { returnedCount } data }
        a: cube(name: "visits") { title name gone: name @include(if: $no) }
        __typename
        ...F
    } fragment F on Query { a: cube(name: "visits") { joins { name } } }"#;
    let response = reader(&world()).response(document, json!({})).await;
    let text = String::from_utf8(response.body().to_vec()).unwrap();
    let expected = r#"{"data":{"b":{"meta":{"returnedCount":2},"data":[{"orders.status":"paid","orders.count":2},{"orders.status":"open","orders.count":1}]},"a":{"title":"visits","name":"visits","joins":[]},"__typename":"Query"}}"#;
    assert_eq!(text.to_lowercase(), expected.to_lowercase());
}

#[tokio::test]
async fn failed_field_is_null_and_its_siblings_have_values() {
    let asked = reader(&world());
    let answer = asked.ask(r#"{ job(id: "none") { id } cube(name: "none") { name } metrics { name } }"#).await;
    assert_eq!(answer["data"]["job"], Json::Null);
    assert_eq!(answer["data"]["cube"], Json::Null);
    assert_eq!(answer["data"]["metrics"][0]["name"], "revenue");
    let [error] = answer["errors"].as_array().unwrap().as_slice() else { panic!("{answer}") };
    assert_eq!(error["path"], json!(["job"]));
    assert_eq!(error["locations"], json!([{"line": 1, "column": 3}]));
    // The servers of these tests have no jobs.
    assert_eq!(error["extensions"]["code"], "STATE_UNAVAILABLE");
    assert_eq!(error["extensions"]["correlation_id"], "id");
}

#[tokio::test]
async fn failed_non_null_field_makes_its_object_null() {
    let asked = reader(&world());
    let answer = asked
        .ask(
            r#"{ cube(name: "orders") { name bad: query(measures: ["nothing"]) { data } }
                 other: cube(name: "visits") { name } }"#,
        )
        .await;
    assert_eq!(answer["data"], json!({"cube": null, "other": {"name": "visits"}}));
    let error = &answer["errors"][0];
    assert_eq!(error["path"], json!(["cube", "bad"]));
    assert_eq!(error["extensions"]["code"], "INVALID_QUERY");
    let all = asked.ask(r#"{ metrics { name } query(measures: ["orders.nothing"]) { data } }"#).await;
    assert_eq!(all["data"], Json::Null);
    assert!(all["errors"][0]["extensions"]["available_measures"].is_array());
}

#[tokio::test]
async fn equal_queries_of_a_document_run_once() {
    let world = world();
    let answer = reader(&world)
        .data(
            r#"{ a: query(measures: ["orders.count"], dimensions: ["orders.status"]) { data }
                 b: query(measures: ["orders.count"], dimensions: ["orders.status"]) { rows columns { name } }
                 cube(name: "visits") {
                   query(measures: ["orders.count"], dimensions: ["orders.status"]) { meta { cacheKey } } } }"#,
        )
        .await;
    assert_eq!(answer["b"]["rows"], json!([["paid", 2], ["open", 1]]));
    assert_eq!(answer["b"]["columns"], json!([{"name": "orders.status"}, {"name": "orders.count"}]));
    assert_eq!(world.statements.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn queries_below_lists_are_bounded_while_they_run() {
    let world = world();
    let document = r#"{ cubes { dimensions { values { value label count } } }
        metrics { name } orders: query(measures: ["orders.count"], dimensions: ["orders.status"]) { data } }"#;
    let answer = reader(&world).ask(document).await;
    let codes: Vec<&Json> =
        answer["errors"].as_array().unwrap().iter().map(|error| &error["extensions"]["details"]["limit"]).collect();
    assert!(!codes.is_empty() && codes.iter().all(|limit| *limit == "executions"), "{answer}");
    assert!(world.statements.load(Ordering::Relaxed) <= 10);
}

#[tokio::test]
async fn lists_of_the_model_are_bounded_before_their_items_are_resolved() {
    let limited = |items: usize| {
        let limits = Limits { items, ..Limits::default() };
        let settings = GraphQlSettings { limits, ..GraphQlSettings::default() };
        GraphQlSurface::with(world().edge(), Scopes::READ, settings)
    };
    let aliases = |count: usize, list: &str| -> String { (0..count).map(|n| format!("a{n}: {list} ")).collect() };
    let names = "[\"orders\"]";
    for (document, items) in [
        // The answer contains four cubes with one field each.
        ("{ cubes { name } }".to_owned(), 8),
        ("{ cubes { name name } }".to_owned(), 12),
        ("{ ...F cubes { name } } fragment F on Query { cubes { name } }".to_owned(), 16),
        // The answer contains one name, one cube, and five measures with two fields each.
        (format!("{{ cubes(names: {names}) {{ measures {{ name type }} }} }}"), 1 + 1 + 5 + 10),
        (format!("{{ cubes(names: {names}) {{ {} }} }}", aliases(30, "measures { name }")), 1 + 1 + 30 * 10),
        ("{ cube(name: \"orders\") { measures { drillMembers } } }".to_owned(), 1 + 5 + 2),
        ("{ metrics { cubes } }".to_owned(), 2 + 3),
        ("{ lineage(measure: \"orders.count\", depth: 0) { nodes { id } a: nodes { id } } }".to_owned(), 5),
    ] {
        let exact = limited(items).ask(&document).await;
        assert_eq!(exact.get("errors"), None, "{document}: {exact}");
        let surplus = limited(items - 1).ask(&document).await;
        let details = &surplus["errors"][0]["extensions"]["details"];
        assert_eq!((&details["limit"], &details["max"]), (&json!("items"), &json!(items - 1)), "{document}: {surplus}");
    }
}

#[tokio::test]
async fn rewritten_rows_count_as_items() {
    let query = "query(measures: [\"orders.count\"], dimensions: [\"orders.status\"]) { data }";
    let limits = Limits { items: 4, ..Limits::default() };
    let settings = GraphQlSettings { limits, ..GraphQlSettings::default() };
    let asked = GraphQlSurface::with(world().edge(), Scopes::READ, settings);
    // The query returns two rows. Each repetition after the first counts its rows as items.
    let (thrice, four) = (format!("{{ a: {query} b: {query} c: {query} }}"), format!("{{ {0} {0} {0} {0} }}", query));
    assert_eq!(asked.ask(&thrice).await.get("errors"), None);
    assert_eq!(asked.ask(&four).await["errors"][0]["extensions"]["details"]["limit"], "items");
}

#[tokio::test]
async fn cubes_follow_the_order_of_the_project_without_duplicates() {
    let names = r#"["visits", "orders", "visits", "ledger", "none"]"#;
    let answer = reader(&world()).data(&format!("{{ cubes(names: {names}) {{ name }} }}")).await;
    assert_eq!(answer["cubes"], json!([{"name": "orders"}, {"name": "visits"}]));
}

#[tokio::test]
async fn model_contains_only_visible_members() {
    let asked = reader(&world());
    let answer = asked
        .data(
            r#"{ cubes { name } orders: cube(name: "orders") {
                 measures { name type format drillMembers hasTimeIntelligence timeIntelligenceType }
                 dimensions { name type granularities isPrimaryTimeDimension }
                 segments { name } joins { name relationship } }
               ledger: cube(name: "ledger") { name } metrics { name type timeGrain cubes } }"#,
        )
        .await;
    let names = |list: &Json| -> Vec<String> {
        list.as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&answer["cubes"]), ["orders", "customers", "visits", "giver"]);
    assert_eq!(answer["ledger"], Json::Null, "a cube that is not public");
    let orders = &answer["orders"];
    assert_eq!(names(&orders["measures"]), ["count", "revenue", "buyers", "average_order", "largest"]);
    assert_eq!(orders["measures"][0]["type"], "COUNT");
    assert_eq!(orders["measures"][0]["drillMembers"], json!(["orders.id", "orders.status"]));
    assert_eq!(orders["measures"][1]["format"], "currency");
    assert_eq!(names(&orders["dimensions"]), ["id", "status", "created_at", "is_gift"]);
    assert_eq!(orders["dimensions"][2]["granularities"], json!(["DAY", "MONTH", "YEAR"]));
    assert_eq!(orders["dimensions"][2]["isPrimaryTimeDimension"], true);
    assert_eq!(orders["dimensions"][1]["granularities"], Json::Null);
    assert_eq!(
        orders["joins"],
        json!([
            {"name": "customers", "relationship": "MANY_TO_ONE"}, {"name": "giver", "relationship": "MANY_TO_ONE"},
        ])
    );
    assert_eq!(
        answer["metrics"][1],
        json!({
            "name": "order_share", "type": "RATIO", "timeGrain": "MONTH", "cubes": ["orders", "customers"],
        })
    );
}

#[tokio::test]
async fn decimals_and_large_integers_are_strings() {
    let column = |ty: &str, values: Json| Column { ty: ty.to_owned(), values: values.as_array().unwrap().clone() };
    let world = World {
        columns: vec![
            column("cents", json!([1250, -7])),
            column("integer", json!([9_007_199_254_740_992_i64, 9_007_199_254_740_993_i64])),
        ],
        ..World::default()
    };
    let answer = reader(&world).data(r#"{ query(measures: ["orders.revenue", "orders.count"]) { rows } }"#).await;
    let rows = json!([["12.50", 9_007_199_254_740_992_i64], ["-0.07", "9007199254740993"]]);
    assert_eq!(answer["query"]["rows"], rows);
}

#[tokio::test]
async fn search_ignores_case_and_binds_its_text() {
    let asked = reader(&world());
    let answer = asked.data(r#"{ cube(name: "orders") { dimensions { name values(limit: 5) { value } } } }"#).await;
    assert_eq!(answer["cube"]["dimensions"][1]["values"], json!([{"value": "paid"}, {"value": "open"}]));
    let answer =
        asked.ask(r#"{ cube(name: "visits") { dimensions { name values(search: "X' OR 1=1") { value } } } }"#).await;
    // The cube has only a number, in which no text can be searched.
    assert_eq!(answer["errors"][0]["extensions"]["code"], "INVALID_FILTER");
}

#[tokio::test]
async fn statement_and_explanation_are_those_of_rest() {
    let asked = reader(&world());
    let answer = asked
        .data(
            r#"{ sql(measures: ["orders.count"], where: {or: [
                   {condition: {member: "orders.status", operator: STARTS_WITH, values: ["p"]}},
                   {not: {condition: {member: "orders.status", operator: SET}}}]}) { sql params }
                 explain(measures: ["orders.count"]) }"#,
        )
        .await;
    assert_eq!(answer["sql"]["params"], json!(["p"]));
    assert_eq!(answer["explain"]["members"][0]["member"], "orders.count");
    assert_eq!(answer["explain"]["warehouse_plan"], Json::Null);
}

#[tokio::test]
async fn warehouse_error_is_for_administrators() {
    let broken = || World { warehouse: FakeBehavior::Refuses, ..world() };
    let document = r#"{ query(measures: ["orders.count"]) { data } }"#;
    let answer = reader(&broken()).ask(document).await;
    assert_eq!(answer["errors"][0]["extensions"]["code"], "WAREHOUSE_ERROR");
    assert!(!answer.to_string().contains(SECRET));
    let admin = GraphQlSurface::over(broken().edge(), Scopes::READ.with(Scope::Admin)).ask(document).await;
    assert!(admin.to_string().contains(SECRET), "{admin}");
}

/// Stores the appended audit records.
#[derive(Default)]
struct MemoryLog(Mutex<Vec<AuditEntry>>);

#[async_trait]
impl AuditLog for MemoryLog {
    async fn append(&self, entries: Vec<AuditEntry>) -> Result<(), StoreError> {
        self.0.lock().unwrap().extend(entries);
        Ok(())
    }
    async fn records(&self, _: &AuditFilter) -> Result<Vec<AuditRecord>, StoreError> {
        Ok(Vec::new())
    }
    async fn verify(&self) -> Result<ChainState, StoreError> {
        Ok(ChainState::Whole { records: 0, last_hash: "".into() })
    }
}

#[tokio::test]
async fn mutation_without_its_scope_is_denied_and_audited() {
    for (document, name) in [
        ("mutation { invalidateCache { tenant } }", "invalidateCache"),
        ("mutation { refreshPreAggregation { id } }", "refreshPreAggregation"),
        ("mutation { cancelPreAggregationBuild(id: \"1\") { id } }", "cancelPreAggregationBuild"),
    ] {
        let log = Arc::new(MemoryLog::default());
        let edge = world().edge_with(Security { audit: log.clone(), ..Security::of_anonymous() });
        let audit_buffer = Arc::clone(&edge.app().services.audit_buffer);
        let answer = GraphQlSurface::over(edge, Scopes::READ).ask(document).await;
        assert_eq!(answer["errors"][0]["extensions"]["code"], "FORBIDDEN", "{answer}");
        assert_eq!(answer["errors"][0]["extensions"]["details"]["required_scope"], "write");
        assert_eq!(answer["data"], Json::Null);
        audit_buffer.flush().await.unwrap();
        let entries = log.0.lock().unwrap().clone();
        let denied = entries.iter().find(|entry| &*entry.event == "access_denied");
        assert_eq!(&*denied.unwrap().resource, format!("mutation {name}"), "{entries:?}");
    }
}

#[tokio::test]
async fn writer_invalidates_the_cache() {
    let asked = GraphQlSurface::over(world().edge(), Scopes::READ.with(Scope::Write));
    let answer = asked.data("mutation { invalidateCache(cubes: [\"orders\"]) { cubes tenant } }").await;
    assert_eq!(answer["invalidateCache"], json!({"cubes": ["orders"], "tenant": null}));
    let answer = asked.ask("mutation { invalidateCache(cubes: [\"order\"]) { cubes } }").await;
    assert_eq!(answer["errors"][0]["extensions"]["details"]["nearest"][0], "orders");
}

/// Returns a world with a cube over a query that reads a masked column. The column of such a query cannot be masked, so
/// the cube is closed to the caller.
fn world_with_a_closed_cube() -> World {
    let cube = "cubes:\n  - name: regions\n    sql: SELECT region AS place FROM raw.customers\n    \
                dimensions: [{name: place, type: string, sql: place}]\n";
    let policy = "policies:\n  - name: no_regions\n    cubes: [customers]\n    mask: {region: hash}\n";
    let files = [("cubes/regions.yml", cube), ("policies/regions.yml", policy)];
    let files = files.map(|(path, text)| (path.to_owned(), text.to_owned()));
    World { caller: Caller::Writer, files: files.into(), ..world() }
}

#[tokio::test]
async fn cube_that_is_closed_to_the_caller_is_unknown_to_invalidation() {
    let edge = world_with_a_closed_cube().edge();
    let post = |path: &str, body: Json| {
        let request = json!({"method": "POST", "path": path, "json": body});
        serde_json::from_value::<TestRequest>(request).unwrap()
    };
    for (name, message) in [("regions", "cube `regions` does not exist"), ("region", "cube `region` does not exist")] {
        let rest = ask(&edge, &post("/api/v1/cache/invalidate", json!({"cubes": [name]}))).await;
        assert_eq!(rest.status, 404);
        let rest: Json = serde_json::from_slice(&rest.body).unwrap();
        assert_eq!(
            (&rest["error"]["message"], &rest["error"]["code"]),
            (&json!(message), &json!("NOT_FOUND")),
            "{rest}"
        );
        let nearest = rest["error"]["details"]["nearest"].as_array().unwrap();
        assert!(!nearest.is_empty() && !nearest.contains(&json!("regions")), "{rest}");
    }
    let asked = GraphQlSurface::over(world_with_a_closed_cube().edge(), Scopes::READ.with(Scope::Write));
    // A closed cube and an unknown one have the same error, apart from the name.
    let closed = asked.ask("mutation { invalidateCache(cubes: [\"regions\"]) { cubes } }").await;
    let unknown = asked.ask("mutation { invalidateCache(cubes: [\"regionz\"]) { cubes } }").await;
    assert_eq!(closed["errors"][0]["extensions"]["code"], "NOT_FOUND", "{closed}");
    let message = |answer: &Json| answer["errors"][0]["message"].as_str().unwrap().replace("regionz", "regions");
    assert_eq!(message(&closed), message(&unknown));
    let open = asked.ask("mutation { invalidateCache(cubes: [\"customers\"]) { cubes } }").await;
    assert_eq!(open.get("errors"), None, "{open}");
}

#[tokio::test]
async fn invalid_documents_are_not_executed() {
    let asked = reader(&world());
    for (document, code) in [
        ("{ cubes { name ", "GRAPHQL_SYNTAX_ERROR"),
        ("{ cubes { nothing } }", "GRAPHQL_VALIDATION_FAILED"),
        ("{ cubes }", "GRAPHQL_VALIDATION_FAILED"),
        ("query($a: Int!) { cubes { name } }", "GRAPHQL_VALIDATION_FAILED"),
        ("query A { cubes { name } } query B { cubes { name } }", "GRAPHQL_VALIDATION_FAILED"),
        ("{ ...A } fragment A on Query { ...A }", "GRAPHQL_VALIDATION_FAILED"),
        ("subscription { a: __typename b: __typename }", "GRAPHQL_VALIDATION_FAILED"),
        ("{ cubes @skip(if: 3) { name } }", "GRAPHQL_VALIDATION_FAILED"),
    ] {
        let response = asked.response(document, json!({})).await;
        let answer: Json = serde_json::from_slice(response.body()).unwrap();
        assert!(!response.has_data(), "{document}: {answer}");
        assert_eq!(answer.get("data"), None, "{document}");
        assert_eq!(answer["errors"][0]["extensions"]["code"], code, "{document}: {answer}");
    }
}

#[tokio::test]
async fn negative_arguments_are_named() {
    let asked = reader(&world());
    for (document, argument) in [
        ("query($n: Int) { query(measures: [\"orders.count\"], limit: $n) { data } }", "limit"),
        ("{ query(measures: [\"orders.count\"], limit: -1) { data } }", "limit"),
        ("{ query(measures: [\"orders.count\"], offset: -1) { data } }", "offset"),
        ("{ cube(name: \"orders\") { query(measures: [\"count\"], offset: -2) { data } } }", "offset"),
        ("{ cube(name: \"orders\") { dimensions { values(limit: -1) { value } } } }", "limit"),
        ("{ lineage(measure: \"orders.count\", depth: -1) { nodes { id } } }", "depth"),
    ] {
        let variables = if document.contains("$n") { json!({"n": -1}) } else { json!({}) };
        let response = asked.response(document, variables).await;
        let answer: Json = serde_json::from_slice(response.body()).unwrap();
        let error = &answer["errors"][0];
        let found = (&error["extensions"]["code"], &error["extensions"]["details"]["field"]);
        assert_eq!(found, (&json!("INVALID_QUERY"), &json!(argument)), "{document}: {answer}");
        assert_eq!(error["message"], format!("expected an integer of 0 or more at `{argument}`"), "{document}");
    }
}

#[tokio::test]
async fn introspection_of_tools_is_answered_and_cached() {
    let asked = reader(&world());
    let document = include_str!("../../../runtime/graphql/test_data/introspection.graphql");
    let first = asked.response(document, json!({})).await;
    assert!(first.codes().is_empty(), "{:?}", first.body());
    let schema: Json = serde_json::from_slice(first.body()).unwrap();
    let types = schema["data"]["__schema"]["types"].as_array().unwrap();
    let cube = types.iter().find(|ty| ty["name"] == "Cube").unwrap();
    assert!(cube["fields"].as_array().unwrap().iter().any(|field| field["name"] == "query"));
    assert_eq!(asked.response(document, json!({})).await.body(), first.body());
}

#[tokio::test]
async fn variables_are_read_by_their_types() {
    let asked = reader(&world());
    let document = "query Q($measures: [String!]!, $limit: Int = 1, $order: [OrderInput!]) {
        sql(measures: $measures, dimensions: [\"orders.status\"], limit: $limit, order: $order) { sql params } }";
    let variables = json!({"measures": ["orders.count"], "order": [{"member": "orders.count", "direction": "DESC"}]});
    let response = asked.response(document, variables).await;
    let answer: Json = serde_json::from_slice(response.body()).unwrap();
    assert!(answer["data"]["sql"]["sql"].as_str().unwrap().contains("DESC"), "{answer}");
    assert!(answer["data"]["sql"]["sql"].as_str().unwrap().contains("LIMIT 1"), "the default of `limit`: {answer}");
    let wrong = asked.response(document, Json::Object(Map::from_iter([("measures".to_owned(), json!(3))]))).await;
    assert!(!wrong.has_data());
}

fn subscribed(asked: &GraphQlSurface, document: &str) -> impl Stream<Item = Json> + use<> {
    let operation = asked.graphql.read(document, None, Map::new()).unwrap();
    let request = RequestContext { scopes: asked.scopes, surface: Surface::Graphql, ..RequestContext::default() };
    let context = GraphQlContext { request, ..GraphQlContext::default() };
    let responses = match asked.graphql.subscribe(operation, context) {
        Ok(responses) => responses.left_stream(),
        Err(refusal) => stream::iter([Response::refused(&refusal, "id")]).right_stream(),
    };
    responses.map(|response| serde_json::from_slice(response.body()).unwrap())
}

const LIVE: &str =
    r#"subscription { queryResult(measures: ["orders.count"], dimensions: ["orders.status"]) { data } }"#;

#[tokio::test(start_paused = true)]
async fn live_query_sends_its_rows_at_once_and_never_twice() {
    for has_cache in [true, false] {
        let world = World { has_cache, ..world() };
        let asked = GraphQlSurface::over(world.edge(), Scopes::READ.with(Scope::Write));
        let mut items = Box::pin(subscribed(&asked, LIVE));
        let first = items.next().await.unwrap();
        assert_eq!(first["data"]["queryResult"]["data"][0], json!({"orders.status": "paid", "orders.count": 2}));
        asked.data("mutation { invalidateCache(cubes: [\"orders\"]) { tenant } }").await;
        let again = tokio::time::timeout(Duration::from_secs(10), items.next()).await;
        assert!(again.is_err(), "the same rows: {again:?}");
        assert_eq!(world.statements.load(Ordering::Relaxed), 2, "the change was looked at; cache: {has_cache}");
    }
}

#[tokio::test(start_paused = true)]
async fn live_query_sends_changed_totals() {
    let total = |sum: i64| Some(vec![Column { ty: "integer".to_owned(), values: vec![json!(sum)] }]);
    let world = World { has_cache: true, ungrouped_columns: Arc::new(Mutex::new(total(3))), ..world() };
    let asked = GraphQlSurface::over(world.edge(), Scopes::READ.with(Scope::Write));
    let document = LIVE.replace("measures", "totals: true, measures").replace("{ data }", "{ data meta { totals } }");
    let mut items = Box::pin(subscribed(&asked, &document));
    let first = items.next().await.unwrap();
    assert_eq!(first["data"]["queryResult"]["meta"]["totals"], json!({"orders.count": 3}), "{first}");
    *world.ungrouped_columns.lock().unwrap() = total(4);
    asked.data("mutation { invalidateCache(cubes: [\"orders\"]) { tenant } }").await;
    let second = items.next().await.unwrap();
    assert_eq!(second["data"]["queryResult"]["meta"]["totals"], json!({"orders.count": 4}), "{second}");
    assert_eq!(second["data"]["queryResult"]["data"], first["data"]["queryResult"]["data"]);
}

#[tokio::test(start_paused = true)]
async fn followers_of_pre_aggregations_share_a_reader() {
    let world = World { has_preaggregations: true, has_tables: true, ..world() };
    let readings = || world.preaggregations.readings();
    let asked = GraphQlSurface::over(world.edge(), Scopes::READ.with(Scope::Write));
    let document =
        r#"subscription { preAggregationStatus(cube: "sales", name: "by_region") { state build { status } } }"#;
    let mut streams: Vec<_> = (0..50).map(|_| Box::pin(subscribed(&asked, document))).collect();
    for stream in &mut streams {
        let first = stream.next().await.unwrap();
        assert_eq!(first["data"]["preAggregationStatus"], json!({"state": "not_built", "build": null}), "{first}");
    }
    let before = readings();
    let quiet = futures_util::future::join_all(streams.iter_mut().map(|stream| stream.next()));
    assert!(tokio::time::timeout(Duration::from_secs(10), quiet).await.is_err(), "nothing changed");
    let count = readings() - before;
    assert!((9..=11).contains(&count), "{count} readings in ten seconds");
    asked.data(r#"mutation { refreshPreAggregation(cube: "sales", name: "by_region") { id } }"#).await;
    for stream in &mut streams {
        let next = stream.next().await.unwrap();
        assert_eq!(next["data"]["preAggregationStatus"]["build"]["status"], "pending", "{next}");
    }
    drop(streams);
    let before = readings();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(readings(), before, "no stream is open");
}

#[tokio::test(start_paused = true)]
async fn equal_live_queries_share_a_statement() {
    let world = World { has_cache: true, ..world() };
    let asked = reader(&world);
    let mut streams: Vec<_> = (0..50).map(|_| Box::pin(subscribed(&asked, LIVE))).collect();
    let firsts = futures_util::future::join_all(streams.iter_mut().map(|stream| stream.next())).await;
    assert!(firsts.iter().all(|first| first.as_ref().unwrap()["errors"] == Json::Null));
    assert_eq!(world.statements.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn live_queries_of_a_caller_are_bounded() {
    let subscriptions = Some(QuotaSettings { total: 1_000, per_subject: 100 });
    let asked = reader(&World { subscriptions, ..world() });
    let mut streams: Vec<_> = (0..100).map(|_| Box::pin(subscribed(&asked, LIVE))).collect();
    for stream in &mut streams {
        stream.next().await.unwrap();
    }
    let mut surplus = Box::pin(subscribed(&asked, LIVE));
    assert_eq!(surplus.next().await.unwrap()["errors"][0]["extensions"]["code"], "RATE_LIMITED");
    assert!(surplus.next().await.is_none());
    streams.pop();
    let next = Box::pin(subscribed(&asked, LIVE)).next().await.unwrap();
    assert_eq!(next.get("errors"), None, "{next}");
}

#[tokio::test(start_paused = true)]
async fn live_query_that_is_invalid_ends() {
    let asked = reader(&world());
    let document = r#"subscription { queryResult(measures: ["orders.nothing"]) { data } }"#;
    let mut items = Box::pin(subscribed(&asked, document));
    let first = items.next().await.unwrap();
    assert_eq!(first["errors"][0]["extensions"]["code"], "INVALID_MEASURE", "{first}");
    assert!(items.next().await.is_none());
}
