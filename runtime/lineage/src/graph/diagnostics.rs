//! Assigns diagnostics to the nodes that they are about.
//!
//! In: the places where the source texts of nodes begin, and diagnostics. Out: errors of nodes. A diagnostic belongs to
//! the node whose text begins last before the diagnostic's place in the file.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::{DependencyGraph, NodeType};
use terrane_compiler::diagnostic::{Code, Diagnostic, Span};

/// The nodes by the places where their source texts begin: file, line and column.
pub(super) type Places = BTreeMap<(Arc<str>, u32, u32), u32>;

/// Adds diagnostics to their nodes, and returns the nodes in cycles.
pub(super) fn add(graph: &mut DependencyGraph, places: &Places, diagnostics: &[Diagnostic]) -> HashSet<u32> {
    let mut cyclic = HashSet::new();
    let by_path = paths(graph);
    for diagnostic in diagnostics.iter().filter(|diagnostic| diagnostic.is_error()) {
        let error: Arc<str> = diagnostic.message.as_str().into();
        let nodes = match cycle_names(diagnostic) {
            Some(names) => {
                let nodes: Vec<u32> =
                    names.filter_map(|name| by_path.get(&(diagnostic.code, name.to_owned())).copied()).collect();
                cyclic.extend(nodes.iter().copied());
                nodes
            }
            None => diagnostic.span.as_ref().and_then(|span| node_at(places, span)).into_iter().collect(),
        };
        for at in nodes {
            graph.nodes[at as usize].error.get_or_insert_with(|| Arc::clone(&error));
        }
    }
    for at in 0..graph.nodes.len() {
        // A model whose SQL has an error is not compiled.
        let node = &graph.nodes[at];
        if node.node_type == NodeType::Model && node.error.is_some() {
            graph.nodes[at].compiled = false;
        }
    }
    for node in graph.nodes.iter_mut().filter(|node| !node.compiled && node.error.is_none()) {
        node.error = Some("a definition that it depends on has an error".into());
    }
    cyclic
}

fn node_at(places: &Places, span: &Span) -> Option<u32> {
    let place = (Arc::clone(&span.file), span.line, span.column);
    let (begins, at) = places.range(..=place).next_back()?;
    (begins.0 == span.file).then_some(*at)
}

/// Returns the names on the path of a cycle.
fn cycle_names(diagnostic: &Diagnostic) -> Option<impl Iterator<Item = &str>> {
    let is_cycle = matches!(diagnostic.code, Code::ModelCycle | Code::ExtendsCycle | Code::ReferenceCycle);
    is_cycle.then(|| diagnostic.path.iter().map(|step| &*step.name))
}

/// Returns the nodes by the names that the paths of cycles use: `orders.revenue`, `orders`, `revenue`.
fn paths(graph: &DependencyGraph) -> HashMap<(Code, String), u32> {
    let named = (0u32..).zip(&graph.nodes).filter_map(|(at, node)| {
        let code = match node.node_type {
            NodeType::Model => Code::ModelCycle,
            NodeType::Cube => Code::ExtendsCycle,
            NodeType::Measure | NodeType::Dimension | NodeType::Metric => Code::ReferenceCycle,
            NodeType::Source | NodeType::SourceTable => return None,
        };
        // An id is `type.project.name`. Neither the type nor the name of a project contains a dot.
        let name = node.unique_id.splitn(3, '.').nth(2)?;
        Some(((code, name.to_owned()), at))
    });
    named.collect()
}
