//! `terrane graphql`: executes one GraphQL document, or prints the schema.

use std::path::PathBuf;

use serde_json::{Map, Value as Json};
use terrane_app::query::RequestContext;
use terrane_app::security::{Scope, Scopes};
use terrane_graphql::{GraphQl, GraphQlContext, GraphQlServices, GraphQlSettings, OperationKind, Response};

use super::query::query_text;
use super::{Terminal, load_for_queries, print};
use crate::caller;
use crate::failure::Failure;
use crate::project::Project;
use crate::wiring::CommandDuration;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  terrane graphql . '{ cubes { name measures { name type } } }'
  terrane graphql . '{ query(measures: [\"orders.revenue\"]) { data query { sql } } }'
  terrane graphql . @document.graphql --variables '{\"limit\": 10}' --operation Top
  terrane graphql . '{ query(measures: [\"orders.count\"]) { data } }' --as user.json
  terrane graphql --schema

Jobs, pre-aggregations, mutations of the cache and subscriptions need a running server.
runtime/docs/reference/graphql.md describes the schema.

Without --as the caller is the operator, who has no id, roles, groups or attributes; security.anonymous does not
apply.")]
pub struct GraphqlArguments {
    /// The project folder, which contains service_project.yml
    #[arg(required_unless_present = "schema")]
    pub dir: Option<PathBuf>,
    /// The document; `@FILE` reads a file, `-` standard input
    #[arg(required_unless_present = "schema")]
    pub document: Option<String>,
    /// The variables, a JSON object; `@FILE` reads a file
    #[arg(long, value_name = "JSON")]
    pub variables: Option<String>,
    /// The operation to run, if the document has several
    #[arg(long, value_name = "NAME")]
    pub operation: Option<String>,
    /// Query as this caller: a JSON file with user_id, email, roles, groups and attributes
    #[arg(long = "as", value_name = "FILE")]
    pub caller: Option<PathBuf>,
    /// Print the schema, which is the same for every project
    #[arg(long, conflicts_with_all = ["dir", "document", "variables", "operation", "caller"])]
    pub schema: bool,
}

/// Prints the schema's text.
pub fn print_schema() {
    print(&terrane_graphql::schema_text());
}

/// Executes the document, and prints `{data, errors}`.
///
/// # Errors
/// The project has errors, or the response has some.
pub async fn run(arguments: &GraphqlArguments, project: Project, terminal: Terminal) -> Result<(), Failure> {
    let document = query_text(arguments.document.as_deref().unwrap_or_default())?;
    let variables = variables(arguments.variables.as_deref())?;
    // With scope `admin` the operator of this machine sees the warehouse's own messages, even if `--as` names a caller.
    let request =
        RequestContext { scopes: Scopes::READ.with(Scope::Admin), ..caller::read(arguments.caller.as_deref())? };
    let engine = load_for_queries(&project, CommandDuration::Short).await?;
    let graphql = GraphQl::new(GraphQlServices::from(&engine), GraphQlSettings::default());
    let response = match graphql.read(&document, arguments.operation.as_deref(), variables) {
        Ok(operation) if operation.kind() == OperationKind::Subscription => {
            return Err(Failure::new("subscriptions need a running server").hint("Start `terrane serve`."));
        }
        Ok(operation) => graphql.execute(operation, GraphQlContext { request, ..GraphQlContext::default() }).await,
        Err(refusal) => Response::refused(&refusal, ""),
    };
    print_response(&response, terminal)
}

fn print_response(response: &Response, terminal: Terminal) -> Result<(), Failure> {
    let text = String::from_utf8_lossy(response.body());
    let pretty = terminal.is_stdout_terminal.then(|| {
        let value: Json = serde_json::from_str(&text).ok()?;
        serde_json::to_string_pretty(&value).ok()
    });
    print(&format!("{}\n", pretty.flatten().as_deref().unwrap_or(&text)));
    match response.codes() {
        [] => Ok(()),
        [code] => Err(Failure::new(format!("the response has an error: {}", code.as_str()))),
        codes => Err(Failure::new(format!("the response has {} errors", codes.len()))),
    }
}

fn variables(text: Option<&str>) -> Result<Map<String, Json>, Failure> {
    let Some(text) = text else { return Ok(Map::new()) };
    let text = query_text(text)?;
    match serde_json::from_str(&text) {
        Ok(Json::Object(variables)) => Ok(variables),
        Ok(_) => Err(Failure::new("--variables is not a JSON object").hint("Write an object such as {\"limit\": 10}.")),
        Err(error) => Err(Failure::new(format!("--variables is not JSON: {error}"))),
    }
}
