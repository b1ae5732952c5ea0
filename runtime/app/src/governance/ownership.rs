//! Owners of artifacts.
//!
//! An owner that the project's files name (`meta.owner`) applies until owners are assigned at run time. The prefix
//! `team:` marks the name of a team. Owners are compared with the caller when they are read: users by their id, teams
//! by the caller's groups.
//!
//! Any caller of the routes may assign and remove owners. Owners may deprecate the artifact, except those who assigned
//! themselves. A data steward reviews the artifact, so stewards are changed only by callers who review it and by the
//! owner that the project's files name. No caller makes itself a steward.

use std::sync::Arc;

use jiff::Timestamp;
use terrane_compiler::SecurityContext;

use super::artifacts::{Origin, Sight};
use super::details::{artifact_for_hooks, ownership_details};
use super::error::GovernanceError;
use super::service::{Decided, GovernanceService, Question};
use super::state::GovernanceState;
use super::text;
use crate::domain::{Precondition, RequestContext};
use crate::ports::governance::MetadataChange;
use crate::ports::governance_records::{
    ArtifactRef, ArtifactType, GovernedRecord, Owner, OwnerRole, OwnerType, Ownership, RecordChange,
};

/// The largest number of owners of one artifact.
pub(super) const MAX_OWNERS: usize = 50;
/// The prefix that marks a team in the project's files.
const TEAM: &str = "team:";

/// A request to assign or remove an owner.
#[derive(Debug, Clone)]
pub struct OwnerRequest {
    pub artifact: ArtifactRef,
    /// The type of the owner; `None` to remove owners with this id of both types.
    pub owner_type: Option<OwnerType>,
    pub owner_id: String,
    /// The role; `None` to remove all roles of the owner.
    pub role: Option<OwnerRole>,
    pub precondition: Precondition,
}

/// An owner with the source of the assignment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerView {
    pub owner_type: OwnerType,
    pub owner_id: Arc<str>,
    pub role: OwnerRole,
    /// The user who assigned the role; `None` if the project's files name the owner.
    pub assigned_by: Option<Arc<str>>,
    pub assigned_at: Option<Timestamp>,
    pub origin: Origin,
}

/// The owners of an artifact.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnershipView {
    pub owners: Vec<OwnerView>,
    /// The version of the record; 0 if no record exists.
    pub version: u64,
}

/// An artifact with the roles of one owner.
#[derive(Debug, Clone)]
pub struct OwnedArtifact {
    pub artifact: ArtifactRef,
    pub owner: OwnerView,
}

impl OwnershipView {
    pub(crate) fn of(state: &GovernanceState, artifact: &ArtifactRef, of_file: Option<&Arc<str>>) -> Self {
        let record = state.ownership.get(artifact);
        let set = record.iter().flat_map(|record| &record.owners).map(|owner| OwnerView {
            owner_type: owner.owner_type,
            owner_id: owner.owner_id.clone(),
            role: owner.role,
            assigned_by: Some(owner.assigned_by.clone()),
            assigned_at: Some(owner.assigned_at),
            origin: Origin::Api,
        });
        let mut owners: Vec<OwnerView> = set.collect();
        if owners.is_empty() {
            owners.extend(of_file.filter(|text| !text.trim().is_empty()).map(|text| owner_of_file(text)));
        }
        OwnershipView { owners, version: record.map_or(0, |record| record.version) }
    }

    /// Returns whether the caller is an owner, in any role, whom the files name or another caller assigned.
    pub(super) fn has(&self, caller: &SecurityContext) -> bool {
        self.owners.iter().any(|owner| owner.gives_rights_to(caller))
    }

    /// Returns whether the caller is a data steward whom another caller assigned.
    pub(super) fn has_steward(&self, caller: &SecurityContext) -> bool {
        self.owners.iter().any(|owner| owner.role == OwnerRole::DataSteward && owner.gives_rights_to(caller))
    }
}

impl OwnerView {
    fn gives_rights_to(&self, caller: &SecurityContext) -> bool {
        let is_own = self.assigned_by.as_ref() == Some(&caller.user_id);
        !is_own && is_caller(caller, self.owner_type, &self.owner_id)
    }
}

/// Returns whether an owner is the caller or a team of the caller.
fn is_caller(caller: &SecurityContext, owner_type: OwnerType, owner_id: &str) -> bool {
    match owner_type {
        OwnerType::User => !owner_id.is_empty() && *owner_id == *caller.user_id,
        OwnerType::Team => caller.groups.iter().any(|group| **group == *owner_id),
    }
}

fn owner_of_file(text: &str) -> OwnerView {
    let text = text.trim();
    let (owner_type, owner_id) = match text.strip_prefix(TEAM) {
        Some(team) => (OwnerType::Team, team.trim()),
        None => (OwnerType::User, text),
    };
    OwnerView {
        owner_type,
        owner_id: owner_id.into(),
        role: OwnerRole::DataOwner,
        assigned_by: None,
        assigned_at: None,
        origin: Origin::File,
    }
}

impl GovernanceService {
    /// Returns the owners of an artifact.
    ///
    /// # Errors
    /// [`GovernanceError::UnknownArtifact`], [`GovernanceError::Store`].
    pub async fn owners(
        &self,
        artifact: &ArtifactRef,
        request: &RequestContext,
    ) -> Result<OwnershipView, GovernanceError> {
        self.read(request, |sight, state| match sight.file_values(artifact) {
            Some(file) => Ok(OwnershipView::of(state, artifact, file.governed.owner.as_ref())),
            None => Err(sight.unknown("artifact_id", artifact)),
        })
        .await
    }

    /// Returns the artifacts that an owner has and that the caller may see, by artifact and role.
    ///
    /// # Errors
    /// [`GovernanceError::Store`].
    pub async fn owned_by(
        &self,
        owner_id: &str,
        owner_type: Option<OwnerType>,
        request: &RequestContext,
    ) -> Result<Vec<OwnedArtifact>, GovernanceError> {
        self.read(request, |sight, state| {
            let mut found = Vec::new();
            for kind in ArtifactType::ALL {
                for (id, file) in sight.artifacts_of(kind) {
                    let artifact = ArtifactRef { kind, id };
                    let owners = OwnershipView::of(state, &artifact, file.governed.owner.as_ref()).owners;
                    let is_wanted = |owner: &OwnerView| {
                        &*owner.owner_id == owner_id && owner_type.is_none_or(|kind| kind == owner.owner_type)
                    };
                    let owners = owners.into_iter().filter(is_wanted);
                    found.extend(owners.map(|owner| OwnedArtifact { artifact: artifact.clone(), owner }));
                }
            }
            Ok(found)
        })
        .await
    }

    /// Assigns an owner.
    ///
    /// # Errors
    /// [`GovernanceError`]; nothing is changed.
    pub async fn assign_owner(
        &self,
        wanted: &OwnerRequest,
        request: &RequestContext,
    ) -> Result<OwnershipView, GovernanceError> {
        self.change(request, |sight, state| {
            let owner_id = text::line("owner_id", &wanted.owner_id)?;
            let owner_type = wanted.owner_type.unwrap_or(OwnerType::User);
            let role = wanted.role.unwrap_or(OwnerRole::DataOwner);
            self.decide_owners(sight, state, wanted, request, "owner_assigned", |owners| {
                if role == OwnerRole::DataSteward {
                    check_steward_change(sight, state, &wanted.artifact)?;
                    if is_caller(sight.caller, owner_type, &owner_id) && !sight.has_reviewer_role() {
                        return Err(GovernanceError::OwnStewardship);
                    }
                }
                let is_same =
                    |owner: &Owner| owner.owner_id == owner_id && owner.owner_type == owner_type && owner.role == role;
                if owners.iter().any(is_same) {
                    return Err(GovernanceError::OwnerExists { owner: owner_id.clone() });
                }
                if owners.len() >= MAX_OWNERS {
                    return Err(GovernanceError::TooMany { what: "owners of one artifact", max: MAX_OWNERS });
                }
                let (assigned_by, assigned_at) = (request.caller.user_id.clone(), sight.now);
                owners.push(Owner { owner_type, owner_id: owner_id.clone(), role, assigned_by, assigned_at });
                Ok(())
            })
        })
        .await?;
        self.owners(&wanted.artifact, request).await
    }

    /// Removes an owner that was assigned at run time.
    ///
    /// # Errors
    /// [`GovernanceError`]; nothing is changed.
    pub async fn remove_owner(
        &self,
        wanted: &OwnerRequest,
        request: &RequestContext,
    ) -> Result<OwnershipView, GovernanceError> {
        self.change(request, |sight, state| {
            self.decide_owners(sight, state, wanted, request, "owner_removed", |owners| {
                let removed: Vec<Owner> = owners.extract_if(.., |owner| is_wanted(wanted, owner)).collect();
                if removed.is_empty() {
                    let owner: String = wanted.owner_id.chars().take(200).collect();
                    return Err(GovernanceError::UnknownOwner {
                        owner: owner.into(),
                        artifact: wanted.artifact.clone(),
                    });
                }
                let is_steward_of_others = |owner: &Owner| {
                    owner.role == OwnerRole::DataSteward && !is_caller(sight.caller, owner.owner_type, &owner.owner_id)
                };
                match removed.iter().any(is_steward_of_others) {
                    true => check_steward_change(sight, state, &wanted.artifact),
                    false => Ok(()),
                }
            })
        })
        .await?;
        self.owners(&wanted.artifact, request).await
    }

    fn decide_owners(
        &self,
        sight: &Sight<'_>,
        state: &GovernanceState,
        wanted: &OwnerRequest,
        request: &RequestContext,
        event: &'static str,
        apply: impl Fn(&mut Vec<Owner>) -> Result<(), GovernanceError>,
    ) -> Result<Decided<()>, GovernanceError> {
        let artifact = &wanted.artifact;
        sight.require("artifact_id", artifact)?;
        let present = state.ownership.get(artifact);
        let version = present.map_or(0, |record| record.version);
        wanted.precondition.check(version, sight.settings.require_if_match)?;
        let mut owners = present.map(|record| record.owners.clone()).unwrap_or_default();
        apply(&mut owners)?;
        let after = Ownership { artifact: artifact.clone(), owners, version: version + 1, updated_at: sight.now };
        let mut entry = self.entry(event, request, artifact.to_string());
        (entry.before, entry.after) =
            (present.map(|record| ownership_details(record)), Some(ownership_details(&after)));
        let record = GovernedRecord::Ownership(Arc::new(after));
        let question = change_of_artifact(sight, state, artifact, &record);
        Ok(Decided { changes: vec![RecordChange { record, entry }], question, result: () })
    }
}

fn is_wanted(wanted: &OwnerRequest, owner: &Owner) -> bool {
    *owner.owner_id == *wanted.owner_id
        && wanted.owner_type.is_none_or(|kind| kind == owner.owner_type)
        && wanted.role.is_none_or(|role| role == owner.role)
}

/// Checks that the caller may change the data stewards of an artifact: it reviews the artifact, or the project's files
/// name it as the owner.
fn check_steward_change(
    sight: &Sight<'_>,
    state: &GovernanceState,
    artifact: &ArtifactRef,
) -> Result<(), GovernanceError> {
    let of_file = sight.file_values(artifact).and_then(|file| file.governed.owner);
    let is_file_owner = of_file.is_some_and(|text| {
        let owner = owner_of_file(&text);
        is_caller(sight.caller, owner.owner_type, &owner.owner_id)
    });
    let is_steward = || OwnershipView::of(state, artifact, None).has_steward(sight.caller);
    if sight.has_reviewer_role() || is_file_owner || is_steward() {
        return Ok(());
    }
    Err(GovernanceError::StewardChange { artifact: artifact.clone() })
}

/// Returns the question to hooks about a change of an artifact's record.
pub(super) fn change_of_artifact(
    sight: &Sight<'_>,
    state: &GovernanceState,
    artifact: &ArtifactRef,
    record: &GovernedRecord,
) -> Option<Question> {
    let definition = sight.definitions.get(sight.snapshot, artifact);
    let before = artifact_for_hooks(&sight.find(state, artifact)?, definition.as_deref());
    let mut changed = state.clone();
    changed.apply(vec![(state.sequence + 1, record.clone())]);
    let after = artifact_for_hooks(&sight.find(&changed, artifact)?, definition.as_deref());
    Some(Question::Change(MetadataChange::Changed { before, after }))
}
