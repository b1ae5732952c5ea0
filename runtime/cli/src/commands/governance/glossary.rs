//! `terrane governance glossary`: reads and changes terms and their links.
//!
//! In: terms as JSON or YAML, and artifacts as `TYPE/ID`. Out: terms, as the routes return them.

use clap::Subcommand;
use terrane_app::governance::TermView;
use terrane_app::services::ServerServices;
use terrane_terminal::TerminalText;
use terrane_wire::governance::{self as wire, GlossaryTerm, GlossaryTermPage, GlossaryTerms};

use super::super::module::{
    ChangeArguments, Column, Parameters, PlaceArguments, ReadArguments, Requester, body, failed, print_list,
    print_record, with_services,
};
use super::super::print;
use super::artifact::{ArtifactArgument, PageArguments};
use super::{refused, service};
use crate::failure::Failure;
use crate::project::Project;

const COLUMNS: &[Column] = &[
    ("ID", "/id"),
    ("NAME", "/name"),
    ("STATUS", "/status"),
    ("CATEGORY", "/category"),
    ("VERSION", "/version"),
    ("DEFINITION", "/definition"),
];

#[derive(Debug, Subcommand)]
pub enum GlossaryAction {
    /// List terms
    List {
        #[command(flatten)]
        read: ReadArguments,
        /// List terms of this category
        #[arg(long)]
        category: Option<String>,
        /// List terms with this status
        #[arg(long)]
        status: Option<String>,
        #[command(flatten)]
        page: PageArguments,
    },
    /// Search terms by words
    Search {
        /// Words of the name, the synonyms or the definition
        words: String,
        #[command(flatten)]
        read: ReadArguments,
        /// Find terms of this category
        #[arg(long)]
        category: Option<String>,
        /// Find terms with this status
        #[arg(long)]
        status: Option<String>,
        /// The maximum number of terms, 1–500
        #[arg(long)]
        limit: Option<u32>,
    },
    /// Show a term with its links
    Show {
        /// The id of the term
        id: String,
        #[command(flatten)]
        read: ReadArguments,
    },
    /// Create a term
    Create {
        /// The term as JSON or YAML, like the body of the route; `@FILE` reads a file, `-` standard input
        term: String,
        #[command(flatten)]
        change: ChangeArguments,
    },
    /// Change a term; fields that are left out stay as they are
    Change {
        /// The id of the term
        id: String,
        /// The change as JSON or YAML, like the body of the route; `@FILE` reads a file, `-` standard input
        term: String,
        #[command(flatten)]
        change: ChangeArguments,
    },
    /// Archive a term
    Archive {
        /// The id of the term
        id: String,
        #[command(flatten)]
        change: ChangeArguments,
    },
    /// Link a term to an artifact or to another term
    Link {
        /// The id of the term
        id: String,
        /// The artifact as TYPE/ID, like measure/orders.count; `term/ID` is another term
        target: ArtifactArgument,
        #[command(flatten)]
        change: ChangeArguments,
        /// The meaning of the link, such as `defines`
        #[arg(long)]
        relationship: String,
    },
    /// Remove a link of a term
    Unlink {
        /// The id of the term
        id: String,
        /// The artifact as TYPE/ID, like measure/orders.count; `term/ID` is another term
        target: ArtifactArgument,
        #[command(flatten)]
        change: ChangeArguments,
        /// The meaning of the link; default: all links to the target
        #[arg(long)]
        relationship: Option<String>,
    },
}

impl GlossaryAction {
    pub(super) fn place(&self) -> &PlaceArguments {
        match self {
            GlossaryAction::List { read, .. }
            | GlossaryAction::Search { read, .. }
            | GlossaryAction::Show { read, .. } => &read.place,
            GlossaryAction::Create { change, .. }
            | GlossaryAction::Change { change, .. }
            | GlossaryAction::Archive { change, .. }
            | GlossaryAction::Link { change, .. }
            | GlossaryAction::Unlink { change, .. } => &change.place,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// The request is refused.
pub(super) async fn run(action: &GlossaryAction, project: &Project) -> Result<(), Failure> {
    match action {
        GlossaryAction::List { read, category, status, page } => {
            let parameters = Parameters::default().with("category", category.as_ref());
            let parameters = page.of(parameters.with("status", status.as_ref()));
            list(read, &parameters, project).await
        }
        GlossaryAction::Search { words, read, category, status, limit } => {
            let parameters = Parameters::default()
                .with("query", Some(words))
                .with("category", category.as_ref())
                .with("status", status.as_ref())
                .with("limit", *limit);
            search(read, &parameters, project).await
        }
        GlossaryAction::Show { id, read } => {
            let requester = Requester::new(read.caller.caller.as_deref())?;
            with_services(project, async |services| {
                let view = service(services)?.term(id, &requester.request).await.map_err(refused)?;
                print_record(read.place.json, &GlossaryTerm::from(&view));
                Ok(())
            })
            .await
        }
        GlossaryAction::Create { term, change } => {
            let wanted = wire::new_term_from_wire(&body(term)?, change.version.precondition()).map_err(failed)?;
            changed(change, project, async |services, requester| {
                service(services)?.create_term(&wanted, &requester.request).await.map_err(refused)
            })
            .await
        }
        GlossaryAction::Change { id, term, change } => {
            let wanted = wire::term_change_from_wire(&body(term)?, change.version.precondition()).map_err(failed)?;
            changed(change, project, async |services, requester| {
                service(services)?.change_term(id, &wanted, &requester.request).await.map_err(refused)
            })
            .await
        }
        GlossaryAction::Archive { id, change } => archive(id, change, project).await,
        GlossaryAction::Link { id, target, change, relationship } => {
            let link = target.body([("relationship", Some(relationship.clone()))]);
            let wanted = wire::link_from_wire(&link, change.version.precondition()).map_err(failed)?;
            changed(change, project, async |services, requester| {
                service(services)?.link_term(id, &wanted, &requester.request).await.map_err(refused)
            })
            .await
        }
        GlossaryAction::Unlink { id, target, change, relationship } => {
            let parameters = target.parameters().with("relationship", relationship.as_ref()).text();
            let wanted = wire::link_from_parameters(&parameters, change.version.precondition()).map_err(failed)?;
            changed(change, project, async |services, requester| {
                service(services)?.unlink_term(id, &wanted, &requester.request).await.map_err(refused)
            })
            .await
        }
    }
}

/// Makes a change, and prints the term after it.
async fn changed(
    change: &ChangeArguments,
    project: &Project,
    action: impl AsyncFnOnce(&ServerServices, &Requester) -> Result<TermView, Failure>,
) -> Result<(), Failure> {
    let requester = Requester::new(change.caller.caller.as_deref())?;
    let view = with_services(project, async |services| action(services, &requester).await).await?;
    print_record(change.place.json, &GlossaryTerm::from(&view));
    Ok(())
}

async fn list(read: &ReadArguments, parameters: &Parameters, project: &Project) -> Result<(), Failure> {
    let (filter, page) = wire::term_filter_from_parameters(&parameters.text()).map_err(failed)?;
    let requester = Requester::new(read.caller.caller.as_deref())?;
    with_services(project, async |services| {
        let found = service(services)?.terms(&filter, &page, &requester.request).await.map_err(refused)?;
        print_list(read.place.json, &GlossaryTermPage::from(&found), "terms", COLUMNS);
        Ok(())
    })
    .await
}

async fn search(read: &ReadArguments, parameters: &Parameters, project: &Project) -> Result<(), Failure> {
    let (words, filter, limit) = wire::term_search_from_parameters(&parameters.text()).map_err(failed)?;
    let requester = Requester::new(read.caller.caller.as_deref())?;
    with_services(project, async |services| {
        let found = service(services)?.search_terms(&words, &filter, limit, &requester.request).await;
        let found = found.map_err(refused)?;
        print_list(read.place.json, &GlossaryTerms::from(found.as_slice()), "terms", COLUMNS);
        Ok(())
    })
    .await
}

async fn archive(id: &str, change: &ChangeArguments, project: &Project) -> Result<(), Failure> {
    let requester = Requester::new(change.caller.caller.as_deref())?;
    with_services(project, async |services| {
        let (service, precondition) = (service(services)?, change.version.precondition());
        service.archive_term(id, &precondition, &requester.request).await.map_err(refused)?;
        if change.place.json {
            let view = service.term(id, &requester.request).await.map_err(refused)?;
            print_record(true, &GlossaryTerm::from(&view));
        } else {
            print(&format!("archived term {}\n", TerminalText::line(id)));
        }
        Ok(())
    })
    .await
}
