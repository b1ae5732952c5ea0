//! Streams of alerts for followers.
//!
//! In: a caller, and the selection of alerts that it follows. Out: a stream of the open alerts, and then of each alert
//! that is triggered or changes. All streams of a process share one reader of the state database. Alerts are listed
//! only if an alert or a monitor has changed. A stream holds lists of ids and versions ([`feeds`](super::feeds)), which
//! it shares with equal followers, and one page of alerts. A page is read and authorized when the follower polls for
//! it, so a caller gets what it may see at that time.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use futures_util::stream::{self, Stream};

use super::feeds::{AlertFeed, AlertIndex, AlertVersion, FollowedAlerts};
use super::{MonitorError, MonitorService, SeenAlert};
use crate::domain::RequestContext;
use crate::ports::monitors::{AlertsRevision, Monitor};
use crate::shared_reader::Readings;

/// The number of alerts that are read at once.
const PAGE: usize = 20;

struct AlertStream {
    service: Arc<MonitorService>,
    followed: FollowedAlerts,
    feed: Arc<AlertFeed>,
    readings: Readings<AlertsRevision>,
    /// The revision of the last list; `None` before the first list.
    revision: Option<AlertsRevision>,
    /// The list whose alerts have all been sent; `None` before the first list.
    sent: Option<Arc<AlertIndex>>,
    /// The list whose alerts are being sent, and the index of the next alert in it.
    sending: Option<(Arc<AlertIndex>, usize)>,
    /// The alerts to send next, oldest first.
    page: VecDeque<SeenAlert>,
}

impl MonitorService {
    /// Returns a stream of alerts. It begins with the newest open alerts, at most [`MAX_LISTED`](super::MAX_LISTED).
    /// Afterwards, it contains each alert that is triggered or changes, among the open alerts and the newest alerts in
    /// any state. An error is the last item.
    pub fn follow_alerts(
        self: &Arc<Self>,
        followed: FollowedAlerts,
    ) -> impl Stream<Item = Result<SeenAlert, MonitorError>> + Send + use<> {
        let records = Arc::clone(&self.ports.records);
        let readings = self.reader.follow(move || {
            let records = Arc::clone(&records);
            async move { records.alerts_revision().await }
        });
        let alerts = AlertStream {
            service: Arc::clone(self),
            feed: self.feeds.feed(&followed),
            followed,
            readings,
            revision: None,
            sent: None,
            sending: None,
            page: VecDeque::new(),
        };
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
            if let Some(alert) = self.page.pop_front() {
                return Ok(alert);
            }
            match self.sending.take() {
                Some((index, from)) => self.read_page(index, from).await?,
                None => self.read_index().await?,
            }
        }
    }

    /// Waits until the state has changed, and reads the next list.
    async fn read_index(&mut self) -> Result<(), MonitorError> {
        let revision = match self.revision {
            Some(_) => self.readings.next().await?,
            // A new stream reads the revision itself, because the shared one may be older than the stream.
            None => {
                let _permit = self.service.feeds.permit().await;
                self.service.ports.records.alerts_revision().await?
            }
        };
        if self.revision == Some(revision) {
            return Ok(());
        }
        self.sending = Some((self.feed.index(&self.service, &self.followed, revision).await?, 0));
        self.revision = Some(revision);
        Ok(())
    }

    /// Reads the next page of those alerts in a list that the follower does not have yet. `from` is an index in the
    /// list.
    async fn read_page(&mut self, index: Arc<AlertIndex>, from: usize) -> Result<(), MonitorError> {
        let is_due = |alert: &AlertVersion| match &self.sent {
            None => alert.is_open,
            Some(sent) => sent.lacks(alert),
        };
        let places = index.alerts.iter().enumerate().skip(from).filter(|(_, alert)| is_due(alert));
        let places: Vec<usize> = places.map(|(place, _)| place).take(PAGE).collect();
        let Some(last) = places.last() else {
            self.sent = Some(index);
            return Ok(());
        };
        let next = last + 1;
        let due: Vec<&AlertVersion> = places.iter().filter_map(|place| index.alerts.get(*place)).collect();
        let page = self.service.followed_page(&self.followed.request, &due).await?;
        self.page.extend(page);
        self.sending = Some((index, next));
        Ok(())
    }
}

/// A monitor, and the digest of the caller's view of it.
type ViewedMonitor = (Arc<Monitor>, Arc<str>);

impl MonitorService {
    /// Returns the given alerts that still have the given versions and that the caller may see. An alert whose version
    /// has changed is sent with the next list.
    async fn followed_page(
        &self,
        request: &RequestContext,
        due: &[&AlertVersion],
    ) -> Result<Vec<SeenAlert>, MonitorError> {
        let _permit = self.feeds.permit().await;
        let reader = self.view_reader(request);
        let mut monitors: HashMap<Arc<str>, Option<ViewedMonitor>> = HashMap::new();
        let mut page = Vec::new();
        for AlertVersion { id, version, .. } in due {
            let Some(alert) = self.ports.records.alert(id).await?.filter(|alert| alert.version == *version) else {
                continue;
            };
            if !monitors.contains_key(&alert.monitor_id) {
                let monitor = self.ports.records.monitor(&alert.monitor_id).await?;
                let visible = match monitor {
                    Some(monitor) => self.view_of(&reader, &monitor).await.map(|view| (Arc::new(monitor), view)),
                    None => None,
                };
                monitors.insert(Arc::clone(&alert.monitor_id), visible);
            }
            if let Some(Some((monitor, view))) = monitors.get(&alert.monitor_id)
                && *view == alert.view
            {
                page.push(SeenAlert { monitor: Arc::clone(monitor), alert });
            }
        }
        Ok(page)
    }
}
