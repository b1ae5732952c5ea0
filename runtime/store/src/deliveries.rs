//! Messages about alerts, and the states of the channels to which they are sent.
//!
//! In: changes of alerts, in their transaction, and the results of delivery attempts. Out: deliveries. `app::monitors`
//! decides which messages a change causes. Not here: the attempts themselves.

mod rows;

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use terrane_app::monitors::{AlertEvent, Outbox, deliveries_of, message_kinds};
use terrane_app::ports::audit::AuditEntry;
use terrane_app::ports::channels::{Channel, MessageAlert, MessageSubject};
use terrane_app::ports::deliveries::{Delivery, DeliveryFilter, DeliveryRecords, DueDelivery, Lane};
use terrane_app::ports::leases::Lease;
use terrane_app::ports::monitors::{Alert, NewId};
use terrane_app::ports::store::StoreError;

use self::rows::{delivery, lane, write_delivery, write_lane};
use crate::audit::append_in;
use crate::database::Transaction;
use crate::leases::is_newest;
use crate::monitors::rows::{detection, monitor, series_text};
use crate::row::{maybe_time, micros};
use crate::statement::Statement;
use crate::store::StateStore;

pub(crate) use rows::{DELIVERIES, DELIVERY_NUMBERS, LANE_NUMBERS, LANES};

/// Selects the deliveries that may be sent next: the first waiting one of each monitor and channel.
const FIRST_WAITING: &str = "FROM deliveries AS d LEFT JOIN channel_lanes AS l ON l.channel = d.channel AND l.target = d.target \
     WHERE d.state = 'waiting' AND NOT EXISTS (SELECT 1 FROM deliveries AS e WHERE e.state = 'waiting' \
     AND e.monitor_id = d.monitor_id AND e.channel = d.channel AND e.target = d.target AND e.sequence < d.sequence)";

/// An alert before and after a change. `None` means that the alert is new.
pub(crate) type AlertChange = (Option<Alert>, Alert);

/// Writes the messages about changes of the alerts of one monitor.
pub(crate) async fn write_messages(
    change: &mut Transaction,
    monitor_id: &str,
    changes: &[AlertChange],
    at: Timestamp,
    new_id: NewId<'_>,
) -> Result<(), StoreError> {
    let found = Statement::new("SELECT * FROM monitors WHERE id = $1").bind(monitor_id);
    let Some(row) = change.optional(found).await? else { return Ok(()) };
    let monitor = monitor(&row)?;
    let mut events = Vec::new();
    for (before, after) in changes {
        let kinds = message_kinds(before.as_ref(), after);
        if kinds.is_empty() {
            continue;
        }
        let alert = message_alert(change, after).await?;
        events.extend(kinds.into_iter().map(|kind| AlertEvent {
            kind,
            alert: alert.clone(),
            escalations: after.escalations,
        }));
    }
    let rules = &monitor.definition.alerts;
    if events.is_empty() || (rules.channels.is_empty() && rules.escalations.iter().all(|rule| rule.notify.is_empty())) {
        return Ok(());
    }
    let open = Statement::new(
        "SELECT * FROM deliveries WHERE monitor_id = $1 AND state = 'waiting' AND kind = 'triggered' AND attempts = 0 \
         ORDER BY sequence",
    );
    let open: Result<Vec<Delivery>, StoreError> =
        change.all(open.bind(monitor_id)).await?.iter().map(delivery).collect();
    let newest =
        Statement::new("SELECT max(sequence) AS newest FROM deliveries WHERE monitor_id = $1").bind(monitor_id);
    let newest = change.optional(newest).await?.map_or(Ok(None), |row| row.maybe_integer("newest"))?;
    let definition = &monitor.definition;
    let outbox = Outbox {
        subject: MessageSubject {
            monitor_id: Arc::clone(&monitor.id),
            monitor: Arc::clone(&definition.name),
            value: definition.value.clone(),
            granularity: definition.granularity,
            owner: monitor.owner.digest(),
        },
        rules,
        at,
        next_sequence: newest.map_or(0, |newest| u64::try_from(newest).unwrap_or_default() + 1),
        open: open?,
    };
    for delivery in deliveries_of(outbox, &events, new_id) {
        change.execute(write_delivery(&delivery)).await?;
    }
    Ok(())
}

/// Returns an alert with the numbers of its last anomalous step, for a message.
async fn message_alert(change: &mut Transaction, alert: &Alert) -> Result<MessageAlert, StoreError> {
    let last = Statement::new(
        "SELECT * FROM detections WHERE monitor_id = $1 AND series = $2 AND step = $3 ORDER BY detected_at DESC LIMIT 1",
    );
    let last = last.bind(&*alert.monitor_id).bind(&*series_text(&alert.series)).bind(alert.last_step_ms);
    let step = change.optional(last).await?.as_ref().map(detection).transpose()?.map(|detection| detection.step);
    Ok(MessageAlert {
        id: Arc::clone(&alert.id),
        state: alert.state,
        severity: alert.severity,
        series: alert.series.clone(),
        first_step_ms: alert.first_step_ms,
        last_step_ms: alert.last_step_ms,
        value: step.as_ref().and_then(|step| step.value),
        expected: step.as_ref().and_then(|step| step.expected),
    })
}

#[async_trait]
impl DeliveryRecords for StateStore {
    async fn next_delivery(&self) -> Result<Option<Timestamp>, StoreError> {
        let next = Statement::new(
            "SELECT min(CASE WHEN l.disabled IS NULL AND l.resumes_at > d.due_at THEN l.resumes_at ELSE d.due_at END) AS due ",
        );
        let row = self.database.optional(next.then(FIRST_WAITING)).await?;
        maybe_time(row.map_or(Ok(None), |row| row.maybe_integer("due"))?)
    }

    async fn due_deliveries(&self, now: Timestamp, limit: u32) -> Result<Vec<DueDelivery>, StoreError> {
        let due = Statement::new("SELECT d.*, l.failures, l.resumes_at, l.disabled ").then(FIRST_WAITING);
        let due = due.and(" AND d.due_at <= ", micros(now));
        let due = due.and(" AND (l.disabled IS NOT NULL OR l.resumes_at IS NULL OR l.resumes_at <= ", micros(now));
        let due = due.and(") ORDER BY d.due_at, d.id LIMIT ", i64::from(limit));
        let rows = self.database.all(due).await?;
        rows.iter().map(|row| Ok(DueDelivery { delivery: delivery(row)?, lane: lane(row)? })).collect()
    }

    async fn claim_deliveries(
        &self,
        due: &[DueDelivery],
        lease: &Lease,
    ) -> Result<Option<Vec<DueDelivery>>, StoreError> {
        let mut change = self.database.change().await?;
        if !is_newest(&mut change, lease).await? {
            return Ok(None);
        }
        let mut claimed = Vec::new();
        for DueDelivery { delivery: due, lane } in due {
            let claim =
                Statement::new("UPDATE deliveries SET attempts = attempts + 1 WHERE id = $1 AND state = 'waiting'");
            change.execute(claim.bind(&*due.message.id)).await?;
            let found = Statement::new("SELECT * FROM deliveries WHERE id = $1 AND state = 'waiting'");
            // The delivery is gone if its monitor was deleted in the meantime.
            if let Some(row) = change.optional(found.bind(&*due.message.id)).await? {
                claimed.push(DueDelivery { delivery: delivery(&row)?, lane: lane.clone() });
            }
        }
        change.commit().await?;
        Ok(Some(claimed))
    }

    async fn write_attempts(&self, attempts: &[DueDelivery], lease: &Lease) -> Result<bool, StoreError> {
        let mut change = self.database.change().await?;
        if !is_newest(&mut change, lease).await? {
            return Ok(false);
        }
        for DueDelivery { delivery, lane } in attempts {
            let exists = Statement::new("SELECT id FROM deliveries WHERE id = $1").bind(&*delivery.message.id);
            // The delivery is gone if its monitor was deleted in the meantime.
            if change.optional(exists).await?.is_some() {
                change.execute(write_delivery(delivery)).await?;
            }
            change.execute(write_lane(lane)).await?;
        }
        change.commit().await?;
        Ok(true)
    }

    async fn prune_deliveries(&self, before: Timestamp) -> Result<u64, StoreError> {
        let prune = Statement::new("DELETE FROM deliveries WHERE ended_at < $1").bind(micros(before));
        let pruned = self.database.execute(prune).await?;
        let unused = Statement::new(
            "DELETE FROM channel_lanes WHERE resumes_at < $1 AND NOT EXISTS (SELECT 1 FROM deliveries AS d \
             WHERE d.channel = channel_lanes.channel AND d.target = channel_lanes.target)",
        );
        self.database.execute(unused.bind(micros(before))).await?;
        Ok(pruned)
    }

    async fn deliveries(&self, monitor_id: &str, filter: &DeliveryFilter) -> Result<Vec<Delivery>, StoreError> {
        let mut found = Statement::new("SELECT * FROM deliveries WHERE").and(" monitor_id = ", monitor_id);
        if let Some(state) = filter.state {
            found = found.and(" AND state = ", state.as_str());
        }
        let found = found.and(" ORDER BY sequence DESC LIMIT ", i64::from(filter.limit));
        self.database.all(found).await?.iter().map(delivery).collect()
    }

    async fn delivery(&self, id: &str) -> Result<Option<Delivery>, StoreError> {
        let found = Statement::new("SELECT * FROM deliveries WHERE id = $1").bind(id);
        self.database.optional(found).await?.as_ref().map(delivery).transpose()
    }

    async fn replay_delivery(
        &self,
        id: &str,
        now: Timestamp,
        expires_at: Timestamp,
        entry: AuditEntry,
    ) -> Result<bool, StoreError> {
        let mut change = self.database.change().await?;
        let failed = Statement::new("SELECT * FROM deliveries WHERE id = $1 AND state = 'failed'").bind(id);
        let Some(row) = change.optional(failed).await? else { return Ok(false) };
        let channel = delivery(&row)?.channel;
        let again = Statement::new(
            "UPDATE deliveries SET state = 'waiting', due_at = $1, expires_at = $2, ended_at = NULL WHERE id = $3",
        );
        change.execute(again.bind(micros(now)).bind(micros(expires_at)).bind(id)).await?;
        change.execute(write_lane(&working(&channel))).await?;
        append_in(&mut change, vec![entry]).await?;
        change.commit().await?;
        Ok(true)
    }

    async fn lanes(&self, channels: &[Channel]) -> Result<Vec<Lane>, StoreError> {
        let mut lanes = Vec::new();
        for channel in channels {
            let failing = Statement::new(
                "SELECT * FROM channel_lanes WHERE channel = $1 AND target = $2 AND (failures > 0 OR disabled IS NOT NULL)",
            );
            let row = self.database.optional(failing.bind(channel.kind.as_str()).bind(&*channel.target)).await?;
            lanes.extend(row.as_ref().map(lane).transpose()?);
        }
        Ok(lanes)
    }

    async fn take_lane(
        &self,
        channel: &Channel,
        now: Timestamp,
        until: Timestamp,
        entry: AuditEntry,
    ) -> Result<bool, StoreError> {
        let mut change = self.database.change().await?;
        prune_lanes(&mut change, now).await?;
        let found = Statement::new("SELECT * FROM channel_lanes WHERE channel = $1 AND target = $2");
        let found = change.optional(found.bind(channel.kind.as_str()).bind(&*channel.target)).await?;
        let lane = found.as_ref().map_or_else(|| Ok(working(channel)), lane)?;
        if lane.resumes_at.is_some_and(|at| at > now) {
            return Ok(false);
        }
        change.execute(write_lane(&Lane { resumes_at: Some(until), ..lane })).await?;
        append_in(&mut change, vec![entry]).await?;
        change.commit().await?;
        Ok(true)
    }

    async fn enable_lane(&self, channel: &Channel) -> Result<(), StoreError> {
        let enable =
            Statement::new("UPDATE channel_lanes SET failures = 0, disabled = NULL WHERE channel = $1 AND target = $2");
        self.database.execute(enable.bind(channel.kind.as_str()).bind(&*channel.target)).await.map(|_| ())
    }
}

/// Deletes the states of channels that have no failures and no pause. Such a state equals the state of a new channel.
async fn prune_lanes(change: &mut Transaction, now: Timestamp) -> Result<(), StoreError> {
    let prune = Statement::new(
        "DELETE FROM channel_lanes WHERE failures = 0 AND disabled IS NULL AND (resumes_at IS NULL OR resumes_at <= $1)",
    );
    change.execute(prune.bind(micros(now))).await.map(|_| ())
}

fn working(channel: &Channel) -> Lane {
    Lane { channel: channel.clone(), failures: 0, resumes_at: None, disabled: None }
}
