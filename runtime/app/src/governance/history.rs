//! The history of changes to artifacts and terms that the caller may see.

use std::sync::Arc;

use super::artifacts::Sight;
use super::error::GovernanceError;
use super::service::GovernanceService;
use crate::domain::RequestContext;
use crate::ports::governance_records::{ArtifactRef, ChangeId, HistoryEntry, HistoryFilter, LinkTarget};

/// The number of entries that are read at once.
const PAGE: u32 = 500;

/// A selection of the history.
#[derive(Debug, Clone, Default)]
pub struct HistoryRequest {
    pub artifact: Option<ArtifactRef>,
    pub term_id: Option<Arc<str>>,
    /// The change before which the page begins.
    pub before: Option<ChangeId>,
    pub limit: u32,
}

/// A page of the history, newest first.
#[derive(Debug, Clone, Default)]
pub struct HistoryPage {
    pub entries: Vec<HistoryEntry>,
    /// The change before which the next page begins. It is one that the caller may see.
    pub next: Option<ChangeId>,
}

impl GovernanceService {
    /// Returns the changes that the caller may see. The details before and after a change may name members that are
    /// hidden from the caller. So only callers with `admin` and callers from whom policies hide nothing get the
    /// details.
    ///
    /// # Errors
    /// [`GovernanceError::UnknownArtifact`], [`GovernanceError::UnknownTerm`], [`GovernanceError::UnknownChange`],
    /// [`GovernanceError::Store`].
    pub async fn history(
        &self,
        wanted: &HistoryRequest,
        request: &RequestContext,
    ) -> Result<HistoryPage, GovernanceError> {
        self.read(request, |sight, state| {
            if let Some(artifact) = wanted.artifact.as_ref().filter(|artifact| !sight.sees_records_of(artifact)) {
                return Err(sight.unknown("artifact_id", artifact));
            }
            match &wanted.term_id {
                Some(id) if !state.terms.contains_key(id) => {
                    Err(GovernanceError::UnknownTerm { field: Some("term_id"), id: id.clone() })
                }
                _ => Ok(()),
            }
        })
        .await?;
        let (artifact, term_id) = (wanted.artifact.clone(), wanted.term_id.clone());
        let mut filter = HistoryFilter { artifact, term_id, limit: PAGE, ..HistoryFilter::default() };
        if let Some(change) = &wanted.before {
            filter.before = Some(self.sequence_of(change, request).await?);
        }
        let (limit, mut entries) = (wanted.limit.max(1) as usize, Vec::new());
        loop {
            let (seen, last) = self.seen_page(&filter, request).await?;
            entries.extend(seen);
            if entries.len() > limit {
                entries.truncate(limit);
                let next = entries.last().map(HistoryEntry::id);
                return Ok(HistoryPage { entries, next });
            }
            if last.is_none() {
                return Ok(HistoryPage { entries, next: None });
            }
            filter.before = last;
        }
    }

    /// Returns the sequence number of a change that the caller may see.
    async fn sequence_of(&self, change: &ChangeId, request: &RequestContext) -> Result<u64, GovernanceError> {
        let filter = HistoryFilter { change: Some(change.clone()), limit: 1, ..HistoryFilter::default() };
        let (seen, _) = self.seen_page(&filter, request).await?;
        let sequence = seen.first().map(|entry| entry.sequence);
        sequence.ok_or_else(|| GovernanceError::UnknownChange { id: change.to_string().chars().take(200).collect() })
    }

    /// Returns those entries of a page that the caller may see, and the last sequence number of a full page.
    async fn seen_page(
        &self,
        filter: &HistoryFilter,
        request: &RequestContext,
    ) -> Result<(Vec<HistoryEntry>, Option<u64>), GovernanceError> {
        let page = self.history_page(filter).await?;
        let last = page.last().filter(|_| page.len() >= filter.limit as usize).map(|entry| entry.sequence);
        let seen = |sight: &Sight<'_>, _: &_| Ok(page.iter().filter_map(|entry| seen(sight, entry)).collect());
        Ok((self.read(request, seen).await?, last))
    }
}

/// The actions that change only one link of a term.
const LINK_ACTIONS: [&str; 2] = ["term_linked", "term_unlinked"];

/// Returns an entry as the caller may see it; `None` if the caller may not see its artifact. An entry about a link of a
/// term is also left out if the link is to a hidden artifact.
fn seen(sight: &Sight<'_>, entry: &HistoryEntry) -> Option<HistoryEntry> {
    if entry.artifact.as_ref().is_some_and(|artifact| !sight.sees_records_of(artifact)) {
        return None;
    }
    let is_hidden = |target: &LinkTarget| match target {
        LinkTarget::Artifact(artifact) => !sight.sees_records_of(artifact),
        LinkTarget::Term(_) => false,
    };
    if LINK_ACTIONS.contains(&&*entry.action) && entry.linked.iter().any(is_hidden) {
        return None;
    }
    let mut entry = entry.clone();
    if !sight.is_admin && !sight.sees_everything() {
        (entry.before, entry.after) = (None, None);
    }
    Some(entry)
}
