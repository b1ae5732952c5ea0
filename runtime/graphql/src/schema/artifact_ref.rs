//! References to artifacts: cubes, members, metrics and models.

use async_graphql::Enum;
use terrane_app::ports::governance_records;
use terrane_app::ports::governance_records::ArtifactRef;

use crate::failure::{Failure, unknown_word};

/// The type of an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
#[graphql(remote = "governance_records::ArtifactType")]
pub(crate) enum ArtifactType {
    Cube,
    Measure,
    Dimension,
    Metric,
    Model,
}

impl ArtifactType {
    /// Returns the type by its name in the REST interface.
    ///
    /// # Errors
    /// No type has this name.
    pub(super) fn named(word: &str) -> Result<Self, Failure> {
        let found = governance_records::ArtifactType::named(word);
        found.map(Into::into).ok_or_else(|| unknown_word("artifact type", word))
    }
}

pub(super) fn artifact(artifact_type: ArtifactType, artifact_id: String) -> ArtifactRef {
    ArtifactRef::new(artifact_type.into(), artifact_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_type_is_an_error() {
        assert!(matches!(ArtifactType::named("dimension"), Ok(ArtifactType::Dimension)));
        let error = ArtifactType::named("table").err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some("unknown artifact type `table`"));
    }
}
