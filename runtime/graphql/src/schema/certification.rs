//! Certifications of artifacts.
//!
//! In: views of the use case. Out: the fields that REST sends, under names in GraphQL's convention.

use async_graphql::{Context, SimpleObject};
use terrane_app::governance::{CertificationFilter, Page};
use terrane_wire::governance as wire;

use super::artifact_ref::{ArtifactType, artifact};
use super::governance::{page, service};
use super::request::state;
use crate::enums::CertificationStatus;
use crate::failure::Failure;

/// The certification of an artifact, with its steps. An artifact without a record is a draft of version 0.
#[derive(SimpleObject)]
pub(crate) struct CertificationRecord {
    artifact_type: ArtifactType,
    artifact_id: String,
    status: CertificationStatus,
    version: u64,
    submitted_by: Option<String>,
    submitted_at: Option<String>,
    submission_notes: Option<String>,
    certified_by: Option<String>,
    certified_at: Option<String>,
    /// The last day of the certificate.
    valid_until: Option<String>,
    /// The notes of the certificate.
    notes: Option<String>,
    /// True if the last day of the certificate has passed.
    expired: bool,
    /// Null if the definition is the certified one.
    definition_changed: Option<ChangedDefinition>,
    rejected: Option<CertificationStep>,
    deprecated: Option<CertificationStep>,
    /// The artifact to use instead, of the same type.
    replacement: Option<String>,
    sunset_date: Option<String>,
    archived: Option<CertificationStep>,
    /// The moves of the table of transitions, such as `submit`.
    allowed_moves: Vec<String>,
    /// True if the project has no such artifact now.
    orphaned: bool,
}

/// A step of certification.
#[derive(SimpleObject)]
pub(crate) struct CertificationStep {
    by: String,
    at: String,
    /// The notes or the reason.
    notes: Option<String>,
}

/// A definition that differs from the certified one.
#[derive(SimpleObject)]
pub(crate) struct ChangedDefinition {
    /// The time at which the servers noticed it; null until then.
    since: Option<String>,
    /// The removed and added lines. Null for callers to whom policies apply.
    diff: Option<Vec<DefinitionLine>>,
}

/// A line of a changed definition.
#[derive(SimpleObject)]
pub(crate) struct DefinitionLine {
    /// `removed` or `added`.
    change: String,
    text: String,
}

/// A page of certifications, by artifact.
#[derive(SimpleObject)]
pub(crate) struct CertificationPage {
    certifications: Vec<CertificationRecord>,
    /// The number of certifications on all pages.
    total: usize,
}

/// Returns the certification of an artifact.
///
/// # Errors
/// Governance is switched off, or the artifact does not exist for the caller.
pub(crate) async fn one(
    context: &Context<'_>,
    artifact_type: ArtifactType,
    artifact_id: String,
) -> Result<CertificationRecord, Failure> {
    let state = state(context);
    state.count_items(0)?;
    let artifact = artifact(artifact_type, artifact_id);
    let view = service(context)?.certification(&artifact, &state.parts.context.request).await;
    let view = view.map_err(|error| Failure::from(&error))?;
    let record = CertificationRecord::try_from(wire::Certification::from(&view))?;
    state.count(context, 1, &|list| record.items(list))?;
    Ok(record)
}

/// Returns the recorded certifications; with the status `DRAFT`, also those of artifacts without a record.
///
/// # Errors
/// Governance is switched off, or the limit is invalid.
pub(crate) async fn list(
    context: &Context<'_>,
    status: Option<CertificationStatus>,
    artifact_type: Option<ArtifactType>,
    slice: (Option<i64>, Option<i64>),
) -> Result<CertificationPage, Failure> {
    let state = state(context);
    state.count_items(0)?;
    let (limit, offset) = page(slice)?;
    let filter = CertificationFilter { status: status.map(Into::into), artifact_type: artifact_type.map(Into::into) };
    let page = Page { offset, limit: Some(limit) };
    let found = service(context)?.certifications(&filter, &page, &state.parts.context.request).await;
    let found = wire::Certifications::from(&found.map_err(|error| Failure::from(&error))?);
    let certifications: Vec<CertificationRecord> =
        found.certifications.into_iter().map(CertificationRecord::try_from).collect::<Result<_, _>>()?;
    let items = |list: &str| match list {
        "certifications" => Some(certifications.len()),
        _ => certifications.iter().filter_map(|record| record.items(list)).reduce(|sum, items| sum + items),
    };
    state.count(context, 1, &items)?;
    Ok(CertificationPage { certifications, total: found.total })
}

impl CertificationRecord {
    /// Returns the number of items of a list below the record.
    pub(super) fn items(&self, list: &str) -> Option<usize> {
        match list {
            "allowedMoves" => Some(self.allowed_moves.len()),
            "diff" => {
                let lines = self.definition_changed.as_ref().and_then(|change| change.diff.as_ref());
                Some(lines.map_or(0, Vec::len))
            }
            _ => None,
        }
    }
}

impl TryFrom<wire::Certification> for CertificationRecord {
    type Error = Failure;

    fn try_from(record: wire::Certification) -> Result<Self, Failure> {
        Ok(CertificationRecord {
            artifact_type: ArtifactType::named(record.artifact_type)?,
            artifact_id: record.artifact_id,
            status: CertificationStatus::named(record.status)?,
            version: record.version,
            submitted_by: record.submitted_by,
            submitted_at: record.submitted_at,
            submission_notes: record.submission_notes,
            certified_by: record.certified_by,
            certified_at: record.certified_at,
            valid_until: record.valid_until,
            notes: record.notes,
            expired: record.expired,
            definition_changed: record.definition_changed.map(ChangedDefinition::from),
            rejected: record.rejected.map(CertificationStep::from),
            deprecated: record.deprecated.map(CertificationStep::from),
            replacement: record.replacement,
            sunset_date: record.sunset_date,
            archived: record.archived.map(CertificationStep::from),
            allowed_moves: record.allowed_moves.into_iter().map(str::to_owned).collect(),
            orphaned: record.orphaned,
        })
    }
}

impl From<wire::CertificationNote> for CertificationStep {
    fn from(note: wire::CertificationNote) -> Self {
        CertificationStep { by: note.by, at: note.at, notes: note.notes }
    }
}

impl From<wire::ChangedDefinition> for ChangedDefinition {
    fn from(change: wire::ChangedDefinition) -> Self {
        let line = |line: wire::DefinitionLine| DefinitionLine { change: line.change.to_owned(), text: line.text };
        ChangedDefinition { since: change.since, diff: change.diff.map(|lines| lines.into_iter().map(line).collect()) }
    }
}
