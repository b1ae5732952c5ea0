//! `terrane anomaly monitors`, `alerts` and `deliveries`: the records of all callers, in the state database of this
//! machine.
//!
//! In: a project. Out: a table, or JSON. Not here: single records and changes (`monitors`, `alerts`, `channels`).

use std::sync::Arc;

use comfy_table::{Table, presets};
use terrane_app::monitors::{MAX_LISTED, SeenAlert};
use terrane_app::ports::deliveries::{Delivery, DeliveryFilter, DeliveryRecords as _};
use terrane_app::ports::monitors::{AlertFilter, Monitor, MonitorRecords as _};
use terrane_app::ports::store::StoreError;
use terrane_terminal::TerminalText;
use terrane_wire::anomaly as wire;

use super::super::{json_line, print, print_error};
use crate::failure::Failure;
use crate::project::Project;
use crate::wiring;

/// Lists the monitors.
///
/// # Errors
/// The state database cannot be read.
pub(super) async fn monitors(project: &Project, json: bool) -> Result<(), Failure> {
    let monitors: Vec<Arc<Monitor>> =
        wiring::state(project).await?.monitors().await.map_err(failed)?.into_iter().map(Arc::new).collect();
    if json {
        print(&json_line(&wire::Monitors::new(&monitors)));
        return Ok(());
    }
    if monitors.is_empty() {
        print_error("no monitors\n");
        return Ok(());
    }
    let mut table = table(["ID", "NAME", "VALUE", "SCHEDULE", "OWNER", "NEXT RUN", "LAST RUN", "OUTCOME"]);
    for monitor in &monitors {
        let shown = wire::Monitor::from(&**monitor);
        let (last, outcome) = shown.last_run.map_or((String::new(), ""), |run| (run.at, run.outcome));
        table.add_row(
            [
                shown.id.to_owned(),
                shown.name.to_owned(),
                monitor.definition.value.member().to_string(),
                format!("{} {}", shown.schedule, shown.timezone),
                shown.owner.to_owned(),
                shown.next_run_at.unwrap_or_default(),
                last,
                outcome.to_owned(),
            ]
            .map(|cell| TerminalText::spaced(&cell)),
        );
    }
    print(&format!("{table}\n"));
    Ok(())
}

/// Lists the alerts of all monitors as their owners see them.
///
/// # Errors
/// The state database cannot be read.
pub(super) async fn alerts(project: &Project, json: bool) -> Result<(), Failure> {
    let store = wiring::state(project).await?;
    let filter = AlertFilter { limit: MAX_LISTED, ..AlertFilter::default() };
    let mut seen: Vec<SeenAlert> = Vec::new();
    for monitor in store.monitors().await.map_err(failed)? {
        let monitor = Arc::new(monitor);
        let Some(view) = &monitor.view else { continue };
        let alerts = store.alerts(&monitor.id, view, &filter).await.map_err(failed)?;
        seen.extend(alerts.into_iter().map(|alert| SeenAlert { alert, monitor: Arc::clone(&monitor) }));
    }
    seen.sort_by_key(|seen| std::cmp::Reverse(seen.alert.triggered_at));
    let shown = wire::Alerts::from(seen.as_slice());
    if json {
        print(&json_line(&shown));
        return Ok(());
    }
    if seen.is_empty() {
        print_error("no alerts\n");
        return Ok(());
    }
    let mut table = table(["ID", "STATUS", "SEVERITY", "MONITOR", "SERIES", "STEPS", "TRIGGERED", "BY"]);
    for alert in &shown.alerts {
        let series = alert.dimensions.iter().map(|(name, value)| format!("{name} {}", value.unwrap_or("null")));
        let series: Vec<String> = series.collect();
        table.add_row(
            [
                alert.id.to_owned(),
                alert.status.to_owned(),
                alert.severity.to_owned(),
                alert.monitor_name.to_owned(),
                series.join(", "),
                format!("{} to {}", alert.first_step, alert.last_step),
                alert.triggered_at.clone(),
                alert.acknowledged_by.unwrap_or_default().to_owned(),
            ]
            .map(|cell| TerminalText::spaced(&cell)),
        );
    }
    print(&format!("{table}\n"));
    Ok(())
}

/// Lists the messages of all monitors, newest first.
///
/// # Errors
/// The state database cannot be read.
pub(super) async fn deliveries(project: &Project, json: bool) -> Result<(), Failure> {
    let store = wiring::state(project).await?;
    let filter = DeliveryFilter { limit: MAX_LISTED, ..DeliveryFilter::default() };
    let mut found: Vec<Delivery> = Vec::new();
    for monitor in store.monitors().await.map_err(failed)? {
        found.extend(store.deliveries(&monitor.id, &filter).await.map_err(failed)?);
    }
    found.sort_by_key(|delivery| std::cmp::Reverse((delivery.message.at, delivery.sequence)));
    let shown = wire::Deliveries::from(found.as_slice());
    if json {
        print(&json_line(&shown));
        return Ok(());
    }
    if found.is_empty() {
        print_error("no deliveries\n");
        return Ok(());
    }
    let mut table =
        table(["ID", "STATUS", "KIND", "CHANNEL", "TARGET", "ATTEMPTS", "WRITTEN", "NEXT ATTEMPT", "ERROR"]);
    for delivery in &shown.deliveries {
        table.add_row(
            [
                delivery.id.to_owned(),
                delivery.status.to_owned(),
                delivery.kind.to_owned(),
                delivery.channel.r#type.to_owned(),
                delivery.channel.target.unwrap_or_default().to_owned(),
                delivery.attempts.to_string(),
                delivery.created_at.clone(),
                delivery.next_attempt_at.clone().unwrap_or_default(),
                delivery.last_error.unwrap_or_default().to_owned(),
            ]
            .map(|cell| TerminalText::spaced(&cell)),
        );
    }
    print(&format!("{table}\n"));
    Ok(())
}

fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    table
}

fn failed(error: StoreError) -> Failure {
    Failure::new(error.to_string())
}
