//! `terrane query`: runs one query.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde_json::Value;
use terrane_app::metadata;
use terrane_app::query::{Answer, QueryRunError};
use terrane_compiler::{Access, SecurityContext};
use terrane_expectations::hint;
use terrane_wire::{Code, ErrorBody};

use super::{Terminal, load_for_queries, print, print_error, print_warning};
use crate::failure::Failure;
use crate::output::{self, OutputArguments};
use crate::project::Project;
use crate::wiring::{self, CommandDuration, WarehouseUse};
use crate::{caller, query_place, wire};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  terrane query . '{\"measures\": [\"orders.revenue\"], \"dimensions\": [\"customers.region\"]}'
  terrane query . @question.json --json
  echo '{\"metrics\": [\"on_time_rate\"]}' | terrane query examples/flights -
  terrane query . '{\"measures\": [\"orders.count\"]}' --sql
  terrane query . '{\"measures\": [\"orders.count\"]}' --as user.json
  terrane query . @question.json --csv > rows.csv
  terrane query . @question.json --plot

The query is the body of POST /api/v1/query, a JSON object of
  metrics, measures     what to compute: [\"on_time_rate\"], [\"orders.count\"]
  dimensions, segments  [\"orders.status\", \"orders.created_at.month\"], [\"orders.paid\"]
  time_dimensions       [{\"dimension\": \"orders.created_at\", \"granularity\": \"month\", \"date_range\": \"2024\"}]
  time_range            \"last 7 days\", {\"start\": \"2024-01-01\", \"end\": \"2024-03-31\"}
  filters               [{\"dimension\": \"orders.status\", \"operator\": \"equals\", \"value\": \"paid\"}]
  order_by, order       [{\"field\": \"orders.count\", \"direction\": \"desc\"}]
  limit, offset, cube, timezone, compare_range, fill_gaps, ungrouped
  total, totals         true or false: for the server's response, no effect here
  numbers               \"string\" or \"number\": for the server's response, no effect here
runtime/docs/reference/query.md describes each.

Without --as the caller is the operator, who has no id, roles, groups or attributes; security.anonymous does not
apply.")]
pub struct QueryArguments {
    /// The project folder, which contains service_project.yml
    pub dir: PathBuf,
    /// The query as JSON; `@FILE` reads a file, `-` standard input
    pub query: Option<String>,
    #[command(flatten)]
    pub output: OutputArguments,
    /// Query as this caller: a JSON file with user_id, email, roles, groups and attributes
    #[arg(long = "as", value_name = "FILE")]
    pub caller: Option<PathBuf>,
    /// Print the SQL with its values, without running it
    #[arg(long, conflicts_with = "output")]
    pub sql: bool,
}

/// The maximum number of bytes of a query.
const MAX_QUERY_BYTES: u64 = 1024 * 1024;

/// Runs the query.
///
/// # Errors
/// The project has errors, or the query is refused.
pub async fn run(arguments: &QueryArguments, project: Project, terminal: Terminal) -> Result<(), Failure> {
    let Some(argument) = &arguments.query else { return Err(no_query(arguments, &project).await) };
    let text = query_text(argument)?;
    let query = wire::parse(&text).map_err(|error| refused(error.into()))?;
    let caller = caller::read(arguments.caller.as_deref())?;
    let engine = load_for_queries(&project, CommandDuration::Short).await?;
    let refused = |error| refused_query(error, &text);
    if arguments.sql {
        print(&format!("{}\n", wire::inline_sql(&engine, &caller, &query).await.map_err(refused)?));
        return Ok(());
    }
    let answer = wire::run(&engine, &caller, &query).await.map_err(refused)?;
    let snapshot = engine.catalog.snapshot();
    let access = Access::of(&snapshot.model, &caller.caller);
    output::write(&arguments.output, &answer, &access, terminal)?;
    answer.warnings.iter().for_each(|warning| print_warning(warning));
    if arguments.caller.is_none() {
        print_error(&filtered_note(&access, &answer));
    }
    Ok(())
}

/// Returns the error of a call without a query, with an example from the project.
async fn no_query(arguments: &QueryArguments, project: &Project) -> Failure {
    let engine = match wiring::load(project, WarehouseUse::Read).await {
        Ok((engine, _)) => engine,
        Err(failure) => return failure,
    };
    let snapshot = engine.catalog.snapshot();
    let caller = SecurityContext::default();
    let access = Access::of(&snapshot.model, &caller);
    let measure = metadata::cubes(&access).find_map(|cube| {
        let measure = metadata::measures(&access, cube).next()?;
        Some(format!("{}.{}", cube.name, measure.name))
    });
    let failure = Failure::new("missing query");
    match measure {
        Some(measure) => {
            let dir = arguments.dir.display();
            failure.hint(format!("Write one, as in `terrane query {dir} '{{\"measures\": [\"{measure}\"]}}'`"))
        }
        None => failure.hint("The project has no measures. Write a cube in cubes/*.yml."),
    }
}

/// Returns a note if row filters apply to a caller without attributes. Such filters usually hide all rows.
pub(super) fn filtered_note(access: &Access<'_>, answer: &Answer) -> String {
    let cubes = answer.cubes.iter().filter_map(|id| access.model().cubes.get(id.0 as usize));
    let filtered = cubes.filter(|cube| access.is_closed(cube) || access.row_filters(cube.id).next().is_some());
    let names: Vec<String> = filtered.map(|cube| format!("`{}`", cube.name)).collect();
    if names.is_empty() {
        return String::new();
    }
    let names = names.join(", ");
    format!("note: row filters apply to {names}, and this caller has no roles and attributes; try --as FILE\n")
}

/// Returns the text of the argument, or of the file that it names.
pub(super) fn query_text(argument: &str) -> Result<String, Failure> {
    if argument == "-" {
        return read(io::stdin().lock(), "standard input");
    }
    match argument.strip_prefix('@') {
        Some(path) => {
            let file = std::fs::File::open(Path::new(path)).map_err(|error| {
                Failure::new(format!("{path} cannot be read: {error}")).hint("Check the path after the @.")
            })?;
            read(file, path)
        }
        None => Ok(argument.to_owned()),
    }
}

fn read(source: impl io::Read, name: &str) -> Result<String, Failure> {
    let mut text = String::new();
    let read = source.take(MAX_QUERY_BYTES + 1).read_to_string(&mut text);
    let length = read.map_err(|error| Failure::new(format!("{name} cannot be read: {error}")))?;
    if length as u64 > MAX_QUERY_BYTES {
        return Err(Failure::new(format!("{name} is larger than 1 MiB")));
    }
    Ok(text)
}

/// Converts the refusal of a query, with a hint and its place in the query's text.
pub(super) fn refused_query(error: QueryRunError, text: &str) -> Failure {
    let place = query_place::of(&error, text);
    let failure = refused(ErrorBody::for_operator(error));
    match place {
        Some(place) => failure.and_hint(&format!("field: {place}")),
        None => failure,
    }
}

/// Converts a refusal, with a hint.
pub(super) fn refused(mut refusal: ErrorBody) -> Failure {
    // No log is shown here, so the warehouse's own text is part of the message.
    let of_warehouse = refusal.field("warehouse_message").and_then(Value::as_str);
    if let Some(message) = of_warehouse.map(|text| format!("{}: {text}", refusal.message)) {
        refusal.message = message;
    }
    let failure = Failure::new(format!("{}: {}", refusal.code.as_str(), refusal.message));
    if wire::is_policy_unavailable(&refusal) {
        let why = "See the lines above for the fault, or run `terrane doctor`, which checks all required plugins.";
        return failure.hint(format!("reason: policy_unavailable. {why}"));
    }
    match hint(&refusal) {
        Some(hint) => failure.hint(hint),
        None if refusal.code == Code::NoJoinPath => {
            failure.hint("Add the missing join to `joins` of a cube. `terrane graph` draws the joins.")
        }
        None => failure,
    }
}
