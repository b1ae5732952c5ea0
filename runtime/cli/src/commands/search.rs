//! `terrane search`: finds cubes, members, metrics and values of dimensions by words.
//!
//! In: a project and words. Out: a table, or the response of `POST /api/v1/search`. Certifications, owners, terms of
//! the glossary and the uses of members come from the state database, if it exists; this command does not create it.

use std::path::PathBuf;
use std::sync::Arc;

use terrane_app::ports::governance_records::CertificationStatus;
use terrane_app::search::{HitType, MAX_LIMIT, SearchRequest, SearchService};
use terrane_app::services::Services;
use terrane_terminal::TerminalText;
use terrane_wire::ErrorBody;
use terrane_wire::search::{SearchHit, SearchResults};

use super::query::refused;
use super::{json_line, load_for_queries, print, print_error};
use crate::caller;
use crate::failure::Failure;
use crate::project::Project;
use crate::wiring::{self, CommandDuration};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  terrane search examples/flights 'average delay'
  terrane search . revenue --type measure --limit 5
  terrane search . margin --tag finance --certification certified
  terrane search . 'united' --type value
  terrane search . region --as user.json --json | jq -r '.results[].name'

A word matches if it equals a word of a name, title, synonym, tag, owner, unit, description or value, if it is the start
of one, or if it has one typing mistake (two in words of eight letters or more). Values are those of dimensions with
`meta: {searchable: true}`.")]
pub struct SearchArguments {
    /// The project folder, which contains service_project.yml
    pub dir: PathBuf,
    /// The words to search for
    #[arg(required = true)]
    pub words: Vec<String>,
    /// Only hits of this type
    #[arg(long = "type", value_name = "TYPE", value_parser = HitType::ALL.map(HitType::as_str))]
    pub types: Vec<String>,
    /// Only this cube and its members
    #[arg(long)]
    pub cube: Option<String>,
    /// Only artifacts with this tag; repeat it for artifacts that have several tags
    #[arg(long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,
    /// Only artifacts with this state of certification
    #[arg(long, value_name = "STATUS", value_parser = CertificationStatus::ALL.map(CertificationStatus::as_str))]
    pub certification: Option<String>,
    /// The maximum number of hits
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=MAX_LIMIT as i64))]
    pub limit: u32,
    /// Search as this caller: a JSON file with user_id, email, roles, groups and attributes
    #[arg(long = "as", value_name = "FILE")]
    pub caller: Option<PathBuf>,
    /// Print the response of POST /api/v1/search
    #[arg(long)]
    pub json: bool,
}

/// Prints the artifacts that a search finds. Returns whether something was found.
///
/// # Errors
/// The project has errors, or the text or the cube is invalid.
pub async fn run(arguments: &SearchArguments, project: Project) -> Result<bool, Failure> {
    let caller = caller::read(arguments.caller.as_deref())?;
    let engine = load_for_queries(&project, CommandDuration::Short).await?;
    let recorded = recorded_search(&project, &engine).await;
    let search = recorded.as_ref().unwrap_or(&engine.search);
    let named = |name: &String| HitType::ALL.into_iter().find(|kind| kind.as_str() == name.as_str());
    let status = arguments.certification.as_deref();
    let status = status.and_then(|name| CertificationStatus::ALL.into_iter().find(|status| status.as_str() == name));
    let request = SearchRequest {
        text: arguments.words.join(" "),
        types: arguments.types.iter().filter_map(named).collect(),
        cube: arguments.cube.clone(),
        tags: arguments.tags.clone(),
        status,
        limit: arguments.limit as usize,
    };
    let found = search.search(&request, &caller).await.map_err(|error| refused(ErrorBody::from(error)))?;
    let results = SearchResults::from(&found);
    if arguments.json {
        print(&json_line(&results));
    } else if results.results.is_empty() {
        print_error("no matches\n");
    } else {
        print(&format!("{}\n", table(&results.results)));
        if results.has_more {
            print_error("there are more matches; see --limit\n");
        }
    }
    found.warnings.iter().for_each(|warning| print_error(&format!("{}\n", TerminalText::spaced(warning))));
    Ok(!found.hits.is_empty())
}

/// Returns a search with the records of governance and the history of queries; `None` if the state database does not
/// exist or cannot be opened.
async fn recorded_search(project: &Project, engine: &Services) -> Option<Arc<SearchService>> {
    if !wiring::has_state(project) {
        return None;
    }
    let store = wiring::state(project).await.ok()?;
    let governance = wiring::governance(project, engine, &store);
    let executions = wiring::executions(project, &store);
    Some(Arc::new(engine.recorded_search(governance, executions)))
}

fn table(hits: &[SearchHit<'_>]) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    let header = ["TYPE", "NAME", "TITLE", "MATCH", "CERTIFICATION", "OWNERS"];
    table.load_style(comfy_table::presets::NOTHING).set_header(header);
    let text = |text: &str| TerminalText::spaced(text).into_string();
    for hit in hits {
        let reason = hit.matches.first().map_or("", |found| found.field);
        let reason = match hit.value {
            Some(value) => format!("{reason} {}", text(value)),
            None => reason.to_owned(),
        };
        let certification = hit.certification.as_ref().map_or("", |badge| badge.status);
        let owners: Vec<String> = hit.owners.iter().map(|owner| text(owner.id)).collect();
        let cells = [hit.r#type.to_owned(), text(hit.name), text(hit.title), reason];
        table.add_row(cells.into_iter().chain([certification.to_owned(), owners.join(", ")]));
    }
    table
}
