//! Lists of alerts that several followers share.
//!
//! In: a caller, the alerts that it follows, and a revision of the state. Out: the versions of these alerts. Followers
//! with the same rights and selection share one list per revision. At most [`MAX_LISTINGS`] lists of a process are read
//! at once; other reads wait in order. A list contains the ids and versions of at most twice [`MAX_LISTED`] alerts.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::error::MonitorError;
use super::views::caller_key;
use super::{MAX_LISTED, MonitorService};
use crate::domain::{Identity, RequestContext};
use crate::ports::monitors::{Alert, AlertFilter, AlertsRevision};
use crate::ports::severity::FindingSeverity;

/// The largest number of lists and pages that the followers of a process read at once.
const MAX_LISTINGS: usize = 4;
/// The age from which a list is reloaded for a new follower.
const LIFETIME: Duration = Duration::from_secs(60);

/// The caller of a stream, and the selection of alerts that the caller follows.
#[derive(Clone)]
pub struct FollowedAlerts {
    pub identity: Identity,
    pub request: RequestContext,
    /// The monitor's id; `None` for the alerts of all monitors that the caller may see.
    pub monitor_id: Option<Arc<str>>,
    pub min_severity: Option<FindingSeverity>,
}

/// The lists of the followers of a process.
pub(super) struct AlertFeeds {
    feeds: Mutex<HashMap<FeedKey, Weak<AlertFeed>>>,
    listings: Semaphore,
}

/// A digest of a caller and of its selection of alerts.
type FeedKey = [u8; 32];

/// The newest list for all followers with the same key.
#[derive(Default)]
pub(super) struct AlertFeed(tokio::sync::Mutex<Option<Listing>>);

struct Listing {
    revision: AlertsRevision,
    listed_at: Duration,
    index: Arc<AlertIndex>,
}

/// An alert of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AlertVersion {
    pub(super) id: Arc<str>,
    pub(super) version: u64,
    pub(super) is_open: bool,
    pub(super) triggered_at: Timestamp,
}

/// The versions of the newest open alerts, and of the newest alerts in any state.
#[derive(Debug, Default)]
pub(super) struct AlertIndex {
    /// The alerts, oldest first.
    pub(super) alerts: Vec<AlertVersion>,
    versions: HashMap<Arc<str>, u64>,
}

impl Default for AlertFeeds {
    fn default() -> Self {
        AlertFeeds { feeds: Mutex::default(), listings: Semaphore::new(MAX_LISTINGS) }
    }
}

impl AlertFeeds {
    /// Returns the feed for followers with this caller and selection. A feed exists as long as one of its followers
    /// does.
    pub(super) fn feed(&self, followed: &FollowedAlerts) -> Arc<AlertFeed> {
        let mut feeds = self.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        let key = key_of(followed);
        if let Some(feed) = feeds.get(&key).and_then(Weak::upgrade) {
            return feed;
        }
        feeds.retain(|_, feed| feed.strong_count() > 0);
        let feed = Arc::<AlertFeed>::default();
        feeds.insert(key, Arc::downgrade(&feed));
        feed
    }

    /// Waits until the follower may read the state database. Holding the permit limits the concurrent reads.
    pub(super) async fn permit(&self) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed.
        self.listings.acquire().await.ok()
    }
}

impl AlertIndex {
    /// Creates a list. The given alerts may contain each alert twice.
    fn of(alerts: impl IntoIterator<Item = AlertVersion>) -> Self {
        let mut alerts: Vec<AlertVersion> = alerts.into_iter().collect();
        alerts.sort_by(|one, other| (one.triggered_at, &one.id).cmp(&(other.triggered_at, &other.id)));
        // If an alert changed between the two reads, the newer version stays.
        alerts.dedup_by(|next, first| {
            let is_same = next.id == first.id;
            if is_same && next.version > first.version {
                std::mem::swap(next, first);
            }
            is_same
        });
        let versions = alerts.iter().map(|alert| (Arc::clone(&alert.id), alert.version)).collect();
        AlertIndex { alerts, versions }
    }

    /// Returns whether an alert of the next list must be sent to a follower to whom this list was sent.
    pub(super) fn lacks(&self, alert: &AlertVersion) -> bool {
        match self.versions.get(&alert.id) {
            Some(version) => *version != alert.version,
            // An older alert that has ended is new in the list only because newer alerts were deleted, so it is not
            // sent.
            None => alert.is_open || self.alerts.last().is_none_or(|newest| alert.triggered_at >= newest.triggered_at),
        }
    }
}

impl AlertFeed {
    /// Returns the list of a revision. Reads the list from the state database if the newest list belongs to another
    /// revision or is older than [`LIFETIME`].
    ///
    /// # Errors
    /// The caller may not see the monitor, or the state database cannot be read.
    pub(super) async fn index(
        &self,
        service: &MonitorService,
        followed: &FollowedAlerts,
        revision: AlertsRevision,
    ) -> Result<Arc<AlertIndex>, MonitorError> {
        let mut newest = self.0.lock().await;
        let now = service.ports.clock.elapsed();
        let is_current =
            |listing: &&Listing| listing.revision == revision && now.saturating_sub(listing.listed_at) < LIFETIME;
        if let Some(listing) = newest.as_ref().filter(is_current) {
            return Ok(Arc::clone(&listing.index));
        }
        let _permit = service.feeds.permit().await;
        let index = Arc::new(service.list_followed(followed).await?);
        *newest = Some(Listing { revision, listed_at: now, index: Arc::clone(&index) });
        Ok(index)
    }
}

impl MonitorService {
    async fn list_followed(&self, followed: &FollowedAlerts) -> Result<AlertIndex, MonitorError> {
        let FollowedAlerts { identity, request, monitor_id, min_severity } = followed;
        let monitors = self.visible(identity, request, monitor_id.as_deref()).await?;
        let all = AlertFilter { min_severity: *min_severity, limit: MAX_LISTED, ..AlertFilter::default() };
        let open = AlertFilter { is_open: true, ..all.clone() };
        let open: Vec<_> = self.alerts_of(&monitors, &open).await?.iter().map(version_of).collect();
        let all: Vec<_> = self.alerts_of(&monitors, &all).await?.iter().map(version_of).collect();
        Ok(AlertIndex::of(open.into_iter().chain(all)))
    }
}

fn version_of((_, alert): &(usize, Alert)) -> AlertVersion {
    AlertVersion {
        id: Arc::clone(&alert.id),
        version: alert.version,
        is_open: alert.resolved_at.is_none(),
        triggered_at: alert.triggered_at,
    }
}

fn key_of(followed: &FollowedAlerts) -> FeedKey {
    let FollowedAlerts { identity, request, monitor_id, min_severity } = followed;
    let mut hash = Sha256::new();
    hash.update(caller_key(request));
    hash.update(format!("{:?}", (&identity.caller, &identity.tenant, identity.scopes, monitor_id, min_severity)));
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(id: &str, version: u64, is_open: bool, second: i64) -> AlertVersion {
        let triggered_at = Timestamp::from_second(second).expect("a time");
        AlertVersion { id: id.into(), version, is_open, triggered_at }
    }

    #[test]
    fn changed_open_and_newer_alerts_are_sent() {
        let known = AlertIndex::of([version("b", 1, true, 2), version("a", 1, false, 1), version("b", 2, true, 2)]);
        assert_eq!(known.alerts, [version("a", 1, false, 1), version("b", 2, true, 2)]);
        assert!(!known.lacks(&version("a", 1, false, 1)));
        assert!(known.lacks(&version("b", 3, false, 2)), "it changed");
        assert!(known.lacks(&version("c", 1, true, 0)), "it is open");
        assert!(known.lacks(&version("c", 2, false, 3)), "it was triggered and resolved since");
        assert!(!known.lacks(&version("c", 2, false, 0)), "it ended before");
    }
}
