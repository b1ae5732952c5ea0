//! Alerts that are acknowledged by the link of a message.
//!
//! In: the token of a link. Out: the alert before and after the move. The token stands for the owner to whom the link
//! was issued: it is accepted while the monitor has this owner, and while the owner may see the alert. Not here: the
//! signature (`security`), the limit of wrong tokens (`limits`), and the page with the form.

use std::sync::Arc;

use super::alerts::AlertMove;
use super::error::MonitorError;
use super::{AlertActor, MonitorService, SeenAlert};
use crate::domain::RequestContext;
use crate::security::LinkFault;

/// The name of the caller that is shown for alerts that the reader of a message acknowledged.
const READER: &str = "link";
/// The audit reason for a token that is forged or was issued by another server.
const WRONG_TOKEN: &str = "wrong link";
/// The audit reason for a link whose owner may no longer see the alert, or whose alert was deleted.
const NO_RIGHTS: &str = "link without rights";
/// The number of attempts to acknowledge an alert that others change at the same time.
const ATTEMPTS: usize = 5;

/// An alert, and the request of its link with the current rights of the owner.
struct LinkedAlert {
    seen: SeenAlert,
    owner: RequestContext,
}

impl MonitorService {
    /// Returns the alert of a link. Changes nothing.
    ///
    /// # Errors
    /// The token is invalid or expired, the alert no longer exists, or the owner may not see it any more. Denials are
    /// recorded.
    pub async fn alert_of_link(&self, request: &RequestContext, token: &str) -> Result<SeenAlert, MonitorError> {
        Ok(self.linked_alert(request, token).await?.seen)
    }

    /// Acknowledges the alert of a link. An alert that was acknowledged or resolved before is unchanged.
    ///
    /// # Errors
    /// The errors of [`alert_of_link`](Self::alert_of_link), or others changed the alert at the same time.
    pub async fn acknowledge_by_link(&self, request: &RequestContext, token: &str) -> Result<SeenAlert, MonitorError> {
        for _ in 0..ATTEMPTS {
            let LinkedAlert { seen, owner } = self.linked_alert(request, token).await?;
            if !AlertMove::Acknowledge.is_allowed_in(seen.alert.state) {
                return Ok(seen);
            }
            let mover = AlertActor { request: &owner, name: &READER.into(), via: Some("link") };
            match self.write_move(seen, AlertMove::Acknowledge, mover).await {
                // Another reader may have acknowledged the alert; its state is then shown.
                Err(MonitorError::Contended) => {}
                outcome => return outcome,
            }
        }
        Err(MonitorError::Contended)
    }

    async fn linked_alert(&self, request: &RequestContext, token: &str) -> Result<LinkedAlert, MonitorError> {
        let link = match self.ports.acknowledge_key.open(token, self.ports.clock.now()) {
            Ok(link) => link,
            Err(LinkFault::Expired) => return Err(MonitorError::ExpiredLink),
            Err(LinkFault::Foreign) => {
                self.ports.access.denied(request, WRONG_TOKEN).await?;
                return Err(MonitorError::WrongLink);
            }
        };
        match self.alert_of_owner(request, &link.alert_id, &link.owner).await? {
            Some(linked) => Ok(linked),
            None => {
                self.ports.access.denied(request, NO_RIGHTS).await?;
                Err(MonitorError::UnknownAlert)
            }
        }
    }

    /// Returns an alert if its monitor belongs to the owner with this mark, and if the owner may see the alert now.
    async fn alert_of_owner(
        &self,
        request: &RequestContext,
        alert_id: &str,
        mark: &str,
    ) -> Result<Option<LinkedAlert>, MonitorError> {
        let Some(alert) = self.ports.records.alert(alert_id).await? else { return Ok(None) };
        let Some(monitor) = self.ports.records.monitor(&alert.monitor_id).await? else { return Ok(None) };
        if self.ports.acknowledge_key.mark(&monitor.owner.digest()) != mark {
            return Ok(None);
        }
        let Some(owner) = self.owner_context(&monitor).await? else { return Ok(None) };
        let is_seen = self.view_of(&self.view_reader(&owner), &monitor).await.is_some_and(|view| view == alert.view);
        let RequestContext { caller, scopes, tenant, .. } = owner;
        let owner = RequestContext { caller, scopes, tenant, ..request.clone() };
        Ok(is_seen.then(|| LinkedAlert { seen: SeenAlert { alert, monitor: Arc::new(monitor) }, owner }))
    }
}
