//! Tests the sizes of scans that a real PostgreSQL reports.

use terrane_app::ports::warehouse::{ScanSize, SizeBasis, Statement, Warehouse};
use terrane_cli::config::Environment;
use terrane_system_tests::Scratch;
use terrane_system_tests::engines::Kind;

use super::answers::in_runtime;
use super::start;

async fn size(warehouse: &dyn Warehouse, scan: &str) -> Option<ScanSize> {
    warehouse.scan_size(scan, None).await.expect("the catalog answers")
}

#[test]
fn scans_of_postgres_have_the_size_of_their_tables() {
    let Some(engine) = start(Kind::Postgres) else { return };
    let init = [
        "DROP SCHEMA IF EXISTS sized CASCADE",
        "CREATE SCHEMA sized",
        "CREATE TABLE sized.wide AS SELECT i, repeat('x', 100) AS name FROM generate_series(1, 10000) AS r (i)",
        "CREATE TABLE sized.parts (i INT) PARTITION BY RANGE (i)",
        "CREATE TABLE sized.part_one PARTITION OF sized.parts FOR VALUES FROM (0) TO (5000)",
        "CREATE TABLE sized.part_two PARTITION OF sized.parts FOR VALUES FROM (5000) TO (10001)",
        "INSERT INTO sized.parts SELECT i FROM generate_series(1, 10000) AS r (i)",
        "CREATE VIEW sized.seen AS SELECT i FROM sized.wide WHERE i > 5",
        "ANALYZE sized.wide",
    ];
    let init: Vec<String> = init.iter().map(ToString::to_string).collect();
    let environment: Environment = engine.variables(&[], &init).into_iter().collect();
    let project = Scratch::empty().with("service_project.yml", "name: sizes\n");
    in_runtime(project.path(), &environment, async |services| {
        let warehouse = &*services.warehouse;
        let wide = size(warehouse, "SELECT s.i AS c0 FROM sized.wide AS s").await.expect("a size");
        assert_eq!((wide.rows, wide.basis), (Some(10_000), SizeBasis::UpperBound));
        assert!((1_000_000..3_000_000).contains(&wide.bytes), "{wide:?}");
        let seen = size(warehouse, "SELECT s.i AS c0 FROM sized.seen AS s").await.expect("a size");
        assert_eq!(seen.bytes, wide.bytes);
        let parts = size(warehouse, "SELECT s.i AS c0 FROM sized.parts AS s").await.expect("a size");
        assert!((300_000..600_000).contains(&parts.bytes), "{parts:?}");
        let function = "SELECT s.i AS c0 FROM generate_series(1, 9) AS s (i)";
        assert_eq!(size(warehouse, function).await, None);
        assert_eq!(size(warehouse, "SELECT s.i AS c0 FROM sized.missing AS s").await, None);
        let rows = warehouse.execute(Statement::plain("SELECT 1 AS n"), std::time::Duration::from_secs(10)).await;
        assert!(rows.is_ok(), "the session can be used again");
    });
}
