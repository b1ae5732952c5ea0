//! Tests exports to the Open Semantic Interchange format.
//!
//! In: a project. Out: the document, parsed as YAML, and the findings.

use std::sync::Arc;

use terrane_compiler::diagnostic::Code;
use terrane_compiler::model;
use terrane_compiler::project::{self, Inputs, SourceFile, SourceTree, yaml};
use terrane_importers::osi::{Export, export};

const CUBES: &str = "cubes:
  - name: orders
    sql_table: raw.orders
    description: One row an order.
    measures:
      - {name: count, type: count}
      - {name: revenue, type: sum, sql: amount, meta: {synonyms: [income]}}
      - {name: paid, type: sum, sql: amount, filters: [{sql: \"{status} = 'paid'\"}]}
      - {name: average, type: number, sql: \"{revenue} / {count}\"}
      - {name: to_date, type: running_total, sql: amount}
      - {name: to_date_each, type: number, sql: \"{to_date} / {count}\"}
      - {name: secret, type: max, sql: amount, public: false}
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: status, type: string, sql: \"lower(state)\"}
      - {name: is_paid, type: boolean, sql: \"{status} = 'paid'\"}
      - {name: created_at, type: time, sql: created_at}
      - {name: hidden, type: string, sql: hidden, public: false}
    joins:
      - {name: customers, relationship: many_to_one, sql: \"{orders}.customer_id = {customers}.id\"}
      - {name: near, cube: customers, relationship: many_to_one, sql: \"{orders}.region > {near}.region\"}
    segments: [{name: paid_orders, sql: \"{is_paid}\"}]
  - name: customers
    sql: SELECT * FROM raw.customers
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: region, type: string, sql: region}
    joins:
      - {name: orders, relationship: one_to_many, sql: \"{orders}.customer_id = {customers.id}\"}
  - {name: private, sql_table: raw.private, public: false, measures: [{name: count, type: count}]}
metrics:
  - {name: share, type: ratio, numerator: orders.paid, denominator: orders.revenue}
  - {name: north, type: simple, expression: orders.revenue, filters: [{member: customers.region, operator: equals, value: north}]}
  - {name: accumulated, type: simple, expression: orders.to_date}
policies:
  - {name: closed, cubes: [customers], row_filter: \"1 = 0\"}
";

fn exported(cubes: &str) -> Export {
    let files = [("service_project.yml", "name: shop\n"), ("cubes/all.yml", cubes)];
    let tree = SourceTree { files: files.iter().map(|(path, text)| (Arc::from(*path), Arc::from(*text))).collect() };
    let inputs = Inputs { warehouse: "duckdb".into(), ..Inputs::default() };
    let (definitions, mut problems) = project::read(&tree, &inputs);
    let (model, found) = model::build(&definitions);
    problems.extend(found);
    let errors: Vec<String> = problems.iter().filter(|p| p.is_error()).map(ToString::to_string).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    export(&model, "duckdb")
}

#[test]
fn model_becomes_a_document() {
    let Export { text, .. } = exported(CUBES);
    let file = Arc::new(SourceFile { path: "osi.yaml".into(), text: text.as_str().into() });
    assert!(yaml::parse(&file).is_ok(), "{text}");
    for part in [
        "version: \"0.2.0.dev0\"",
        "source: raw.orders",
        "primary_key: [id]",
        "expression: lower(state)",
        "expression: \"lower(state) = 'paid'\"",
        "is_time: true",
        "name: orders_to_customers",
        "from: orders",
        "to: customers",
        "from_columns: [customer_id]",
        "to_columns: [id]",
        "expression: COUNT(orders.id)",
        "expression: SUM(orders.amount)",
        "SUM(CASE WHEN (lower(orders.state) = 'paid') THEN orders.amount END)",
        "1.0 * ((SUM(orders.amount))) / NULLIF((COUNT(orders.id)), 0)",
        "synonyms: [income]",
        "source: \"SELECT * FROM raw.customers\"",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert_eq!(text.matches("from: orders").count(), 1, "{text}");
}

#[test]
fn parts_without_a_counterpart_are_left_out_and_reported() {
    let Export { text, findings } = exported(CUBES);
    for name in ["private", "secret", "name: hidden", "to_date", "name: north", "accumulated", "paid_orders"] {
        assert!(!text.contains(name), "{name}\n{text}");
    }
    let lines: Vec<u32> = findings.iter().filter_map(|finding| Some(finding.span.as_ref()?.line)).collect();
    for line in [10, 11, 12, 18, 21, 22, 30, 33, 34] {
        assert!(lines.contains(&line), "{line}: {findings:#?}");
    }
    assert!(findings.iter().all(|finding| finding.code == Code::NotCarriedOver && finding.hint.is_some()));
}

#[test]
fn aggregates_of_standard_sql_are_exported() {
    let measures = "      - {name: spread, type: stddev, sql: amount}
      - {name: sampled, type: variance, sample: true, sql: amount}
      - {name: middle, type: median, sql: amount}
      - {name: high, type: percentile, percentile: 0.95, sql: amount}
";
    let at = CUBES.find("      - {name: average").unwrap();
    let Export { text, .. } = exported(&format!("{}{measures}{}", &CUBES[..at], &CUBES[at..]));
    for part in [
        "expression: STDDEV_POP(orders.amount)",
        "expression: VAR_SAMP(orders.amount)",
        "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY orders.amount)",
        "PERCENTILE_CONT(0.95) WITHIN GROUP (ORDER BY orders.amount)",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn measures_and_metrics_over_windows_name_the_reason_and_the_cure() {
    let findings: Vec<String> = exported(CUBES).findings.iter().map(ToString::to_string).collect();
    let of = |name: &str| findings.iter().find(|finding| finding.contains(name)).cloned().unwrap_or_default();
    let number = of("`orders.to_date_each`");
    assert!(number.contains("it is computed from a measure that is not exported"), "{number}");
    let metric = of("metric `accumulated`");
    assert!(metric.contains("Define it in the other tool.") && !metric.contains("filters"), "{metric}");
}
