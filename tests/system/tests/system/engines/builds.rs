//! Tests builds of models in a real PostgreSQL: replaced relations, readers during a build, and relations that a build
//! must not change.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::time::Duration;

use futures_util::future::join_all;
use terrane_app::ports::builder::{BuildError, BuiltRelation, CantBuild, Marker, NewRelation, NotReady};
use terrane_app::ports::warehouse::{Statement, WarehouseErrorKind};
use terrane_app::services::Services;
use terrane_cli::config::Environment;
use terrane_expectations::Rows;
use terrane_system_tests::engines::{Engine, Kind, small_tables};
use terrane_system_tests::path;

use super::answers::in_runtime;
use super::{PROJECT, start};

const LIMIT: Duration = Duration::from_secs(60);

fn marker(fingerprint: &str) -> Marker {
    Marker { project: "shop".into(), model: "m".into(), fingerprint: fingerprint.into() }
}

async fn build(
    engine: &Services,
    name: &str,
    is_view: bool,
    query: &str,
    marker: &Marker,
) -> Result<Option<u64>, BuildError> {
    engine.builder.build(&NewRelation { schema: "analytics", name, is_view, query, marker }, LIMIT).await
}

async fn text(engine: &Services, statement: &str) -> String {
    let rows = engine.warehouse.execute(Statement::plain(statement), LIMIT).await.unwrap();
    serde_json::Value::from(Rows::of_statement(&rows.schema, &rows.batches).unwrap().rows.remove(0)).to_string()
}

async fn built(engine: &Services) -> Vec<(String, bool, String)> {
    let mut all: Vec<(String, bool, String)> = engine
        .warehouse
        .built()
        .await
        .unwrap()
        .into_iter()
        .map(|BuiltRelation { name, is_view, marker, .. }| (name.to_string(), is_view, marker.fingerprint.to_string()))
        .collect();
    all.sort();
    all
}

fn with_engine(work: impl AsyncFnOnce(Services, &Engine) + Send) {
    let Some(server) = start(Kind::Postgres) else { return };
    let environment: Environment = server.variables(&small_tables(), &[]).into_iter().collect();
    in_runtime(&path(PROJECT), &environment, async |engine| {
        engine.builder.prepare(&["analytics"]).await.unwrap();
        work(engine, &server).await;
    });
}

#[test]
fn relations_of_postgres_are_replaced_atomically() {
    with_engine(async |engine, _| {
        let rows = build(&engine, "m", false, "SELECT generate_series(1, 10) AS id", &marker("one")).await.unwrap();
        assert_eq!(rows, Some(10));
        let failing =
            "SELECT CASE WHEN id < 5000 THEN id ELSE ('x' || id)::int END AS id FROM generate_series(1, 9000) id";
        let failed = build(&engine, "m", false, failing, &marker("two")).await.unwrap_err();
        assert!(
            matches!(failed, BuildError::Warehouse(ref error) if error.kind == WarehouseErrorKind::Refused),
            "{failed}"
        );
        assert_eq!(text(&engine, "SELECT count(*) AS n FROM analytics.m").await, "[10]");
        assert_eq!(built(&engine).await, [("m".to_owned(), false, "one".to_owned())]);
        // Replaces the table with a view, the view with another view, and this view with a table.
        for (is_view, query, expected) in [
            (true, "SELECT 1 AS id, 2 AS other", "[1,2]"),
            (true, "SELECT 'text' AS id", "[\"text\"]"),
            (false, "SELECT 3 AS id", "[3]"),
        ] {
            build(&engine, "m", is_view, query, &marker(query)).await.unwrap();
            assert_eq!(text(&engine, "SELECT * FROM analytics.m").await, expected);
            assert_eq!(built(&engine).await, [("m".to_owned(), is_view, query.to_owned())]);
        }
        let names: Vec<String> = (0..6).map(|at| format!("beside_{at}")).collect();
        let marker = marker("one");
        let query = "SELECT generate_series(1, 10000) AS id";
        for done in join_all(names.iter().map(|name| build(&engine, name, false, query, &marker))).await {
            assert_eq!(done.unwrap(), Some(10_000));
        }
        let left = "SELECT count(*) AS n FROM pg_class WHERE relname LIKE 'terrane_new%'";
        assert_eq!(text(&engine, left).await, "[0]");
    });
}

#[test]
fn foreign_relations_of_postgres_are_unchanged() {
    with_engine(async |engine, server| {
        let ask = |statement: &str| server.ask("postgres", statement).unwrap();
        ask("CREATE TABLE analytics.m AS SELECT 7 AS id");
        for is_view in [true, false] {
            let refused = build(&engine, "m", is_view, "SELECT 1 AS id", &marker("one")).await.unwrap_err();
            assert!(matches!(refused, BuildError::Foreign { .. }), "{refused}");
        }
        assert_eq!(text(&engine, "SELECT id FROM analytics.m").await, "[7]");
        ask("DROP TABLE analytics.m; CREATE MATERIALIZED VIEW analytics.m AS SELECT 8 AS id");
        let refused = build(&engine, "m", false, "SELECT 1 AS id", &marker("one")).await.unwrap_err();
        assert!(matches!(refused, BuildError::Foreign { .. }), "{refused}");
        ask("DROP MATERIALIZED VIEW analytics.m");
        let theirs = Marker { project: "other".into(), ..marker("one") };
        build(&engine, "m", false, "SELECT 7 AS id", &theirs).await.unwrap();
        let refused = build(&engine, "m", false, "SELECT 1 AS id", &marker("one")).await.unwrap_err();
        assert!(matches!(refused, BuildError::OtherProject { .. }), "{refused}");
        // A view of another owner over a relation of the project prevents the replacement of the relation.
        build(&engine, "below", false, "SELECT 1 AS id", &marker("one")).await.unwrap();
        ask("CREATE VIEW public.theirs AS SELECT id FROM analytics.below");
        let refused = build(&engine, "below", false, "SELECT 2 AS id", &marker("two")).await.unwrap_err();
        assert!(matches!(refused, BuildError::Needed { ref by, .. } if by == "public.theirs"), "{refused}");
        assert_eq!(text(&engine, "SELECT id FROM analytics.below").await, "[1]");
    });
}

#[test]
fn dependent_views_follow_replaced_relations() {
    with_engine(async |engine, _| {
        build(&engine, "below", false, "SELECT 1 AS id, 'a' AS name", &marker("one")).await.unwrap();
        build(&engine, "middle", true, "SELECT id FROM analytics.below", &marker("one")).await.unwrap();
        build(&engine, "top", true, "SELECT id + 1 AS id FROM analytics.middle", &marker("one")).await.unwrap();
        build(&engine, "named", true, "SELECT name FROM analytics.below", &marker("one")).await.unwrap();
        build(&engine, "below", false, "SELECT 10 AS id, 'b' AS name", &marker("two")).await.unwrap();
        assert_eq!(text(&engine, "SELECT t.id, n.name FROM analytics.top t, analytics.named n").await, "[11,\"b\"]");
        // The new table lacks a column that a view reads. The build drops this view and recreates the others.
        build(&engine, "below", false, "SELECT 20 AS id", &marker("three")).await.unwrap();
        assert_eq!(text(&engine, "SELECT id FROM analytics.top").await, "[21]");
        let names: Vec<String> = built(&engine).await.into_iter().map(|(name, ..)| name).collect();
        assert_eq!(names, ["below", "middle", "top"]);
    });
}

#[test]
fn cancelled_build_in_postgres_leaves_nothing() {
    with_engine(async |engine, server| {
        build(&engine, "m", false, "SELECT 1 AS id", &marker("one")).await.unwrap();
        let asleep = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
        let sleeping = async || {
            while server.ask("postgres", asleep).unwrap().trim() == "0" {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let slow = "SELECT 2 AS id, length(pg_sleep(60)::text)";
        let second = marker("two");
        tokio::select! {
            done = build(&engine, "m", false, slow, &second) => panic!("{done:?}"),
            () = sleeping() => {}
        }
        engine.builder.settle().await;
        assert_eq!(server.ask("postgres", asleep).unwrap().trim(), "0");
        let marker_of_late = marker("three");
        let late = NewRelation { schema: "analytics", name: "m", is_view: false, query: slow, marker: &marker_of_late };
        let late = engine.builder.build(&late, Duration::from_millis(500)).await.unwrap_err();
        assert!(
            matches!(late, BuildError::Warehouse(ref error) if error.kind == WarehouseErrorKind::Timeout),
            "{late}"
        );
        engine.builder.settle().await;
        assert_eq!(server.ask("postgres", asleep).unwrap().trim(), "0");
        assert_eq!(text(&engine, "SELECT id FROM analytics.m").await, "[1]");
        assert_eq!(built(&engine).await, [("m".to_owned(), false, "one".to_owned())]);
        build(&engine, "m", false, "SELECT 4 AS id", &marker("four")).await.unwrap();
    });
}

#[test]
fn missing_rights_to_create_in_postgres_are_reported() {
    let Some(server) = start(Kind::Postgres) else { return };
    server
        .ask("postgres", "CREATE ROLE reader LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC; CREATE SCHEMA theirs")
        .unwrap();
    let url = server.url().unwrap().replace("terrane:secret@", "reader@");
    let mut variables = server.variables(&[], &[]);
    variables.retain(|(name, _)| name != "SERVICE_WAREHOUSE__URL");
    variables.push(("SERVICE_WAREHOUSE__URL".to_owned(), url));
    let environment: Environment = variables.into_iter().collect();
    in_runtime(&path(PROJECT), &environment, async |engine| {
        for schema in ["theirs", "not_there"] {
            let refused = engine.builder.prepare(&[schema]).await.unwrap_err();
            assert!(matches!(refused, NotReady::Cant(CantBuild::NotAllowed { .. })), "{refused}");
        }
    });
}
