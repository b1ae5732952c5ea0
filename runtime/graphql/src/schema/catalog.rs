//! The catalogue of artifacts with their governed values.
//!
//! In: views of the use case. Out: the fields that REST sends, under names in GraphQL's convention.

use async_graphql::{Context, ID, SimpleObject};
use terrane_app::governance::ArtifactQuery;
use terrane_wire::governance as wire;

use super::artifact_ref::{ArtifactType, artifact};
use super::certification::CertificationRecord;
use super::governance::service;
use super::ownership::OwnerAssignment;
use super::request::state;
use crate::failure::Failure;

/// A cube, member, metric or model with its governed values.
#[derive(SimpleObject)]
pub(crate) struct GovernedArtifact {
    artifact_type: ArtifactType,
    artifact_id: String,
    title: String,
    description: Option<String>,
    tags: Vec<String>,
    documentation_url: Option<String>,
    refresh_frequency: Option<String>,
    data_classification: Option<String>,
    /// True if the artifact has personal data.
    pii_flag: bool,
    origins: ArtifactOrigins,
    /// The version of the metadata; 0 if none was set.
    version: u64,
    updated_by: Option<String>,
    updated_at: Option<String>,
    owners: Vec<OwnerAssignment>,
    certification: CertificationRecord,
    glossary_terms: Vec<LinkedTerm>,
}

/// The source of each value of an artifact: `default`, `file` for the project's files, or `api`.
#[derive(SimpleObject)]
pub(crate) struct ArtifactOrigins {
    description: String,
    tags: String,
    documentation_url: String,
    refresh_frequency: String,
    data_classification: String,
    pii_flag: String,
}

/// A term with a link to an artifact.
#[derive(SimpleObject)]
pub(crate) struct LinkedTerm {
    id: ID,
    name: String,
    /// `defines`, `relates_to` or `synonym_of`.
    relationship: String,
}

/// A page of artifacts.
#[derive(SimpleObject)]
pub(crate) struct GovernedArtifactPage {
    artifacts: Vec<GovernedArtifact>,
    /// The number of artifacts on all pages.
    total: usize,
}

/// Returns an artifact.
///
/// # Errors
/// Governance is switched off, or the artifact does not exist for the caller.
pub(crate) async fn one(
    context: &Context<'_>,
    artifact_type: ArtifactType,
    artifact_id: String,
) -> Result<GovernedArtifact, Failure> {
    let state = state(context);
    state.count_items(0)?;
    let artifact = artifact(artifact_type, artifact_id);
    let view = service(context)?.artifact(&artifact, &state.parts.context.request).await;
    let found = wire::GovernedArtifact::from(&view.map_err(|error| Failure::from(&error))?);
    let found = GovernedArtifact::try_from(found)?;
    state.count(context, 1, &|list| found.items(list))?;
    Ok(found)
}

/// Returns the artifacts that a query selects.
///
/// # Errors
/// Governance is switched off.
pub(crate) async fn list(context: &Context<'_>, query: ArtifactQuery) -> Result<GovernedArtifactPage, Failure> {
    let state = state(context);
    state.count_items(0)?;
    let found = service(context)?.search_artifacts(&query, &state.parts.context.request).await;
    let found = wire::GovernedArtifacts::from(&found.map_err(|error| Failure::from(&error))?);
    let artifacts = found.artifacts.into_iter().map(GovernedArtifact::try_from);
    let artifacts = artifacts.collect::<Result<Vec<_>, Failure>>()?;
    let items = |list: &str| match list {
        "artifacts" => Some(artifacts.len()),
        _ => artifacts.iter().filter_map(|artifact| artifact.items(list)).reduce(|sum, items| sum + items),
    };
    state.count(context, 1, &items)?;
    Ok(GovernedArtifactPage { artifacts, total: found.total })
}

impl GovernedArtifact {
    /// Returns the number of items of a list below the artifact.
    fn items(&self, list: &str) -> Option<usize> {
        match list {
            // The origin of the tags has the same name; it counts as a list of them.
            "tags" => Some(self.tags.len()),
            "owners" => Some(self.owners.len()),
            "glossaryTerms" => Some(self.glossary_terms.len()),
            _ => self.certification.items(list),
        }
    }
}

impl TryFrom<wire::GovernedArtifact> for GovernedArtifact {
    type Error = Failure;

    fn try_from(found: wire::GovernedArtifact) -> Result<Self, Failure> {
        let term = |term: wire::LinkedTerm| LinkedTerm {
            id: term.id.into(),
            name: term.name,
            relationship: term.relationship.to_owned(),
        };
        Ok(GovernedArtifact {
            artifact_type: ArtifactType::named(found.artifact_type)?,
            artifact_id: found.artifact_id,
            title: found.title,
            description: found.description,
            tags: found.tags,
            documentation_url: found.documentation_url,
            refresh_frequency: found.refresh_frequency,
            data_classification: found.data_classification,
            pii_flag: found.pii_flag,
            origins: found.origins.into(),
            version: found.version,
            updated_by: found.updated_by,
            updated_at: found.updated_at,
            owners: found.owners.into_iter().map(OwnerAssignment::try_from).collect::<Result<_, _>>()?,
            certification: found.certification.try_into()?,
            glossary_terms: found.glossary_terms.into_iter().map(term).collect(),
        })
    }
}

impl From<wire::ArtifactOrigins> for ArtifactOrigins {
    fn from(origins: wire::ArtifactOrigins) -> Self {
        ArtifactOrigins {
            description: origins.description.to_owned(),
            tags: origins.tags.to_owned(),
            documentation_url: origins.documentation_url.to_owned(),
            refresh_frequency: origins.refresh_frequency.to_owned(),
            data_classification: origins.data_classification.to_owned(),
            pii_flag: origins.pii_flag.to_owned(),
        }
    }
}
