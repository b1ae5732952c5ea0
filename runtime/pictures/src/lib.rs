//! Pictures of graphs and numbers: trees, bars and lines for terminals, SVG and Mermaid for documents.
//!
//! In: graphs of labelled nodes, series, histograms. Out: text. Equal input gives equal output, byte by byte. Labels
//! may contain any characters, because each format escapes them. Not here: the model, lineage and callers (the command
//! line makes graphs of them), files, and the page around a picture.

mod chart;
mod graph;
mod layout;
mod mermaid;
mod plot;
mod svg;
mod tree;

pub use chart::{SeriesPoint, histogram, series};
pub use graph::{Edge, Graph, Node, NodeKind};
pub use mermaid::mermaid;
pub use plot::{Glyphs, bar, sparkline};
pub use svg::{STYLE, SvgForm, svg};
pub use tree::{Direction, forest};
