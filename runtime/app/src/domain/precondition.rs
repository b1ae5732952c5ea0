//! The condition under which a request changes a record with a version.

/// The versions of a record that a request accepts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Precondition {
    /// The request names no version.
    #[default]
    None,
    /// Any record that exists.
    Exists,
    /// The record has one of these versions. Weak tags and tags that are not versions are left out, so the list may be
    /// empty.
    Versions(Vec<u64>),
}

/// The reason why a request may not change a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PreconditionError {
    /// The record has a different version than the request names.
    #[error("the record was changed: its version is {current}")]
    Stale { current: u64 },
    #[error("the request names no version of the record")]
    Required,
}

impl Precondition {
    /// Checks the version of the current record; `current` is 0 if no record exists.
    pub(crate) fn check(&self, current: u64, is_required: bool) -> Result<(), PreconditionError> {
        let holds = match self {
            Precondition::None if is_required => return Err(PreconditionError::Required),
            Precondition::None => true,
            Precondition::Exists => current > 0,
            Precondition::Versions(versions) => versions.contains(&current),
        };
        if holds { Ok(()) } else { Err(PreconditionError::Stale { current }) }
    }

    /// Checks a request that creates a record. The new record has no version yet that the request could name.
    pub(crate) fn check_new(&self) -> Result<(), PreconditionError> {
        self.check(0, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preconditions_compare_versions() {
        let check = |precondition: &Precondition, current, is_required| match precondition.check(current, is_required) {
            Ok(()) => "holds",
            Err(PreconditionError::Stale { .. }) => "stale",
            Err(PreconditionError::Required) => "required",
        };
        let versions = |versions: &[u64]| Precondition::Versions(versions.to_vec());
        for (precondition, current, expected) in [
            (Precondition::None, 3, "holds"),
            (Precondition::Exists, 1, "holds"),
            (Precondition::Exists, 0, "stale"),
            (versions(&[3]), 3, "holds"),
            (versions(&[1, 3]), 3, "holds"),
            (versions(&[2]), 3, "stale"),
            (versions(&[0]), 0, "holds"),
            (versions(&[]), 0, "stale"),
        ] {
            assert_eq!(check(&precondition, current, false), expected, "{precondition:?} {current}");
        }
        assert_eq!(check(&Precondition::None, 3, true), "required");
        assert_eq!(check(&versions(&[3]), 3, true), "holds");
    }
}
