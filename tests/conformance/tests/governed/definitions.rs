//! The parts of a certified definition: everything that changes the numbers of an artifact.

use std::sync::Arc;

use serde_json::json;
use terrane_app::governance::{RecordSet, breaking_changes, export_records};
use terrane_app::ports::governance_records::{Certification, Definition};
use terrane_conformance_tests::case::World;
use terrane_conformance_tests::project;

use crate::{House, STOCK, world};

/// A measure and a metric whose filters read a joined cube, and a measure that needs the time axis.
const SALES: &str = "\
cubes:
  - name: sales
    sql_table: raw.sales
    joins: [{name: branches, relationship: many_to_one, sql: '{sales}.branch_id = {branches}.id'}]
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: sold_at, type: time, sql: sold_at, timezone: utc, primary_time: true}
    measures:
      - {name: all_sales, type: count}
      - {name: online, type: count, filters: [{sql: \"{branches.kind} = 'online'\"}]}
  - name: branches
    sql_table: raw.branches
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: kind, type: string, sql: kind}
metrics:
  - {name: online_sales, type: simple, expression: sales.all_sales, filters: [{member: branches.kind, operator: equals, value: online}]}
  - {name: twice_online, type: derived, expression: sales.online * 2}
";

fn with_sales(text: &str) -> World {
    let mut world = world();
    world.files.insert("cubes/sales.yml".to_owned(), text.to_owned());
    world
}

/// Returns the names of the certified artifacts that differ from those of a project with other sales.
fn changed(set: &RecordSet, text: &str) -> Vec<String> {
    let changes = breaking_changes(set, &project::snapshot_with_files(&with_sales(text).files));
    let names = ["sales.online", "sales.all_sales", "sales.sold_at", "online_sales", "twice_online"];
    let is_named = |name: &&str| changes.diagnostics.iter().any(|found| found.message.contains(&format!("`{name}`")));
    assert_eq!(changes.compared, names.len());
    names.into_iter().filter(is_named).map(str::to_owned).collect()
}

#[tokio::test]
async fn definitions_contain_joins_primary_times_and_time_zones() {
    let house = House::of(with_sales(SALES)).await;
    for (kind, id) in [
        ("measure", "sales.online"),
        ("measure", "sales.all_sales"),
        ("dimension", "sales.sold_at"),
        ("metric", "online_sales"),
        ("metric", "twice_online"),
    ] {
        for (caller, step) in [("writer", "submit"), ("reviewer", "certify")] {
            let body = json!({"artifact_type": kind, "artifact_id": id, "notes": "x"});
            let moved = house.post(caller, &format!("/certification/{step}"), body).await;
            assert_eq!(moved.status, 200, "{moved:?}");
        }
    }
    let set = export_records(&*house.store).await.unwrap();
    let over_join = ["sales.online", "online_sales", "twice_online"];
    let of_time = ["sales.online", "sales.all_sales", "sales.sold_at", "online_sales", "twice_online"];
    for (text, expected) in [
        (SALES.to_owned(), &[][..]),
        (SALES.replace("branch_id =", "other_id ="), &over_join),
        (SALES.replace("raw.branches", "raw.other"), &over_join),
        (SALES.replace("sql: kind", "sql: lower(kind)"), &over_join),
        (SALES.replace("timezone: utc", "timezone: none"), &of_time),
        (SALES.replace("sql: sold_at", "sql: paid_at"), &of_time),
        (
            SALES.replace(
                "sql: sold_at, timezone: utc, primary_time: true}",
                "sql: sold_at, timezone: utc}\n      - {name: paid_at, type: time, sql: paid_at, primary_time: true}",
            ),
            &["sales.online", "sales.all_sales", "online_sales", "twice_online"],
        ),
    ] {
        assert_eq!(changed(&set, &text), expected, "{text}");
    }
}

#[tokio::test]
async fn definitions_of_earlier_versions_are_compared_in_their_form() {
    const TEXT: &str = "\
measure stock.pieces
  type: sum
  sql: pieces
rows of stock
  table: raw.stock
";
    const FINGERPRINT: &str = "7a1d40e108c5806224fc13202ec24feb513f464c93d51da09a1d4fef53925514";
    let house = House::new().await;
    house.certified("stock.pieces").await;
    let mut set = export_records(&*house.store).await.unwrap();
    for record in &mut set.certifications {
        let definition = Some(Definition { text: TEXT.into(), fingerprint: FINGERPRINT.into() });
        *record = Arc::new(Certification { definition, ..Certification::clone(record) });
    }
    let changes = |stock: &str| {
        let mut files = world().files;
        files.insert("cubes/stock.yml".to_owned(), stock.to_owned());
        breaking_changes(&set, &project::snapshot_with_files(&files)).diagnostics
    };
    assert_eq!(changes(STOCK), []);
    let changed = changes(&STOCK.replace("sql: pieces", "sql: weight"));
    let lines: Vec<&str> = changed[0].message.lines().skip(1).collect();
    assert_eq!(lines, ["  - sql: pieces", "  + sql: weight"], "{changed:?}");
}
