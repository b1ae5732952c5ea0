//! `terrane list`: lists cubes, their members, and metrics.
//!
//! In: a project. Out: a line for each name, or JSON. The warehouse and the state database are not used. Not here:
//! search by words (`terrane search`), and joins as a picture (`terrane graph`).

use std::fmt::Write as _;
use std::path::PathBuf;

use terrane_app::metadata;
use terrane_compiler::Access;
use terrane_compiler::model::{Cube, Metric, Presentation};
use terrane_terminal::TerminalText;
use terrane_wire::metadata::{aggregation, listing, measure_type, metric_type};

use super::{json_line, print, print_error, unknown};
use crate::caller;
use crate::failure::Failure;
use crate::project::Project;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  terrane list examples/flights
  terrane list . --cube orders
  terrane list . | grep -i revenue
  terrane list . --as user.json
  terrane list . --json | jq -r '.cubes[].measures[] | \"\\(.cube).\\(.name)\"'

Each line has a name as queries use it, its type, and its description, or its title if it has no description.")]
pub struct ListArguments {
    /// The project folder, which contains service_project.yml
    #[arg(default_value = ".")]
    pub dir: PathBuf,
    /// List only this cube, and the metrics that are computed from it
    #[arg(long, value_name = "CUBE")]
    pub cube: Option<String>,
    /// List what this caller may see: a JSON file with user_id, email, roles, groups and attributes
    #[arg(long = "as", value_name = "FILE")]
    pub caller: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Prints the list.
///
/// # Errors
/// The project has errors, or the cube is unknown.
pub fn run(arguments: &ListArguments, project: &Project) -> Result<(), Failure> {
    let caller = caller::read(arguments.caller.as_deref())?;
    let model = project.model()?;
    let access = Access::of(&model, &caller.caller);
    let mut cubes: Vec<&Cube> = metadata::cubes(&access).collect();
    let mut metrics: Vec<&Metric> = metadata::metrics(&access).collect();
    if let Some(name) = &arguments.cube {
        if !cubes.iter().any(|cube| *cube.name == **name) {
            return Err(unknown("cube", name, cubes.iter().map(|cube| &*cube.name)));
        }
        cubes.retain(|cube| *cube.name == **name);
        metrics.retain(|metric| uses(&access, metric, name));
    }
    if arguments.json {
        print(&json_line(&listing(&access, &cubes, &metrics)));
        return Ok(());
    }
    if cubes.is_empty() && metrics.is_empty() {
        print_error("no cubes\n");
    }
    let cubes = cubes.iter().map(|cube| cube_text(&access, cube));
    let texts: Vec<String> = cubes.chain((!metrics.is_empty()).then(|| metrics_text(&metrics))).collect();
    print(&texts.join("\n"));
    Ok(())
}

fn uses(access: &Access<'_>, metric: &Metric, cube: &str) -> bool {
    metadata::cubes_of_metric(access, metric).iter().any(|of| *of.name == *cube)
}

/// A line of the list.
struct Entry {
    name: String,
    ty: &'static str,
    description: TerminalText,
}

impl Entry {
    fn new(cube: &Cube, name: &str, ty: &'static str, presentation: &Presentation) -> Entry {
        Entry { name: format!("{}.{name}", cube.name), ty, description: description(presentation) }
    }
}

fn description(presentation: &Presentation) -> TerminalText {
    TerminalText::spaced(presentation.description.as_deref().unwrap_or(&presentation.title))
}

fn cube_text(access: &Access<'_>, cube: &Cube) -> String {
    let about = TerminalText::spaced(cube.description.as_deref().unwrap_or(&cube.title));
    let measures = metadata::measures(access, cube).map(|measure| {
        let ty = aggregation(&measure.kind).unwrap_or_else(|| measure_type(&measure.kind));
        Entry::new(cube, &measure.name, ty, &measure.presentation)
    });
    let dimensions = metadata::dimensions(access, cube)
        .map(|dimension| Entry::new(cube, &dimension.name, dimension.ty.as_str(), &dimension.presentation));
    let segments =
        metadata::segments(access, cube).map(|segment| Entry::new(cube, &segment.name, "", &segment.presentation));
    let groups = [
        ("measures", measures.collect::<Vec<_>>()),
        ("dimensions", dimensions.collect()),
        ("segments", segments.collect()),
    ];
    let joins: Vec<&str> = metadata::joins(access, cube).map(|(_, target)| &*target.name).collect();
    let mut text = format!("cube {}: {about}\n", cube.name);
    for (title, entries) in groups.iter().filter(|(_, entries)| !entries.is_empty()) {
        let _ = writeln!(text, "  {title}");
        text.push_str(&lines(entries));
    }
    if !joins.is_empty() {
        let _ = writeln!(text, "  joins: {}", joins.join(", "));
    }
    text
}

fn metrics_text(metrics: &[&Metric]) -> String {
    let entry = |metric: &&Metric| Entry {
        name: metric.name.to_string(),
        ty: metric_type(metric.kind),
        description: description(&metric.presentation),
    };
    format!("metrics\n{}", lines(&metrics.iter().map(entry).collect::<Vec<_>>()))
}

/// Returns entries as lines with aligned columns.
fn lines(entries: &[Entry]) -> String {
    let width = |of: fn(&Entry) -> &str| entries.iter().map(|entry| of(entry).chars().count()).max().unwrap_or(0);
    let (names, types) = (width(|entry| &entry.name), width(|entry| entry.ty));
    let line = |entry: &Entry| {
        let Entry { name, ty, description } = entry;
        match types {
            0 => format!("    {name:names$}  {description}\n"),
            _ => format!("    {name:names$}  {ty:types$}  {description}\n"),
        }
    };
    entries.iter().map(line).collect()
}
