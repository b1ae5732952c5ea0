//! Measures the cost of a GraphQL request compared with the same request over REST.
//!
//! Runs a query over one cube whose rows are cached, without HTTP: the body is parsed, the query is run and the
//! response is written. Budget: GraphQL takes at most 60 µs more than REST. Also runs the introspection document
//! that tools send, uncached and cached. Budget: 2 ms.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::{Map, Value as Json, json};
use terrane_app::domain::{QueryKind, RequestContext, Surface};
use terrane_app::security::Scopes;
use terrane_conformance_tests::case::World;
use terrane_conformance_tests::fakes::Column;
use terrane_graphql::{GraphQl, GraphQlContext, GraphQlServices, GraphQlSettings};
use terrane_wire::json::{Numbers, shared_rows};
use terrane_wire::query;
use tokio::runtime::Runtime;

const BODY: &str = r#"{"measures": ["orders.count"], "dimensions": ["orders.status"], "limit": 100}"#;
const DOCUMENT: &str = r#"query Rows($measures: [String!], $dimensions: [String!]) {
    query(measures: $measures, dimensions: $dimensions, limit: 100) { data meta { totalCount fromCache } query { sql } }
}"#;
const INTROSPECTION: &str = include_str!("../../../runtime/graphql/test_data/introspection.graphql");

fn context() -> GraphQlContext {
    let request = RequestContext { scopes: Scopes::READ, surface: Surface::Graphql, ..RequestContext::default() };
    GraphQlContext { request, ..GraphQlContext::default() }
}

fn variables() -> Map<String, Json> {
    let variables = json!({"measures": ["orders.count"], "dimensions": ["orders.status"]});
    variables.as_object().cloned().unwrap_or_default()
}

fn surfaces(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let column =
        |ty: &str, values: Json| Column { ty: ty.to_owned(), values: values.as_array().cloned().unwrap_or_default() };
    let columns = vec![column("text", json!(["paid", "open"])), column("integer", json!([2, 1]))];
    let edge = World { columns, has_cache: true, ..World::default() }.edge();
    let services = &edge.app().services;
    let graphql = GraphQl::new(GraphQlServices::from(services), GraphQlSettings::default());
    criterion.bench_function("one cube by REST's form", |bencher| {
        bencher.iter(|| {
            runtime.block_on(async {
                let request = query::from_wire(black_box(BODY).as_bytes()).expect("a query");
                let context = context().request.with_kind(QueryKind::Rest);
                let session = services.queries.session(&context);
                let prepared = session.prepare(&request.query).await.expect("a permit");
                let answer = prepared.run().await.expect("an answer");
                let shared = answer.shared.as_ref().expect("a cached result");
                black_box((shared_rows(shared, &answer.columns, Numbers::Plain), answer.sql.len()));
            });
        });
    });
    criterion.bench_function("one cube by GraphQL", |bencher| {
        bencher.iter(|| {
            runtime.block_on(async {
                let operation = graphql.read(black_box(DOCUMENT), None, variables()).expect("an operation");
                let response = graphql.execute(operation, context()).await;
                assert!(response.codes().is_empty());
                black_box(response);
            });
        });
    });
    criterion.bench_function("reading of a document", |bencher| {
        bencher.iter(|| black_box(graphql.read(black_box(DOCUMENT), None, variables()).expect("an operation")));
    });
    criterion.bench_function("introspection, first", |bencher| {
        bencher.iter_with_setup(
            || GraphQl::new(GraphQlServices::from(services), GraphQlSettings::default()),
            |graphql| {
                runtime.block_on(async {
                    let operation = graphql.read(INTROSPECTION, None, Map::new()).expect("an operation");
                    black_box(graphql.execute(operation, context()).await)
                })
            },
        );
    });
    criterion.bench_function("introspection, cached", |bencher| {
        bencher.iter(|| {
            runtime.block_on(async {
                let operation = graphql.read(INTROSPECTION, None, Map::new()).expect("an operation");
                black_box(graphql.execute(operation, context()).await);
            });
        });
    });
}

criterion_group!(benches, surfaces);
criterion_main!(benches);
