//! Changes of several records in one request.
//!
//! In: operations, each of which is the request of a single change. Out: the version of the record after each. Every
//! operation is decided on its own, with the rights, versions and hooks of the single change, and is written in its own
//! transaction: an operation that fails does not undo others. Not here: the number of operations of a request (wire).

use super::certification::CertificationMove;
use super::error::GovernanceError;
use super::glossary::LinkRequest;
use super::metadata::MetadataRequest;
use super::ownership::OwnerRequest;
use super::service::GovernanceService;
use crate::domain::RequestContext;
use crate::ports::governance_records::ArtifactRef;

/// A change of one governed record.
#[derive(Debug, Clone)]
pub enum GovernanceOperation {
    Move(CertificationMove),
    AssignOwner(OwnerRequest),
    RemoveOwner(OwnerRequest),
    SetMetadata { artifact: ArtifactRef, change: MetadataRequest },
    LinkTerm { term_id: String, link: LinkRequest },
    UnlinkTerm { term_id: String, link: LinkRequest },
}

impl GovernanceService {
    /// Applies an operation and returns the version of its record afterwards.
    ///
    /// # Errors
    /// [`GovernanceError`]; nothing is changed.
    pub async fn apply(
        &self,
        operation: &GovernanceOperation,
        request: &RequestContext,
    ) -> Result<u64, GovernanceError> {
        use GovernanceOperation::{AssignOwner, LinkTerm, Move, RemoveOwner, SetMetadata, UnlinkTerm};
        Ok(match operation {
            Move(wanted) => self.certify(wanted, request).await?.version,
            AssignOwner(wanted) => self.assign_owner(wanted, request).await?.version,
            RemoveOwner(wanted) => self.remove_owner(wanted, request).await?.version,
            SetMetadata { artifact, change } => self.set_metadata(artifact, change, request).await?.version,
            LinkTerm { term_id, link } => self.link_term(term_id, link, request).await?.term.version,
            UnlinkTerm { term_id, link } => self.unlink_term(term_id, link, request).await?.term.version,
        })
    }
}
