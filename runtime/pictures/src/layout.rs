//! Assigns positions to the nodes of a graph in layers from left to right, by the method of Sugiyama.
//!
//! In: sizes of nodes, and edges. Out: a position for each node and the points of each edge. For the layout, the edges
//! that close cycles are reversed. An edge over several layers gets a passage between the nodes of each layer. The
//! order of the input decides all ties. Not here: shapes and text.

use std::ops::Range;

const LAYER_GAP: f64 = 56.0;
const NODE_GAP: f64 = 14.0;
/// The height of a passage, in which an edge crosses a layer.
const PASSAGE: f64 = 10.0;
const SWEEPS: usize = 6;
/// The largest number of passages of one graph. Further long edges are drawn as straight connections.
const MAX_PASSAGES: usize = 20_000;

/// The width and height of a node.
pub(crate) type Size = (f64, f64);

/// A graph with positions.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// The upper left corner of each node.
    pub(crate) nodes: Vec<(f64, f64)>,
    pub(crate) edges: Vec<Route>,
}

/// The points of an edge from its left node to its right node.
#[derive(Debug, Default)]
pub(crate) struct Route {
    /// True if the edge was reversed for the layout, so that its source is the right node.
    pub(crate) is_turned: bool,
    /// Pairs of points. Each pair begins where the edge leaves a layer, and ends where the edge enters the next one.
    pub(crate) points: Vec<(f64, f64)>,
}

/// Lays out a graph. `gap` is additional space between layers for labels of edges.
pub(crate) fn layout(sizes: &[Size], edges: &[(usize, usize)], gap: f64) -> Layout {
    let turned = back_edges(sizes.len(), edges);
    let forward: Vec<(usize, usize)> =
        edges.iter().zip(&turned).map(|((from, to), turn)| if *turn { (*to, *from) } else { (*from, *to) }).collect();
    let mut layers = Layers::new(sizes, &forward);
    layers.order();
    layers.place(gap);
    let routes = (0..edges.len()).map(|edge| Route { is_turned: turned[edge], points: layers.route(edge, &forward) });
    let edges = routes.collect();
    let corner = |node: usize| (layers.x[layers.layer_of[node]].start, layers.y[node] - layers.size(node) / 2.0);
    Layout {
        width: layers.x.last().map_or(0.0, |last| last.end),
        height: (0..layers.y.len()).map(|item| layers.y[item] + layers.size(item) / 2.0).fold(0.0, f64::max),
        nodes: (0..sizes.len()).map(corner).collect(),
        edges,
    }
}

/// Returns for each edge whether it closes a cycle: it leads to a node on the current path of a depth-first search.
fn back_edges(nodes: usize, edges: &[(usize, usize)]) -> Vec<bool> {
    let mut outgoing = vec![Vec::new(); nodes];
    edges.iter().enumerate().for_each(|(index, (from, _))| outgoing[*from].push(index));
    let (mut is_back, mut is_met, mut is_open) = (vec![false; edges.len()], vec![false; nodes], vec![false; nodes]);
    for start in 0..nodes {
        let mut path = if std::mem::replace(&mut is_met[start], true) { Vec::new() } else { vec![(start, 0)] };
        is_open[start] = !path.is_empty();
        while let Some((node, next)) = path.last_mut() {
            let Some(edge) = outgoing[*node].get(*next) else {
                is_open[*node] = false;
                path.pop();
                continue;
            };
            *next += 1;
            let target = edges[*edge].1;
            if is_open[target] {
                is_back[*edge] = true;
            } else if !std::mem::replace(&mut is_met[target], true) {
                is_open[target] = true;
                path.push((target, 0));
            }
        }
    }
    is_back
}

/// The layers of a graph. The items are the nodes, followed by the passages of long edges.
struct Layers<'g> {
    sizes: &'g [Size],
    layer_of: Vec<usize>,
    /// The items of each layer from top to bottom.
    items: Vec<Vec<usize>>,
    left: Vec<Vec<usize>>,
    right: Vec<Vec<usize>>,
    /// The passages of each edge.
    passages: Vec<Range<usize>>,
    /// The horizontal extent of each layer.
    x: Vec<Range<f64>>,
    /// The center of each item.
    y: Vec<f64>,
}

impl<'g> Layers<'g> {
    fn new(sizes: &'g [Size], edges: &[(usize, usize)]) -> Self {
        let mut layer_of = longest_paths(sizes.len(), edges);
        let (mut left, mut right) = (vec![Vec::new(); sizes.len()], vec![Vec::new(); sizes.len()]);
        let mut passages = Vec::new();
        for (from, to) in edges {
            let between = layer_of[*from] + 1..layer_of[*to];
            let begin = layer_of.len();
            let between = if begin + between.len() > sizes.len() + MAX_PASSAGES { 0..0 } else { between };
            let mut last = *from;
            for layer in between {
                let item = layer_of.len();
                layer_of.push(layer);
                left.push(vec![last]);
                right.push(Vec::new());
                right[last].push(item);
                last = item;
            }
            right[last].push(*to);
            left[*to].push(last);
            passages.push(begin..layer_of.len());
        }
        let mut items = vec![Vec::new(); layer_of.iter().max().map_or(0, |last| last + 1)];
        layer_of.iter().enumerate().for_each(|(item, layer)| items[*layer].push(item));
        let y = vec![0.0; layer_of.len()];
        Layers { sizes, layer_of, items, left, right, passages, x: Vec::new(), y }
    }

    fn size(&self, item: usize) -> f64 {
        self.sizes.get(item).map_or(PASSAGE, |size| size.1)
    }

    /// Orders the items of each layer by the mean position of their neighbors, alternately from the left and the right.
    fn order(&mut self) {
        let mut position = vec![0.0; self.layer_of.len()];
        for sweep in 0..=SWEEPS {
            for index in 0..self.items.len() {
                let layer = if sweep % 2 == 0 { index } else { self.items.len() - 1 - index };
                let neighbours = if sweep % 2 == 0 { &self.left } else { &self.right };
                let mut items = std::mem::take(&mut self.items[layer]);
                let wanted = |item: &usize| mean(&neighbours[*item], &position).unwrap_or(position[*item]);
                let mut keyed: Vec<(f64, usize)> = items.iter().map(|item| (wanted(item), *item)).collect();
                if sweep > 0 || layer > 0 {
                    keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
                }
                items.clear();
                for (place, (_, item)) in keyed.into_iter().enumerate() {
                    position[item] = place as f64;
                    items.push(item);
                }
                self.items[layer] = items;
            }
        }
    }

    /// Assigns coordinates: layers from left to right, items near the mean of their neighbors.
    fn place(&mut self, gap: f64) {
        let mut x = 0.0;
        for items in &self.items {
            let widths = items.iter().filter_map(|item| self.sizes.get(*item)).map(|size| size.0);
            let end = x + widths.fold(0.0, f64::max);
            self.x.push(x..end);
            x = end + LAYER_GAP + gap;
        }
        (0..self.items.len()).for_each(|layer| self.stack(layer, |_, _| None));
        for sweep in 0..SWEEPS {
            for index in 0..self.items.len() {
                let layer = if sweep % 2 == 0 { index } else { self.items.len() - 1 - index };
                self.stack(layer, |layers, item| {
                    mean(if sweep % 2 == 0 { &layers.left[item] } else { &layers.right[item] }, &layers.y)
                });
            }
        }
        let top = (0..self.y.len()).map(|item| self.y[item] - self.size(item) / 2.0).fold(f64::MAX, f64::min);
        self.y.iter_mut().for_each(|y| *y -= top);
    }

    /// Moves the items of a layer towards their wanted centers, while order and gaps are preserved. Computes one
    /// placement by pushing items down from the top, and one by pushing items up from the bottom. Both have the gaps,
    /// and so has their mean, which is the result.
    fn stack(&mut self, layer: usize, wanted: impl Fn(&Self, usize) -> Option<f64>) {
        let items = std::mem::take(&mut self.items[layer]);
        let wanted: Vec<f64> = items.iter().map(|item| wanted(self, *item).unwrap_or(self.y[*item])).collect();
        let distance = |a: usize, b: usize| (self.size(items[a]) + self.size(items[b])) / 2.0 + NODE_GAP;
        let (mut down, mut up) = (wanted.clone(), wanted);
        for at in 1..items.len() {
            down[at] = down[at].max(down[at - 1] + distance(at - 1, at));
        }
        for at in (1..items.len()).rev() {
            up[at - 1] = up[at - 1].min(up[at] - distance(at - 1, at));
        }
        for (at, item) in items.iter().enumerate() {
            self.y[*item] = f64::midpoint(down[at], up[at]);
        }
        self.items[layer] = items;
    }

    /// Returns the points of an edge from its left node through its passages to its right node.
    fn route(&self, edge: usize, edges: &[(usize, usize)]) -> Vec<(f64, f64)> {
        let (from, to) = edges[edge];
        let end = |node: usize| self.x[self.layer_of[node]].start + self.sizes[node].0;
        let mut points =
            vec![(end(from), self.port(from, &self.right, self.passages[edge].clone().next().unwrap_or(to)))];
        for item in self.passages[edge].clone() {
            let extent = &self.x[self.layer_of[item]];
            points.extend([(extent.start, self.y[item]), (extent.end, self.y[item])]);
        }
        let last = self.passages[edge].clone().next_back().unwrap_or(from);
        points.push((self.x[self.layer_of[to]].start, self.port(to, &self.left, last)));
        points
    }

    /// Returns the height at which a node is connected with a neighbor. The connections of a side are spread evenly, in
    /// the order of the neighbors.
    fn port(&self, node: usize, neighbours: &[Vec<usize>], neighbour: usize) -> f64 {
        let mut others = neighbours[node].clone();
        others.sort_by(|a, b| self.y[*a].total_cmp(&self.y[*b]).then(a.cmp(b)));
        let place = others.iter().position(|other| *other == neighbour).unwrap_or(0);
        let share = (place as f64 + 1.0) / (others.len() as f64 + 1.0) - 0.5;
        self.y[node] + share * self.size(node)
    }
}

/// Returns the layer of each node, which is the length of the longest path to it. Nodes without inputs are moved to the
/// layer before their nearest reader.
fn longest_paths(nodes: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let (mut layer, mut inputs) = (vec![0; nodes], vec![0_usize; nodes]);
    let mut readers = vec![Vec::new(); nodes];
    for (from, to) in edges {
        inputs[*to] += 1;
        readers[*from].push(*to);
    }
    let sources: Vec<usize> = (0..nodes).filter(|node| inputs[*node] == 0).collect();
    let mut open = sources.clone();
    while let Some(node) = open.pop() {
        for reader in &readers[node] {
            layer[*reader] = layer[*reader].max(layer[node] + 1);
            inputs[*reader] -= 1;
            if inputs[*reader] == 0 {
                open.push(*reader);
            }
        }
    }
    for source in sources {
        layer[source] = readers[source].iter().map(|reader| layer[*reader] - 1).min().unwrap_or(0);
    }
    layer
}

fn mean(of: &[usize], values: &[f64]) -> Option<f64> {
    (!of.is_empty()).then(|| of.iter().map(|item| values[*item]).sum::<f64>() / of.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = (80.0, 28.0);

    #[test]
    fn nodes_do_not_overlap_and_edges_lead_to_the_right() {
        let edges = [(0, 1), (0, 2), (1, 3), (2, 3), (0, 3), (4, 3), (3, 5), (5, 0)];
        let layout = layout(&[SIZE; 7], &edges, 0.0);
        for (a, first) in layout.nodes.iter().enumerate() {
            for second in &layout.nodes[a + 1..] {
                let is_apart = (first.0 - second.0).abs() >= SIZE.0 || (first.1 - second.1).abs() >= SIZE.1;
                assert!(is_apart, "{:?}", layout.nodes);
            }
            assert!(first.0 >= 0.0 && first.1 >= 0.0 && first.0 + SIZE.0 <= layout.width + 0.1);
            assert!(first.1 + SIZE.1 <= layout.height + 0.1, "{:?} {}", layout.nodes, layout.height);
        }
        let turned: Vec<bool> = layout.edges.iter().map(|edge| edge.is_turned).collect();
        assert_eq!(turned, [false, false, false, false, false, false, false, true]);
        for edge in &layout.edges {
            assert!(edge.points.len() % 2 == 0 && edge.points.is_sorted_by(|a, b| a.0 <= b.0), "{edge:?}");
        }
    }

    #[test]
    fn long_edges_pass_each_layer() {
        let layout = layout(&[SIZE; 4], &[(0, 1), (1, 2), (2, 3), (0, 3)], 0.0);
        assert_eq!(layout.edges[3].points.len(), 6);
        assert_eq!(layout.edges[0].points.len(), 2);
    }

    #[test]
    fn empty_and_single_graphs_have_a_layout() {
        assert_eq!(layout(&[], &[], 0.0).width, 0.0);
        assert_eq!(layout(&[SIZE], &[], 0.0).nodes, [(0.0, 0.0)]);
    }
}
