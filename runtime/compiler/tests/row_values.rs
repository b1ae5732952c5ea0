//! Tests the SQL of values that the warehouse computes for each row.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use terrane_compiler::model::Model;
use terrane_compiler::query::{
    Comparison, QueryError, RowAggregate, RowCondition, RowFunction, RowOperator, RowValue, SemanticQuery,
};
use terrane_compiler::sql::dialect_profile::DialectProfile;
use terrane_compiler::types::Value;
use terrane_compiler::{Authorized, SecurityContext, compile};
use terrane_golden_tests::case::{environment, model};
use terrane_golden_tests::{
    checked, duckdb_profile, first_party_profiles, mysql_profile, postgres_profile, sqlite_profile,
};

const CUBES: &str = "
cubes:
  - name: sales
    sql_table: raw.sales
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: region, type: string, sql: region}
      - {name: units, type: number, sql: units}
      - {name: price, type: number, sql: price}
      - {name: rate, type: number, sql: rate}
      - {name: weight, type: number, sql: weight}
    measures: [{name: count, type: count}]
";

const POLICY: &str = "
policies:
  - {name: own, cubes: [sales], row_filter: \"{CUBE}.region = 'north'\"}
";

const TYPES: &str = "
sales.id: integer
sales.region: text
sales.units: integer
sales.price: decimal
sales.rate: decimal
sales.weight: float
";

fn sales() -> Model {
    model(CUBES, TYPES)
}

fn member(name: &str) -> RowValue {
    RowValue::Member(format!("sales.{name}").parse().unwrap())
}

fn filled(name: &str) -> RowValue {
    RowValue::Coalesce(Box::new(member(name)), Box::new(RowValue::Constant(Value::Integer(0))))
}

fn operation(operator: RowOperator, left: RowValue, right: RowValue) -> RowValue {
    RowValue::Arithmetic { operator, left: Box::new(left), right: Box::new(right) }
}

fn redshift_profile() -> DialectProfile {
    checked(first_party_profiles().into_iter().find(|profile| profile.name == "redshift").unwrap())
}

/// Returns the statement that sums a value.
fn sum(model: &Model, profile: &DialectProfile, value: RowValue) -> Result<String, QueryError> {
    let one = RowAggregate { key: "x".into(), cube: "sales".into(), function: RowFunction::Sum, value };
    let query = SemanticQuery { computed: vec![one], ..SemanticQuery::default() };
    let caller = SecurityContext::default();
    let authorized = Authorized::without_hooks(model, &caller);
    compile(profile, &query, &authorized, &environment()).map(|sql| sql.text)
}

#[test]
fn integers_are_widened_before_an_operation() {
    let value = || operation(RowOperator::Add, filled("units"), filled("units"));
    for (profile, expected) in [
        (postgres_profile(), "CAST(COALESCE(sales.units, 0) AS BIGINT) + CAST(COALESCE(sales.units, 0) AS BIGINT)"),
        (mysql_profile(), "COALESCE(sales.units, 0) + COALESCE(sales.units, 0)"),
        (sqlite_profile(), "COALESCE(sales.units, 0) + COALESCE(sales.units, 0)"),
    ] {
        let sql = sum(&sales(), &profile, value()).unwrap();
        assert!(sql.contains(expected), "{sql}");
        assert!(!sql.contains("SIGNED") && !sql.contains("AS INTEGER"), "{sql}");
    }
}

#[test]
fn single_precision_is_widened_before_an_operation_and_a_sum() {
    let double = "CAST(sales.weight AS DOUBLE PRECISION)";
    let redshift = redshift_profile();
    let sql = sum(&sales(), &redshift, member("weight")).unwrap();
    assert!(sql.contains(&format!("sum({double})")), "{sql}");
    let product = operation(RowOperator::Multiply, member("weight"), member("weight"));
    let sql = sum(&sales(), &redshift, product).unwrap();
    assert!(sql.contains(&format!("sum({double} * {double})")), "{sql}");
    let chosen = RowValue::When {
        condition: Box::new(RowCondition::IsNull(member("id"))),
        value: Box::new(member("weight")),
        otherwise: Box::new(RowValue::Constant(Value::Null)),
    };
    let sql = sum(&sales(), &redshift, chosen).unwrap();
    assert!(sql.contains("sum(CAST(CASE WHEN sales.id IS NULL THEN sales.weight END AS DOUBLE PRECISION))"), "{sql}");
}

#[test]
fn products_of_decimals_require_an_exact_dialect() {
    let product = |right| operation(RowOperator::Multiply, member("price"), right);
    for profile in first_party_profiles().into_iter().map(checked) {
        let is_exact = ["duckdb", "postgres", "mysql"].contains(&&*profile.name);
        for right in [member("rate"), member("units")] {
            match sum(&sales(), &profile, product(right)) {
                Ok(sql) => assert!(is_exact, "{}: {sql}", profile.name),
                Err(QueryError::DialectLacks { .. }) => assert!(!is_exact, "{}", profile.name),
                Err(error) => panic!("{}: {error:?}", profile.name),
            }
        }
        assert!(sum(&sales(), &profile, member("price")).is_ok(), "{}", profile.name);
    }
}

/// An overflow of a hidden row would make the statement fail, so the whole value is inside a CASE.
#[test]
fn operations_are_evaluated_on_visible_rows_only() {
    let cubes = format!("{CUBES}{POLICY}");
    let filtered = model(&cubes, TYPES);
    let is_heavy =
        RowCondition::Compare { comparison: Comparison::Greater, left: filled("weight"), right: filled("units") };
    let value = RowValue::When {
        condition: Box::new(is_heavy),
        value: Box::new(operation(RowOperator::Multiply, member("units"), member("units"))),
        otherwise: Box::new(RowValue::Constant(Value::Null)),
    };
    let sql = sum(&filtered, &duckdb_profile(), value.clone()).unwrap();
    assert!(sql.contains("sum(CASE WHEN sales.region = 'north' THEN CASE WHEN"), "{sql}");
    // A column cannot fail.
    let sql = sum(&filtered, &duckdb_profile(), member("units")).unwrap();
    assert!(sql.contains("sum(sales.units)"), "{sql}");
    let sql = sum(&sales(), &duckdb_profile(), value).unwrap();
    assert!(!sql.contains("north"), "{sql}");
}
