//! `terrane dax`: runs or checks one DAX query.

use std::path::PathBuf;

use terrane_app::dax::{self, DaxError};
use terrane_app::security::Scopes;
use terrane_compiler::Access;
use terrane_expectations::Rows;
use terrane_wire::dax as dax_wire;

use super::query::{query_text, refused};
use super::{Terminal, print, print_error};
use crate::failure::Failure;
use crate::project::Project;
use crate::report::plural;
use crate::wiring::{self, WarehouseUse};
use crate::{caller, table};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  terrane dax . 'EVALUATE SUMMARIZECOLUMNS(flights[origin], \"Flights\", flights[count]) ORDER BY [Flights] DESC'
  terrane dax . @report.dax --json
  terrane dax . 'EVALUATE ROW(\"Orders\", orders[count])' --sql
  terrane dax . @report.dax --check

Tables are cubes, columns are dimensions, measures are measures and metrics. The first EVALUATE is answered.
Without --as the caller is anonymous and has no roles, groups or attributes.")]
pub struct DaxArguments {
    /// The project: the folder that holds service_project.yml
    pub dir: PathBuf,
    /// The query; `@FILE` reads a file, `-` standard input
    pub query: String,
    /// Print the response of POST /api/v1/dax/execute
    #[arg(long, conflicts_with_all = ["sql", "check"])]
    pub json: bool,
    /// Print the SQL with its values, without running it
    #[arg(long, conflicts_with = "check")]
    pub sql: bool,
    /// Find every problem of the query, without running it
    #[arg(long)]
    pub check: bool,
    /// Query as this caller: a JSON file with user_id, email, roles, groups and attributes
    #[arg(long = "as", value_name = "FILE")]
    pub caller: Option<PathBuf>,
}

/// Runs or checks the query. Returns whether it has no problems.
///
/// # Errors
/// The project has errors, or the query is refused.
pub async fn run(arguments: &DaxArguments, project: Project, terminal: Terminal) -> Result<bool, Failure> {
    let text = query_text(&arguments.query)?;
    let caller = caller::read(arguments.caller.as_deref())?;
    let (engine, _) = wiring::load(&project, WarehouseUse::Read).await?;
    if arguments.check {
        let snapshot = engine.catalog.snapshot();
        let problems = dax::check(&text, &Access::of(&snapshot.model, &caller.caller));
        let lines: String = problems.iter().map(|problem| format!("{}\n", problem.in_text(&text))).collect();
        print(&lines);
        return Ok(problems.is_empty());
    }
    let refusal = |error| refusal(&text, error);
    if arguments.sql {
        print(&format!("{}\n", dax::inline_sql(&engine.queries, &caller, &text).await.map_err(refusal)?));
        return Ok(true);
    }
    let answer = dax::execute(&engine.queries, &caller, &text).await.map_err(refusal)?;
    if arguments.json || !terminal.is_stdout_terminal {
        print(&format!("{}\n", String::from_utf8_lossy(&dax_wire::result(&answer))));
        return Ok(true);
    }
    let rows = Rows::of_batches(&answer.columns, &answer.batches);
    let rows = rows.map_err(|error| Failure::new(format!("{error:#}")))?;
    print(&format!("{}\n", table::draw(&rows)));
    answer.warnings.iter().for_each(|warning| print_error(&format!("warning: {warning}\n")));
    let shown = plural(rows.rows.len(), "row");
    print_error(&format!("{shown}, {:.1} ms\n", answer.duration.as_secs_f64() * 1_000.0));
    Ok(true)
}

/// Converts a refusal. All problems of a query are shown.
fn refusal(text: &str, error: DaxError) -> Failure {
    match error {
        DaxError::Problems(problems) => {
            let lines: Vec<String> = problems.iter().map(|problem| problem.in_text(text).to_string()).collect();
            Failure::new(lines.join("\n"))
        }
        error => refused(dax_wire::refusal(text, error, Scopes { read: true, write: true, admin: true })),
    }
}
