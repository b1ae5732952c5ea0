//! The reasons why governance refuses a request.

use std::sync::Arc;

use super::approvals::Approval;
use super::text::TextProblem;
use crate::domain::PreconditionError;
use crate::ports::governance::Transition;
use crate::ports::governance_records::{ArtifactRef, CertificationStatus};
use crate::ports::store::StoreError;

/// The reason why a record was not read or changed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum GovernanceError {
    /// The artifact does not exist for the caller.
    #[error("{} `{}` does not exist", artifact.kind.as_str(), artifact.id)]
    UnknownArtifact { field: &'static str, artifact: ArtifactRef, nearest: Vec<String> },
    #[error("term `{id}` does not exist")]
    UnknownTerm { field: Option<&'static str>, id: Arc<str> },
    /// No change with this id exists for the caller.
    #[error("change `{id}` does not exist")]
    UnknownChange { id: String },
    #[error("the term has no such link")]
    UnknownLink,
    #[error("`{owner}` does not own {} `{}`", artifact.kind.as_str(), artifact.id)]
    UnknownOwner { owner: Arc<str>, artifact: ArtifactRef },
    #[error("invalid `{field}`: {problem}")]
    Invalid { field: &'static str, problem: TextProblem },
    #[error("no field to change")]
    NothingToChange,
    /// The move is not in the table of transitions.
    #[error("cannot {} an artifact that is {}", transition.as_str(), status.as_str())]
    NotAllowed { status: CertificationStatus, transition: Transition, allowed: Vec<Transition> },
    #[error("only a reviewer may {} an artifact", transition.as_str())]
    NotReviewer { transition: Transition },
    #[error("the caller who submitted an artifact cannot certify it")]
    OwnSubmission,
    #[error("only a reviewer may change the data stewards of {} `{}`", artifact.kind.as_str(), artifact.id)]
    StewardChange { artifact: ArtifactRef },
    #[error("a caller cannot make itself a data steward")]
    OwnStewardship,
    /// A governance hook denies the step, or a required hook cannot be called.
    #[error("a governance hook does not allow it")]
    Refused { approval: Approval },
    #[error("term `{name}` already exists in this category")]
    TermExists { name: Arc<str>, id: Arc<str> },
    #[error("the term is archived")]
    ArchivedTerm,
    #[error("the link exists")]
    LinkExists,
    /// The names of the terms in the cycle, which begins and ends with the term of the new link.
    #[error("the link would close a cycle: {}", names.join(" → "))]
    Cycle { names: Vec<String> },
    #[error("`{owner}` has this role already")]
    OwnerExists { owner: Arc<str> },
    #[error("the limit of {max} {what} is reached")]
    TooMany { what: &'static str, max: usize },
    /// The request names a different version of the record, or it names none although one is required.
    #[error(transparent)]
    Precondition(#[from] PreconditionError),
    #[error("the records were changed by others at the same time")]
    Contended,
    #[error(transparent)]
    Store(#[from] StoreError),
}
