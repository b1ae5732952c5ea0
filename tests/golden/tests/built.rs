//! Tests built models: queries read their tables, and policies apply as if the models were inlined.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use serde_json::json;
use terrane_compiler::model::{self, Model};
use terrane_compiler::project::{self, Built, Inputs, SourceTree};
use terrane_compiler::{Access, Authorized, SecurityContext, compile};
use terrane_golden_tests::case::{environment, read_query};
use terrane_golden_tests::duckdb_profile;

const MODELS: [(&str, &str); 5] = [
    ("clean", "{{ config(materialized='table') }} SELECT id, region, amount FROM raw.orders"),
    ("named", "SELECT * FROM (SELECT * FROM analytics.clean) AS c"),
    ("joined", "SELECT o.id, o.region, c.name FROM raw.orders o JOIN raw.customers c ON c.id = o.id"),
    ("inner_only", "{{ config(materialized='ephemeral') }} SELECT * FROM {{ ref('clean') }} WHERE amount > 0"),
    ("large", "SELECT * FROM {{ ref('inner_only') }} WHERE amount > 100"),
];

/// The cubes by name, each with the key that defines its rows.
const CUBES: [(&str, &str); 13] = [
    ("orders", "sql_table: raw.orders"),
    ("over_model", "sql_table: \"{{ ref('clean') }}\""),
    ("over_query", "sql: \"SELECT * FROM {{ ref('large') }} WHERE id > 1\""),
    ("by_name", "sql_table: analytics.clean"),
    ("by_name_in_capitals", "sql_table: ANALYTICS.Clean"),
    ("by_last_part", "sql_table: clean"),
    ("by_whole_name", "sql_table: shop.analytics.clean"),
    ("in_query", "sql: SELECT * FROM \\\"analytics\\\".\\\"clean\\\" WHERE amount > 1"),
    ("through_a_name", "sql_table: analytics.named"),
    ("of_joined", "sql_table: \"{{ ref('joined') }}\""),
    ("joined_by_name", "sql_table: analytics.joined"),
    ("gone", "sql_table: analytics.gone"),
    ("people", "sql_table: raw.people"),
];

fn build(policy_of: &str, built: Built) -> Model {
    let mut tree = SourceTree::default();
    tree.files.insert("service_project.yml".into(), "name: shop\n".into());
    for (name, text) in MODELS {
        tree.files.insert(format!("models/{name}.sql").into(), text.into());
    }
    let members = "    dimensions: [{name: id, type: number, sql: id, primary_key: true}, {name: region, type: string, sql: region}]\n    measures: [{name: count, type: count}]\n";
    for (name, rows) in CUBES {
        let rows = rows.replace("\\\"", "\"");
        tree.files.insert(
            format!("cubes/{name}.yml").into(),
            format!("cubes:\n  - name: {name}\n    {rows}\n{members}").into(),
        );
    }
    let policy = format!("policies:\n  - {{name: own, cubes: [{policy_of}], row_filter: \"{{region}} = 'EU'\"}}\n");
    tree.files.insert("policies/own.yml".into(), policy.into());
    let inputs = Inputs { warehouse: "duckdb".into(), ..Inputs::default() };
    let (mut definitions, mut problems) = project::read(&tree, &inputs);
    definitions.built = built;
    let (model, more) = model::build(&definitions);
    problems.extend(more);
    assert!(problems.iter().all(|problem| !problem.is_error()), "{problems:?}");
    model
}

fn current(models: &[&str]) -> Built {
    Built { current: models.iter().map(|name| (*name).into()).collect(), ..Built::default() }
}

fn outdated(relations: &[&str]) -> Built {
    Built { outdated: relations.iter().map(ToString::to_string).collect(), ..Built::default() }
}

/// Returns the closed cubes, and the other cubes that have row filters.
fn closed_and_filtered(model: &Model) -> (Vec<&str>, Vec<&str>) {
    let caller = SecurityContext::default();
    let access = Access::of(model, &caller);
    let names = |is_it: &dyn Fn(&model::Cube) -> bool| -> Vec<&str> {
        model.cubes.iter().filter(|cube| is_it(cube)).map(|cube| &*cube.name).collect()
    };
    (
        names(&|cube| access.is_closed(cube)),
        names(&|cube| !access.is_closed(cube) && access.row_filters(cube.id).next().is_some()),
    )
}

fn sql(model: &Model, cube: &str) -> String {
    let caller = SecurityContext::default();
    let query = read_query(&json!({"measures": [format!("{cube}.count")]})).unwrap();
    let authorized = Authorized::without_hooks(model, &caller);
    compile(&duckdb_profile(), &query, &authorized, &environment()).unwrap().text
}

#[test]
fn policy_on_a_table_applies_to_models_over_it() {
    let made_of_orders = [
        "by_last_part",
        "by_name",
        "by_name_in_capitals",
        "by_whole_name",
        "in_query",
        "joined_by_name",
        "of_joined",
        "over_model",
        "over_query",
        "through_a_name",
    ];
    for built in [Built::default(), current(&["clean", "named", "joined", "large"]), current(&["large"])] {
        let model = build("orders", built.clone());
        let (mut closed, filtered) = closed_and_filtered(&model);
        closed.sort_unstable();
        assert_eq!(closed, made_of_orders, "{built:?}");
        assert_eq!(filtered, ["orders"], "{built:?}");
    }
}

#[test]
fn outdated_relations_are_closed() {
    let model = build("people", Built::default());
    assert_eq!(closed_and_filtered(&model), (Vec::new(), vec!["people"]));
    let model = build("people", outdated(&["analytics.gone"]));
    assert_eq!(closed_and_filtered(&model), (vec!["gone"], vec!["people"]));
    // The outdated relation can be read only by its name. A `ref` to the model inlines the current definition.
    let model = build("people", outdated(&["analytics.clean"]));
    let (mut closed, _) = closed_and_filtered(&model);
    closed.sort_unstable();
    let by_name = ["by_last_part", "by_name", "by_name_in_capitals", "by_whole_name", "in_query", "through_a_name"];
    assert_eq!(closed, by_name);
    // If the builds are unknown, all cubes are closed except those that the policy itself names.
    let model = build("people", Built { is_unknown: true, ..Built::default() });
    let (closed, filtered) = closed_and_filtered(&model);
    assert!(closed.contains(&"gone") && closed.contains(&"orders") && filtered == ["people"], "{closed:?}");
}

#[test]
fn policy_on_a_model_and_its_relation_apply_to_each_other() {
    // `joined` reads two tables. The policy does not protect them, but protects the relation that was built from them.
    let model = build("of_joined", Built::default());
    assert_eq!(closed_and_filtered(&model), (vec!["joined_by_name"], vec!["of_joined"]));
    let model = build("joined_by_name", current(&["joined"]));
    assert_eq!(closed_and_filtered(&model), (vec!["of_joined"], vec!["joined_by_name"]));
    // Cubes that read the relation by a different name have the same rows, and the same row filter.
    let model = build("by_name", Built::default());
    let (closed, mut filtered) = closed_and_filtered(&model);
    filtered.sort_unstable();
    assert_eq!(filtered, ["by_last_part", "by_name", "by_name_in_capitals", "by_whole_name", "orders"], "{closed:?}");
    for cube in ["over_model", "over_query", "in_query", "through_a_name", "of_joined"] {
        assert!(closed.contains(&cube), "{cube}: {closed:?}");
    }
}

#[test]
fn built_relations_are_read_and_filtered() {
    let model = build("over_model", current(&["clean"]));
    let text = sql(&model, "over_model");
    assert!(text.contains("\"analytics\".\"clean\"") && !text.contains("raw.orders"), "{text}");
    assert!(text.contains("= 'EU'"), "{text}");
    let model = build("people", current(&["clean"]));
    let text = sql(&model, "over_query");
    assert!(
        text.contains("\"analytics\".\"clean\"") && text.contains("amount > 0") && text.contains("amount > 100"),
        "{text}"
    );
    let model = build("people", current(&["large"]));
    let text = sql(&model, "over_query");
    assert!(text.contains("\"analytics\".\"large\"") && !text.contains("amount > 0"), "{text}");
    let model = build("people", outdated(&["analytics.large"]));
    let text = sql(&model, "over_query");
    assert!(!text.contains("\"analytics\"") && text.contains("raw.orders"), "{text}");
}
