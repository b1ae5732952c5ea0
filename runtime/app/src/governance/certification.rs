//! Certification of artifacts: the table of transitions, and the moves of callers.
//!
//! A certificate certifies one definition. If the definition changes, the artifact counts as changed from the moment
//! at which the project is loaded; with `governance.on_change: revoke`, it counts as a draft. A certificate ends with
//! its last day in the project's time zone. Both states are computed when a record is read; the background task
//! writes them to the record later.

use std::sync::Arc;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

use super::artifacts::Sight;
use super::definition::without_members;
use super::details::{artifact_for_hooks, certification_details};
use super::diff::{DiffLine, diff};
use super::error::GovernanceError;
use super::ownership::OwnershipView;
use super::page::Page;
use super::service::{Decided, GovernanceService, OnChange, Question};
use super::state::GovernanceState;
use super::text::{self, TextProblem};
use crate::domain::{Precondition, RequestContext};
use crate::ports::governance::Transition;
use crate::ports::governance_records::{
    ArtifactRef, ArtifactType, Certification, CertificationStatus, GovernedRecord, RecordChange, Step,
};

/// Returns the status after a move; `None` if the move is not allowed.
pub fn next_status(status: CertificationStatus, transition: Transition) -> Option<CertificationStatus> {
    use CertificationStatus::{Archived, Certified, Deprecated, Draft, PendingReview};
    match (status, transition) {
        (Draft, Transition::Submit) => Some(PendingReview),
        (PendingReview, Transition::Certify) => Some(Certified),
        (PendingReview, Transition::Reject) => Some(Draft),
        (Certified, Transition::Deprecate) => Some(Deprecated),
        (Draft | Deprecated, Transition::Archive) => Some(Archived),
        (Deprecated, Transition::Restore) => Some(Draft),
        _ => None,
    }
}

/// Returns the moves that the table allows from a status.
pub fn allowed_moves(status: CertificationStatus) -> Vec<Transition> {
    Transition::ALL.into_iter().filter(|transition| next_status(status, *transition).is_some()).collect()
}

/// A request to move an artifact.
#[derive(Debug, Clone)]
pub struct CertificationMove {
    pub artifact: ArtifactRef,
    pub transition: Transition,
    /// The notes, or the reason for a rejection or deprecation. Submissions, rejections and deprecations need them.
    pub notes: Option<String>,
    /// The last day of the certificate.
    pub valid_until: Option<Date>,
    /// The id of the artifact to use instead of a deprecated one.
    pub replacement: Option<String>,
    pub sunset_date: Option<Date>,
    pub precondition: Precondition,
}

/// The certification of an artifact at one time, for one caller.
#[derive(Debug, Clone)]
pub struct CertificationView {
    pub artifact: ArtifactRef,
    /// The status that applies now. It differs from the stored status if a changed definition revokes the certificate.
    pub status: CertificationStatus,
    /// The version of the record; 0 if no record exists.
    pub version: u64,
    pub record: Option<Arc<Certification>>,
    /// True if the certificate has expired.
    pub is_expired: bool,
    pub definition_changed: Option<DefinitionChange>,
    /// The moves that the table allows. The caller may lack the right to some of them.
    pub allowed_moves: Vec<Transition>,
    /// True if the project has no such artifact now.
    pub is_orphan: bool,
}

/// A definition that differs from the certified one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionChange {
    /// The time at which the background task noticed the change; `None` until then.
    pub since: Option<Timestamp>,
    /// The changed lines, for callers with `admin` or from whom policies hide nothing; `None` for other callers.
    pub diff: Option<Vec<DiffLine>>,
}

/// A selection of certifications.
#[derive(Debug, Clone, Default)]
pub struct CertificationFilter {
    pub status: Option<CertificationStatus>,
    pub artifact_type: Option<ArtifactType>,
}

#[derive(Debug, Clone, Default)]
pub struct CertificationPage {
    pub certifications: Vec<CertificationView>,
    /// The number of certifications of all pages.
    pub total: usize,
}

impl CertificationView {
    /// Returns the certification of an artifact that the caller may see.
    pub(super) fn of(sight: &Sight<'_>, state: &GovernanceState, artifact: &ArtifactRef) -> Self {
        let record = state.certifications.get(artifact);
        let stored = record.map_or(CertificationStatus::Draft, |record| record.status);
        let definition_changed = record.and_then(|record| definition_change(sight, record));
        let is_revoked = stored == CertificationStatus::Certified
            && definition_changed.is_some()
            && sight.settings.on_change == OnChange::Revoke;
        let status = if is_revoked { CertificationStatus::Draft } else { stored };
        let last_day = record.and_then(|record| record.valid_until);
        CertificationView {
            artifact: artifact.clone(),
            status,
            version: record.map_or(0, |record| record.version),
            record: record.map(|record| without_hidden(sight, record)),
            is_expired: status == CertificationStatus::Certified
                && last_day.is_some_and(|day| is_over(day, sight.now, &sight.settings.timezone)),
            definition_changed,
            allowed_moves: allowed_moves(status),
            is_orphan: sight.is_orphan(artifact),
        }
    }

    /// Returns whether the certificate holds: it is not expired, and the definition is the certified one.
    pub fn is_certified(&self) -> bool {
        self.status == CertificationStatus::Certified && !self.is_expired && self.definition_changed.is_none()
    }
}

/// Returns the difference between the certified definition and the current one; `None` if they are equal.
fn definition_change(sight: &Sight<'_>, record: &Certification) -> Option<DefinitionChange> {
    let is_compared = match record.status {
        CertificationStatus::PendingReview | CertificationStatus::Certified => true,
        // A draft with this time had a certificate that was revoked.
        CertificationStatus::Draft => record.definition_changed_at.is_some(),
        CertificationStatus::Deprecated | CertificationStatus::Archived => false,
    };
    let certified = record.definition.as_ref().filter(|_| is_compared)?;
    let present = sight.definitions.get_like(sight.snapshot, &record.artifact, certified)?;
    if present.fingerprint == certified.fingerprint {
        return None;
    }
    // A caller does not learn that only members changed which are hidden from the caller.
    if record.artifact.kind == ArtifactType::Cube && !sight.is_admin && !sight.sees_everything() {
        let seen = |text: &str| without_members(text, |id| sight.hides_member(id));
        if seen(&certified.text) == seen(&present.text) {
            return None;
        }
    }
    let diff = (sight.is_admin || sight.sees_everything()).then(|| diff(&certified.text, &present.text));
    Some(DefinitionChange { since: record.definition_changed_at, diff })
}

/// Returns whether a day has ended in a zone.
pub(super) fn is_over(day: Date, now: Timestamp, zone: &TimeZone) -> bool {
    now.to_zoned(zone.clone()).date() > day
}

/// Returns whether the day that is `days` days after `day` has ended in a zone.
pub(super) fn is_over_since(day: Date, days: i64, now: Timestamp, zone: &TimeZone) -> bool {
    day.checked_add(Span::new().days(days)).is_ok_and(|day| is_over(day, now, zone))
}

/// Returns the certification of an artifact that has no record: a draft of version 0.
pub(super) fn draft(artifact: &ArtifactRef, now: Timestamp) -> Certification {
    Certification {
        artifact: artifact.clone(),
        status: CertificationStatus::Draft,
        version: 0,
        submitted: None,
        certified: None,
        valid_until: None,
        definition: None,
        definition_changed_at: None,
        rejected: None,
        deprecated: None,
        replacement: None,
        sunset_date: None,
        archived: None,
        updated_at: now,
    }
}

/// Returns the audit event of a move.
fn event(transition: Transition) -> &'static str {
    match transition {
        Transition::Submit => "certification_submitted",
        Transition::Certify => "artifact_certified",
        Transition::Reject => "certification_rejected",
        Transition::Deprecate => "artifact_deprecated",
        Transition::Archive => "artifact_archived",
        Transition::Restore => "artifact_restored",
    }
}

/// Returns the name of the request's field with the notes on a transition, and whether the transition requires notes.
fn notes_of(transition: Transition) -> (&'static str, bool) {
    match transition {
        Transition::Submit => ("notes", true),
        Transition::Reject | Transition::Deprecate => ("reason", true),
        Transition::Certify | Transition::Archive | Transition::Restore => ("notes", false),
    }
}

impl GovernanceService {
    /// Returns the certification of an artifact.
    ///
    /// # Errors
    /// [`GovernanceError::UnknownArtifact`], [`GovernanceError::Store`].
    pub async fn certification(
        &self,
        artifact: &ArtifactRef,
        request: &RequestContext,
    ) -> Result<CertificationView, GovernanceError> {
        self.read(request, |sight, state| {
            if !sight.sees_records_of(artifact)
                || (sight.is_orphan(artifact) && !state.certifications.contains_key(artifact))
            {
                return Err(sight.unknown("artifact_id", artifact));
            }
            Ok(CertificationView::of(sight, state, artifact))
        })
        .await
    }

    /// Returns a page of the recorded certifications, by artifact. With the status `draft`, artifacts without a record
    /// are included.
    ///
    /// # Errors
    /// [`GovernanceError::Store`].
    pub async fn certifications(
        &self,
        filter: &CertificationFilter,
        page: &Page,
        request: &RequestContext,
    ) -> Result<CertificationPage, GovernanceError> {
        self.read(request, |sight, state| {
            let mut artifacts: Vec<ArtifactRef> = state.certifications.keys().cloned().collect();
            if filter.status == Some(CertificationStatus::Draft) {
                for kind in ArtifactType::ALL {
                    let all = sight.artifacts_of(kind).into_iter().map(|(id, _)| ArtifactRef { kind, id });
                    artifacts.extend(all.filter(|artifact| !state.certifications.contains_key(artifact)));
                }
                artifacts.sort();
            }
            let is_wanted = |artifact: &ArtifactRef| filter.artifact_type.is_none_or(|kind| kind == artifact.kind);
            let wanted = artifacts.iter().filter(|artifact| is_wanted(artifact) && sight.sees_records_of(artifact));
            let views = wanted.map(|artifact| CertificationView::of(sight, state, artifact));
            let selected = views.filter(|view| filter.status.is_none_or(|status| status == view.status));
            let selected: Vec<CertificationView> = selected.collect();
            let total = selected.len();
            Ok(CertificationPage { certifications: page.of(selected.into_iter()).collect(), total })
        })
        .await
    }

    /// Moves an artifact along the table of transitions.
    ///
    /// # Errors
    /// [`GovernanceError`]; nothing is changed.
    pub async fn certify(
        &self,
        wanted: &CertificationMove,
        request: &RequestContext,
    ) -> Result<CertificationView, GovernanceError> {
        let artifact = &wanted.artifact;
        self.change(request, |sight, state| self.decide_move(sight, state, wanted, request)).await?;
        self.certification(artifact, request).await
    }

    fn decide_move(
        &self,
        sight: &Sight<'_>,
        state: &GovernanceState,
        wanted: &CertificationMove,
        request: &RequestContext,
    ) -> Result<Decided<()>, GovernanceError> {
        let CertificationMove { artifact, transition, precondition, .. } = wanted;
        let transition = *transition;
        sight.require("artifact_id", artifact)?;
        let (field, needs_notes) = notes_of(transition);
        let notes = match &wanted.notes {
            None if needs_notes => return Err(TextProblem::OneLine { max: text::MAX_NOTES }.of(field)),
            Some(text) if needs_notes => Some(text::paragraph(field, text, text::MAX_NOTES)?),
            text => text::notes(field, text.as_deref())?,
        };
        let view = sight.find(state, artifact).ok_or_else(|| sight.unknown("artifact_id", artifact))?;
        let present = &view.certification;
        check_rights(sight, &view.owners, present, transition)?;
        precondition.check(present.version, sight.settings.require_if_match)?;
        let status = next_status(present.status, transition).ok_or_else(|| GovernanceError::NotAllowed {
            status: present.status,
            transition,
            allowed: present.allowed_moves.clone(),
        })?;
        let step = Some(Step { by: request.caller.user_id.clone(), at: sight.now, notes: notes.clone() });
        let before = match &present.record {
            Some(record) => Certification::clone(record),
            None => draft(artifact, sight.now),
        };
        let mut after = Certification { status, version: before.version + 1, updated_at: sight.now, ..before.clone() };
        match transition {
            Transition::Submit => {
                let submitted = Certification { status, version: after.version, ..draft(artifact, sight.now) };
                after = Certification { submitted: step, definition: self.definition(sight, artifact), ..submitted };
            }
            Transition::Certify => {
                check_not_over(sight, "valid_until", wanted.valid_until)?;
                (after.certified, after.valid_until) = (step, wanted.valid_until);
                (after.definition, after.definition_changed_at) = (self.definition(sight, artifact), None);
            }
            Transition::Reject => after.rejected = step,
            Transition::Deprecate => {
                check_not_over(sight, "sunset_date", wanted.sunset_date)?;
                after.deprecated = step;
                after.replacement = replacement(sight, artifact, wanted.replacement.as_deref())?;
                after.sunset_date = wanted.sunset_date;
            }
            Transition::Archive => after.archived = step,
            Transition::Restore => {
                after = Certification { status, version: after.version, ..draft(artifact, sight.now) };
            }
        }
        let mut entry = self.entry(event(transition), request, artifact.to_string());
        entry.reason = notes.clone();
        (entry.before, entry.after) = (Some(certification_details(&before)), Some(certification_details(&after)));
        let item = artifact_for_hooks(&view, sight.definitions.get(sight.snapshot, artifact).as_deref());
        let notes = notes.as_deref().unwrap_or_default().to_owned();
        Ok(Decided {
            changes: vec![RecordChange { record: GovernedRecord::Certification(Arc::new(after)), entry }],
            question: Some(Question::Step { item, step: transition, notes }),
            result: (),
        })
    }

    fn definition(
        &self,
        sight: &Sight<'_>,
        artifact: &ArtifactRef,
    ) -> Option<crate::ports::governance_records::Definition> {
        sight.definitions.get(sight.snapshot, artifact).map(|definition| (*definition).clone())
    }
}

/// Checks that a day of a request has not ended in the project's zone.
fn check_not_over(sight: &Sight<'_>, field: &'static str, day: Option<Date>) -> Result<(), GovernanceError> {
    match day.is_some_and(|day| is_over(day, sight.now, &sight.settings.timezone)) {
        true => Err(TextProblem::PastDay.of(field)),
        false => Ok(()),
    }
}

/// Reads the id of a replacement, which the caller must be allowed to see.
fn replacement(
    sight: &Sight<'_>,
    artifact: &ArtifactRef,
    id: Option<&str>,
) -> Result<Option<Arc<str>>, GovernanceError> {
    let Some(id) = text::optional_line("replacement", id)? else { return Ok(None) };
    if id == artifact.id {
        return Err(TextProblem::SameArtifact.of("replacement"));
    }
    sight.require("replacement", &ArtifactRef { kind: artifact.kind, id: id.clone() })?;
    Ok(Some(id))
}

/// Returns a record without the id of a replacement that the caller may not see.
fn without_hidden(sight: &Sight<'_>, record: &Arc<Certification>) -> Arc<Certification> {
    let sees = |id: &Arc<str>| sight.sees_records_of(&ArtifactRef { kind: record.artifact.kind, id: Arc::clone(id) });
    match &record.replacement {
        Some(id) if !sees(id) => Arc::new(Certification { replacement: None, ..Certification::clone(record) }),
        _ => Arc::clone(record),
    }
}

/// Checks the caller's right to a move. A caller is a reviewer with a reviewer role, with `admin`, or as a data steward
/// of the artifact whom another caller assigned.
fn check_rights(
    sight: &Sight<'_>,
    owners: &OwnershipView,
    present: &CertificationView,
    transition: Transition,
) -> Result<(), GovernanceError> {
    let is_reviewer = sight.has_reviewer_role() || owners.has_steward(sight.caller);
    match transition {
        Transition::Submit => Ok(()),
        Transition::Certify if is_reviewer => {
            let submitter = present.record.as_ref().and_then(|record| record.submitted.as_ref());
            let is_own = submitter.is_some_and(|step| step.by == sight.caller.user_id);
            let is_pending = present.status == CertificationStatus::PendingReview;
            if is_own && is_pending && !sight.settings.allow_self_certification {
                Err(GovernanceError::OwnSubmission)
            } else {
                Ok(())
            }
        }
        Transition::Reject if is_reviewer => Ok(()),
        Transition::Deprecate | Transition::Archive | Transition::Restore
            if is_reviewer || owners.has(sight.caller) =>
        {
            Ok(())
        }
        _ => Err(GovernanceError::NotReviewer { transition }),
    }
}
