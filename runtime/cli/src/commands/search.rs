//! `terrane search`: finds cubes, members and metrics by words.
//!
//! In: a project and words. Out: a table, or the response of `POST /api/v1/search`. Records of governance, which are in
//! the state database of a server, are left out.

use std::path::PathBuf;

use terrane_app::ports::governance_records::ArtifactType;
use terrane_app::search::{MAX_LIMIT, SearchRequest};
use terrane_terminal::TerminalText;
use terrane_wire::ErrorBody;
use terrane_wire::search::{SearchHit, SearchResults, TYPES};

use super::query::refused;
use super::{json_line, print, print_error};
use crate::caller;
use crate::failure::Failure;
use crate::project::Project;
use crate::wiring::{self, WarehouseUse};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  terrane search examples/flights 'average delay'
  terrane search . revenue --type measure --limit 5
  terrane search . region --as user.json --json | jq -r '.results[].name'

A word matches if it equals a word of a name, title, synonym, tag or description, if it is the start of one, or if
it has one typing mistake (two in words of eight letters or more).")]
pub struct SearchArguments {
    /// The project: the folder that holds service_project.yml
    pub dir: PathBuf,
    /// The words to search for
    #[arg(required = true)]
    pub words: Vec<String>,
    /// Only artifacts of this type
    #[arg(long = "type", value_name = "TYPE", value_parser = TYPES.map(ArtifactType::as_str))]
    pub types: Vec<String>,
    /// Only this cube and its members
    #[arg(long)]
    pub cube: Option<String>,
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
    let (engine, _) = wiring::load(&project, WarehouseUse::Read).await?;
    let named = |name: &String| TYPES.into_iter().find(|kind| kind.as_str() == name.as_str());
    let request = SearchRequest {
        text: arguments.words.join(" "),
        types: arguments.types.iter().filter_map(named).collect(),
        cube: arguments.cube.clone(),
        limit: arguments.limit as usize,
        ..SearchRequest::default()
    };
    let found = engine.search.search(&request, &caller).await.map_err(|error| refused(ErrorBody::from(error)))?;
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
    Ok(!found.hits.is_empty())
}

fn table(hits: &[SearchHit<'_>]) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING).set_header(["TYPE", "NAME", "TITLE", "MATCH"]);
    for hit in hits {
        let reason = hit.matches.first().map_or("", |found| found.field);
        let text = |text: &str| TerminalText::spaced(text).into_string();
        table.add_row([hit.r#type.to_owned(), text(hit.name), text(hit.title), reason.to_owned()]);
    }
    table
}
