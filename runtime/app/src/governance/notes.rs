//! Descriptions of artifacts with lines about their certifications and terms, for clients that show descriptions only.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::certification::CertificationView;
use super::service::GovernanceService;
use super::state::GovernanceState;
use crate::catalog::Snapshot;
use crate::domain::RequestContext;
use crate::ports::governance_records::{ArtifactRef, ArtifactType, CertificationStatus, TermStatus};

/// Notes about the artifacts that a caller may see, and the descriptions that were set at run time.
#[derive(Debug, Clone, Default)]
pub struct ArtifactNotes(HashMap<ArtifactType, HashMap<Arc<str>, Note>>);

#[derive(Debug, Clone, Default)]
struct Note {
    /// The description that replaces that of the project's files.
    description: Option<Arc<str>>,
    /// The notes about the certification and the terms, one line each.
    lines: Vec<String>,
}

impl ArtifactNotes {
    /// Returns the description of a cube or a metric, followed by its notes. `None` if it has no description and no
    /// notes.
    pub fn describe<'t>(&self, kind: ArtifactType, id: &str, description: Option<&'t str>) -> Option<Cow<'t, str>> {
        let Some(note) = self.0.get(&kind).and_then(|notes| notes.get(id)) else {
            return description.map(Cow::Borrowed);
        };
        let description = note.description.as_deref().or(description);
        let lines: Vec<&str> = description.into_iter().chain(note.lines.iter().map(String::as_str)).collect();
        Some(Cow::Owned(lines.join("\n")))
    }

    /// Returns the description of a member of a cube, followed by its notes.
    pub fn describe_member<'t>(
        &self,
        kind: ArtifactType,
        cube: &str,
        name: &str,
        description: Option<&'t str>,
    ) -> Option<Cow<'t, str>> {
        match self.0.contains_key(&kind) {
            true => self.describe(kind, &format!("{cube}.{name}"), description),
            false => description.map(Cow::Borrowed),
        }
    }
}

impl GovernanceService {
    /// Returns the notes about the artifacts that the caller may see. If the state database is not available, they are
    /// based on the last records that this process has read.
    pub async fn notes(&self, snapshot: &Arc<Snapshot>, request: &RequestContext) -> ArtifactNotes {
        let state = self.latest_state().await;
        let sight = self.sight(snapshot, request);
        let mut notes = ArtifactNotes::default();
        let governed: BTreeSet<&ArtifactRef> =
            state.certifications.keys().chain(state.linked()).chain(state.metadata.keys()).collect();
        for artifact in governed.into_iter().filter(|artifact| sight.sees(artifact)) {
            let certification = certification(&CertificationView::of(&sight, &state, artifact));
            let lines: Vec<String> = certification.into_iter().chain(terms(&state, artifact)).collect();
            let description = state.metadata.get(artifact).and_then(|set| set.description.clone());
            if !lines.is_empty() || description.is_some() {
                notes.0.entry(artifact.kind).or_default().insert(artifact.id.clone(), Note { description, lines });
            }
        }
        notes
    }
}

/// Returns the line about a certification; `None` for drafts and submitted artifacts.
fn certification(view: &CertificationView) -> Option<String> {
    let record = view.record.as_deref();
    let until = record.and_then(|record| record.valid_until);
    Some(match (view.status, until) {
        (CertificationStatus::Certified, _) if view.definition_changed.is_some() => {
            "Certified with another definition.".to_owned()
        }
        (CertificationStatus::Certified, Some(day)) if view.is_expired => format!("Certified until {day}; expired."),
        (CertificationStatus::Certified, Some(day)) => format!("Certified until {day}."),
        (CertificationStatus::Certified, None) => "Certified.".to_owned(),
        (CertificationStatus::Deprecated, _) => match record.and_then(|record| record.replacement.as_deref()) {
            Some(replacement) => format!("Deprecated; use {replacement}."),
            None => "Deprecated.".to_owned(),
        },
        (CertificationStatus::Archived, _) => "Archived.".to_owned(),
        (CertificationStatus::Draft | CertificationStatus::PendingReview, _) => return None,
    })
}

/// Returns the line with the names of the approved terms of an artifact.
fn terms(state: &GovernanceState, artifact: &ArtifactRef) -> Option<String> {
    let terms = state.terms_of(artifact).filter(|(term, _)| term.status == TermStatus::Approved);
    let names: BTreeSet<&str> = terms.map(|(term, _)| &*term.name).collect();
    let names: Vec<&str> = names.into_iter().collect();
    (!names.is_empty()).then(|| format!("Terms: {}.", names.join(", ")))
}
