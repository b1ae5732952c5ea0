//! A directed graph with labels, before it is drawn.
//!
//! In: nodes and edges, whose order decides ties in the layout. Out: the graph, its roots and its reduced forms. Not
//! here: positions and formats.

/// The kind of a node, which decides its color.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeKind {
    Cube,
    Member,
    Metric,
    Table,
    Column,
    Policy,
    Unresolved,
}

impl NodeKind {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            NodeKind::Cube => "cube",
            NodeKind::Member => "member",
            NodeKind::Metric => "metric",
            NodeKind::Table => "table",
            NodeKind::Column => "column",
            NodeKind::Policy => "policy",
            NodeKind::Unresolved => "unresolved",
        }
    }
}

/// A node. Trees show its detail after the label, SVG shows it as the tooltip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub label: String,
    pub detail: String,
    pub kind: NodeKind,
}

/// An edge between two nodes, by their indexes. The label may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    pub from: usize,
    pub to: usize,
    pub label: String,
}

/// A graph to draw. Edges to nodes that do not exist and edges from a node to itself are not drawn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Graph {
    pub title: String,
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
}

impl Graph {
    /// Returns the edges that are drawn: their nodes exist, and differ.
    pub(crate) fn drawn_edges(&self) -> impl Iterator<Item = &Edge> {
        let count = self.nodes.len();
        self.edges.iter().filter(move |edge| edge.from < count && edge.to < count && edge.from != edge.to)
    }

    /// Returns the nodes without incoming edges. If some nodes cannot be reached from these, because they are in or
    /// behind a cycle, also returns one node for each such part, in the order of the nodes.
    pub fn roots(&self) -> Vec<usize> {
        let targets = self.targets();
        let mut is_target = vec![false; self.nodes.len()];
        self.drawn_edges().for_each(|edge| is_target[edge.to] = true);
        let mut roots: Vec<usize> = (0..self.nodes.len()).filter(|node| !is_target[*node]).collect();
        let mut is_met = vec![false; self.nodes.len()];
        roots.iter().for_each(|root| mark(*root, &targets, &mut is_met));
        for node in 0..self.nodes.len() {
            if !is_met[node] {
                roots.push(node);
                mark(node, &targets, &mut is_met);
            }
        }
        roots
    }

    /// Returns the targets of each node.
    fn targets(&self) -> Vec<Vec<usize>> {
        let mut targets = vec![Vec::new(); self.nodes.len()];
        self.drawn_edges().for_each(|edge| targets[edge.from].push(edge.to));
        targets
    }

    /// Keeps the first `nodes` nodes and the edges between them. Returns the number of removed nodes.
    pub fn truncate(&mut self, nodes: usize) -> usize {
        let removed = self.nodes.len().saturating_sub(nodes);
        self.nodes.truncate(nodes);
        let count = self.nodes.len();
        self.edges.retain(|edge| edge.from < count && edge.to < count);
        removed
    }
}

/// Marks a node and all nodes that can be reached from it.
fn mark(from: usize, targets: &[Vec<usize>], is_met: &mut [bool]) {
    let mut open = vec![from];
    while let Some(node) = open.pop() {
        if !std::mem::replace(&mut is_met[node], true) {
            open.extend(&targets[node]);
        }
    }
}

#[cfg(test)]
pub(crate) fn example(labels: &[&str], edges: &[(usize, usize)]) -> Graph {
    let node = |label: &&str| Node { label: (*label).to_owned(), detail: String::new(), kind: NodeKind::Cube };
    let edge = |(from, to): &(usize, usize)| Edge { from: *from, to: *to, label: String::new() };
    Graph {
        title: "example".to_owned(),
        nodes: labels.iter().map(node).collect(),
        edges: edges.iter().map(edge).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_is_reached_from_a_root() {
        assert_eq!(example(&["a", "b", "c"], &[(1, 0), (1, 2)]).roots(), [1]);
        assert_eq!(example(&["a", "b", "c", "d"], &[(0, 1), (1, 0), (2, 3)]).roots(), [2, 0]);
        assert_eq!(example(&["a"], &[(0, 0), (0, 7)]).roots(), [0]);
        assert_eq!(Graph::default().roots(), [0usize; 0]);
    }

    #[test]
    fn truncation_removes_edges_of_removed_nodes() {
        let mut graph = example(&["a", "b", "c"], &[(0, 1), (1, 2)]);
        assert_eq!((graph.truncate(2), graph.edges.len()), (1, 1));
        assert_eq!((graph.truncate(9), graph.nodes.len()), (0, 2));
    }
}
