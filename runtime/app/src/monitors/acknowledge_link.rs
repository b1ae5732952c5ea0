//! Alerts that are acknowledged by the link of a message.
//!
//! In: the token of a link. Out: the alert before and after the move. The token stands for the reader of the message,
//! who needs no credential. Absent: the signature (`security`), and the page with the form.

use std::sync::Arc;

use super::alerts::AlertMove;
use super::error::MonitorError;
use super::{MonitorService, SeenAlert};
use crate::domain::RequestContext;
use crate::security::LinkFault;

/// The name that acknowledged alerts show for the reader of a message.
const READER: &str = "link";

impl MonitorService {
    /// Returns the alert of a link. Changes nothing.
    ///
    /// # Errors
    /// The token is invalid or expired, or the alert no longer exists.
    pub async fn alert_of_link(&self, token: &str) -> Result<SeenAlert, MonitorError> {
        let id = self.ports.acknowledge_key.open(token, self.ports.clock.now()).map_err(|fault| match fault {
            LinkFault::Foreign => MonitorError::UnknownAlert,
            LinkFault::Expired => MonitorError::ExpiredLink,
        })?;
        let alert = self.ports.records.alert(&id).await?.ok_or(MonitorError::UnknownAlert)?;
        let monitor = self.ports.records.monitor(&alert.monitor_id).await?.ok_or(MonitorError::UnknownAlert)?;
        Ok(SeenAlert { alert, monitor: Arc::new(monitor) })
    }

    /// Acknowledges the alert of a link. An alert that was acknowledged or resolved before stays as it is.
    ///
    /// # Errors
    /// The errors of [`alert_of_link`](Self::alert_of_link), or others changed the alert at the same time.
    pub async fn acknowledge_by_link(&self, request: &RequestContext, token: &str) -> Result<SeenAlert, MonitorError> {
        let seen = self.alert_of_link(token).await?;
        match AlertMove::Acknowledge.is_allowed_in(seen.alert.state) {
            true => self.write_move(request, seen, AlertMove::Acknowledge, &READER.into()).await,
            false => Ok(seen),
        }
    }
}
