//! Draws a graph as a tree of lines.
//!
//! In: a graph and the nodes to begin with. Out: a tree for a terminal. The children of a node are only shown at its
//! first occurrence, so cycles end, and the size of the tree is bounded by the numbers of nodes and edges.

use terrane_terminal::Tree;

use crate::graph::Graph;

/// The direction in which the tree follows edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Follows edges from source to target.
    Forward,
    Backward,
}

/// Draws the nodes below each start. After `max_lines` nodes, each open level ends with the number of its omitted
/// nodes.
pub fn forest(graph: &Graph, starts: &[usize], direction: Direction, max_lines: usize) -> Vec<Tree> {
    let mut next = vec![Vec::new(); graph.nodes.len()];
    for edge in graph.drawn_edges() {
        match direction {
            Direction::Forward => next[edge.from].push((edge.to, &*edge.label)),
            Direction::Backward => next[edge.to].push((edge.from, &*edge.label)),
        }
    }
    let mut drawing = Drawing { graph, next: &next, is_shown: vec![false; graph.nodes.len()], lines: max_lines };
    starts.iter().filter(|start| **start < graph.nodes.len()).filter_map(|start| drawing.node(*start, "")).collect()
}

struct Drawing<'g> {
    graph: &'g Graph,
    /// For each node, the nodes below it with the labels of the edges.
    next: &'g [Vec<(usize, &'g str)>],
    is_shown: Vec<bool>,
    /// The number of lines that may still be drawn.
    lines: usize,
}

impl Drawing<'_> {
    /// Draws a node and everything below it. Returns `None` if the limit is reached.
    fn node(&mut self, at: usize, edge: &str) -> Option<Tree> {
        self.lines = self.lines.checked_sub(1)?;
        let node = &self.graph.nodes[at];
        let mut line = node.label.clone();
        if !edge.is_empty() {
            line.push_str(&format!("  {edge}"));
        }
        let below = &self.next[at];
        let is_repeated = std::mem::replace(&mut self.is_shown[at], true);
        let note = if is_repeated && !below.is_empty() { "shown above" } else { "" };
        let notes: Vec<&str> = [&*node.detail, note].into_iter().filter(|note| !note.is_empty()).collect();
        if !notes.is_empty() {
            line.push_str(&format!("  ({})", notes.join(", ")));
        }
        if is_repeated {
            return Some(Tree::new(line));
        }
        let mut tree = Tree::new(line);
        for (index, (child, label)) in below.iter().enumerate() {
            match self.node(*child, label) {
                Some(child) => tree.push(child),
                None => {
                    tree.push(Tree::new(format!("... {} more", below.len() - index)));
                    break;
                }
            }
        }
        Some(tree)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::example;

    fn text(graph: &Graph, starts: &[usize], direction: Direction, lines: usize) -> String {
        forest(graph, starts, direction, lines).iter().map(Tree::to_string).collect()
    }

    #[test]
    fn shared_nodes_are_opened_once_and_cycles_end() {
        let graph = example(&["a", "b", "c"], &[(0, 1), (0, 2), (1, 2), (2, 0)]);
        let expected = "a\n├─ b\n│  └─ c\n│     └─ a  (shown above)\n└─ c  (shown above)\n";
        assert_eq!(text(&graph, &[0], Direction::Forward, 99), expected);
        assert_eq!(text(&graph, &[2], Direction::Backward, 2), "c\n├─ a\n│  └─ ... 1 more\n└─ ... 1 more\n");
    }

    #[test]
    fn long_chains_are_drawn_and_unknown_starts_are_not() {
        let labels = vec!["x"; 2_000];
        let edges: Vec<(usize, usize)> = (1..2_000).map(|to| (to - 1, to)).collect();
        let graph = example(&labels, &edges);
        assert_eq!(text(&graph, &[0], Direction::Forward, 500).lines().count(), 501);
        assert_eq!(text(&graph, &[5_000], Direction::Forward, 500), "");
    }
}
