//! Metadata of artifacts that is set at run time and replaces the values of the project's files.

use std::sync::Arc;

use super::artifacts::ArtifactView;
use super::details::metadata_details;
use super::error::GovernanceError;
use super::ownership::change_of_artifact;
use super::service::{Decided, GovernanceService};
use super::text;
use crate::accounts::Change;
use crate::domain::{Precondition, RequestContext};
use crate::ports::governance_records::{ArtifactMetadata, ArtifactRef, GovernedRecord, RecordChange};

/// A change of metadata. [`Change::Remove`] restores the value of the project's files.
#[derive(Debug, Clone, Default)]
pub struct MetadataRequest {
    pub description: Change<String>,
    pub tags: Change<Vec<Arc<str>>>,
    pub documentation_url: Change<String>,
    pub refresh_frequency: Change<String>,
    pub data_classification: Change<String>,
    pub pii_flag: Change<bool>,
    pub precondition: Precondition,
}

/// Reads the new value of a field.
fn read<T, U>(
    change: &Change<T>,
    read: impl Fn(&T) -> Result<U, GovernanceError>,
) -> Result<Change<U>, GovernanceError> {
    Ok(match change {
        Change::Keep => Change::Keep,
        Change::Remove => Change::Remove,
        Change::Set(value) => Change::Set(read(value)?),
    })
}

impl GovernanceService {
    /// Returns an artifact with its governed values.
    ///
    /// # Errors
    /// [`GovernanceError::UnknownArtifact`], [`GovernanceError::Store`].
    pub async fn artifact(
        &self,
        artifact: &ArtifactRef,
        request: &RequestContext,
    ) -> Result<ArtifactView, GovernanceError> {
        self.read(request, |sight, state| {
            sight.find(state, artifact).ok_or_else(|| sight.unknown("artifact_id", artifact))
        })
        .await
    }

    /// Changes the metadata of an artifact.
    ///
    /// # Errors
    /// [`GovernanceError`]; nothing is changed.
    pub async fn set_metadata(
        &self,
        artifact: &ArtifactRef,
        wanted: &MetadataRequest,
        request: &RequestContext,
    ) -> Result<ArtifactView, GovernanceError> {
        self.change(request, |sight, state| {
            sight.require("artifact_id", artifact)?;
            let description = read(&wanted.description, |text| text::paragraph("description", text, text::MAX_TEXT))?;
            let tags = read(&wanted.tags, |tags| text::lines("tags", tags))?;
            let documentation_url = read(&wanted.documentation_url, |text| text::address("documentation_url", text))?;
            let refresh_frequency = read(&wanted.refresh_frequency, |text| text::line("refresh_frequency", text))?;
            let data_classification =
                read(&wanted.data_classification, |text| text::line("data_classification", text))?;
            let present = state.metadata.get(artifact);
            let version = present.map_or(0, |record| record.version);
            wanted.precondition.check(version, sight.settings.require_if_match)?;
            let before = present.map(|record| ArtifactMetadata::clone(record)).unwrap_or_else(|| ArtifactMetadata {
                artifact: artifact.clone(),
                description: None,
                tags: None,
                documentation_url: None,
                refresh_frequency: None,
                data_classification: None,
                pii_flag: None,
                version: 0,
                updated_by: Arc::default(),
                updated_at: sight.now,
            });
            let after = ArtifactMetadata {
                artifact: artifact.clone(),
                description: description.apply(before.description.clone()),
                tags: tags.apply(before.tags.clone()),
                documentation_url: documentation_url.apply(before.documentation_url.clone()),
                refresh_frequency: refresh_frequency.apply(before.refresh_frequency.clone()),
                data_classification: data_classification.apply(before.data_classification.clone()),
                pii_flag: wanted.pii_flag.clone().apply(before.pii_flag),
                version,
                updated_by: before.updated_by.clone(),
                updated_at: before.updated_at,
            };
            if after == before {
                return match wanted.is_empty() {
                    true => Err(GovernanceError::NothingToChange),
                    false => Ok(Decided::nothing(())),
                };
            }
            let (updated_by, updated_at) = (request.caller.user_id.clone(), sight.now);
            let after = ArtifactMetadata { version: version + 1, updated_by, updated_at, ..after };
            let mut entry = self.entry("artifact_metadata_changed", request, artifact.to_string());
            entry.before = present.map(|record| metadata_details(record));
            entry.after = Some(metadata_details(&after));
            let record = GovernedRecord::Metadata(Arc::new(after));
            let question = change_of_artifact(sight, state, artifact, &record);
            Ok(Decided { changes: vec![RecordChange { record, entry }], question, result: () })
        })
        .await?;
        self.artifact(artifact, request).await
    }
}

impl MetadataRequest {
    fn is_empty(&self) -> bool {
        let texts = [&self.description, &self.documentation_url, &self.refresh_frequency, &self.data_classification];
        texts.into_iter().all(|text| *text == Change::Keep)
            && self.tags == Change::Keep
            && self.pii_flag == Change::Keep
    }
}
