//! Tests harmful documents and requests of GraphQL over HTTP. No answer is a 5xx, and no statement runs for a document
//! that is refused.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::sync::atomic::Ordering;

use axum::http::StatusCode;
use futures_util::StreamExt as _;
use serde_json::{Value as Json, json};
use terrane_conformance_tests::case::{Answered, TestRequest, World, ask};
use terrane_conformance_tests::fakes::FakeBehavior;
use terrane_graphql::GraphQlSettings;
use terrane_server::{Connection, GraphQlHttpSettings};

const RESPONSE: &str = "application/graphql-response+json";

async fn answer(world: &World, body: &Json) -> (StatusCode, Json) {
    let asked = json!({"method": "POST", "path": "/graphql", "json": body, "headers": {"accept": RESPONSE}});
    let asked: TestRequest = serde_json::from_value(asked).unwrap();
    let Answered { status, body, .. } = ask(&world.edge(), &asked).await;
    (status, serde_json::from_slice(&body).unwrap())
}

/// Asserts that a document is refused before a statement runs.
async fn assert_refused(name: &str, body: Json) {
    let world = World::default();
    let (status, answer) = answer(&world, &body).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{name}: {answer}");
    assert_eq!(answer["data"], Json::Null, "{name}: {answer}");
    let code = answer["errors"][0]["extensions"]["code"].as_str().unwrap();
    let codes = ["GRAPHQL_LIMIT_EXCEEDED", "GRAPHQL_SYNTAX_ERROR", "GRAPHQL_VALIDATION_FAILED", "INVALID_QUERY"];
    assert!(codes.contains(&code), "{name}: {answer}");
    assert_eq!(world.statements.load(Ordering::Relaxed), 0, "{name}");
}

#[tokio::test]
async fn deep_documents_are_refused() {
    for depth in [65, 200, 1_000, 1_800, 2_500, 3_600, 5_000, 7_000, 9_000, 20_000] {
        let lists = format!("{{ cube(name: {}{}) {{ name }} }}", "[".repeat(depth), "]".repeat(depth));
        let objects = format!("{{ cube(name: {}1{}) {{ name }} }}", "{a: ".repeat(depth), "}".repeat(depth));
        let fields = format!("{}name{}", "{ cubes ".repeat(depth), "}".repeat(depth));
        let fragments = format!("{{ cubes {}{{ name }}{} }}", "{ ... ".repeat(depth), "}".repeat(depth));
        let types = format!("query ($a: {}Int{}) {{ cubes {{ name }} }}", "[".repeat(depth), "]".repeat(depth));
        let open = "{ a ".repeat(depth);
        for (name, query) in [
            ("lists", lists),
            ("objects", objects),
            ("fields", fields),
            ("fragments", fragments),
            ("types", types),
            ("open", open),
        ] {
            assert_refused(&format!("{name}, {depth} deep"), json!({ "query": query })).await;
        }
    }
}

#[tokio::test]
async fn wide_documents_are_refused() {
    let aliases: String = (0..2_000).map(|n| format!("a{n}: cubes {{ name }} ")).collect();
    assert_refused("aliases", json!({"query": format!("{{ {aliases} }}")})).await;
    let executions: String =
        (0..11).map(|n| format!("a{n}: query(measures: [\"orders.count\"]) {{ data }} ")).collect();
    assert_refused("executions", json!({"query": format!("{{ {executions} }}")})).await;
    let directives = "@include(if: true) ".repeat(500);
    assert_refused("directives", json!({"query": format!("{{ cubes {directives} {{ name }} }}")})).await;
    let unknown = "@a ".repeat(2_000);
    assert_refused("unknown directives", json!({"query": format!("{{ cubes {{ name {unknown} }} }}")})).await;
    let tokens = "cubes { name } ".repeat(3_000);
    assert_refused("tokens", json!({"query": format!("{{ {tokens} }}")})).await;
    let operations: String = (0..2_000).map(|n| format!("query q{n} {{ cubes {{ name }} }} ")).collect();
    assert_refused("operations", json!({"query": operations, "operationName": "q1"})).await;
}

#[tokio::test]
async fn fragments_that_multiply_or_repeat_themselves_are_refused() {
    // Each fragment contains the previous one twice, which makes 2^30 fields from a kilobyte.
    let mut bomb = "{ cubes { ...f30 } } fragment f0 on Cube { name }".to_owned();
    for n in 1..=30 {
        bomb += &format!(" fragment f{n} on Cube {{ ...f{0} ...f{0} }}", n - 1);
    }
    assert_refused("fragment bomb", json!({ "query": bomb })).await;
    for query in [
        "{ cubes { ...a } } fragment a on Cube { ...a }",
        "{ cubes { ...a } } fragment a on Cube { ...b } fragment b on Cube { ...a }",
        "{ cubes { name } } fragment a on Cube { ...b } fragment b on Cube { ...a }",
        "{ cubes { ...missing } }",
    ] {
        assert_refused(query, json!({ "query": query })).await;
    }
    let executions = |prefix: &str| {
        (0..4).map(|n| format!("{prefix}{n}: query(measures: [\"orders.count\"]) {{ data }} ")).collect::<String>()
    };
    let spread = format!(
        "{{ ...a ...b }} fragment a on Query {{ {} }} fragment b on Query {{ ...c {} }} fragment c on Query {{ {} }}",
        executions("a"),
        executions("b"),
        executions("c"),
    );
    assert_refused("executions in fragments", json!({ "query": spread })).await;
}

#[tokio::test]
async fn ambiguous_documents_are_refused() {
    for body in [
        json!({"query": "query a { cubes { name } } query a { cubes { title } }", "operationName": "a"}),
        json!({"query": "query a { cubes { name } } query b { cubes { name } }"}),
        json!({"query": "query a { cubes { name } }", "operationName": "b"}),
        json!({"query": "{ cubes { name } } query a { cubes { name } }"}),
        json!({"query": "fragment a on Cube { name } fragment a on Cube { title } { cubes { ...a } }"}),
        json!({"query": ""}),
        json!({"query": "fragment a on Cube { name }"}),
        json!({"query": "type Query { a: Int }"}),
        json!({"query": "{ cubes { name } } \u{0}"}),
    ] {
        assert_refused(&body.to_string(), body.clone()).await;
    }
}

#[tokio::test]
async fn variables_are_checked_and_bounded() {
    let query = "query ($name: String!) { cube(name: $name) { name } }";
    for variables in [json!({}), json!({"name": null}), json!({"name": 1}), json!({"name": ["a"]}), json!({"name": {}})]
    {
        assert_refused(&variables.to_string(), json!({"query": query, "variables": variables})).await;
    }
    // JSON with 120 levels is parsed, but no type of the schema has a value of this depth.
    let deep: Json = serde_json::from_str(&format!("{}{}", "[".repeat(120), "]".repeat(120))).unwrap();
    assert_refused("deep variable", json!({"query": query, "variables": {"name": deep}})).await;
    let asked = json!({
        "method": "POST", "path": "/graphql",
        "text": format!("{{\"query\": \"{{cubes{{name}}}}\", \"variables\": {{\"a\": {}{}}}}}", "[".repeat(5_000), "]".repeat(5_000)),
    });
    let asked: TestRequest = serde_json::from_value(asked).unwrap();
    let answered = ask(&World::default().edge(), &asked).await;
    assert_eq!(answered.status, StatusCode::BAD_REQUEST);
    // A large value within the limit of bodies is accepted.
    let (status, answer) =
        answer(&World::default(), &json!({"query": query, "variables": {"name": "x".repeat(200_000)}})).await;
    assert_eq!(status, StatusCode::OK, "{}", answer.to_string().chars().take(500).collect::<String>());
    assert!(answer.to_string().len() < 2_000, "the answer repeats the value");
}

#[tokio::test]
async fn repeated_requests_have_equal_answers() {
    let edge = World::default().edge();
    let ask_for = async |body: &Json| {
        let asked = json!({"method": "POST", "path": "/graphql", "json": body, "headers": {"accept": RESPONSE}});
        let Answered { status, body, .. } = ask(&edge, &serde_json::from_value(asked).unwrap()).await;
        let mut body: Json = serde_json::from_slice(&body).unwrap();
        for error in body["errors"].as_array_mut().into_iter().flatten() {
            error["extensions"].as_object_mut().unwrap().remove("correlation_id");
        }
        (status, body)
    };
    let query = "query One($name: String!) { cube(name: $name) { name } } query Two { cubes { title } }";
    let bodies = [
        json!({"query": query, "operationName": "One", "variables": {"name": "orders"}}),
        json!({"query": query, "operationName": "One", "variables": {"name": "nothing"}}),
        json!({"query": query, "operationName": "One", "variables": {"name": 1}}),
        json!({"query": query, "operationName": "Two", "variables": {"name": "orders"}}),
        json!({"query": query, "operationName": "Three"}),
        json!({"query": query}),
        json!({"query": "{ cube(name: 1) { name } }"}),
        json!({"query": "{ cubes { nothing } }"}),
        json!({"query": "{ cubes { name }"}),
    ];
    let mut first = Vec::new();
    for body in &bodies {
        first.push(ask_for(body).await);
    }
    assert_eq!(first[0].1["data"]["cube"]["name"], "orders", "{}", first[0].1);
    assert!(first[2..].iter().all(|(_, body)| body != &first[0].1), "{first:?}");
    for _ in 0..2 {
        for (body, first) in bodies.iter().zip(&first) {
            assert_eq!(&ask_for(body).await, first, "{body}");
        }
    }
}

#[tokio::test]
async fn introspection_can_be_turned_off() {
    let schema = GraphQlSettings { introspection: false, ..GraphQlSettings::default() };
    let world = World { graphql: GraphQlHttpSettings { schema, ..GraphQlHttpSettings::default() }, ..World::default() };
    for query in
        ["{ __schema { types { name } } }", "{ __type(name: \"Cube\") { name } }", "{ a: __schema { types { name } } }"]
    {
        let (status, answer) = answer(&world, &json!({ "query": query })).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{query}: {answer}");
    }
    let (status, _) = answer(&world, &json!({"query": "{ __typename cubes { name } }"})).await;
    assert_eq!(status, StatusCode::OK);
    let asked: TestRequest = serde_json::from_value(json!({"path": "/graphql/schema.graphql"})).unwrap();
    assert_eq!(ask(&world.edge(), &asked).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn schema_lacks_modules_that_are_off() {
    let off = World { has_no_monitors: true, has_no_profiling: true, ..World::default() };
    let schema: TestRequest = serde_json::from_value(json!({"path": "/graphql/schema.graphql"})).unwrap();
    let text = async |world: &World| String::from_utf8(ask(&world.edge(), &schema).await.body.to_vec()).unwrap();
    let (complete, part) = (text(&World::default()).await, text(&off).await);
    for field in ["monitors: [Monitor!]!", "type Detection {", "cubeProfile("] {
        assert!(complete.contains(field) && !part.contains(field), "{field}");
    }
    assert!(part.contains("glossaryTerms("), "{part}");
    for (query, name) in [("{ monitors { id } }", "monitors"), ("{ a: cubeProfile(cube: \"orders\") }", "cubeProfile")]
    {
        let (status, refused) = answer(&off, &json!({ "query": query })).await;
        let error = &refused["errors"][0];
        assert_eq!(
            (status.as_u16(), &error["extensions"]["code"]),
            (400, &json!("GRAPHQL_VALIDATION_FAILED")),
            "{refused}"
        );
        assert_eq!(error["message"], format!("Unknown field \"{name}\" on type \"Query\"."));
    }
    let fields = json!({"query": "{ __type(name: \"Query\") { fields { name } } }"});
    let (_, described) = answer(&off, &fields).await;
    assert!(
        !described.to_string().contains("monitors") && described.to_string().contains("glossaryTerms"),
        "{described}"
    );
}

#[tokio::test]
async fn endpoint_and_page_can_be_turned_off() {
    let page = json!({"path": "/graphql", "headers": {"accept": "text/html"}});
    let file = json!({"path": "/graphql/page/page.js"});
    let query = json!({"method": "POST", "path": "/graphql", "json": {"query": "{ cubes { name } }"}});
    let schema = json!({"path": "/graphql/schema.graphql"});
    let status = async |graphql: &GraphQlHttpSettings, asked: &Json| {
        let world = World { graphql: graphql.clone(), ..World::default() };
        let asked: TestRequest = serde_json::from_value(asked.clone()).unwrap();
        ask(&world.edge(), &asked).await.status.as_u16()
    };
    let without_page = GraphQlHttpSettings { has_playground: false, ..GraphQlHttpSettings::default() };
    for (asked, expected) in [(&page, 404), (&file, 404), (&query, 200), (&schema, 200)] {
        assert_eq!(status(&without_page, asked).await, expected, "{asked}");
    }
    let off = GraphQlHttpSettings { is_enabled: false, ..GraphQlHttpSettings::default() };
    for asked in [&page, &file, &query, &schema] {
        assert_eq!(status(&off, asked).await, 404, "{asked}");
    }
}

#[tokio::test]
async fn shutdown_ends_streams_of_events() {
    let world = World { warehouse: FakeBehavior::Hangs, ..World::default() };
    let edge = world.edge();
    let asked = json!({
        "method": "POST", "path": "/graphql", "headers": {"accept": "text/event-stream"},
        "json": {"query": "{ query(measures: [\"orders.count\"]) { data } }"},
    });
    let asked: TestRequest = serde_json::from_value(asked).unwrap();
    let response = edge.call(Connection::default(), asked.request()).await;
    assert_eq!(response.status(), StatusCode::OK);
    let mut events = response.into_body().into_data_stream();
    edge.app().start_draining();
    assert_eq!(events.next().await.unwrap().unwrap(), "event: complete\ndata:\n\n");
    assert!(events.next().await.is_none());
}
