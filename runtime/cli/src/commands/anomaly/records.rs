//! `terrane anomaly monitors`, `alerts` and `deliveries`. Each corresponds to a route of the server.
//!
//! In: a project and a caller. Out: a table, or JSON. Not here: single records and changes (`monitors`, `alerts`,
//! `channels`).

use comfy_table::{Table, presets};
use terrane_app::monitors::MAX_LISTED;
use terrane_app::ports::deliveries::DeliveryFilter;
use terrane_app::ports::monitors::AlertFilter;
use terrane_terminal::TerminalText;
use terrane_wire::anomaly as wire;

use super::super::module::{ReadArguments, Requester, with_services};
use super::super::{json_line, print, print_error};
use super::monitors::{refused, service};
use crate::failure::Failure;
use crate::project::Project;

/// Lists the monitors.
///
/// # Errors
/// The project has errors, or the state database cannot be read.
pub(super) async fn monitors(arguments: &ReadArguments, project: &Project) -> Result<(), Failure> {
    let requester = Requester::new(arguments.caller.caller.as_deref())?;
    let monitors = with_services(project, async |services| {
        let monitors = service(services)?.monitors(&requester.identity, &requester.request).await;
        monitors.map_err(|error| refused(error, &requester))
    })
    .await?;
    if arguments.place.json {
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

/// Lists the alerts of the monitors whose rows the caller sees in the same way as their owners.
///
/// # Errors
/// The project has errors, or the state database cannot be read.
pub(super) async fn alerts(arguments: &ReadArguments, project: &Project) -> Result<(), Failure> {
    let requester = Requester::new(arguments.caller.caller.as_deref())?;
    let filter = AlertFilter { limit: MAX_LISTED, ..AlertFilter::default() };
    let seen = with_services(project, async |services| {
        let seen = service(services)?.alerts(&requester.identity, &requester.request, None, &filter).await;
        seen.map_err(|error| refused(error, &requester))
    })
    .await?;
    let shown = wire::Alerts::from(seen.as_slice());
    if arguments.place.json {
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

/// Lists the messages of the monitors that the caller may change, newest first.
///
/// # Errors
/// The project has errors, or the state database cannot be read.
pub(super) async fn deliveries(arguments: &ReadArguments, project: &Project) -> Result<(), Failure> {
    let requester = Requester::new(arguments.caller.caller.as_deref())?;
    let filter = DeliveryFilter { limit: MAX_LISTED, ..DeliveryFilter::default() };
    let found = with_services(project, async |services| {
        let found = service(services)?.deliveries(&requester.identity, &requester.request, None, &filter).await;
        found.map_err(|error| refused(error, &requester))
    })
    .await?;
    let shown = wire::Deliveries::from(found.as_slice());
    if arguments.place.json {
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
