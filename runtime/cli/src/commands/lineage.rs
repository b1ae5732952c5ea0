//! `terrane lineage`: draws the inputs of a member, down to columns, or its dependents.
//!
//! In: a project and the name of a member, metric, cube, model or node. Out: a tree, an SVG picture, a Mermaid
//! flowchart or JSON. Not here: the lineage itself (`terrane_lineage`).

use std::path::PathBuf;

use terrane_compiler::Access;
use terrane_lineage::Sight;
use terrane_wire::lineage::Direction;

use super::{Terminal, json_line, print, unknown};
use crate::caller;
use crate::failure::Failure;
use crate::pictures::member_lineage::{MemberLineage, find};
use crate::pictures::{self, PictureArguments};
use crate::project::Project;
use crate::wiring::{self, WarehouseUse};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  terrane lineage examples/flights on_time_rate
  terrane lineage . orders.revenue --svg revenue.svg
  terrane lineage . raw.orders.amount --downstream
  terrane lineage . orders.revenue --depth 2 --mermaid
  terrane lineage . orders.revenue --json | jq -r '.nodes[].id'

MEMBER is a measure, dimension or segment (orders.revenue), a metric, a cube, a model, a table or column as the
output names it (raw.orders.amount), or the id of a node as --json prints it. Columns that sources do not declare
are read from the warehouse. A picture has at most 400 nodes, those nearest to the member.")]
pub struct LineageArguments {
    /// The project folder, which contains service_project.yml
    pub dir: PathBuf,
    /// The member to start from
    pub member: String,
    /// Show the dependents of the member instead of its inputs
    #[arg(long)]
    pub downstream: bool,
    /// The maximum number of edges from the member
    #[arg(long, value_name = "N")]
    pub depth: Option<u32>,
    #[command(flatten)]
    pub picture: PictureArguments,
    /// Show what this caller may see: a JSON file with user_id, email, roles, groups and attributes
    #[arg(long = "as", value_name = "FILE")]
    pub caller: Option<PathBuf>,
}

/// Draws the lineage.
///
/// # Errors
/// The project has errors, the name is unknown to the caller, or the file cannot be written.
pub async fn run(arguments: &LineageArguments, project: Project, terminal: Terminal) -> Result<(), Failure> {
    let caller = caller::read(arguments.caller.as_deref())?;
    let (engine, _) = wiring::load(&project, WarehouseUse::Read).await?;
    let snapshot = engine.catalog.snapshot();
    let lineage = snapshot.lineage(&*engine.warehouse).await;
    let sight = Sight::of(lineage, &Access::of(&snapshot.model, &caller.caller));
    let start = find(lineage, &sight, &arguments.member)
        .map_err(|names| unknown("member", &arguments.member, names.iter().map(String::as_str)))?;
    let (walk, shown) = match arguments.downstream {
        true => (Direction::Downstream, terrane_pictures::Direction::Forward),
        false => (Direction::Upstream, terrane_pictures::Direction::Backward),
    };
    let found = MemberLineage::of(lineage, start, walk, arguments.depth, &sight);
    if arguments.picture.json {
        print(&json_line(&found));
        return Ok(());
    }
    pictures::draw(found.graph(), &[0], shown, &arguments.picture, terminal)
}
