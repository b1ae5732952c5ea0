//! `terrane anomaly detections`, `root-cause` and the commands for one alert. Each corresponds to a route of
//! the server.
//!
//! In: filters and ids. Out: detections, root causes and alerts. A caller sees those of monitors whose rows the caller
//! sees in the same way as the owner.

use terrane_app::monitors::AlertMove;
use terrane_wire::anomaly as wire;

use super::super::module::{
    ChangeArguments, Parameters, ReadArguments, Requester, failed, print_list, print_record, with_services,
};
use super::monitors::{ShowArguments, refused, service};
use crate::failure::Failure;
use crate::project::Project;

#[derive(Debug, clap::Args)]
pub struct DetectionArguments {
    #[command(flatten)]
    pub read: ReadArguments,
    /// List the detections of the monitor with this id
    #[arg(long, value_name = "ID")]
    monitor: Option<String>,
    /// The first day, like 2024-01-31
    #[arg(long, value_name = "DATE")]
    from: Option<String>,
    /// The last day, inclusive
    #[arg(long, value_name = "DATE")]
    to: Option<String>,
    /// The lowest severity
    #[arg(long, value_name = "SEVERITY")]
    min_severity: Option<String>,
    /// The maximum number of detections, 1–1000
    #[arg(long)]
    limit: Option<u32>,
}

#[derive(Debug, clap::Args)]
pub struct MoveArguments {
    /// The id of the alert
    id: String,
    #[command(flatten)]
    pub change: ChangeArguments,
}

/// Lists detections, newest step first.
///
/// # Errors
/// An argument is invalid, or the caller may not see the monitor.
pub(super) async fn detections(arguments: &DetectionArguments, project: &Project) -> Result<(), Failure> {
    let DetectionArguments { read, monitor, from, to, min_severity, limit } = arguments;
    let parameters = Parameters::default()
        .with("monitor_id", monitor.as_ref())
        .with("start_date", from.as_ref())
        .with("end_date", to.as_ref())
        .with("min_severity", min_severity.as_ref())
        .with("limit", *limit);
    let (monitor, filter) = wire::detections_from_parameters(&parameters.text()).map_err(failed)?;
    let requester = Requester::new(read.caller.caller.as_deref())?;
    with_services(project, async |services| {
        let Requester { request, identity } = &requester;
        let seen = service(services)?.detections(identity, request, monitor.as_deref(), &filter).await;
        let seen = seen.map_err(|error| refused(error, &requester))?;
        let columns = [
            ("ID", "/id"),
            ("MONITOR", "/monitor_name"),
            ("SERIES", "/dimensions"),
            ("STEP", "/time"),
            ("VALUE", "/value"),
            ("EXPECTED", "/expected"),
            ("SCORE", "/score"),
            ("SEVERITY", "/severity"),
        ];
        print_list(read.place.json, &wire::Detections::from(seen.as_slice()), "detections", &columns);
        Ok(())
    })
    .await
}

/// Explains a detection by the slices of the measure that moved.
///
/// # Errors
/// The caller may not see the detection, or a query failed.
pub(super) async fn root_cause(arguments: &ShowArguments, project: &Project) -> Result<(), Failure> {
    let requester = Requester::new(arguments.read.caller.caller.as_deref())?;
    with_services(project, async |services| {
        let explained = service(services)?.root_cause(&requester.request, &arguments.id).await;
        let (seen, cause) = explained.map_err(|error| refused(error, &requester))?;
        let body = wire::RootCause::new(&seen, &cause);
        if arguments.read.place.json {
            print_record(true, &body);
            return Ok(());
        }
        print_record(false, &serde_json::json!({"kind": body.kind, "gap": body.gap, "summary": body.summary}));
        let columns = [
            ("SLICE", "/filters"),
            ("BEFORE", "/before"),
            ("AFTER", "/after"),
            ("DIRECTION", "/direction"),
            ("SHARE", "/share"),
        ];
        if !body.slices.is_empty() {
            print_list(false, &body, "slices", &columns);
        }
        Ok(())
    })
    .await
}

/// Shows an alert.
///
/// # Errors
/// The alert does not exist for the caller.
pub(super) async fn show(arguments: &ShowArguments, project: &Project) -> Result<(), Failure> {
    let requester = Requester::new(arguments.read.caller.caller.as_deref())?;
    with_services(project, async |services| {
        let seen = service(services)?.alert(&requester.request, &arguments.id).await;
        let seen = seen.map_err(|error| refused(error, &requester))?;
        print_record(arguments.read.place.json, &wire::Alert::from(&seen));
        Ok(())
    })
    .await
}

/// Moves an alert to another state.
///
/// # Errors
/// The state of the alert does not allow the move, or the alert has a different version.
pub(super) async fn step(step: AlertMove, arguments: &MoveArguments, project: &Project) -> Result<(), Failure> {
    let MoveArguments { id, change } = arguments;
    let (requester, precondition) = (Requester::new(change.caller.caller.as_deref())?, change.version.precondition());
    with_services(project, async |services| {
        let seen = service(services)?.move_alert(&requester.request, id, step, &precondition).await;
        let seen = seen.map_err(|error| refused(error, &requester))?;
        print_record(change.place.json, &wire::Alert::from(&seen));
        Ok(())
    })
    .await
}
