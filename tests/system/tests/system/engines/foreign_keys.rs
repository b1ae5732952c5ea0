//! Tests that a foreign key of a real PostgreSQL is used only if it holds for every row that a statement reads.

use terrane_app::ports::warehouse::Warehouse;
use terrane_cli::config::Environment;
use terrane_compiler::model::{CatalogNames, ForeignKey};
use terrane_system_tests::Scratch;
use terrane_system_tests::engines::Kind;

use super::answers::in_runtime;
use super::start;

/// Returns the foreign keys as strings, each with the shortest name of its table.
async fn keys_of(warehouse: &dyn Warehouse) -> Vec<String> {
    let shown = |key: &ForeignKey| {
        let table = |names: &CatalogNames| names.0.last().expect("a name").join(".");
        let columns: Vec<String> = key.columns.iter().map(|[own, other]| format!("{own}={other}")).collect();
        format!("{} -> {}: {}", table(&key.from), table(&key.to), columns.join(" "))
    };
    let keys = warehouse.foreign_keys().await.expect("the catalog answers");
    let mut keys: Vec<String> = keys.iter().map(shown).collect();
    keys.sort();
    keys
}

#[test]
fn foreign_keys_of_postgres_hold_for_every_row() {
    let Some(engine) = start(Kind::Postgres) else { return };
    let init = [
        "DROP SCHEMA IF EXISTS keyed CASCADE",
        "CREATE SCHEMA keyed",
        "DROP TABLE IF EXISTS visible_orders, visible CASCADE",
        "CREATE TABLE visible (id BIGINT PRIMARY KEY)",
        // The foreign key compares an integer with a larger integer type, like a join does.
        "CREATE TABLE visible_orders (id INT NOT NULL REFERENCES visible (id))",
        "CREATE TABLE keyed.customers (id INT PRIMARY KEY, \"Code\" TEXT NOT NULL UNIQUE)",
        "CREATE TABLE keyed.hidden (id INT PRIMARY KEY)",
        "ALTER TABLE keyed.hidden ENABLE ROW LEVEL SECURITY",
        "CREATE TABLE keyed.depots (city TEXT, no INT, PRIMARY KEY (city, no))",
        "CREATE TABLE keyed.good (n INT NOT NULL, city TEXT NOT NULL, code TEXT NOT NULL REFERENCES keyed.customers (\"Code\"), \
         FOREIGN KEY (city, n) REFERENCES keyed.depots (city, no) DEFERRABLE INITIALLY DEFERRED)",
        "CREATE TABLE keyed.nullable (customer INT REFERENCES keyed.customers (id))",
        "CREATE TABLE keyed.secured (hidden INT NOT NULL REFERENCES keyed.hidden (id))",
        "CREATE TABLE keyed.unvalidated (customer INT NOT NULL)",
        "ALTER TABLE keyed.unvalidated ADD FOREIGN KEY (customer) REFERENCES keyed.customers (id) NOT VALID",
        "CREATE TABLE keyed.unchecked (customer INT NOT NULL REFERENCES keyed.customers (id))",
        "ALTER TABLE keyed.unchecked DISABLE TRIGGER ALL",
        "CREATE TABLE keyed.parent (customer INT NOT NULL REFERENCES keyed.customers (id))",
        "CREATE TABLE keyed.child () INHERITS (keyed.parent)",
        "CREATE TABLE keyed.numeric_key (id NUMERIC PRIMARY KEY)",
        "CREATE TABLE keyed.converted (customer INT NOT NULL REFERENCES keyed.numeric_key (id))",
        "CREATE COLLATION keyed.folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
        "CREATE TABLE keyed.folded_key (id TEXT COLLATE keyed.folded PRIMARY KEY)",
        "CREATE TABLE keyed.folding (id TEXT COLLATE keyed.folded NOT NULL REFERENCES keyed.folded_key (id))",
        "CREATE TABLE keyed.parts (customer INT NOT NULL REFERENCES keyed.customers (id)) PARTITION BY LIST (customer)",
        "CREATE TABLE keyed.part_one PARTITION OF keyed.parts FOR VALUES IN (1)",
    ];
    let init: Vec<String> = init.iter().map(ToString::to_string).collect();
    let environment: Environment = engine.variables(&[], &init).into_iter().collect();
    let project = Scratch::empty().with("service_project.yml", "name: keys\n");
    in_runtime(project.path(), &environment, async |services| {
        assert_eq!(
            keys_of(&*services.warehouse).await,
            [
                "keyed.good -> keyed.customers: code=Code",
                "keyed.good -> keyed.depots: city=city n=no",
                "keyed.part_one -> keyed.customers: customer=id",
                "keyed.parts -> keyed.customers: customer=id",
                "visible_orders -> visible: id=id",
            ]
        );
    });
}
