//! Tests the statements that check keys and joins: the SQL in one dialect, and that every dialect has SQL for each.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::fmt::Write as _;

use terrane_compiler::model::Model;
use terrane_compiler::sql::dialect_profile::DialectProfile;
use terrane_compiler::sql::{Claim, DataCheck, data_checks};
use terrane_golden_tests::case::model;
use terrane_golden_tests::{checked, duckdb_profile, first_party_profiles};

/// Cubes with all forms of keys and joins. A primary key has one column, has two columns of which one is computed, or
/// is missing. Joins compare by equality, by a range or with a member of the target; two have the same target; two go
/// in opposite directions.
const CUBES: &str = r#"
cubes:
  - name: customers
    sql_table: raw.customers
    joins:
      - {name: orders, relationship: one_to_many, sql: "{customers}.id = {orders}.customer_id"}
      - {name: homes, cube: regions, relationship: many_to_one, sql: "{customers}.region = {homes}.name"}
    dimensions: [{name: id, type: string, sql: id, primary_key: true}, {name: region, type: string, sql: "{homes}.name"}]
  - name: orders
    sql_table: raw.orders
    joins:
      - {name: customers, relationship: many_to_one, always: true, sql: "{orders}.customer_id = {customers}.id"}
      - {name: regions, relationship: many_to_one, sql: "({regions.name} = {orders}.region AND {orders}.country = {regions}.country)"}
      - {name: rates, relationship: many_to_one, always: true, sql: "{orders}.buyer = {rates}.customer AND {orders}.amount >= {rates}.lowest"}
      - {name: invoices, relationship: one_to_one, sql: "{orders}.invoice = {invoices}.number"}
    dimensions:
      - {name: day, type: time, timezone: none, sql: "CAST(created_at AS DATE)", primary_key: true}
      - {name: number, type: number, sql: number, primary_key: true}
  - name: regions
    sql_table: raw.regions
    dimensions: [{name: name, type: string, sql: name}]
  - name: rates
    sql: SELECT * FROM raw.rates
    dimensions: [{name: lowest, type: number, sql: lowest}]
  - name: invoices
    sql_table: raw.invoices
    dimensions: [{name: number, type: number, sql: number, primary_key: true}]
"#;

fn checks(model: &Model, profile: &DialectProfile) -> Vec<DataCheck> {
    data_checks(model, profile).into_iter().map(|check| check.map_err(|(_, _, error)| error).unwrap()).collect()
}

#[test]
fn each_claim_has_a_statement_that_finds_violations() {
    let model = model(CUBES, "{}");
    let mut text = String::new();
    for check in checks(&model, &duckdb_profile()) {
        let target = match check.claim {
            Claim::TargetIsUnique { target, .. }
            | Claim::FindsAtMostOne { target, .. }
            | Claim::FindsOne { target }
            | Claim::IsFoundOnce { target, .. } => format!(" → {}", model.cube(target).name),
            _ => String::new(),
        };
        let claim = format!("{:?}", check.claim);
        let claim = claim.split(' ').next().unwrap();
        let (cube, key) = (&model.cube(check.cube).name, check.key.join(", "));
        let _ = write!(text, "# {cube}{target}: {claim} ({key})\n{}\n\n", check.text);
    }
    insta::with_settings!({ omit_expression => true, snapshot_path => "../snapshots", prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("data_checks", text);
    });
}

#[test]
fn statements_compile_in_every_dialect() {
    let model = model(CUBES, "{}");
    let count = checks(&model, &duckdb_profile()).len();
    for profile in first_party_profiles() {
        assert_eq!(checks(&model, &checked(profile)).len(), count);
    }
}
