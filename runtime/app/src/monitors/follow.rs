//! Followed alerts.
//!
//! In: a caller, and which alerts it follows. Out: a stream of the alerts that are open, and then of each that is
//! triggered or changes. All streams of a process share a reader of the state database, and list alerts only if one has
//! changed. Each list is authorized anew, so a caller gets what it may see at that time.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use futures_util::stream::{self, Stream};

use super::{MAX_LISTED, MonitorError, MonitorService, SeenAlert};
use crate::domain::{Identity, RequestContext};
use crate::ports::monitors::{AlertFilter, AlertsRevision};
use crate::ports::severity::FindingSeverity;
use crate::shared_reader::Readings;

/// The caller of a stream, and the alerts that it follows.
#[derive(Clone)]
pub struct FollowedAlerts {
    pub identity: Identity,
    pub request: RequestContext,
    /// The monitor's id; `None` for the alerts of all monitors that the caller may see.
    pub monitor_id: Option<Arc<str>>,
    pub min_severity: Option<FindingSeverity>,
}

struct AlertStream {
    service: Arc<MonitorService>,
    followed: FollowedAlerts,
    readings: Readings<AlertsRevision>,
    /// The revision of the last list; `None` before the second one.
    revision: Option<AlertsRevision>,
    /// The versions of the alerts in the last list; `None` before the first one.
    versions: Option<BTreeMap<Arc<str>, u64>>,
    /// The alerts to send, oldest first.
    waiting: VecDeque<SeenAlert>,
}

impl MonitorService {
    /// Returns the open alerts among the newest [`MAX_LISTED`] at once, and then each of the newest that is triggered
    /// or changes. An error is the last item.
    pub fn follow_alerts(
        self: &Arc<Self>,
        followed: FollowedAlerts,
    ) -> impl Stream<Item = Result<SeenAlert, MonitorError>> + Send + use<> {
        let records = Arc::clone(&self.ports.records);
        let readings = self.reader.follow(move || {
            let records = Arc::clone(&records);
            async move { records.alerts_revision().await }
        });
        let service = Arc::clone(self);
        let alerts =
            AlertStream { service, followed, readings, revision: None, versions: None, waiting: VecDeque::new() };
        stream::unfold(Some(alerts), |alerts| async move {
            let mut alerts = alerts?;
            match alerts.next().await {
                Ok(alert) => Some((Ok(alert), Some(alerts))),
                Err(error) => Some((Err(error), None)),
            }
        })
    }
}

impl AlertStream {
    async fn next(&mut self) -> Result<SeenAlert, MonitorError> {
        loop {
            if let Some(alert) = self.waiting.pop_front() {
                return Ok(alert);
            }
            if self.versions.is_some() {
                let revision = Some(self.readings.next().await?);
                if revision == self.revision {
                    continue;
                }
                self.revision = revision;
            }
            self.list().await?;
        }
    }

    /// Adds the alerts that differ from the last list to those that wait: at first, those that are open.
    async fn list(&mut self) -> Result<(), MonitorError> {
        let FollowedAlerts { identity, request, monitor_id, min_severity } = &self.followed;
        let filter = AlertFilter { state: None, min_severity: *min_severity, limit: MAX_LISTED };
        let listed = self.service.alerts(identity, request, monitor_id.as_deref(), &filter).await?;
        let versions = listed.iter().map(|seen| (Arc::clone(&seen.alert.id), seen.alert.version)).collect();
        let is_new = |seen: &SeenAlert| match &self.versions {
            None => seen.alert.resolved_at.is_none(),
            Some(known) => known.get(&seen.alert.id) != Some(&seen.alert.version),
        };
        let new: Vec<SeenAlert> = listed.into_iter().rev().filter(is_new).collect();
        self.waiting.extend(new);
        self.versions = Some(versions);
        Ok(())
    }
}
