//! `terrane dax`: runs or checks one DAX query, or reads several from a terminal.

mod repl;

use std::path::PathBuf;

use terrane_app::dax::{self, DaxError};
use terrane_app::query::RequestContext;
use terrane_app::security::Scopes;
use terrane_app::services::Services;
use terrane_expectations::Rows;
use terrane_wire::dax as dax_wire;

use super::query::{query_text, refused};
use super::{Terminal, load_for_queries, print, print_error, print_warning};
use crate::failure::Failure;
use crate::project::Project;
use crate::report::plural;
use crate::wiring::CommandDuration;
use crate::{caller, table};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  terrane dax . 'EVALUATE SUMMARIZECOLUMNS(flights[origin], \"Flights\", flights[count]) ORDER BY [Flights] DESC'
  terrane dax . @report.dax --json
  terrane dax . 'EVALUATE ROW(\"Orders\", orders[count])' --sql
  terrane dax . @report.dax --check
  terrane dax .

Tables are cubes, columns are dimensions, measures are measures and metrics. The first EVALUATE is answered.
Without a query, queries are read from the terminal: each ends with `;` or an empty line, Tab completes names,
and .terrane/dax_history holds the earlier ones.
Without --as the caller is the operator, who has no id, roles, groups or attributes.")]
pub struct DaxArguments {
    /// The project folder, which contains service_project.yml
    pub dir: PathBuf,
    /// The query; `@FILE` reads a file, `-` standard input. Without it, queries are read one after the other
    pub query: Option<String>,
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

/// The form in which a query is answered.
#[derive(Debug, Clone, Copy)]
struct Output {
    form: Form,
    /// True if rows are drawn for a terminal.
    is_terminal: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Rows,
    Json,
    Sql,
    Problems,
}

/// Runs or checks the query. Returns whether it has no problems.
///
/// # Errors
/// The project has errors, or the query is refused.
pub async fn run(arguments: &DaxArguments, project: Project, terminal: Terminal) -> Result<bool, Failure> {
    let text = arguments.query.as_deref().map(query_text).transpose()?;
    let caller = caller::read(arguments.caller.as_deref())?;
    let duration = if text.is_some() { CommandDuration::Short } else { CommandDuration::Long };
    let engine = load_for_queries(&project, duration).await?;
    let form = match arguments {
        DaxArguments { check: true, .. } => Form::Problems,
        DaxArguments { sql: true, .. } => Form::Sql,
        DaxArguments { json: true, .. } => Form::Json,
        _ => Form::Rows,
    };
    let output = Output { form, is_terminal: terminal.is_stdout_terminal };
    match text {
        Some(text) => answer(&engine, &caller, &text, output).await,
        None => repl::run(&engine, &caller, &arguments.dir, output).await,
    }
}

/// Answers or checks one query. Returns whether it has no problems.
async fn answer(engine: &Services, caller: &RequestContext, text: &str, output: Output) -> Result<bool, Failure> {
    let refusal = |error| refusal(text, error);
    match output.form {
        Form::Problems => {
            let problems = dax::check(&engine.queries, caller, text).await.map_err(refusal)?;
            let lines: String = problems.iter().map(|problem| format!("{}\n", problem.in_text(text))).collect();
            print(&lines);
            return Ok(problems.is_empty());
        }
        Form::Sql => {
            print(&format!("{}\n", dax::inline_sql(&engine.queries, caller, text).await.map_err(refusal)?));
            return Ok(true);
        }
        Form::Rows | Form::Json => {}
    }
    let answer = dax::execute(&engine.queries, caller, text).await.map_err(refusal)?;
    if output.form == Form::Json || !output.is_terminal {
        print(&format!("{}\n", String::from_utf8_lossy(&dax_wire::result(&answer))));
        return Ok(true);
    }
    let rows = Rows::of_batches(&answer.columns, &answer.batches);
    let rows = rows.map_err(|error| Failure::new(format!("{error:#}")))?;
    print(&format!("{}\n", table::draw(&rows, None)));
    answer.warnings.iter().for_each(|warning| print_warning(&warning.to_string()));
    let shown = plural(rows.rows.len(), "row");
    print_error(&format!("{shown}, {:.1} ms\n", answer.duration.as_secs_f64() * 1_000.0));
    Ok(true)
}

/// Converts a refusal to a failure that lists all problems of the query.
fn refusal(text: &str, error: DaxError) -> Failure {
    match error {
        DaxError::Problems(problems) => {
            let lines: Vec<String> = problems.iter().map(|problem| problem.in_text(text).to_string()).collect();
            Failure::new(lines.join("\n"))
        }
        error => refused(dax_wire::refusal(text, error, Scopes { read: true, write: true, admin: true })),
    }
}
