//! Graphs of a project as pictures: on the terminal, as SVG and as Mermaid.
//!
//! In: a graph of the model or of the lineage. Out: a tree on standard output, or a picture in a file. Not here: layout
//! and formats (`terrane_pictures`).

pub(crate) mod join_graph;
pub(crate) mod member_lineage;

use terrane_pictures::{Direction, Glyphs, Graph, SvgForm, forest, mermaid, svg};

use crate::commands::{Terminal, print, print_error};
use crate::failure::Failure;
use crate::output_file::OutputFile;
use crate::report::plural;

/// The largest number of nodes of a picture. Larger pictures are not readable.
const MAX_NODES: usize = 400;
/// The largest number of lines of a tree.
const MAX_LINES: usize = 2_000;

/// The form of a graph. The default is a tree, of ASCII characters if standard output is not a terminal with UTF-8.
#[derive(Debug, clap::Args)]
#[group(id = "picture", multiple = false)]
pub struct PictureArguments {
    /// Draw an SVG picture into this file; an existing file is replaced
    #[arg(long, value_name = "FILE")]
    pub svg: Option<OutputFile>,
    /// Print a flowchart in the language of Mermaid
    #[arg(long)]
    pub mermaid: bool,
    /// Print the nodes and edges as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// The cases in which a command draws bars and lines beside its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum PlotWhen {
    /// On a terminal with UTF-8
    Auto,
    Always,
    Never,
}

impl PlotWhen {
    /// Returns the characters to draw with; `None` for no drawing.
    pub(crate) fn glyphs(self, terminal: Terminal) -> Option<Glyphs> {
        match self {
            PlotWhen::Never => None,
            PlotWhen::Auto => Some(Glyphs::Blocks).filter(|glyphs| terminal.glyphs == *glyphs),
            // A file or a pipe can contain all characters.
            PlotWhen::Always if !terminal.is_stdout_terminal => Some(Glyphs::Blocks),
            PlotWhen::Always => Some(terminal.glyphs),
        }
    }
}

/// Draws a graph in the requested form, which is not JSON.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn draw(
    mut graph: Graph,
    starts: &[usize],
    direction: Direction,
    arguments: &PictureArguments,
    terminal: Terminal,
) -> Result<(), Failure> {
    if arguments.svg.is_none() && !arguments.mermaid {
        for tree in forest(&graph, starts, direction, MAX_LINES) {
            print(&if terminal.glyphs == Glyphs::Blocks { tree.to_string() } else { tree.to_ascii() });
        }
        return Ok(());
    }
    let all = graph.nodes.len();
    let left_out = graph.truncate(MAX_NODES);
    if left_out > 0 {
        print_error(&format!("the picture shows {MAX_NODES} of {}\n", plural(all, "node")));
    }
    match &arguments.svg {
        Some(file) => file.write(svg(&graph, SvgForm::File), "--svg"),
        None => {
            print(&mermaid(&graph));
            Ok(())
        }
    }
}
