//! References to artifacts: cubes, members, metrics and models.

use async_graphql::Enum;
use terrane_app::ports::governance_records;
use terrane_app::ports::governance_records::ArtifactRef;

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
    /// Returns the type with a name of REST.
    pub(super) fn named(word: &str) -> Self {
        governance_records::ArtifactType::named(word).unwrap_or(governance_records::ArtifactType::Cube).into()
    }
}

pub(super) fn artifact(artifact_type: ArtifactType, artifact_id: String) -> ArtifactRef {
    ArtifactRef::new(artifact_type.into(), artifact_id)
}
