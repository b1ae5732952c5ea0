//! The condition under which a request changes a record.

use super::error::GovernanceError;

/// The versions of a record that a request accepts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Precondition {
    /// The request names none.
    #[default]
    None,
    /// Any record that exists.
    Exists,
    /// One of these versions. Names that are not versions are left out, so the list may be empty.
    Versions(Vec<u64>),
}

impl Precondition {
    /// Checks the version of the present record; 0 if nothing is recorded yet.
    pub(super) fn check(&self, current: u64, is_required: bool) -> Result<(), GovernanceError> {
        let holds = match self {
            Precondition::None if is_required => return Err(GovernanceError::PreconditionRequired),
            Precondition::None => true,
            Precondition::Exists => current > 0,
            Precondition::Versions(versions) => versions.contains(&current),
        };
        if holds { Ok(()) } else { Err(GovernanceError::Stale { current }) }
    }

    /// Checks a request that creates a record, which has no version to name.
    pub(super) fn check_new(&self) -> Result<(), GovernanceError> {
        self.check(0, false)
    }
}
