//! The certifications that lists of artifacts show next to the names.

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
    /// True if the last day of the certificate is over.
    pub is_expired: bool,
}

/// The certifications of the artifacts that a caller may see. Drafts are left out.
#[derive(Debug, Clone, Default)]
pub struct Badges(HashMap<ArtifactType, HashMap<Arc<str>, Badge>>);

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
        self.0.get(&kind)?.get(name).copied()
    }

    /// Returns the badge of a member of a cube.
    pub fn of_member(&self, kind: ArtifactType, cube: &str, name: &str) -> Option<Badge> {
        // Few members are certified in most projects, so the full name is built only if a member of this kind is
        // certified.
        self.0.get(&kind)?.get(format!("{cube}.{name}").as_str()).copied()
    }
}

impl GovernanceService {
    /// Returns the badges of the artifacts that the caller may see. If the state database is not available, they are
    /// based on the records that this process read last.
    pub async fn badges(&self, snapshot: &Arc<Snapshot>, request: &RequestContext) -> Badges {
        let state = self.latest_state().await;
        let mut badges = Badges::default();
        if state.certifications.is_empty() {
            return badges;
        }
        let sight: Sight<'_> = self.sight(snapshot, request);
        for artifact in state.certifications.keys().filter(|artifact| sight.sees(artifact)) {
            let badge = Badge::of(&CertificationView::of(&sight, &state, artifact));
            if badge.status != CertificationStatus::Draft {
                badges.0.entry(artifact.kind).or_default().insert(Arc::clone(&artifact.id), badge);
            }
        }
        badges
    }
}
