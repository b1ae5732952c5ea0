//! Tests the reported reasons for the path of each join, and the statement that requests the warehouse's plan.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use terrane_compiler::explanation::{Explanation, PathReason, explain};
use terrane_compiler::model::{self, Model};
use terrane_compiler::project::{self, Inputs, SourceTree};
use terrane_compiler::query::{Filter, Operator, SemanticQuery};
use terrane_compiler::types::Value;
use terrane_compiler::{Authorized, SecurityContext};
use terrane_golden_tests::case::environment;
use terrane_golden_tests::duckdb_profile;

/// Cubes with joins from `a` to `d` by `b` or by `c`, and from `a` to `e` directly or by `d`. `c` is not public.
const CUBES: &str = "
cubes:
  - name: a
    sql_table: a
    joins:
      - {name: b, relationship: many_to_one, sql: '{a}.b = {b}.id'}
      - {name: c, relationship: many_to_one, sql: '{a}.c = {c}.id'}
      - {name: e, relationship: many_to_one, sql: '{a}.e = {e}.id'}
    dimensions: [{name: id, type: number, sql: id, primary_key: true}]
    measures: [{name: count, type: count}]
  - name: b
    sql_table: b
    joins: [{name: d, relationship: many_to_one, sql: '{b}.d = {d}.id'}]
    dimensions: [{name: id, type: number, sql: id, primary_key: true}]
  - name: c
    sql_table: c
    public: false
    joins: [{name: d, relationship: many_to_one, sql: '{c}.d = {d}.id'}]
    dimensions: [{name: id, type: number, sql: id, primary_key: true}]
  - name: d
    sql_table: d
    joins: [{name: e, relationship: many_to_one, sql: '{d}.e = {e}.id'}]
    dimensions: [{name: id, type: number, sql: id, primary_key: true}, {name: name, type: string, sql: name}]
  - name: e
    sql_table: e
    dimensions: [{name: id, type: number, sql: id, primary_key: true}]
";

fn model_of(cubes: &str) -> Model {
    let mut tree = SourceTree::default();
    tree.files.insert("service_project.yml".into(), "name: paths\n".into());
    tree.files.insert("cubes/all.yml".into(), cubes.into());
    let (definitions, _) = project::read(&tree, &Inputs { warehouse: "duckdb".into(), ..Inputs::default() });
    model::build(&definitions).0
}

fn explained(dimensions: &[&str], filters: Vec<Filter>) -> Explanation {
    explained_by(&model_of(CUBES), dimensions, filters)
}

fn explained_by(model: &Model, dimensions: &[&str], filters: Vec<Filter>) -> Explanation {
    let query = SemanticQuery {
        values: vec!["a.count".parse().unwrap()],
        dimensions: dimensions.iter().map(|name| name.parse().unwrap()).collect(),
        filters,
        ..SemanticQuery::default()
    };
    let caller = SecurityContext::default();
    explain(&duckdb_profile(), &query, &Authorized::without_hooks(model, &caller), &environment()).unwrap()
}

fn reasons(explanation: &Explanation) -> Vec<(&str, &str, &PathReason)> {
    explanation.facts[0].joins.iter().map(|join| (&*join.from, &*join.to, &join.why)).collect()
}

#[test]
fn each_join_has_a_reason() {
    let explanation = explained(&["d.id"], Vec::new());
    // The other path leads through `c`, which the reason must not name because it is not public.
    let tie = PathReason::DeclaredFirst { others: Vec::new() };
    assert_eq!(reasons(&explanation), [("a", "b", &PathReason::OnlyPath), ("b", "d", &tie)]);

    let explanation = explained(&["e.id"], Vec::new());
    let shortest = PathReason::FewestHops { others: vec!["d".into()] };
    assert_eq!(reasons(&explanation), [("a", "e", &shortest)]);
}

#[test]
fn explain_statement_has_the_parameters_of_the_query() {
    let condition = Filter::Condition {
        member: "d.name".parse().unwrap(),
        operator: Operator::Equals,
        values: vec![Value::Text("it's".into())],
    };
    let explanation = explained(&["d.id"], vec![condition]);
    let asked = explanation.explain_statement.unwrap();
    assert_eq!(asked.text, format!("EXPLAIN (FORMAT JSON) {}", explanation.statement.text));
    assert_eq!(asked.params, explanation.statement.params);
    assert!(!asked.text.contains("it's"), "{}", asked.text);
}

#[test]
fn join_to_a_filtered_cube_is_a_left_join() {
    let always = "{name: e, relationship: many_to_one, always: true, sql: '{a}.e = {e}.id'}";
    let cubes = CUBES.replacen("{name: e, relationship: many_to_one, sql: '{a}.e = {e}.id'}", always, 1);
    let policy = "policies: [{name: own, cubes: [e], row_filter: '{e}.id < 5'}]\n";
    for (policies, is_inner) in [("", true), (policy, false)] {
        let model = model_of(&format!("{cubes}{policies}"));
        let explanation = explained_by(&model, &["e.id"], Vec::new());
        assert_eq!(explanation.facts[0].joins[0].is_inner, is_inner, "{policies}");
        assert_eq!(explanation.statement.text.contains("INNER JOIN"), is_inner, "{}", explanation.statement.text);
    }
}
