//! `terrane run`: builds the models of a project in the warehouse.

use std::path::PathBuf;

use serde_json::{Value as Json, json};
use terrane_app::builds::{BuildProgress, BuildRequest, BuildRunError, ModelBuild, ModelOutcome};
use terrane_app::ports::builder::{BuildError, NotReady};

use super::{Terminal, operator_entry, print, print_error, print_problems};
use crate::failure::Failure;
use crate::project::Project;
use crate::report::plural;
use crate::shutdown_signal::ShutdownSignal;
use crate::wiring::{self, WarehouseUse};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  terrane run .
  terrane run . --models orders_clean,customers_clean
  terrane run . --json | jq 'select(.status == \"failed\")'

Views and tables are built in `models.schema`, in the order of their dependencies, at most four at once. Each
replaces the previous one atomically. If a model fails or the command is interrupted, the old relation stays
unchanged. Models that read a failed model are skipped. Ephemeral models are inlined, as in queries.
With --models, only these models are built. Their inputs are read from their relations if these are current, and
inlined otherwise. A relation that Terrane did not build is never replaced.

After a change of the definitions, first reload the servers (SIGHUP): until the run, they inline changed models.
Reload them again after the run: they then read the new relations.
A DuckDB file can be open for writing in one process only: stop the server first, or let it
build with POST /api/v1/unified/compile and {\"build\": true}.

Exit code: 0 if every model was built, 1 otherwise.")]
pub struct RunArguments {
    /// The project folder, which contains service_project.yml
    #[arg(default_value = ".")]
    pub dir: PathBuf,
    /// Build only these models, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    pub models: Vec<String>,
    /// Print one JSON object for each model
    #[arg(long)]
    pub json: bool,
}

/// Builds the models. Returns true if all of them were built.
///
/// # Errors
/// The project has errors, its warehouse cannot build models, or another run is active.
pub async fn run(arguments: &RunArguments, project: Project, terminal: Terminal) -> Result<bool, Failure> {
    if wiring::is_in_memory(&project) {
        return Err(Failure::new("the warehouse is in memory: built models are lost at the end of this command")
            .hint("Name a file: `warehouse: {path: data/warehouse.duckdb}`."));
    }
    let mut shutdown = ShutdownSignal::listen()?;
    let store = wiring::state(&project).await?;
    let (engine, problems) = wiring::load(&project, WarehouseUse::Build).await?;
    print_problems(&problems, &project.tree, terminal.stderr);
    let builds = wiring::builds(&project, &engine, &store);
    let snapshot = engine.catalog.snapshot();
    let named = (!arguments.models.is_empty()).then_some(arguments.models.as_slice());
    let report = |progress: BuildProgress<'_>| print_progress(progress, arguments.json);
    let resource = format!("project:{}", snapshot.model.project);
    let entry = operator_entry("models_built", engine.clock.now(), resource);
    let wanted = BuildRequest { models: named, entry };
    let ended = builds.run(&snapshot, wanted, &report, shutdown.received()).await.map_err(|error| explain(&error))?;
    for build in ended.iter().filter(|build| matches!(build.outcome, ModelOutcome::Inlined)) {
        print_build(build, "-", arguments.json);
    }
    print_outdated(&snapshot.definitions);
    let failed = ended.iter().filter(|build| !build.is_in_order()).count();
    if !arguments.json {
        let built = ended.iter().filter(|build| matches!(build.outcome, ModelOutcome::Built { .. })).count();
        let failed = if failed > 0 { format!(", {failed} not") } else { String::new() };
        print_error(&format!("{} built{failed}\n", plural(built, "model")));
    }
    Ok(failed == 0)
}

fn print_progress(progress: BuildProgress<'_>, is_json: bool) {
    match progress {
        BuildProgress::Started { model } => print_error(&format!("building {model}\n")),
        BuildProgress::Ended { build, place, of } => print_build(build, &format!("{place}/{of}"), is_json),
    }
}

fn print_build(build: &ModelBuild, place: &str, is_json: bool) {
    print(&if is_json { format!("{}\n", to_json(build)) } else { format!("{place} {}\n", line(build)) });
}

/// Returns a line such as `orders_clean  table  1.2 s  12,345 rows`.
fn line(build: &ModelBuild) -> String {
    let what = format!("{}  {}", build.model, build.materialization.as_str());
    let seconds = format!("{:.1} s", build.elapsed.as_secs_f64());
    match &build.outcome {
        ModelOutcome::Built { rows: Some(1) } => format!("{what}  {seconds}  1 row"),
        ModelOutcome::Built { rows: Some(rows) } => format!("{what}  {seconds}  {} rows", grouped(*rows)),
        ModelOutcome::Built { rows: None } => format!("{what}  {seconds}"),
        ModelOutcome::Inlined => format!("{what}  inlined"),
        ModelOutcome::Failed(error) => match error.hint() {
            Some(hint) => format!("{what}  {seconds}  failed: {error}\n  hint: {hint}"),
            None => format!("{what}  {seconds}  failed: {}", message(error)),
        },
        ModelOutcome::Skipped { because_of } => format!("{what}  skipped: `{because_of}` failed"),
    }
}

fn message(error: &BuildError) -> String {
    match error {
        BuildError::Warehouse(error) => error.message.clone(),
        error => error.to_string(),
    }
}

fn to_json(build: &ModelBuild) -> Json {
    let (status, rows, error) = match &build.outcome {
        ModelOutcome::Built { rows } => ("built", *rows, None),
        ModelOutcome::Inlined => ("inlined", None, None),
        ModelOutcome::Failed(error) => ("failed", None, Some(message(error))),
        ModelOutcome::Skipped { because_of } => ("skipped", None, Some(format!("`{because_of}` failed"))),
    };
    json!({
        "model": &*build.model,
        "materialization": build.materialization.as_str(),
        "relation": build.relation,
        "status": status,
        "rows": rows,
        "seconds": build.elapsed.as_secs_f64(),
        "error": error,
    })
}

/// Groups digits by thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Reports the relations of models that were removed from the project. Only the operator drops them.
fn print_outdated(definitions: &terrane_compiler::project::Definitions) {
    let of_models = definitions.models.iter().filter_map(|model| model.built_as());
    let known: Vec<String> = of_models.map(|(schema, name)| format!("{schema}.{name}").to_lowercase()).collect();
    for relation in definitions.built.outdated.iter().filter(|relation| !known.contains(relation)) {
        print_error(&format!(
            "note: {relation} was built from a model that no longer exists; drop it when nothing reads it\n"
        ));
    }
}

fn explain(error: &BuildRunError) -> Failure {
    let failure = Failure::new(error.to_string());
    match error {
        BuildRunError::UnknownModel { nearest, .. } if !nearest.is_empty() => {
            failure.hint(format!("The project has {}.", nearest.join(", ")))
        }
        BuildRunError::NotReady(NotReady::Cant(why)) => failure.hint(why.hint()),
        BuildRunError::Busy => {
            failure.hint("Wait until the other run has ended. The lock of a run that crashed expires after 15 s.")
        }
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn digits_are_grouped_by_three() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
    }
}
