//! `terrane check`: reports every problem of a project with its place and a hint; with `--data` also problems of rows.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use terrane_app::catalog::Snapshot;
use terrane_app::data_check::{self, DataReport, DimensionTestRun};
use terrane_app::governance::breaking_changes;
use terrane_app::introspection::{UNREADABLE_CUBE, is_unread};
use terrane_app::ports::calls::ComponentFault;
use terrane_app::ports::plugins::PluginFault;
use terrane_app::projects::{RefusedModels, UNREADABLE_MODEL, refused_models};
use terrane_app::services::Services;
use terrane_app::source_check;
use terrane_compiler::diagnostic::{Code, Diagnostic, Severity, Span};
use terrane_compiler::model::{Cube, Model};
use terrane_expectations::{self as expectations, Reported};

use super::{Terminal, governance, print, print_error};
use crate::failure::Failure;
use crate::project::Project;
use crate::report::{self, DiagnosticJson, plural};
use crate::start_rules;
use crate::wiring::{self, Checked, StartProblem};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  terrane check .
  terrane check examples/flights --json | jq '.problems[] | .message'
  terrane check --data examples/flights
  terrane check my-project --against governance.yml

With --data, the rows of the warehouse are checked, one statement after the other:
  the tests of dimensions hold,
  primary keys are unique and not null,
  joins to one row find at most one row, and exactly one with `always: true`,
  rows of one_to_one joins are found once (a warning).
The output contains keys of failing rows; policies do not apply. Each statement has the timeout query.timeout.

With --against the project is compared with the certified artifacts of a file of `terrane governance export`. Certified
artifacts that were removed, renamed or redefined are errors. A project with other errors is not compared.

Exit code: 0 without errors (warnings are allowed), 1 with errors.")]
pub struct CheckArguments {
    /// The project folder, which contains service_project.yml
    #[arg(default_value = ".")]
    pub dir: PathBuf,
    /// Check keys, joins and tests of dimensions on the rows of the warehouse
    #[arg(long)]
    pub data: bool,
    /// Report breaking changes of the artifacts that this export of governed records certifies
    #[arg(long, value_name = "FILE")]
    pub against: Option<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// The JSON output.
#[derive(Debug, Serialize)]
struct CheckJson<'a> {
    ok: bool,
    errors: usize,
    warnings: usize,
    /// The number of checks on rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    data_checks: Option<usize>,
    /// The number of certified artifacts that were compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    certified: Option<usize>,
    problems: Vec<DiagnosticJson<'a>>,
}

/// Applies the warehouse's decisions to syntax warnings about models. If the warehouse refuses a model, the warning is
/// removed, since the refusal has its own diagnostic. If the warehouse accepts the model, the warning is changed to one
/// about lineage only.
fn resolve_syntax(problems: &mut Vec<Diagnostic>, refused: &RefusedModels) {
    let is_in = |problem: &Diagnostic, files: &HashSet<Arc<str>>| {
        let file = problem.span.as_ref().map(|span| &span.file);
        problem.code == Code::SqlSyntax && !problem.is_error() && file.is_some_and(|file| files.contains(file))
    };
    problems.retain(|problem| !is_in(problem, &refused.files));
    for problem in problems.iter_mut().filter(|problem| is_in(problem, &refused.accepted)) {
        problem.message = "lineage cannot be derived from this SQL, but the warehouse accepts it".to_owned();
        problem.hint = Some("Queries work. Lineage marks the origin of its columns as unknown.".to_owned());
    }
}

/// Converts a problem of a server's start. The project may be served by a different machine from the one that checks
/// it, so a problem with files of this machine is a warning.
fn of_start(problem: StartProblem) -> Diagnostic {
    let StartProblem { mut diagnostic, is_of_machine } = problem;
    if is_of_machine {
        diagnostic.severity = Severity::Warning;
    }
    diagnostic
}

/// Checks the project. Returns true if it has no errors.
///
/// # Errors
/// The output cannot be encoded.
pub async fn run(arguments: &CheckArguments, project: Project, terminal: Terminal) -> Result<bool, Failure> {
    let certified = arguments.against.as_deref().map(governance::read_records).transpose()?;
    let Checked { engine, mut problems } = wiring::check(&project).await;
    problems.extend(start_rules::warnings(&project.config));
    if let Some(engine) = &engine {
        problems.extend(start_rules::unused_definitions(&project.config, &engine.catalog.snapshot().definitions));
    }
    // The settings in the project file must be valid. Refusals without a place in the file, for example because no
    // caller could read anything, concern only a server and are left out.
    problems.extend(start_rules::refusals(&project.config).into_iter().filter(|refusal| refusal.span.is_some()));
    problems.extend(wiring::start_problems(&project).into_iter().map(of_start));
    let (expected, found) = project.folder.collect_folder(expectations::FOLDER);
    problems.extend(found);
    let (cases, unreadable) = expectations::read(&expected);
    problems.extend(unreadable);
    // A server starts even if parts of the project are missing. For `check`, missing parts are errors.
    let is_incomplete = |problem: &Diagnostic| is_unread(problem) || problem.code == wiring::REQUIRED_REFUSED;
    for problem in problems.iter_mut().filter(|problem| is_incomplete(problem)) {
        problem.severity = Severity::Error;
    }
    // A load checks only the models that cubes read; this checks all models in the warehouse.
    if let Some(engine) = &engine {
        let refused = refused_models(&engine.catalog.snapshot(), &*engine.warehouse).await;
        let is_of_model = |problem: &Diagnostic| {
            let is_its = |span: &Span| refused.cubes.contains(span) || refused.files.contains(&span.file);
            problem.code == UNREADABLE_CUBE && problem.span.as_ref().is_some_and(is_its)
        };
        problems.retain(|problem| !is_of_model(problem));
        resolve_syntax(&mut problems, &refused);
        problems.extend(refused.diagnostics);
        let is_reported = |problem: &&Diagnostic| is_unread(problem) || problem.code == UNREADABLE_MODEL;
        let reported: Vec<Diagnostic> = problems.iter().filter(is_reported).cloned().collect();
        problems.extend(source_check::absent(&engine.catalog.snapshot(), &*engine.warehouse, &reported).await);
    }
    if let Some(engine) = &engine {
        problems.extend(unusable_detectors(engine, &problems).await);
    }
    if let Some(engine) = &engine {
        let snapshot = engine.catalog.snapshot();
        let reported = reported_to_expectations(&problems);
        let found = expectations::check(wiring::subject(engine), &snapshot, reported, &cases);
        problems.extend(found.await);
    }
    let checked = match engine.as_ref().filter(|_| arguments.data) {
        Some(engine) => {
            let report = rows(engine, &project, terminal).await;
            problems.extend(report.problems);
            Some(report.checked)
        }
        None => None,
    };
    let compared = match (&engine, &certified) {
        (Some(engine), Some(records)) if !problems.iter().any(Diagnostic::is_error) => {
            let changes = breaking_changes(records, &engine.catalog.snapshot());
            problems.extend(changes.diagnostics);
            Some(changes.compared)
        }
        _ => None,
    };
    report::sort(&mut problems);
    let errors = problems.iter().filter(|problem| problem.is_error()).count();
    if arguments.json {
        let json = CheckJson {
            ok: errors == 0,
            errors,
            warnings: problems.len() - errors,
            data_checks: checked,
            certified: compared,
            problems: problems.iter().map(DiagnosticJson::from).collect(),
        };
        let text = serde_json::to_string_pretty(&json).map_err(|error| Failure::new(error.to_string()))?;
        print(&format!("{text}\n"));
        return Ok(errors == 0);
    }
    if !problems.is_empty() {
        let mut tree = project.tree.clone();
        tree.files.extend(expected.files);
        print(&format!("{}\n", report::draw(&problems, &tree, terminal.stdout)));
    }
    let checked = checked.map_or(String::new(), |checked| format!("; {} on rows", plural(checked, "check")));
    let compared =
        compared.map_or(String::new(), |compared| format!("; {} compared", plural(compared, "certified artifact")));
    print(&format!("{}{checked}{compared}\n", summary(engine.as_ref(), &problems)));
    Ok(errors == 0)
}

/// Returns the reported problems that explain refusals of expectations.
fn reported_to_expectations(problems: &[Diagnostic]) -> Reported {
    let is_of_warehouse =
        |problem: &Diagnostic| is_unread(problem) || [UNREADABLE_MODEL, Code::SourceNotFound].contains(&problem.code);
    Reported {
        has_hook: problems.iter().any(|problem| problem.code == wiring::REQUIRED_REFUSED),
        is_warehouse_incomplete: problems.iter().any(is_of_warehouse),
    }
}

/// Returns a warning for each detector that has a fault, except those that are already reported.
async fn unusable_detectors(engine: &Services, reported: &[Diagnostic]) -> Vec<Diagnostic> {
    let is_reported = |id: &str| reported.iter().any(|problem| problem.subject.as_deref() == Some(id));
    // A component whose file has a different name is already reported as unused.
    let is_idle = |fault: &ComponentFault| matches!(fault.fault, PluginFault::Mismatch { .. });
    let faults = engine.detectors.kinds().await.faults.into_iter();
    let faults = faults.filter(|fault| !is_idle(fault) && !is_reported(&fault.component));
    let statuses = engine.plugins.loaded();
    let diagnostic = |fault: ComponentFault| {
        let message = format!("detector `{}` cannot be used: it {}", fault.component, fault.fault);
        let status = statuses.iter().find(|status| *status.name == *fault.component);
        let hint = match status.and_then(|status| status.path.as_ref()) {
            Some(path) => format!("Repair {}, or remove it from the folder.", path.display()),
            None => "Repair the component, or remove it from the folder.".to_owned(),
        };
        Diagnostic::warning(Code::PluginRefused, message).hint(hint)
    };
    faults.map(diagnostic).collect()
}

/// Checks the rows of the warehouse. On a terminal, one line shows the progress.
async fn rows(engine: &Services, project: &Project, terminal: Terminal) -> DataReport {
    const CLEAR: &str = "\r\x1b[2K";
    let timeout = Duration::from_secs_f64(project.config.query.timeout_seconds);
    let snapshot = engine.catalog.snapshot();
    let report = data_check::check(&snapshot, &*engine.warehouse, timeout, |progress| {
        if terminal.is_stderr_terminal {
            print_error(&format!("{CLEAR}checking rows: {} of {}, {}", progress.number, progress.of, progress.cube));
        }
    });
    let mut report = report.await;
    // A test that cannot run has not passed.
    let tests: HashSet<Span> = DimensionTestRun::all(&snapshot).into_iter().filter_map(|test| test.span).collect();
    let is_test = |problem: &&mut Diagnostic| problem.span.as_ref().is_some_and(|span| tests.contains(span));
    report.problems.iter_mut().filter(is_test).for_each(|problem| problem.severity = Severity::Error);
    if terminal.is_stderr_terminal {
        print_error(CLEAR);
    }
    report
}

fn summary(engine: Option<&Services>, problems: &[Diagnostic]) -> String {
    match engine {
        Some(engine) if problems.is_empty() => format!("ok: {}", contents(&engine.catalog.snapshot())),
        Some(engine) => format!("{}; {}", report::counts(problems), contents(&engine.catalog.snapshot())),
        None => report::counts(problems),
    }
}

/// Returns the cubes of a project without aliases, which have the members of other cubes. Hidden cubes are included.
pub(crate) fn own_cubes(model: &Model) -> impl Iterator<Item = &Cube> {
    model.cubes.iter().filter(|cube| cube.alias_of.is_none())
}

/// Returns `5 cubes, 70 measures, 46 dimensions, 12 metrics`.
pub(crate) fn contents(snapshot: &Snapshot) -> String {
    let own = || own_cubes(&snapshot.model);
    let parts = [
        plural(own().count(), "cube"),
        plural(own().map(|cube| cube.measures.len()).sum(), "measure"),
        plural(own().map(|cube| cube.dimensions.len()).sum(), "dimension"),
        plural(snapshot.model.metrics.len(), "metric"),
    ];
    parts.join(", ")
}
