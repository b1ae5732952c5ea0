//! `terrane governance artifacts` and `catalog`: reads artifacts with their records, and sets metadata.
//!
//! In: an artifact as `TYPE/ID`. Out: artifacts, as the routes return them.

use std::str::FromStr;

use clap::Subcommand;
use terrane_app::governance::ArtifactQuery;
use terrane_app::ports::governance_records::ArtifactRef;
use terrane_wire::governance::{self as wire, GovernedArtifact, GovernedArtifacts};

use super::super::module::{
    ChangeArguments, Column, Parameters, PlaceArguments, ReadArguments, Requester, body, body_of, failed, print_list,
    print_record, with_services,
};
use super::{refused, service};
use crate::failure::Failure;
use crate::project::Project;

const COLUMNS: &[Column] = &[
    ("TYPE", "/artifact_type"),
    ("ARTIFACT", "/artifact_id"),
    ("TITLE", "/title"),
    ("CERTIFICATION", "/certification/status"),
    ("TAGS", "/tags"),
    ("CLASSIFICATION", "/data_classification"),
    ("PII", "/pii_flag"),
];

/// An artifact as `TYPE/ID`.
#[derive(Debug, Clone)]
pub struct ArtifactArgument {
    kind: String,
    id: String,
}

impl FromStr for ArtifactArgument {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (kind, id) = text.split_once('/').ok_or("expected TYPE/ID, like metric/revenue or cube/orders")?;
        Ok(ArtifactArgument { kind: kind.to_owned(), id: id.to_owned() })
    }
}

impl ArtifactArgument {
    /// Returns the artifact.
    ///
    /// # Errors
    /// The type is unknown.
    pub(super) fn reference(&self) -> Result<ArtifactRef, Failure> {
        wire::artifact_of_path(&self.kind, &self.id).map_err(failed)
    }

    /// Returns a body that names the artifact and has the fields with values.
    pub(super) fn body<const N: usize>(&self, fields: [(&str, Option<String>); N]) -> Vec<u8> {
        let artifact = [("artifact_type", Some(self.kind.clone())), ("artifact_id", Some(self.id.clone()))];
        body_of(artifact.into_iter().chain(fields))
    }

    /// Returns query parameters that name the artifact.
    pub(super) fn parameters(&self) -> Parameters {
        Parameters::default().with("artifact_type", Some(&self.kind)).with("artifact_id", Some(&self.id))
    }
}

/// A page of a list.
#[derive(Debug, clap::Args)]
pub struct PageArguments {
    /// The maximum number of records, 1–500
    #[arg(long)]
    limit: Option<u32>,
    /// The number of records to skip
    #[arg(long)]
    offset: Option<u32>,
}

impl PageArguments {
    pub(super) fn of(&self, parameters: Parameters) -> Parameters {
        parameters.with("limit", self.limit).with("offset", self.offset)
    }
}

#[derive(Debug, Subcommand)]
pub enum ArtifactAction {
    /// Search artifacts by words, tags, certification and type
    Search {
        #[command(flatten)]
        read: ReadArguments,
        /// Words of the name, the title, the description or the tags
        #[arg(long, value_name = "WORDS")]
        query: Option<String>,
        /// Find artifacts with this tag; can be repeated
        #[arg(long = "tag", value_name = "TAG")]
        tags: Vec<String>,
        /// Find artifacts with this status of certification
        #[arg(long)]
        status: Option<String>,
        /// Find artifacts of this type
        #[arg(long = "type", value_name = "TYPE")]
        kind: Option<String>,
        #[command(flatten)]
        page: PageArguments,
    },
    /// Show an artifact with its records
    Show {
        /// The artifact as TYPE/ID, like metric/revenue or measure/orders.count
        artifact: ArtifactArgument,
        #[command(flatten)]
        read: ReadArguments,
    },
    /// Change the metadata of an artifact
    SetMetadata {
        /// The artifact as TYPE/ID, like metric/revenue or measure/orders.count
        artifact: ArtifactArgument,
        /// The change as JSON or YAML, like the body of the route; `@FILE` reads a file, `-` standard input
        metadata: String,
        #[command(flatten)]
        change: ChangeArguments,
    },
}

#[derive(Debug, clap::Args)]
pub struct CatalogArguments {
    #[command(flatten)]
    pub read: ReadArguments,
    /// List artifacts of this type
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// List artifacts of this cube
    #[arg(long)]
    cube: Option<String>,
    /// List artifacts with this tag; can be repeated
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// List artifacts with this status of certification
    #[arg(long, value_name = "STATUS")]
    certification: Option<String>,
    /// List artifacts of this owner
    #[arg(long)]
    owner: Option<String>,
    #[command(flatten)]
    page: PageArguments,
}

impl ArtifactAction {
    pub(super) fn place(&self) -> &PlaceArguments {
        match self {
            ArtifactAction::Search { read, .. } | ArtifactAction::Show { read, .. } => &read.place,
            ArtifactAction::SetMetadata { change, .. } => &change.place,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// The request is refused.
pub(super) async fn run(action: &ArtifactAction, project: &Project) -> Result<(), Failure> {
    match action {
        ArtifactAction::Search { read, query, tags, status, kind, page } => {
            let parameters = Parameters::default()
                .with("query", query.as_ref())
                .with("certification_status", status.as_ref())
                .with("artifact_type", kind.as_ref());
            let parameters = tags.iter().fold(parameters, |parameters, tag| parameters.with("tags", Some(tag)));
            let query = wire::artifact_query_from_parameters(&page.of(parameters).text()).map_err(failed)?;
            search(read, &query, project).await
        }
        ArtifactAction::Show { artifact, read } => {
            let requester = Requester::new(read.caller.caller.as_deref())?;
            let artifact = artifact.reference()?;
            with_services(project, async |services| {
                let view = service(services)?.artifact(&artifact, &requester.request).await.map_err(refused)?;
                print_record(read.place.json, &GovernedArtifact::from(&view));
                Ok(())
            })
            .await
        }
        ArtifactAction::SetMetadata { artifact, metadata, change } => {
            let body = body(metadata)?;
            let wanted = wire::metadata_from_wire(&body, change.version.precondition()).map_err(failed)?;
            let artifact = artifact.reference()?;
            let requester = Requester::new(change.caller.caller.as_deref())?;
            with_services(project, async |services| {
                let view = service(services)?.set_metadata(&artifact, &wanted, &requester.request).await;
                print_record(change.place.json, &GovernedArtifact::from(&view.map_err(refused)?));
                Ok(())
            })
            .await
        }
    }
}

/// Lists the artifacts of the catalogue.
///
/// # Errors
/// The request is refused.
pub(super) async fn catalog(arguments: &CatalogArguments, project: &Project) -> Result<(), Failure> {
    let CatalogArguments { read, kind, cube, tags, certification, owner, page } = arguments;
    let parameters = Parameters::default()
        .with("type", kind.as_ref())
        .with("cube", cube.as_ref())
        .with("certification", certification.as_ref())
        .with("owner", owner.as_ref());
    let parameters = tags.iter().fold(parameters, |parameters, tag| parameters.with("tag", Some(tag)));
    let query = wire::catalog_query_from_parameters(&page.of(parameters).text()).map_err(failed)?;
    search(read, &query, project).await
}

async fn search(read: &ReadArguments, query: &ArtifactQuery, project: &Project) -> Result<(), Failure> {
    let requester = Requester::new(read.caller.caller.as_deref())?;
    with_services(project, async |services| {
        let found = service(services)?.search_artifacts(query, &requester.request).await.map_err(refused)?;
        print_list(read.place.json, &GovernedArtifacts::from(&found), "artifacts", COLUMNS);
        Ok(())
    })
    .await
}
