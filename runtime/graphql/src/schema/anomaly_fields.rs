//! The fields of the root for monitors.
//!
//! In: arguments. Out: answers of the use cases of the routes below `/api/v1/anomaly`.

use async_graphql::{Context, ID, Object, Result};

use super::alert_state::{AlertStatus, Severity};
use super::channel::{self, ConfiguredChannel};
use super::delivery::{self, Delivery, DeliveryStatus};
use super::detector::{self, Detectors};
use super::modules::has_monitors;
use super::monitor::{self, Alert, Detection, Monitor};
use super::root_cause::{self, RootCause};

#[derive(Default)]
pub(crate) struct AnomalyFields;

#[Object]
impl AnomalyFields {
    /// The monitors that the caller may see, by name.
    #[graphql(visible = "has_monitors")]
    async fn monitors(&self, context: &Context<'_>) -> Result<Vec<Monitor>> {
        Ok(monitor::monitors(context).await?)
    }

    /// Anomalous steps of measures that the caller sees as the monitors' owners do, newest step first.
    #[graphql(visible = "has_monitors")]
    async fn detections(
        &self,
        context: &Context<'_>,
        monitor_id: Option<ID>,
        #[graphql(desc = "The first date of the steps.")] start_date: Option<String>,
        #[graphql(desc = "The last date of the steps.")] end_date: Option<String>,
        min_severity: Option<Severity>,
        #[graphql(desc = "1 to 1000. Default: 100.")] limit: Option<i64>,
    ) -> Result<Vec<Detection>> {
        Ok(monitor::detections(context, monitor_id, [start_date, end_date], min_severity, limit).await?)
    }

    /// Alerts of measures that the caller sees as the monitors' owners do, newest first.
    #[graphql(visible = "has_monitors")]
    async fn alerts(
        &self,
        context: &Context<'_>,
        monitor_id: Option<ID>,
        status: Option<AlertStatus>,
        min_severity: Option<Severity>,
        #[graphql(desc = "1 to 1000. Default: 100.")] limit: Option<i64>,
    ) -> Result<Vec<Alert>> {
        Ok(monitor::alerts(context, monitor_id, status, min_severity, limit).await?)
    }

    /// Messages about alerts of the monitors that the caller may change, newest first.
    #[graphql(visible = "has_monitors")]
    async fn deliveries(
        &self,
        context: &Context<'_>,
        monitor_id: Option<ID>,
        status: Option<DeliveryStatus>,
        #[graphql(desc = "1 to 1000; default: 100")] limit: Option<i64>,
    ) -> Result<Vec<Delivery>> {
        Ok(delivery::deliveries(context, monitor_id, status, limit).await?)
    }

    /// One monitor that the caller may see.
    #[graphql(visible = "has_monitors")]
    async fn monitor(&self, context: &Context<'_>, id: ID) -> Result<Option<Monitor>> {
        Ok(Some(monitor::monitor(context, &id).await?))
    }

    /// One alert of a measure that the caller sees as the monitor's owner does.
    #[graphql(visible = "has_monitors")]
    async fn alert(&self, context: &Context<'_>, id: ID) -> Result<Option<Alert>> {
        Ok(Some(monitor::alert(context, &id).await?))
    }

    /// The slices of a measure that explain a detection. They are queried in the warehouse, with the rights of the
    /// caller.
    #[graphql(visible = "has_monitors")]
    async fn root_cause(&self, context: &Context<'_>, detection_id: ID) -> Result<Option<RootCause>> {
        Ok(Some(root_cause::explain(context, &detection_id).await?))
    }

    /// The kinds of detectors, and the components that cannot be used.
    #[graphql(visible = "has_monitors")]
    async fn detectors(&self, context: &Context<'_>) -> Result<Detectors> {
        Ok(detector::detectors(context).await?)
    }

    /// The configured channels of alerts, without their URLs and credentials.
    #[graphql(visible = "has_monitors")]
    async fn channels(&self, context: &Context<'_>) -> Result<Vec<ConfiguredChannel>> {
        Ok(channel::channels(context).await?)
    }
}
