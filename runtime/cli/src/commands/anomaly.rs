//! `terrane anomaly`: finds anomalies in a measure or metric along time, and reads and changes monitors, alerts and
//! channels.
//!
//! In: a project and a measure or metric. Out: a table of anomalous points, or all points as JSON. Not here: the
//! algorithms (components), the series (app).

mod alerts;
mod channels;
mod lines;
mod monitors;
mod records;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Subcommand;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use comfy_table::{Table, presets};
use terrane_app::anomaly::{AnomalyError, AnomalyRequest, AnomalyRun, DataRange, Point};
use terrane_app::domain::{SeriesKey, SeriesValue};
use terrane_app::monitors::AlertMove;
use terrane_app::ports::detectors::{DetectorError, DetectorList};
use terrane_app::ports::plugins::PluginFault;
use terrane_compiler::types::Granularity;
use terrane_terminal::TerminalText;
use terrane_wire::ErrorBody;
use terrane_wire::anomaly::{self as wire, time};

use super::module::ReadArguments;
use super::query::refused;
use super::{Terminal, json_line, load_for_queries, print, print_error};
use crate::caller;
use crate::failure::Failure;
use crate::pictures::PlotWhen;
use crate::plugin_lines::shown;
use crate::project::Project;
use crate::report::plural;
use crate::wiring::{self, CommandDuration, WarehouseUse};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  terrane anomaly run examples/flights --cube flights --measure count --from 2013-06-01
  terrane anomaly run . --cube orders --measure revenue --dimension status --detector mad --sensitivity 4
  terrane anomaly run . --cube orders --measure revenue --granularity month --json | jq .series[].points
  terrane anomaly run . --metric revenue_per_order --dimension orders.status
  terrane anomaly detectors .
  terrane anomaly monitors . --json | jq '.monitors[].last_run'
  terrane anomaly alerts .
  terrane anomaly deliveries . --json | jq '.deliveries[].last_error'
  terrane anomaly create-monitor @monitor.yml . --as ada.json
  terrane anomaly run-monitor 5d0c3f1e9a7b4c2d . --from 2013-11-01
  terrane anomaly detections . --monitor 5d0c3f1e9a7b4c2d --min-severity HIGH
  terrane anomaly root-cause 8e6f0a1b2c3d4e5f .
  terrane anomaly acknowledge-alert 7b4c2d8e6f0a1b2c . --as ada.json
  terrane anomaly test-channel webhook operations .
A monitor runs with the rights of the caller of --as, or of the operator, who has no roles, groups or attributes.
runtime/docs/reference/detectors-and-checks.md describes how points are evaluated.")]
pub struct AnomalyArguments {
    #[command(subcommand)]
    pub action: AnomalyAction,
}

#[derive(Debug, Subcommand)]
pub enum AnomalyAction {
    /// Find anomalies of one measure or metric over time
    Run(Box<RunArguments>),
    /// List the detectors
    Detectors {
        /// The project folder, which contains service_project.yml
        #[arg(default_value = ".")]
        dir: PathBuf,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// List monitors
    Monitors(ReadArguments),
    /// List alerts, newest first
    Alerts(ReadArguments),
    /// List the messages about alerts, newest first
    Deliveries(ReadArguments),
    /// Create a monitor
    CreateMonitor(monitors::CreateArguments),
    /// Show one monitor
    ShowMonitor(monitors::ShowArguments),
    /// Replace the definition of a monitor; the caller becomes its owner
    ReplaceMonitor(monitors::ReplaceArguments),
    /// Delete a monitor with its detections and alerts
    DeleteMonitor(monitors::DeleteArguments),
    /// Run a monitor now
    RunMonitor(monitors::RoundArguments),
    /// List detections, newest step first
    Detections(alerts::DetectionArguments),
    /// Explain a detection by the parts of the measure that moved
    RootCause(monitors::ShowArguments),
    /// Show one alert
    ShowAlert(monitors::ShowArguments),
    /// Acknowledge an alert
    AcknowledgeAlert(alerts::MoveArguments),
    /// Mark an alert as under investigation
    InvestigateAlert(alerts::MoveArguments),
    /// Resolve an alert
    ResolveAlert(alerts::MoveArguments),
    /// List the configured channels
    Channels(channels::ListArguments),
    /// Send a test message to a channel
    TestChannel(channels::TestArguments),
    /// Send a failed delivery again
    ReplayDelivery(monitors::ShowArguments),
}

/// The largest number of steps of one season.
const MAX_SEASON: i64 = 10_000;

/// Returns a parser for granularities, whose error lists the valid ones.
fn granularities() -> impl TypedValueParser<Value = Granularity> {
    PossibleValuesParser::new(Granularity::ALL.map(Granularity::as_str)).try_map(|word| word.parse::<Granularity>())
}

#[derive(Debug, clap::Args)]
pub struct RunArguments {
    /// The project folder, which contains service_project.yml
    pub dir: PathBuf,
    /// The cube of the measure
    #[arg(long, required_unless_present = "metric", requires = "measure")]
    pub cube: Option<String>,
    /// A measure of the cube
    #[arg(long, required_unless_present = "metric", requires = "cube")]
    pub measure: Option<String>,
    /// A metric, instead of a measure
    #[arg(long, conflicts_with_all = ["cube", "measure"])]
    pub metric: Option<String>,
    /// The detector; `terrane anomaly detectors` lists them
    #[arg(long, default_value = "z_score")]
    pub detector: String,
    /// The threshold of the detector, greater than 0; default: the detector's own
    #[arg(long, allow_negative_numbers = true)]
    pub sensitivity: Option<f64>,
    /// Steps of history before the first point to evaluate
    #[arg(long, default_value_t = terrane_app::anomaly::TRAINING_SIZE)]
    pub training_size: u32,
    /// The length of a step
    #[arg(long, default_value = "day", value_parser = granularities())]
    pub granularity: Granularity,
    /// The time dimension, for a metric with its cube; default: the primary time dimension of each cube
    #[arg(long, value_name = "DIMENSION")]
    pub time: Option<String>,
    /// A dimension, for a metric with its cube, to compute one series for each of its values; can be repeated
    #[arg(long = "dimension", value_name = "DIMENSION")]
    pub dimensions: Vec<String>,
    /// The first date to evaluate; default: the first step after the history
    #[arg(long, value_name = "DATE")]
    pub from: Option<String>,
    /// The last date to evaluate, inclusive; default: the last step that has ended
    #[arg(long, value_name = "DATE")]
    pub to: Option<String>,
    /// Steps of one season, at least 2, for detectors with seasons
    #[arg(long, value_name = "STEPS", value_parser = clap::value_parser!(u32).range(2..=MAX_SEASON))]
    pub seasonality: Option<u32>,
    /// Query as this caller: a JSON file with user_id, email, roles, groups and attributes
    #[arg(long = "as", value_name = "FILE")]
    pub caller: Option<PathBuf>,
    /// Draw a line of each series, with a mark below each anomaly
    #[arg(
        long,
        value_name = "WHEN",
        num_args = 0..=1,
        require_equals = true,
        default_value = "auto",
        default_missing_value = "always"
    )]
    pub plot: PlotWhen,
    /// Print all points as one JSON object
    #[arg(long)]
    pub json: bool,
}

impl AnomalyAction {
    /// Returns the path of the project.
    pub fn dir(&self) -> &PathBuf {
        match self {
            AnomalyAction::Run(arguments) => &arguments.dir,
            AnomalyAction::Detectors { dir, .. } => dir,
            AnomalyAction::Monitors(arguments)
            | AnomalyAction::Alerts(arguments)
            | AnomalyAction::Deliveries(arguments) => &arguments.place.dir,
            AnomalyAction::CreateMonitor(arguments) => &arguments.read.place.dir,
            AnomalyAction::ShowMonitor(arguments)
            | AnomalyAction::RootCause(arguments)
            | AnomalyAction::ShowAlert(arguments)
            | AnomalyAction::ReplayDelivery(arguments) => &arguments.read.place.dir,
            AnomalyAction::ReplaceMonitor(arguments) => &arguments.change.place.dir,
            AnomalyAction::DeleteMonitor(arguments) => &arguments.change.place.dir,
            AnomalyAction::RunMonitor(arguments) => &arguments.place.dir,
            AnomalyAction::Detections(arguments) => &arguments.read.place.dir,
            AnomalyAction::AcknowledgeAlert(arguments)
            | AnomalyAction::InvestigateAlert(arguments)
            | AnomalyAction::ResolveAlert(arguments) => &arguments.change.place.dir,
            AnomalyAction::Channels(arguments) => &arguments.place.dir,
            AnomalyAction::TestChannel(arguments) => &arguments.read.place.dir,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// The project has errors, the request is refused, or the detector failed.
pub async fn run(arguments: &AnomalyArguments, project: Project, terminal: Terminal) -> Result<(), Failure> {
    match &arguments.action {
        AnomalyAction::Run(arguments) => find(arguments, &project, terminal).await,
        AnomalyAction::Monitors(arguments) => records::monitors(arguments, &project).await,
        AnomalyAction::Alerts(arguments) => records::alerts(arguments, &project).await,
        AnomalyAction::Deliveries(arguments) => records::deliveries(arguments, &project).await,
        AnomalyAction::CreateMonitor(arguments) => monitors::create(arguments, &project).await,
        AnomalyAction::ShowMonitor(arguments) => monitors::show(arguments, &project).await,
        AnomalyAction::ReplaceMonitor(arguments) => monitors::replace(arguments, &project).await,
        AnomalyAction::DeleteMonitor(arguments) => monitors::delete(arguments, &project).await,
        AnomalyAction::RunMonitor(arguments) => monitors::run(arguments, &project).await,
        AnomalyAction::Detections(arguments) => alerts::detections(arguments, &project).await,
        AnomalyAction::RootCause(arguments) => alerts::root_cause(arguments, &project).await,
        AnomalyAction::ShowAlert(arguments) => alerts::show(arguments, &project).await,
        AnomalyAction::AcknowledgeAlert(arguments) => alerts::step(AlertMove::Acknowledge, arguments, &project).await,
        AnomalyAction::InvestigateAlert(arguments) => alerts::step(AlertMove::Investigate, arguments, &project).await,
        AnomalyAction::ResolveAlert(arguments) => alerts::step(AlertMove::Resolve, arguments, &project).await,
        AnomalyAction::Channels(arguments) => channels::list(arguments, &project).await,
        AnomalyAction::TestChannel(arguments) => channels::test(arguments, &project).await,
        AnomalyAction::ReplayDelivery(arguments) => channels::replay(arguments, &project).await,
        AnomalyAction::Detectors { json, .. } => {
            let (engine, _) = wiring::load(&project, WarehouseUse::Read).await?;
            let list = engine.detectors.kinds().await;
            print(&if *json { json_line(&wire::Detectors::new(&list, shown)) } else { detectors_table(&list) });
            Ok(())
        }
    }
}

async fn find(arguments: &RunArguments, project: &Project, terminal: Terminal) -> Result<(), Failure> {
    let caller = caller::read(arguments.caller.as_deref())?;
    let engine = load_for_queries(project, CommandDuration::Short).await?;
    let request = request(arguments);
    let run = engine.anomalies.run(&caller, &request).await;
    if has_no_values(&run)
        && let Some(range) = engine.anomalies.data_elsewhere(&caller, &request).await.map_err(failure)?
    {
        return Err(no_rows(&request, range));
    }
    let run = run.map_err(failure)?;
    if arguments.json {
        print(&json_line(&wire::AnomalyRun::new(&request, &run)));
        return Ok(());
    }
    print(&table(&run));
    if let Some(glyphs) = arguments.plot.glyphs(terminal) {
        print(&lines::of_run(&run, glyphs, key));
    }
    let points: usize = run.series.iter().map(|series| series.points.len()).sum();
    let found = run.series.iter().flat_map(|series| &series.points).filter(|point| point.is_anomalous).count();
    let series = run.series.iter().filter(|series| !series.points.is_empty()).count();
    let (points, series) =
        (plural(points, "point"), if series == 1 { "1 series".to_owned() } else { format!("{series} series") });
    print_error(&format!(
        "{found} of {points} in {series} are anomalous ({}, sensitivity {}, at most {} steps of history)\n",
        run.detector.kind, run.sensitivity, arguments.training_size
    ));
    if found > 0 {
        print_error("raw: the deviation as the detector computes it; score: the deviation from 0 to 1\n");
    }
    if run.series.iter().flat_map(|series| &series.points).any(|point| !point.is_complete) {
        print_error(
            "incomplete: rows may follow, because the step contains the end of the data or the current time, or is \
             later\n",
        );
    }
    print_unevaluated(&run);
    Ok(())
}

/// Returns whether all values of a run are null or 0, or the run found no point to evaluate. A count is 0 in a range
/// without rows.
fn has_no_values(run: &Result<AnomalyRun, AnomalyError>) -> bool {
    match run {
        Ok(run) => {
            run.series.iter().flat_map(|series| &series.points).all(|point| point.value.is_none_or(|v| v == 0.0))
        }
        Err(error) => matches!(error, AnomalyError::NothingToEvaluate { .. }),
    }
}

/// Returns the failure of a run over a range outside the data.
fn no_rows(request: &AnomalyRequest, data: DataRange) -> Failure {
    let begin = request.from.as_ref().map(|from| format!(" from {from}"));
    let end = request.to.as_ref().map(|to| format!(" to {to}"));
    let range = format!("{}{}", begin.unwrap_or_default(), end.unwrap_or_default());
    let (first, last) = (time(data.first_ms, request.granularity), time(data.last_ms, request.granularity));
    Failure::new(format!("no rows lie in the range{}", shown(&range)))
        .hint(format!("The data has rows from {first} to {last}. Choose --from and --to in this range."))
}

/// Reports the series whose history is too short.
fn print_unevaluated(run: &AnomalyRun) {
    for series in run.series.iter().filter(|series| series.points.is_empty()) {
        let least = run.detector.min_points;
        print_error(&format!(
            "not evaluated: {}: the history has {}; {} needs at least {least}\n",
            key(&series.dimensions),
            plural(series.history, "value"),
            run.detector.kind
        ));
    }
}

fn request(arguments: &RunArguments) -> AnomalyRequest {
    let text = |text: &String| Arc::from(text.as_str());
    AnomalyRequest {
        value: match &arguments.metric {
            Some(metric) => SeriesValue::Metric(text(metric)),
            // The parser of the arguments requires a cube and a measure here.
            None => SeriesValue::Measure {
                cube: arguments.cube.as_ref().map(text).unwrap_or_default(),
                measure: arguments.measure.as_ref().map(text).unwrap_or_default(),
            },
        },
        detector: text(&arguments.detector),
        sensitivity: arguments.sensitivity,
        training_size: arguments.training_size,
        granularity: arguments.granularity,
        time_dimension: arguments.time.as_ref().map(text),
        dimensions: arguments.dimensions.iter().map(text).collect(),
        from: arguments.from.as_ref().map(text),
        to: arguments.to.as_ref().map(text),
        seasonality: arguments.seasonality,
    }
}

fn failure(error: AnomalyError) -> Failure {
    let hint = match &error {
        AnomalyError::Detector(DetectorError::Unknown { known, faults, .. }) => {
            let faults = faults.iter().map(|fault| format!("; not usable: {fault}"));
            Some(shown(&format!("possible: {}{}", known.join(", "), faults.collect::<String>())))
        }
        AnomalyError::ReversedRange { .. } => Some("Exchange --from and --to.".to_owned()),
        AnomalyError::NotNumbers { .. } => {
            Some("Choose a measure or metric whose values are numbers, such as a count or a sum.".to_owned())
        }
        AnomalyError::NoTimeDimension { .. } => Some("Name a time dimension with --time.".to_owned()),
        AnomalyError::NoTimeAxis { .. } => {
            let hint = "Set `primary_time: true` on a time dimension of each cube, or name one with --time.";
            Some(hint.to_owned())
        }
        AnomalyError::TooManyPoints { .. } => {
            let hint = "Choose fewer series, a coarser granularity, or a shorter range with --from and --to. \
                        `query.max_limit` is the limit.";
            Some(hint.to_owned())
        }
        AnomalyError::NothingToEvaluate { .. } => Some(
            "Set --from to an earlier date in the range of the data, or shorten the history with --training-size."
                .to_owned(),
        ),
        AnomalyError::Detector(DetectorError::TooLong { .. }) => {
            Some("Choose a coarser granularity or a shorter range.".to_owned())
        }
        AnomalyError::Fault { fault, series } => fault_hint(&fault.fault, series),
        _ => None,
    };
    match (error, hint) {
        (AnomalyError::Run(error), _) => refused(ErrorBody::for_operator(error)),
        (error, Some(hint)) => Failure::new(shown(&error.to_string())).hint(hint),
        (error, None) => Failure::new(shown(&error.to_string())),
    }
}

/// Describes the series that a component was evaluating when it failed.
fn fault_hint(fault: &PluginFault, series: &[SeriesKey]) -> Option<String> {
    const NAMED: usize = 3;
    // The only series of a run has no name.
    let names: Vec<String> = series.iter().filter(|key| !key.is_empty()).take(NAMED).map(key).collect();
    let more = series.len().saturating_sub(NAMED);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    // The limit covers all series of the call, so the message names these series only as the place where the call
    // ended.
    let until = if matches!(fault, PluginFault::Limit { .. }) { "it had reached" } else { "while evaluating" };
    (!names.is_empty()).then(|| format!("{until} {}{more}", names.join("; ")))
}

/// Describes a series by the values of its dimensions.
fn key(series: &SeriesKey) -> String {
    let parts = series.iter().map(|(name, value)| format!("{name} {}", value.as_deref().unwrap_or("null")));
    let parts: Vec<String> = parts.map(|part| TerminalText::line(&part).into_string()).collect();
    if parts.is_empty() { "the series".to_owned() } else { parts.join(", ") }
}

fn table(run: &AnomalyRun) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_content_arrangement(comfy_table::ContentArrangement::Disabled);
    let names = run.series.first().map_or(&[][..], |series| &series.dimensions);
    let header = names.iter().map(|(name, _)| name.to_string());
    table.set_header(
        header.chain(["time", "value", "expected", "bounds", "raw", "score", "severity"].map(str::to_owned)),
    );
    for series in &run.series {
        for point in series.points.iter().filter(|point| point.is_anomalous) {
            let key = series.dimensions.iter().map(|(_, value)| value.as_deref().unwrap_or("null").to_owned());
            table.add_row(key.chain(cells(point, run.granularity)).map(|cell| TerminalText::line(&cell)));
        }
    }
    format!("{table}\n")
}

fn cells(point: &Point, granularity: Granularity) -> [String; 7] {
    let number = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.3}"));
    [
        format!("{}{}", time(point.at_ms, granularity), if point.is_complete { "" } else { " (incomplete)" }),
        number(point.value),
        number(point.expected),
        format!("{} to {}", number(point.lower_bound), number(point.upper_bound)),
        number(point.raw),
        format!("{:.3}", point.score),
        point.severity.as_str().to_owned(),
    ]
}

fn detectors_table(list: &DetectorList) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(["kind", "what", "sensitivity", "fewest values", "component"]);
    for kind in &list.kinds {
        table.add_row([
            kind.kind.to_string(),
            kind.display_name.to_string(),
            kind.default_sensitivity.to_string(),
            kind.min_points.to_string(),
            format!("{} {}", kind.component, kind.version),
        ]);
    }
    let faults = list.faults.iter().map(|fault| format!("not usable: {}\n", shown(&fault.to_string())));
    format!("{table}\n{}", faults.collect::<String>())
}
