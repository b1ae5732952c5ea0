//! The compliance report: the artifacts that the caller may see, and the findings about each.
//!
//! A finding is one of these: neither an artifact nor its cube has an owner, personal data has no mask, a certificate
//! has expired, a definition differs from the certified one, or a sunset day has passed.
//!
//! A dimension counts as masked if a policy masks or denies it for all callers except those that the policy exempts
//! (`unless_roles` and the like). A policy that applies only to certain roles, groups or attributes does not count,
//! because it leaves the dimension open to all others.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use terrane_compiler::model::{CubeId, DimensionId, Member};
use terrane_compiler::project::PolicyCondition;

use super::artifacts::{ArtifactView, Sight};
use super::certification::is_over;
use super::error::GovernanceError;
use super::ownership::OwnershipView;
use super::service::GovernanceService;
use super::state::GovernanceState;
use crate::domain::RequestContext;
use crate::ports::governance_records::{ArtifactRef, ArtifactType, CertificationStatus, TermStatus};

/// A problem of an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ArtifactFinding {
    OwnerMissing,
    PiiWithoutMask,
    CertificateExpired,
    DefinitionChanged,
    SunsetPassed,
}

impl ArtifactFinding {
    pub const ALL: [ArtifactFinding; 5] = [
        ArtifactFinding::OwnerMissing,
        ArtifactFinding::PiiWithoutMask,
        ArtifactFinding::CertificateExpired,
        ArtifactFinding::DefinitionChanged,
        ArtifactFinding::SunsetPassed,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            ArtifactFinding::OwnerMissing => "owner_missing",
            ArtifactFinding::PiiWithoutMask => "pii_without_mask",
            ArtifactFinding::CertificateExpired => "certificate_expired",
            ArtifactFinding::DefinitionChanged => "definition_changed",
            ArtifactFinding::SunsetPassed => "sunset_passed",
        }
    }
}

/// An artifact of the report.
#[derive(Debug, Clone)]
pub struct ReportRow {
    pub view: ArtifactView,
    /// True if a policy masks or denies the dimension for all callers that it does not exempt; `None` for other types
    /// of artifacts.
    pub is_masked: Option<bool>,
    pub findings: Vec<ArtifactFinding>,
}

/// The certification, owners and terms of each artifact that the caller may see.
#[derive(Debug, Clone)]
pub struct ComplianceReport {
    pub project: Arc<str>,
    pub generated_at: Timestamp,
    pub rows: Vec<ReportRow>,
    /// The artifacts that have records but are not in the project.
    pub orphans: Vec<ArtifactRef>,
    /// The number of terms that are not archived. `terms_without_links` counts the terms among them that have no link
    /// which the caller may see.
    pub terms: usize,
    pub terms_without_links: usize,
}

impl ComplianceReport {
    /// Returns the number of artifacts in a status.
    pub fn count_in(&self, status: CertificationStatus) -> usize {
        self.rows.iter().filter(|row| row.view.certification.status == status).count()
    }

    /// Returns the number of artifacts with a finding.
    pub fn count_with(&self, finding: ArtifactFinding) -> usize {
        self.rows.iter().filter(|row| row.findings.contains(&finding)).count()
    }

    /// Returns the share of artifacts with a valid certificate, from 0 to 1; `None` if the report has no artifacts.
    pub fn certified_share(&self) -> Option<f64> {
        let certified = self.rows.iter().filter(|row| row.view.certification.is_certified()).count();
        (!self.rows.is_empty()).then(|| certified as f64 / self.rows.len() as f64)
    }
}

impl GovernanceService {
    /// Returns the compliance report of the artifacts that the caller may see.
    ///
    /// # Errors
    /// [`GovernanceError::Store`].
    pub async fn report(&self, request: &RequestContext) -> Result<ComplianceReport, GovernanceError> {
        self.read(request, |sight, state| Ok(report(sight, state))).await
    }
}

fn report(sight: &Sight<'_>, state: &GovernanceState) -> ComplianceReport {
    let protected = protected(sight);
    let mut rows = Vec::new();
    for kind in ArtifactType::ALL {
        for (id, file) in sight.artifacts_of(kind) {
            let artifact = ArtifactRef { kind, id };
            rows.push(row(sight, state, sight.view(state, &artifact, &file), &protected));
        }
    }
    let orphans: BTreeSet<&ArtifactRef> = state.governed().filter(|artifact| sight.is_orphan(artifact)).collect();
    let orphans = orphans.into_iter().filter(|artifact| sight.sees_records_of(artifact)).cloned().collect();
    let terms = || state.terms.values().filter(|term| term.status != TermStatus::Archived);
    let is_linked = |term: &&Arc<_>| !super::glossary::seen(sight, state, term).term.links.is_empty();
    ComplianceReport {
        project: sight.snapshot.model.project.clone(),
        generated_at: sight.now,
        rows,
        orphans,
        terms: terms().count(),
        terms_without_links: terms().filter(|term| !is_linked(term)).count(),
    }
}

/// The dimensions that a policy masks or denies for all callers that it does not exempt.
#[derive(Debug, Default)]
struct Protected {
    dimensions: BTreeSet<DimensionId>,
    /// The cubes that are closed to all callers that the policy does not exempt.
    cubes: BTreeSet<CubeId>,
}

fn protected(sight: &Sight<'_>) -> Protected {
    let model = &sight.snapshot.model;
    let general = model.policies.iter().filter(|policy| policy.when.as_ref().is_none_or(applies_by_default));
    let mut found = Protected::default();
    for effect in general.flat_map(|policy| &policy.cubes) {
        if effect.is_closed {
            found.cubes.insert(effect.cube);
        }
        found.dimensions.extend(effect.masks.iter().map(|(id, _)| *id));
        found.dimensions.extend(effect.denied.iter().filter_map(|member| match member {
            Member::Dimension(id) => Some(*id),
            Member::Measure(_) | Member::Segment(_) => None,
        }));
    }
    found
}

/// Returns whether a condition holds for every caller that it does not exempt.
fn applies_by_default(when: &PolicyCondition) -> bool {
    when.roles.is_empty() && when.groups.is_empty() && when.auth_methods.is_empty() && when.attributes.is_empty()
}

fn row(sight: &Sight<'_>, state: &GovernanceState, view: ArtifactView, protected: &Protected) -> ReportRow {
    let artifact = &view.artifact;
    let is_masked = (artifact.kind == ArtifactType::Dimension).then(|| {
        let (cube, name) = artifact.id.split_once('.').unwrap_or_default();
        let Some(cube) = sight.snapshot.model.cube_named(cube) else { return false };
        let is_masked = |member| matches!(member, Member::Dimension(id) if protected.dimensions.contains(&id));
        protected.cubes.contains(&cube.id) || cube.member(name).is_some_and(is_masked)
    });
    let certification = &view.certification;
    let sunset = certification.record.as_ref().and_then(|record| record.sunset_date);
    let is_past = |day| is_over(day, sight.now, &sight.settings.timezone);
    let checks = [
        (ArtifactFinding::OwnerMissing, view.owners.owners.is_empty() && !has_owned_cube(sight, state, artifact)),
        (ArtifactFinding::PiiWithoutMask, view.pii_flag.value && is_masked == Some(false)),
        (ArtifactFinding::CertificateExpired, certification.is_expired),
        (ArtifactFinding::DefinitionChanged, certification.definition_changed.is_some()),
        (
            ArtifactFinding::SunsetPassed,
            certification.status == CertificationStatus::Deprecated && sunset.is_some_and(is_past),
        ),
    ];
    let findings = checks.into_iter().filter(|(_, is_found)| *is_found).map(|(finding, _)| finding).collect();
    ReportRow { view, is_masked, findings }
}

/// Returns whether the cube of a member has an owner, which makes this owner the owner of the member too.
fn has_owned_cube(sight: &Sight<'_>, state: &GovernanceState, artifact: &ArtifactRef) -> bool {
    let Some((cube, _)) = artifact.id.split_once('.') else { return false };
    let cube = ArtifactRef::new(ArtifactType::Cube, cube);
    let file = sight.file_values(&cube).unwrap_or_default();
    !OwnershipView::of(state, &cube, file.governed.owner.as_ref()).owners.is_empty()
}
