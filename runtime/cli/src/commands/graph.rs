//! `terrane graph`: draws the join graph of the cubes.
//!
//! In: a project. Out: a tree, an SVG picture, a Mermaid flowchart or JSON. The warehouse is not used.

use std::path::PathBuf;

use terrane_compiler::Access;
use terrane_pictures::Direction;

use super::{Terminal, json_line, print, print_error, unknown};
use crate::caller;
use crate::failure::Failure;
use crate::pictures::join_graph::JoinGraph;
use crate::pictures::{self, PictureArguments};
use crate::project::Project;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  terrane graph examples/flights
  terrane graph . --cube orders
  terrane graph . --svg joins.svg
  terrane graph . --mermaid >> README.md
  terrane graph . --json | jq -r '.joins[] | \"\\(.from) \\(.to)\"'

An edge leads from the cube that declares a join to its target. A cube that is shown twice is opened once. A
picture has at most 400 cubes.")]
pub struct GraphArguments {
    /// The project folder, which contains service_project.yml
    #[arg(default_value = ".")]
    pub dir: PathBuf,
    /// Draw only this cube and the cubes that it can join
    #[arg(long, value_name = "CUBE")]
    pub cube: Option<String>,
    #[command(flatten)]
    pub picture: PictureArguments,
    /// Show what this caller may see: a JSON file with user_id, email, roles, groups and attributes
    #[arg(long = "as", value_name = "FILE")]
    pub caller: Option<PathBuf>,
}

/// Draws the join graph.
///
/// # Errors
/// The project has errors, the cube is unknown, or the file cannot be written.
pub fn run(arguments: &GraphArguments, project: &Project, terminal: Terminal) -> Result<(), Failure> {
    let caller = caller::read(arguments.caller.as_deref())?;
    let model = project.model()?;
    let access = Access::of(&model, &caller.caller);
    let mut joins = JoinGraph::of(&access);
    if let Some(name) = &arguments.cube {
        let found = joins.cubes.iter().map(|cube| cube.name).find(|cube| cube == name);
        let cube = found.ok_or_else(|| unknown("cube", name, joins.cubes.iter().map(|cube| cube.name)))?;
        joins.retain_below(cube);
    }
    if arguments.picture.json {
        print(&json_line(&joins));
        return Ok(());
    }
    if joins.cubes.is_empty() {
        print_error("no cubes\n");
    }
    let graph = joins.graph(&format!("Joins of {}", model.project));
    let starts = match &arguments.cube {
        Some(name) => joins.cubes.iter().position(|cube| cube.name == name).into_iter().collect(),
        None => graph.roots(),
    };
    pictures::draw(graph, &starts, Direction::Forward, &arguments.picture, terminal)
}
