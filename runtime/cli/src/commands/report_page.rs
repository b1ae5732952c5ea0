//! `terrane report`: writes a page about a project for people who do not use the program.
//!
//! In: a project and a caller. Out: one HTML file with the catalogue, joins, lineage, profiles and anomalies that the
//! caller may see. Not here: computing them (app), and their pictures (`terrane_pictures`).

mod anomalies;
mod catalogue;
mod contents;
mod page;
mod profiles;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrane_app::metadata;
use terrane_app::query::RequestContext;
use terrane_app::services::Services;
use terrane_compiler::Access;
use terrane_compiler::types::Granularity;
use terrane_terminal::TerminalText;

use super::check::own_cubes;
use super::{load_for_queries, print_error, unknown};
use crate::caller;
use crate::failure::Failure;
use crate::output_file::OutputFile;
use crate::project::Project;
use crate::report::plural;
use crate::wiring::CommandDuration;
use contents::Contents;

/// The largest number of cubes for which the page shows profiles and anomalies if the arguments name no cubes.
const MAX_CUBES: usize = 30;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  terrane report examples/flights --out flights.html
  terrane report . --out shop.html --cube orders --cube customers
  terrane report . --out emea.html --as emea.json
  terrane report . --out model.html --no-data

The page has a catalogue of cubes, members and metrics with a search box, the join graph, the lineage of each
metric, a profile of each cube with histograms, and counts and sums over time with the bounds of a
detector. It is one file that loads no other files. It contains only what the caller may see: names,
statistics and frequent values. Share it only with people who may see the same.

The page of a large project is limited to 300 cubes, 500 metrics, 60 pictures of lineage, profiles of 30 cubes, and
24 measures over time. It names what it leaves out. Each statement has the timeout query.timeout.")]
pub struct ReportArguments {
    /// The project folder, which contains service_project.yml
    #[arg(default_value = ".")]
    pub dir: PathBuf,
    /// Write the page into this file; an existing file is replaced
    #[arg(long, value_name = "FILE")]
    pub out: OutputFile,
    /// A cube with a profile and anomalies; can be repeated; default: the first 30
    #[arg(long = "cube", value_name = "CUBE", conflicts_with = "no_data")]
    pub cubes: Vec<String>,
    /// Leave out profiles and anomalies, which read the rows
    #[arg(long)]
    pub no_data: bool,
    /// The detector; `terrane anomaly detectors` lists them
    #[arg(long, default_value = "z_score")]
    pub detector: String,
    /// The step of measures over time: second, minute, hour, day, week, month, quarter or year
    #[arg(long, default_value_t = Granularity::Day)]
    pub granularity: Granularity,
    /// Make the page for this caller: a JSON file with user_id, email, roles, groups and attributes
    #[arg(long = "as", value_name = "FILE")]
    pub caller: Option<PathBuf>,
}

/// Writes the page.
///
/// # Errors
/// The project has errors, a cube is unknown to the caller, or the file cannot be written.
pub async fn run(arguments: &ReportArguments, project: Project) -> Result<(), Failure> {
    let caller = caller::read(arguments.caller.as_deref())?;
    check_place(&arguments.out)?;
    let engine = load_for_queries(&project, CommandDuration::Short).await?;
    let contents = collect(arguments, &engine, &caller).await?;
    let page = page::render(&contents).map_err(|error| Failure::new(format!("the page: {error}")))?;
    arguments.out.write(&page, "--out")?;
    let snapshot = engine.catalog.snapshot();
    let counts = counts(&Access::of(&snapshot.model, &caller.caller), true);
    let (profiles, series) = (plural(contents.profiles.len(), "profile"), contents.anomalies.len());
    for note in &contents.notes {
        print_error(&format!("{}\n", TerminalText::line(&note.text)));
    }
    let out = &arguments.out;
    print_error(&format!("wrote {out}: {counts}, {profiles}, {series} series\n"));
    Ok(())
}

/// Checks the place of the page before anything is computed.
fn check_place(file: &OutputFile) -> Result<(), Failure> {
    if file.path().is_dir() {
        return Err(file.unwritable("it is a folder", "--out"));
    }
    if !file.path().parent().is_some_and(Path::is_dir) {
        return Err(file.unwritable("its folder does not exist", "--out"));
    }
    Ok(())
}

async fn collect(arguments: &ReportArguments, engine: &Services, caller: &RequestContext) -> Result<Contents, Failure> {
    let snapshot = engine.catalog.snapshot();
    let access = Access::of(&snapshot.model, &caller.caller);
    let mut contents = Contents {
        project: snapshot.model.project.to_string(),
        caller: name_of(caller, arguments.caller.is_none()),
        counts: counts(&access, false),
        made_at: engine.clock.now().strftime("%Y-%m-%d %H:%M UTC").to_string(),
        has_data: !arguments.no_data,
        ..Contents::default()
    };
    let cubes = cubes(&arguments.cubes, &access)?;
    check_detector(&arguments.detector, engine).await?;
    catalogue::add(&mut contents, engine, &snapshot, &access).await;
    if arguments.no_data {
        return Ok(contents);
    }
    if cubes.len() > MAX_CUBES && arguments.cubes.is_empty() {
        contents.note("profiles", format!("Profiles are made of the first {MAX_CUBES} of {} cubes.", cubes.len()));
    }
    let most = if arguments.cubes.is_empty() { MAX_CUBES } else { cubes.len() };
    let cubes = &cubes[..most.min(cubes.len())];
    profiles::add(&mut contents, engine, caller, &access, cubes).await;
    let settings =
        anomalies::Settings { detector: arguments.detector.as_str().into(), granularity: arguments.granularity };
    anomalies::add(&mut contents, engine, caller, &access, cubes, &settings).await;
    Ok(contents)
}

/// Checks that a detector exists before anything is computed.
async fn check_detector(name: &str, engine: &Services) -> Result<(), Failure> {
    let list = engine.detectors.kinds().await;
    match list.kinds.iter().any(|known| &*known.kind == name) {
        true => Ok(()),
        false => Err(unknown("detector", name, list.kinds.iter().map(|known| &*known.kind))),
    }
}

fn name_of(caller: &RequestContext, is_default: bool) -> String {
    match &*caller.caller.user_id {
        _ if is_default => "the operator".to_owned(),
        "" => "a caller without an id".to_owned(),
        user => user.to_owned(),
    }
}

/// Returns the numbers of cubes and metrics that the caller may see: `5 cubes, 12 metrics`. Aliases are not counted, as
/// by `terrane check`. With `of_all`, also states how many the project has if the caller does not see all of them.
fn counts(access: &Access<'_>, of_all: bool) -> String {
    let model = access.model();
    let cubes = metadata::cubes(access).filter(|cube| cube.alias_of.is_none()).count();
    let all_cubes = own_cubes(model).count();
    let metrics = metadata::metrics(access).count();
    let shown = |count: usize, all: usize, what: &str| match of_all && count < all {
        true => format!("{count} of {}", plural(all, what)),
        false => plural(count, what),
    };
    format!("{}, {}", shown(cubes, all_cubes, "cube"), shown(metrics, model.metrics.len(), "metric"))
}

/// Returns the requested cubes, or else all that the caller may see. Aliases have the rows of their cubes, so they are
/// left out unless they are requested.
fn cubes(requested: &[String], access: &Access<'_>) -> Result<Vec<Arc<str>>, Failure> {
    if requested.is_empty() {
        let cubes = metadata::cubes(access).filter(|cube| cube.alias_of.is_none());
        return Ok(cubes.map(|cube| Arc::clone(&cube.name)).collect());
    }
    let find = |name: &String| match metadata::cube(access, name) {
        Some(cube) => Ok(Arc::clone(&cube.name)),
        None => Err(unknown("cube", name, metadata::cubes(access).map(|cube| &*cube.name))),
    };
    let mut found = requested.iter().map(find).collect::<Result<Vec<_>, _>>()?;
    let mut seen = HashSet::new();
    found.retain(|cube| seen.insert(Arc::clone(cube)));
    Ok(found)
}
