//! Tests lookups in real catalogs: tables that an unquoted name must find, and tables that it must not find.

use terrane_app::ports::warehouse::{CatalogTable, Warehouse};
use terrane_cli::config::Environment;
use terrane_system_tests::Scratch;
use terrane_system_tests::engines::Kind;

use super::answers::in_runtime;
use super::start;

async fn located(warehouse: &dyn Warehouse, name: &str) -> Option<CatalogTable> {
    let parts: Vec<&str> = name.split('.').collect();
    warehouse.table(&parts).await.expect("the catalog answers")
}

/// Checks lookups. Each item of `found` has a name, the last two parts of the full name, and the columns.
fn catalog_lists(kind: Kind, init: &[&str], found: &[(&str, &str, &str)], absent: &[&str]) {
    let Some(engine) = start(kind) else { return };
    let init: Vec<String> = init.iter().map(ToString::to_string).collect();
    let environment: Environment = engine.variables(&[], &init).into_iter().collect();
    let project = Scratch::empty().with("service_project.yml", "name: catalog\n");
    in_runtime(project.path(), &environment, async |engine| {
        for (name, full, columns) in found {
            let table = located(&*engine.warehouse, name).await;
            let CatalogTable { name: parts, columns: own } = table.unwrap_or_else(|| panic!("{name} is not found"));
            assert_eq!(
                (parts[parts.len() - 2..].join("."), own.join(" ")),
                ((*full).into(), (*columns).into()),
                "{name}"
            );
            // A lookup by the full name finds the same table.
            assert_eq!(located(&*engine.warehouse, &parts.join(".")).await.map(|table| table.columns), Some(own));
        }
        for name in absent {
            assert_eq!(located(&*engine.warehouse, name).await, None, "{name}");
        }
    });
}

fn postgres_lists(kind: Kind) {
    catalog_lists(
        kind,
        &[
            "CREATE SCHEMA IF NOT EXISTS raw",
            "CREATE TABLE IF NOT EXISTS raw.listed (id INT, amount INT, dropped INT)",
            "ALTER TABLE raw.listed DROP COLUMN IF EXISTS dropped",
            "CREATE TABLE IF NOT EXISTS plain (a INT)",
            "CREATE OR REPLACE VIEW over_plain AS SELECT a FROM plain",
            "CREATE MATERIALIZED VIEW IF NOT EXISTS stored AS SELECT 1 AS x",
            "CREATE TABLE IF NOT EXISTS parts (a INT) PARTITION BY RANGE (a)",
            "CREATE SEQUENCE IF NOT EXISTS numbers",
            "DROP FOREIGN DATA WRAPPER IF EXISTS elsewhere CASCADE",
            "CREATE FOREIGN DATA WRAPPER elsewhere",
            "CREATE SERVER other FOREIGN DATA WRAPPER elsewhere",
            "CREATE FOREIGN TABLE far (b TEXT) SERVER other",
        ],
        &[
            ("raw.listed", "raw.listed", "id amount"),
            ("RAW.Listed", "raw.listed", "id amount"),
            ("PLAIN", "public.plain", "a"),
            ("over_plain", "public.over_plain", "a"),
            ("stored", "public.stored", "x"),
            ("parts", "public.parts", "a"),
        ],
        &[
            "listed",
            "raw.plain",
            "far",
            "public.far",
            "numbers",
            "current_user",
            "pg_class",
            "pg_catalog.pg_class",
            "information_schema.tables",
            "elsewhere.public.plain",
            "plain' OR true --",
            "\"plain\"",
        ],
    );
}

#[test]
fn catalog_of_postgres_lists_its_tables_and_views() {
    postgres_lists(Kind::Postgres);
}

#[test]
fn catalog_of_postgres_through_adbc_lists_its_tables_and_views() {
    postgres_lists(Kind::PostgresThroughAdbc);
}

#[test]
fn catalog_of_mariadb_lists_its_tables_and_views() {
    catalog_lists(
        Kind::MariaDb,
        &[
            "CREATE TABLE IF NOT EXISTS listed (id INT, amount INT)",
            "CREATE OR REPLACE VIEW over_listed AS SELECT id FROM listed",
            "CREATE TABLE IF NOT EXISTS csv_lines (a INT NOT NULL) ENGINE = CSV",
            "CREATE TABLE IF NOT EXISTS one (id INT NOT NULL) ENGINE = MyISAM",
            "CREATE TABLE IF NOT EXISTS merged (id INT NOT NULL) ENGINE = MERGE UNION = (one)",
        ],
        &[("listed", "shop.listed", "id amount"), ("over_listed", "shop.over_listed", "id"), ("one", "shop.one", "id")],
        &[
            "csv_lines",
            "merged",
            "seq_1_to_9",
            "dual",
            "mysql.user",
            "information_schema.tables",
            "other.listed",
            "a.b.listed",
            "listed' OR true -- ",
            "`listed`",
        ],
    );
}
