//! Tests models in the dependency graph: models that cannot be parsed, and tables that models name directly.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use terrane_compiler::model::build;
use terrane_compiler::project::{Inputs, SourceTree, read};
use terrane_lineage::graph::{DependencyGraph, Node};

fn graph(files: &[(&str, &str)]) -> DependencyGraph {
    let mut tree = SourceTree::default();
    tree.files.insert("service_project.yml".into(), "name: shop\n".into());
    tree.files.extend(files.iter().map(|(path, text)| ((*path).into(), (*text).into())));
    let inputs = Inputs { warehouse: "duckdb".into(), ..Inputs::default() };
    let (definitions, mut diagnostics) = read(&tree, &inputs);
    let (model, more) = build(&definitions);
    diagnostics.extend(more);
    DependencyGraph::build(&definitions, &model, &diagnostics)
}

fn node<'g>(graph: &'g DependencyGraph, id: &str) -> &'g Node {
    graph.nodes.iter().find(|node| &*node.unique_id == id).unwrap_or_else(|| panic!("no {id}"))
}

#[test]
fn model_with_an_unknown_reference_is_a_node_with_its_error() {
    let graph = graph(&[
        ("models/a.sql", "SELECT * FROM {{ ref('nope') }}"),
        ("models/b.sql", "SELECT * FROM {{ source('no', 'such') }}"),
    ]);
    for (id, word) in [("model.shop.a", "nope"), ("model.shop.b", "no")] {
        let node = node(&graph, id);
        assert!(!node.compiled);
        assert!(node.error.as_ref().unwrap().contains(word), "{:?}", node.error);
    }
}

#[test]
fn declared_table_has_an_edge_to_its_model() {
    let graph = graph(&[
        ("sources/raw.yml", "sources:\n  - name: raw\n    schema: raw\n    tables: [{name: a}, {name: b}]\n"),
        ("models/m.sql", "WITH b AS (SELECT 1 AS x) SELECT * FROM raw.a, b"),
    ]);
    let at = |id: &str| graph.nodes.iter().position(|node| &*node.unique_id == id).unwrap() as u32;
    let model = at("model.shop.m");
    assert!(graph.edges.contains(&(at("source.shop.raw.a"), model)));
    assert!(!graph.edges.contains(&(at("source.shop.raw.b"), model)));
}
