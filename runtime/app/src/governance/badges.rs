//! The certifications, and the descriptions that were set at run time, for lists of artifacts.

use std::collections::HashMap;
use std::sync::Arc;

use super::artifacts::Sight;
use super::certification::CertificationView;
use super::service::GovernanceService;
use crate::catalog::Snapshot;
use crate::domain::RequestContext;
use crate::ports::governance_records::{ArtifactType, CertificationStatus};

/// The certification of an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Badge {
    pub status: CertificationStatus,
    /// True if the definition differs from the certified one.
    pub is_definition_changed: bool,
    /// True if the certificate has expired.
    pub is_expired: bool,
}

/// The certifications and descriptions of the artifacts that a caller may see. Drafts, and artifacts with the
/// description of the project's files, are left out.
#[derive(Debug, Clone, Default)]
pub struct Badges {
    certifications: ByArtifact<Badge>,
    descriptions: ByArtifact<Arc<str>>,
}

/// Values by the type and the id of artifacts.
type ByArtifact<T> = HashMap<ArtifactType, HashMap<Arc<str>, T>>;

impl Badge {
    pub(crate) fn of(view: &CertificationView) -> Self {
        Badge {
            status: view.status,
            is_definition_changed: view.definition_changed.is_some(),
            is_expired: view.is_expired,
        }
    }
}

impl Badges {
    /// Returns the badge of a cube or a metric.
    pub fn of(&self, kind: ArtifactType, name: &str) -> Option<Badge> {
        self.certifications.get(&kind)?.get(name).copied()
    }

    pub fn of_member(&self, kind: ArtifactType, cube: &str, name: &str) -> Option<Badge> {
        // Few members are certified in most projects, so the full name is built only if a member of this kind is
        // certified.
        self.certifications.get(&kind)?.get(format!("{cube}.{name}").as_str()).copied()
    }

    /// Returns the description that was set at run time for a cube or a metric, or else the one in the files.
    pub fn description(&self, kind: ArtifactType, name: &str, of_file: Option<&Arc<str>>) -> Option<Arc<str>> {
        self.descriptions.get(&kind).and_then(|set| set.get(name)).or(of_file).cloned()
    }

    /// Returns the description that was set at run time for a member of a cube, or else the one in the files.
    pub fn member_description(
        &self,
        kind: ArtifactType,
        cube: &str,
        name: &str,
        of_file: Option<&Arc<str>>,
    ) -> Option<Arc<str>> {
        let set = self.descriptions.get(&kind).and_then(|set| set.get(format!("{cube}.{name}").as_str()));
        set.or(of_file).cloned()
    }
}

impl GovernanceService {
    /// Returns the badges and descriptions of the artifacts that the caller may see. If the state database is not available, they are
    /// based on the records that this process read last.
    pub async fn badges(&self, snapshot: &Arc<Snapshot>, request: &RequestContext) -> Badges {
        let state = self.latest_state().await;
        let mut badges = Badges::default();
        if state.certifications.is_empty() && state.metadata.is_empty() {
            return badges;
        }
        let sight: Sight<'_> = self.sight(snapshot, request);
        for artifact in state.certifications.keys().filter(|artifact| sight.sees(artifact)) {
            let badge = Badge::of(&CertificationView::of(&sight, &state, artifact));
            if badge.status != CertificationStatus::Draft {
                badges.certifications.entry(artifact.kind).or_default().insert(Arc::clone(&artifact.id), badge);
            }
        }
        for (artifact, set) in state.metadata.iter().filter(|(artifact, _)| sight.sees(artifact)) {
            if let Some(description) = &set.description {
                let of_kind = badges.descriptions.entry(artifact.kind).or_default();
                of_kind.insert(Arc::clone(&artifact.id), Arc::clone(description));
            }
        }
        badges
    }
}
