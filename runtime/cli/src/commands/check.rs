//! `terrane check`: every problem of a project, each with its place and a hint.

use std::path::PathBuf;

use serde::Serialize;
use terrane_compiler::diagnostic::Diagnostic;

use super::{Terminal, print};
use crate::failure::Failure;
use crate::project::Project;
use crate::report::{self, DiagnosticJson, plural};
use crate::start_rules;
use crate::wiring::{self, Checked, Engine};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  terrane check .
  terrane check examples/flights --json | jq '.problems[] | .message'

Exit code: 0 without errors (warnings may be there), 1 with errors.")]
pub struct CheckArguments {
    /// The project: the folder that holds service_project.yml
    pub dir: PathBuf,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// For scripts.
#[derive(Debug, Serialize)]
struct CheckJson<'a> {
    ok: bool,
    errors: usize,
    warnings: usize,
    problems: Vec<DiagnosticJson<'a>>,
}

/// Whether the project has no errors.
///
/// # Errors
/// There is no project.
pub async fn run(arguments: &CheckArguments, project: Project, terminal: Terminal) -> Result<bool, Failure> {
    let Checked { engine, mut problems } = wiring::check(&project).await;
    problems.extend(start_rules::warnings(&project.config));
    report::sort(&mut problems);
    let errors = problems.iter().filter(|problem| problem.is_error()).count();
    if arguments.json {
        let json = CheckJson {
            ok: errors == 0,
            errors,
            warnings: problems.len() - errors,
            problems: problems.iter().map(DiagnosticJson::from).collect(),
        };
        let text = serde_json::to_string_pretty(&json).map_err(|error| Failure::new(error.to_string()))?;
        print(&format!("{text}\n"));
        return Ok(errors == 0);
    }
    if !problems.is_empty() {
        print(&format!("{}\n", report::draw(&problems, &project.tree, terminal.stdout)));
    }
    print(&format!("{}\n", summary(engine.as_ref(), &problems)));
    Ok(errors == 0)
}

fn summary(engine: Option<&Engine>, problems: &[Diagnostic]) -> String {
    match engine {
        Some(engine) if problems.is_empty() => format!("ok: {}", contents(engine)),
        Some(engine) => format!("{}; {}", report::counts(problems), contents(engine)),
        None => report::counts(problems),
    }
}

/// `5 cubes, 69 measures, 45 dimensions, 12 metrics`.
pub(crate) fn contents(engine: &Engine) -> String {
    let snapshot = engine.catalog.snapshot();
    let cubes = &snapshot.model.cubes;
    let own = || cubes.iter().filter(|cube| cube.alias_of.is_none());
    let parts = [
        plural(own().count(), "cube"),
        plural(own().map(|cube| cube.measures.len()).sum(), "measure"),
        plural(own().map(|cube| cube.dimensions.len()).sum(), "dimension"),
        plural(snapshot.model.metrics.len(), "metric"),
    ];
    parts.join(", ")
}
