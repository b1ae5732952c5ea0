//! Owners of artifacts.
//!
//! In: views of the use case. Out: the fields that REST sends, under names in GraphQL's convention.

use async_graphql::{Context, Enum, SimpleObject};
use terrane_app::ports::governance_records;
use terrane_wire::governance as wire;

use super::artifact_ref::{ArtifactType, artifact};
use super::governance::service;
use super::request::state;
use crate::failure::{Failure, unknown_word};

/// The kind of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
#[graphql(remote = "governance_records::OwnerType")]
pub(crate) enum OwnerType {
    User,
    Team,
}

/// The responsibility of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
#[graphql(remote = "governance_records::OwnerRole")]
pub(crate) enum OwnerRole {
    DataOwner,
    DataSteward,
    TechnicalOwner,
}

/// An owner of an artifact.
#[derive(SimpleObject)]
pub(crate) struct OwnerAssignment {
    artifact_type: ArtifactType,
    artifact_id: String,
    owner_type: OwnerType,
    /// A user id, or the name of a group.
    owner_id: String,
    role: OwnerRole,
    /// Null for an owner of the project's files.
    assigned_by: Option<String>,
    assigned_at: Option<String>,
    /// `api`, or `file` for an owner of the project's files.
    origin: String,
}

/// The owners of an artifact.
#[derive(SimpleObject)]
pub(crate) struct ArtifactOwners {
    artifact_type: ArtifactType,
    artifact_id: String,
    /// The version of the record; 0 without one.
    version: u64,
    owners: Vec<OwnerAssignment>,
}

/// Returns the owners of an artifact.
///
/// # Errors
/// Governance is switched off, or the artifact does not exist for the caller.
pub(crate) async fn of_artifact(
    context: &Context<'_>,
    artifact_type: ArtifactType,
    artifact_id: String,
) -> Result<ArtifactOwners, Failure> {
    let state = state(context);
    state.count_items(0)?;
    let artifact = artifact(artifact_type, artifact_id);
    let view = service(context)?.owners(&artifact, &state.parts.context.request).await;
    let owners = wire::ArtifactOwners::new(&artifact, &view.map_err(|error| Failure::from(&error))?);
    state.count(context, 1, &|list| (list == "owners").then_some(owners.owners.len()))?;
    Ok(ArtifactOwners {
        artifact_type,
        artifact_id: owners.artifact_id,
        version: owners.version,
        owners: owners.owners.into_iter().map(OwnerAssignment::try_from).collect::<Result<_, _>>()?,
    })
}

/// Returns the artifacts of an owner that the caller may see.
///
/// # Errors
/// Governance is switched off.
pub(crate) async fn of_owner(
    context: &Context<'_>,
    owner_id: String,
    owner_type: Option<OwnerType>,
) -> Result<Vec<OwnerAssignment>, Failure> {
    let state = state(context);
    state.count_items(0)?;
    let owned = service(context)?.owned_by(&owner_id, owner_type.map(Into::into), &state.parts.context.request).await;
    let owned = wire::OwnedArtifacts::new(&owner_id, &owned.map_err(|error| Failure::from(&error))?);
    state.count(context, owned.artifacts.len(), &|_| None)?;
    owned.artifacts.into_iter().map(OwnerAssignment::try_from).collect()
}

impl OwnerType {
    fn named(word: &str) -> Result<Self, Failure> {
        governance_records::OwnerType::named(word).map(Into::into).ok_or_else(|| unknown_word("owner type", word))
    }
}

impl OwnerRole {
    fn named(word: &str) -> Result<Self, Failure> {
        governance_records::OwnerRole::named(word).map(Into::into).ok_or_else(|| unknown_word("owner role", word))
    }
}

impl TryFrom<wire::OwnerAssignment> for OwnerAssignment {
    type Error = Failure;

    fn try_from(owner: wire::OwnerAssignment) -> Result<Self, Failure> {
        Ok(OwnerAssignment {
            artifact_type: ArtifactType::named(owner.artifact_type)?,
            artifact_id: owner.artifact_id,
            owner_type: OwnerType::named(owner.owner_type)?,
            owner_id: owner.owner_id,
            role: OwnerRole::named(owner.role)?,
            assigned_by: owner.assigned_by,
            assigned_at: owner.assigned_at,
            origin: owner.origin.to_owned(),
        })
    }
}
