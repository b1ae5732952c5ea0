//! Lists of monitors, detections and alerts for callers.
//!
//! In: a caller and a filter. Out: at most [`MAX_LISTED`](super::MAX_LISTED) records that the caller may see, newest
//! first. The rows of all visible monitors are merged, so that memory does not depend on their number.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;

use super::channels::may_change;
use super::error::MonitorError;
use super::merge::{Sources, newest};
use super::views::ViewReader;
use super::{MonitorService, SeenAlert, SeenDetection, shown};
use crate::domain::{Identity, RequestContext};
use crate::ports::monitors::{Alert, AlertFilter, DetectionFilter, Monitor, MonitorRecords, StoredDetection};
use crate::ports::store::StoreError;

/// A monitor that the caller may see, and the digest of the caller's view.
pub(super) type VisibleMonitor = (Arc<Monitor>, Arc<str>);

impl MonitorService {
    /// Returns the monitors that the caller may see: the caller's own ones, and those of other owners who have the same
    /// view of the monitored values. With `admin`, returns all monitors. The targets of channels are left out for
    /// callers who may not change the monitor.
    ///
    /// # Errors
    /// The state database cannot be read.
    pub async fn monitors(
        &self,
        identity: &Identity,
        request: &RequestContext,
    ) -> Result<Vec<Arc<Monitor>>, MonitorError> {
        let reader = self.view_reader(request);
        let mut monitors = self.ports.records.monitors().await?;
        self.complete(&mut monitors).await;
        let mut seen = Vec::new();
        for monitor in monitors {
            if self.is_visible(identity, &reader, &monitor).await {
                seen.push(Arc::new(shown(monitor, identity, request)));
            }
        }
        Ok(seen)
    }

    /// Returns the detections that the caller may see, newest step first.
    ///
    /// # Errors
    /// The filter names a monitor that the caller may not see, or the state database cannot be read.
    pub async fn detections(
        &self,
        identity: &Identity,
        request: &RequestContext,
        monitor_id: Option<&str>,
        filter: &DetectionFilter,
    ) -> Result<Vec<SeenDetection>, MonitorError> {
        let monitors = &self.visible(identity, request, monitor_id).await?;
        let detections =
            newest(&DetectionPages { records: &*self.ports.records, monitors, filter }, filter.limit).await?;
        let with_monitor = detections.into_iter().filter_map(|(source, detection)| {
            Some(SeenDetection { detection, monitor: Arc::clone(&monitors.get(source)?.0) })
        });
        Ok(with_monitor.collect())
    }

    /// Returns the alerts that the caller may see, newest first.
    ///
    /// # Errors
    /// The filter names a monitor that the caller may not see, or the state database cannot be read.
    pub async fn alerts(
        &self,
        identity: &Identity,
        request: &RequestContext,
        monitor_id: Option<&str>,
        filter: &AlertFilter,
    ) -> Result<Vec<SeenAlert>, MonitorError> {
        let monitors = &self.visible(identity, request, monitor_id).await?;
        let alerts = self.alerts_of(monitors, filter).await?;
        let with_monitor = alerts
            .into_iter()
            .filter_map(|(source, alert)| Some(SeenAlert { alert, monitor: Arc::clone(&monitors.get(source)?.0) }));
        Ok(with_monitor.collect())
    }

    /// Returns the alerts of these monitors, newest first, each with the index of its monitor.
    pub(super) async fn alerts_of(
        &self,
        monitors: &[VisibleMonitor],
        filter: &AlertFilter,
    ) -> Result<Vec<(usize, Alert)>, StoreError> {
        newest(&AlertPages { records: &*self.ports.records, monitors, filter }, filter.limit).await
    }

    /// Returns the monitors whose value the caller may query, each with the digest of the caller's own view.
    pub(super) async fn visible(
        &self,
        identity: &Identity,
        request: &RequestContext,
        monitor_id: Option<&str>,
    ) -> Result<Vec<VisibleMonitor>, MonitorError> {
        let monitors = match monitor_id {
            Some(id) => vec![self.monitor(identity, request, id).await?],
            None => self.ports.records.monitors().await?,
        };
        let reader = self.view_reader(request);
        let mut visible = Vec::new();
        for monitor in monitors {
            if let Some(view) = self.view_of(&reader, &monitor).await {
                visible.push((Arc::new(monitor), view));
            }
        }
        Ok(visible)
    }

    pub(super) async fn is_visible(&self, identity: &Identity, reader: &ViewReader<'_>, monitor: &Monitor) -> bool {
        if may_change(monitor, identity, reader.request()) {
            return true;
        }
        let Some(view) = &monitor.view else { return false };
        self.view_of(reader, monitor).await.is_some_and(|own| own == *view)
    }
}

/// The detections of each monitor, as sources to merge.
struct DetectionPages<'a> {
    records: &'a dyn MonitorRecords,
    monitors: &'a [VisibleMonitor],
    filter: &'a DetectionFilter,
}

#[async_trait]
impl Sources for DetectionPages<'_> {
    type Row = StoredDetection;
    type Place = (i64, Arc<str>);

    fn count(&self) -> usize {
        self.monitors.len()
    }

    fn place(&self, row: &StoredDetection) -> (i64, Arc<str>) {
        (row.step.at_ms, Arc::clone(&row.id))
    }

    async fn page(
        &self,
        source: usize,
        older_than: Option<(i64, Arc<str>)>,
        limit: u32,
    ) -> Result<Vec<StoredDetection>, StoreError> {
        let Some((monitor, view)) = self.monitors.get(source) else { return Ok(Vec::new()) };
        let filter = DetectionFilter { older_than, limit, ..self.filter.clone() };
        self.records.detections(&monitor.id, view, &filter).await
    }
}

/// The alerts of each monitor, as sources to merge.
struct AlertPages<'a> {
    records: &'a dyn MonitorRecords,
    monitors: &'a [VisibleMonitor],
    filter: &'a AlertFilter,
}

#[async_trait]
impl Sources for AlertPages<'_> {
    type Row = Alert;
    type Place = (Timestamp, Arc<str>);

    fn count(&self) -> usize {
        self.monitors.len()
    }

    fn place(&self, row: &Alert) -> (Timestamp, Arc<str>) {
        (row.triggered_at, Arc::clone(&row.id))
    }

    async fn page(
        &self,
        source: usize,
        older_than: Option<(Timestamp, Arc<str>)>,
        limit: u32,
    ) -> Result<Vec<Alert>, StoreError> {
        let Some((monitor, view)) = self.monitors.get(source) else { return Ok(Vec::new()) };
        let filter = AlertFilter { older_than, limit, ..self.filter.clone() };
        self.records.alerts(&monitor.id, view, &filter).await
    }
}
