//! The history of changes to artifacts and terms that the caller may see.

use super::artifacts::Sight;
use super::error::GovernanceError;
use super::service::GovernanceService;
use crate::domain::RequestContext;
use crate::ports::governance_records::{HistoryEntry, HistoryFilter, LinkTarget};

/// The number of entries that are read at once.
const PAGE: u32 = 500;
/// The largest number of reads for one page. A page may have fewer entries than requested when it is reached.
const MAX_READS: usize = 20;

/// A page of the history, newest first.
#[derive(Debug, Clone, Default)]
pub struct HistoryPage {
    pub entries: Vec<HistoryEntry>,
    /// The sequence number before which the next page begins.
    pub next: Option<u64>,
}

impl GovernanceService {
    /// Returns the changes that the caller may see. The details before and after a change may name members that are
    /// hidden from the caller. So only callers with `admin` and callers from whom policies hide nothing get the
    /// details.
    ///
    /// # Errors
    /// [`GovernanceError::UnknownArtifact`], [`GovernanceError::UnknownTerm`], [`GovernanceError::Store`].
    pub async fn history(
        &self,
        filter: &HistoryFilter,
        request: &RequestContext,
    ) -> Result<HistoryPage, GovernanceError> {
        self.read(request, |sight, state| {
            if let Some(artifact) = filter.artifact.as_ref().filter(|artifact| !sight.sees_records_of(artifact)) {
                return Err(sight.unknown("artifact_id", artifact));
            }
            match &filter.term_id {
                Some(id) if !state.terms.contains_key(id) => {
                    Err(GovernanceError::UnknownTerm { field: Some("term_id"), id: id.clone() })
                }
                _ => Ok(()),
            }
        })
        .await?;
        let wanted = filter.limit.max(1) as usize;
        let (mut entries, mut before) = (Vec::new(), filter.before);
        for _ in 0..MAX_READS {
            let page = self.history_page(&HistoryFilter { before, limit: PAGE, ..filter.clone() }).await?;
            let is_last = page.len() < PAGE as usize;
            before = page.last().map(|entry| entry.sequence);
            let seen = self.read(request, |sight, _| Ok(page.iter().filter_map(|entry| seen(sight, entry)).collect()));
            let seen: Vec<HistoryEntry> = seen.await?;
            entries.extend(seen);
            if entries.len() > wanted {
                entries.truncate(wanted);
                before = entries.last().map(|entry: &HistoryEntry| entry.sequence);
                return Ok(HistoryPage { entries, next: before });
            }
            if is_last {
                return Ok(HistoryPage { entries, next: None });
            }
        }
        Ok(HistoryPage { entries, next: before })
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
