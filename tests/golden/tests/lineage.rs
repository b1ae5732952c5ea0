//! Tests every case in `cases/lineage/`, which has SQL, known columns, and the origins of the SQL's columns as a person
//! wrote them. Also tests the dependencies and the lineage of projects, and which callers may see them.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value as Json;
use terrane_compiler::diagnostic::Diagnostic;
use terrane_compiler::model::{self, Model};
use terrane_compiler::project::{self, Definitions, Inputs, SourceTree};
use terrane_compiler::{Access, SecurityContext};
use terrane_lineage::graph::DependencyGraph;
use terrane_lineage::{
    KnownColumns, Lineage, NodeType, OutputName, QueryColumns, Reached, Sight, TableColumn, columns_of,
};

fn known(tables: &Json) -> KnownColumns {
    let mut known = KnownColumns::default();
    for (table, columns) in tables.as_object().into_iter().flatten() {
        let columns = texts(columns).into_iter().map(Arc::from).collect();
        known.inspected(table, columns);
    }
    known
}

fn texts(list: &Json) -> Vec<String> {
    list.as_array().into_iter().flatten().map(|text| text.as_str().expect("a string").to_owned()).collect()
}

fn shown(column: &TableColumn) -> String {
    format!("{}.{}", column.table, column.column)
}

fn columns(of: &QueryColumns) -> Vec<String> {
    let lines = of.outputs.iter().map(|output| {
        let name = match &output.name {
            OutputName::Named(name) => name,
            OutputName::Unnamed => "-",
            OutputName::Star => "*",
        };
        let inputs: Vec<String> = output.inputs.iter().map(shown).collect();
        let unresolved = output.unresolved.iter().map(|unresolved| format!(" ? {}", unresolved.reason));
        let line = format!("{name}: {}{}", inputs.join(", "), unresolved.collect::<String>());
        line.replace(":  ?", ": ?").trim_end().to_owned()
    });
    lines.collect()
}

fn uses(of: &QueryColumns) -> Vec<String> {
    let mut lines: Vec<String> =
        of.uses.iter().map(|(usage, column)| format!("{} {}", usage.as_str(), shown(column))).collect();
    lines.sort();
    lines
}

/// Calls `check` for each case with the case, its SQL, its dialect and the known columns.
fn each_case(mut check: impl FnMut(&Json, &str, &str, KnownColumns)) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases/lineage");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    let mut count = 0;
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a string");
        let all: Json = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        for case in all["cases"].as_array().expect("cases") {
            count += 1;
            let tables = if case["known"].is_null() { &all["known"] } else { &case["known"] };
            let dialect = case["dialect"].as_str().unwrap_or("duckdb");
            check(case, case["sql"].as_str().expect("sql"), dialect, known(tables));
        }
    }
    assert!(count >= 150, "{count} cases are too few");
}

#[test]
fn column_origins_equal_those_of_the_case_files() {
    let mut wrong = Vec::new();
    each_case(|case, sql, dialect, known| {
        let made = columns_of(sql, dialect, &known);
        let mut expect = |what: &str, wanted: Vec<String>, found: Vec<String>| {
            if wanted != found {
                wrong.push(format!("{} ({sql})\n  {what}\n  wanted {wanted:?}\n  found  {found:?}", case["about"]));
            }
        };
        expect("columns", texts(&case["columns"]), columns(&made));
        expect("uses", texts(&case["uses"]), uses(&made));
        if !case["tables"].is_null() {
            expect("tables", texts(&case["tables"]), made.tables.iter().map(ToString::to_string).collect());
        }
        let is_recursive = case["recursive"].as_bool().unwrap_or(false);
        expect("recursive", vec![is_recursive.to_string()], vec![made.is_recursive.to_string()]);
    });
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}

/// Compares a model in a project with the same SQL outside a project: the origins of its columns and rows, and the
/// reasons for unresolved origins.
#[test]
fn model_and_its_sql_have_equal_lineage() {
    let mut wrong = Vec::new();
    each_case(|case, sql, dialect, known| {
        let text = columns_of(sql, dialect, &known);
        let (definitions, model, _) = project_on(dialect, &[("models/m.sql", sql)]);
        let lineage = Lineage::build(&definitions, &model, &known);
        let inputs = |id: &str| {
            let at = lineage.find(id).unwrap_or_else(|| panic!("{sql}: {id}"));
            let inputs = lineage.inputs_of(at).filter(|(from, ..)| {
                let ty = lineage.nodes[*from as usize].ty;
                ty == NodeType::TableColumn || ty == NodeType::Unresolved
            });
            inputs.map(|(from, ..)| lineage.nodes[from as usize].clone()).collect::<Vec<_>>()
        };
        let columns = lineage.nodes.iter().filter(|node| node.ty == NodeType::ModelColumn);
        let found: BTreeSet<(String, String)> = columns
            .flat_map(|column| {
                inputs(&column.id).into_iter().map(|from| {
                    let is_marked = from.ty == NodeType::Unresolved;
                    (column.name.to_lowercase(), if is_marked { from.name } else { from.id }.to_string())
                })
            })
            .collect();
        // A column without a name gets a name from its position, and a repeated name gets a number, as in the engine.
        let name = |at: usize, of: &OutputName| match of {
            OutputName::Named(name) => {
                let before = text.outputs[..at].iter().filter(|output| output.name == *of).count();
                let number = if before > 0 { format!("_{before}") } else { String::new() };
                format!("{}{number}", name.to_lowercase())
            }
            OutputName::Star => "*".to_owned(),
            OutputName::Unnamed => format!("_{}", at + 1),
        };
        let as_id = |column: &TableColumn| format!("table.{}.column.{}", column.table, column.column);
        let wanted: BTreeSet<(String, String)> = (0..)
            .zip(&text.outputs)
            .flat_map(|(at, output)| {
                let marks = output.unresolved.iter().map(|unresolved| unresolved.reason.to_string());
                let from = output.inputs.iter().map(as_id).chain(marks);
                from.map(move |from| (name(at, &output.name), from)).collect::<Vec<_>>()
            })
            .collect();
        let rows: BTreeSet<String> = inputs("model.m").into_iter().map(|from| from.id.to_string()).collect();
        let of_rows: BTreeSet<String> = text.uses.iter().map(|(_, column)| as_id(column)).collect();
        let are_marked = rows.iter().any(|id| id.starts_with("unresolved."));
        let rows: BTreeSet<String> = rows.into_iter().filter(|id| !id.starts_with("unresolved.")).collect();
        if found != wanted || rows != of_rows || are_marked == text.unresolved.is_empty() {
            wrong.push(format!(
                "{} ({sql})\n  wanted {wanted:?}\n  found  {found:?}\n  rows {rows:?} {of_rows:?} {are_marked}",
                case["about"]
            ));
        }
    });
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}

/// Analyzes deep queries on the stack of a test's thread. Each must be analyzed or reported as too large, without a
/// stack overflow.
#[test]
fn deep_queries_do_not_overflow_the_stack() {
    for dialect in ["duckdb", "postgres", "bigquery"] {
        for length in [30, 100, 1_000, 1_900, 20_000] {
            let chains = [
                format!("SELECT {} FROM t", vec!["a"; length].join(" + ")),
                format!("SELECT a FROM t WHERE {}", vec!["a"; length].join(" OR ")),
                vec!["SELECT a FROM t"; length].join(" UNION ALL "),
                format!("SELECT a FROM {}", vec!["t"; length].join(" JOIN ")),
                format!("SELECT a FROM {}", vec!["t"; length].join(" CROSS JOIN ")),
                format!("SELECT {}a{} FROM t", "(".repeat(length), ")".repeat(length)),
                format!("SELECT a FROM {}t{}", "(SELECT * FROM ".repeat(length), ") x".repeat(length)),
                format!("SELECT {} a FROM t", "NOT ".repeat(length)),
                format!("SELECT a{} FROM t", "::int".repeat(length)),
                format!("SELECT {}a{} FROM t", "CASE WHEN ".repeat(length), " THEN 1 END".repeat(length)),
                format!("WITH {} SELECT a FROM c0", nested_ctes(length)),
            ];
            for sql in chains {
                let made = columns_of(&sql, dialect, &KnownColumns::default());
                assert_eq!(made.outputs.len(), 1, "{dialect} {length}: {}", &sql[..40]);
            }
        }
    }
}

fn nested_ctes(length: usize) -> String {
    let ctes: Vec<String> = (0..length).map(|at| format!("c{at} AS (SELECT a FROM t)")).collect();
    ctes.join(", ")
}

#[test]
fn exponential_columns_are_reported_as_too_large() {
    let mut sql = String::from("WITH c0 AS (SELECT 1 AS a, 2 AS b)");
    for at in 1..60 {
        sql.push_str(&format!(", c{at} AS (SELECT x.*, y.* FROM c{b} x, c{b} y)", b = at - 1));
    }
    sql.push_str(" SELECT a FROM c59");
    let made = columns_of(&sql, "duckdb", &KnownColumns::default());
    let reason = made.outputs[0].unresolved[0].reason.to_string();
    assert_eq!(reason, "the SQL is too large for lineage");
}

/// Returns a project of the given files, with its model.
fn project(files: &[(&str, &str)]) -> (Definitions, Model, Vec<Diagnostic>) {
    project_on("duckdb", files)
}

fn project_on(warehouse: &str, files: &[(&str, &str)]) -> (Definitions, Model, Vec<Diagnostic>) {
    let mut tree = SourceTree::default();
    tree.files.insert("service_project.yml".into(), "name: shop\n".into());
    tree.files.extend(files.iter().map(|(path, text)| ((*path).into(), (*text).into())));
    let inputs = Inputs { warehouse: warehouse.into(), ..Inputs::default() };
    let (definitions, mut diagnostics) = project::read(&tree, &inputs);
    let (model, more) = model::build(&definitions);
    diagnostics.extend(more);
    (definitions, model, diagnostics)
}

const SHOP: &[(&str, &str)] = &[
    (
        "sources/raw.yml",
        "sources: [{name: raw, schema: raw, tables: [{name: orders, columns: [{name: id}, {name: amount}, {name: status}, \
         {name: secret}, {name: customer_id}]}, {name: customers, columns: [{name: id}, {name: region}]}]}]",
    ),
    (
        "models/paid.sql",
        "SELECT id, amount AS total, secret, customer_id FROM {{ source('raw', 'orders') }} WHERE status = 'paid'",
    ),
    ("models/all_paid.sql", "SELECT * FROM {{ ref('paid') }}"),
    (
        "cubes/shop.yml",
        r#"
cubes:
  - name: orders
    sql_table: "{{ ref('all_paid') }}"
    joins: [{name: customers, relationship: many_to_one, sql: "{orders}.customer_id = {customers}.id"}]
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: hidden_thing, type: string, sql: secret}
      - {name: region, type: string, sql: "{customers}.region"}
    measures:
      - {name: count, type: count}
      - {name: revenue, type: sum, sql: total}
      - {name: average, type: number, sql: "{revenue} / {count}"}
  - name: customers
    sql_table: raw.customers
    dimensions: [{name: id, type: number, sql: id, primary_key: true}, {name: region, type: string, sql: region}]
metrics:
  - {name: income, type: simple, expression: orders.revenue, filters: [{member: customers.region, operator: equals, value: north}]}
policies:
  - {name: hide, cubes: [orders], when: {roles: [guest]}, deny: [hidden_thing]}
  - {name: own, cubes: [customers], when: {roles: [regional]}, row_filter: "{customers}.region IN {{ user.attributes.regions }}"}
"#,
    ),
];

fn ids(lineage: &Lineage, reached: &[Reached]) -> Vec<String> {
    let mut ids: Vec<String> = reached.iter().map(|at| lineage.nodes[at.node as usize].id.to_string()).collect();
    ids.sort();
    ids
}

#[test]
fn source_column_is_upstream_of_metrics() {
    let (definitions, model, diagnostics) = project(SHOP);
    assert!(!diagnostics.iter().any(Diagnostic::is_error), "{diagnostics:?}");
    let lineage = Lineage::build(&definitions, &model, &KnownColumns::declared(&definitions));
    let everything = Sight::of_everything();
    let amount = lineage.find("source.raw.orders.column.amount").expect("the column is there");
    assert_eq!(
        ids(&lineage, &lineage.downstream(amount, &everything)),
        [
            "measure.orders.average",
            "measure.orders.revenue",
            "metric.income",
            "model.all_paid.column.total",
            "model.paid.column.total",
            "source.raw.orders.column.amount",
        ]
    );
    // A column that filters a model's rows reaches every member that is computed from the model.
    let status = lineage.find("source.raw.orders.column.status").expect("the column is there");
    let reached = ids(&lineage, &lineage.downstream(status, &everything));
    for id in ["model.paid", "model.all_paid", "cube.orders", "measure.orders.count", "metric.income"] {
        assert!(reached.iter().any(|at| at == id), "{id} {reached:?}");
    }
    let region = lineage.find("source.raw.customers.column.region").expect("the column is there");
    assert_eq!(
        ids(&lineage, &lineage.downstream(region, &everything)),
        [
            "cube.customers",
            "dimension.customers.id",
            "dimension.customers.region",
            "dimension.orders.region",
            "join.orders.customers",
            "metric.income",
            "policy.own",
            "row_filter.own.customers",
            "source.raw.customers.column.region"
        ]
    );
    // The path to a column of another cube leads through the join.
    let upstream =
        ids(&lineage, &lineage.upstream(lineage.find("dimension.orders.region").expect("it is there"), &everything));
    for id in ["join.orders.customers", "source.raw.orders.column.customer_id", "source.raw.customers.column.id"] {
        assert!(upstream.iter().any(|at| at == id), "{id} {upstream:?}");
    }
}

#[test]
fn denied_member_and_its_columns_are_absent() {
    let (definitions, model, _) = project(SHOP);
    let lineage = Lineage::build(&definitions, &model, &KnownColumns::declared(&definitions));
    let guest = SecurityContext { roles: vec!["guest".into()], ..SecurityContext::default() };
    let access = Access::of(&model, &guest);
    let sight = Sight::of(&lineage, &access);
    let seen: Vec<&str> =
        (0u32..).zip(&lineage.nodes).filter(|(at, _)| sight.sees(*at)).map(|(_, node)| &*node.id).collect();
    assert!(
        !seen.iter().any(|id| id.contains("secret") || id.contains("hidden") || id.starts_with("policy")),
        "{seen:?}"
    );
    assert!(seen.contains(&"measure.orders.revenue") && seen.contains(&"source.raw.orders.column.amount"), "{seen:?}");
    let graph = DependencyGraph::build(&definitions, &model, &[]);
    let left = graph.seen_by(&access);
    assert_eq!(graph.nodes.len(), left.nodes.len() + 1);
    assert!(!left.nodes.iter().any(|node| node.unique_id.contains("hidden_thing")));
}

#[test]
fn dependencies_precede_dependents() {
    let (definitions, model, diagnostics) = project(SHOP);
    let graph = DependencyGraph::build(&definitions, &model, &diagnostics);
    let order: Vec<&str> = graph.execution_order().map(|node| &*node.unique_id).collect();
    assert_eq!(order.len(), graph.nodes.len());
    let place = |id: &str| order.iter().position(|at| *at == id).unwrap_or_else(|| panic!("{id} {order:?}"));
    for (from, to) in &graph.edges {
        let (from, to) = (&graph.nodes[*from as usize].unique_id, &graph.nodes[*to as usize].unique_id);
        assert!(place(from) < place(to), "{from} {to}");
    }
    let way = [
        "source.shop.raw",
        "source.shop.raw.orders",
        "model.shop.paid",
        "model.shop.all_paid",
        "cube.shop.orders",
        "measure.shop.orders.revenue",
        "metric.shop.income",
    ];
    for pair in way.windows(2) {
        let edge =
            pair.iter().map(|id| graph.nodes.iter().position(|node| &*node.unique_id == *id).expect("a node") as u32);
        let edge: Vec<u32> = edge.collect();
        assert!(graph.edges.contains(&(edge[0], edge[1])), "{pair:?}");
    }
    assert!(graph.nodes.iter().all(|node| node.compiled && node.error.is_none()));
}

#[test]
fn cycles_come_last_with_their_path() {
    let (definitions, model, diagnostics) = project(&[
        ("models/a.sql", "SELECT * FROM {{ ref('b') }}"),
        ("models/b.sql", "SELECT * FROM {{ ref('a') }}"),
        (
            "cubes/c.yml",
            "cubes: [{name: c, sql_table: t, measures: [{name: count, type: count}, {name: x, type: number, sql: '{y} + 1'}, \
             {name: y, type: number, sql: '{x} + 1'}]}]",
        ),
    ]);
    let graph = DependencyGraph::build(&definitions, &model, &diagnostics);
    let mut last: Vec<&str> = graph
        .parallel_batches
        .last()
        .expect("batches")
        .iter()
        .map(|at| &*graph.nodes[*at as usize].unique_id)
        .collect();
    last.sort_unstable();
    assert_eq!(last, ["measure.shop.c.x", "measure.shop.c.y", "model.shop.a", "model.shop.b"]);
    for node in graph.nodes.iter().filter(|node| last.contains(&&*node.unique_id)) {
        assert!(!node.compiled && node.error.as_ref().is_some_and(|error| error.contains(" → ")), "{node:?}");
    }
    let count = graph.nodes.iter().find(|node| &*node.unique_id == "measure.shop.c.count").expect("it is there");
    assert!(count.compiled && count.error.is_none());
}
