//! Tests that a filter on a string uses the column's index and finds exactly its rows, whatever the column's collation.

use terrane_app::ports::warehouse::Statement;
use terrane_app::query::RequestContext;
use terrane_cli::config::Environment;
use terrane_cli::wire;
use terrane_expectations::Rows;
use terrane_system_tests::Scratch;
use terrane_system_tests::engines::Kind;

use super::answers::in_runtime;
use super::start;

const INDEX: &str = "named_label";

const CUBE: &str = "\
cubes:
  - name: named
    sql_table: named
    measures:
      - {name: count, type: count}
    dimensions:
      - {name: label, type: string, sql: label}
";

/// A filter, and the number of rows that pass. `Name 7` occurs twice, beside `NAME 7` and `Name 7 `.
const FILTERS: &[(&str, i64)] = &[
    (r#"{"member": "named.label", "operator": "equals", "value": "Name 7"}"#, 2),
    (r#"{"member": "named.label", "operator": "inList", "value": ["Name 7", "name 8"]}"#, 2),
    (r#"{"member": "named.label", "operator": "inList", "value": ["NAME 7", null]}"#, 2),
    (r#"{"member": "named.label", "operator": "notSet"}"#, 1),
];

fn tables(kind: Kind) -> Vec<String> {
    let (text, numbers, further) = match kind {
        Kind::MariaDb => ("VARCHAR(50) COLLATE utf8mb4_general_ci", "SELECT seq AS n FROM seq_1_to_20000", ""),
        kind if kind.is_postgres() => ("TEXT", "SELECT generate_series(1, 20000) AS n", "ANALYZE named"),
        _ => (
            "TEXT",
            "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 20000) SELECT n FROM n",
            "ANALYZE named",
        ),
    };
    let name = if kind == Kind::MariaDb { "concat('Name ', n)" } else { "'Name ' || n" };
    let statements = [
        "DROP TABLE IF EXISTS named".to_owned(),
        format!("CREATE TABLE named (label {text})"),
        format!("INSERT INTO named SELECT {name} FROM ({numbers}) AS numbers"),
        "INSERT INTO named VALUES ('Name 7'), ('NAME 7'), ('Name 7 '), (NULL)".to_owned(),
        format!("CREATE INDEX {INDEX} ON named (label)"),
        further.to_owned(),
    ];
    statements.into_iter().filter(|statement| !statement.is_empty()).collect()
}

fn check_index(kind: Kind, explain: &str) {
    let Some(engine) = start(kind) else { return };
    let environment: Environment = engine.variables(&[], &tables(kind)).into_iter().collect();
    let project = Scratch::empty().with("service_project.yml", "name: lookups\n").with("cubes/named.yml", CUBE);
    let context = RequestContext::default();
    let answers = in_runtime(project.path(), &environment, async |engine| {
        let mut answers = Vec::new();
        for (filter, _) in FILTERS {
            let query = format!(r#"{{"measures": ["named.count"], "filters": [{filter}]}}"#);
            let query = wire::parse(&query).expect("a query");
            let answer = wire::run(&engine, &context, &query).await.expect("an answer");
            let sql = wire::inline_sql(&engine, &context, &query).await.expect("SQL");
            let explained = format!("{explain} {sql}");
            let limit = std::time::Duration::from_secs(10);
            let plan = engine.warehouse.execute(Statement::plain(&explained), limit).await.expect("a plan");
            let plan = Rows::of_statement(&plan.schema, &plan.batches).expect("rows").rows;
            answers.push((Rows::of_answer(&answer).expect("rows").rows, format!("{plan:?}"), sql));
        }
        answers
    });
    for ((filter, expected), (rows, plan, sql)) in FILTERS.iter().zip(answers) {
        assert_eq!(rows, [[serde_json::json!(expected)]], "{filter}\n{sql}");
        assert!(plan.contains(INDEX), "{filter}\n{sql}\n{plan}");
    }
}

#[test]
fn string_filter_uses_the_index_in_postgres() {
    check_index(Kind::Postgres, "EXPLAIN");
}

#[test]
fn string_filter_uses_the_index_in_postgres_through_adbc() {
    check_index(Kind::PostgresThroughAdbc, "EXPLAIN");
}

#[test]
fn string_filter_uses_the_index_in_mariadb() {
    check_index(Kind::MariaDb, "EXPLAIN");
}

#[test]
fn string_filter_uses_the_index_in_sqlite() {
    check_index(Kind::Sqlite, "EXPLAIN QUERY PLAN");
}
