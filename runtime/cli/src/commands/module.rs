//! Parts that the commands of the optional modules share: callers, arguments, and the forms of requests and answers.
//!
//! In: arguments. Out: the caller, the query parameters and the body of a request, which the readers of the routes
//! validate. Answers are printed in the types of the routes, as JSON, or as a table or lines of their fields.

use std::path::{Path, PathBuf};

use form_urlencoded::Serializer;
use serde::Serialize;
use serde_json::{Map, Value as Json};
use terrane_app::domain::{Identity, Precondition, RequestContext, Scope, Scopes};
use terrane_app::services::ServerServices;
use terrane_compiler::SecurityContext;
use terrane_terminal::TerminalText;
use terrane_wire::ErrorBody;

use super::query::{query_text, refused};
use super::{json_line, operator, print, print_error};
use crate::caller;
use crate::failure::Failure;
use crate::project::Project;
use crate::wiring;

/// The largest number of values in a YAML document.
const MAX_NODES: usize = 100_000;

/// The project and the form of the answer.
#[derive(Debug, Clone, clap::Args)]
pub struct PlaceArguments {
    /// The project folder, which contains service_project.yml
    #[arg(default_value = ".")]
    pub dir: PathBuf,
    /// Print the response of the route as JSON
    #[arg(long)]
    pub json: bool,
}

/// The caller of a request.
#[derive(Debug, Clone, clap::Args)]
pub struct CallerArguments {
    /// Act as this caller: a JSON file with user_id, email, roles, groups and attributes; default: the operator
    #[arg(long = "as", value_name = "FILE")]
    pub caller: Option<PathBuf>,
}

/// The project, the caller and the version of a change.
#[derive(Debug, Clone, clap::Args)]
pub struct ChangeArguments {
    #[command(flatten)]
    pub place: PlaceArguments,
    #[command(flatten)]
    pub(super) version: VersionArguments,
    #[command(flatten)]
    pub(super) caller: CallerArguments,
}

/// The project and the caller of a request that changes nothing.
#[derive(Debug, Clone, clap::Args)]
pub struct ReadArguments {
    #[command(flatten)]
    pub place: PlaceArguments,
    #[command(flatten)]
    pub(super) caller: CallerArguments,
}

/// The version that a change replaces.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct VersionArguments {
    /// Change the record only if it has this version; `*` is any version of a record that exists
    #[arg(long, value_name = "VERSION", value_parser = version)]
    pub if_match: Option<Precondition>,
}

impl VersionArguments {
    pub(super) fn precondition(&self) -> Precondition {
        self.if_match.clone().unwrap_or_default()
    }
}

fn version(text: &str) -> Result<Precondition, String> {
    match text {
        "*" => Ok(Precondition::Exists),
        number => match number.parse() {
            Ok(version) => Ok(Precondition::Versions(vec![version])),
            Err(_) => Err("expected a version, like 3, or `*`".to_owned()),
        },
    }
}

/// The caller of a command, as routes know callers.
pub(super) struct Requester {
    pub(super) request: RequestContext,
    pub(super) identity: Identity,
}

impl Requester {
    /// Returns the caller of a file with the scopes `read` and `write`, or the operator with all scopes.
    ///
    /// # Errors
    /// The file cannot be read, or does not describe a caller.
    pub(super) fn new(file: Option<&Path>) -> Result<Self, Failure> {
        let request = match file {
            Some(file) => RequestContext { scopes: Scopes::READ.with(Scope::Write), ..caller::read(Some(file))? },
            None => {
                let operator = SecurityContext { user_id: operator().user_id, ..SecurityContext::default() };
                // A user who can open the state database can change all of it.
                let scopes = Scopes::default().with(Scope::Admin);
                RequestContext { scopes, ..RequestContext::operator(operator) }
            }
        };
        let identity = Identity {
            caller: request.caller.clone(),
            scopes: request.scopes,
            tenant: request.tenant.clone(),
            ..Identity::default()
        };
        Ok(Requester { request, identity })
    }
}

/// Runs an action with the use cases of a project, and writes the records of the action.
///
/// # Errors
/// The project has errors, the state database is unavailable, or the action failed.
pub(super) async fn with_services<T>(
    project: &Project,
    action: impl AsyncFnOnce(&ServerServices) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let services = wiring::modules(project).await?;
    let result = action(&services).await;
    let closed = wiring::close_modules(&services).await;
    let result = result?;
    closed.map(|()| result)
}

/// Returns a part of the services, or the failure for a module that is switched off.
///
/// # Errors
/// The module is switched off.
pub(super) fn enabled<'s, T>(service: Option<&'s T>, module: &str, setting: &str) -> Result<&'s T, Failure> {
    service.ok_or_else(|| Failure::new(format!("{module} switched off")).hint(format!("Set `{setting}: true`.")))
}

/// Query parameters in the form that the readers of routes accept.
#[derive(Default)]
pub(super) struct Parameters(Vec<(&'static str, String)>);

impl Parameters {
    #[must_use]
    pub(super) fn with(mut self, name: &'static str, value: Option<impl ToString>) -> Self {
        self.0.extend(value.map(|value| (name, value.to_string())));
        self
    }

    pub(super) fn text(&self) -> String {
        Serializer::new(String::new()).extend_pairs(&self.0).finish()
    }
}

/// Returns the body of a request with the fields that have values.
pub(super) fn body_of<'n>(fields: impl IntoIterator<Item = (&'n str, Option<String>)>) -> Vec<u8> {
    let fields = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), Json::String(value?))));
    Json::Object(fields.collect::<Map<_, _>>()).to_string().into_bytes()
}

/// Reads the body of a request: JSON or YAML, as the argument itself, in a file (`@FILE`) or from standard input (`-`).
///
/// # Errors
/// The file cannot be read, or is not YAML.
pub(super) fn body(argument: &str) -> Result<Vec<u8>, Failure> {
    let text = query_text(argument)?;
    if text.trim_start().starts_with(['{', '[']) {
        return Ok(text.into_bytes());
    }
    let mut options = serde_saphyr::Options::default();
    // In YAML 1.2, `no` is a string.
    options.strict_booleans = true;
    if let Some(budget) = &mut options.budget {
        (budget.max_nodes, budget.max_events) = (MAX_NODES, MAX_NODES);
        (budget.max_aliases, budget.max_anchors) = (0, 0);
    }
    let json: Json = serde_saphyr::from_str_with_options(&text, options).map_err(|error| {
        let failure = Failure::new(format!("expected JSON or YAML: {error}"));
        failure.hint("Write `@FILE` to read a file, or `-` to read standard input.")
    })?;
    Ok(json.to_string().into_bytes())
}

/// Converts the refusal of a route.
pub(super) fn failed(error: impl Into<ErrorBody>) -> Failure {
    refused(error.into())
}

/// A column of a table: its header, and the JSON pointer of its value.
pub(super) type Column = (&'static str, &'static str);

/// Prints the records of an answer in the field `list`: the answer as JSON, or one line for each record.
pub(super) fn print_list(is_json: bool, answer: &impl Serialize, list: &str, columns: &[Column]) {
    if is_json {
        print(&json_line(answer));
        return;
    }
    let answer = serde_json::to_value(answer).unwrap_or_default();
    let records = answer[list].as_array().map(Vec::as_slice).unwrap_or_default();
    if records.is_empty() {
        print_error(&format!("no {}\n", list.replace('_', " ")));
        return;
    }
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING).set_header(columns.iter().map(|(header, _)| *header));
    for record in records {
        table.add_row(columns.iter().map(|(_, pointer)| cell(record.pointer(pointer).unwrap_or(&Json::Null))));
    }
    print(&format!("{table}\n"));
    if let Some(next) = answer["next"].as_str() {
        print_error(&format!("next page: --before {}\n", TerminalText::line(next)));
    }
}

/// Prints a record: as JSON, or as one line for each field that has a value.
pub(super) fn print_record(is_json: bool, record: &impl Serialize) {
    if is_json {
        print(&json_line(record));
        return;
    }
    let mut lines = Vec::new();
    collect_lines("", &serde_json::to_value(record).unwrap_or_default(), &mut lines);
    let width = lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    print(&lines.iter().map(|(name, value)| format!("{name:<width$}  {value}\n")).collect::<String>());
}

fn collect_lines(name: &str, value: &Json, lines: &mut Vec<(String, TerminalText)>) {
    let inner = |part: &str| match name {
        "" => part.to_owned(),
        name => format!("{name}.{part}"),
    };
    match value {
        Json::Object(fields) => fields.iter().for_each(|(part, value)| collect_lines(&inner(part), value, lines)),
        Json::Array(items) if items.iter().any(Json::is_object) => {
            items.iter().enumerate().for_each(|(index, item)| collect_lines(&inner(&index.to_string()), item, lines));
        }
        other => {
            let text = cell(other);
            if !text.is_empty() {
                lines.push((TerminalText::line(name).into_string(), TerminalText::spaced(&text)));
            }
        }
    }
}

/// Returns the text of a value; empty for null.
fn cell(value: &Json) -> String {
    let text = match value {
        Json::Null => String::new(),
        Json::String(text) => text.clone(),
        Json::Array(items) => items.iter().map(cell).collect::<Vec<_>>().join(", "),
        Json::Object(fields) => {
            let parts = fields.iter().map(|(name, value)| format!("{name} {}", cell(value)));
            parts.collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    };
    TerminalText::spaced(&text).into_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn body_is_json_or_yaml() {
        assert_eq!(body("{\"a\": 1e0}").unwrap(), b"{\"a\": 1e0}");
        assert_eq!(body("name: no\nlist: [1, b]\n").unwrap(), br#"{"name":"no","list":[1,"b"]}"#);
        assert!(body("a: &x 1\nb: *x\n").is_err());
        assert!(body("@/nowhere").is_err());
    }

    #[test]
    fn parameters_are_encoded() {
        let parameters = Parameters::default().with("a", Some("x&y=ü")).with("b", None::<u8>).with("c", Some(3));
        assert_eq!(parameters.text(), "a=x%26y%3D%C3%BC&c=3");
    }

    #[test]
    fn version_is_a_number_or_any() {
        assert_eq!(version("3"), Ok(Precondition::Versions(vec![3])));
        assert_eq!(version("*"), Ok(Precondition::Exists));
        assert!(version("\"3\"").is_err());
    }

    #[test]
    fn lines_have_the_names_of_nested_fields() {
        let mut lines = Vec::new();
        let record = json!({"a": null, "b": {"c": 1, "d": [true, "x"]}, "e": [{"f": "g\u{1b}"}]});
        collect_lines("", &record, &mut lines);
        let lines: Vec<_> = lines.into_iter().map(|(name, value)| format!("{name}={}", value.into_string())).collect();
        assert_eq!(lines, ["b.c=1", "b.d=true, x", "e.0.f=g "]);
    }
}
