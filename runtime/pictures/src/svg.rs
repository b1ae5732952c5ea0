//! Draws a graph as SVG.
//!
//! In: a graph. Out: an SVG element for a file of its own, or for a page that contains [`STYLE`]. The element refers to
//! nothing outside and contains no script. Text is escaped. Sizes depend only on the labels, so the output does not
//! depend on the fonts of a machine.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar as _;

use crate::graph::{Graph, Node, NodeKind};
use crate::layout::{Route, Size, layout};

/// The width of a character of the monospaced font at a font size of 12 pixels.
const CHAR_WIDTH: f64 = 7.3;
/// The width of a character in the label of an edge, in pixels.
const SMALL_CHAR_WIDTH: f64 = 6.0;
const PADDING: f64 = 10.0;
const MARGIN: f64 = 12.0;
const NODE_HEIGHT: f64 = 28.0;
/// The height that a node needs for each edge with a label.
const PORT: f64 = 14.0;
const MAX_NODE_HEIGHT: f64 = 420.0;
/// The largest width of a node's label, in terminal columns. Longer labels are cut.
const MAX_LABEL: usize = 44;
const MAX_EDGE_LABEL: usize = 20;

/// The style of all pictures, for light and dark pages.
pub const STYLE: &str = include_str!("style.css");

/// The form of an SVG element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SvgForm {
    /// A document with its own style.
    File,
    /// A part of a page that contains [`STYLE`].
    Inline,
}

/// Draws a graph in layers from left to right.
pub fn svg(graph: &Graph, form: SvgForm) -> String {
    let edges: Vec<(usize, usize)> = graph.drawn_edges().map(|edge| (edge.from, edge.to)).collect();
    let longest = graph.drawn_edges().map(|edge| width(&cut(&edge.label, MAX_EDGE_LABEL))).max().unwrap_or(0);
    let sizes = sizes(graph, &edges, longest > 0);
    let layout = layout(&sizes, &edges, longest as f64 * SMALL_CHAR_WIDTH);
    let mut body = String::new();
    for (edge, route) in graph.drawn_edges().zip(&layout.edges) {
        write_edge(&mut body, route, &cut(&edge.label, MAX_EDGE_LABEL));
    }
    for ((node, size), corner) in graph.nodes.iter().zip(&sizes).zip(&layout.nodes) {
        write_node(&mut body, node, *size, *corner);
    }
    framed(&graph.title, (layout.width, layout.height), &body, form)
}

/// Wraps a picture with a margin in an SVG element.
pub(crate) fn framed(title: &str, (width, height): Size, body: &str, form: SvgForm) -> String {
    let (width, height) = (number(width + 2.0 * MARGIN), number(height + 2.0 * MARGIN));
    let title = escape(title);
    let (style, namespace) = match form {
        SvgForm::File => {
            let paper = format!("<rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>");
            (format!("<style>{STYLE}</style>{paper}"), " xmlns=\"http://www.w3.org/2000/svg\"")
        }
        SvgForm::Inline => (String::new(), ""),
    };
    format!(
        "<svg{namespace} class=\"picture\" role=\"img\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\"><title>{title}</title>{style}<g transform=\"translate({MARGIN} {MARGIN})\">\n\
         {body}</g></svg>\n"
    )
}

fn sizes(graph: &Graph, edges: &[(usize, usize)], has_labels: bool) -> Vec<Size> {
    let (mut incoming, mut outgoing) = (vec![0_usize; graph.nodes.len()], vec![0_usize; graph.nodes.len()]);
    for (from, to) in edges {
        outgoing[*from] += 1;
        incoming[*to] += 1;
    }
    let ports = incoming.into_iter().zip(outgoing).map(|(incoming, outgoing)| incoming.max(outgoing));
    let height = |ports: usize| (PORT * (ports as f64 + 1.0)).clamp(NODE_HEIGHT, MAX_NODE_HEIGHT);
    let text = |node: &Node| width(&cut(&node.label, MAX_LABEL)) as f64 * CHAR_WIDTH + 2.0 * PADDING;
    let heights = ports.map(|ports| if has_labels { height(ports) } else { NODE_HEIGHT });
    graph.nodes.iter().zip(heights).map(|(node, height)| (text(node).ceil(), height)).collect()
}

fn write_node(body: &mut String, node: &Node, (width, height): Size, (x, y): (f64, f64)) {
    let kind = node.kind.as_str();
    let detail = if node.detail.is_empty() { String::new() } else { format!(": {}", node.detail) };
    let tooltip = escape(&format!("{}{detail}", node.label));
    let radius = match node.kind {
        NodeKind::Metric => 14.0,
        NodeKind::Table => 0.0,
        _ => 5.0,
    };
    let (text_x, text_y) = (number(x + PADDING), number(y + height / 2.0 + 4.0));
    let _ = writeln!(
        body,
        "<g class=\"node {kind}\"><title>{tooltip}</title><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" \
         rx=\"{radius}\"/><text x=\"{text_x}\" y=\"{text_y}\">{}</text></g>",
        number(x),
        number(y),
        number(width),
        number(height),
        escape(&cut(&node.label, MAX_LABEL))
    );
}

/// Draws an edge: curves between layers, straight lines across layers, the arrow head and the label.
fn write_edge(body: &mut String, route: &Route, label: &str) {
    let (Some(first), Some(last)) = (route.points.first(), route.points.last()) else { return };
    let mut path = format!("M{} {}", number(first.0), number(first.1));
    for pair in route.points.windows(2).enumerate() {
        let (index, [from, to]) = pair else { continue };
        if index % 2 == 1 {
            let _ = write!(path, "H{}", number(to.0));
            continue;
        }
        let middle = number(f64::midpoint(from.0, to.0));
        let (from_y, to_x, to_y) = (number(from.1), number(to.0), number(to.1));
        let _ = write!(path, "C{middle} {from_y} {middle} {to_y} {to_x} {to_y}");
    }
    let _ = writeln!(body, "<path class=\"edge\" d=\"{path}\"/>");
    let (tip, back) = if route.is_turned { (first, 7.0) } else { (last, -7.0) };
    let (x, y) = (number(tip.0), number(tip.1));
    let side = number(tip.0 + back);
    let (above, below) = (number(tip.1 - 3.5), number(tip.1 + 3.5));
    let _ = writeln!(body, "<path class=\"head\" d=\"M{x} {y}L{side} {above}L{side} {below}Z\"/>");
    if !label.is_empty() {
        let anchor = if route.is_turned { "start" } else { "end" };
        let (x, y) = (number(tip.0 + back * 1.4), number(tip.1 - 3.0));
        let _ = writeln!(
            body,
            "<text class=\"label\" x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{}</text>",
            escape(label)
        );
    }
}

/// Writes a coordinate with at most one decimal place.
pub(crate) fn number(value: f64) -> String {
    let rounded = (value * 10.0).round() / 10.0;
    // Negative zero would be written with its sign.
    format!("{}", if rounded == 0.0 { 0.0 } else { rounded })
}

/// Escapes text for elements and attributes, and replaces characters that XML does not allow.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c if terrane_terminal::is_unsafe(c) || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Returns the width of a string in columns of a monospaced font.
fn width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(1)).sum()
}

/// Truncates a string to a width in columns.
fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut left = columns - 1;
    let fits = |c: &char| {
        let width = c.width().unwrap_or(1);
        let is_in = width <= left;
        left = left.saturating_sub(width);
        is_in
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::example;

    #[test]
    fn labels_are_escaped_and_shortened() {
        let long = "x".repeat(60);
        let drawn = svg(&example(&["<script>alert(\"1\")</script>&\u{1}", &long], &[(0, 1)]), SvgForm::File);
        assert!(!drawn.contains("<script") && !drawn.contains('\u{1}'), "{drawn}");
        assert!(drawn.contains("&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;\u{fffd}"), "{drawn}");
        assert!(drawn.contains(&format!(">{}…</text>", "x".repeat(43))), "{drawn}");
    }

    #[test]
    fn same_graph_has_the_same_picture() {
        let edges = [(0, 1), (1, 2), (2, 0), (0, 2)];
        let drawn = || svg(&example(&["a", "電子", "c"], &edges), SvgForm::Inline);
        assert_eq!(drawn(), drawn());
        assert_eq!(drawn().matches("class=\"edge\"").count(), 4);
        assert!(!drawn().contains("<style") && !drawn().contains("href"), "{}", drawn());
    }

    #[test]
    fn empty_graphs_are_drawn() {
        let drawn = svg(&Graph::default(), SvgForm::File);
        assert!(drawn.starts_with("<svg xmlns=") && drawn.contains("width=\"24\""), "{drawn}");
    }

    #[test]
    fn each_kind_has_a_color() {
        use NodeKind::{Column, Cube, Member, Metric, Policy, Table, Unresolved};
        for kind in [Cube, Member, Metric, Table, Column, Policy, Unresolved] {
            assert!(STYLE.contains(&format!(".{} rect", kind.as_str())), "{kind:?}");
        }
    }
}
