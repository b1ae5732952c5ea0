//! Writes a graph as a Mermaid flowchart.
//!
//! In: a graph. Out: a flowchart from left to right. Characters with a meaning in Mermaid or HTML are written as entity
//! codes, so that a label cannot add nodes, links or markup.

use std::fmt::Write as _;

use crate::graph::{Graph, NodeKind};

/// Returns the text of a flowchart.
pub fn mermaid(graph: &Graph) -> String {
    let mut text = String::from("flowchart LR\n");
    for (index, node) in graph.nodes.iter().enumerate() {
        let (open, close) = match node.kind {
            NodeKind::Cube | NodeKind::Member | NodeKind::Unresolved => ("[", "]"),
            NodeKind::Metric => ("([", "])"),
            NodeKind::Table => ("[(", ")]"),
            NodeKind::Column => ("(", ")"),
            NodeKind::Policy => ("{{", "}}"),
        };
        let _ = writeln!(text, "  n{index}{open}\"{}\"{close}", escape(&node.label));
    }
    for edge in graph.drawn_edges() {
        let label = if edge.label.is_empty() { String::new() } else { format!("|\"{}\"|", escape(&edge.label)) };
        let _ = writeln!(text, "  n{} -->{label} n{}", edge.from, edge.to);
    }
    text
}

/// Replaces all characters except letters, digits and some signs by entity codes.
fn escape(label: &str) -> String {
    let mut text = String::new();
    for c in label.chars() {
        match c {
            c if c.is_alphanumeric() || matches!(c, ' ' | '.' | '_' | '-' | ',' | '*') => text.push(c),
            c if c.is_control() => text.push(' '),
            c => {
                let _ = write!(text, "#{};", u32::from(c));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::example;

    #[test]
    fn labels_cannot_add_syntax() {
        let mut graph = example(&["a\"]\n  evil --> n0", "<b>`#"], &[(0, 1), (1, 1)]);
        graph.edges[0].label = "many|one".to_owned();
        let expected = "flowchart LR\n  n0[\"a#34;#93;   evil --#62; n0\"]\n  n1[\"#60;b#62;#96;#35;\"]\n  \
                        n0 -->|\"many#124;one\"| n1\n";
        assert_eq!(mermaid(&graph), expected);
    }
}
