//! The compliance report.
//!
//! In: the report of the use case. Out: the fields that REST sends as JSON, under names in GraphQL's convention.

use async_graphql::{Context, SimpleObject};
use terrane_wire::governance::report as wire;

use super::artifact_ref::ArtifactType;
use super::governance::service;
use super::request::state;
use crate::enums::CertificationStatus;
use crate::failure::Failure;

/// The compliance report of the artifacts that the caller may see.
#[derive(SimpleObject)]
pub(crate) struct GovernanceReport {
    project: String,
    generated_at: String,
    summary: GovernanceSummary,
    artifacts: Vec<GovernanceReportRow>,
    /// Artifacts with records that the project lacks now. Their records hold again when the artifact returns.
    orphans: Vec<OrphanedArtifact>,
}

/// The numbers of a compliance report.
#[derive(SimpleObject)]
pub(crate) struct GovernanceSummary {
    artifacts: usize,
    /// The share of artifacts whose certificate holds, from 0 to 1; null without artifacts.
    certified_share: Option<f64>,
    by_status: GovernanceStatusCounts,
    findings: GovernanceFindingCounts,
    orphans: usize,
    glossary_terms: usize,
    glossary_terms_without_links: usize,
}

/// The numbers of artifacts by status.
#[derive(SimpleObject)]
pub(crate) struct GovernanceStatusCounts {
    draft: usize,
    pending_review: usize,
    certified: usize,
    deprecated: usize,
    archived: usize,
}

/// The numbers of artifacts by finding.
#[derive(SimpleObject)]
pub(crate) struct GovernanceFindingCounts {
    owner_missing: usize,
    pii_without_mask: usize,
    certificate_expired: usize,
    definition_changed: usize,
    sunset_passed: usize,
}

/// An artifact of a compliance report.
#[derive(SimpleObject)]
pub(crate) struct GovernanceReportRow {
    artifact_type: ArtifactType,
    artifact_id: String,
    title: String,
    certification_status: CertificationStatus,
    certified_by: Option<String>,
    valid_until: Option<String>,
    /// Each is `user:` or `team:`, an id, and the role in parentheses.
    owners: Vec<String>,
    tags: Vec<String>,
    data_classification: Option<String>,
    /// True if the artifact has personal data.
    pii_flag: bool,
    /// True if a policy masks or denies the dimension for all callers whom it does not exempt by name; null for other
    /// artifacts.
    masked: Option<bool>,
    /// `owner_missing`, `pii_without_mask`, `certificate_expired`, `definition_changed` or `sunset_passed`.
    findings: Vec<String>,
}

/// An artifact with records that the project lacks.
#[derive(SimpleObject)]
pub(crate) struct OrphanedArtifact {
    artifact_type: ArtifactType,
    artifact_id: String,
}

/// Returns the compliance report of the artifacts that the caller may see.
///
/// # Errors
/// Governance is switched off.
pub(crate) async fn report(context: &Context<'_>) -> Result<GovernanceReport, Failure> {
    let state = state(context);
    state.count_items(0)?;
    let report = service(context)?.report(&state.parts.context.request).await;
    let report = report.map_err(|error| Failure::from(&error))?;
    let report = GovernanceReport::try_from(wire::GovernanceReport::from(&report))?;
    state.count(context, 1, &|list| report.items(list))?;
    Ok(report)
}

impl GovernanceReport {
    /// Returns the number of items of a list of the report. Some numbers of the summary have the names of lists; they
    /// count as these lists.
    fn items(&self, list: &str) -> Option<usize> {
        let sum = |length: fn(&GovernanceReportRow) -> usize| Some(self.artifacts.iter().map(length).sum());
        match list {
            "artifacts" => Some(self.artifacts.len()),
            "orphans" => Some(self.orphans.len()),
            "owners" => sum(|row| row.owners.len()),
            "tags" => sum(|row| row.tags.len()),
            "findings" => sum(|row| row.findings.len().max(1)),
            _ => None,
        }
    }
}

impl TryFrom<wire::GovernanceReport> for GovernanceReport {
    type Error = Failure;

    fn try_from(report: wire::GovernanceReport) -> Result<Self, Failure> {
        let orphan = |orphan: wire::OrphanedArtifact| {
            let artifact_type = ArtifactType::named(orphan.artifact_type)?;
            Ok(OrphanedArtifact { artifact_type, artifact_id: orphan.artifact_id })
        };
        Ok(GovernanceReport {
            project: report.project,
            generated_at: report.generated_at,
            summary: report.summary.into(),
            artifacts: report.artifacts.into_iter().map(GovernanceReportRow::try_from).collect::<Result<_, _>>()?,
            orphans: report.orphans.into_iter().map(orphan).collect::<Result<_, Failure>>()?,
        })
    }
}

impl From<wire::GovernanceSummary> for GovernanceSummary {
    fn from(summary: wire::GovernanceSummary) -> Self {
        let wire::GovernanceStatusCounts { draft, pending_review, certified, deprecated, archived } = summary.by_status;
        let findings = summary.findings;
        GovernanceSummary {
            artifacts: summary.artifacts,
            certified_share: summary.certified_share,
            by_status: GovernanceStatusCounts { draft, pending_review, certified, deprecated, archived },
            findings: GovernanceFindingCounts {
                owner_missing: findings.owner_missing,
                pii_without_mask: findings.pii_without_mask,
                certificate_expired: findings.certificate_expired,
                definition_changed: findings.definition_changed,
                sunset_passed: findings.sunset_passed,
            },
            orphans: summary.orphans,
            glossary_terms: summary.glossary_terms,
            glossary_terms_without_links: summary.glossary_terms_without_links,
        }
    }
}

impl TryFrom<wire::GovernanceReportRow> for GovernanceReportRow {
    type Error = Failure;

    fn try_from(row: wire::GovernanceReportRow) -> Result<Self, Failure> {
        Ok(GovernanceReportRow {
            artifact_type: ArtifactType::named(row.artifact_type)?,
            artifact_id: row.artifact_id,
            title: row.title,
            certification_status: CertificationStatus::named(row.certification_status)?,
            certified_by: row.certified_by,
            valid_until: row.valid_until,
            owners: row.owners,
            tags: row.tags,
            data_classification: row.data_classification,
            pii_flag: row.pii_flag,
            masked: row.masked,
            findings: row.findings.into_iter().map(str::to_owned).collect(),
        })
    }
}
