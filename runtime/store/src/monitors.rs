//! Monitors, detections and alerts.
//!
//! In: definitions, rounds, and state changes of alerts. Out: the records. A round is one transaction: its detections,
//! the alerts that follow from its steps by the rules of `app::monitors`, and the monitor's run. Numbers of detections
//! are stored as text, so that they are read exactly as written. Not here: the rules about who may see what.

pub(crate) mod rows;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use terrane_app::domain::SeriesKey;
use terrane_app::monitors::{RoundFacts, after_steps, escalated};
use terrane_app::ports::audit::AuditEntry;
use terrane_app::ports::leases::Lease;
use terrane_app::ports::monitors::{
    Alert, AlertFilter, AlertsRevision, DetectionFilter, Monitor, MonitorAdmission, MonitorQuota, MonitorRecords,
    MonitorRound, NewId, ScoredStep, StoredDetection,
};
use terrane_app::ports::store::StoreError;

use self::rows::{alert, detection, monitor, monitor_row, series_text, severity_rank, write_alert, write_detection};
use crate::audit::append_in;
use crate::database::Transaction;
use crate::deliveries::{AlertChange, write_messages};
use crate::leases::is_newest;
use crate::row::{maybe_time, micros, odd, signed, unsigned};
use crate::statement::Statement;
use crate::store::StateStore;

pub(crate) use rows::{ALERT_NUMBERS, ALERTS, DETECTION_NUMBERS, DETECTIONS, MONITOR_NUMBERS, MONITORS};

/// The largest number of stored detections of a monitor.
const MAX_DETECTIONS: i64 = 10_000;
/// The largest number of stored alerts of a monitor.
const MAX_ALERTS: i64 = 2_000;

#[async_trait]
impl MonitorRecords for StateStore {
    async fn monitors(&self) -> Result<Vec<Monitor>, StoreError> {
        let all = Statement::new("SELECT * FROM monitors ORDER BY name, id");
        self.database.all(all).await?.iter().map(monitor).collect()
    }

    async fn monitor(&self, id: &str) -> Result<Option<Monitor>, StoreError> {
        let found = Statement::new("SELECT * FROM monitors WHERE id = $1").bind(id);
        self.database.optional(found).await?.as_ref().map(monitor).transpose()
    }

    async fn add_monitor(
        &self,
        new: &Monitor,
        quota: MonitorQuota,
        entry: AuditEntry,
    ) -> Result<MonitorAdmission, StoreError> {
        let mut change = self.database.change().await?;
        let stored = change.all(Statement::new("SELECT * FROM monitors")).await?;
        let stored: Vec<Monitor> = stored.iter().map(monitor).collect::<Result<_, _>>()?;
        let admission = quota.admit(&new.owner, stored.iter().map(|stored| &stored.owner));
        if admission == MonitorAdmission::Added {
            change.execute(Statement::insert("monitors", &MONITORS, vec![monitor_row(new)])).await?;
            append_in(&mut change, vec![entry]).await?;
            change.commit().await?;
        }
        Ok(admission)
    }

    async fn replace_monitor(&self, monitor: &Monitor, entry: AuditEntry) -> Result<bool, StoreError> {
        let mut change = self.database.change().await?;
        if !delete_version(&mut change, &monitor.id, monitor.version.saturating_sub(1)).await? {
            return Ok(false);
        }
        change.execute(Statement::insert("monitors", &MONITORS, vec![monitor_row(monitor)])).await?;
        append_in(&mut change, vec![entry]).await?;
        change.commit().await?;
        Ok(true)
    }

    async fn remove_monitor(&self, id: &str, version: u64, entry: AuditEntry) -> Result<bool, StoreError> {
        let mut change = self.database.change().await?;
        if !delete_version(&mut change, id, version).await? {
            return Ok(false);
        }
        for delete in [
            "DELETE FROM detections WHERE monitor_id = $1",
            "DELETE FROM alerts WHERE monitor_id = $1",
            "DELETE FROM deliveries WHERE monitor_id = $1",
        ] {
            change.execute(Statement::new(delete).bind(id)).await?;
        }
        append_in(&mut change, vec![entry]).await?;
        change.commit().await?;
        Ok(true)
    }

    async fn next_monitor_run(&self) -> Result<Option<Timestamp>, StoreError> {
        let next = Statement::new(
            "SELECT min(due) AS due FROM (SELECT min(next_run_at) AS due FROM monitors \
             UNION ALL SELECT min(escalates_at) AS due FROM alerts) AS all_due",
        );
        let row = self.database.optional(next).await?;
        maybe_time(row.map_or(Ok(None), |row| row.maybe_integer("due"))?)
    }

    async fn due_monitors(&self, now: Timestamp, limit: u32) -> Result<Vec<Monitor>, StoreError> {
        let due = Statement::new("SELECT * FROM monitors WHERE next_run_at <= $1 ORDER BY next_run_at, id LIMIT $2");
        let due = due.bind(micros(now)).bind(i64::from(limit));
        self.database.all(due).await?.iter().map(monitor).collect()
    }

    async fn write_round(
        &self,
        round: &MonitorRound,
        lease: Option<&Lease>,
        new_id: NewId<'_>,
    ) -> Result<bool, StoreError> {
        let mut change = self.database.change().await?;
        if let Some(lease) = lease
            && !is_newest(&mut change, lease).await?
        {
            return Ok(false);
        }
        let update = Statement::new(
            "UPDATE monitors SET next_run_at = $1, last_run_at = $2, last_outcome = $3, last_message = $4, \
             judged_until = CASE WHEN $5 > coalesce(judged_until, $5 - 1) THEN $5 ELSE judged_until END, \
             seen_as = coalesce($6, seen_as) WHERE id = $7",
        );
        let update = update
            .bind(round.next_run_at.map(micros))
            .bind(micros(round.run.at))
            .bind(round.run.outcome.as_str())
            .bind(round.run.message.as_deref())
            .bind(round.judged_until_ms)
            .bind(round.view.as_deref())
            .bind(&*round.monitor_id);
        if change.execute(update).await? == 0 {
            return Ok(false);
        }
        if let Some(view) = &round.view {
            write_detections(&mut change, round, view, new_id).await?;
            let changes = write_alerts(&mut change, round, view, new_id).await?;
            write_messages(&mut change, &round.monitor_id, &changes, round.run.at, new_id).await?;
            prune(&mut change, &round.monitor_id).await?;
        }
        change.commit().await?;
        Ok(true)
    }

    async fn escalate_alerts(
        &self,
        now: Timestamp,
        limit: u32,
        lease: &Lease,
        new_id: NewId<'_>,
    ) -> Result<Option<u64>, StoreError> {
        let mut change = self.database.change().await?;
        if !is_newest(&mut change, lease).await? {
            return Ok(None);
        }
        let due = Statement::new("SELECT * FROM alerts WHERE escalates_at <= $1 ORDER BY escalates_at, id LIMIT $2");
        let due = change.all(due.bind(micros(now)).bind(i64::from(limit))).await?;
        let mut count = 0;
        for row in &due {
            let due = alert(row)?;
            let found = Statement::new("SELECT * FROM monitors WHERE id = $1").bind(&*due.monitor_id);
            let Some(row) = change.optional(found).await? else { continue };
            let rules = monitor(&row)?.definition.alerts;
            let after = escalated(&due, &rules);
            change.execute(write_alert(&after)).await?;
            let monitor_id = Arc::clone(&due.monitor_id);
            write_messages(&mut change, &monitor_id, &[(Some(due), after)], now, new_id).await?;
            count += 1;
        }
        change.commit().await?;
        Ok(Some(count))
    }

    async fn detections(
        &self,
        monitor_id: &str,
        view: &str,
        filter: &DetectionFilter,
    ) -> Result<Vec<StoredDetection>, StoreError> {
        let mut found = Statement::new("SELECT * FROM detections WHERE");
        found = found.and(" monitor_id = ", monitor_id).and(" AND seen_as = ", view);
        if let Some(from) = filter.from_ms {
            found = found.and(" AND step >= ", from);
        }
        if let Some(before) = filter.before_ms {
            found = found.and(" AND step < ", before);
        }
        if let Some(severity) = filter.min_severity {
            found = found.and(" AND severity >= ", severity_rank(severity));
        }
        if let Some((step, id)) = &filter.older_than {
            found = found.and(" AND (step, id) < (", *step).and(", ", &**id).then(")");
        }
        let found = found.and(" ORDER BY step DESC, id DESC LIMIT ", i64::from(filter.limit));
        self.database.all(found).await?.iter().map(detection).collect()
    }

    async fn detection(&self, id: &str) -> Result<Option<StoredDetection>, StoreError> {
        let found = Statement::new("SELECT * FROM detections WHERE id = $1").bind(id);
        self.database.optional(found).await?.as_ref().map(detection).transpose()
    }

    async fn alerts(&self, monitor_id: &str, view: &str, filter: &AlertFilter) -> Result<Vec<Alert>, StoreError> {
        let mut found = Statement::new("SELECT * FROM alerts WHERE");
        found = found.and(" monitor_id = ", monitor_id).and(" AND seen_as = ", view);
        if let Some(state) = filter.state {
            found = found.and(" AND state = ", state.as_str());
        }
        if filter.is_open {
            found = found.then(" AND resolved_at IS NULL");
        }
        if let Some(severity) = filter.min_severity {
            found = found.and(" AND severity >= ", severity_rank(severity));
        }
        if let Some((at, id)) = &filter.older_than {
            found = found.and(" AND (triggered_at, id) < (", micros(*at)).and(", ", &**id).then(")");
        }
        let found = found.and(" ORDER BY triggered_at DESC, id DESC LIMIT ", i64::from(filter.limit));
        self.database.all(found).await?.iter().map(alert).collect()
    }

    async fn alert(&self, id: &str) -> Result<Option<Alert>, StoreError> {
        let found = Statement::new("SELECT * FROM alerts WHERE id = $1").bind(id);
        self.database.optional(found).await?.as_ref().map(alert).transpose()
    }

    async fn alerts_revision(&self) -> Result<AlertsRevision, StoreError> {
        let revision = Statement::new(
            "SELECT count(*) AS open_alerts, CAST(coalesce(sum(version), 0) AS BIGINT) AS versions, \
             (SELECT max(triggered_at) FROM alerts) AS newest, (SELECT count(*) FROM monitors) AS monitors, \
             (SELECT max(updated_at) FROM monitors) AS monitors_changed FROM alerts WHERE resolved_at IS NULL",
        );
        let row = self.database.optional(revision).await?.ok_or_else(|| odd("no counts"))?;
        Ok(AlertsRevision {
            open: unsigned(&row, "open_alerts")?,
            versions: unsigned(&row, "versions")?,
            newest: maybe_time(row.maybe_integer("newest")?)?,
            monitors: unsigned(&row, "monitors")?,
            monitors_changed: maybe_time(row.maybe_integer("monitors_changed")?)?,
        })
    }

    async fn replace_alert(
        &self,
        after: &Alert,
        now: Timestamp,
        entry: AuditEntry,
        new_id: NewId<'_>,
    ) -> Result<bool, StoreError> {
        let mut change = self.database.change().await?;
        let before = Statement::new("SELECT * FROM alerts WHERE id = $1 AND version = $2");
        let before = before.bind(&*after.id).bind(signed(after.version.saturating_sub(1)));
        let Some(before) = change.optional(before).await? else { return Ok(false) };
        change.execute(write_alert(after)).await?;
        let changes = [(Some(alert(&before)?), after.clone())];
        write_messages(&mut change, &after.monitor_id, &changes, now, new_id).await?;
        append_in(&mut change, vec![entry]).await?;
        change.commit().await?;
        Ok(true)
    }
}

async fn delete_version(change: &mut Transaction, id: &str, version: u64) -> Result<bool, StoreError> {
    let delete = Statement::new("DELETE FROM monitors WHERE id = $1 AND version = $2");
    Ok(change.execute(delete.bind(id).bind(signed(version))).await? > 0)
}

/// Writes detections of the anomalous steps of a round, and deletes detections of steps that are normal now.
async fn write_detections(
    change: &mut Transaction,
    round: &MonitorRound,
    view: &Arc<str>,
    new_id: NewId<'_>,
) -> Result<(), StoreError> {
    for step in &round.steps {
        if step.is_anomalous {
            let detection = StoredDetection {
                id: new_id(),
                monitor_id: Arc::clone(&round.monitor_id),
                step: step.clone(),
                detector: Arc::clone(&round.detector),
                view: Arc::clone(view),
                detected_at: round.run.at,
            };
            change.execute(write_detection(&detection)).await?;
        } else {
            let delete = Statement::new(
                "DELETE FROM detections WHERE monitor_id = $1 AND series = $2 AND step = $3 AND detector = $4",
            );
            let delete = delete.bind(&*round.monitor_id).bind(&*series_text(&step.series));
            change.execute(delete.bind(step.at_ms).bind(&*round.detector)).await?;
        }
    }
    Ok(())
}

/// Writes the alerts that follow from the steps of a round, and returns those that changed.
async fn write_alerts(
    change: &mut Transaction,
    round: &MonitorRound,
    view: &Arc<str>,
    new_id: NewId<'_>,
) -> Result<Vec<AlertChange>, StoreError> {
    let mut changes = Vec::new();
    let mut series: BTreeMap<&SeriesKey, Vec<&ScoredStep>> = BTreeMap::new();
    for step in &round.steps {
        series.entry(&step.series).or_default().push(step);
    }
    let facts = RoundFacts { monitor_id: &round.monitor_id, view, rules: &round.rules, at: round.run.at };
    for (key, steps) in series {
        let key = series_text(key);
        let open = Statement::new("SELECT * FROM alerts WHERE monitor_id = $1 AND series = $2 AND resolved_at IS NULL");
        let open = change.optional(open.bind(&*round.monitor_id).bind(&*key)).await?;
        let newest = Statement::new(
            "SELECT max(judged_until) AS newest FROM alerts WHERE monitor_id = $1 AND series = $2 \
             AND resolved_at IS NOT NULL",
        );
        let newest = change.optional(newest.bind(&*round.monitor_id).bind(&*key)).await?;
        let newest = newest.map_or(Ok(None), |row| row.maybe_integer("newest"))?;
        let open = open.as_ref().map(alert).transpose()?;
        for after in after_steps(open.clone(), newest, &steps, facts, new_id) {
            change.execute(write_alert(&after)).await?;
            changes.push((open.clone().filter(|before| before.id == after.id), after));
        }
    }
    Ok(changes)
}

/// Deletes the oldest detections and the oldest resolved alerts of a monitor that has more than the largest number of
/// them.
async fn prune(change: &mut Transaction, monitor_id: &str) -> Result<(), StoreError> {
    let detections = Statement::new(
        "DELETE FROM detections WHERE monitor_id = $1 AND step < (SELECT min(step) FROM (SELECT step FROM detections \
         WHERE monitor_id = $1 ORDER BY step DESC LIMIT $2) AS newest)",
    );
    change.execute(detections.bind(monitor_id).bind(MAX_DETECTIONS)).await?;
    let alerts = Statement::new(
        "DELETE FROM alerts WHERE monitor_id = $1 AND resolved_at IS NOT NULL AND triggered_at < (SELECT \
         min(triggered_at) FROM (SELECT triggered_at FROM alerts WHERE monitor_id = $1 ORDER BY triggered_at DESC \
         LIMIT $2) AS newest)",
    );
    change.execute(alerts.bind(monitor_id).bind(MAX_ALERTS)).await?;
    Ok(())
}
