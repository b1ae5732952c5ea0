//! `terrane anomaly create-monitor` and the other commands for one monitor. Each corresponds to a route of the server.
//!
//! In: a monitor as JSON or YAML, or its id. Out: the monitor, or the outcome of its round. A monitor runs with the
//! rights of the caller who created or replaced it.

use std::sync::Arc;

use terrane_app::monitors::{MonitorError, MonitorService};
use terrane_app::services::ServerServices;
use terrane_terminal::TerminalText;
use terrane_wire::ErrorBody;
use terrane_wire::anomaly as wire;

use super::super::module::{
    CallerArguments, ChangeArguments, PlaceArguments, ReadArguments, Requester, body, body_of, enabled, failed,
    print_record, with_services,
};
use super::super::print;
use crate::failure::Failure;
use crate::project::Project;

#[derive(Debug, clap::Args)]
pub struct CreateArguments {
    /// The monitor as JSON or YAML, like the body of the route; `@FILE` reads a file, `-` standard input
    monitor: String,
    #[command(flatten)]
    pub read: ReadArguments,
}

#[derive(Debug, clap::Args)]
pub struct ShowArguments {
    /// The id of the record
    pub(super) id: String,
    #[command(flatten)]
    pub read: ReadArguments,
}

#[derive(Debug, clap::Args)]
pub struct ReplaceArguments {
    /// The id of the monitor
    id: String,
    /// The monitor as JSON or YAML, like the body of the route; `@FILE` reads a file, `-` standard input
    monitor: String,
    #[command(flatten)]
    pub change: ChangeArguments,
}

#[derive(Debug, clap::Args)]
pub struct DeleteArguments {
    /// The id of the monitor
    id: String,
    #[command(flatten)]
    pub change: ChangeArguments,
}

#[derive(Debug, clap::Args)]
pub struct RoundArguments {
    /// The id of the monitor
    id: String,
    #[command(flatten)]
    pub place: PlaceArguments,
    /// The first date or timestamp to evaluate; default: the step after the last round
    #[arg(long, value_name = "DATE")]
    from: Option<String>,
    /// The last date or timestamp, inclusive; default: the newest complete step with data
    #[arg(long, value_name = "DATE")]
    to: Option<String>,
    #[command(flatten)]
    caller: CallerArguments,
}

/// Returns the use cases.
pub(super) fn service(services: &ServerServices) -> Result<&Arc<MonitorService>, Failure> {
    enabled(services.monitors.as_ref(), "monitors are", "anomaly.enabled")
}

/// Converts the refusal of a request of a caller.
pub(super) fn refused(error: MonitorError, requester: &Requester) -> Failure {
    let hint = match &error {
        MonitorError::Unknown => Some("Run `terrane anomaly monitors` to list the monitors."),
        MonitorError::UnknownAlert | MonitorError::UnknownDetection => Some(
            "A caller sees it only if policies show the caller the same rows as the owner of the monitor. Name such a \
             caller with --as FILE.",
        ),
        MonitorError::UnknownDelivery => Some("Run `terrane anomaly deliveries` to list the deliveries."),
        _ => None,
    };
    let failure = failed(ErrorBody::from_monitor(error, requester.request.scopes));
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Stores a monitor.
///
/// # Errors
/// The definition is invalid, or the caller may not query the value.
pub(super) async fn create(arguments: &CreateArguments, project: &Project) -> Result<(), Failure> {
    let definition = wire::monitor_from_wire(&body(&arguments.monitor)?).map_err(failed)?;
    let requester = Requester::new(arguments.read.caller.caller.as_deref())?;
    with_services(project, async |services| {
        let created = service(services)?.create(&requester.identity, &requester.request, definition).await;
        let monitor = created.map_err(|error| refused(error, &requester))?;
        print_record(arguments.read.place.json, &wire::Monitor::from(&monitor));
        Ok(())
    })
    .await
}

/// Shows a monitor.
///
/// # Errors
/// The monitor does not exist for the caller.
pub(super) async fn show(arguments: &ShowArguments, project: &Project) -> Result<(), Failure> {
    let requester = Requester::new(arguments.read.caller.caller.as_deref())?;
    with_services(project, async |services| {
        let monitor = service(services)?.monitor(&requester.identity, &requester.request, &arguments.id).await;
        let monitor = monitor.map_err(|error| refused(error, &requester))?;
        print_record(arguments.read.place.json, &wire::Monitor::from(&monitor));
        Ok(())
    })
    .await
}

/// Replaces the definition of a monitor.
///
/// # Errors
/// The definition is invalid, or the monitor has a different version.
pub(super) async fn replace(arguments: &ReplaceArguments, project: &Project) -> Result<(), Failure> {
    let ReplaceArguments { id, monitor, change } = arguments;
    let definition = wire::monitor_from_wire(&body(monitor)?).map_err(failed)?;
    let (requester, precondition) = (Requester::new(change.caller.caller.as_deref())?, change.version.precondition());
    with_services(project, async |services| {
        let Requester { request, identity } = &requester;
        let replaced = service(services)?.replace(identity, request, id, definition, &precondition).await;
        let monitor = replaced.map_err(|error| refused(error, &requester))?;
        print_record(change.place.json, &wire::Monitor::from(&monitor));
        Ok(())
    })
    .await
}

/// Deletes a monitor.
///
/// # Errors
/// The caller may not change the monitor, or the monitor has a different version.
pub(super) async fn delete(arguments: &DeleteArguments, project: &Project) -> Result<(), Failure> {
    let DeleteArguments { id, change } = arguments;
    let (requester, precondition) = (Requester::new(change.caller.caller.as_deref())?, change.version.precondition());
    with_services(project, async |services| {
        let Requester { request, identity } = &requester;
        let service = service(services)?;
        let monitor = service.monitor(identity, request, id).await.map_err(|error| refused(error, &requester))?;
        let removed = service.remove(identity, request, id, &precondition).await;
        removed.map_err(|error| refused(error, &requester))?;
        if change.place.json {
            print_record(true, &wire::Monitor::from(&monitor));
        } else {
            print(&format!("deleted monitor {}\n", TerminalText::line(id)));
        }
        Ok(())
    })
    .await
}

/// Runs a monitor now. Messages about new alerts are sent by a server.
///
/// # Errors
/// The caller may not change the monitor, or the range is invalid.
pub(super) async fn run(arguments: &RoundArguments, project: &Project) -> Result<(), Failure> {
    let RoundArguments { id, place, from, to, caller } = arguments;
    let range = wire::run_from_wire(&body_of([("from", from.clone()), ("to", to.clone())])).map_err(failed)?;
    let requester = Requester::new(caller.caller.as_deref())?;
    with_services(project, async |services| {
        let run = service(services)?.run_now(&requester.identity, &requester.request, id, range).await;
        let run = run.map_err(|error| refused(error, &requester))?;
        print_record(place.json, &wire::MonitorRun::from(&run));
        Ok(())
    })
    .await
}
