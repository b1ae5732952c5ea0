#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use terrane_compiler::SecurityContext;
use terrane_compiler::model::{Model, build};
use terrane_compiler::project::{Inputs, SourceTree, read};

use super::*;

const CUBES: &str = r#"
cubes:
  - name: rentals
    sql_table: rentals
    joins:
      - {name: customers, relationship: many_to_one, sql: "{rentals}.customer_id = {customers}.id"}
      - {name: pickup, cube: branches, relationship: many_to_one, sql: "{rentals}.branch = {pickup}.id"}
      - {name: rates, relationship: many_to_one, sql: "{rentals}.class = {rates}.class AND {rentals}.season = {rates}.season"}
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: status, type: string, sql: state}
      - {name: channel, type: string, sql: "upper({rentals}.channel)"}
      - {name: is_long, type: boolean, sql: "{rentals}.days > 7"}
      - {name: class, type: string, sql: class}
      - {name: branch, type: number, sql: branch}
    measures:
      - {name: count, type: count}
      - {name: cancelled, type: count, filters: [{sql: "{status} = 'cancelled'"}]}
      - {name: no_shows, type: count, filters: [{sql: "{rentals}.state = 'no show'"}]}
      - {name: long, type: count, filters: [{sql: "{is_long}"}]}
      - {name: long_cancelled, type: count, filters: [{sql: "{is_long}"}, {sql: "{status} = 'cancelled'"}]}
      - {name: online, type: count, filters: [{sql: "{rentals}.channel = 'web'"}]}
      - {name: adults, type: count, filters: [{sql: "{customers.age} >= 18"}]}
      - {name: revenue, type: sum, sql: price}
      - {name: cancellation_rate, type: number, sql: "{cancelled} / {count}"}
      - {name: renters, type: count_distinct, sql: customer_id}
      - {name: branches_used, type: count_distinct, sql: "{branch}"}
      - {name: classes, type: count_distinct, sql: class}
      - {name: online_renters, type: count_distinct, sql: customer_id, filters: [{sql: "{rentals}.channel = 'web'"}]}
  - name: customers
    sql_table: customers
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: age, type: number, sql: age}
    measures:
      - {name: count, type: count}
  - name: branches
    sql_table: branches
    dimensions: [{name: id, type: number, sql: id, primary_key: true}]
  - name: rates
    sql_table: rates
    dimensions:
      - {name: class, type: string, sql: class, primary_key: true}
      - {name: season, type: string, sql: season, primary_key: true}
"#;

fn model() -> Model {
    let mut tree = SourceTree::default();
    tree.files.insert("service_project.yml".into(), "name: rental\n".into());
    tree.files.insert("cubes/rentals.yml".into(), CUBES.into());
    let (definitions, diagnostics) = read(&tree, &Inputs { warehouse: "duckdb".into(), ..Inputs::default() });
    let (model, more) = build(&definitions);
    let found: Vec<String> = diagnostics.iter().chain(&more).map(|one| format!("{one:?}")).collect();
    assert_eq!(found, Vec::<String>::new());
    model
}

/// Returns the entry of a measure of the cube `rentals`.
fn entry(name: &str) -> MemberEntry {
    let (model, caller) = (model(), SecurityContext::default());
    let access = Access::of(&model, &caller);
    let name = format!("rentals.{name}");
    entries(&access, &[]).into_iter().find(|entry| *entry.name == *name).unwrap()
}

#[test]
fn measures_have_the_dimensions_of_their_conditions() {
    for (measure, dimensions) in [
        ("count", &[][..]),
        ("cancelled", &["rentals.status"]),
        ("no_shows", &["rentals.status"]),
        ("long", &["rentals.is_long"]),
        ("long_cancelled", &["rentals.status", "rentals.is_long"]),
        // The column is only a part of the dimension.
        ("online", &[]),
        // The dimension is of another cube.
        ("adults", &[]),
        ("revenue", &[]),
        ("cancellation_rate", &[]),
    ] {
        let found = entry(measure).filtered_by;
        assert_eq!(found.iter().map(|name| &**name).collect::<Vec<_>>(), dimensions, "{measure}");
    }
}

#[test]
fn measures_of_different_keys_count_the_joined_rows() {
    for (measure, cube) in [
        ("renters", Some("customers")),
        // The cube behind an alias, by a dimension with the column of the key.
        ("branches_used", Some("branches")),
        // One of two columns of a key.
        ("classes", None),
        // Only the renters of some rows.
        ("online_renters", None),
        ("count", None),
        ("revenue", None),
    ] {
        assert_eq!(entry(measure).counts.as_deref(), cube, "{measure}");
    }
}
