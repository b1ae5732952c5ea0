//! Tests definitions, partitions and statements of pre-aggregations.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use jiff::Timestamp;
use terrane_compiler::diagnostic::Diagnostic;
use terrane_compiler::model::{Model, build};
use terrane_compiler::project::{Inputs, SourceTree, read};
use terrane_compiler::rollup::{BucketRange, ReadyPartition, RollupError, RollupOf};
use terrane_golden_tests::case::model;
use terrane_golden_tests::{checked, first_party_profiles};

const TYPES: &str = r#"{"orders.id": integer, "orders.status": text, "orders.created_at": timestamp-tz,
  "orders.due_on": date, "orders.revenue": decimal, "orders.average": decimal, "orders.largest": decimal,
  "customers.id": integer, "customers.region": text}"#;

fn cubes(rollups: &str) -> String {
    format!(
        r#"
cubes:
  - name: orders
    sql_table: raw.orders
    joins: [{{name: customers, relationship: many_to_one, sql: "{{orders}}.customer_id = {{customers}}.id"}}]
    dimensions:
      - {{name: id, type: number, sql: id, primary_key: true}}
      - {{name: status, type: string, sql: status}}
      - {{name: created_at, type: time, sql: created_at}}
      - {{name: due_on, type: time, sql: due_on}}
    segments: [{{name: paid, sql: "status = 'paid'"}}]
    measures:
      - {{name: count, type: count}}
      - {{name: revenue, type: sum, sql: amount}}
      - {{name: average, type: avg, sql: amount}}
      - {{name: largest, type: max, sql: amount}}
      - {{name: paid_share, type: number, sql: "SUM(CASE WHEN status = 'paid' THEN amount END) / {{revenue}}"}}
    pre_aggregations:
{rollups}
  - name: customers
    sql_table: raw.customers
    joins: [{{name: orders, relationship: one_to_many, sql: "{{orders}}.customer_id = {{customers}}.id"}}]
    dimensions:
      - {{name: id, type: number, sql: id, primary_key: true}}
      - {{name: region, type: string, sql: region}}
    measures: [{{name: count, type: count}}]
"#
    )
}

fn loaded(rollups: &str) -> (Model, Vec<Diagnostic>) {
    let mut tree = SourceTree::default();
    tree.files.insert("service_project.yml".into(), "name: shop\n".into());
    tree.files.insert("cubes/all.yml".into(), cubes(rollups).into());
    let inputs = Inputs { warehouse: "duckdb".into(), ..Inputs::default() };
    let (definitions, mut diagnostics) = read(&tree, &inputs);
    let (model, more) = build(&definitions);
    diagnostics.extend(more);
    (model, diagnostics)
}

const BY_DAY: &str = "      - {name: by_day, measures: [count, revenue, average, paid_share], \
     dimensions: [status, customers.region], segments: [paid], time_dimension: created_at, granularity: day, \
     partition_granularity: month, timezone: Europe/Berlin, arrival: inserted_at, indexes: [status]}\n";

fn micros(text: &str) -> i64 {
    text.parse::<Timestamp>().unwrap().as_microsecond()
}

#[test]
fn build_statements_match_the_snapshot() {
    let model = model(&cubes(BY_DAY), TYPES);
    let rollup = RollupOf::named(&model, "orders", "by_day").unwrap();
    let table = ReadyPartition::relation_of(["terrane_rollups", "orders_by_day_1"]);
    let mut text = String::new();
    for profile in first_party_profiles().into_iter().map(checked) {
        if !["duckdb", "postgres", "mysql", "sqlite"].contains(&profile.name.as_str()) {
            continue;
        }
        let range = BucketRange { start: micros("2024-03-01T00:00:00Z"), end: micros("2024-04-01T00:00:00Z") };
        let built = rollup.build(&profile, Some(range)).unwrap();
        let totals = rollup.totals(&profile, Some(range), &table).unwrap();
        let marks = rollup.change_marks(&profile, Some(range)).unwrap();
        let parts = [
            ("build", built.text),
            ("base totals", totals.base),
            ("stored totals", totals.stored),
            ("extent", rollup.extent(&profile).unwrap().unwrap()),
            ("change marks", marks.text),
        ];
        for (title, sql) in parts {
            text.push_str(&format!("-- {} {title}\n{sql}\n\n", profile.name));
        }
    }
    insta::assert_snapshot!(text);
}

#[test]
fn columns_follow_the_build_statement() {
    let model = model(&cubes(BY_DAY), TYPES);
    let rollup = RollupOf::named(&model, "orders", "by_day").unwrap();
    for profile in first_party_profiles().into_iter().map(checked) {
        let built = rollup.build(&profile, None).unwrap();
        let names: Vec<&str> = built.columns.iter().map(|column| &*column.name).collect();
        // The states: the number of rows, the sum and the count of amounts, and the sum of paid amounts.
        let expected: &[&str] = match profile.name.as_str() {
            "bigquery" | "mysql" | "postgres" | "redshift" | "sqlite" => {
                &["t0", "k0", "k1", "s0", "d0", "d1", "a0", "a1", "a2", "a3"]
            }
            _ => &["t0", "d0", "d1", "s0", "a0", "a1", "a2", "a3"],
        };
        assert_eq!(names, expected, "{}", profile.name);
        let positions: Vec<usize> = names.iter().map(|name| built.text.find(&format!(" AS {name}")).unwrap()).collect();
        assert!(positions.is_sorted(), "{}", built.text);
        assert!(built.columns[1].is_indexed && !built.columns[2].is_indexed);
    }
}

#[test]
fn fingerprints_differ_by_what_decides_the_rows() {
    let profiles: Vec<_> = first_party_profiles().into_iter().map(checked).collect();
    let of = |rollups: &str| {
        let model = model(&cubes(rollups), TYPES);
        let rollup = RollupOf::named(&model, "orders", "by_day").unwrap();
        (rollup.fingerprint(&profiles[0]).unwrap(), rollup.fingerprint(&profiles[1]).unwrap())
    };
    let first = of(BY_DAY);
    assert_eq!(first, of(BY_DAY));
    assert_ne!(first.0, first.1);
    for (from, to) in [("Europe/Berlin", "Europe/Paris"), ("[status, ", "["), ("granularity: day", "granularity: hour")]
    {
        assert_ne!(first.0, of(&BY_DAY.replace("indexes: [status]", "").replace(from, to)).0, "{from}");
    }
    // The rule for recomputing a rollup does not affect its rows, so the fingerprint is the same.
    assert_eq!(first.0, of(&BY_DAY.replace("arrival: inserted_at", "refresh: {every: 1 hour}")).0);
}

#[test]
fn partitions_are_adjacent_and_aligned_to_the_zone() {
    let model = model(&cubes(BY_DAY), TYPES);
    let rollup = RollupOf::named(&model, "orders", "by_day").unwrap();
    // 23:30 in UTC is the next month in Berlin.
    let extent = [micros("2024-01-31T23:30:00Z"), micros("2024-04-30T22:30:00Z")];
    let partitions: Vec<BucketRange> = rollup.partitions(Some(extent)).unwrap().into_iter().flatten().collect();
    let day = |text: &str| micros(&format!("{text}T00:00:00Z"));
    let expected = [
        ("2024-02-01", "2024-03-01"),
        ("2024-03-01", "2024-04-01"),
        ("2024-04-01", "2024-05-01"),
        ("2024-05-01", "2024-06-01"),
    ];
    assert_eq!(partitions, expected.map(|(start, end)| BucketRange { start: day(start), end: day(end) }));
}

#[test]
fn build_range_holds_whole_days() {
    let rollups = BY_DAY.replace("arrival:", "build_range: {start: 2024-01-15, end: 2024-02-10}, arrival:");
    let model = model(&cubes(&rollups), TYPES);
    let rollup = RollupOf::named(&model, "orders", "by_day").unwrap();
    let partitions: Vec<BucketRange> = rollup.partitions(None).unwrap().into_iter().flatten().collect();
    let day = |text: &str| micros(&format!("{text}T00:00:00Z"));
    let expected = [("2024-01-15", "2024-02-01"), ("2024-02-01", "2024-02-11")];
    assert_eq!(partitions, expected.map(|(start, end)| BucketRange { start: day(start), end: day(end) }));
}

#[test]
fn more_partitions_than_the_limit_are_refused() {
    let rollups = BY_DAY.replace("partition_granularity: month", "partition_granularity: day");
    let model = model(&cubes(&rollups), TYPES);
    let rollup = RollupOf::named(&model, "orders", "by_day").unwrap();
    assert!(rollup.partitions(Some([micros("2020-01-01T00:00:00Z"), micros("2024-01-01T00:00:00Z")])).is_err());
    assert_eq!(
        rollup.partitions(Some([micros("2024-01-01T00:00:00Z"), micros("2024-03-01T00:00:00Z")])).unwrap().len(),
        61
    );
}

#[test]
fn day_repeated_over_midnight_has_one_partition() {
    // At 00:01 of 2010-11-07 the clock went back to 23:01 of the day before.
    let rollups = BY_DAY.replace("Europe/Berlin", "America/St_Johns").replace(": month", ": day");
    let model = model(&cubes(&rollups), TYPES);
    let rollup = RollupOf::named(&model, "orders", "by_day").unwrap();
    let extent = [micros("2010-11-06T12:00:00Z"), micros("2010-11-08T12:00:00Z")];
    let partitions: Vec<BucketRange> = rollup.partitions(Some(extent)).unwrap().into_iter().flatten().collect();
    let day = |text: &str| micros(&format!("{text}T00:00:00Z"));
    let expected = [("2010-11-06", "2010-11-08"), ("2010-11-08", "2010-11-09")];
    assert_eq!(partitions, expected.map(|(start, end)| BucketRange { start: day(start), end: day(end) }));
    let profile = checked(first_party_profiles().swap_remove(2));
    let cut = BucketRange { start: day("2010-11-07"), end: day("2010-11-08") };
    assert!(matches!(rollup.build(&profile, Some(cut)), Err(RollupError::NotOnEdges)));
}

#[test]
fn definitions_that_cannot_work_are_refused() {
    let cases = [
        ("{name: a, measures: [nothing]}", "unknown-member"),
        ("{name: a, measures: [count], granularity: day}", "misplaced-field"),
        ("{name: a, measures: [count], time_dimension: created_at}", "missing-field"),
        (
            "{name: a, measures: [count], time_dimension: created_at, granularity: month, partition_granularity: day}",
            "wrong-value",
        ),
        ("{name: a, measures: [count], type: cube}", "unknown-value"),
        ("{name: a, measures: [customers.count]}", "misplaced-member"),
        ("{name: a, measures: [count], segments: [status]}", "misplaced-member"),
        (
            "{name: a, measures: [count], time_dimension: created_at, granularity: day, timezone: Europe/Nowhere}",
            "wrong-value",
        ),
        ("{name: a, measures: [count], dimensions: [status], indexes: [id]}", "unknown-member"),
        (
            "{name: a, time_dimension: created_at, granularity: day, build_range: {start: 2024-02-01, end: 2024-01-01}}",
            "wrong-value",
        ),
    ];
    for (rollup, code) in cases {
        let (model, diagnostics) = loaded(&format!("      - {rollup}\n"));
        let found: Vec<&str> = diagnostics.iter().filter(|d| d.is_error()).map(|d| d.code.as_str()).collect();
        assert_eq!(found, [code], "{rollup}");
        assert!(
            diagnostics.iter().filter(|d| d.is_error()).all(|d| d.span.is_some() && d.full_hint().is_some()),
            "{rollup}"
        );
        let is_text_wrong = ["misplaced-field", "missing-field", "unknown-value"].contains(&code);
        assert!(is_text_wrong || model.cubes[0].rollups.is_empty() || code == "wrong-value", "{rollup}");
    }
}

#[test]
fn duplicate_rollup_names_are_rejected() {
    let (model, diagnostics) = loaded("      - {name: a, measures: [count]}\n      - {name: a, measures: [revenue]}\n");
    let found: Vec<&str> = diagnostics.iter().filter(|d| d.is_error()).map(|d| d.code.as_str()).collect();
    assert_eq!(found, ["duplicate-name"]);
    assert_eq!(model.cubes[0].rollups.len(), 1);
}

#[test]
fn to_many_join_is_rejected() {
    let cubes = cubes("      - {name: a, measures: [count]}\n").replace(
        "    measures: [{name: count, type: count}]\n",
        "    measures: [{name: count, type: count}]\n    pre_aggregations: [{name: b, measures: [count], dimensions: [orders.status]}]\n",
    );
    let mut tree = SourceTree::default();
    tree.files.insert("service_project.yml".into(), "name: shop\n".into());
    tree.files.insert("cubes/all.yml".into(), cubes.into());
    let (definitions, _) = read(&tree, &Inputs { warehouse: "duckdb".into(), ..Inputs::default() });
    let (_, diagnostics) = build(&definitions);
    let found: Vec<&str> = diagnostics.iter().filter(|d| d.is_error()).map(|d| d.code.as_str()).collect();
    assert_eq!(found, ["to-many-reference"]);
}
